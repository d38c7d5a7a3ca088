#include "tests/model/play.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "tests/model/side.h"

#define SNAPSHOTS_MAX 64

struct saved {
	char name[64]; /* in the script */
	struct buf inodes;
};

/* One run of a script. */
struct run {
	struct play *play;
	const struct script *script;
	char dir[4096], ref[4096];
	struct side a, b; /* under test, and the reference */
	struct saved saved[SNAPSHOTS_MAX];
	size_t n_saved;
	/* What a kill may come back to: the state at a checkpoint, and after each operation since. */
	bool watching;
	bool torn; /* an operation since then can be done by half */
	size_t since;
	struct buf digests; /* uint64_t each */
	struct err *err;
};

static int fail(struct run *x, const char *fmt, ...) PRINTF_LIKE(2, 3);

static int fail(struct run *x, const char *fmt, ...)
{
	char text[200];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return err_set(x->err, -EBADMSG, "%s", text);
}

/* --- commands ------------------------------------------------------------------------------- */

static int spawn(struct run *x, const char *const *argv)
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid < 0)
		return err_sys(x->err, "fork");
	if (pid == 0) {
		if (dup2(STDERR_FILENO, STDOUT_FILENO) >= 0)
			execvp(argv[0], (char *const *)(uintptr_t)argv);
		_exit(127);
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (status)
		return err_set(x->err, -EIO, "'%s %s' ended with status %d", argv[0],
			       argv[1] ? argv[1] : "", status);
	return 0;
}

static int hook(struct run *x, const char *what, const char *name)
{
	char command[8192], full[128] = "";
	const char *argv[] = { "sh", "-c", command, "hook", what, full, NULL };

	if (*name)
		snprintf(full, sizeof(full), "model-%d-%u-%s", (int)getpid(), x->play->runs, name);
	else
		argv[5] = NULL;
	snprintf(command, sizeof(command), "%s \"$@\"", x->play->hook);
	return spawn(x, argv);
}

static int clear_dir(struct run *x, const char *path)
{
	char inner[8192];
	const char *argv[] = { "find", inner, "-mindepth", "1", "-delete", NULL };

	snprintf(inner, sizeof(inner), "%s", path);
	return spawn(x, argv);
}

static const char *saved_path(const struct run *x, const char *name)
{
	static char path[8192];

	snprintf(path, sizeof(path), "%s/saved-%s", x->play->ref, name);
	return path;
}

static int save(struct run *x, const char *name)
{
	const char *rm[] = { "rm", "-rf", saved_path(x, name), NULL };
	const char *cp[] = { "cp", "-a", x->ref, rm[2], NULL };
	int r = spawn(x, rm);

	return r < 0 ? r : spawn(x, cp);
}

static int restore(struct run *x, const char *name)
{
	char from[8192 + 8], to[4096 + 8];
	const char *cp[] = { "cp", "-a", from, to, NULL };
	int r = clear_dir(x, x->ref);

	snprintf(from, sizeof(from), "%s/.", saved_path(x, name));
	snprintf(to, sizeof(to), "%s/", x->ref);
	return r < 0 ? r : spawn(x, cp);
}

/* --- comparing ------------------------------------------------------------------------------ */

static void show_difference(const char *a, const char *b, const char *at, const char *bt)
{
	while (*a && *b) {
		size_t la = strcspn(a, "\n"), lb = strcspn(b, "\n");

		if (la != lb || memcmp(a, b, la) != 0)
			break;
		a += la + (a[la] != '\0');
		b += lb + (b[lb] != '\0');
	}
	printf("# %s: %.*s\n", at, *a ? (int)strcspn(a, "\n") : 9, *a ? a : "(the end)");
	printf("# %s: %.*s\n", bt, *b ? (int)strcspn(b, "\n") : 9, *b ? b : "(the end)");
}

static int same_text(struct run *x, struct buf *a, struct buf *b, const char *at, const char *bt,
		     const char *what)
{
	if (a->len == b->len && (a->len == 0 || memcmp(a->data, b->data, a->len) == 0))
		return 0;
	if (!x->play->quiet && buf_append_u8(a, 0) == 0 && buf_append_u8(b, 0) == 0)
		show_difference((char *)a->data, (char *)b->data, at, bt);
	return fail(x, "%s", what);
}

static int compare(struct run *x)
{
	CLEANUP(buf_done) struct buf a = BUF_INIT;
	CLEANUP(buf_done) struct buf b = BUF_INIT;
	int r = side_describe(&x->a, &a, x->err);

	if (r < 0) /* what the directory under test cannot show, the reference can */
		return fail(x, "%s", x->err->msg);
	r = side_describe(&x->b, &b, x->err);
	if (r < 0)
		return r == -EBADMSG ? -EIO : r;
	return same_text(x, &a, &b, "under test", "reference ", "the directories differ");
}

static int digest(struct run *x, struct side *s, uint64_t *ret)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	int r = side_describe(s, &text, x->err);

	if (r == 0)
		*ret = hash_bytes(14695981039346656037u, text.data, text.len);
	return r;
}

/* --- kills ----------------------------------------------------------------------------------- */

static int note_state(struct run *x)
{
	uint64_t d = 0;
	int r;

	if (!x->watching)
		return 0;
	r = digest(x, &x->b, &d);
	return r < 0 ? r : buf_append(&x->digests, &d, sizeof(d));
}

/* From here on a kill loses nothing older than operation `at`. */
static int checkpoint(struct run *x, size_t at)
{
	int r;

	buf_reset(&x->digests);
	x->torn = false;
	x->since = at;
	x->watching = x->play->hook && script_kills_before_sync(x->script, at);
	if (!x->watching)
		return 0;
	r = save(x, "checkpoint");
	return r < 0 ? r : note_state(x);
}

/* The reference goes back to how it was `n` operations after the checkpoint. */
static int rewind_reference(struct run *x, size_t n)
{
	struct outcome ignored;
	size_t i;
	int r = restore(x, "checkpoint");

	for (i = 0; r == 0 && i < n; i++)
		side_do(&x->b, &x->script->ops[x->since + i], &ignored);
	side_close_slots(&x->b);
	return r;
}

static int find_state(struct run *x, size_t *ret)
{
	size_t n = x->digests.len / sizeof(uint64_t), i;
	uint64_t have = 0, want;
	int r = digest(x, &x->a, &have);

	if (r < 0)
		return fail(x, "after a kill: %s", x->err->msg);
	for (i = n; i-- > 0;) {
		memcpy(&want, x->digests.data + i * sizeof(want), sizeof(want));
		if (want == have) {
			*ret = i;
			return 0;
		}
	}
	r = compare(x);
	return r < 0 ? fail(x, "what a kill left is no state that was there since the sync") : 0;
}

static int do_kill(struct run *x, size_t at)
{
	size_t n = 0, last = x->digests.len / sizeof(uint64_t) - 1;
	int r;

	if (x->torn && fsync(x->a.dir) != 0)
		return fail(x, "fsync failed with %s", strerrorname_np(errno));
	side_close(&x->a);
	side_close_slots(&x->b);
	r = hook(x, "kill", "");
	if (r == 0)
		r = side_open(&x->a, x->dir);
	if (r < 0)
		return fail(x, "after a kill: %s",
			    x->err->code ? x->err->msg : strerrorname_np(-r));
	r = find_state(x, &n);
	if (r < 0)
		return r;
	if (x->torn && n != last)
		return fail(x, "a kill lost what was synced");
	x->play->kills++;
	x->play->lost += n != last;
	if (n != last)
		r = rewind_reference(x, n);
	return r < 0 ? r : checkpoint(x, at + 1);
}

/* --- states ---------------------------------------------------------------------------------- */

static struct saved *saved_by_name(struct run *x, const char *name)
{
	size_t i;

	for (i = 0; i < x->n_saved; i++)
		if (strcmp(x->saved[i].name, name) == 0)
			return &x->saved[i];
	return NULL;
}

static int do_snapshot(struct run *x, const char *name)
{
	struct saved *s = &x->saved[x->n_saved];
	int r;

	if (x->n_saved == SNAPSHOTS_MAX || saved_by_name(x, name))
		return 0;
	r = hook(x, "snapshot", name);
	if (r == 0)
		r = save(x, name);
	if (r == 0)
		r = side_describe_inodes(&x->a, &s->inodes, x->err);
	snprintf(s->name, sizeof(s->name), "%.60s", name);
	x->n_saved++;
	return r;
}

static int same_inodes(struct run *x, struct buf *before, const char *when)
{
	CLEANUP(buf_done) struct buf now = BUF_INIT;
	CLEANUP(buf_done) struct buf was = BUF_INIT;
	int r = side_describe_inodes(&x->a, &now, x->err);

	if (r == 0)
		r = buf_append(&was, before->data, before->len);
	if (r < 0)
		return fail(x, "%s: %s", when, x->err->msg);
	return same_text(x, &now, &was, "now   ", "before", when);
}

/* The slots still hold what they held: files that changed or are gone live on while they are open. */
static int do_rollback(struct run *x, const char *name)
{
	CLEANUP(buf_done) struct buf before = BUF_INIT;
	CLEANUP(buf_done) struct buf after = BUF_INIT;
	struct saved *s = saved_by_name(x, name);
	int r;

	if (!s)
		return 0; /* its snapshot was left out of the script */
	if (x->play->rollback_closes)
		side_close(&x->a);
	r = side_describe_slots(&x->a, &before);
	if (r == 0)
		r = hook(x, "rollback", name);
	if (r == 0 && x->play->rollback_closes)
		r = side_open(&x->a, x->dir);
	if (r == 0)
		r = side_describe_slots(&x->a, &after);
	if (r < 0)
		return r;
	r = same_text(x, &after, &before, "now   ", "before",
		      "an open file changed its bytes with a rollback");
	side_close_slots(&x->a);
	side_close_slots(&x->b);
	if (r == 0)
		r = restore(x, name);
	return r < 0 ? r : same_inodes(x, &s->inodes, "a rollback changed inode numbers");
}

static int do_remount(struct run *x)
{
	CLEANUP(buf_done) struct buf before = BUF_INIT;
	int r = side_describe_inodes(&x->a, &before, x->err);

	side_close(&x->a);
	side_close_slots(&x->b);
	if (r == 0)
		r = hook(x, "remount", "");
	if (r < 0)
		return r;
	r = side_open(&x->a, x->dir);
	if (r < 0)
		return fail(x, "after a remount: %s", strerrorname_np(-r));
	return same_inodes(x, &before, "a remount changed inode numbers");
}

static int do_state(struct run *x, const struct op *op, size_t at)
{
	int r = 0;

	if (!x->play->hook)
		return 0;
	/* What a mapping wrote is the kernel's until somebody asks for it. */
	if (syncfs(x->a.dir) != 0)
		return fail(x, "syncfs failed with %s", strerrorname_np(errno));
	switch (op->kind) {
	case OP_KILL:
		r = do_kill(x, at);
		return r < 0 ? r : compare(x);
	case OP_SYNC:
		side_close_slots(&x->a);
		side_close_slots(&x->b);
		if (fsync(x->a.dir) != 0)
			r = fail(x, "fsync failed with %s", strerrorname_np(errno));
		break;
	case OP_SNAPSHOT:
		r = do_snapshot(x, op->path[0]);
		break;
	case OP_ROLLBACK:
		r = do_rollback(x, op->path[0]);
		break;
	default:
		r = do_remount(x);
	}
	if (r == 0)
		r = compare(x);
	return r < 0 ? r : checkpoint(x, at + 1);
}

/* --- running --------------------------------------------------------------------------------- */

static int do_op(struct run *x, const struct op *op)
{
	struct outcome a, b;

	side_do(&x->a, op, &a);
	side_do(&x->b, op, &b);
	if (op->kind == OP_PAUSE)
		usleep((unsigned)op->n[0] * 1000);
	x->play->done += b.errnum == 0;
	x->play->failed += b.errnum != 0;
	if (outcome_equal(&a, &b)) {
		x->torn |= !op_is_atomic(op);
		return note_state(x);
	}
	if (!x->play->quiet) {
		printf("# under test: ");
		outcome_print(&a, stdout);
		printf("\n# reference : ");
		outcome_print(&b, stdout);
		printf("\n");
	}
	return fail(x, "an operation ended differently");
}

static int run_ops(struct run *x, size_t *ret_at)
{
	size_t i;
	int r = checkpoint(x, 0);

	for (i = 0; r == 0 && i < x->script->n; i++) {
		const struct op *op = &x->script->ops[i];

		*ret_at = i + 1;
		r = op->kind >= OP_SYNC ? do_state(x, op, i) : do_op(x, op);
		if (r == 0 && (i + 1) % x->play->every == 0)
			r = compare(x);
		if (r < 0 && !x->play->quiet) {
			printf("# at operation %zu: ", i + 1);
			op_print(op, stdout);
		}
	}
	return r < 0 ? r : compare(x);
}

static int begin(struct run *x)
{
	int r;

	snprintf(x->dir, sizeof(x->dir), "%s/model", x->play->dir);
	snprintf(x->ref, sizeof(x->ref), "%s/model", x->play->ref);
	if ((mkdir(x->dir, 0755) != 0 && errno != EEXIST) ||
	    (mkdir(x->ref, 0755) != 0 && errno != EEXIST))
		return err_sys(x->err, "cannot use '%s' and '%s'", x->play->dir, x->play->ref);
	r = clear_dir(x, x->dir);
	if (r == 0)
		r = clear_dir(x, x->ref);
	if (r == 0 && (chmod(x->dir, 0755) != 0 || chmod(x->ref, 0755) != 0))
		return err_sys(x->err, "chmod");
	if (r == 0)
		r = side_open(&x->a, x->dir);
	if (r == 0)
		r = side_open(&x->b, x->ref);
	if (r == 0 && fsync(x->a.dir) != 0)
		r = -errno;
	return r < 0 && !x->err->code ? err_set(x->err, r, "cannot use '%s'", x->dir) : r;
}

static void end(struct run *x)
{
	const char *rm[] = { "rm", "-rf", NULL, NULL };
	struct err ignored = { 0 };
	size_t i;

	x->err = &ignored;
	side_close(&x->a);
	side_close(&x->b);
	for (i = 0; i < x->n_saved; i++) {
		rm[2] = saved_path(x, x->saved[i].name);
		IGNORE_RESULT(spawn(x, rm), "only leftovers");
		buf_done(&x->saved[i].inodes);
	}
	rm[2] = saved_path(x, "checkpoint");
	IGNORE_RESULT(spawn(x, rm), "only leftovers");
	buf_done(&x->digests);
}

int play_script(struct play *p, const struct script *s, size_t *ret_at, struct err *err)
{
	AUTO_FREE struct run *x = calloc(1, sizeof(*x));
	int r;

	*err = (struct err){ 0 };
	*ret_at = 0;
	if (!x)
		return err_set(err, -ENOMEM, "out of memory");
	x->play = p;
	x->script = s;
	x->err = err;
	x->a.dir = x->b.dir = -1;
	p->runs++;
	p->done = p->failed = p->kills = p->lost = 0;
	r = begin(x);
	if (r == 0)
		r = run_ops(x, ret_at);
	end(x);
	return r;
}

/* --- shrinking -------------------------------------------------------------------------------- */

static bool fails_without(struct play *p, const struct script *s, size_t from, size_t n,
			  struct script *ret, size_t *ret_at, struct err *err)
{
	size_t i;

	ret->n = 0;
	for (i = 0; i < s->n; i++)
		if ((i < from || i >= from + n) && script_add(ret, &s->ops[i]) < 0)
			return false;
	return play_script(p, ret, ret_at, err) == -EBADMSG;
}

int play_shrink(struct play *p, struct script *s, unsigned tries, struct err *err)
{
	CLEANUP(script_done) struct script shorter = { 0 };
	bool was_quiet = p->quiet;
	size_t every = p->every, step, from, at;

	p->quiet = true;
	p->every = 1;
	for (step = s->n / 2; step >= 1 && tries; step = step == 1 ? 0 : (step + 1) / 2) {
		for (from = 0; from < s->n && tries; tries--) {
			if (fails_without(p, s, from, step, &shorter, &at, err)) {
				struct script swap = *s;

				*s = shorter;
				shorter = swap;
				s->n = at < s->n ? at : s->n; /* what comes after is not needed */
			} else {
				from += step;
			}
		}
	}
	p->quiet = was_quiet;
	p->every = every;
	return 0;
}
