/*
 * run-record.h - the files of a run, in the store's directory: runs/ID.json, .log and .use.
 *
 * The process that holds the run writes them; cowfsd has no part in it. The record has a line from
 * the start and gets a second one at the end. While it is locked, the run is alive or the user is
 * deciding on its clone. A run without output has no log (run-log.c has its form). The samples of
 * its resources are in .use (curve-i.h) until they are part of the record.
 */
#pragma once

#include "base/sha256.h"
#include "engine/api/run.h"

#define RUN_RECORD_DIR     "runs"
#define RUN_RECORD_USE     ".use"
#define RUN_RECORD_LOG_MAX ((uint64_t)16 << 20) /* bytes of each stream */

struct run_record {
	int dir_fd;
	int fd;     /* of the record; locked */
	int log_fd; /* -1 as long as nothing came */
	int use_fd; /* the same */
	char id[ENGINE_RUN_ID_SIZE];
	uint64_t logged[2]; /* of stdout and stderr */
	bool truncated, full;
};

#define RUN_RECORD_INIT ((struct run_record){ .dir_fd = -1, .fd = -1, .log_fd = -1, .use_fd = -1 })

/* A log is a sequence of pieces: stream (1 byte), length (4 bytes, little endian), data. */
#define RUN_RECORD_HEAD 5

void run_record_done(struct run_record *r);

/* An id that no run has had, as far as chance goes. */
NODISCARD int run_record_pick(char id[ENGINE_RUN_ID_SIZE], struct err *err);

NODISCARD int run_record_begin(const char *store, const struct engine_run *run,
			       struct run_record *ret, struct err *err);
void run_record_log(struct run_record *r, int stream, const void *data, size_t len);
void run_record_use(struct run_record *r, const void *line, size_t len); /* of curve-i.h */
/* What is known of one that goes on. */
NODISCARD int run_record_note(struct run_record *r, const struct engine_run *run, struct err *err);
/* It stays locked until run_record_done(). */
NODISCARD int run_record_end(struct run_record *r, struct engine_run *run, struct err *err);

/* Write the last line of a record whose writer is dead. */
NODISCARD int run_record_amend(const char *store, const struct engine_run *run, struct err *err);

/* A path of it: ".json", ".log"; owned. */
char *run_record_path(const char *store, const char *id, const char *ending);

const char *run_record_state_name(enum engine_run_state state);

/* The id as a number, and back. */
uint64_t run_record_number(const char *id);
void run_record_id(uint64_t number, char ret[ENGINE_RUN_ID_SIZE]);

/* The SHA-256 of the record as it lies, in hex.  -ENOENT or another errno, without a sentence. */
NODISCARD int run_record_digest(const char *store, const char *id, char hex[SHA256_HEX_SIZE]);

bool run_record_is_live(const char *store, const char *id);

/* Wait until the writer has released its lock; only then does the record read as ended. */
void run_record_settle(const char *store, const char *id);

/* Read the record.  A run that should be alive but is not is ENGINE_RUN_LOST, and `problem` says so. */
NODISCARD int run_record_read(const char *store, const char *id, struct engine_run *ret,
			      struct err *err);

/* Each id there is, in no order.  A non-zero answer ends it and is returned. */
typedef int (*run_record_fn)(const char *id, void *ctx);
NODISCARD int run_record_each(const char *store, run_record_fn fn, void *ctx, struct err *err);

void run_record_remove(const char *store, const char *id);

/* After a run that said so many bytes: remove what need not be kept, if that may be much (runs.c). */
void runs_tidy(struct engine *e, uint64_t logged);
