#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "snapshot/capture/capture-i.h"

static void done_one(struct capture_unread *one)
{
	free(one->path);
	free(one->why);
}

DEFINE_LIST_DONE(capture_report_done, struct capture_report, done_one)

void unread_init(struct unread *u)
{
	*u = (struct unread){ 0 };
	pthread_mutex_init(&u->lock, NULL);
}

void unread_done(struct unread *u)
{
	capture_report_done(&u->report);
	pthread_mutex_destroy(&u->lock);
}

static int add(struct capture_report *r, const char *path, const struct err *why)
{
	struct capture_unread one = { .code = why->code };

	if (r->n == CAPTURE_UNREAD_MAX) {
		r->more++;
		return 0;
	}
	if (!r->list)
		r->list = calloc(CAPTURE_UNREAD_MAX, sizeof(*r->list));
	one.path = strdup(path);
	one.why = strdup(why->msg);
	if (!r->list || !one.path || !one.why) {
		done_one(&one);
		return -ENOMEM;
	}
	r->list[r->n++] = one;
	return 0;
}

int unread_add(struct unread *u, const struct dir *d, const char *name, const struct err *why,
	       struct err *err)
{
	CLEANUP(buf_done) struct buf path = BUF_INIT;
	const char *text = dir_append_path(d, name, &path) < 0 ? NULL : buf_str(&path);
	int r;

	if (!text)
		return err_nomem(err);
	LOCKED(&u->lock);
	r = add(&u->report, text, why);
	return r < 0 ? err_nomem(err) : 0;
}

static int compare_paths(const void *a, const void *b)
{
	return strcmp(((const struct capture_unread *)a)->path,
		      ((const struct capture_unread *)b)->path);
}

void unread_take(struct unread *u, struct capture_report *ret)
{
	*ret = TAKE_STRUCT(u->report);
	VEC_SORT(ret->list, ret->n, compare_paths);
}

int unread_fail(const struct capture_report *r, const char *top, struct err *err)
{
	const struct capture_unread *first = &r->list[0];
	const uint64_t others = r->n - 1 + r->more;

	if (others == 0)
		err_set(err, first->code, "%s; .snapignore can leave it out", first->why);
	else
		err_set(err, first->code,
			"%s (and %" PRIu64 " more cannot be read); .snapignore can leave them out",
			first->why, others);
	return dir_fail(top, NULL, first->path, first->code, err);
}
