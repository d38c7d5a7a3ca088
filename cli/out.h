/*
 * out.h - how results look: to people, and to programs.
 */
#pragma once

#include <stdint.h>

#include "base/json.h"
#include "cli/cmd.h"
#include "engine/api/history.h"

enum out_style {
	OUT_PLAIN,
	OUT_BOLD,
	OUT_DIM,
	OUT_ID,
	OUT_GOOD,
	OUT_BAD,
	OUT_DIR,
	OUT_LINK,
	OUT_OLD
};

/* What switches a terminal to the style; "" where no colour is wanted. */
const char *out_style(const struct invocation *inv, enum out_style style);

#define OUT_COUNT_MAX  32
#define OUT_TIME_MAX   40
#define OUT_SHORT_ID   8  /* digits of an id that people are shown */
#define OUT_SIZE_WIDTH 10 /* of a size in a column: "1023.9 KiB" */

/* A text and the beginning of an id, in its colour. */
void out_id(const struct invocation *inv, const char *before, const char *id);

char *out_count(uint64_t n, char text[OUT_COUNT_MAX]); /* "12,345" */
char *out_when(int64_t ns, char text[OUT_TIME_MAX]);   /* "2 minutes ago", "2025-03-01 14:05" */
char *out_minute(int64_t s, char text[OUT_TIME_MAX]);  /* "2025-03-01 14:05", local */
char *out_rfc3339(int64_t s, uint32_t ns, char text[OUT_TIME_MAX]); /* "2025-03-01T13:05:00.123Z" */

/* A path from the top; the top itself is ".". */
const char *out_path(const char *path);

/* A name for people, escaped as json.h has names. */
void out_name(FILE *out, const char *name);
void out_name_line(FILE *out, const char *name); /* with the end of the line */

/* Lines that a person wrote, each behind `indent`; what could drive a terminal shows as \xNN. */
void out_text(FILE *out, const char *text, const char *indent);

/* The first line of it, without an end. */
void out_line(FILE *out, const char *text);

/* What became of a path, by its letter: "added" for A, "deleted" for D, "modified" for M. */
const char *out_status(char letter);

/*
 * How much of the path is the folder of git's own that it lies in; 0: in none.  Of what lies there
 * people are shown one line: a commit changes dozens of files that nobody looks at.
 */
size_t out_git_folder(const char *path);

/* Are both in the same one? */
bool out_same_git_folder(const char *a, const char *b);

/* Columns of the terminal; `none` if it is none, or does not say. */
size_t out_columns(int fd, size_t none);

/* The width of a column that has this text, too. */
int out_wider(int width, const char *text);

/* '#' for a share, 0 to 1, of `width` columns; `text` has room for them and an end. */
void out_bar(double share, size_t width, char *text);

/* "1 file", "12,345 files". */
void out_plural(FILE *out, uint64_t n, const char *one, const char *many);

/* Start the answer of a command: an object with its schema. */
struct json out_json_begin(const struct invocation *inv, struct json_doc *doc);
void out_json_time(struct json j, const char *key, int64_t ns);
void out_json_time_or_null(struct json j, const char *key, int64_t ns); /* 0: null */
void out_json_limit(struct json j, const char *key, uint64_t limit);    /* 0, none: null */
/* Bytes of any kind, as text where they are UTF-8; the second key says which. */
void out_json_bytes(struct json j, const char *key, const char *encoding_key,
		    const struct buf *bytes);
void out_json_id(struct json j, const char *key, const char *id); /* "" is null */
void out_meta(FILE *out, const char *meta); /* labels of a snapshot, in one line */
void out_json_meta(struct json j, const char *meta);
void out_json_snapshot(struct json j, const struct engine_snapshot *s); /* its members */
