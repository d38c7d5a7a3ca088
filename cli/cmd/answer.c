#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "base/size.h"
#include "cli/cmd.h"
#include "cli/out.h"
#include "cli/show/questions.h"

struct answer_args {
	bool remember;
};

static const struct opt answer_opts[] = {
	OPT_FLAG('r', "remember", struct answer_args, remember,
		 "let the answer hold for the rest of the run"),
	OPT_END,
};
_Static_assert(sizeof(struct answer_args) <= CMD_ARGS_MAX, "grow CMD_ARGS_MAX");

static int list_open(const struct invocation *inv, struct err *err)
{
	CLEANUP(engine_questions_done) struct engine_questions all = { 0 };
	CLEANUP(json_done) struct json_doc doc = { 0 };
	char left[DURATION_TEXT_MAX];
	int r = engine_questions(inv->engine, &all, err);

	if (r < 0)
		return r;
	if (inv->json) {
		JSON_SET_LIST(out_json_begin(inv, &doc), "questions", all.list, all.n,
			      questions_set_open);
		return json_print(&doc, inv->out, err);
	}
	for (size_t i = 0; i < all.n; i++) {
		fputs(all.list[i].id, inv->out);
		if (!inv->quiet) {
			fputs("  ", inv->out);
			questions_print(inv->out, &all.list[i]);
			fprintf(inv->out, " (%s left)", duration_format(all.list[i].left_ms, left));
		}
		fputc('\n', inv->out);
	}
	if (all.n == 0 && !inv->quiet)
		fputs("no run waits for an answer\n", stderr);
	return CMD_OK;
}

static int print_answered(const struct invocation *inv, const struct engine_question *q, bool allow,
			  struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	const struct answer_args *args = inv->args;
	struct json j, list;

	if (!inv->json) {
		if (!inv->quiet)
			fprintf(inv->out, "%s  %s\n", allow ? "allowed" : "denied ", q->what);
		return CMD_OK;
	}
	j = out_json_begin(inv, &doc);
	list = json_set_array(j, "questions");
	questions_set_open(json_add_object(list), q);
	json_set_text(j, "answer", allow ? "allow" : "deny");
	json_set_bool(j, "remember", args->remember);
	return json_print(&doc, inv->out, err);
}

static int answer_run(struct invocation *inv, struct err *err)
{
	CLEANUP(engine_question_done) struct engine_question q = { 0 };
	const struct answer_args *args = inv->args;
	const char *says = inv->n_words > 1 ? inv->words[1] : NULL;
	const bool allow = says && strcmp(says, "allow") == 0;
	int r;

	if (inv->n_words == 0 && args->remember)
		return err_set(err, -EINVAL, "option '--remember' needs a question and its answer");
	if (inv->n_words == 0)
		return list_open(inv, err);
	if (!says || (!allow && strcmp(says, "deny") != 0)) {
		cmd_hint(inv, "answer");
		return err_set(err, -EINVAL, "'answer %s' needs 'allow' or 'deny'", inv->words[0]);
	}
	r = engine_answer(inv->engine, inv->words[0], allow, args->remember, &q, err);
	if (r == -ENOENT || r == -EINVAL)
		cmd_hint(inv, "answer");
	return r < 0 ? r : print_answered(inv, &q, allow, err);
}

const struct command cmd_answer = {
	.name = "answer",
	.group = "Runs",
	.summary = "allow or deny what a run asks for",
	.rare = true,
	.words = "[QUESTION allow|deny]",
	.max_words = 2,
	.opts = answer_opts,
	.details =
	    "Without words it lists the open questions. `run --ask` asks them; the connection or\n"
	    "the system call waits meanwhile. The beginning of the question's id is enough. An\n"
	    "answer decides about what waits now; with --remember, about the rest of the run too.\n"
	    "`events --follow` shows questions as they come up.\n",
	.examples = "answer\nanswer 3f9a allow\nanswer 3f9a deny --remember\n",
	.run = answer_run,
};
