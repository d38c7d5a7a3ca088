#include "engine/run/waiting-i.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "engine/ask/ask-stage-i.h"

struct engine_waiting {
	struct engine *engine;  /* borrowed */
	char *clone;            /* owned; NULL: it is decided */
	struct control control; /* the clone lives as long as this connection */
	struct run_record record;
};

int waiting_new(struct engine *e, const char *clone, bool kept, struct control *control,
		struct run_record *record, struct engine_waiting **ret, struct err *err)
{
	CLEANUP(engine_waiting_free_p) struct engine_waiting *w = calloc(1, sizeof(*w));

	if (!w)
		return err_nomem(err);
	*w = (struct engine_waiting){
		.engine = e,
		.control = CONTROL_INIT,
		.record = RUN_RECORD_INIT,
	};
	w->clone = kept ? NULL : strdup(clone);
	if (!kept && !w->clone)
		return err_nomem(err);
	w->control = *control;
	*control = CONTROL_INIT;
	w->record = *record;
	*record = RUN_RECORD_INIT;
	*ret = TAKE_PTR(w);
	return 0;
}

static void decided(struct engine_waiting *w)
{
	free(w->clone);
	w->clone = NULL;
}

int engine_waiting_keep(struct engine_waiting *w, struct err *err)
{
	struct err why = { 0 };
	int r = w->clone ? stage_ask_settle(w->engine, &w->control, true, &why) : 0;

	/* If cowfsd died meanwhile, another one still has the clone. */
	if (r < 0)
		r = stage_ask_stay(w->engine, w->clone, err);
	if (r < 0)
		r = err_wrap(err, r, "keeping clone '%s' for more than a day", w->clone);
	decided(w); /* whatever the answer: nobody removes it now */
	return r;
}

int engine_waiting_discard(struct engine_waiting *w, struct err *err)
{
	struct engine_removed removed;
	struct err why = { 0 };
	int r = w->clone ? stage_ask_settle(w->engine, &w->control, false, &why) : 0;

	/* If cowfsd died meanwhile, another one can still remove it. */
	if (r < 0)
		r = engine_remove(w->engine, w->clone, true, &removed, err);
	if (r < 0 && r != -ENOENT)
		return r;
	decided(w);
	return 0;
}

void engine_waiting_free(struct engine_waiting *w)
{
	struct err err = { 0 };

	if (!w)
		return;
	if (w->clone && engine_waiting_discard(w, &err) < 0)
		log_warn("removing clone '%s': %s, continuing", w->clone, err.msg);
	free(w->clone);
	control_done(&w->control);
	run_record_done(&w->record);
	free(w);
}
