#include "cli/show/steps.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/vec.h"
#include "cli/out.h"

#define SESSION_SHOWN 8

/* The value of a label; "" and 0 if there is none. */
static const char *label(const struct engine_snapshot *s, const char *key, size_t *ret_len)
{
	const char *value = meta_find(s->meta, key, ret_len);

	if (!value)
		*ret_len = 0;
	return value ? value : "";
}

/* Anybody can give a snapshot such labels, but only a hook takes an automatic one with them. */
static bool is_step(const struct engine_snapshot *s)
{
	return s->automatic && meta_matches(s->meta, "client") &&
	       meta_matches(s->meta, "session") && meta_matches(s->meta, "turn");
}

void steps_keep(struct engine_history *h, const char *client)
{
	size_t n = 0, len;

	for (size_t i = 0; i < h->n; i++) {
		const char *of = label(&h->list[i], "client", &len);

		if (is_step(&h->list[i]) &&
		    (!client || (len == strlen(client) && memcmp(of, client, len) == 0)))
			h->list[n++] = h->list[i];
		else
			engine_snapshot_done(&h->list[i]);
	}
	h->n = n;
}

void steps_print(const struct invocation *inv, const struct engine_history *h, size_t n)
{
	char when[OUT_TIME_MAX];

	fprintf(inv->out, "%s%-*s  %-16s  %-12s  %-*s  %4s  %s%s\n", out_style(inv, OUT_DIM),
		OUT_SHORT_ID, "SNAPSHOT", "TAKEN", "AGENT", SESSION_SHOWN, "SESSION", "TURN",
		"STEP", out_style(inv, OUT_PLAIN));
	for (size_t i = 0; i < n; i++) {
		const struct engine_snapshot *s = &h->list[i];
		size_t client, session, turn;
		const char *clients = label(s, "client", &client),
			   *sessions = label(s, "session", &session),
			   *turns = label(s, "turn", &turn);

		fprintf(inv->out, "%s%.*s%s  %-16s  %-12.*s  %-*.*s  %4.*s  ",
			out_style(inv, OUT_ID), OUT_SHORT_ID, s->id, out_style(inv, OUT_PLAIN),
			out_when(s->created, when), (int)client, clients, SESSION_SHOWN,
			(int)(session < SESSION_SHOWN ? session : SESSION_SHOWN), sessions,
			(int)turn, turns);
		out_line(inv->out, s->message);
		fputc('\n', inv->out);
	}
}

/* Is it of the session that begins so? */
static bool is_of(const struct engine_snapshot *s, const char *session)
{
	size_t len;
	const char *of = label(s, "session", &len);

	return is_step(s) && len >= strlen(session) && memcmp(of, session, strlen(session)) == 0;
}

/* Of all that begin so the newest is meant. */
static const struct engine_snapshot *find_session(const struct engine_history *h,
						  const char *session)
{
	return VEC_FIND(one, h->list, h->n, is_of(one, session));
}

/*
 * Is the oldest step of a turn that is kept not its first?  A turn begins with its prompt, but a hook may
 * have been added behind that: then the session begins with a command, in turn 1.
 */
static bool lacks_beginning(const struct engine_history *h, size_t at)
{
	const struct engine_snapshot *s = &h->list[at];

	if (meta_matches(s->meta, "step=prompt"))
		return false;
	for (size_t i = at + 1; i < h->n; i++)
		if (is_step(&h->list[i]) && meta_agree(h->list[i].meta, s->meta, "session"))
			return false;
	return meta_matches(s->meta, "step=after") || !meta_matches(s->meta, "turn=1");
}

int steps_find_turn(struct engine *e, const char *clone, const char *session, uint64_t turn,
		    char ret_id[ENGINE_ID_SIZE], struct err *err)
{
	CLEANUP(engine_history_done) struct engine_history h = { 0 };
	const struct engine_snapshot *of, *found = NULL;
	char number[24];
	size_t len;
	int r = engine_log(e, clone, &h, err);

	if (r < 0)
		return r;
	of = find_session(&h, session ? session : "");
	if (!of)
		return err_set(err, -ENOENT, "no step of an agent is kept%s%s",
			       session ? " of session " : "", session ? session : "");
	snprintf(number, sizeof(number), "turn=%" PRIu64, turn);
	/* The oldest is the state before it. */
	for (size_t i = 0; i < h.n; i++)
		if (is_step(&h.list[i]) && meta_matches(h.list[i].meta, number) &&
		    meta_agree(h.list[i].meta, of->meta, "session"))
			found = &h.list[i];
	if (!found) {
		const char *name = label(of, "session", &len);

		return err_set(err, -ENOENT, "session %.*s has no turn %" PRIu64,
			       (int)(len < 40 ? len : 40), name, turn);
	}
	if (lacks_beginning(&h, (size_t)(found - h.list)))
		return err_set(err, -ENOENT,
			       "the state before turn %" PRIu64 " is not kept any more", turn);
	snprintf(ret_id, ENGINE_ID_SIZE, "%s", found->id);
	return 0;
}
