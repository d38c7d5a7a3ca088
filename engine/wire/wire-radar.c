#include <errno.h>
#include <stdlib.h>

#include "engine/api/radar.h"
#include "engine/wire/wire-i.h"

static void set_meeting(struct json j, const struct engine_meeting *m)
{
	struct json array, at;

	json_set_name(j, "clone", m->clone);
	json_set_name(j, "with", m->with);
	wire_set_short(j, "base", m->base);
	json_set_bool(j, "bases_differ", m->bases_differ);
	json_set_uint(j, "same", m->same);
	json_set_uint(j, "apart", m->apart);
	json_set_uint(j, "overlap", m->overlap);
	array = json_set_array(j, "met");
	for (size_t i = 0; i < m->n; i++) {
		at = json_add_object(array);
		json_set_name(at, "path", m->met[i].path);
		json_set_uint(at, "overlap", m->met[i].overlap);
	}
}

static int get_meeting(struct json j, struct engine_meeting *m)
{
	struct json array, at;
	size_t n;

	m->clone = json_get_name(j, "clone");
	m->with = json_get_name(j, "with");
	WIRE_GET_SHORT(j, "base", m->base);
	m->bases_differ = json_get_bool(j, "bases_differ");
	m->same = json_get_uint(j, "same");
	m->apart = json_get_uint(j, "apart");
	m->overlap = json_get_uint(j, "overlap");
	array = json_get_array(j, "met");
	n = json_length(array);
	m->met = calloc(n + 1, sizeof(*m->met));
	if (!m->met)
		return -ENOMEM;
	for (; m->n < n; m->n++) {
		at = json_at_object(array, m->n);
		m->met[m->n].path = json_get_name(at, "path");
		m->met[m->n].overlap = (enum merge_overlap)json_get_uint(at, "overlap");
	}
	return 0;
}

static int get_radar(struct json j, struct engine_radar *r)
{
	struct json array = json_get_array(j, "list");
	const size_t n = json_length(array);
	int x = 0;

	r->looked_at = json_get_uint(j, "looked_at");
	r->list = calloc(n + 1, sizeof(*r->list));
	if (!r->list)
		return -ENOMEM;
	for (; r->n < n && x >= 0; r->n++)
		x = get_meeting(json_at_object(array, r->n), &r->list[r->n]);
	return x;
}

int engine_radar(struct engine *e, const char *clone, struct engine_radar *ret, struct err *err)
{
	CLEANUP(engine_radar_done) struct engine_radar radar = { 0 };
	CLEANUP(ask_done) struct ask a = { 0 };
	struct json answer;
	int r;

	ask_begin(&a, e, wire_radar.name);
	json_set_name(a.options, "clone", clone);
	r = ask_daemon(&a, e, ASK_STORE, NULL, &answer, err);
	if (r < 0)
		return r;
	r = get_radar(answer, &radar);
	r = r < 0 ? err_nomem(err) : ask_end(&a, err);
	if (r < 0)
		return r;
	*ret = radar;
	radar = (struct engine_radar){ 0 };
	return 0;
}

static int serve_radar(struct engine *e, const struct engine_watch *watch, struct json options,
		       struct json answer, struct err *err)
{
	CLEANUP(engine_radar_done) struct engine_radar radar = { 0 };
	AUTO_FREE char *clone = json_get_name_or_null(options, "clone");
	struct json array;
	int r = json_end(options.doc, err);

	(void)watch;
	if (r >= 0)
		r = radar_do(e, clone, &radar, err);
	if (r < 0)
		return r;
	json_set_uint(answer, "looked_at", radar.looked_at);
	array = json_set_array(answer, "list");
	for (size_t i = 0; i < radar.n; i++)
		set_meeting(json_add_object(array), &radar.list[i]);
	return 0;
}

const struct wire_verb wire_radar = { "radar", serve_radar };
