/*
 * A depot as a program: test-registry.py asks it for one thing at a time.
 *
 * usage: depot-client URL COMMAND [WORD...]; SNAP_TEST_RATE and SNAP_TEST_PLAIN=1 configure it.  A failure
 * is a line with the name of its code and the sentence, and status 1.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fdio.h"
#include "base/log.h"
#include "remote/depot.h"

static volatile sig_atomic_t interrupted;

static void on_interrupt(int sig)
{
	interrupted = 1;
}

static int count(uint64_t bytes, void *ctx)
{
	return interrupted ? -ECANCELED : 0;
}

static const struct depot_watch watch = { .moved = count };

static int parse(const char *text, struct digest *ret, struct err *err)
{
	return digest_parse(text, ret) < 0 ? err_set(err, -EINVAL, "'%s' is no digest", text) : 0;
}

static int do_has(struct depot *d, char **words, struct err *err)
{
	struct digest blob;
	uint64_t size = 0;
	int r = parse(words[0], &blob, err);

	if (r == 0)
		r = d->ops->has_blob(d, &blob, &size, err);
	if (r == 0)
		puts("no");
	if (r > 0)
		printf("%" PRIu64 "\n", size);
	return r;
}

/* The digest of a file by reading it: blobs of tests are small. */
static int do_put(struct depot *d, char **words, struct err *err)
{
	CLEANUP(buf_done) struct buf bytes = BUF_INIT;
	AUTO_CLOSE int fd = open(words[0], O_RDONLY | O_CLOEXEC);
	char text[DIGEST_TEXT_SIZE];
	struct digest blob;
	int r;

	r = fdio_read_file(AT_FDCWD, words[0], (size_t)1 << 30, &bytes, err);
	if (r < 0)
		return r;
	blob = digest_of(bytes.data, bytes.len);
	if (words[1]) /* another than it has, as a damaged file would */
		r = parse(words[1], &blob, err);
	if (r == 0)
		r = d->ops->put_blob(d, &blob, &(struct depot_bytes){ .fd = fd, .size = bytes.len },
				     &watch, err);
	if (r == 0)
		printf("%s\n", digest_text(&blob, text));
	return r;
}

/* Since this program began: what getrusage() says includes the memory of the one that started it. */
static long peak_kib(void)
{
	CLEANUP(buf_done) struct buf status = BUF_INIT;
	const char *line = NULL;

	if (fdio_read_file(AT_FDCWD, "/proc/self/status", 65536, &status, NULL) == 0 &&
	    buf_str(&status))
		line = strstr(buf_str(&status), "VmHWM:");
	return line ? atol(line + 6) : -1;
}

static int do_get(struct depot *d, char **words, struct err *err)
{
	AUTO_CLOSE int fd = open(words[2], O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	struct digest blob;
	int r = parse(words[0], &blob, err);

	if (r == 0)
		r = depot_fetch(d, &blob, strtoull(words[1], NULL, 10), fd, &watch, err);
	fprintf(stderr, "peak %ld\n", peak_kib());
	return r;
}

static int print(const void *data, size_t len, void *ctx)
{
	return fwrite(data, 1, len, stdout) == len ? 0 : -EIO;
}

static int do_range(struct depot *d, char **words, struct err *err)
{
	struct digest blob;
	int r = parse(words[0], &blob, err);

	if (r == 0)
		r = d->ops->get_blob(d, &blob, strtoull(words[1], NULL, 10),
				     strtoull(words[2], NULL, 10), print, NULL, &watch, err);
	return r;
}

static int do_mount(struct depot *d, char **words, struct err *err)
{
	struct digest blob;
	int r = parse(words[0], &blob, err);

	if (r == 0)
		r = d->ops->mount_blob(d, &blob, words[1], err);
	if (r >= 0)
		printf("%d\n", r);
	return r;
}

/* TAG or "-", file, and what the tag must name now ("none", a digest). */
static int do_tag(struct depot *d, char **words, struct err *err)
{
	CLEANUP(buf_done) struct buf bytes = BUF_INIT;
	struct digest expect = { 0 };
	int r;

	r = fdio_read_file(AT_FDCWD, words[1], DEPOT_MANIFEST_MAX + 1, &bytes, err);
	if (r == 0 && words[2] && strcmp(words[2], "none") != 0)
		r = parse(words[2], &expect, err);
	if (r < 0)
		return r;
	return d->ops->put_manifest(d, strcmp(words[0], "-") == 0 ? NULL : words[0],
				    words[2] ? &expect : NULL, DEPOT_MANIFEST_TYPE, bytes.data,
				    bytes.len, err);
}

static int do_manifest(struct depot *d, char **words, struct err *err)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT;
	int r = d->ops->get_manifest(d, words[0], &out, err);

	return r < 0 ? r : print(out.data, out.len, NULL);
}

static int print_tag(const char *tag, void *ctx)
{
	puts(tag);
	return 0;
}

static int do_tags(struct depot *d, char **words, struct err *err)
{
	return d->ops->list_tags(d, print_tag, NULL, err);
}

static int do_delete(struct depot *d, char **words, struct err *err)
{
	return d->ops->delete_manifest(d, words[0], err);
}

static const struct {
	const char *name;
	int words;
	int (*fn)(struct depot *d, char **words, struct err *err);
} commands[] = {
	{ "has", 1, do_has },           { "put", 1, do_put },     { "get", 3, do_get },
	{ "range", 3, do_range },       { "mount", 2, do_mount }, { "tag", 2, do_tag },
	{ "manifest", 1, do_manifest }, { "tags", 0, do_tags },   { "delete", 1, do_delete },
};

static int run(int argc, char **argv, struct err *err)
{
	CLEANUP(depot_close_p) struct depot *d = NULL;
	const char *rate = getenv("SNAP_TEST_RATE");
	const struct depot_config config = {
		.rate = rate ? strtoull(rate, NULL, 10) : 0,
		.plain_http = getenv("SNAP_TEST_PLAIN") != NULL,
	};
	int r;

	if (argc < 3)
		return err_set(err, -EINVAL, "usage: depot-client URL COMMAND [WORD...]");
	r = depot_open(argv[1], &config, &d, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < ARRAY_LEN(commands); i++)
		if (strcmp(argv[2], commands[i].name) == 0 && argc - 3 >= commands[i].words)
			return commands[i].fn(d, argv + 3, err);
	return err_set(err, -EINVAL, "no such command");
}

int main(int argc, char **argv)
{
	struct err err = { 0 };
	int r;

	signal(SIGINT, on_interrupt);
	r = run(argc, argv, &err);
	if (r >= 0)
		return 0;
	fprintf(stderr, "%s: %s\n", strerrorname_np(-r), err.code == r ? err.msg : "");
	return 1;
}
