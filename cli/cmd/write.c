#include <errno.h>
#include <string.h>

#include "base/fdio.h"
#include "cli/show/written.h"

#define CONTENT_MAX ((size_t)1 << 30)

struct write_args {
	const char *content;
	bool executable;
};

static const struct opt write_opts[] = {
	OPT_STR(0, "content", "TEXT", struct write_args, content,
		"new content of the file (default: standard input)"),
	OPT_FLAG('x', "executable", struct write_args, executable, "make it a program"),
	OPT_END,
};
_Static_assert(sizeof(struct write_args) <= CMD_ARGS_MAX, "grow CMD_ARGS_MAX");

static int read_input(struct buf *ret, struct err *err)
{
	char piece[65536];
	ssize_t n;

	while ((n = fdio_read(STDIN_FILENO, piece, sizeof(piece))) > 0) {
		if (ret->len + (size_t)n > CONTENT_MAX)
			return err_set(err, -EFBIG, "standard input has more than %zu bytes",
				       CONTENT_MAX);
		if (buf_append(ret, piece, (size_t)n) < 0)
			return err_nomem(err);
	}
	return n < 0 ? err_wrap(err, (int)n, "reading standard input") : 0;
}

static int write_run(struct invocation *inv, struct err *err)
{
	CLEANUP(buf_done) struct buf input = BUF_INIT;
	const struct write_args *args = inv->args;
	const char *clone, *path;
	struct engine_written w;
	int r = written_split(inv->words[0], &clone, &path, err);

	if (r < 0)
		return r;
	if (!args->content)
		r = read_input(&input, err);
	if (r < 0)
		return r;
	r = engine_file_write(
	    inv->engine, clone, path, args->content ? (const void *)args->content : input.data,
	    args->content ? strlen(args->content) : input.len, args->executable, &w, err);
	return r < 0 ? r : written_print(inv, clone, path, &w, err);
}

const struct command cmd_write = {
	.name = "write",
	.group = "Clones",
	.rare = true,
	.summary = "write a file of a clone",
	.words = "CLONE:PATH",
	.min_words = 1,
	.max_words = 1,
	.opts = write_opts,
	.details =
	    "PATH counts from the top of the project.  Directories are made as needed, a file "
	    "that is there keeps its mode, and symlinks are not followed.\n",
	.examples = "write fix:notes.txt --content 'try the other parser'\n",
	.run = write_run,
};
