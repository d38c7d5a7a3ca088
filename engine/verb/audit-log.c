#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>

#include "base/fdio.h"
#include "base/path.h"
#include "base/vec.h"
#include "engine/find/event-i.h"
#include "engine/verb/audit-i.h"

#define FILE_MAX ((size_t)4 * EVENTS_FILE_MAX)

int audit_complain(struct auditing *a, const char *kind, const char *name, const char *problem,
		   struct err *err)
{
	struct audit_problem *one;

	a->result->problems++;
	if (!VEC_ROOM(a->problems, a->n_problems, a->cap))
		return err_nomem(err);
	one = &a->problems[a->n_problems++];
	*one = (struct audit_problem){ strdup(kind), strdup(name), strdup(problem) };
	return one->kind && one->name && one->problem ? 0 : err_nomem(err);
}

static void audit_note_digest(struct auditing *a, const char *digest)
{
	for (size_t i = 0; i < a->n_heads; i++)
		a->found[i] |= strcmp(a->heads[i], digest) == 0;
}

static int complain(struct audit_log *l, uint64_t n, const char *problem, struct err *err)
{
	char number[24];

	snprintf(number, sizeof(number), "%" PRIu64, n);
	return audit_complain(l->auditing, l->noun, number, problem, err);
}

struct link {
	uint64_t n;
	char prev[SHA256_HEX_SIZE]; /* "": from before there was a chain */
	bool first;                 /* its `prev` is empty: nothing was before it */
};

static void read_link(struct json j, struct link *ret)
{
	const char *prev = json_text_if(j, "prev");

	*ret = (struct link){ .n = json_get_uint(j, "n"), .first = prev && *prev == '\0' };
	snprintf(ret->prev, sizeof(ret->prev), "%s", prev ? prev : "");
}

/* Does it follow the line before it? */
static int check_link(struct audit_log *l, const struct link *k, struct err *err)
{
	if (l->n > 0 && k->n != l->n + 1)
		return complain(l, k->n > l->n + 1 ? l->n + 1 : k->n,
				k->n > l->n + 1 ? "it is missing" : "it is out of order", err);
	if (l->n == 0 && k->n == 1 && *k->prev != '\0')
		return complain(l, k->n, "it has taken the place of others, which are gone", err);
	if (!k->first && *k->prev == '\0')
		return l->chained ? complain(l, k->n, "its digest was taken out", err) : 0;
	if (l->n > 0 && strcmp(k->prev, l->prev) != 0)
		return complain(l, l->n, "it was changed, or what follows it was", err);
	return 0;
}

static int check_line(struct audit_log *l, const char *line, size_t len, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct link k;
	struct json j;
	int r;

	if (json_parse(&doc, line, len, &j, NULL) < 0 || json_kind(j, "n") != JSON_INT)
		return complain(l, l->n + 1, "it cannot be read", err);
	read_link(j, &k);
	r = check_link(l, &k, err);
	if (r >= 0)
		r = l->line(j, l->ctx, err);
	if (r < 0)
		return r;
	l->chained |= k.first || *k.prev != '\0';
	l->auditing->result->unchained += !l->chained;
	l->lines++;
	l->n = k.n;
	memcpy(l->before, l->prev, sizeof(l->before));
	event_digest(line, len, l->prev);
	audit_note_digest(l->auditing, l->prev);
	return 0;
}

static int check_file(struct audit_log *l, int dir_fd, uint64_t first, struct err *err)
{
	CLEANUP(buf_done) struct buf bytes = BUF_INIT;
	const char *at, *end, *line;
	int r = fdio_read_file(dir_fd, event_file_name(first).text, FILE_MAX, &bytes, err);

	at = (const char *)bytes.data;
	end = at + bytes.len;
	for (; r >= 0 && at < end && (line = memchr(at, '\n', (size_t)(end - at))); at = line + 1)
		r = check_line(l, at, (size_t)(line + 1 - at), err);
	return r;
}

/*
 * snap keeps a certain number of files, or one fewer if a writer died just after it removed one.  The oldest of these
 * must be there.
 */
static bool is_cut(const struct event_head *head, int files)
{
	return head->first > 1 && files < EVENTS_FILES_MAX - 1;
}

/* A writer that died between the line and the head leaves the head of the line before. */
static int check_head(struct audit_log *l, int dir_fd, uint64_t first, int files, struct err *err)
{
	struct event_head head;

	event_head_read(dir_fd, &head);
	if (head.n == 0)
		return l->chained
			   ? audit_complain(l->auditing, l->noun, EVENTS_HEAD, "it is missing", err)
			   : 0;
	if (head.first < first)
		return complain(l, head.first, "it is missing, with those before the next", err);
	if (is_cut(&head, files))
		return complain(l, head.first - 1, "it is gone, and snap did not remove it", err);
	if ((head.n == l->n && strcmp(head.digest, l->prev) == 0) ||
	    (head.n + 1 == l->n && strcmp(head.digest, l->before) == 0))
		return 0;
	if (head.n > l->n)
		return complain(l, l->n + 1, "it is missing, with those behind it", err);
	return complain(l, l->n, "it was changed", err);
}

int audit_log_check(struct audit_log *l, struct err *err)
{
	AUTO_FREE char *dir = path_join(l->auditing->engine->store_path, l->dir);
	uint64_t files[EVENTS_FILES_MAX + 1] = { 0 };
	int n, r = 0;

	if (!dir)
		return err_nomem(err);
	l->fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (l->fd < 0)
		return errno == ENOENT ? 0 : err_sys(err, "opening '%s'", dir);
	while (flock(l->fd, LOCK_SH) < 0)
		if (errno != EINTR)
			return err_sys(err, "locking '%s'", dir);
	n = event_files(l->fd, files);
	if (n < 0)
		return err_set(err, n, "the log '%s': %s", l->dir, strerror(-n));
	for (int i = 0; i < n && r >= 0; i++)
		r = check_file(l, l->fd, files[i], err);
	return r < 0 ? r : check_head(l, l->fd, n > 0 ? files[0] : 1, n, err);
}

void audit_log_done(struct audit_log *l)
{
	cleanup_close(&l->fd);
}
