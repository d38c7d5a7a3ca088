/*
 * wire-i.h - verbs that cowfsd does for others.
 *
 * Each wire-NOUN.c has, side by side, the verb as the command line calls it (it asks) and as
 * cowfsd serves it, so that a field is spelled once in each direction in one file.  Strings that
 * may hold any bytes travel as names (json.h).
 */
#pragma once

#include "base/json.h"
#include "engine/api/clone.h"
#include "engine/find/engine-i.h"
#include "engine/wire/control-i.h"

struct wire_verb {
	const char *name;
	/* Read the options, act, and describe the result in `answer`. */
	int (*serve)(struct engine *e, const struct engine_watch *watch, struct json options,
		     struct json answer, struct err *err);
};

extern const struct wire_verb wire_take, wire_gc, wire_check, wire_clone, wire_hold, wire_list,
    wire_stage, wire_stage_end, wire_stage_settle, wire_stage_stay, wire_status, wire_promote,
    wire_radar, wire_rebase, wire_remove, wire_mount, wire_rollback, wire_umount, wire_tag;

/* A snapshot as both ends tell it; `s` is empty before it is got, and to be released after. */
void wire_set_snapshot(struct json j, const struct engine_snapshot *s);
NODISCARD int wire_get_snapshot(struct json j, struct engine_snapshot *s);

/* Names that changed; `ret` is empty before, and to be released after. */
void wire_set_paths(struct json j, const char *key, const struct engine_paths *paths);
NODISCARD int wire_get_paths(struct json j, const char *key, struct engine_paths *ret);

/* Paths with a word on each; the same. */
struct engine_rolled_path;
void wire_set_notes(struct json j, const char *key, const struct engine_rolled_path *list,
		    size_t n);
NODISCARD int wire_get_notes(struct json j, const char *key, struct engine_rolled_path **ret,
			     size_t *ret_n);

/* Ids and other short strings in the struct itself; "" travels as null. */
void wire_set_short(struct json j, const char *key, const char *s);
void wire_get_short(struct json j, const char *key, char *to, size_t size);
#define WIRE_GET_SHORT(j, key, member) wire_get_short((j), (key), (member), sizeof(member))
