/*
 * ration.h - how much a capture reads before it promises files instead, and how much it may promise
 * (capture_options.unasked).
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

struct ration_options {
	uint64_t spare; /* so many bytes are read in any case, if there are as many */
	uint64_t most;  /* no more bytes are promised */
	/* Asked by any thread, one at a time, until it is true and the first file is promised: may any be? */
	bool (*may_begin)(void *ctx);
	void *ctx;
};

struct scout;

struct ration {
	const struct ration_options *options; /* borrowed */
	_Atomic uint64_t taken;               /* bytes of files that were to be read */
	_Atomic uint64_t promised;
	atomic_bool spent;   /* there is much to be read, and files may be promised */
	struct scout *scout; /* owned; or NULL */

	pthread_mutex_t lock; /* of those who ask */
};

void ration_init(struct ration *r, const struct ration_options *options);
void ration_done(struct ration *r);

/*
 * A file is next.  True: it is to be promised, if it can be.  `pulse` is called now and then while it is not known
 * whether there is much to be read.
 */
bool ration_is_spent(struct ration *r, const struct stat *st, void (*pulse)(void *ctx), void *ctx);

/* Is there room to promise these bytes?  Then they count, until they are taken back. */
bool ration_promise(struct ration *r, uint64_t bytes);
void ration_take_back(struct ration *r, uint64_t bytes);
