/*
 * The far end of ssh: a depot in a directory, and tickets if they are allowed.
 */
#include "engine/worker/serve-i.h"

#include <errno.h>
#include <unistd.h>

#include "base/path.h"
#include "base/text.h"
#include "engine/find/engine-i.h"
#include "remote/depot-serve.h"

/* A store is opened for tickets alone: a depot needs none. */
static int prepare(struct serve *v, struct err *err)
{
	const struct engine_options options = { .store = v->options->store };
	CLEANUP(engine_close_p) struct engine *e = NULL;
	int r;

	if (v->tray.fd >= 0)
		return 0;
	if (gethostname(v->host, sizeof(v->host) - 1) < 0)
		return err_sys(err, "the name of this machine");
	r = engine_open(&options, &e, err);
	if (r == 0)
		r = text_set(&v->store, err, "%s", engine_store_path(e));
	if (r == 0)
		r = text_set(&v->dir, err, "%s-worker", v->store);
	if (r == 0)
		r = path_make_dirs(v->dir, 0700, err);
	return r < 0 ? r : tray_open(v->store, &v->tray, err);
}

static int on_ticket(struct stream *s, const struct ticket_question *q, const char *depot,
		     void *ctx, struct err *err)
{
	struct serve *v = ctx;
	struct asked a = { .serve = v, .stream = s, .question = q, .depot = depot };
	int r = ticket_decode(&q->text, &a.ticket, err);

	if (r == 0 && !depot && v->options->root)
		r = err_set(err, -EACCES, "tickets there use the depots below '%s' alone",
			    v->options->root);
	if (r == 0)
		r = prepare(v, err);
	if (r == 0) {
		ticket_id(&q->text, a.id);
		r = q->mode == TICKET_FIND     ? serve_send_result(&a, err)
		    : q->mode == TICKET_CANCEL ? serve_cancel(&a, err)
					       : serve_follow(&a, err);
	}
	ticket_done(&a.ticket);
	return r;
}

int engine_serve_ssh(const struct engine_serve_ssh_options *options, struct err *err)
{
	CLEANUP(serve_done) struct serve v = { .options = options, .tray = TRAY_INIT };
	const struct depot_serve_options o = { .root = options->root,
					       .ticket = options->tickets ? on_ticket : NULL,
					       .ctx = &v };

	return depot_serve(STDIN_FILENO, STDOUT_FILENO, &o, err);
}

const char *engine_serve_protocol(void)
{
	return STREAM_MAGIC;
}
