#include "cli/show/machines.h"

#include <string.h>

#include "base/size.h"

/* Packed bytes that moved for all arms. */
struct cost {
	uint64_t sent, skipped, received;
	uint64_t worker_received, worker_sent;
};

static struct cost cost_of(const struct engine_experiment *x)
{
	struct cost c = { 0 };

	for (size_t i = 0; i < x->on.n_sent; i++) {
		c.sent += x->on.sent[i].sent;
		c.skipped += x->on.sent[i].skipped;
	}
	for (size_t i = 0; i < x->n_arms; i++) {
		c.received += x->arms[i].machine.received;
		c.worker_received += x->arms[i].machine.worker_received;
		c.worker_sent += x->arms[i].machine.worker_sent;
	}
	return c;
}

void machines_set_json(struct json j, const struct engine_arm *arm)
{
	const struct engine_machine *m = &arm->machine;
	struct json one;

	if (*m->ticket == '\0') {
		json_set_null(j, "machine");
		return;
	}
	one = json_set_object(j, "machine");
	json_set_text(one, "ticket", m->ticket);
	json_set_name(one, "worker", m->worker);
	json_set_name(one, "host", m->host);
	json_set_uint(one, "attempt", m->attempt);
	json_set_uint(one, "bytes_received", m->received);
	json_set_uint(one, "worker_received", m->worker_received);
	json_set_uint(one, "worker_sent", m->worker_sent);
}

/* Without user and password. */
static void set_queue(struct json j, const char *url)
{
	const char *host = strstr(url, "://"), *at;
	char text[1100];

	host = host ? host + 3 : url;
	at = memchr(host, '@', strcspn(host, "/"));
	snprintf(text, sizeof(text), "%.*s%s", (int)(host - url), url, at ? at + 1 : host);
	json_set_name(j, "queue", text);
}

void machines_set_fleet(struct json j, const struct engine_experiment *x)
{
	const struct cost c = cost_of(x);
	struct json on;

	if (!x->on.queue) {
		json_set_null(j, "on");
		return;
	}
	on = json_set_object(j, "on");
	set_queue(on, x->on.queue);
	json_set_name(on, "remote", x->on.remote);
	json_set_names(on, "labels", x->on.labels, x->on.n_labels);
	json_set_uint_if(on, "deadline_ms", x->on.deadline_ms > 0, x->on.deadline_ms);
	json_set_uint(on, "bytes_sent", c.sent);
	json_set_uint(on, "bytes_skipped", c.skipped);
	json_set_uint(on, "bytes_received", c.received);
	json_set_uint(on, "worker_received", c.worker_received);
	json_set_uint(on, "worker_sent", c.worker_sent);
}

const char *machines_name(const struct engine_arm *arm)
{
	return arm->machine.worker ? arm->machine.worker : "-";
}

size_t machines_width(const struct engine_experiment *x)
{
	size_t wide = sizeof("MACHINE") - 1;

	if (!x->on.queue)
		return 0;
	for (size_t i = 0; i < x->n_arms; i++) {
		const size_t len = strlen(machines_name(&x->arms[i]));

		wide = len > wide ? len : wide;
	}
	return wide < MACHINES_WIDTH_MAX ? wide : MACHINES_WIDTH_MAX;
}

void machines_print_cost(FILE *out, const struct engine_experiment *x)
{
	char sent[SIZE_TEXT_MAX], there[SIZE_TEXT_MAX], received[SIZE_TEXT_MAX],
	    down[SIZE_TEXT_MAX], up[SIZE_TEXT_MAX];
	const struct cost c = cost_of(x);

	if (x->on.n_sent == 0)
		return;
	fprintf(out, "sent %s, %s were there, received %s; workers received %s, sent %s\n",
		size_format(c.sent, sent), size_format(c.skipped, there),
		size_format(c.received, received), size_format(c.worker_received, down),
		size_format(c.worker_sent, up));
}
