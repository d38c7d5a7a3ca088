/*
 * fields.h - a struct as JSON: each field once, for both directions.
 *
 * A table names the members of a struct that travel.  fields_set() writes them as members of a JSON
 * object, fields_get() reads them back, and fields_done() frees what was read.
 */
#pragma once

#include <stddef.h>

#include "base/json.h"
#include "base/strlist.h"

enum field_kind {
	FIELD_BOOL,
	FIELD_INT,          /* of 4 or 8 bytes; one too large for it is its limit */
	FIELD_UINT,         /* of 2, 4 or 8 bytes, enums too; one too large for it is its maximum */
	FIELD_DOUBLE,       /* exact; what is not finite travels as null */
	FIELD_CHAR,         /* one letter */
	FIELD_ID,           /* char[]; "" travels as null */
	FIELD_CHARS,        /* char[], for people; "" travels as it is */
	FIELD_NAME,         /* char *, any bytes (json.h); must be there */
	FIELD_NAME_OR_NULL, /* the same; may be NULL */
	FIELD_TEXT,         /* char *, for people; must be there */
	FIELD_TEXT_OR_NULL,
	FIELD_WORD,    /* const char *, one of a set that nobody owns */
	FIELD_OBJECT,  /* a struct in the struct */
	FIELD_LIST,    /* T *, and a size_t that counts them */
	FIELD_ARRAY,   /* T[N], the same; what does not fit is not read */
	FIELD_NAMES,   /* char **, the same */
	FIELD_STRLIST, /* struct strlist, of names, by FIELD_STRINGS() */
	FIELD_OTHER,   /* any other type, by a codec */
};

/* Added to one of these: texts of earlier versions lack it. */
#define FIELD_LATER 0x100u

/* How a member of another type travels. */
struct field_codec {
	void (*set)(struct json j, const char *key, const void *member);
	/* 0 or -ENOMEM; json_refuse() what is wrong with the text. */
	int (*get)(struct json j, const char *key, void *member);
	void (*done)(void *member);
};

struct field {
	const char *key;
	unsigned kind;                         /* enum field_kind */
	size_t at, size;                       /* of the member */
	size_t count_at;                       /* of a list: where its length is */
	const struct fields *of;               /* what a list or an object is made of */
	const char *(*word)(const char *text); /* of FIELD_WORD: the one that is spelled so */
	const struct field_codec *codec;       /* of FIELD_OTHER */
};

struct fields {
	const struct field *list;
	size_t n;
	size_t size; /* of the struct */
};

#define FIELD_AS(kind_, type, key_, member)                                   \
	{                                                                     \
		.key = (key_), .kind = (kind_), .at = offsetof(type, member), \
		.size = sizeof(((type *)NULL)->member)                        \
	}
/* One whose key is its name. */
#define FIELD(kind_, type, member) FIELD_AS(kind_, type, #member, member)
#define FIELD_WORD_OF(type, member, word_)                                                        \
	{                                                                                         \
		.key = #member, .kind = FIELD_WORD, .at = offsetof(type, member), .word = (word_) \
	}
#define FIELD_OF(type, key_, member, fields_)                                                      \
	{                                                                                          \
		.key = (key_), .kind = FIELD_OBJECT, .at = offsetof(type, member), .of = (fields_) \
	}
/* Members of the struct itself, as an object. */
#define FIELD_PART(key_, fields_)                                    \
	{                                                            \
		.key = (key_), .kind = FIELD_OBJECT, .of = (fields_) \
	}
#define FIELD_BY(type, key_, member, codec_)                                      \
	{                                                                         \
		.key = (key_), .kind = FIELD_OTHER, .at = offsetof(type, member), \
		.codec = (codec_)                                                 \
	}
/* The struct itself, by a codec: members that make up one value. */
#define FIELD_WHOLE(key_, codec_)                                     \
	{                                                             \
		.key = (key_), .kind = FIELD_OTHER, .codec = (codec_) \
	}
#define FIELD_LIST_OF(kind_, type, key_, member, count, fields_)                           \
	{                                                                                  \
		.key = (key_), .kind = (kind_), .at = offsetof(type, member),              \
		.size = sizeof(((type *)NULL)->member), .count_at = offsetof(type, count), \
		.of = (fields_)                                                            \
	}

#define FIELD_STRINGS(kind_, type, key_, member) \
	FIELD_LIST_OF(kind_, type, key_, member.list, member.n, NULL)

/* The table of a struct whose members are in `list_`. */
#define FIELDS(type, list_)                                               \
	{                                                                 \
		(list_), sizeof(list_) / sizeof((list_)[0]), sizeof(type) \
	}

void fields_set(struct json j, const struct fields *f, const void *from);

/* An array of `n` such structs. */
void fields_set_list(struct json j, const char *key, const struct fields *f, const void *list,
		     size_t n);

/*
 * The members of `to` that the table does not name stay as they are, and so do those that may be
 * missing and are.  -ENOMEM; what is wrong with the text is for json_end() to say.  In both cases fields_done() frees what was read.
 */
NODISCARD int fields_get(struct json j, const struct fields *f, void *to);

/* The same and what json_end() says. */
NODISCARD int fields_read(struct json j, const struct fields *f, void *to, struct err *err);

/* Free what fields_get() gave, and leave the struct empty. */
void fields_done(const struct fields *f, void *s);

/* Define fn(), which does this to a struct of one type and then zeroes all of it. */
#define DEFINE_FIELDS_DONE(fn, type, table) \
	void fn(type *s)                    \
	{                                   \
		fields_done(&(table), s);   \
		*s = (type){ 0 };           \
	}
