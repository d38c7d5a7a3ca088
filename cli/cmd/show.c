#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/path.h"
#include "base/size.h"
#include "base/text.h"
#include "cli/out.h"
#include "cli/pager.h"
#include "cli/progress.h"
#include "cli/screen.h"
#include "engine/api/show.h"

/* A larger file is not put into a JSON string; its plain bytes can be had without --json. */
#define JSON_CONTENT_MAX ((size_t)16 << 20)

struct shower {
	const struct invocation *inv;
	const char *path;    /* or NULL: only the snapshot is wanted */
	bool snapshot_found; /* what fails later is about the path */
	bool is_file;
	struct json j, entries; /* with --json */
	struct buf content;
	struct pager pager;
	struct screen screen;
};

static const char *type_name(uint32_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG:
		return "file";
	case S_IFDIR:
		return "directory";
	case S_IFLNK:
		return "symlink";
	case S_IFIFO:
		return "fifo";
	case S_IFSOCK:
		return "socket";
	case S_IFCHR:
		return "character device";
	case S_IFBLK:
		return "block device";
	}
	return "unknown";
}

/* --- for people ------------------------------------------------------------------------- */

static void mode_text(uint32_t mode, char text[11])
{
	static const char letter[] = "?pc?d?b?-?l?s???";

	snprintf(text, 11, "%crwxrwxrwx", letter[mode >> 12 & 15]);
	for (int i = 0; i < 9; i++)
		if (!(mode & 0400u >> i))
			text[1 + i] = '-';
	if (mode & S_ISUID)
		text[3] = mode & S_IXUSR ? 's' : 'S';
	if (mode & S_ISGID)
		text[6] = mode & S_IXGRP ? 's' : 'S';
	if (mode & S_ISVTX)
		text[9] = mode & S_IXOTH ? 't' : 'T';
}

static void print_line(const struct invocation *inv, const struct engine_entry *e)
{
	const bool dir = S_ISDIR(e->mode), link = S_ISLNK(e->mode);
	char mode[11], size[SIZE_TEXT_MAX], time[OUT_TIME_MAX];

	mode_text(e->mode, mode);
	fprintf(inv->out, "%s  %*s  %s  %s", mode, OUT_SIZE_WIDTH, size_format(e->size, size),
		out_minute(e->mtime_s, time),
		out_style(inv, dir    ? OUT_DIR
			       : link ? OUT_LINK
				      : OUT_PLAIN));
	out_name(inv->out, e->name);
	fprintf(inv->out, "%s%s", out_style(inv, OUT_PLAIN), dir ? "/" : "");
	if (link) {
		fputs(" -> ", inv->out);
		out_name(inv->out, e->target);
	}
	fputc('\n', inv->out);
}

static void print_field(const struct invocation *inv, const char *name)
{
	fprintf(inv->out, "%s%-10s%s", out_style(inv, OUT_DIM), name, out_style(inv, OUT_PLAIN));
}

static void print_snapshot(const struct invocation *inv, const struct engine_snapshot *s,
			   const char *project)
{
	char minute[OUT_TIME_MAX], when[OUT_TIME_MAX], count[OUT_COUNT_MAX], size[SIZE_TEXT_MAX];

	if (*s->id != '\0') {
		print_field(inv, "snapshot");
		fprintf(inv->out, "%s%s%s\n", out_style(inv, OUT_ID), s->id,
			out_style(inv, OUT_PLAIN));
	}
	if (*s->parent != '\0') {
		print_field(inv, "parent");
		fprintf(inv->out, "%s\n", s->parent);
	}
	print_field(inv, "project");
	out_name_line(inv->out, project);
	if (s->clone) {
		print_field(inv, "clone");
		out_name_line(inv->out, s->clone);
	}
	print_field(inv, *s->id != '\0' ? "taken" : "as of");
	fprintf(inv->out, "%s (%s)\n", out_minute(s->created / 1000000000, minute),
		*s->id != '\0' ? out_when(s->created, when) : "now");
	if (s->n_tags > 0)
		print_field(inv, "tags");
	for (size_t i = 0; i < s->n_tags; i++) {
		out_name(inv->out, s->tags[i]);
		fputc(i + 1 < s->n_tags ? ' ' : '\n', inv->out);
	}
	if (s->meta) {
		print_field(inv, "meta");
		out_meta(inv->out, s->meta);
		fputc('\n', inv->out);
	}
	print_field(inv, "files");
	fprintf(inv->out, "%s\n", out_count(s->files, count));
	print_field(inv, "size");
	fprintf(inv->out, "%s\n", size_format(s->bytes, size));
	if (*s->message != '\0') {
		fputc('\n', inv->out);
		out_text(inv->out, s->message, "    ");
	}
}

/* --- for programs ----------------------------------------------------------------------- */

static void set_entry(struct json j, const struct engine_entry *e)
{
	char mode[8], time[OUT_TIME_MAX];

	json_set_name(j, "name", e->name);
	json_set_text(j, "type", type_name(e->mode));
	snprintf(mode, sizeof(mode), "%04o", e->mode & 07777);
	json_set_text(j, "mode", mode);
	json_set_uint(j, "uid", e->uid);
	json_set_uint(j, "gid", e->gid);
	json_set_uint(j, "size", e->size);
	json_set_text(j, "mtime", out_rfc3339(e->mtime_s, e->mtime_ns, time));
	if (e->target)
		json_set_name(j, "target", e->target);
	if (S_ISDIR(e->mode))
		json_set_uint(j, "files", e->files);
}

/* --- what the engine finds -------------------------------------------------------------- */

static int on_snapshot(const struct engine_snapshot *s, const char *project, void *ctx,
		       struct err *err)
{
	struct shower *sh = ctx;

	sh->snapshot_found = true;
	progress_done(sh->inv->progress);
	if (!sh->path)
		pager_begin(&sh->pager, sh->inv);
	if (sh->inv->json) {
		out_json_snapshot(sh->j, s);
		json_set_name(sh->j, "project", project);
	} else if (!sh->path) {
		print_snapshot(sh->inv, s, project);
	}
	return 0;
}

static int on_found(const struct engine_entry *e, void *ctx, struct err *err)
{
	struct shower *sh = ctx;
	struct json entry;

	pager_begin(&sh->pager, sh->inv);
	if (!sh->inv->json) {
		if (!S_ISREG(e->mode) && !S_ISDIR(e->mode))
			print_line(sh->inv, e);
		return 0;
	}
	if (S_ISREG(e->mode) && e->size > JSON_CONTENT_MAX)
		return err_set(err, -EFBIG,
			       "'%s' has %" PRIu64 " bytes, more than --json takes: leave that out",
			       sh->path, e->size);
	json_set_name(sh->j, "path", sh->path);
	entry = json_set_object(sh->j, "entry");
	set_entry(entry, e);
	if (S_ISDIR(e->mode))
		sh->entries = json_set_array(sh->j, "entries");
	sh->is_file = S_ISREG(e->mode);
	return 0;
}

static int on_entry(const struct engine_entry *e, void *ctx, struct err *err)
{
	struct shower *sh = ctx;

	if (sh->inv->json)
		set_entry(json_add_object(sh->entries), e);
	else
		print_line(sh->inv, e);
	return 0;
}

static int on_bytes(const void *data, size_t len, void *ctx, struct err *err)
{
	struct shower *sh = ctx;

	if (sh->inv->json)
		return buf_append(&sh->content, data, len) < 0 ? err_nomem(err) : 0;
	return screen_write(&sh->screen, data, len, err);
}

/* --- the command ------------------------------------------------------------------------ */

static void shower_done(struct shower *sh)
{
	pager_end(&sh->pager);
	screen_done(&sh->screen);
	buf_done(&sh->content);
}

/* What there is in the state, or NULL: which states there are. */
static void hint(struct invocation *inv, const char *state)
{
	AUTO_FREE char *top = state ? text_format("%s:", state) : NULL;

	if (top)
		cmd_hint_words(inv, "show", (const char *[]){ top, NULL });
	else
		cmd_hint(inv, "log");
}

static int show_run(struct invocation *inv, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	CLEANUP(shower_done) struct shower sh = { .inv = inv, .pager.saved = -1 };
	const struct engine_show_sink sink = {
		.snapshot = on_snapshot,
		.found = on_found,
		.entry = on_entry,
		.bytes = on_bytes,
		.ctx = &sh,
	};
	char *state = inv->words[0], *colon = strchr(state, ':');
	AUTO_FREE char *typed = NULL; /* the name that the path shows */
	struct engine_watch watch;
	int r;

	if (colon) {
		*colon = '\0';
		sh.path = colon + 1;
	}
	sh.j = out_json_begin(inv, &doc);
	screen_begin(&sh.screen, inv);
	watch = progress_watch(inv->progress);
	r = engine_show(inv->engine, state, sh.path, &watch, &sink, err);
	if (r == -ENOENT && sh.path && path_unescape(sh.path, &typed) > 0) {
		sh.path = typed;
		*err = (struct err){ 0 };
		r = engine_show(inv->engine, state, sh.path, &watch, &sink, err);
	}
	r = r < 0 ? r : screen_flush(&sh.screen, err);
	if (r == -ENOENT || r == -ENOTDIR)
		hint(inv, sh.snapshot_found ? state : NULL);
	if (pager_was_left(&sh.pager))
		return CMD_OK;
	if (r < 0 || !inv->json)
		return r;
	if (sh.is_file)
		out_json_bytes(sh.j, "content", "encoding", &sh.content);
	return json_print(&doc, inv->out, err);
}

const struct command cmd_show = {
	.name = "show",
	.group = "Snapshots",
	.summary = "show a state, or a file or directory as it was",
	.words = "STATE[:PATH]",
	.min_words = 1,
	.max_words = 1,
	.details =
	    "STATE is `@` for the newest snapshot of the project, `@-1` for the one before, an id\n"
	    "or the beginning of one, a tag, the name of a clone for the clone as it is now, or\n"
	    "`.` for the project as it is now. PATH counts from the top of the project, or from\n"
	    "the current directory if it begins with `./`. A file is printed as it was, byte for\n"
	    "byte, but on a terminal control and invisible characters are shown as `^[` and\n"
	    "`<U+202E>`; a directory is listed; `STATE:` lists the top.\n",
	.examples = "show @\nshow @-1:src/main.c\nshow idea:src\n",
	.run = show_run,
};
