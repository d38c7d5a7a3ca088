/*
 * parser-i.h - a child that parses archives and passes their content on.
 *
 * The bytes are untrusted, and the library that reads them is large. So a process of its own reads
 * them, with the archives, a pipe and nothing else (runner/confine.h), and writes a stream
 * (image/stream.h) that cowfsd checks record by record.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/sha256.h"

struct parser_layer {
	int fd;       /* owned; at its beginning */
	char *digest; /* owned; that it must have, 64 hex digits; NULL: none is known */
	char *plain;  /* owned; the same of what it unpacks to */
};

struct parser_plan {
	struct parser_layer *layers; /* owned; the lowest first */
	size_t n;
	bool whiteouts;     /* they are layers of an OCI image */
	uint64_t max_bytes; /* of all files */
};

void parser_plan_done(struct parser_plan *p);

struct parser {
	pid_t pid; /* 0: none */
	int out;   /* owned; the stream */
	int why;   /* owned; a struct err, if it fails */
};

#define PARSER_INIT ((struct parser){ .out = -1, .why = -1 })

/* Call from a process with one thread. */
NODISCARD int parser_start(const struct parser_plan *plan, struct parser *ret, struct err *err);

/* Wait for it.  What it failed with, and otherwise 0. */
NODISCARD int parser_end(struct parser *p, struct err *err);

void parser_done(struct parser *p); /* ends it, should it still run */
