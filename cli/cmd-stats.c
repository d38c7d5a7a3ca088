#include <errno.h>

#include "base/size.h"
#include "cli/out.h"
#include "engine/upkeep.h"

static double ratio(const struct engine_stats *s)
{
	return s->stored > 0 ? (double)s->logical / (double)s->stored : 1;
}

static int print_json(const struct invocation *inv, const struct engine_stats *s, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j = out_json_begin(inv, &doc);

	json_set_name(j, "store", engine_store_path(inv->engine));
	json_set_uint(j, "projects", s->projects);
	json_set_uint(j, "snapshots", s->snapshots);
	json_set_uint(j, "tags", s->tags);
	json_set_uint(j, "clones", s->clones);
	json_set_uint(j, "logical", s->logical);
	json_set_uint(j, "stored", s->stored);
	json_set_double(j, "ratio", ratio(s), 2);
	json_set_uint(j, "chunks", s->chunks);
	json_set_uint(j, "objects", s->objects);
	json_set_uint(j, "disk", s->disk);
	json_set_uint(j, "free", s->free);
	return json_print(&doc, inv->out, err);
}

static void print_row(const struct invocation *inv, const char *name, const char *value,
		      const char *note)
{
	fprintf(inv->out, "%s%-10s%s%*s", out_style(inv, OUT_DIM), name, out_style(inv, OUT_PLAIN),
		OUT_SIZE_WIDTH, value);
	if (*note != '\0')
		fprintf(inv->out, "  %s%s%s", out_style(inv, OUT_DIM), note,
			out_style(inv, OUT_PLAIN));
	fputc('\n', inv->out);
}

static void print_human(const struct invocation *inv, const struct engine_stats *s)
{
	char count[OUT_COUNT_MAX], size[SIZE_TEXT_MAX], note[64];

	fprintf(inv->out, "%s%-10s%s  ", out_style(inv, OUT_DIM), "store",
		out_style(inv, OUT_PLAIN));
	out_name(inv->out, engine_store_path(inv->engine));
	fputc('\n', inv->out);
	print_row(inv, "projects", out_count(s->projects, count), "");
	print_row(inv, "snapshots", out_count(s->snapshots, count), "");
	print_row(inv, "tags", out_count(s->tags, count), "");
	print_row(inv, "clones", out_count(s->clones, count), "");
	print_row(inv, "logical", size_format(s->logical, size), "in all snapshots and clones");
	snprintf(note, sizeof(note), "packed, each content once: %.1f times less", ratio(s));
	print_row(inv, "stored", size_format(s->stored, size),
		  ratio(s) >= 1.05 ? note : "packed, each content once");
	snprintf(note, sizeof(note), "the store's files, %s of them free",
		 size_format(s->free, size));
	print_row(inv, "disk", size_format(s->disk, size),
		  s->free > 0 ? note : "the store's files");
	print_row(inv, "chunks", out_count(s->chunks, count), "pieces of file content");
	print_row(inv, "objects", out_count(s->objects, count),
		  "directories, lists of chunks, attributes");
}

static int stats_run(struct invocation *inv, struct err *err)
{
	struct engine_stats stats;
	int r;

	r = engine_stats(inv->engine, &stats, err);
	if (r == -ENOENT)
		cmd_hint(inv, "init");
	if (r < 0)
		return r;
	if (inv->json)
		return print_json(inv, &stats, err);
	print_human(inv, &stats);
	return CMD_OK;
}

const struct command cmd_stats = {
	.name = "stats",
	.group = "Store",
	.summary = "say how much is stored, and what sharing saves",
	.details = "Of the whole store, which may hold many projects.\n",
	.run = stats_run,
};
