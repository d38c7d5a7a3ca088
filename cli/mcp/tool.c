#include "cli/mcp/tool.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/vec.h"
#include "cli/mcp/schemas.h"

#define STATES_MOST 16 /* in one list */
#define WAIT_S      45 /* for a run, if nothing else is said: clients give up after a minute */

const struct tool *tool_find(const char *name)
{
	for (const struct tool *t = tools; t->name; t++)
		if (strcmp(t->name, name) == 0)
			return t;
	return NULL;
}

const struct tool_param *tool_param(const struct tool *t, const char *name)
{
	for (const struct tool_param *p = t->params; p->name; p++)
		if (strcmp(p->name, name) == 0)
			return p;
	return NULL;
}

/* --- describing ------------------------------------------------------------------------- */

static void set_choices(struct json j, const char *choices)
{
	CLEANUP(buf_done) struct buf one = BUF_INIT;
	struct json list = json_set_array(j, "enum");
	size_t n;

	for (; *choices != '\0'; choices += n + (choices[n] == '|')) {
		n = strcspn(choices, "|");
		buf_reset(&one);
		if (buf_append(&one, choices, n) < 0 || !buf_str(&one))
			return; /* a value less to choose from, and the call says so */
		json_add_text(list, buf_str(&one));
	}
}

static void set_strings(struct json j)
{
	json_set_text(j, "type", "array");
	json_set_text(json_set_object(j, "items"), "type", "string");
}

static void set_command(struct json j)
{
	struct json any = json_set_array(j, "anyOf");

	json_set_text(json_add_object(any), "type", "string");
	set_strings(json_add_object(any));
}

static void describe_param(const struct tool_param *p, struct json j)
{
	switch (p->kind) {
	case PARAM_FLAG:
		json_set_text(j, "type", "boolean");
		break;
	case PARAM_NUMBER:
	case PARAM_SECONDS:
	case PARAM_SINCE:
		json_set_text(j, "type", "integer");
		json_set_int(j, "minimum", 0);
		break;
	case PARAM_LIST:
	case PARAM_STATES:
	case PARAM_WORDS:
		set_strings(j);
		break;
	case PARAM_COMMAND:
		set_command(j);
		break;
	case PARAM_TEXT:
	case PARAM_NET:
	case PARAM_CLONE:
	case PARAM_STATE:
	case PARAM_PATH:
	case PARAM_RUN:
		json_set_text(j, "type", "string");
	}
	if (p->choices)
		set_choices(j, p->choices);
	json_set_text(j, "description", p->help);
}

static void describe_input(const struct tool *t, struct json j)
{
	struct json properties, required;

	json_set_text(j, "type", "object");
	properties = json_set_object(j, "properties");
	required = json_set_array(j, "required");
	for (const struct tool_param *p = t->params; p->name; p++) {
		describe_param(p, json_set_object(properties, p->name));
		if (p->required)
			json_add_text(required, p->name);
	}
	json_set_bool(j, "additionalProperties", false);
}

void tool_describe(const struct tool *t, struct json j)
{
	const char *schema = schema_text(t->schema ? t->schema : t->command);
	struct json notes;

	json_set_text(j, "name", t->name);
	json_set_text(j, "title", t->title);
	json_set_text(j, "description", t->description);
	describe_input(t, json_set_object(j, "inputSchema"));
	if (schema)
		json_set_parsed(j, "outputSchema", schema, strlen(schema));
	notes = json_set_object(j, "annotations");
	json_set_text(notes, "title", t->title);
	json_set_bool(notes, "readOnlyHint", t->read_only);
	json_set_bool(notes, "destructiveHint", t->destructive);
	json_set_bool(notes, "idempotentHint", t->idempotent);
	json_set_bool(notes, "openWorldHint", t->open_world);
	if (t->page)
		json_set_text(json_set_object(json_set_object(j, "_meta"), "ui"), "resourceUri",
			      t->page);
}

/* --- the command line ------------------------------------------------------------------- */

void tool_line_done(struct tool_line *line)
{
	for (int i = 0; i < line->argc; i++)
		free(line->argv[i]);
	free(line->argv);
	for (size_t i = 0; i < line->n_states; i++)
		free(line->states[i].text);
	free(line->job);
	free(line->since);
	*line = (struct tool_line){ 0 };
}

/* Takes `word`; NULL is memory that ran out. */
static int add(struct tool_line *line, char *word, struct err *err)
{
	if (!word || !VEC_ROOM(line->argv, (size_t)line->argc + 1, line->room)) {
		free(word);
		return err_nomem(err);
	}
	line->argv[line->argc++] = word;
	line->argv[line->argc] = NULL;
	return 0;
}

static int add_option(struct tool_line *line, const char *option, const char *value,
		      struct err *err)
{
	char *word = NULL;

	if (asprintf(&word, value ? "--%s=%s" : "--%s", option, value) < 0)
		return err_nomem(err);
	return add(line, word, err);
}

static int wrong_type(const struct tool_param *p, const char *wanted, struct err *err)
{
	return err_set(err, -EINVAL, "'%s' must be %s", p->name, wanted);
}

static bool is_choice(const char *choices, const char *value)
{
	const size_t len = strlen(value);
	size_t n;

	for (; *choices != '\0'; choices += n + (choices[n] == '|')) {
		n = strcspn(choices, "|");
		if (n == len && strncmp(choices, value, n) == 0)
			return true;
	}
	return false;
}

/* A string without a NUL in it; NULL and a sentence if it is something else. */
static const char *text_of(const struct tool_param *p, struct json args, struct err *err)
{
	const char *text;

	if (json_kind(args, p->name) != JSON_TEXT) {
		wrong_type(p, "a string", err);
		return NULL;
	}
	text = json_get_text(args, p->name);
	if (!text)
		wrong_type(p, "a string without a NUL byte", err);
	else if (p->choices && !is_choice(p->choices, text)) {
		err_set(err, -EINVAL, "'%s' must be one of %s", p->name, p->choices);
		return NULL;
	}
	return text;
}

/* What names a state must not be taken for an option, and is looked up in this project alone. */
static int remember_state(struct tool_line *line, const struct tool_param *p, const char *text,
			  struct err *err)
{
	if (*text == '-' || *text == '\0')
		return err_set(err, -EINVAL, "'%s': there is no state '%s'", p->name, text);
	assert(line->n_states < ARRAY_LEN(line->states));
	line->states[line->n_states].is_clone = p->kind == PARAM_CLONE;
	line->states[line->n_states].text = strdup(text);
	if (!line->states[line->n_states].text)
		return err_nomem(err);
	line->n_states++;
	return 0;
}

static int add_path(struct tool_line *line, const char *path, struct err *err)
{
	char *word = NULL;

	if (line->argc < 2 || line->n_states == 0)
		return err_set(err, -EINVAL, "'path' needs the clone it lies in");
	if (asprintf(&word, "%s:%s", line->argv[line->argc - 1], path) < 0)
		return err_nomem(err);
	free(line->argv[line->argc - 1]);
	line->argv[line->argc - 1] = word;
	return 0;
}

static int add_word(struct tool_line *line, const struct tool_param *p, const char *text,
		    struct err *err)
{
	if (p->option)
		return add_option(line, p->option, text, err);
	if (*text == '-' || *text == '\0')
		return err_set(err, -EINVAL, "'%s': '%s' is no such thing", p->name, text);
	return add(line, strdup(text), err);
}

static int add_state(struct tool_line *line, const struct tool_param *p, const char *text,
		     struct err *err)
{
	int r = remember_state(line, p, text, err);

	return r < 0 ? r : add_word(line, p, text, err);
}

static int add_text(struct tool_line *line, const struct tool_param *p, struct json args,
		    struct err *err)
{
	const char *text = text_of(p, args, err);

	if (!text)
		return -EINVAL;
	if (p->kind == PARAM_PATH)
		return add_path(line, text, err);
	if (p->kind == PARAM_NET && strcmp(text, "host") == 0)
		return err_set(
		    err, -EINVAL,
		    "'%s': the network of the host is a person's to give, with `snap run "
		    "--net host`",
		    p->name);
	if (p->kind == PARAM_STATE || p->kind == PARAM_CLONE)
		return add_state(line, p, text, err);
	return add_word(line, p, text, err);
}

static int add_number(struct tool_line *line, const struct tool_param *p, struct json args,
		      struct err *err)
{
	char digits[24];

	if (json_kind(args, p->name) != JSON_INT || json_get_int(args, p->name) < 0)
		return wrong_type(p, "an integer from 0 on", err);
	if (p->kind == PARAM_SECONDS) {
		line->wait_s = (uint64_t)json_get_int(args, p->name);
		return 0;
	}
	snprintf(digits, sizeof(digits), "%lld", (long long)json_get_int(args, p->name));
	if (p->kind == PARAM_SINCE) {
		line->since = strdup(digits);
		return line->since ? 0 : err_nomem(err);
	}
	return add_option(line, p->option, digits, err);
}

static int add_run(struct tool_line *line, const struct tool_param *p, struct json args,
		   struct err *err)
{
	const char *text = text_of(p, args, err);

	if (!text)
		return -EINVAL;
	line->job = strdup(text);
	return line->job ? 0 : err_nomem(err);
}

static int add_list(struct tool_line *line, const struct tool_param *p, struct json args,
		    struct err *err)
{
	const bool states = p->kind == PARAM_STATES;
	struct json list;
	int r = 0;

	if (json_kind(args, p->name) != JSON_ARRAY)
		return wrong_type(p, "a list of strings", err);
	list = json_get_array(args, p->name);
	if (states && json_length(list) > STATES_MOST)
		return err_set(err, -EINVAL, "'%s': at most %d", p->name, STATES_MOST);
	for (size_t i = 0; r >= 0 && i < json_length(list); i++) {
		const char *text = json_at_text(list, i);

		if (!text)
			return wrong_type(p, "a list of strings", err);
		r = states ? add_state(line, p, text, err) : add_word(line, p, text, err);
	}
	return r;
}

static int add_command(struct tool_line *line, const struct tool_param *p, struct json args,
		       struct err *err)
{
	struct json list;
	int r = add(line, strdup("--"), err);

	if (r < 0)
		return r;
	if (json_kind(args, p->name) == JSON_TEXT) {
		const char *text = text_of(p, args, err);

		r = text ? add(line, strdup("sh"), err) : -EINVAL;
		if (r < 0)
			return r;
		r = add(line, strdup("-c"), err);
		return r < 0 ? r : add(line, strdup(text), err);
	}
	if (json_kind(args, p->name) != JSON_ARRAY)
		return wrong_type(p, "a string for the shell or a list of words", err);
	list = json_get_array(args, p->name);
	if (json_length(list) == 0)
		return wrong_type(p, "a command", err);
	for (size_t i = 0; r >= 0 && i < json_length(list); i++) {
		const char *text = json_at_text(list, i);

		r = text ? add(line, strdup(text), err)
			 : wrong_type(p, "a string for the shell or a list of words", err);
	}
	return r;
}

static int add_param(struct tool_line *line, const struct tool_param *p, struct json args,
		     struct err *err)
{
	switch (p->kind) {
	case PARAM_FLAG:
		if (json_kind(args, p->name) != JSON_BOOL)
			return wrong_type(p, "true or false", err);
		return json_get_bool(args, p->name) ? add_option(line, p->option, NULL, err) : 0;
	case PARAM_RUN:
		return add_run(line, p, args, err);
	case PARAM_NUMBER:
	case PARAM_SECONDS:
	case PARAM_SINCE:
		return add_number(line, p, args, err);
	case PARAM_LIST:
	case PARAM_WORDS:
	case PARAM_STATES:
		return add_list(line, p, args, err);
	case PARAM_COMMAND:
		return add_command(line, p, args, err);
	case PARAM_TEXT:
	case PARAM_NET:
	case PARAM_CLONE:
	case PARAM_STATE:
	case PARAM_PATH:
		break;
	}
	return add_text(line, p, args, err);
}

static bool knows(const char *key, const void *ctx)
{
	return tool_param(ctx, key) != NULL;
}

/* A word that is missing or too many would move the others to places where nobody checks them. */
static int check_act(const struct tool *t, const struct tool_act *a, struct json args,
		     struct err *err)
{
	for (const struct tool_param *p = t->params; p->name; p++) {
		const bool given = json_kind(args, p->name) != JSON_MISSING;

		if (strcmp(p->name, "act") == 0)
			continue;
		if (!given && is_choice(a->needs, p->name))
			return err_set(err, -EINVAL, "%s needs '%s' to %s: %s", t->name, p->name,
				       a->name, p->help);
		if (given && !is_choice(a->needs, p->name) && !is_choice(a->takes, p->name))
			return err_set(err, -EINVAL, "%s takes no '%s' to %s", t->name, p->name,
				       a->name);
	}
	return 0;
}

static int check_acts(const struct tool *t, struct json args, struct err *err)
{
	const char *act = json_kind(args, "act") == JSON_TEXT ? json_get_text(args, "act") : NULL;

	for (const struct tool_act *a = t->acts; act && a->name; a++)
		if (strcmp(a->name, act) == 0)
			return check_act(t, a, args, err);
	return 0;
}

static int build(const struct tool *t, struct json args, struct tool_line *line, struct err *err)
{
	const char *unknown = json_unknown_key(args, knows, t);
	int r;

	if (unknown)
		return err_set(err, -EINVAL, "%s has no argument '%s'", t->name, unknown);
	r = check_acts(t, args, err);
	if (r < 0)
		return r;
	line->is_job = t->job;
	line->wait_s = tool_param(t, "wait_s") ? WAIT_S : 0;
	r = add(line, strdup(t->command), err);
	for (size_t i = 0; r >= 0 && i < ARRAY_LEN(t->fixed) && t->fixed[i]; i++)
		r = add(line, strdup(t->fixed[i]), err);
	/* Only a call that passes the gate may find something else than a clone in its word. */
	if (r >= 0 && t->gate == GATE_NO_CLONE && !json_has(args, "clone"))
		r = add(line, strdup("--yes"), err);
	for (const struct tool_param *p = t->params; r >= 0 && p->name; p++) {
		if (json_kind(args, p->name) != JSON_MISSING)
			r = add_param(line, p, args, err);
		else if (p->required)
			r = err_set(err, -EINVAL, "%s needs '%s': %s", t->name, p->name, p->help);
	}
	return r;
}

int tool_line(const struct tool *t, struct json args, struct tool_line *ret, struct err *err)
{
	CLEANUP(tool_line_done) struct tool_line line = { 0 };
	int r = build(t, args, &line, err);

	if (r < 0)
		return r;
	*ret = TAKE_STRUCT(line);
	return 0;
}

int tool_line_add(struct tool_line *line, const char *word, struct err *err)
{
	char *moved;
	int r = add(line, strdup(word), err);

	if (r < 0)
		return r;
	moved = line->argv[line->argc - 1];
	memmove(line->argv + 2, line->argv + 1, (size_t)(line->argc - 2) * sizeof(*line->argv));
	line->argv[1] = moved;
	return 0;
}

bool tool_writes_project(const struct tool *t, struct json args)
{
	if (t->gate == GATE_NONE || t->gate == GATE_POLICY ||
	    (t->gate == GATE_NO_CLONE && json_has(args, "clone")))
		return false;
	return json_kind(args, "dry_run") != JSON_BOOL || !json_get_bool(args, "dry_run");
}
