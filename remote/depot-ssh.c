/*
 * A depot in a directory of another machine: `snapcow serve` there, started through ssh, and
 * stream.h between.
 *
 * A question is asked and answered before the next. If the connection breaks, it is made anew and
 * the question is asked again, TRIES times: an upload of a blob begins anew, a download continues,
 * and a tag is read before it is moved again. A failure on our side (a full disk here, an
 * interrupt) leaves an answer half read, so it ends the connection as well.
 */
#include <string.h>

#include "remote/depot-ssh-i.h"

#define TRIES 3

static void ssh_close(struct depot *d)
{
	struct ssh_depot *s = ssh_of(d);

	ssh_line_done(&s->line);
	free(d->url);
	free(s);
}

static const struct depot_ops ops = {
	.close = ssh_close,
	.has_blob = ssh_has_blob,
	.put_blob = ssh_put_blob,
	.get_blob = ssh_get_blob,
	.put_manifest = ssh_put_manifest,
	.get_manifest = ssh_get_manifest,
	.list_tags = ssh_list_tags,
	.delete_manifest = ssh_delete_manifest,
	.collect = ssh_collect,
	.probe = ssh_probe,
};

int depot_ssh_open(const char *url, const struct depot_config *config, struct depot **ret,
		   struct err *err)
{
	CLEANUP(depot_close_p) struct depot *d = NULL;
	struct ssh_depot *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return err_nomem(err);
	s->line = (struct ssh_line)SSH_LINE_INIT;
	s->rate = config->rate;
	s->tries = config->tries > 0 ? config->tries : TRIES;
	d = &s->depot;
	d->ops = &ops;
	d->lines = 1; /* each is a login of its own, perhaps with a password */
	d->url = strdup(url);
	r = d->url ? ssh_place_parse(url, &s->line.place, err) : err_nomem(err);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(d);
	return 0;
}
