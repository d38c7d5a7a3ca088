#include "cli/mcp/subscribe.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "cli/mcp/pending.h"
#include "cli/mcp/resource.h"
#include "cli/mcp/response.h"
#include "cli/mcp/task.h"

#define REVIVED_MAX 3 /* times in a row without a word from it */
#define META_ID     "io.modelcontextprotocol/subscriptionId"

/* --- what is concerned ------------------------------------------------------------------ */

static bool is_address(const char *uri)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };

	return uri && resource_find(uri, json_begin(&doc)) != NULL;
}

static bool is_same(const char *a, const char *b)
{
	return a && b && strcmp(a, b) == 0;
}

/* What happened to a clone shows at its own addresses; what reached the project at the project's too. */
static bool concerns(const struct change *c, const char *uri)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	const struct json args = json_begin(&doc);
	const char *clone;

	if (!c->kind || !resource_find(uri, args))
		return false;
	if (json_has(args, "run"))
		return is_same(json_text_if(args, "run"), c->run);
	if (json_has(args, "experiment"))
		return is_same(json_text_if(args, "experiment"), c->experiment);
	if (strcmp(uri, "snap://experiments") == 0)
		return c->experiment != NULL;
	clone = json_text_if(args, json_has(args, "from") ? "from" : "clone");
	if (clone)
		return is_same(clone, c->clone);
	if (strcmp(uri, "snap://clones") == 0)
		return c->clone != NULL;
	return !c->clone || strcmp(c->kind, "promotion") == 0 || strcmp(c->kind, "undo") == 0;
}

/* --- the older era ---------------------------------------------------------------------- */

static int begin_watch(struct session *s, struct err *err)
{
	return s->watch.fd >= 0 ? 0 : watch_start(&s->watch, s->options, err);
}

static void forget(struct strlist *l, const char *uri)
{
	size_t n = 0;

	for (size_t i = 0; i < l->n; i++) {
		if (strcmp(l->list[i], uri) == 0)
			free(l->list[i]);
		else
			l->list[n++] = l->list[i];
	}
	l->n = n;
	if (l->list)
		l->list[n] = NULL;
}

int subscribe_take(struct session *s, const struct rpc_message *m, bool add, struct err *err)
{
	CLEANUP(rpc_answer_done) struct rpc_answer a = { 0 };
	const char *uri = json_text_if(m->params, "uri");
	struct err why = { 0 };

	if (!is_address(uri))
		return response_no_resource(s, m, false, "there is nothing at that address", err);
	if (!add)
		forget(&s->subscribed, uri);
	else if (s->subscribed.n >= SUBSCRIBED_MAX)
		return response_error(s, m->top, RPC_INVALID_PARAMS, "too many subscriptions", err);
	else if (begin_watch(s, &why) < 0)
		return response_error(s, m->top, RPC_INTERNAL, why.msg, err);
	else if (!strlist_has(&s->subscribed, uri) && strlist_add(&s->subscribed, uri) < 0)
		return err_nomem(err);
	response_begin(s, &a, m->top, false);
	return rpc_append(&a, s->out, err);
}

static int notify(struct buf *out, const char *uri, const struct pending_call *p, struct err *err)
{
	CLEANUP(rpc_answer_done) struct rpc_answer a = { 0 };
	const struct json params = rpc_notify(&a, "notifications/resources/updated");

	if (p)
		json_set_value(json_set_object(params, "_meta"), META_ID, p->message.top, "id");
	json_set_text(params, "uri", uri);
	return rpc_append(&a, out, err);
}

/* --- the newer era ---------------------------------------------------------------------- */

/* The addresses that a listener asked for; an empty place: none. */
static struct json wanted(const struct rpc_message *m)
{
	const struct json filter = json_object_if(m->params, "notifications");

	return json_kind(filter, "resourceSubscriptions") == JSON_ARRAY
		   ? json_get_array(filter, "resourceSubscriptions")
		   : (struct json){ .doc = m->params.doc };
}

int subscribe_listen(struct session *s, struct rpc_message *m, struct err *err)
{
	CLEANUP(rpc_answer_done) struct rpc_answer a = { 0 };
	struct json params, honoured, list;
	struct err why = { 0 };
	int r;

	if (json_kind(m->params, "notifications") != JSON_OBJECT)
		return response_error(s, m->top, RPC_INVALID_PARAMS, "'notifications' is no object",
				      err);
	r = task_may_listen(s, m, err);
	if (r <= 0)
		return r;
	params = rpc_notify(&a, "notifications/subscriptions/acknowledged");
	json_set_value(json_set_object(params, "_meta"), META_ID, m->top, "id");
	/* The lists of tools, prompts and addresses are the same for as long as the server runs. */
	honoured = json_set_object(params, "notifications");
	list = wanted(m);
	if (list.node && json_length(list) > 0 && begin_watch(s, &why) >= 0) {
		const struct json to = json_set_array(honoured, "resourceSubscriptions");

		for (size_t i = 0; i < json_length(list) && i < SUBSCRIBED_MAX; i++)
			if (is_address(json_at_text(list, i)))
				json_add_text(to, json_at_text(list, i));
	}
	if (!pending_keep(s, m, true))
		return err_nomem(err);
	return rpc_append(&a, s->out, err);
}

static bool listens(const struct pending_call *p)
{
	return !p->tool && p->modern && is_same(p->message.method, "subscriptions/listen");
}

static int notify_listener(const struct change *c, const struct pending_call *p, struct err *err)
{
	const struct json list = wanted(&p->message);
	int r = 0;

	for (size_t i = 0; r >= 0 && list.node && i < json_length(list) && i < SUBSCRIBED_MAX;
	     i++) {
		const char *uri = json_at_text(list, i);

		if (uri && concerns(c, uri))
			r = notify(p->out, uri, p, err);
	}
	return r;
}

static int notify_all(struct session *s, const struct change *c, struct err *err)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < s->subscribed.n; i++)
		if (concerns(c, s->subscribed.list[i]))
			r = notify(s->out, s->subscribed.list[i], NULL, err);
	for (const struct pending_call *p = s->pending; r >= 0 && p; p = p->next)
		if (listens(p))
			r = notify_listener(c, p, err);
	return r;
}

static bool is_wanted(const struct session *s)
{
	for (const struct pending_call *p = s->pending; p; p = p->next)
		if (listens(p))
			return true;
	return s->subscribed.n > 0;
}

/* One that dies at once each time is not started for ever. */
static void revive(struct session *s)
{
	struct err why = { 0 };

	if (s->watch.pid <= 0 || s->watch.fd >= 0 || !is_wanted(s) || s->revived >= REVIVED_MAX)
		return;
	s->revived++;
	if (watch_start(&s->watch, s->options, &why) < 0)
		log_warn("cannot follow events any more: %s, continuing", why.msg);
}

int subscribe_step(struct session *s, struct err *err)
{
	struct change c;
	int r = 0;

	watch_read(&s->watch);
	while (r >= 0 && watch_next(&s->watch, &c)) {
		s->revived = 0;
		r = notify_all(s, &c, err);
		json_done(&c.doc);
	}
	if (r >= 0)
		revive(s);
	return r;
}
