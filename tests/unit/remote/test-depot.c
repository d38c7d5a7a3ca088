#include "tests/lib/test.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fdio.h"
#include "base/hex.h"
#include "remote/depot.h"
#include "remote/signature.h"

static struct depot *open_depot(const char *name)
{
	char url[512];
	struct depot *d = NULL;
	struct err err = { 0 };

	snprintf(url, sizeof(url), "dir:%s", test_path(name));
	CHECK_OK(depot_open(url, NULL, &d, &err), &err);
	return d;
}

static const char *blob_path(const char *depot, const struct digest *blob)
{
	static char path[512];
	char hex[SHA256_HEX_SIZE];

	snprintf(path, sizeof(path), "%s/blobs/sha256/%s", test_path(depot),
		 hex_encode(blob->b, sizeof(blob->b), hex));
	return path;
}

static int open_temp(const char *name)
{
	const int fd = open(test_path(name), O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	CHECK(fd >= 0);
	return fd;
}

static uint64_t size_of(int fd)
{
	struct stat st;

	CHECK_EQ(fstat(fd, &st), 0);
	return (uint64_t)st.st_size;
}

TEST(what_is_no_address_is_refused_with_a_sentence)
{
	struct depot *d = NULL;
	struct err err = { 0 };

	CHECK_EQ(depot_open("ftp://x", NULL, &d, &err), -EINVAL);
	CHECK_HAS(err.msg, "'ftp://x' is not the address of a remote");
	CHECK_EQ(depot_open("dir:relative", NULL, &d, &err), -EINVAL);
	CHECK(!d);
}

TEST(a_depot_that_is_not_there_has_nothing)
{
	CLEANUP(depot_close_p) struct depot *d = open_depot("nothing");
	CLEANUP(buf_done) struct buf out = BUF_INIT;
	const struct digest blob = digest_of("x", 1);
	struct err err = { 0 };
	uint64_t size;

	CHECK_EQ(d->ops->has_blob(d, &blob, &size, &err), 0);
	CHECK_EQ(depot_get(d, &blob, 10, &out, NULL, &err), -ENOENT);
	CHECK_EQ(d->ops->get_manifest(d, "main", &out, &err), -ENOENT);
	CHECK_EQ(d->ops->delete_manifest(d, "main", &err), -ENOENT);
	CHECK_EQ(access(test_path("nothing"), F_OK), -1);
}

TEST(a_blob_comes_back_as_it_was_and_a_wrong_one_does_not)
{
	CLEANUP(depot_close_p) struct depot *d = open_depot("blob");
	CLEANUP(buf_done) struct buf out = BUF_INIT;
	struct digest blob;
	struct err err = { 0 };
	uint64_t size = 0;

	CHECK_OK(depot_put(d, "hello", 5, &blob, &err), &err);
	CHECK_EQ(d->ops->has_blob(d, &blob, &size, &err), 1);
	CHECK_EQ(size, 5);
	CHECK_OK(depot_get(d, &blob, 5, &out, NULL, &err), &err);
	CHECK_MEM(out.data, out.len, "hello", 5);
	buf_reset(&out);
	CHECK_EQ(depot_get(d, &blob, 4, &out, NULL, &err), -EFBIG);
	CHECK_OK(fdio_swap_file(AT_FDCWD, blob_path("blob", &blob), "hallo", 5, 0600, &err), &err);
	CHECK_EQ(depot_get(d, &blob, 5, &out, NULL, &err), -EBADMSG);
	CHECK_HAS(err.msg, "gave wrong bytes for blob sha256:");
	CHECK_EQ(out.len, 0);
}

TEST(a_blob_whose_bytes_are_not_what_its_name_says_is_not_stored)
{
	CLEANUP(depot_close_p) struct depot *d = open_depot("lie");
	const struct depot_bytes from = { .fd = -1, .data = "hallo", .size = 5 };
	const struct digest blob = digest_of("hello", 5);
	struct err err = { 0 };
	uint64_t size;

	CHECK_EQ(d->ops->put_blob(d, &blob, &from, NULL, &err), -EBADMSG);
	CHECK_EQ(d->ops->has_blob(d, &blob, &size, &err), 0);
}

static int count_bytes(uint64_t bytes, void *ctx)
{
	*(uint64_t *)ctx += bytes;
	return 0;
}

/* Two containers count processes alike: who pushes the same blob beside us may have our number. */
TEST(a_blob_is_written_to_no_file_that_was_there)
{
	CLEANUP(depot_close_p) struct depot *d = open_depot("beside");
	const struct digest blob = digest_of("hello", 5);
	char hex[SHA256_HEX_SIZE], path[600];
	struct err err = { 0 };
	AUTO_CLOSE int fd = -1;
	struct digest other;

	CHECK_OK(depot_put(d, "other", 5, &other, &err), &err);
	snprintf(path, sizeof(path), "%s/blobs/sha256/.tmp-%s-%ld", test_path("beside"),
		 hex_encode(blob.b, sizeof(blob.b), hex), (long)getpid());
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	CHECK_EQ(fdio_write(fd, "hel", 3), 0);
	CHECK_OK(depot_put(d, "hello", 5, &other, &err), &err);
	CHECK_EQ(size_of(fd), 3);
	CHECK_EQ(access(path, F_OK), 0);
}

TEST(a_fetch_goes_on_where_the_last_one_ended)
{
	CLEANUP(depot_close_p) struct depot *d = open_depot("resume");
	AUTO_CLOSE int fd = open_temp("resume.part");
	uint64_t moved = 0;
	const struct depot_watch watch = { .moved = count_bytes, .ctx = &moved };
	struct digest blob;
	struct err err = { 0 };

	CHECK_OK(depot_put(d, "hello world", 11, &blob, &err), &err);
	CHECK_EQ(fdio_write(fd, "hello", 5), 0);
	CHECK_OK(depot_fetch(d, &blob, 11, fd, &watch, &err), &err);
	CHECK_EQ(moved, 6);
	CHECK_EQ(size_of(fd), 11);
}

TEST(a_beginning_that_is_wrong_is_fetched_again_from_the_start)
{
	CLEANUP(depot_close_p) struct depot *d = open_depot("again");
	AUTO_CLOSE int fd = open_temp("again.part");
	struct digest blob;
	struct err err = { 0 };
	char have[11];

	CHECK_OK(depot_put(d, "hello world", 11, &blob, &err), &err);
	CHECK_EQ(fdio_write(fd, "jello", 5), 0);
	CHECK_OK(depot_fetch(d, &blob, 11, fd, NULL, &err), &err);
	CHECK_EQ(fdio_pread(fd, have, 11, 0), 11);
	CHECK_MEM(have, 11, "hello world", 11);
}

TEST(a_blob_of_another_length_than_its_manifest_says_leaves_nothing)
{
	CLEANUP(depot_close_p) struct depot *d = open_depot("length");
	AUTO_CLOSE int fd = open_temp("length.part");
	struct digest blob;
	struct err err = { 0 };

	CHECK_OK(depot_put(d, "hello", 5, &blob, &err), &err);
	CHECK_EQ(depot_fetch(d, &blob, 4, fd, NULL, &err), -EBADMSG);
	CHECK_HAS(err.msg, "is longer than its manifest says");
	CHECK_EQ(size_of(fd), 0);
	CHECK_EQ(depot_fetch(d, &blob, 6, fd, NULL, &err), -EBADMSG);
	CHECK_HAS(err.msg, "is shorter than its manifest says");
	CHECK_EQ(size_of(fd), 0);
}

static int cancel(uint64_t bytes, void *ctx)
{
	return -ECANCELED;
}

TEST(a_transfer_that_is_cancelled_leaves_no_blob)
{
	CLEANUP(depot_close_p) struct depot *d = open_depot("cancel");
	const struct depot_bytes from = { .fd = -1, .data = "hello", .size = 5 };
	const struct depot_watch watch = { .moved = cancel };
	const struct digest blob = digest_of("hello", 5);
	struct err err = { 0 };
	uint64_t size;

	CHECK_EQ(d->ops->put_blob(d, &blob, &from, &watch, &err), -ECANCELED);
	CHECK_EQ(d->ops->has_blob(d, &blob, &size, &err), 0);
}

static int put(struct depot *d, const char *tag, const char *text, const struct digest *expect,
	       struct err *err)
{
	return d->ops->put_manifest(d, tag, expect, DEPOT_MANIFEST_TYPE, text, strlen(text), err);
}

static int count_tag(const char *tag, void *ctx)
{
	++*(int *)ctx;
	return 0;
}

TEST(a_tag_moves_in_one_step_and_only_from_where_it_was_seen)
{
	CLEANUP(depot_close_p) struct depot *d = open_depot("tags");
	CLEANUP(buf_done) struct buf out = BUF_INIT;
	const struct digest none = { { 0 } }, one = digest_of("{\"a\":1}", 7);
	char text[DIGEST_TEXT_SIZE];
	struct err err = { 0 };
	int tags = 0;

	CHECK_OK(put(d, "main", "{\"a\":1}", &none, &err), &err);
	CHECK_EQ(put(d, "main", "{\"a\":2}", &none, &err), -ESTALE);
	CHECK_HAS(err.msg, "'main' of 'dir:");
	CHECK_OK(put(d, "main", "{\"a\":2}", &one, &err), &err);
	CHECK_OK(put(d, "other", "{\"a\":2}", NULL, &err), &err);
	CHECK_OK(d->ops->get_manifest(d, "main", &out, &err), &err);
	CHECK_MEM(out.data, out.len, "{\"a\":2}", 7);
	buf_reset(&out);
	CHECK_OK(d->ops->get_manifest(d, digest_text(&one, text), &out, &err), &err);
	CHECK_MEM(out.data, out.len, "{\"a\":1}", 7);
	CHECK_OK(d->ops->list_tags(d, count_tag, &tags, &err), &err);
	CHECK_EQ(tags, 2);
	CHECK_OK(d->ops->delete_manifest(d, "other", &err), &err);
	CHECK_EQ(d->ops->delete_manifest(d, "other", &err), -ENOENT);
}

static bool has(struct depot *d, const struct digest *blob)
{
	struct err err = { 0 };
	uint64_t size;

	return d->ops->has_blob(d, blob, &size, &err) == 1;
}

/* A manifest whose layers have these types, as text in `out`. */
static void list_layers(char *out, size_t size, const char *list, const char *const types[],
			const struct digest blobs[], size_t n)
{
	char text[DIGEST_TEXT_SIZE];
	int at = snprintf(out, size, "{\"%s\":[", list);

	for (size_t i = 0; i < n; i++)
		at += snprintf(out + at, size - (size_t)at,
			       "%s{\"mediaType\":\"%s\",\"digest\":\"%s\"}", i > 0 ? "," : "",
			       types[i], digest_text(&blobs[i], text));
	snprintf(out + at, size - (size_t)at, "]}");
}

TEST(gc_opens_manifests_alone_and_each_that_is_one)
{
	static const char *const types[] = { "application/vnd.snapcow.index.v1", "x/layer" };
	CLEANUP(depot_close_p) struct depot *d = open_depot("collect");
	CLEANUP(buf_done) struct buf large = BUF_INIT;
	const struct depot_retention what = { 0 };
	struct digest blobs[2], layer, orphan;
	struct depot_freed freed;
	struct err err = { 0 };
	char inner[512], outer[512];

	/* An index of a pack may be larger than a manifest. */
	CHECK(buf_extend(&large, DEPOT_MANIFEST_MAX + 1) != NULL);
	memset(large.data, ' ', large.len);
	CHECK_OK(depot_put(d, large.data, large.len, &blobs[0], &err), &err);
	/* A blob that one image has as a layer is the manifest of another. */
	CHECK_OK(depot_put(d, "layer", 5, &layer, &err), &err);
	CHECK_OK(depot_put(d, "orphan", 6, &orphan, &err), &err);
	list_layers(inner, sizeof(inner), "layers", &types[1], &layer, 1);
	blobs[1] = digest_of(inner, strlen(inner));
	CHECK_OK(put(d, NULL, inner, NULL, &err), &err);
	list_layers(outer, sizeof(outer), "layers", types, blobs, 2);
	CHECK_OK(put(d, "outer", outer, NULL, &err), &err);
	CHECK_OK(put(d, "inner", inner, NULL, &err), &err);
	CHECK_OK(d->ops->collect(d, &what, &freed, &err), &err);
	CHECK(has(d, &layer) && has(d, &blobs[0]) && has(d, &blobs[1]));
	CHECK(!has(d, &orphan));
}

TEST(gc_keeps_the_rest_of_an_index_that_lacks_an_image_and_stops_at_one_that_is_damaged)
{
	static const char *const types[] = { DEPOT_MANIFEST_TYPE, DEPOT_MANIFEST_TYPE };
	CLEANUP(depot_close_p) struct depot *d = open_depot("platforms");
	struct depot_retention what = { 0 };
	struct digest images[2], layer, index;
	struct depot_freed freed;
	struct err err = { 0 };
	char image[512], text[512];

	CHECK_OK(depot_put(d, "layer", 5, &layer, &err), &err);
	CHECK_OK(depot_put(d, "{}", 2, &images[0], &err), &err);
	list_layers(image, sizeof(image), "layers", types, &layer, 1);
	memcpy(strstr(image, "application"), "zpplication", 11); /* a layer, no manifest */
	CHECK_OK(depot_put(d, image, strlen(image), &images[1], &err), &err);
	list_layers(text, sizeof(text), "manifests", types, images, 2);
	CHECK_OK(depot_put(d, text, strlen(text), &index, &err), &err);
	what.keep = &index;
	what.n_keep = 1;
	CHECK_OK(fdio_swap_file(AT_FDCWD, blob_path("platforms", &images[0]), "[]", 2, 0600, &err),
		 &err);
	CHECK_EQ(d->ops->collect(d, &what, &freed, &err), -EBADMSG);
	CHECK(has(d, &layer) && has(d, &images[1]) && has(d, &index));
	CHECK_EQ(unlink(blob_path("platforms", &images[0])), 0);
	CHECK_OK(d->ops->collect(d, &what, &freed, &err), &err);
	CHECK(has(d, &layer) && has(d, &images[1]) && has(d, &index));
}

static void check_repository(const char *url, const char *want)
{
	AUTO_FREE char *have = signature_repository(url);

	CHECK_STR(have, want);
}

TEST(a_signature_names_the_whole_repository_of_a_registry)
{
	check_repository("oci://h.example/team/app", "team/app");
	check_repository("oci+http://h/team/app", "team/app");
	check_repository("localhost:5000/team/app", "team/app");
	check_repository("dir:/srv/team/app/", "app");
	check_repository("ssh://h/srv/team/app", "app");
}

TEST(a_directory_with_other_things_in_it_is_no_depot)
{
	CLEANUP(depot_close_p) struct depot *d = open_depot("taken");
	struct digest blob;
	struct err err = { 0 };

	CHECK_EQ(mkdir(test_path("taken"), 0700), 0);
	CHECK_EQ(mkdir(test_path("taken/src"), 0700), 0);
	CHECK_EQ(depot_put(d, "x", 1, &blob, &err), -EEXIST);
	CHECK_HAS(err.msg, "holds other things");
	CHECK_EQ(access(test_path("taken/blobs"), F_OK), -1);
}

enum { MAKERS = 8, ROUNDS = 64 };

static pthread_barrier_t start;

static void *make_one(void *arg)
{
	struct digest blob;
	struct err err = { 0 };

	pthread_barrier_wait(&start);
	CHECK_OK(depot_put(arg, "x", 1, &blob, &err), &err);
	return NULL;
}

TEST(several_make_one_depot_at_once)
{
	struct depot *depots[MAKERS];
	pthread_t makers[MAKERS];
	char name[32];

	CHECK_EQ(pthread_barrier_init(&start, NULL, MAKERS), 0);
	for (int round = 0; round < ROUNDS; round++) {
		snprintf(name, sizeof(name), "made-%d", round);
		for (int i = 0; i < MAKERS; i++) {
			depots[i] = open_depot(name);
			CHECK_EQ(pthread_create(&makers[i], NULL, make_one, depots[i]), 0);
		}
		for (int i = 0; i < MAKERS; i++) {
			CHECK_EQ(pthread_join(makers[i], NULL), 0);
			depot_close(depots[i]);
		}
	}
	CHECK_EQ(pthread_barrier_destroy(&start), 0);
}

TEST(tags_and_digests_have_one_spelling)
{
	struct digest d;
	char text[DIGEST_TEXT_SIZE];
	const struct digest one = digest_of("x", 1);

	CHECK(depot_tag_valid("v1.0-rc_2"));
	CHECK(!depot_tag_valid(""));
	CHECK(!depot_tag_valid(".hidden"));
	CHECK(!depot_tag_valid("a/b"));
	CHECK_EQ(digest_parse(digest_text(&one, text), &d), 0);
	CHECK(digest_equal(&d, &one));
	text[7] = 'A';
	CHECK_EQ(digest_parse(text, &d), -EINVAL);
	CHECK_EQ(digest_parse("sha256:12", &d), -EINVAL);
	CHECK_EQ(digest_parse("md5:12", &d), -EINVAL);
}

TEST_MAIN("depot")
