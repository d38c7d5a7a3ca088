/*
 * The payloads are those that the clients document: Claude Code (code.claude.com/docs/en/hooks),
 * Codex (developers.openai.com/codex/hooks), Gemini CLI (docs/hooks/reference.md in its repository)
 * and Cursor (cursor.com/docs/hooks). They share most names; a member that a client does not have
 * is left out.
 *
 * A command of the agent may change the directory that the client reports, so a step is kept for
 * the project in which the session began. If the agent works elsewhere too, in another registered
 * project or in a clone, the step is kept there as well.
 */
#include "cli/agents/hook.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/fdio.h"
#include "base/json.h"
#include "base/log.h"
#include "base/strlist.h"
#include "base/text.h"
#include "base/utf8.h"
#include "cli/mcp/mask.h"
#include "engine/api/clone.h"
#include "engine/api/events.h"
#include "engine/api/history.h"
#include "engine/api/settings.h"

#define INPUT_MAX   ((size_t)64 << 20)
#define TIME_MAX    30 /* seconds that a client may have to wait */
#define MESSAGE_MAX 160

/* So that no step waits long: how many go, and how many more are tried in vain. */
#define PRUNED_AT_ONCE 8
#define STAYED_AT_ONCE 32

enum step { STEP_NONE, STEP_PROMPT, STEP_BEFORE, STEP_AFTER };

static const struct {
	const char *event;
	enum step step;
} events[] = {
	{ "UserPromptSubmit", STEP_PROMPT },     /* Claude Code, Codex */
	{ "BeforeAgent", STEP_PROMPT },          /* Gemini CLI */
	{ "beforeSubmitPrompt", STEP_PROMPT },   /* Cursor */
	{ "PreToolUse", STEP_BEFORE },           /* Claude Code, Codex */
	{ "BeforeTool", STEP_BEFORE },           /* Gemini CLI */
	{ "preToolUse", STEP_BEFORE },           /* Cursor */
	{ "beforeShellExecution", STEP_BEFORE }, /* Cursor */
	{ "PostToolUse", STEP_AFTER },
	{ "PostToolUseFailure", STEP_AFTER },
	{ "AfterTool", STEP_AFTER },
	{ "postToolUse", STEP_AFTER },
};

static const char *const step_names[] = {
	[STEP_PROMPT] = "prompt",
	[STEP_BEFORE] = "before",
	[STEP_AFTER] = "after",
};

/* What the client said; all but the document borrowed from it. */
struct said {
	struct json_doc doc;
	struct json top;
	enum step step;
	const char *client, *session, *prompt, *tool, *call;
	const char *home; /* where the session began; NULL: the client does not say */
	const char *dir;  /* where the agent is now, or NULL */
	const char *file; /* that it changes, absolute; or NULL */
};

static void said_done(struct said *s)
{
	json_done(&s->doc);
}

/* --- reading ---------------------------------------------------------------------------- */

static int read_input(struct buf *ret, struct err *err)
{
	char piece[65536];
	ssize_t n;

	do {
		n = fdio_read(STDIN_FILENO, piece, sizeof(piece));
		if (n < 0)
			return err_set(err, (int)n, "reading standard input: %s",
				       strerror((int)-n));
		if (ret->len + (size_t)n > INPUT_MAX)
			return err_set(err, -EFBIG, "the client said more than %zu bytes",
				       INPUT_MAX);
		if (buf_append(ret, piece, (size_t)n) < 0)
			return err_nomem(err);
	} while (n == (ssize_t)sizeof(piece));
	return 0;
}

/* The first of these members that is a string with something in it. */
static const char *first_text(struct json j, const char *const *keys)
{
	const char *text;

	for (; *keys; keys++) {
		text = json_text_if(j, *keys);
		if (text && *text != '\0')
			return text;
	}
	return NULL;
}

static const char *absolute(const char *path)
{
	return path && *path == '/' ? path : NULL;
}

/* The first folder of the client's window, or what it tells its hooks in a variable. */
static const char *find_home(const char *client, struct json top)
{
	static const struct {
		const char *client, *variable;
	} told[] = {
		{ "claude-code", "CLAUDE_PROJECT_DIR" },
		{ "gemini", "GEMINI_PROJECT_DIR" },
	};

	if (json_kind(top, "workspace_roots") == JSON_ARRAY)
		return absolute(json_at_text(json_get_array(top, "workspace_roots"), 0));
	for (size_t i = 0; i < ARRAY_LEN(told); i++)
		if (strcmp(client, told[i].client) == 0)
			return absolute(getenv(told[i].variable));
	return NULL;
}

static const char *find_file(struct json top)
{
	static const char *const keys[] = { "file_path", "notebook_path", "path", NULL };

	if (json_kind(top, "tool_input") != JSON_OBJECT)
		return NULL;
	return absolute(first_text(json_get_object(top, "tool_input"), keys));
}

static int read_said(const char *client, const struct buf *input, struct said *ret, struct err *err)
{
	static const char *const sessions[] = { "session_id", "conversation_id", NULL };
	static const char *const prompts[] = { "prompt_id", "turn_id", "generation_id", NULL };
	const char *event;
	int r = json_parse(&ret->doc, input->len > 0 ? (const char *)input->data : "", input->len,
			   &ret->top, err);

	if (r < 0)
		return err_wrap(err, r, "what the client says");
	event = json_text_if(ret->top, "hook_event_name");
	for (size_t i = 0; event && i < ARRAY_LEN(events); i++)
		if (strcmp(event, events[i].event) == 0)
			ret->step = events[i].step;
	if (ret->step == STEP_NONE)
		return err_set(err, -EINVAL, "'%.60s' is no event that this hook knows",
			       event ? event : "");
	ret->client = client;
	ret->session = first_text(ret->top, sessions);
	ret->prompt = first_text(ret->top, prompts);
	ret->tool = json_text_if(ret->top, "tool_name");
	if (!ret->tool && strcmp(event, "beforeShellExecution") == 0)
		ret->tool = "Shell";
	ret->call = json_text_if(ret->top, "tool_use_id");
	ret->home = find_home(client, ret->top);
	ret->dir = absolute(json_text_if(ret->top, "cwd"));
	ret->file = find_file(ret->top);
	return ret->session ? 0 : err_set(err, -EINVAL, "the client names no session");
}

/* --- labels ----------------------------------------------------------------------------- */

/* Append what is printable of a text, up to `max` bytes or the end of its first line. */
static int append_line(struct buf *to, const char *text, size_t max)
{
	const size_t len = strlen(text);
	size_t at = 0;
	int r = 0;

	while (r >= 0 && at < len && at < max && text[at] != '\n') {
		const size_t n = utf8_printable(text + at, len - at);

		if (n > 0 && at + n > max)
			break;
		r = n > 0 ? buf_append(to, text + at, n) : buf_append_str(to, "?");
		at += n > 0 ? n : 1;
	}
	return r;
}

/* An owned `key=value`, in the list that becomes the labels. */
struct labels {
	char *list[META_MAX];
	size_t n;
};

static void labels_done(struct labels *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->list[i]);
}

static int add_label(struct labels *l, const char *key, const char *value)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;

	if (!value || *value == '\0')
		return 0;
	if (buf_append_str(&text, key) < 0 || buf_append_str(&text, "=") < 0 ||
	    append_line(&text, value, META_VALUE_MAX) < 0)
		return -ENOMEM;
	l->list[l->n] = strndup((const char *)text.data, text.len);
	return l->list[l->n] ? (int)l->n++ * 0 : -ENOMEM;
}

static int encode_labels(const struct said *s, uint64_t turn, char **ret, struct err *err)
{
	CLEANUP(labels_done) struct labels l = { 0 };
	char number[24];
	int r = 0;

	snprintf(number, sizeof(number), "%" PRIu64, turn);
	r |= add_label(&l, "client", s->client);
	r |= add_label(&l, "session", s->session);
	r |= add_label(&l, "turn", number);
	r |= add_label(&l, "step", step_names[s->step]);
	r |= add_label(&l, "tool", s->tool);
	r |= add_label(&l, "call", s->call);
	/* Clients differ in whether a prompt has its own number already when it is sent. */
	if (s->step != STEP_PROMPT)
		r |= add_label(&l, "prompt", s->prompt);
	if (r < 0)
		return err_nomem(err);
	return meta_encode((const char *const *)l.list, l.n, ret, err);
}

/* What the agent is about to do, in a line, without what looks like a secret. */
static int describe(const struct said *s, char **ret, struct err *err)
{
	static const char *const whats[] = { "command", "file_path", "path", "notebook_path",
					     NULL };
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	const char *what = s->step == STEP_PROMPT
			       ? json_text_if(s->top, "prompt")
			       : first_text(json_kind(s->top, "tool_input") == JSON_OBJECT
						? json_get_object(s->top, "tool_input")
						: s->top,
					    whats);
	AUTO_FREE char *masked = what ? mask_text(what) : NULL;

	if ((what && !masked) || buf_append_str(&text, step_names[s->step]) < 0 ||
	    (s->tool && (buf_append_str(&text, " ") < 0 || append_line(&text, s->tool, 80) < 0)) ||
	    (masked &&
	     (buf_append_str(&text, ": ") < 0 || append_line(&text, masked, MESSAGE_MAX) < 0)))
		return err_nomem(err);
	*ret = strndup((const char *)text.data, text.len);
	return *ret ? 0 : err_nomem(err);
}

/* --- turns ------------------------------------------------------------------------------ */

static uint64_t number_of(const char *meta, const char *key)
{
	size_t len;
	const char *value = meta_find(meta, key, &len);

	return value ? strtoull(value, NULL, 10) : 0;
}

/* The turn that this step belongs to, by the newest snapshot of the session. */
static uint64_t count_turn(const struct said *s, const char *meta, const struct engine_history *h)
{
	for (size_t i = 0; i < h->n; i++) {
		const char *last = h->list[i].meta;
		uint64_t turn;
		bool begins;
		size_t len;

		if (!last || !h->list[i].automatic || !meta_agree(last, meta, "session") ||
		    !meta_find(last, "turn", &len))
			continue;
		turn = number_of(last, "turn");
		/* A prompt without a hook of its own shows by the number that the client gives it. */
		begins = s->step == STEP_PROMPT ||
			 (meta_find(last, "prompt", &len) && meta_find(meta, "prompt", &len) &&
			  !meta_agree(last, meta, "prompt"));
		return turn < UINT64_MAX ? turn + begins : turn;
	}
	return 1;
}

/* --- the snapshot ----------------------------------------------------------------------- */

static bool is_step(const struct engine_snapshot *s)
{
	size_t len;

	return s->automatic && meta_find(s->meta, "session", &len) &&
	       meta_find(s->meta, "turn", &len);
}

/*
 * Of the steps that the project keeps the oldest go first; what a tag or a clone needs stays.  Those that
 * stay are tried again each time, so they have a bound of their own.
 */
static void prune(struct engine *e, const struct engine_history *h)
{
	uint64_t most = ENGINE_STEPS_KEPT, steps = 0, removed = 0, stayed = 0;
	char id[ENGINE_ID_SIZE];
	struct err why = { 0 };

	if (engine_agent_steps(e, &most, &why) < 0)
		log_warn("%s", why.msg);
	for (size_t i = 0; i < h->n; i++)
		steps += is_step(&h->list[i]);
	/* The history begins with the newest, and one more is made now. */
	for (size_t i = h->n; i-- > 0 && steps >= most && steps > 0;) {
		if (!is_step(&h->list[i]))
			continue;
		if (h->list[i].n_tags > 0) {
			steps--;
			continue;
		}
		if (removed >= PRUNED_AT_ONCE || stayed >= STAYED_AT_ONCE)
			return;
		steps--;
		if (engine_remove_snapshot(e, h->list[i].id, false, id, NULL) < 0)
			stayed++;
		else
			removed++;
	}
}

/* *turn is 0: find out which it is. */
static int take(struct engine *e, const struct said *s, uint64_t *turn, struct err *err)
{
	CLEANUP(engine_taken_done) struct engine_taken taken = { 0 };
	CLEANUP(engine_history_done) struct engine_history h = { 0 };
	AUTO_FREE char *clone = engine_clone_here(e);
	AUTO_FREE char *draft = NULL, *meta = NULL, *message = NULL;
	struct engine_take_options options = {
		.clone = clone,
		.automatic = true,
		.skip_unreadable = true,
	};
	int r = encode_labels(s, 1, &draft, err);

	if (r < 0)
		return r;
	/* A project without a history has no turns. */
	IGNORE_RESULT(engine_log(e, clone, &h, NULL), "what is wrong with it, taking one says");
	*turn = *turn > 0 ? *turn : count_turn(s, draft, &h);
	r = encode_labels(s, *turn, &meta, err);
	if (r < 0)
		return r;
	r = describe(s, &message, err);
	if (r < 0)
		return r;
	options.meta = meta;
	options.message = message;
	r = engine_take(e, &options, &taken, err);
	if (r >= 0 && !clone)
		prune(e, &h);
	return r;
}

/* The clone or the registered project at the engine's directory; owned, NULL: none. */
static char *place_of(struct engine *e)
{
	AUTO_FREE char *clone = engine_clone_here(e);

	if (!clone)
		return engine_project_here(e, NULL);
	return text_format("clone %s", clone);
}

/* The step again for where the agent is or what it changes, if that is somewhere else. */
static void take_elsewhere(const struct invocation *inv, const struct said *s, const char *dir,
			   struct strlist *done, uint64_t turn)
{
	const struct engine_options options = { .store = inv->store, .dir = dir };
	CLEANUP(engine_close_p) struct engine *e = NULL;
	AUTO_FREE char *place = NULL;
	struct err why = { 0 };

	if (!dir || engine_open(&options, &e, &why) < 0)
		return;
	place = place_of(e);
	if (!place || strlist_has(done, place) || strlist_add(done, place) < 0)
		return;
	if (take(e, s, &turn, &why) < 0)
		log_warn("no snapshot of this step in '%s': %s", place, why.msg);
}

/* The directory that holds the file, as far as there is one; owned. */
static char *folder_of(const char *file)
{
	char *path = file ? strdup(file) : NULL, *slash = NULL;

	do {
		slash = path ? strrchr(path, '/') : NULL;
		if (slash)
			*slash = '\0';
	} while (slash && slash > path && access(path, F_OK) < 0);
	if (path && *path == '\0') {
		free(path);
		return NULL;
	}
	return path;
}

/* Open the engine where the session began. */
static int open_home(const struct invocation *inv, const struct said *s, struct engine **ret,
		     struct err *err)
{
	struct engine_options options = {
		.store = inv->store,
		.dir = inv->dir  ? inv->dir
		       : s->home ? s->home
				 : s->dir,
	};
	AUTO_FREE char *label = NULL, *began = NULL;
	int r = engine_open(&options, ret, err);

	if (r < 0 || inv->dir || s->home)
		return r;
	label = text_format("session=%s", s->session);
	if (!label)
		return err_nomem(err);
	began = engine_project_labelled(*ret, label);
	if (!began || access(began, F_OK) < 0)
		return 0;
	engine_close(*ret);
	*ret = NULL;
	options.dir = began;
	return engine_open(&options, ret, err);
}

static int obey(const struct invocation *inv, const char *client, struct said *s, struct err *err)
{
	CLEANUP(engine_close_p) struct engine *e = NULL;
	CLEANUP(strlist_done) struct strlist done = { 0 };
	CLEANUP(buf_done) struct buf input = BUF_INIT;
	AUTO_FREE char *place = NULL, *folder = NULL;
	uint64_t turn = 0;
	int r = read_input(&input, err);

	if (r < 0)
		return r;
	r = read_said(client, &input, s, err);
	if (r < 0)
		return r;
	r = open_home(inv, s, &e, err);
	if (r < 0)
		return r;
	r = take(e, s, &turn, err);
	place = place_of(e);
	if (place && strlist_add(&done, place) < 0)
		return err_nomem(err);
	folder = folder_of(s->file);
	take_elsewhere(inv, s, s->dir, &done, turn);
	take_elsewhere(inv, s, folder, &done, turn);
	return r;
}

NORETURN static void on_alarm(int unused)
{
	static const char line[] =
	    "snap: no snapshot of this step: it takes longer than 30 seconds\n";

	if (write(STDERR_FILENO, line, sizeof(line) - 1) < 0)
		_exit(0);
	_exit(0);
}

/* Gemini CLI and Cursor read an answer; Claude Code and Codex would show it to the model. */
static void answer(const struct invocation *inv, const char *client, enum step step)
{
	if (strcmp(client, "cursor") == 0)
		fputs(step == STEP_PROMPT ? "{\"continue\":true}\n" : "{}\n", inv->out);
	else if (strcmp(client, "gemini") == 0)
		fputs("{}\n", inv->out);
}

int hook_run(struct invocation *inv, const char *client, struct err *err)
{
	CLEANUP(said_done) struct said s = { 0 };
	struct err why = { 0 };

	/* cowfsd ends an act whose asker has gone, so that nothing is left of it. */
	signal(SIGALRM, on_alarm);
	alarm(TIME_MAX);
	if (obey(inv, client, &s, &why) < 0)
		log_warn("no snapshot of this step: %s", why.msg);
	alarm(0);
	answer(inv, client, s.step);
	return CMD_OK;
}
