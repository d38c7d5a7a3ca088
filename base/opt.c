#include "base/opt.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "base/typo.h"
#include "base/vec.h"

#define NAME_SIZE 64 /* "--" and a long name */

struct parser {
	const struct opt *table;
	int argc;
	char **argv;
	int next; /* the argument to look at next */
	void *args;
	struct err *err;
};

bool opt_takes_value(const struct opt *o)
{
	return o->kind != OPT_KIND_FLAG && o->kind != OPT_KIND_COUNT && o->kind != OPT_KIND_END;
}

static void *member(const struct opt *o, void *args)
{
	return (char *)args + o->offset;
}

static int parse_int(const char *text, int *ret)
{
	const bool negative = text[0] == '-';
	uint64_t v;
	int r = size_parse_u64(text + negative, &v);

	if (r < 0)
		return r;
	if (v > (uint64_t)INT_MAX + negative)
		return -ERANGE;
	*ret = negative ? (int)-(int64_t)v : (int)v;
	return 0;
}

static int list_append(struct opt_list *l, const char *s, struct err *err)
{
	if (!VEC_ONE_MORE(l->items, l->n))
		return err_nomem(err);
	l->items[l->n++] = s;
	return 0;
}

static int set_value(struct parser *p, const struct opt *o, const char *name, const char *value)
{
	const char *want = "a whole number";
	void *m = member(o, p->args);
	int r = 0;

	switch (o->kind) {
	case OPT_KIND_END:
		assert(!"the end of the table is no option");
		break;
	case OPT_KIND_FLAG:
		*(bool *)m = true;
		break;
	case OPT_KIND_COUNT:
		++*(unsigned *)m;
		break;
	case OPT_KIND_STR:
		*(const char **)m = value;
		break;
	case OPT_KIND_INT:
		r = parse_int(value, m);
		break;
	case OPT_KIND_U64:
		r = size_parse_u64(value, m);
		break;
	case OPT_KIND_SIZE:
		want = "a size such as 512M or 2G";
		r = size_parse_limit(value, m);
		break;
	case OPT_KIND_DURATION:
		want = "a duration such as 30s, 15m or 2h";
		r = duration_parse(value, m);
		break;
	case OPT_KIND_LIST:
		return list_append(m, value, p->err);
	}
	if (r == -EDOM)
		return err_set(
		    p->err, -EINVAL,
		    "option '%s': '%s' has no unit: say %sM, or %sB if so few bytes are meant",
		    name, value, value, value);
	if (r == -ERANGE)
		return err_set(p->err, -EINVAL, "option '%s': '%s' is out of range", name, value);
	if (r < 0)
		return err_set(p->err, -EINVAL, "option '%s': '%s' is not %s", name, value, want);
	return 0;
}

/*
 * The value of `o` stands in the next argument.  "--" is not taken for one: in
 * "run --env -- make" the value was forgotten; "--env=--" says it if it is meant.
 */
static int set_from_next(struct parser *p, const struct opt *o, const char *name)
{
	if (p->next >= p->argc || strcmp(p->argv[p->next], "--") == 0)
		return err_set(p->err, -EINVAL, "option '%s' needs a value: %s", name, o->metavar);
	return set_value(p, o, name, p->argv[p->next++]);
}

static const struct opt *find_long(const struct opt *table, const char *name, size_t len)
{
	OPT_FOREACH(o, table)
	if (o->long_name && strncmp(o->long_name, name, len) == 0 && o->long_name[len] == '\0')
		return o;
	return NULL;
}

static const struct opt *find_short(const struct opt *table, char c)
{
	OPT_FOREACH(o, table)
	if (o->short_name != '\0' && o->short_name == c)
		return o;
	return NULL;
}

static int unknown_long(const struct parser *p, const char *name, size_t len)
{
	struct typo typo = TYPO_INIT(name, len);

	OPT_FOREACH(o, p->table)
	if (o->long_name)
		typo_offer(&typo, o->long_name);
	if (typo.best)
		return err_set(p->err, -EINVAL, "unknown option '--%.*s', did you mean '--%s'?",
			       (int)len, name, typo.best);
	return err_set(p->err, -EINVAL, "unknown option '--%.*s'", (int)len, name);
}

static int parse_long(struct parser *p, const char *arg)
{
	const size_t len = strcspn(arg, "=");
	const char *value = arg[len] == '=' ? arg + len + 1 : NULL;
	const struct opt *o = find_long(p->table, arg, len);
	char name[NAME_SIZE];

	if (!o)
		return unknown_long(p, arg, len);
	snprintf(name, sizeof(name), "--%s", o->long_name);
	if (value && !opt_takes_value(o))
		return err_set(p->err, -EINVAL, "option '%s' takes no value, not '%s'", name,
			       value);
	if (value || !opt_takes_value(o))
		return set_value(p, o, name, value);
	return set_from_next(p, o, name);
}

static int unknown_short(const struct parser *p, char c, const char *arg)
{
	if (find_long(p->table, arg, strcspn(arg, "=")))
		return err_set(p->err, -EINVAL, "unknown option '-%s', did you mean '--%s'?", arg,
			       arg);
	if (arg[1] == '\0')
		return err_set(p->err, -EINVAL, "unknown option '-%s'", arg);
	/* Half of a UTF-8 character is no name to print. */
	if ((unsigned char)c >= 0x80)
		return err_set(p->err, -EINVAL, "unknown option in '-%s'", arg);
	return err_set(p->err, -EINVAL, "unknown option '-%c' in '-%s'", c, arg);
}

/* Flags one after the other; the first option with a value takes what is left. */
static int parse_short(struct parser *p, const char *arg)
{
	const struct opt *o;
	const char *c;
	char name[3] = "-";
	int r;

	for (c = arg; *c != '\0'; c++) {
		o = find_short(p->table, *c);
		if (!o)
			return unknown_short(p, *c, arg);
		name[1] = *c;
		if (!opt_takes_value(o)) {
			r = set_value(p, o, name, NULL);
			if (r < 0)
				return r;
			continue;
		}
		return c[1] != '\0' ? set_value(p, o, name, c + 1) : set_from_next(p, o, name);
	}
	return 0;
}

int opt_parse(const struct opt *table, enum opt_mode mode, int argc, char **argv, void *args,
	      struct opt_words *ret, struct err *err)
{
	struct parser p = { .table = table, .argc = argc, .argv = argv, .args = args, .err = err };
	struct opt_words words = { 0 };
	const char *arg;
	int r;

	while (p.next < argc) {
		arg = argv[p.next];
		if (strcmp(arg, "--") == 0) {
			words.dashes = true;
			p.next++;
			break;
		}
		if (arg[0] != '-' || arg[1] == '\0') {
			if (mode == OPT_STOP_AT_WORD)
				break;
			argv[words.n++] = argv[p.next++];
			continue;
		}
		p.next++;
		r = arg[1] == '-' ? parse_long(&p, arg + 2) : parse_short(&p, arg + 1);
		if (r < 0)
			return r;
	}
	words.n_before = words.n;
	while (p.next < argc)
		argv[words.n++] = argv[p.next++];
	if (!words.dashes)
		words.n_before = words.n;
	*ret = words;
	return 0;
}

void opt_done(const struct opt *table, void *args)
{
	struct opt_list *l;

	OPT_FOREACH(o, table)
	{
		if (o->kind != OPT_KIND_LIST)
			continue;
		l = member(o, args);
		free(l->items);
		*l = (struct opt_list){ 0 };
	}
}

#define HELP_WIDTH_MAX   80
#define HELP_LEFT(width) ((width)*7 / 20) /* a longer left side has its help on the next line */
#define HELP_GAP         2

static int format_left(const struct opt *o, char *left, size_t size)
{
	char s[5] = "    ";

	if (o->short_name != '\0')
		snprintf(s, sizeof(s), "-%c%s", o->short_name, o->long_name ? ", " : "");
	return snprintf(left, size, "  %s%s%s%s%s", s, o->long_name ? "--" : "",
			o->long_name ? o->long_name : "", opt_takes_value(o) ? " " : "",
			opt_takes_value(o) ? o->metavar : "");
}

/* Print `text` from `column` on, broken at blanks; a single word that does not fit stays whole. */
static void print_wrapped(const char *text, int column, int width, FILE *out)
{
	int at = column, n;

	while (*text != '\0') {
		n = (int)strcspn(text, " ");
		if (at > column && at + 1 + n > width) {
			fprintf(out, "\n%*s", column, "");
			at = column;
		}
		at += fprintf(out, "%s%.*s", at > column ? " " : "", n, text);
		text += n;
		text += strspn(text, " ");
	}
	fputc('\n', out);
}

void opt_describe(const struct opt *table, int width, FILE *out)
{
	char left[HELP_WIDTH_MAX];
	int column = 0, n;

	OPT_FOREACH(o, table)
	{
		n = format_left(o, left, sizeof(left));
		if (n > column && n <= HELP_LEFT(width))
			column = n;
	}
	column = (column > 0 ? column : HELP_LEFT(width)) + HELP_GAP;
	OPT_FOREACH(o, table)
	{
		n = format_left(o, left, sizeof(left));
		fputs(left, out);
		if (n + HELP_GAP > column) {
			fputc('\n', out);
			n = 0;
		}
		fprintf(out, "%*s", column - n, "");
		print_wrapped(o->help, column, width, out);
	}
}
