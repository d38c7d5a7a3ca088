/*
 * on-i.h - make a ticket from the caller's options, and move states for it.
 */
#pragma once

#include "engine/api/worker.h"
#include "engine/transfer/transfer-i.h"
#include "engine/worker/ticket.h"

/*
 * The remote that states travel through; `named` NULL: the only one that there is; with ssh:HOST a directory of
 * that machine, with slurm one that its nodes see.  -EINVAL if signatures are asked for and there is no list of signers.
 */
NODISCARD int on_choose_remote(struct engine *e, const char *queue, const char *named,
			       const struct engine_trust *trust, struct target *ret,
			       struct err *err);

/*
 * The same for a ticket that was sent, whose state is at `url`: the remote that is named, which must have this url,
 * or of those that have it (NULL) one that demands signatures, if there is one.
 */
NODISCARD int on_find_remote(struct engine *e, const char *named, const char *url,
			     const struct engine_trust *trust, struct target *ret, struct err *err);

/* The directory that this machine and the nodes of Slurm see under the same path; owned. */
NODISCARD int on_slurm_dir(char **ret, struct err *err);

/*
 * Send a snapshot under the name that this project has there for tickets.  The name moves on, so only what
 * changed is sent; a ticket means the manifest, and not the name.  `sign` is a key, or NULL.
 */
NODISCARD int on_push(struct engine *e, const struct target *target, const char *snapshot,
		      const char *sign, const struct engine_watch *watch, struct engine_pushed *ret,
		      struct err *err);

/* Of a result that was fetched: nobody needs its name in the remote any more.  Failures are warnings. */
void on_forget(const struct target *target, const char *ticket, const char *manifest,
	       const char *base_manifest);

/* From the top of the project: where the caller is, or what was named. */
NODISCARD int on_workdir(struct engine *e, const char *named, char **ret, struct err *err);

/* Sorted, each once. */
NODISCARD int on_labels(const struct engine_list *given, struct strlist *ret, struct err *err);

/* Borrowed. */
struct strlist on_names(const struct engine_list *l);

/* 0 where nothing was said. */
struct engine_run_limits on_limits(const struct engine_run_limits *l);
