#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "base/fdio.h"
#include "base/path.h"
#include "base/size.h"
#include "base/text.h"
#include "base/vec.h"
#include "base/yaml.h"
#include "engine/find/config-i.h"
#include "engine/pipeline/pipeline-i.h"

#define STAGES_MAX 32
#define NAME_MAX_  32

static const char never[] = "never", policy[] = "policy", always[] = "always";

struct reading {
	const char *name;    /* of the file */
	const char *project; /* its path */
	bool narrows;        /* it is the project's own file */
	struct yaml key;     /* that is being read */
	struct engine_pipeline *pipeline;
	struct err *err;
};

static int complain(const struct reading *rd, const char *why)
{
	return yaml_error(rd->key, rd->name, rd->err, "%s", why);
}

void pipeline_stage_done(struct engine_stage *s)
{
	free(s->name);
	free(s->target);
	texts_free(s->checks, s->n_checks);
	texts_free(s->health, s->n_health);
	texts_free(s->approvers, s->n_approvers);
	*s = (struct engine_stage){ 0 };
}

int pipeline_stage_copy(const struct engine_stage *s, struct engine_stage *ret, struct err *err)
{
	CLEANUP(pipeline_stage_done)
	struct engine_stage c = {
		.name = strdup(s->name),
		.target = s->target ? strdup(s->target) : NULL,
		.approve = s->approve,
		.soak_ms = s->soak_ms,
		.every_ms = s->every_ms,
		.undo_all = s->undo_all,
	};
	int r = c.name && (c.target || !s->target) ? 0 : err_nomem(err);

	if (r < 0)
		return r;
	r = texts_add_all(&c.checks, &c.n_checks, s->checks, s->n_checks, err);
	if (r < 0)
		return r;
	r = texts_add_all(&c.health, &c.n_health, s->health, s->n_health, err);
	if (r < 0)
		return r;
	r = texts_add_all(&c.approvers, &c.n_approvers, s->approvers, s->n_approvers, err);
	if (r < 0)
		return r;
	*ret = TAKE_STRUCT(c);
	return r;
}

const char *pipeline_approve_word(const char *text)
{
	static const char *const words[] = { never, policy };

	for (size_t i = 0; text && i < ARRAY_LEN(words); i++)
		if (strcmp(text, words[i]) == 0)
			return words[i];
	return always;
}

void engine_pipeline_done(struct engine_pipeline *p)
{
	VEC_FREE(it, p->list, p->n, pipeline_stage_done(it));
	free(p->file);
	free(p->project);
	*p = (struct engine_pipeline){ 0 };
}

/* --- values -------------------------------------------------------------------------------- */

static int read_checks(const struct reading *rd, struct yaml value, struct engine_stage *s)
{
	return yaml_add_texts(rd->key, value, rd->name, &s->checks, &s->n_checks, rd->err);
}

static int read_health(const struct reading *rd, struct yaml value, struct engine_stage *s)
{
	return yaml_add_texts(rd->key, value, rd->name, &s->health, &s->n_health, rd->err);
}

static int read_approvers(const struct reading *rd, struct yaml value, struct engine_stage *s)
{
	return yaml_add_texts(rd->key, value, rd->name, &s->approvers, &s->n_approvers, rd->err);
}

static int read_target(const struct reading *rd, struct yaml value, struct engine_stage *s)
{
	const char *text = yaml_kind(value) == YAML_TEXT ? yaml_text(value) : "";

	if (strcmp(text, ".") == 0)
		s->target = strdup(rd->project);
	else if (*text == '/')
		s->target = path_clean("/", text);
	else if (strncmp(text, "git:", 4) == 0 && text[4] == '/' && strchr(text, '#'))
		s->target = strdup(text);
	else if (strncmp(text, "git:", 4) == 0 && text[4] != '\0' && text[4] != '/' &&
		 !strchr(text, '#'))
		s->target = text_format("git:%s#%s", rd->project, text + 4);
	else
		return complain(rd, "'target' is '.', the project, an absolute path, git:BRANCH "
				    "or git:/REPOSITORY#BRANCH");
	return s->target ? 0 : err_nomem(rd->err);
}

static int read_approve(const struct reading *rd, struct yaml value, struct engine_stage *s)
{
	static const char *const words[] = { never, policy, always };

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (yaml_kind(value) == YAML_TEXT && strcmp(yaml_text(value), words[i]) == 0) {
			if (rd->narrows && words[i] != always)
				return complain(rd, "a project can set 'approve' only to always");
			s->approve = words[i];
			return 0;
		}
	return complain(rd, "'approve' is not one of never, policy, always");
}

static int read_time(const struct reading *rd, struct yaml value, uint64_t *ret)
{
	uint64_t ms;

	if (yaml_kind(value) != YAML_TEXT || duration_parse(yaml_text(value), &ms) < 0)
		return complain(rd, "a time is needed, as 30s, 15m or 2h");
	*ret = rd->narrows && ms < *ret ? *ret : ms;
	return 0;
}

static int read_soak(const struct reading *rd, struct yaml value, struct engine_stage *s)
{
	return read_time(rd, value, &s->soak_ms);
}

static int read_every(const struct reading *rd, struct yaml value, struct engine_stage *s)
{
	int r = read_time(rd, value, &s->every_ms);

	return r >= 0 && s->every_ms < 1000 ? complain(rd, "'health_every' is at least 1s") : r;
}

static int read_failure(const struct reading *rd, struct yaml value, struct engine_stage *s)
{
	const char *text = yaml_kind(value) == YAML_TEXT ? yaml_text(value) : "";

	s->undo_all = strcmp(text, "undo-all") == 0;
	if (s->undo_all || strcmp(text, "undo") == 0)
		return 0;
	return complain(rd, "'on_failure' is neither undo nor undo-all");
}

/* --- a stage ------------------------------------------------------------------------------- */

static const struct {
	const char *key;
	int (*read)(const struct reading *rd, struct yaml value, struct engine_stage *s);
	bool narrows; /* a project's own file may have it */
} keys[] = {
	{ "target", read_target, false },      { "checks", read_checks, true },
	{ "approve", read_approve, true },     { "approvers", read_approvers, false },
	{ "soak", read_soak, true },           { "health", read_health, false },
	{ "health_every", read_every, false }, { "on_failure", read_failure, false },
};

static int read_pair(struct reading *rd, struct yaml value, struct engine_stage *s)
{
	const char *key = yaml_kind(rd->key) == YAML_TEXT ? yaml_text(rd->key) : "";

	if (strcmp(key, "name") == 0)
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		if (strcmp(key, keys[i].key) != 0)
			continue;
		if (rd->narrows && !keys[i].narrows)
			return complain(rd, "a project can only add checks, approve and soak");
		return keys[i].read(rd, value, s);
	}
	return complain(rd, "a stage has name, and perhaps target, checks, approve, approvers, "
			    "soak, health, health_every, on_failure");
}

static const char *name_of(struct yaml stage)
{
	struct yaml key, value;
	void *iter = NULL;

	if (yaml_kind(stage) != YAML_MAP)
		return NULL;
	while (yaml_next_pair(stage, &iter, &key, &value))
		if (yaml_kind(key) == YAML_TEXT && strcmp(yaml_text(key), "name") == 0)
			return yaml_kind(value) == YAML_TEXT ? yaml_text(value) : NULL;
	return NULL;
}

static struct engine_stage *find_stage(const struct engine_pipeline *p, const char *name)
{
	return name ? VEC_FIND(it, p->list, p->n, strcmp(it->name, name) == 0) : NULL;
}

const struct engine_stage *pipeline_stage(const struct engine_pipeline *p, const char *name)
{
	return find_stage(p, name);
}

static int add_stage(struct reading *rd, const char *name, struct engine_stage **ret)
{
	static const char chars[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789_-";
	struct engine_pipeline *p = rd->pipeline;

	if (strspn(name, chars) < strlen(name) || strlen(name) > NAME_MAX_ || name[0] == '-')
		return complain(rd, "a name has letters, digits, '_' and '-', 32 at most");
	if (find_stage(p, name))
		return complain(rd, "there are two stages of this name");
	if (p->n == STAGES_MAX)
		return complain(rd, "there are more than 32 stages");
	if (!VEC_ONE_MORE(p->list, p->n))
		return err_nomem(rd->err);
	*ret = &p->list[p->n++];
	**ret = (struct engine_stage){ .name = strdup(name), .approve = policy, .every_ms = 60000 };
	return (*ret)->name ? 0 : err_nomem(rd->err);
}

static int read_stage(struct reading *rd, struct yaml at)
{
	const char *name = name_of(at);
	struct engine_stage *s = NULL;
	struct yaml value;
	void *iter = NULL;
	int r = 0;

	rd->key = at;
	if (!name || *name == '\0')
		return complain(rd, "a stage is a map with a 'name'");
	if (!rd->narrows)
		r = add_stage(rd, name, &s);
	else if (!(s = find_stage(rd->pipeline, name)))
		return complain(rd, "your pipeline has no stage of this name, and a project "
				    "cannot add one");
	while (r >= 0 && yaml_next_pair(at, &iter, &rd->key, &value))
		r = read_pair(rd, value, s);
	rd->key = at;
	if (r >= 0 && !s->target && (s->soak_ms > 0 || s->n_health > 0))
		return complain(rd, "a stage without a 'target' has nothing that could soak");
	if (r >= 0 && s->n_health > 0 && s->soak_ms == 0)
		return complain(rd,
				"'health' is checked during the 'soak', and the stage has none");
	return r;
}

static int read_stages(struct reading *rd, struct yaml list)
{
	struct yaml item;
	void *iter = NULL;
	int r = 0;

	if (yaml_kind(list) != YAML_LIST)
		return complain(rd, "this is a list of stages");
	while (r >= 0 && yaml_next_item(list, &iter, &item))
		r = read_stage(rd, item);
	if (r >= 0 && rd->pipeline->n == 0)
		return complain(rd, "there are no stages");
	return r;
}

/* --- a file -------------------------------------------------------------------------------- */

/* 1 if this one is for the project: its stages are read. */
static int read_pipeline(struct reading *rd, struct yaml at)
{
	CLEANUP(strlist_done) struct strlist projects = { 0 };
	struct yaml value, stages = { 0 }, stages_key = at;
	void *iter = NULL;
	bool any = false;
	int r = 0;

	rd->key = at;
	if (yaml_kind(at) != YAML_MAP)
		return complain(rd, "a pipeline is a map with 'stages'");
	while (r >= 0 && yaml_next_pair(at, &iter, &rd->key, &value)) {
		const char *key = yaml_kind(rd->key) == YAML_TEXT ? yaml_text(rd->key) : "";

		if (strcmp(key, "projects") == 0) {
			r = yaml_texts(rd->key, value, rd->name, &projects, rd->err);
		} else if (strcmp(key, "stages") == 0) {
			stages = value;
			stages_key = rd->key;
		} else {
			return complain(rd, "a pipeline has stages, and perhaps projects");
		}
	}
	rd->key = stages_key;
	if (r >= 0 && !stages.node)
		return complain(rd, "the pipeline has no 'stages'");
	for (size_t i = 0; i < projects.n && !any; i++)
		any = fnmatch(projects.list[i], rd->project, FNM_PATHNAME) == 0;
	if (r < 0 || (projects.n > 0 && !any))
		return r;
	r = read_stages(rd, stages);
	return r < 0 ? r : 1;
}

static int read_user(struct reading *rd, const struct buf *text)
{
	CLEANUP(yaml_done) struct yaml_doc doc = { 0 };
	struct yaml top, item;
	void *iter = NULL;
	int r = yaml_parse(&doc, rd->name, (const char *)text->data, text->len, &top, rd->err);

	if (r < 0 || yaml_kind(top) == YAML_NOTHING)
		return r;
	rd->key = top;
	if (yaml_kind(top) != YAML_LIST)
		return complain(rd, "this is a list of pipelines");
	while (r == 0 && yaml_next_item(top, &iter, &item))
		r = read_pipeline(rd, item);
	return r;
}

static int read_own(struct reading *rd, const struct buf *text)
{
	CLEANUP(yaml_done) struct yaml_doc doc = { 0 };
	struct yaml top;
	int r = yaml_parse(&doc, rd->name, (const char *)text->data, text->len, &top, rd->err);

	if (r < 0 || yaml_kind(top) == YAML_NOTHING)
		return r;
	rd->key = top;
	return read_stages(rd, top);
}

/* The pipeline of a project, by the text of the user's file and (or NULL) of the project's own. */
static int pipeline_parse(const char *project, const char *user_name, const struct buf *user,
			  const char *own_name, const struct buf *own, struct engine_pipeline *ret,
			  struct err *err)
{
	CLEANUP(engine_pipeline_done) struct engine_pipeline p = { 0 };
	struct reading rd = { .name = user_name, .project = project, .pipeline = &p, .err = err };
	int r = read_user(&rd, user);

	if (r < 0)
		return r;
	if (p.n == 0)
		return err_set(err, -ENOENT, "'%s' has no pipeline for '%s'", user_name, project);
	if (own) {
		rd.name = own_name;
		rd.narrows = true;
		r = read_own(&rd, own);
	}
	if (r < 0)
		return r;
	p.file = strdup(user_name);
	p.project = strdup(project);
	if (!p.file || !p.project)
		return err_nomem(err);
	*ret = TAKE_STRUCT(p);
	return 0;
}

int pipeline_load(struct engine *e, const char *project, struct engine_pipeline *ret,
		  struct err *err)
{
	CLEANUP(buf_done) struct buf user = BUF_INIT, own = BUF_INIT;
	AUTO_FREE char *path = config_file(e->home, PIPELINE_FILE);
	AUTO_FREE char *own_path = path_join(project, ".snap/" PIPELINE_FILE);
	int r;

	if (!own_path)
		return err_nomem(err);
	if (!path)
		return err_set(err, -ENOENT, "there is no home directory with a " PIPELINE_FILE);
	r = fdio_read_file(AT_FDCWD, path, YAML_MAX, &user, err);
	if (r == -ENOENT || r == -ENOTDIR)
		return err_set(err, -ENOENT, "no stages are configured: there is no '%s'", path);
	if (r < 0)
		return r;
	r = config_read_project(project, PIPELINE_FILE, &own, err);
	if (r < 0 && r != -ENOENT)
		return r;
	return pipeline_parse(project, path, &user, own_path, r < 0 ? NULL : &own, ret, err);
}

int engine_pipeline(struct engine *e, struct engine_pipeline *ret, struct err *err)
{
	CLEANUP(project_done) struct project project = { 0 };
	struct store *s;
	int r = engine_project(e, &s, &project, err);

	return r < 0 ? r : pipeline_load(e, project.path, ret, err);
}
