#include <errno.h>
#include <stdio.h>

#include "engine/api/doctor.h"
#include "engine/transfer/transfer-i.h"

static void on_finding(const struct depot_finding *f, void *ctx)
{
	static const enum engine_health health[] = {
		[DEPOT_WELL] = ENGINE_WELL,
		[DEPOT_WEAK] = ENGINE_WEAK,
		[DEPOT_ILL] = ENGINE_ILL,
	};

	doctor_finds(ctx, health[f->level], f->name, f->fix, "%s", f->detail);
}

/* The newest name, read as a fetch begins. */
static void look_at_names(struct engine *e, const char *remote, const struct target *t,
			  struct engine_diagnosis *d)
{
	CLEANUP(engine_remote_log_done) struct engine_remote_log log = { 0 };
	struct err why = { 0 };
	char fix[200];
	int r = engine_remote_log(e, target_remote(t), SIZE_MAX, &log, &why);

	snprintf(fix, sizeof(fix), "snapcow push %.160s", remote);
	if (r < 0)
		doctor_finds(d, ENGINE_ILL, "pull", "see what its owner says", "%s", why.msg);
	else if (log.n == 0)
		doctor_finds(d, ENGINE_WELL, "pull", fix, "no snapshot is there yet");
	else
		doctor_well(d, "pull", "%zu %s, the newest is '%s' of %s@%s", log.n,
			    log.n == 1 ? "name" : "names", log.list[0].name,
			    log.list[0].who ? log.list[0].who : "?",
			    log.list[0].host ? log.list[0].host : "?");
}

static int open_remote(struct engine *e, const char *remote, struct target *t, struct depot **ret,
		       struct engine_diagnosis *d)
{
	const struct depot_config quick = { .tries = 1 };
	struct err why = { 0 };
	int r = target_find(e, remote, t, &why);

	if (r < 0) {
		doctor_finds(d, ENGINE_ILL, "address",
			     r == -ENOENT ? "snapcow remote add NAME URL" : "snapcow help remote",
			     "%s", why.msg);
		return r;
	}
	r = depot_open(t->url, &quick, ret, &why);
	if (r < 0)
		doctor_finds(d, ENGINE_ILL, "address", "snapcow help remote", "%s", why.msg);
	else
		doctor_well(d, "address", "%s", t->url);
	return r;
}

void engine_doctor_remote(const struct engine_options *options, const char *remote,
			  struct engine_diagnosis *ret)
{
	CLEANUP(engine_close_p) struct engine *e = NULL;
	CLEANUP(depot_close_p) struct depot *depot = NULL;
	CLEANUP(target_done) struct target t = { 0 };
	struct err why = { 0 };

	*ret = (struct engine_diagnosis){ 0 };
	if (engine_open(options, &e, &why) < 0) {
		doctor_finds(ret, ENGINE_ILL, "store", "snapcow doctor", "%s", why.msg);
		return;
	}
	if (open_remote(e, remote, &t, &depot, ret) == 0 &&
	    depot->ops->probe(depot, on_finding, ret) == 0)
		look_at_names(e, remote, &t, ret);
}
