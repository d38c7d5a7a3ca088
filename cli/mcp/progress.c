#include "cli/mcp/progress.h"

#include "base/cleanup.h"

#define FIRST_MS 1000
#define EVERY_MS 5000 /* once it is clear that it takes longer */

void progress_begin(struct pending_call *p)
{
	const enum json_kind kind = json_kind(rpc_meta(&p->message), "progressToken");

	p->began_ms = clock_ms();
	p->progress_ms = kind == JSON_TEXT || kind == JSON_INT ? p->began_ms + FIRST_MS : 0;
}

int progress_due(const struct pending_call *p)
{
	const uint64_t now = clock_ms();

	if (p->progress_ms == 0)
		return -1;
	return p->progress_ms <= now ? 0 : (int)(p->progress_ms - now);
}

/* The last line that the command said beside its result, or how long it has been at work. */
static void set_message(struct json params, const struct pending_call *p, uint64_t seconds)
{
	const struct buf *notes = &p->call.child.notes;
	const char *text = (const char *)notes->data;
	size_t end = notes->len, begin;
	char waited[64];

	while (end > 0 && text[end - 1] == '\n')
		end--;
	for (begin = end; begin > 0 && text[begin - 1] != '\n'; begin--)
		continue;
	snprintf(waited, sizeof(waited), "%s: %llu s so far", p->tool->title,
		 (unsigned long long)seconds);
	if (end > begin)
		json_set_text_len(params, "message", text + begin, end - begin);
	else
		json_set_text(params, "message", waited);
}

int progress_tell(struct session *s, struct pending_call *p, struct err *err)
{
	CLEANUP(rpc_answer_done) struct rpc_answer a = { 0 };
	const uint64_t now = clock_ms(), seconds = (now - p->began_ms) / 1000;
	struct json params;

	if (p->progress_ms == 0 || p->progress_ms > now)
		return 0;
	params = rpc_notify(&a, "notifications/progress");
	json_set_value(params, "progressToken", rpc_meta(&p->message), "progressToken");
	json_set_uint(params, "progress", seconds);
	set_message(params, p, seconds);
	p->progress_ms = now + (seconds < EVERY_MS / 1000 ? FIRST_MS : EVERY_MS);
	return rpc_append(&a, s->out, err);
}
