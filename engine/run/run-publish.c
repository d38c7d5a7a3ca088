#include "engine/run/run-publish.h"

#include <errno.h>
#include <string.h>

#include "base/log.h"

_Static_assert(PUBLISH_MAX == ENGINE_PUBLISHED_MAX, "the record has room for all of them");

void run_publish_done(struct run_publish *p)
{
	publish_close(p->publish);
	cleanup_close(&p->inside);
	*p = RUN_PUBLISH_INIT;
}

static int be_door(void *ctx, int fd, int ready_fd, struct err *err)
{
	return publish_door(fd, ready_fd, err);
}

/* Without it the run goes on, and nobody reaches it. */
static int step_publish(void *ctx, struct err *err)
{
	struct run_publish *p = ctx;
	int r = publish_step(p->publish, err);

	if (r < 0)
		log_warn("the ports of the run are not reachable any more: %s, continuing",
			 err->msg);
	if (r != 0)
		publish_close(TAKE_PTR(p->publish));
	return r != 0;
}

static int add_port(struct run_publish *p, const char *text, size_t len, struct err *err)
{
	struct publish_port port;
	int r = publish_parse(text, len, &port, err);

	if (r < 0)
		return r;
	if (p->n == PUBLISH_MAX)
		return err_set(err, -EINVAL, "option '--publish': a run publishes %d ports at most",
			       PUBLISH_MAX);
	for (size_t i = 0; i < p->n; i++)
		if (port.outside != 0 && p->ports[i].outside == port.outside)
			return err_set(err, -EINVAL,
				       "option '--publish': port %u of this machine is given twice",
				       port.outside);
	p->ports[p->n++] = port;
	return 0;
}

static int add_ports(struct run_publish *p, const char *list, struct err *err)
{
	size_t len = strcspn(list, ",");
	int r = add_port(p, list, len, err);

	while (r >= 0 && list[len] == ',') {
		list += len + 1;
		len = strcspn(list, ",");
		r = add_port(p, list, len, err);
	}
	return r;
}

int run_publish_open(struct run_publish *p, const struct engine_list *asked,
		     struct sandbox_spec *spec, struct err *err)
{
	int r = 0;

	if (asked->n == 0)
		return 0;
	if (spec->net == SANDBOX_NET_HOST)
		return err_set(err, -EINVAL,
			       "option '--publish' is for a run with a network of its own: with "
			       "'--net host' its servers are on this machine's already");
	for (size_t i = 0; i < asked->n && r >= 0; i++)
		r = add_ports(p, asked->items[i], err);
	if (r >= 0)
		r = publish_open(p->ports, p->n, &p->publish, &p->inside, err);
	if (r < 0)
		return r;
	spec->net = SANDBOX_NET_HELPER;
	spec->helpers[spec->n_helpers++] =
	    (struct sandbox_helper){ .main = be_door, .fd = p->inside };
	spec->beside[spec->n_beside++] =
	    (struct sandbox_beside){ .step = step_publish, .ctx = p, .fd = publish_fd(p->publish) };
	return 0;
}

void run_publish_describe(const struct run_publish *p, struct engine_run *run)
{
	for (size_t i = 0; i < p->n; i++)
		run->published[i] =
		    (struct engine_published){ p->ports[i].inside, p->ports[i].outside };
	run->n_published = p->n;
}

void run_publish_began(struct run_publish *p)
{
	cleanup_close(&p->inside);
}

void run_publish_end(struct run_publish *p)
{
	if (p->publish)
		publish_drain(p->publish);
	run_publish_done(p);
}
