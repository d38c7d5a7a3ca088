/*
 * A line for each verdict: "good ID".  The first line says which search it is of.  A last line without
 * an end was cut by a crash; it is cut off, and that state is tried again.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fdio.h"
#include "base/sha256.h"
#include "base/sys.h"
#include "base/text.h"
#include "engine/experiment/bisect-i.h"

#define LOG_MAX  ((size_t)16 << 20)
#define HEAD_MAX 256

static const char *const words[] = {
	[ENGINE_UNTRIED] = "untried",
	[ENGINE_GOOD] = "good",
	[ENGINE_BAD] = "bad",
	[ENGINE_SKIPPED] = "skip",
};

/* "# snap bisect GOOD BAD COMMAND", the last as its SHA-256. */
static void write_head(const struct bisecting *b, char text[HEAD_MAX])
{
	const char *const *argv = b->options->run->argv;
	const struct engine_bisect *res = &b->result;
	char hex[SHA256_HEX_SIZE];
	struct sha256 sum;

	sha256_begin(&sum);
	for (size_t i = 0; argv[i]; i++)
		sha256_add(&sum, argv[i], strlen(argv[i]) + 1);
	snprintf(text, HEAD_MAX, "# snap bisect %s %s %s\n", res->list[0].id,
		 res->list[res->n - 1].id, sha256_end_hex(&sum, hex));
}

static enum engine_verdict read_word(const char *line, size_t len)
{
	for (int v = ENGINE_GOOD; v <= ENGINE_SKIPPED; v++)
		if (strlen(words[v]) == len && memcmp(words[v], line, len) == 0)
			return (enum engine_verdict)v;
	return ENGINE_UNTRIED;
}

static void take_line(struct bisecting *b, const char *line, size_t len)
{
	const char *space = memchr(line, ' ', len);
	const size_t word = space ? (size_t)(space - line) : len;

	for (size_t i = 1; space && i + 1 < b->result.n; i++) {
		struct engine_bisect_state *s = &b->result.list[i];

		if (strlen(s->id) == len - word - 1 &&
		    memcmp(s->id, space + 1, len - word - 1) == 0)
			s->verdict = read_word(line, word);
	}
}

/* The length of all whole lines. */
static size_t take_lines(struct bisecting *b, const struct buf *text)
{
	const char *at = (const char *)text->data, *end;
	size_t left = text->len;

	for (; left > 0 && (end = memchr(at, '\n', left));
	     left -= (size_t)(end + 1 - at), at = end + 1)
		take_line(b, at, (size_t)(end - at));
	return text->len - left;
}

static int take_over(struct bisecting *b, const char *head, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	const char *path = b->options->log;
	const size_t len = strlen(head);
	size_t whole;
	int r = fdio_read_file(AT_FDCWD, path, LOG_MAX, &text, err);

	if (r < 0)
		return r;
	if (text.len < len &&
	    memcmp(head, text.len > 0 ? text.data : (const void *)"", text.len) == 0)
		whole = 0;
	else if (text.len < len || memcmp(text.data, head, len) != 0)
		return err_set(err, -EINVAL,
			       "'%s' is not the log of a bisect of these states with this command",
			       path);
	else
		whole = take_lines(b, &text);
	if (ftruncate(b->log_fd, (off_t)whole) < 0)
		return err_sys(err, "shortening '%s'", path);
	r = whole == 0 ? fdio_write(b->log_fd, head, len) : 0;
	return r < 0 ? err_set(err, r, "writing '%s': %s", path, strerror(-r)) : 0;
}

int bisect_open_log(struct bisecting *b, struct err *err)
{
	char head[HEAD_MAX];

	if (!b->options->log)
		return 0;
	b->log_fd = open(b->options->log, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0666);
	if (b->log_fd < 0)
		return err_sys(err, "opening '%s'", b->options->log);
	write_head(b, head);
	return take_over(b, head, err);
}

int bisect_write_log(struct bisecting *b, const struct engine_bisect_state *s, struct err *err)
{
	AUTO_FREE char *line = NULL;
	int r;

	if (b->log_fd < 0)
		return 0;
	line = text_format("%s %s\n", words[s->verdict], s->id);
	if (!line)
		return err_nomem(err);
	r = fdio_write(b->log_fd, line, strlen(line));
	if (r < 0)
		return err_set(err, r, "writing '%s': %s", b->options->log, strerror(-r));
	/* A pipe or a terminal has nothing to sync. */
	r = sys_sync_data(b->log_fd);
	return r < 0 && r != -EINVAL
		   ? err_set(err, r, "writing '%s': %s", b->options->log, strerror(-r))
		   : 0;
}
