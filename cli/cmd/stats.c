#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "base/size.h"
#include "cli/out.h"
#include "engine/api/clone.h"
#include "engine/api/growth.h"
#include "engine/api/service.h"
#include "engine/api/upkeep.h"

#define GROWTH_DAYS 7 /* that `grown` looks back */

static double ratio(const struct engine_stats *s)
{
	return s->stored > 0 ? (double)s->logical / (double)s->stored : 1;
}

/* Of what it shows, all but what is stored for it alone. */
static uint64_t shared(const struct engine_share *of)
{
	return of->logical > of->unshared ? of->logical - of->unshared : 0;
}

static void set_growth(struct json j, const struct engine_growth *g)
{
	const struct json list = json_set_array(j, "growth");

	for (size_t i = 0; i < g->n; i++) {
		const struct engine_growth_row *row = &g->list[i];
		const struct json one = json_add_object(list);

		out_json_time(one, "time", row->time);
		json_set_uint(one, "logical", row->logical);
		json_set_uint(one, "disk", row->disk);
		json_set_uint(one, "used", row->used);
		json_set_uint_if(one, "garbage", row->judged, row->garbage);
	}
}

static int print_json(const struct invocation *inv, const struct engine_stats *s,
		      const struct engine_growth *g, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j = out_json_begin(inv, &doc), list, one;

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
	json_set_uint(j, "limit", s->limit);
	list = json_set_array(j, "per_clone");
	for (size_t i = 0; i < s->n_shares; i++) {
		const struct engine_share *of = &s->shares[i];

		one = json_add_object(list);
		json_set_name(one, "clone", of->clone);
		json_set_name(one, "project", of->project);
		json_set_uint(one, "logical", of->logical);
		json_set_uint(one, "private", of->unshared);
		json_set_uint(one, "own", of->unshared);
		json_set_uint(one, "shared", shared(of));
	}
	set_growth(j, g);
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

static void print_shares(const struct invocation *inv, const struct engine_stats *s)
{
	int width = (int)strlen("CLONE");
	char size[SIZE_TEXT_MAX];

	for (size_t i = 0; i < s->n_shares; i++)
		if ((int)strlen(s->shares[i].clone) > width)
			width = (int)strlen(s->shares[i].clone);
	if (s->n_shares > 0)
		fprintf(inv->out, "\n%s%-*s  %*s  %*s%s\n", out_style(inv, OUT_DIM), width, "CLONE",
			OUT_SIZE_WIDTH, "SHOWS", OUT_SIZE_WIDTH, "ITS OWN",
			out_style(inv, OUT_PLAIN));
	for (size_t i = 0; i < s->n_shares; i++) {
		const struct engine_share *of = &s->shares[i];

		fprintf(inv->out, "%s%-*s%s  %*s", out_style(inv, OUT_ID), width, of->clone,
			out_style(inv, OUT_PLAIN), OUT_SIZE_WIDTH, size_format(of->logical, size));
		fprintf(inv->out, "  %*s\n", OUT_SIZE_WIDTH, size_format(of->unshared, size));
	}
}

/* What the store's files took some days ago, if anybody noted it then. */
static void print_growth(const struct invocation *inv, const struct engine_stats *s,
			 const struct engine_growth *g)
{
	const int64_t since =
	    (int64_t)time(NULL) * 1000000000 - GROWTH_DAYS * 86400 * INT64_C(1000000000);
	char size[SIZE_TEXT_MAX], note[64], when[OUT_TIME_MAX];
	size_t i = 0;

	while (i < g->n && g->list[i].time < since)
		i++;
	if (i == g->n)
		return;
	snprintf(note, sizeof(note), "%s since %s", s->disk >= g->list[i].disk ? "more" : "less",
		 out_when(g->list[i].time, when));
	print_row(inv, "grown",
		  size_format(s->disk >= g->list[i].disk ? s->disk - g->list[i].disk
							 : g->list[i].disk - s->disk,
			      size),
		  note);
}

static void print_human(const struct invocation *inv, const struct engine_stats *s,
			const struct engine_growth *g)
{
	char count[OUT_COUNT_MAX], size[SIZE_TEXT_MAX], note[64];

	fprintf(inv->out, "%s%-10s%s  ", out_style(inv, OUT_DIM), "store",
		out_style(inv, OUT_PLAIN));
	out_name_line(inv->out, engine_store_path(inv->engine));
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
	print_growth(inv, s, g);
	if (s->limit > 0)
		print_row(inv, "limit", size_format(s->limit, size),
			  "most that these files may take (store.limit)");
	print_row(inv, "chunks", out_count(s->chunks, count), "pieces of file content");
	print_row(inv, "objects", out_count(s->objects, count),
		  "directories, lists of chunks, attributes");
	print_shares(inv, s);
}

/* What is counted is what the store has; a daemon may have more, and stores that to list it. */
static void store_all(const struct invocation *inv)
{
	CLEANUP(engine_clones_done) struct engine_clones clones = { 0 };
	struct engine_service service;
	struct err err = { 0 };

	if (engine_service(inv->engine, &service, &err) >= 0 && service.mounted > 0 &&
	    engine_clone_list(inv->engine, true, &clones, &err) < 0)
		log_warn("cannot count the latest changes in clones: %s, continuing", err.msg);
}

static int stats_run(struct invocation *inv, struct err *err)
{
	CLEANUP(engine_stats_done) struct engine_stats stats = { 0 };
	AUTO_FREE struct engine_growth *growth = NULL;
	int r;

	engine_revive(inv->engine);
	store_all(inv);
	r = engine_stats(inv->engine, &stats, err);
	if (r == -ENOENT)
		cmd_hint_init(inv);
	if (r < 0)
		return r;
	growth = calloc(1, sizeof(*growth));
	r = growth ? engine_growth(inv->engine, growth, err) : err_nomem(err);
	if (r < 0)
		return r;
	if (inv->json)
		return print_json(inv, &stats, growth, err);
	print_human(inv, &stats, growth);
	return CMD_OK;
}

const struct command cmd_stats = {
	.name = "stats",
	.group = "Store",
	.rare = true,
	.summary = "say how much is stored, and what sharing saves",
	.details =
	    "Of the whole store, which may hold many projects. A clone's own bytes are those that\n"
	    "the store holds for it and not for its base, packed; 'list' and 'status' show the\n"
	    "same number.\n",
	.examples = "stats\nstats --json\n",
	.run = stats_run,
};
