/*
 * families.h - numbers in families, as the text that Prometheus takes or as JSON.
 */
#pragma once

#include "base/json.h"
#include "cli/cmd.h"

#define FAMILY_PREFIX "snapcow_"

/* Where they go. */
struct families {
	const struct invocation *inv;
	struct json list, samples; /* with --json */
};

/* A family of one sample. */
struct family_of_one {
	const char *name, *type, *help;
	uint64_t value;
};

/* One sample of a family with labels. */
struct family_sample {
	const char *key, *label; /* NULL: none */
	uint64_t value;
};

/* What is added from here on is of this family. */
void families_begin(struct families *f, const char *name, const char *type, const char *help);
void families_add(struct families *f, const char *name, struct family_sample s);
void families_add_singles(struct families *f, const struct family_of_one *list, size_t n);
