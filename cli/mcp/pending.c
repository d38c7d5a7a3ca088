#include "cli/mcp/pending.h"

#include <stdio.h>
#include <stdlib.h>

#include "cli/mcp/progress.h"

struct pending_call *pending_keep(struct session *s, struct rpc_message *m, bool modern)
{
	struct pending_call *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->call = (struct call){ .child = { .out_fd = -1, .note_fd = -1 } };
	p->message = *m;
	*m = (struct rpc_message){ 0 };
	p->modern = modern;
	p->out = s->out;
	progress_begin(p);
	p->next = s->pending;
	s->pending = p;
	return p;
}

void pending_ask(struct session *s, struct pending_call *p)
{
	snprintf(p->ask, sizeof(p->ask), "ask-%u", ++s->asked);
	p->state = PENDING_ASK;
}

static void pending_free(struct pending_call *p)
{
	call_done(&p->call);
	rpc_done(&p->message);
	json_done(&p->from_uri);
	free(p);
}

void pending_finish(struct session *s, struct pending_call *p)
{
	struct pending_call **at = &s->pending;

	while (*at != p)
		at = &(*at)->next;
	*at = p->next;
	pending_free(p);
}
