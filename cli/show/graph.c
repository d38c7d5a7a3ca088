/*
 * A lane is a column in which a line runs down to the snapshot it waits for.  Lanes keep their
 * column to their end; a new one takes the first that is free.
 */
#include "cli/show/graph.h"

#include <string.h>

#include "base/map.h"
#include "base/vec.h"

struct graph {
	FILE *out;
	struct map there;   /* the snapshots of the list, by id */
	const char **lanes; /* owned; the id that each waits for, borrowed; NULL: free */
	size_t n, cap;
};

static void graph_done(struct graph *g)
{
	map_done(&g->there);
	free(g->lanes);
}

/* The first lane that waits for `id`; NULL: the first that is free, which is made if need be. */
static int find_lane(struct graph *g, const char *id, size_t *ret, struct err *err)
{
	size_t i;

	for (i = 0; i < g->n; i++)
		if (id ? g->lanes[i] && strcmp(g->lanes[i], id) == 0 : !g->lanes[i])
			break;
	if (i == g->n && id)
		return find_lane(g, NULL, ret, err);
	if (!VEC_ROOM(g->lanes, i, g->cap))
		return err_nomem(err);
	if (i == g->n)
		g->lanes[g->n++] = NULL;
	*ret = i;
	return 0;
}

static void trim(struct graph *g)
{
	while (g->n > 0 && !g->lanes[g->n - 1])
		g->n--;
}

/* "|_|/": lane `from` ends in lane `to`, which is left of it. */
static void print_join(const struct graph *g, size_t from, size_t to)
{
	for (size_t i = 0; i < g->n; i++) {
		const bool across = i >= to && i + 1 < from;

		if (i == from)
			fputc(' ', g->out);
		else
			fputc(g->lanes[i] ? '|' : across && i > to ? '_' : ' ', g->out);
		if (i + 1 < g->n || i + 1 == from)
			fputc(i + 1 == from ? '/' : across ? '_' : ' ', g->out);
	}
	fputc('\n', g->out);
}

/* All lanes that wait for the same snapshot become one. */
static void join_lanes(struct graph *g, size_t to)
{
	const char *id = g->lanes[to];

	for (size_t i = g->n; i-- > to + 1;) {
		if (!g->lanes[i] || strcmp(g->lanes[i], id) != 0)
			continue;
		print_join(g, i, to);
		g->lanes[i] = NULL;
		trim(g);
	}
}

static int print_one(struct graph *g, const struct engine_snapshot *s, struct err *err)
{
	size_t own = 0;
	int r = find_lane(g, s->id, &own, err);

	if (r < 0)
		return r;
	if (g->lanes[own])
		join_lanes(g, own);
	g->lanes[own] = s->id;
	for (size_t i = 0; i < g->n; i++)
		fputs(i == own ? "* " : g->lanes[i] ? "| " : "  ", g->out);
	g->lanes[own] = map_get(&g->there, s->parent) ? s->parent : NULL;
	trim(g);
	return 0;
}

int graph_print(const struct invocation *inv, const struct engine_snapshot *list, size_t n,
		graph_row_fn row, void *ctx, struct err *err)
{
	CLEANUP(graph_done) struct graph g = { .out = inv->out,
					       .there = MAP_INIT(map_hash_str, map_equal_str) };
	void *unused;
	int r = 0;

	for (size_t i = 0; i < n; i++) {
		union {
			const struct engine_snapshot *in;
			void *out;
		} value = { .in = &list[i] };

		if (map_add(&g.there, list[i].id, value.out, &unused) < 0)
			return err_nomem(err);
	}
	for (size_t i = 0; i < n && r >= 0; i++) {
		r = print_one(&g, &list[i], err);
		if (r < 0)
			return r;
		row(&list[i], ctx);
	}
	return r;
}
