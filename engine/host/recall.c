#include "engine/host/recall-i.h"

#include "base/sys.h"

void recall_init(struct recall *r)
{
	*r = (struct recall){ 0 };
	pthread_mutex_init(&r->lock, NULL);
}

void recall_done(struct recall *r)
{
	signatures_free(r->known);
	pthread_mutex_destroy(&r->lock);
}

static bool same_time(struct timespec a, struct timespec b)
{
	return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       same_time(SYS_ST_MTIM(a), SYS_ST_MTIM(b)) &&
	       same_time(SYS_ST_CTIM(a), SYS_ST_CTIM(b));
}

struct signatures *recall_take(struct recall *r, const struct stat *file)
{
	struct signatures *known = NULL;

	LOCKED(&r->lock);
	if (r->known && same_file(&r->file, file))
		known = TAKE_PTR(r->known);
	return known;
}

void recall_give(struct recall *r, struct signatures *known, const struct stat *file)
{
	CLEANUP(signatures_free_p) struct signatures *unwanted = known;

	if (!known || known->bytes.len > RECALL_MAX)
		return;
	LOCKED(&r->lock);
	unwanted = r->known;
	r->known = known;
	r->file = *file;
}
