#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "base/size.h"
#include "base/vec.h"
#include "engine/watch/rule-i.h"

#define EVERY_MIN_MS 1000

int read_complain(const struct reading *rd, const char *why)
{
	return yaml_error(rd->key, rd->name, rd->err, "%s", why);
}

/* --- values -------------------------------------------------------------------------------- */

const char *read_text(struct yaml value)
{
	return yaml_kind(value) == YAML_TEXT ? yaml_text(value) : "";
}

int read_take_text(const struct reading *rd, struct yaml value, char **ret)
{
	if (*read_text(value) == '\0')
		return read_complain(rd, "this is a text that is not empty");
	free(*ret);
	*ret = strdup(read_text(value));
	return *ret ? 0 : err_nomem(rd->err);
}

int read_take_path(const struct reading *rd, struct yaml value, char **ret)
{
	if (*read_text(value) != '/')
		return read_complain(rd, "this is an absolute path");
	free(*ret);
	*ret = path_clean("/", read_text(value));
	return *ret ? 0 : err_nomem(rd->err);
}

int read_take_texts(const struct reading *rd, struct yaml value, char ***list, size_t *n)
{
	return yaml_add_texts(rd->key, value, rd->name, list, n, rd->err);
}

int read_take_duration(const struct reading *rd, struct yaml value, uint64_t *ret)
{
	return duration_parse(read_text(value), ret) < 0
		   ? read_complain(rd, "a time is needed, as 30s, 15m or 2h")
		   : 0;
}

int read_take_size(const struct reading *rd, struct yaml value, uint64_t *ret)
{
	return size_parse(read_text(value), ret) < 0
		   ? read_complain(rd, "a size is needed, as 512M or 2G")
		   : 0;
}

int read_take_count(const struct reading *rd, struct yaml value, uint64_t *ret)
{
	return size_parse_u64(read_text(value), ret) < 0 ? read_complain(rd, "a number is needed")
							 : 0;
}

/* --- triggers ------------------------------------------------------------------------------ */

static int read_schedule(struct reading *rd, struct yaml value, struct engine_rule *rule)
{
	struct err why = { 0 };

	rule->trigger = ENGINE_TRIGGER_SCHEDULE;
	if (calendar_parse(read_text(value), &rule->calendar, &why) < 0)
		return read_complain(rd, why.msg);
	return read_take_text(rd, value, &rule->schedule);
}

static int read_files(struct reading *rd, struct yaml value, struct engine_rule *rule)
{
	rule->trigger = ENGINE_TRIGGER_FILES;
	return read_take_texts(rd, value, &rule->files, &rule->n_files);
}

static int read_fails(struct reading *rd, struct yaml value, struct engine_rule *rule)
{
	rule->trigger = ENGINE_TRIGGER_FAILS;
	return read_take_text(rd, value, &rule->probe);
}

static int read_ref(struct reading *rd, struct yaml value, struct engine_rule *rule)
{
	rule->trigger = ENGINE_TRIGGER_REF;
	if (strncmp(read_text(value), "refs/", 5) != 0 || strstr(read_text(value), ".."))
		return read_complain(rd, "'ref' is a whole name, as refs/heads/main");
	return read_take_text(rd, value, &rule->ref);
}

static int read_log(struct reading *rd, struct yaml value, struct engine_rule *rule)
{
	rule->trigger = ENGINE_TRIGGER_LOG;
	return read_take_path(rd, value, &rule->file);
}

static int read_match(struct reading *rd, struct yaml value, struct engine_rule *rule)
{
	regex_t re;

	if (regcomp(&re, read_text(value), REG_EXTENDED | REG_NOSUB) != 0)
		return read_complain(rd, "'match' is no extended regular expression");
	regfree(&re);
	return read_take_text(rd, value, &rule->match);
}

static int read_disk(struct reading *rd, struct yaml value, struct engine_rule *rule)
{
	rule->trigger = ENGINE_TRIGGER_DISK;
	return read_take_size(rd, value, &rule->limit);
}

static int read_store(struct reading *rd, struct yaml value, struct engine_rule *rule)
{
	rule->trigger = ENGINE_TRIGGER_STORE;
	return read_take_size(rd, value, &rule->limit);
}

static int read_debounce(struct reading *rd, struct yaml value, struct engine_rule *rule)
{
	return read_take_duration(rd, value, &rule->debounce_ms);
}

static int read_every(struct reading *rd, struct yaml value, struct engine_rule *rule)
{
	int r = read_take_duration(rd, value, &rule->every_ms);

	return r >= 0 && rule->every_ms < EVERY_MIN_MS ? read_complain(rd, "'every' is at least 1s")
						       : r;
}

static const struct key trigger_keys[] = {
	{ "schedule", read_schedule, true },
	{ "files", read_files, true },
	{ "fails", read_fails, true },
	{ "ref", read_ref, true },
	{ "log", read_log, true },
	{ "disk", read_disk, true },
	{ "store", read_store, true },
	{ "match", read_match, false },
	{ "debounce", read_debounce, false },
	{ "every", read_every, false },
};

const struct key *read_key_of(const struct key *keys, size_t n, struct yaml key)
{
	return VEC_FIND(it, keys, n, strcmp(read_text(key), it->key) == 0);
}

int read_on(struct reading *rd, struct yaml value, struct engine_rule *rule)
{
	const struct yaml at = rd->key;
	void *iter = NULL;
	struct yaml one;
	int triggers = 0, r = 0;

	rule->trigger = ENGINE_TRIGGER_FIRE;
	if (strcmp(read_text(value), "fire") == 0)
		return 0;
	if (strcmp(read_text(value), "webhook") == 0) {
		rule->trigger = ENGINE_TRIGGER_WEBHOOK;
		return 0;
	}
	if (yaml_kind(value) != YAML_MAP)
		return read_complain(
		    rd, "'on' is fire or webhook, or a map with one of schedule, files, fails, "
			"ref, log, disk, store");
	while (r >= 0 && yaml_next_pair(value, &iter, &rd->key, &one)) {
		const struct key *k = read_key_of(trigger_keys, ARRAY_LEN(trigger_keys), rd->key);

		if (!k)
			return read_complain(
			    rd, "a trigger has one of schedule, files, fails, ref, "
				"log, disk, store, and perhaps match, debounce, every");
		triggers += k->trigger;
		r = k->read(rd, one, rule);
	}
	rd->key = at;
	if (r >= 0 && triggers != 1)
		return read_complain(rd, "a rule has one trigger");
	if (r >= 0 && (rule->trigger == ENGINE_TRIGGER_LOG) != (rule->match != NULL))
		return read_complain(rd, "'log' and 'match' belong together");
	return r;
}
