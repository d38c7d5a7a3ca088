/*
 * News of a ticket, whichever way it comes: output, its worker, and the result.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "engine/worker/posted-i.h"

bool posted_is_interrupted(const struct posted *p, int ms)
{
	struct pollfd fd = { .fd = p->options->stop_fd, .events = POLLIN };

	return poll(&fd, 1, ms) > 0;
}

int posted_take_result(struct posted *p, const struct buf *text, struct err *err)
{
	struct err why = { 0 };
	int r;

	result_done(&p->result);
	r = result_decode(text, &p->result, &why);
	if (r >= 0)
		return r;
	/* Anyone who carried it may have written it. */
	return r == -EINVAL ? err_set(err, -ECANCELED, "the answer is not accepted: %s", why.msg)
			    : err_set(err, r, "%s", why.msg);
}

/* --- output ------------------------------------------------------------------------------- */

/* Output of a worker that died stays with those who have seen it; the text of the result is one attempt's. */
static void change_attempt(struct posted *p, uint64_t attempt)
{
	if (p->attempt > 0)
		p->options->again(attempt, p->options->ctx);
	p->missing = 0;
	p->next[0] = p->next[1] = 0;
	p->attempt = attempt;
}

/* "WORKER\nHOST" */
static int pass_note(struct posted *p, const struct queue_log *log, struct err *err)
{
	AUTO_FREE char *text = strndup((const char *)log->data.data, log->data.len);
	char *host = text ? strchr(text, '\n') : NULL;

	if (!text)
		return err_nomem(err);
	if (!host)
		return 0;
	*host++ = '\0';
	if (p->options->taken && ticket_is_shown(text) && ticket_is_shown(host))
		p->options->taken(text, host, log->attempt, p->options->ctx);
	return 0;
}

int posted_pass(struct posted *p, const struct queue_log *log, struct err *err)
{
	const size_t len = log->data.len;

	/* A worker that was cut off may still talk when its successor does. */
	if (log->attempt < p->attempt)
		return 0;
	if (log->attempt > p->attempt)
		change_attempt(p, log->attempt);
	if (log->is_note)
		return pass_note(p, log, err);
	if (log->at > p->next[log->of_stderr])
		p->missing += log->at - p->next[log->of_stderr];
	p->next[log->of_stderr] = log->at + len;
	return p->options->output(log->of_stderr, log->data.data, len, p->options->ctx, err);
}

void posted_count_missing(struct posted *p)
{
	const struct result *res = &p->result;

	if (res->attempt != p->attempt && p->attempt != 0)
		return;
	p->missing += res->out > p->next[0] ? res->out - p->next[0] : 0;
	p->missing += res->err > p->next[1] ? res->err - p->next[1] : 0;
}

/* --- cancelling --------------------------------------------------------------------------- */

int posted_settle(struct posted *p, struct err *err)
{
	p->cancelled = strcmp(p->result.outcome, RESULT_CANCELLED) == 0;
	if (p->cancelled)
		return err_set(err, -EINTR, "interrupted: the ticket is cancelled");
	log_warn("interrupted too late to cancel the ticket: it has a result");
	return 0;
}
