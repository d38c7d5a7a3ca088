/*
 * json.h - build one JSON value and print it on one line; read one that somebody else built.
 *
 * A thin face of json-c. A struct json_doc owns the whole; a struct json is a place in it,
 * borrowed, passed by value. If memory runs out, the document remembers that and json_print()
 * reports it, so building needs no checks. Reading needs none either: the document remembers the
 * first mismatch with its sentence, and json_end() reports it.
 *
 * JSON is UTF-8, and our bytes need not be. A string holds one of:
 *
 *   name  file names and paths, reversible: printable UTF-8 as it is; backslash,
 *         control characters and bytes that are no UTF-8 as \xNN, two lower-case hex
 *         digits each (path_append_shown() escapes more for people).
 *         Every backslash begins such a group, so replacing each group by its byte
 *         gives the name back.
 *   text  for people: all valid UTF-8 as it is, a byte that is none as \xNN.
 *   raw   bytes of any kind, as base64 (RFC 4648, padded).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/strlist.h"

struct json_doc {
	void *root; /* owned */
	bool failed;
	struct err wrong; /* of reading: the first thing that was */
};

struct json {
	struct json_doc *doc;
	void *node; /* an object or an array; NULL once memory ran out or the text was not so */
};

/* Start a document that is an object. */
struct json json_begin(struct json_doc *doc);
void json_done(struct json_doc *doc);

/* Members of an object.  A key given twice keeps the last value. */
void json_set_null(struct json j, const char *key);
void json_set_bool(struct json j, const char *key, bool v);
void json_set_int(struct json j, const char *key, int64_t v);
void json_set_uint(struct json j, const char *key, uint64_t v);
void json_set_double(struct json j, const char *key, double v, int decimals);
void json_set_exact(struct json j, const char *key, double v);     /* not finite: null */
void json_set_text(struct json j, const char *key, const char *s); /* NULL: null */
void json_set_name(struct json j, const char *key, const char *s); /* NULL: null */
void json_set_text_len(struct json j, const char *key, const char *s, size_t len);
void json_set_raw(struct json j, const char *key, const void *data, size_t len);
/* Null unless `known`. */
void json_set_bool_if(struct json j, const char *key, bool known, bool v);
void json_set_int_if(struct json j, const char *key, bool known, int64_t v);
void json_set_uint_if(struct json j, const char *key, bool known, uint64_t v);
/* An array of names (see above). */
void json_set_names(struct json j, const char *key, char *const *names, size_t n);
struct json json_set_object(struct json j, const char *key);
struct json json_set_array(struct json j, const char *key);

/* An array with an object for each of the `n` elements of `list`, which set_one(object, element) fills. */
#define JSON_SET_LIST(j, key, list, n, set_one)                         \
	do {                                                            \
		const struct json array_ = json_set_array((j), (key));  \
                                                                        \
		for (size_t at_ = 0, n_ = (n); at_ < n_; at_++)         \
			set_one(json_add_object(array_), &(list)[at_]); \
	} while (0)

/* A value of any kind that stands elsewhere; nothing if there is none. */
void json_set_value(struct json j, const char *key, struct json from, const char *from_key);

/* A whole document, which stays what it is. */
void json_set_root(struct json j, const char *key, const struct json_doc *doc);

/* A value that is JSON text already; false, and nothing set, if it is not. */
bool json_set_parsed(struct json j, const char *key, const char *text, size_t len);

/* Elements of an array. */
void json_add_text(struct json j, const char *s);
void json_add_text_len(struct json j, const char *s, size_t len);
void json_add_name(struct json j, const char *s);
struct json json_add_object(struct json j);

/* The whole, compact, and a newline.  -ENOMEM if building failed, or what writing failed with. */
NODISCARD int json_print(const struct json_doc *doc, FILE *out, struct err *err);

/* The same, appended to `out`. */
NODISCARD int json_append(const struct json_doc *doc, struct buf *out, struct err *err);

/* A place as compact text, borrowed until the document changes; NULL: memory ran out. */
const char *json_text_of(struct json j);

/* --- reading ---------------------------------------------------------------------------- */

/* Parse text[0..len), which is one object and nothing else; -EINVAL with a sentence if not. */
NODISCARD int json_parse(struct json_doc *doc, const char *text, size_t len, struct json *ret,
			 struct err *err);

/*
 * Members of an object that must be there and of that type; else the answer is false, 0,
 * NULL or an empty place, and json_end() fails.
 */
bool json_get_bool(struct json j, const char *key);
int64_t json_get_int(struct json j, const char *key);
uint64_t json_get_uint(struct json j, const char *key);
double json_get_double(struct json j, const char *key);    /* of an integer, too */
const char *json_get_text(struct json j, const char *key); /* borrowed; without a NUL in it */
char *json_get_name(struct json j, const char *key);       /* the bytes it had; owned */
struct json json_get_object(struct json j, const char *key);
struct json json_get_array(struct json j, const char *key);
/* Add an array of names to the list.  -ENOMEM. */
NODISCARD int json_get_names(struct json j, const char *key, struct strlist *ret);

enum json_kind {
	JSON_MISSING, /* or null */
	JSON_BOOL,
	JSON_INT,
	JSON_DOUBLE,
	JSON_TEXT,
	JSON_OBJECT,
	JSON_ARRAY,
};

/* What the member is; for a value whose type is the sender's choice. */
enum json_kind json_kind(struct json j, const char *key);

/* Do both members hold the same value of the same kind? */
bool json_equal(struct json a, const char *a_key, struct json b, const char *b_key);

/* The first key of the object that `known` does not know, borrowed; NULL: it knows all. */
const char *json_unknown_key(struct json j, bool (*known)(const char *key, const void *ctx),
			     const void *ctx);

/* The key is there and its value is not null. */
bool json_has(struct json j, const char *key);

/* The same where null or no such key is an answer too: NULL. */
const char *json_get_text_or_null(struct json j, const char *key);
char *json_get_name_or_null(struct json j, const char *key);

/* The member if it is a string, borrowed; NULL if it is anything else, and nothing is remembered. */
const char *json_text_if(struct json j, const char *key);

/* The member if it is an object; else an empty one, and no mistake is noted. */
struct json json_object_if(struct json j, const char *key);

/* Elements of an array. */
size_t json_length(struct json array);
struct json json_at_object(struct json array, size_t i);
char *json_at_name(struct json array, size_t i);       /* owned */
const char *json_at_text(struct json array, size_t i); /* borrowed; NULL: no such string */

/* Each member that is a string, in the order of the text; what `fn` returns if that is negative, else 0. */
NODISCARD int json_each_text(struct json j, int (*fn)(const char *key, const char *text, void *ctx),
			     void *ctx);

/* The member is not as asked for, in words that follow its key; json_end() fails. */
void json_refuse(struct json j, const char *key, const char *why);

/* 0 if all that was asked for was there; else -EINVAL (or -ENOMEM) and what was wrong first. */
NODISCARD int json_end(const struct json_doc *doc, struct err *err);
