/*
 * desk-i.h - the messages between the two ends of a desk: a line of JSON each, then the caller is
 * done.
 *
 * {"ask":"list"}, or {"ask":"look","change":ID,"patch":BOOL}, or {"ask":"approve" or
 * "reject","change":ID, "stage":NAME,"reason":TEXT or null,"digest":HEX or null}. The answer is as
 * on the control socket: {"answer":{...}} or {"error":{...}}.
 */
#pragma once

#include "engine/api/desk.h"
#include "engine/wire/control-i.h"

#define DESK_USUAL      "/tmp/snapcow-"    /* and the number of the user */
#define DESK_ASK_MAX    ((size_t)16 << 10) /* bytes of a question */
#define DESK_REASON_MAX 1000
#define DESK_PATCH_MAX  ((size_t)256 << 10)
#define DESK_LIST_MAX   100

/* Append what the change is, as a patch.  1: it was cut at DESK_PATCH_MAX. */
NODISCARD int desk_patch(struct engine *e, const struct engine_change *c, struct buf *patch,
			 struct err *err);
