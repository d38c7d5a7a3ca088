#include "engine/run/run-events.h"

#include "engine/find/event-i.h"
#include "engine/find/run-record.h"

#define WORDS_MAX    64  /* of the command that an event has */
#define WORD_MAX     100 /* bytes of each */
#define REFUSALS_MAX 20  /* that have an event of their own */

static void begin(struct event *ev, const char *kind, const struct engine_run *run)
{
	event_begin(ev, kind,
		    (struct event_subject){ .project = run->project,
					    .project_id = *run->project_id ? run->project_id : NULL,
					    .clone = run->clone,
					    .run = run->id });
	if (*run->trace != '\0')
		json_set_text(ev->data, "traceparent", run->trace);
}

void run_event_started(const char *store, const struct engine_run *run)
{
	struct json words;
	struct event ev;

	begin(&ev, "run-started", run);
	words = json_set_array(ev.data, "command");
	for (size_t i = 0; i < run->argv.n && i < WORDS_MAX; i++) {
		char word[WORD_MAX + 1];

		snprintf(word, sizeof(word), "%s", run->argv.list[i]);
		json_add_name(words, word);
	}
	json_set_text(ev.data, "profile", run->profile);
	json_set_text(ev.data, "net", run->net);
	event_end(&ev, store);
}

static void refused(const char *store, const struct engine_run *run)
{
	const struct engine_refusals *all = &run->refusals;

	for (size_t i = 0; i < all->n && i < REFUSALS_MAX; i++) {
		const struct engine_refusal *one = &all->list[i];
		struct event ev;

		begin(&ev, "refusal", run);
		json_set_text(ev.data, "of", one->kind);
		json_set_name(ev.data, "what", one->what);
		json_set_text(ev.data, "rule", one->rule);
		json_set_name(ev.data, "flag", one->flag);
		json_set_uint(ev.data, "count", one->count);
		event_end(&ev, store);
	}
}

void run_event_answered(const char *store, const struct engine_run *run,
			const struct engine_answered *a)
{
	struct event ev;

	begin(&ev, "answer", run);
	json_set_text(ev.data, "question", a->id);
	json_set_text(ev.data, "of", a->kind);
	json_set_name(ev.data, "what", a->what);
	json_set_text(ev.data, "answer", a->allowed ? "allow" : "deny");
	json_set_text(ev.data, "by", a->by);
	json_set_bool(ev.data, "remember", a->remembered);
	event_end(&ev, store);
}

void run_event_ended(const char *store, const struct engine_run *run)
{
	char digest[SHA256_HEX_SIZE];
	struct event ev;

	refused(store, run);
	if (*run->limit != '\0') {
		begin(&ev, "limit", run);
		json_set_text(ev.data, "limit", run->limit);
		event_end(&ev, store);
	}
	begin(&ev, "run-ended", run);
	json_set_text(ev.data, "state", run_record_state_name(run->state));
	json_set_int(ev.data, "exit_code", run->exit_code);
	json_set_uint(ev.data, "duration_ms", run->duration_ms);
	json_set_uint(ev.data, "refusals", run->refusals.n + run->refusals.more);
	if (run->compared) {
		json_set_uint(ev.data, "added", run->added);
		json_set_uint(ev.data, "modified", run->modified);
		json_set_uint(ev.data, "deleted", run->deleted);
	}
	if (run->problem)
		json_set_text(ev.data, "problem", run->problem);
	if (run_record_digest(store, run->id, digest) == 0)
		json_set_text(ev.data, "record", digest);
	json_set_bool(ev.data, "tracked", true); /* `runs-removed` tells when its record goes */
	event_end(&ev, store);
}
