#include "engine/worker/posted-i.h"

#include <errno.h>

#include "remote/slurm.h"
#include "remote/ssh.h"

static const struct posted_kind *kind_of(const char *queue)
{
	return ssh_is_host(queue)      ? &posted_by_ssh
	       : slurm_is_place(queue) ? &posted_by_slurm
				       : &posted_by_queue;
}

int posted_begin(struct posted *p, const struct posted_options *options, struct err *err)
{
	p->options = options;
	p->kind = kind_of(options->queue);
	return p->kind->begin(p, err);
}

void posted_end(struct posted *p)
{
	if (p->kind)
		p->kind->end(p);
}

void posted_done(struct posted *p)
{
	posted_end(p);
	result_done(&p->result);
}

int posted_find(struct posted *p, const char *id, const struct buf *text, struct err *err)
{
	return p->kind->find(p, id, text, err);
}

int posted_catch_up(struct posted *p, const char *id, const struct buf *text, struct err *err)
{
	int r = p->kind->catch_up(p, id, text, err);

	posted_count_missing(p);
	p->is_over = true;
	/* Output is a courtesy; the result is there. */
	return r == -EAGAIN ? 0 : r;
}

int posted_follow(struct posted *p, const char *id, const struct strlist *labels,
		  const struct buf *text, struct err *err)
{
	return p->kind->follow(p, id, labels, text, err);
}
