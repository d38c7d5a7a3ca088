/*
 * hook.h - a small server for calls by HTTP: POST /hook/NAME with the token.
 *
 * One thread answers one call after another; the work of a call must not take long. A request is
 * judged by its headers (door.h) before anything of its body is read.
 */
#pragma once

#include "base/attr.h"
#include "base/err.h"

#define HOOK_NAME_MAX 100
#define HOOK_TEXT_MAX 2000 /* bytes of a body that are passed on */
#define HOOK_ID_MAX   64

struct hook_options {
	const char *listen; /* as listen_at() has it */
	const char *token;
	/*
	 * Somebody called `name`, with a text of one line, or NULL.  0 and an id for the answer; -ENOENT
	 * (404), -ECANCELED (409) or another errno (500) with a sentence for the caller.
	 */
	int (*call)(const char *name, const char *text, char ret_id[HOOK_ID_MAX], void *ctx,
		    struct err *err);
	void (*on_ready)(const char *url, void *ctx);
	void *ctx;
};

/* Until a signal ends it (stop.h). */
NODISCARD int hook_serve(const struct hook_options *options, struct err *err);
