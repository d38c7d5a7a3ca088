#include "cli/out.h"

#include <inttypes.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/path.h"
#include "base/utf8.h"

#define NS_PER_S ((int64_t)1000000000)

const char *out_style(const struct invocation *inv, enum out_style style)
{
	static const char *const code[] = {
		[OUT_PLAIN] = "\033[0m",  [OUT_BOLD] = "\033[1m",  [OUT_DIM] = "\033[2m",
		[OUT_ID] = "\033[33m",    [OUT_GOOD] = "\033[32m", [OUT_BAD] = "\033[1;31m",
		[OUT_DIR] = "\033[1;34m", [OUT_LINK] = "\033[36m", [OUT_OLD] = "\033[31m",
	};

	return inv->color ? code[style] : "";
}

/* --- numbers, times, names -------------------------------------------------------------- */

void out_id(const struct invocation *inv, const char *before, const char *id)
{
	fprintf(inv->out, "%s%s%.*s%s", before, out_style(inv, OUT_ID), OUT_SHORT_ID, id,
		out_style(inv, OUT_PLAIN));
}

char *out_count(uint64_t n, char text[OUT_COUNT_MAX])
{
	char digits[24];
	const int len = snprintf(digits, sizeof(digits), "%" PRIu64, n);
	char *to = text;

	for (int i = 0; i < len; i++) {
		if (i > 0 && (len - i) % 3 == 0)
			*to++ = ',';
		*to++ = digits[i];
	}
	*to = '\0';
	return text;
}

size_t out_git_folder(const char *path)
{
	static const char git[] = ".git/";

	for (const char *at = path; at; at = strchr(at, '/')) {
		at += *at == '/';
		if (strncmp(at, git, strlen(git)) == 0)
			return (size_t)(at - path) + strlen(git) - 1;
	}
	return 0;
}

bool out_same_git_folder(const char *a, const char *b)
{
	const size_t len = out_git_folder(a);

	return len > 0 && out_git_folder(b) == len && memcmp(a, b, len) == 0;
}

const char *out_status(char letter)
{
	return letter == 'A' ? "added" : letter == 'D' ? "deleted" : "modified";
}

size_t out_columns(int fd, size_t none)
{
	struct winsize size;

	return isatty(fd) && ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 20 ? size.ws_col
										   : none;
}

int out_wider(int width, const char *text)
{
	const int len = (int)strlen(text);

	return len > width ? len : width;
}

void out_bar(double share, size_t width, char *text)
{
	const size_t n = share >= 1 ? width : share > 0 ? (size_t)(share * (double)width + 0.5) : 0;

	memset(text, '#', n);
	text[n] = '\0';
}

void out_plural(FILE *out, uint64_t n, const char *one, const char *many)
{
	char text[OUT_COUNT_MAX];

	fprintf(out, "%s %s", out_count(n, text), n == 1 ? one : many);
}

/* Seconds and nanoseconds of a time before 1970 too. */
static time_t split(int64_t ns, uint32_t *ret_ns)
{
	int64_t s = ns / NS_PER_S, rest = ns % NS_PER_S;

	if (rest < 0) {
		s--;
		rest += NS_PER_S;
	}
	*ret_ns = (uint32_t)rest;
	return (time_t)s;
}

char *out_minute(int64_t s, char text[OUT_TIME_MAX])
{
	time_t t = (time_t)s;
	struct tm tm;

	if (!localtime_r(&t, &tm) || strftime(text, OUT_TIME_MAX, "%Y-%m-%d %H:%M", &tm) == 0)
		snprintf(text, OUT_TIME_MAX, "%16" PRId64, s);
	return text;
}

char *out_when(int64_t ns, char text[OUT_TIME_MAX])
{
	static const struct {
		int64_t below, unit;
		const char *name;
	} steps[] = {
		{ 60, 1, "second" },
		{ 60 * 60, 60, "minute" },
		{ 24 * 60 * 60, 60 * 60, "hour" },
		{ 7 * 24 * 60 * 60, 24 * 60 * 60, "day" },
	};
	uint32_t unused;
	time_t t = split(ns, &unused);
	int64_t age = time(NULL) - t, n;

	if (age >= 0 && age < 2) {
		snprintf(text, OUT_TIME_MAX, "just now");
		return text;
	}
	for (size_t i = 0; i < ARRAY_LEN(steps) && age >= 0; i++) {
		if (age >= steps[i].below)
			continue;
		n = age / steps[i].unit;
		snprintf(text, OUT_TIME_MAX, "%" PRId64 " %s%s ago", n, steps[i].name,
			 n == 1 ? "" : "s");
		return text;
	}
	return out_minute(t, text);
}

char *out_rfc3339(int64_t s, uint32_t ns, char text[OUT_TIME_MAX])
{
	time_t t = (time_t)s;
	struct tm tm;
	size_t n;

	/* Four digits are all that RFC 3339 has for a year. */
	if (!gmtime_r(&t, &tm) || tm.tm_year > 9999 - 1900 || tm.tm_year < -1900)
		return NULL;
	n = strftime(text, OUT_TIME_MAX, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(text + n, OUT_TIME_MAX - n, ".%03" PRIu32 "Z", ns / 1000000 % 1000);
	return text;
}

const char *out_path(const char *path)
{
	return *path != '\0' ? path : ".";
}

void out_name(FILE *out, const char *name)
{
	CLEANUP(buf_done) struct buf shown = BUF_INIT;

	if (path_append_shown(&shown, name, strlen(name)) < 0)
		fputs("(out of memory)", out);
	else if (shown.len > 0)
		fwrite(shown.data, 1, shown.len, out);
}

void out_name_line(FILE *out, const char *name)
{
	out_name(out, name);
	fputc('\n', out);
}

/* One character, and how long it was. */
static size_t put_shown(FILE *out, const char *text)
{
	const size_t n = *text == '\n' || *text == '\t' ? 1 : utf8_visible(text, strlen(text));

	if (n > 0)
		fwrite(text, 1, n, out);
	else
		fprintf(out, "\\x%02x", (unsigned char)*text);
	return n > 0 ? n : 1;
}

void out_line(FILE *out, const char *text)
{
	while (*text != '\0' && *text != '\n')
		text += put_shown(out, text);
}

void out_text(FILE *out, const char *text, const char *indent)
{
	bool begins = true;

	while (*text != '\0') {
		if (begins)
			fputs(indent, out);
		begins = *text == '\n';
		text += put_shown(out, text);
	}
	if (!begins)
		fputc('\n', out);
}

/* --- JSON ------------------------------------------------------------------------------- */

struct json out_json_begin(const struct invocation *inv, struct json_doc *doc)
{
	struct json j = json_begin(doc);
	char schema[64];

	snprintf(schema, sizeof(schema), "snap.%s/1", inv->command->name);
	json_set_text(j, "schema", schema);
	return j;
}

void out_json_time(struct json j, const char *key, int64_t ns)
{
	char text[OUT_TIME_MAX];
	uint32_t rest;
	time_t s = split(ns, &rest);

	json_set_text(j, key, out_rfc3339(s, rest, text));
}

void out_json_bytes(struct json j, const char *key, const char *encoding_key,
		    const struct buf *bytes)
{
	const char *s = bytes->len > 0 ? (const char *)bytes->data : "";
	size_t at = 0, n = 1;

	for (; at < bytes->len && n > 0; at += n)
		n = utf8_valid(s + at, bytes->len - at);
	json_set_text(j, encoding_key, n > 0 ? "utf-8" : "base64");
	if (n > 0)
		json_set_text_len(j, key, s, bytes->len);
	else
		json_set_raw(j, key, s, bytes->len);
}

void out_json_time_or_null(struct json j, const char *key, int64_t ns)
{
	if (ns == 0)
		json_set_null(j, key);
	else
		out_json_time(j, key, ns);
}

void out_json_limit(struct json j, const char *key, uint64_t limit)
{
	json_set_uint_if(j, key, limit > 0, limit);
}

void out_json_id(struct json j, const char *key, const char *id)
{
	json_set_text(j, key, *id != '\0' ? id : NULL);
}

void out_json_meta(struct json j, const char *meta)
{
	struct meta_pair p;
	char key[META_KEY_MAX + 1];

	while (meta) {
		meta = meta_next(meta, &p);
		snprintf(key, sizeof(key), "%.*s", (int)p.key_len, p.key);
		json_set_text_len(j, key, p.value, p.value_len);
	}
}

void out_meta(FILE *out, const char *meta)
{
	struct meta_pair p;

	while (meta) {
		meta = meta_next(meta, &p);
		fprintf(out, "%.*s=%.*s%s", (int)p.key_len, p.key, (int)p.value_len, p.value,
			meta ? " " : "");
	}
}

void out_json_snapshot(struct json j, const struct engine_snapshot *s)
{
	out_json_id(j, "snapshot", s->id);
	out_json_id(j, "parent", s->parent);
	out_json_time(j, "time", s->created);
	json_set_text(j, "message", s->message);
	out_json_meta(json_set_object(j, "meta"), s->meta);
	json_set_names(j, "tags", s->tags, s->n_tags);
	json_set_name(j, "origin", s->clone ? s->clone : ".");
	json_set_name(j, "part", s->part);
	json_set_uint(j, "files", s->files);
	json_set_uint(j, "bytes", s->bytes);
	json_set_bool(j, "automatic", s->automatic);
}
