/*
 * opt.h - command-line options as data.
 *
 * A command keeps its options in one table; parsing, help and completion all read
 * it.  Each entry names the member of the command's own struct that it fills, and
 * a member of the wrong type does not compile:
 *
 *   struct run_args { bool keep; uint64_t mem; struct opt_list env; };
 *   static const struct opt run_opts[] = {
 *           OPT_FLAG('k', "keep", struct run_args, keep, "keep the clone"),
 *           OPT_SIZE(0, "mem", "SIZE", struct run_args, mem, "most memory to use"),
 *           OPT_LIST('e', "env", "NAME=VALUE", struct run_args, env, "set a variable"),
 *           OPT_END,
 *   };
 *
 * Accepted: --long, --long=value, --long value, -s, -svalue, -s value, -abc for
 * flags.  Never a shortened long name: a script that used one would break with the
 * next option.  An option given twice keeps the last value, but for OPT_LIST and
 * OPT_COUNT.  What was not given keeps the value it had, so preset the defaults.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/attr.h"
#include "base/err.h"

enum opt_kind {
	OPT_KIND_END,
	OPT_KIND_FLAG,     /* bool */
	OPT_KIND_COUNT,    /* unsigned, one more each time */
	OPT_KIND_STR,      /* const char *, borrowed from argv */
	OPT_KIND_INT,      /* int */
	OPT_KIND_U64,      /* uint64_t */
	OPT_KIND_SIZE,     /* uint64_t, bytes: 512M, 2G */
	OPT_KIND_DURATION, /* uint64_t, milliseconds: 500ms, 30s, 15m, 2h */
	OPT_KIND_LIST,     /* struct opt_list, one more each time */
};

struct opt {
	enum opt_kind kind;
	char short_name;       /* '\0' if none */
	const char *long_name; /* NULL if none */
	const char *metavar;   /* what help calls the value; "a|b|c" lists the choices */
	size_t offset;
	const char *help;
};

/* The array is owned (opt_done() frees it), the strings are borrowed from argv. */
struct opt_list {
	const char **items;
	size_t n;
};

/* An array of -1 elements, and no program, if the member has not the type the option needs. */
#define OPT_IS_(type, member, want) \
	__builtin_types_compatible_p(__typeof__(((type *)0)->member), want)
#define OPT_OFFSET_(type, member, want) \
	(offsetof(type, member) + 0 * sizeof(char[2 * OPT_IS_(type, member, want) - 1]))

/* clang-format off */
#define OPT_(kind_, s, l, meta, type, member, want, h) \
	{ OPT_KIND_##kind_, (s), (l), (meta), OPT_OFFSET_(type, member, want), (h) }
#define OPT_END { 0 }
/* clang-format on */

#define OPT_FLAG(s, l, type, member, help)  OPT_(FLAG, s, l, NULL, type, member, bool, help)
#define OPT_COUNT(s, l, type, member, help) OPT_(COUNT, s, l, NULL, type, member, unsigned, help)
#define OPT_STR(s, l, metavar, type, member, help) \
	OPT_(STR, s, l, metavar, type, member, const char *, help)
#define OPT_INT(s, l, metavar, type, member, help) OPT_(INT, s, l, metavar, type, member, int, help)
#define OPT_U64(s, l, metavar, type, member, help) \
	OPT_(U64, s, l, metavar, type, member, uint64_t, help)
#define OPT_SIZE(s, l, metavar, type, member, help) \
	OPT_(SIZE, s, l, metavar, type, member, uint64_t, help)
#define OPT_DURATION(s, l, metavar, type, member, help) \
	OPT_(DURATION, s, l, metavar, type, member, uint64_t, help)
#define OPT_LIST(s, l, metavar, type, member, help) \
	OPT_(LIST, s, l, metavar, type, member, struct opt_list, help)

enum opt_mode {
	OPT_PERMUTE,      /* options and words in any order */
	OPT_STOP_AT_WORD, /* the first word ends the options, like "--" */
};

struct opt_words {
	int n;        /* words; they are argv[0..n) in their order */
	int n_before; /* how many of them came before "--"; n if there was none */
	bool dashes;  /* there was a "--" that ended the options */
};

/*
 * Fill `args` from argv[0..argc), which begins behind the program's or command's
 * name, and move the words to its front; the rest of argv is then undefined.
 * -EINVAL with a sentence that names option and value; `args` may then be partly
 * filled.  In either case opt_done() releases what it owns.
 */
NODISCARD int opt_parse(const struct opt *table, enum opt_mode mode, int argc, char **argv,
			void *args, struct opt_words *ret, struct err *err);

void opt_done(const struct opt *table, void *args);

/* One entry of help per option, aligned and within `width` columns, at most 80. */
void opt_describe(const struct opt *table, int width, FILE *out);

bool opt_takes_value(const struct opt *o);
#define OPT_FOREACH(o, table) for (const struct opt *o = (table); o->kind != OPT_KIND_END; o++)
