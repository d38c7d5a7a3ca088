#include "tests/model/script.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

const struct op_shape op_shapes[OP_KINDS] = {
	[OP_CREATE] = { "create", 1, 1, 60 },
	[OP_MKDIR] = { "mkdir", 1, 1, 30 },
	[OP_MKFIFO] = { "mkfifo", 1, 1, 4 },
	[OP_SYMLINK] = { "symlink", 2, 0, 12 },
	[OP_LINK] = { "link", 2, 0, 20 },
	[OP_UNLINK] = { "unlink", 1, 0, 30 },
	[OP_RMDIR] = { "rmdir", 1, 0, 12 },
	[OP_RENAME] = { "rename", 2, 1, 50 },
	[OP_TRUNCATE] = { "truncate", 1, 1, 20 },
	[OP_WRITE] = { "write", 1, 3, 60 },
	[OP_APPEND] = { "append", 1, 2, 20 },
	[OP_READ] = { "read", 1, 0, 15 },
	[OP_STAT] = { "stat", 1, 0, 15 },
	[OP_READLINK] = { "readlink", 1, 0, 4 },
	[OP_READDIR] = { "readdir", 1, 0, 12 },
	[OP_CHMOD] = { "chmod", 1, 1, 10 },
	[OP_CHOWN] = { "chown", 1, 2, 6 },
	[OP_UTIMENS] = { "utimens", 1, 4, 12 },
	[OP_SETXATTR] = { "setxattr", 2, 3, 12 },
	[OP_GETXATTR] = { "getxattr", 2, 0, 4 },
	[OP_RMXATTR] = { "removexattr", 2, 0, 6 },
	[OP_OPEN] = { "open", 1, 2, 40 },
	[OP_TMPFILE] = { "tmpfile", 1, 1, 5 },
	[OP_NAME] = { "name", 1, 1, 5 },
	[OP_CLOSE] = { "close", 0, 1, 10 },
	[OP_PWRITE] = { "pwrite", 0, 4, 40 },
	[OP_PREAD] = { "pread", 0, 3, 20 },
	[OP_FTRUNCATE] = { "ftruncate", 0, 2, 12 },
	[OP_FALLOCATE] = { "fallocate", 0, 4, 14 },
	[OP_MMAP_WRITE] = { "mmap-write", 0, 4, 10 },
	[OP_COPY] = { "copy", 0, 5, 8 },
	[OP_SEEK] = { "seek", 0, 2, 8 },
	[OP_FSTAT] = { "fstat", 0, 1, 6 },
	[OP_FSYNC] = { "fsync", 0, 1, 3 },
	[OP_PAUSE] = { "pause", 0, 1, 0 },
	[OP_SYNC] = { "sync", 0, 0, 0 },
	[OP_SNAPSHOT] = { "snapshot", 1, 0, 0 },
	[OP_ROLLBACK] = { "rollback", 1, 0, 0 },
	[OP_REMOUNT] = { "remount", 0, 0, 0 },
	[OP_KILL] = { "kill", 0, 0, 0 },
};

void script_done(struct script *s)
{
	free(s->ops);
	*s = (struct script){ 0 };
}

int script_add(struct script *s, const struct op *op)
{
	if (s->n == s->cap) {
		size_t cap = s->cap ? 2 * s->cap : 256;
		struct op *more = reallocarray(s->ops, cap, sizeof(*more));

		if (!more)
			return -ENOMEM;
		s->ops = more;
		s->cap = cap;
	}
	s->ops[s->n++] = *op;
	return 0;
}

bool op_is_atomic(const struct op *op)
{
	switch (op->kind) {
	case OP_WRITE:
		return op->n[1] <= 65536;
	case OP_APPEND:
		return op->n[0] <= 65536;
	case OP_PWRITE:
		return op->n[2] <= 65536;
	case OP_MMAP_WRITE:
	case OP_COPY:
		return false;
	default:
		return true;
	}
}

bool script_kills_before_sync(const struct script *s, size_t from)
{
	for (; from < s->n; from++) {
		if (s->ops[from].kind == OP_KILL)
			return true;
		if (s->ops[from].kind == OP_SYNC)
			return false;
	}
	return false;
}

/* --- text -------------------------------------------------------------------------------- */

static void print_path(const char *path, FILE *f)
{
	fputc(' ', f);
	if (!*path)
		fputs("%", f); /* an empty path */
	for (; *path; path++)
		if (isgraph((unsigned char)*path) && *path != '%')
			fputc(*path, f);
		else
			fprintf(f, "%%%02X", (unsigned char)*path);
}

void op_print(const struct op *op, FILE *f)
{
	unsigned i;

	fputs(op_shapes[op->kind].name, f);
	for (i = 0; i < op_shapes[op->kind].paths; i++)
		print_path(op->path[i], f);
	for (i = 0; i < op_shapes[op->kind].numbers; i++)
		fprintf(f, " %" PRId64, op->n[i]);
	fputc('\n', f);
}

void script_write(const struct script *s, FILE *f)
{
	size_t i;

	for (i = 0; i < s->n; i++)
		op_print(&s->ops[i], f);
}

static int parse_path(const char *word, char *path, size_t size)
{
	size_t n = 0;
	unsigned byte;

	if (strcmp(word, "%") == 0)
		word = "";
	for (; *word; word++) {
		if (n + 1 >= size)
			return -EINVAL;
		if (*word == '%') {
			if (sscanf(word + 1, "%2x", &byte) != 1)
				return -EINVAL;
			path[n++] = (char)byte;
			word += 2;
		} else {
			path[n++] = *word;
		}
	}
	path[n] = '\0';
	return 0;
}

static int parse_line(char *line, struct op *op)
{
	char *rest = NULL, *word = strtok_r(line, " \n", &rest), *end;
	unsigned k, i;

	for (k = 0; k < OP_KINDS && strcmp(word, op_shapes[k].name) != 0;)
		k++;
	if (k == OP_KINDS)
		return -EINVAL;
	*op = (struct op){ .kind = (enum op_kind)k };
	for (i = 0; i < op_shapes[k].paths; i++) {
		word = strtok_r(NULL, " \n", &rest);
		if (!word || parse_path(word, op->path[i], sizeof(op->path[i])) < 0)
			return -EINVAL;
	}
	for (i = 0; i < op_shapes[k].numbers; i++) {
		word = strtok_r(NULL, " \n", &rest);
		if (!word)
			return -EINVAL;
		op->n[i] = strtoll(word, &end, 0);
		if (*end)
			return -EINVAL;
	}
	return strtok_r(NULL, " \n", &rest) ? -EINVAL : 0;
}

int script_read(FILE *f, struct script *ret, struct err *err)
{
	AUTO_FREE char *line = NULL;
	size_t size = 0;
	unsigned number = 0;
	struct op op;

	while (getline(&line, &size, f) > 0) {
		number++;
		if (line[0] == '#' || line[0] == '\n')
			continue;
		if (parse_line(line, &op) < 0)
			return err_set(err, -EINVAL, "line %u is no operation", number);
		if (script_add(ret, &op) < 0)
			return err_set(err, -ENOMEM, "out of memory");
	}
	return 0;
}
