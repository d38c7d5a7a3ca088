/*
 * metrics.h - numbers about a store and its daemon, for a monitoring system.
 *
 * The daemon's counters begin at 0 when it starts. Reading them does not start a daemon.
 */
#pragma once

#include "engine/api/run.h"

#define ENGINE_METER_BUCKETS 7

/* Requests of one kind to the mounted clones. */
struct engine_meter {
	char *op; /* owned */
	uint64_t count, sum_ns;
	/* How many took up to 10 us, 100 us, 1 ms, 10 ms, 100 ms, 1 s, and longer; each alone. */
	uint64_t us10, us100, ms1, ms10, ms100, s1, longer;
};

/* What was asked of one mounted clone, through all of its mounts, since it was mounted. */
struct engine_traffic {
	char *clone; /* owned */
	uint64_t requests;
	uint64_t read, written; /* bytes */
	uint64_t waiting;       /* requests that wait just now */
	uint64_t rests;         /* times that requests were held back for other clones */
};

/* What the daemon knows. */
struct engine_daemon_metrics {
	struct engine_meter *ops; /* owned */
	size_t n_ops;
	struct engine_traffic *traffic; /* owned */
	size_t n_traffic;
	uint64_t mounted;
	uint64_t dirty_bytes, nodes, commits, sweeps, store_waits, room_waits;
	uint64_t cache_hits, cache_misses, cache_bytes;
};

#define ENGINE_RUN_STATES 5 /* enum engine_run_state */

struct engine_metrics {
	bool up; /* the daemon runs, and `daemon` is known */
	struct engine_daemon_metrics daemon;
	uint64_t projects, snapshots, automatic, clones;
	uint64_t logical;                 /* bytes that all snapshots show together */
	uint64_t stored, chunks, objects; /* packed */
	uint64_t disk, free;              /* of the store's files */
	uint64_t promotions, rollbacks, undos;
	uint64_t runs[ENGINE_RUN_STATES]; /* records that are kept */
	uint64_t failed;                  /* of those that ended: with another code than 0 */
	uint64_t refusals;                /* of those runs */
	uint64_t events;                  /* number of the newest */
};

/* -ENOENT if there is no store yet. */
NODISCARD int engine_metrics(struct engine *e, struct engine_metrics *ret, struct err *err);

/* Only `up`, `daemon`, `clones` and `disk`: for looking again and again, however long the history. */
NODISCARD int engine_metrics_brief(struct engine *e, struct engine_metrics *ret, struct err *err);
void engine_metrics_done(struct engine_metrics *m);
