#include "snapshot/apply/journal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/fdio.h"
#include "tests/lib/grove.h"

/* --- in the place of the original (--wrap) ------------------------------------------------ */

static bool listing_fails;

struct dirent *__real_readdir64(DIR *dir);
struct dirent *__wrap_readdir64(DIR *dir);

struct dirent *__wrap_readdir64(DIR *dir)
{
	if (!listing_fails)
		return __real_readdir64(dir);
	errno = EIO;
	return NULL;
}

/* --- a journal ---------------------------------------------------------------------------- */

struct desk {
	struct grove g;
	struct journal j;
	int dir; /* where journals are */
};

static struct desk desk_new(const char *name)
{
	struct desk d = { .g = grove_new(name), .j = { .state = JOURNAL_STAGING, .ino = 7 } };
	struct object_id now, wanted;
	struct err err = { 0 };
	char path[4096];

	grove_text(&d.g, "file", "new");
	wanted = grove_capture(&d.g);
	grove_text(&d.g, "file", "newer");
	now = grove_capture(&d.g);
	d.j.plan = grove_plan(&d.g, &now, &wanted);
	d.j.project = strdup(d.g.path);
	CHECK_OK(journal_name(&d.j, &err), &err);
	CHECK_OK(journal_put(d.g.s, &d.j, &err), &err);
	CHECK((size_t)snprintf(path, sizeof(path), "%s/" JOURNAL_DIR, d.g.store_path) <
	      sizeof(path));
	d.dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(d.dir >= 0);
	return d;
}

static void desk_done(struct desk *d)
{
	listing_fails = false;
	cleanup_close(&d->dir);
	journal_done(&d->j);
	grove_done(&d->g);
}

static void read_bytes(struct desk *d, struct buf *ret)
{
	struct err err = { 0 };

	buf_reset(ret);
	CHECK_OK(fdio_read_file(d->dir, d->j.id, (size_t)1 << 20, ret, &err), &err);
}

static void write_bytes(struct desk *d, const void *data, size_t len)
{
	struct err err = { 0 };

	CHECK_OK(fdio_replace_file(d->dir, d->j.id, data, len, 0600, &err), &err);
}

struct seen {
	unsigned n;
	enum journal_state state;
};

static int see(struct journal *j, void *ctx, struct err *err)
{
	struct seen *seen = ctx;

	(void)err;
	seen->n++;
	seen->state = j->state;
	return 0;
}

static int each(struct desk *d, const char *project, struct seen *ret, struct err *err)
{
	*ret = (struct seen){ 0 };
	return journal_each(d->g.s, project, see, ret, err);
}

/* --- promises ----------------------------------------------------------------------------- */

TEST(a_journal_is_seen_with_its_state_until_it_is_removed)
{
	CLEANUP(desk_done) struct desk d = desk_new("seen");
	struct err err = { 0 };
	struct seen seen;

	CHECK_OK(each(&d, NULL, &seen, &err), &err);
	CHECK_EQ(seen.n, 1);
	CHECK_EQ(seen.state, JOURNAL_STAGING);
	CHECK_OK(journal_set_state(d.g.s, &d.j, JOURNAL_ACTING, &err), &err);
	CHECK_OK(each(&d, d.g.path, &seen, &err), &err);
	CHECK_EQ(seen.state, JOURNAL_ACTING);
	CHECK_OK(each(&d, "/somewhere/else", &seen, &err), &err);
	CHECK_EQ(seen.n, 0);
	CHECK_OK(journal_remove(d.g.s, &d.j, &err), &err);
	CHECK_OK(each(&d, NULL, &seen, &err), &err);
	CHECK_EQ(seen.n, 0);
}

/* The state alone is not covered by the hash: it changes in place. */
TEST(a_journal_of_which_any_byte_is_another_one_is_refused_by_name)
{
	CLEANUP(desk_done) struct desk d = desk_new("bytes");
	CLEANUP(buf_done) struct buf bytes = BUF_INIT;
	unsigned taken = 0;
	struct seen seen;

	read_bytes(&d, &bytes);
	for (size_t i = 0; i < bytes.len; i++) {
		struct err err = { 0 };
		int r;

		bytes.data[i] ^= 0x80;
		write_bytes(&d, bytes.data, bytes.len);
		bytes.data[i] ^= 0x80;
		r = each(&d, NULL, &seen, &err);
		taken += r == 0;
		if (r == 0)
			continue;
		CHECK_EQ(r, -EBADMSG);
		CHECK_HAS(err.msg, d.j.id);
	}
	CHECK_EQ(taken, 0);
}

TEST(a_journal_that_is_cut_short_is_refused)
{
	CLEANUP(desk_done) struct desk d = desk_new("short");
	CLEANUP(buf_done) struct buf bytes = BUF_INIT;
	struct seen seen;

	read_bytes(&d, &bytes);
	for (size_t len = 0; len < bytes.len; len++) {
		struct err err = { 0 };

		write_bytes(&d, bytes.data, len);
		CHECK_EQ(each(&d, NULL, &seen, &err), -EBADMSG);
		CHECK_EQ(seen.n, 0);
	}
}

/* What cannot be read may be about any directory; it is about the one that holds its stage. */
TEST(a_damaged_journal_is_the_business_of_the_directory_that_holds_its_stage)
{
	CLEANUP(desk_done) struct desk d = desk_new("whose");
	char stage[JOURNAL_STAGE_SIZE];
	struct err err = { 0 };
	struct seen seen;

	write_bytes(&d, "nonsense", 8);
	CHECK_OK(each(&d, d.g.path, &seen, &err), &err);
	CHECK_EQ(mkdirat(d.g.fd, journal_stage(&d.j, stage), 0700), 0);
	CHECK_EQ(each(&d, d.g.path, &seen, &err), -EBADMSG);
	CHECK_HAS(err.msg, "does not begin like one");
	CHECK_EQ(unlinkat(d.g.fd, stage, AT_REMOVEDIR), 0);
}

/* Else the act of a dead process would be taken for one that never was. */
TEST(journals_that_cannot_be_listed_are_not_taken_for_none)
{
	CLEANUP(desk_done) struct desk d = desk_new("listing");
	struct err err = { 0 };
	struct seen seen;

	listing_fails = true;
	CHECK_EQ(each(&d, NULL, &seen, &err), -EIO);
	CHECK_HAS(err.msg, "listing journals");
}

TEST(the_state_of_a_journal_that_is_gone_cannot_change)
{
	CLEANUP(desk_done) struct desk d = desk_new("gone");
	struct err err = { 0 };

	CHECK_OK(journal_remove(d.g.s, &d.j, &err), &err);
	CHECK_EQ(journal_set_state(d.g.s, &d.j, JOURNAL_DONE, &err), -ENOENT);
	CHECK_HAS(err.msg, d.j.id);
	CHECK_EQ(d.j.state, JOURNAL_STAGING);
	CHECK_OK(journal_remove(d.g.s, &d.j, &err), &err);
}

TEST_MAIN("journal")
