/*
 * yaml.h - read a YAML document that a person wrote, with the place of each value.
 *
 * A thin face of libfyaml. The document owns everything, a struct yaml is a place in it, passed by
 * value. Plain YAML only: aliases, anchors and tags are refused, and so are a second document and a
 * key given twice. Every scalar is text; the caller interprets it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "base/err.h"
#include "base/strlist.h"

#define YAML_MAX (256 * 1024) /* bytes in a document */

struct yaml_doc {
	void *doc; /* owned */
};

struct yaml {
	void *node;
};

enum yaml_kind { YAML_TEXT, YAML_LIST, YAML_MAP, YAML_NOTHING /* no value, or null */ };

/*
 * -EINVAL with "NAME:LINE:COLUMN: why" for what is no such document; `name` is what the person
 * calls the file.  An empty document is YAML_NOTHING.
 */
NODISCARD int yaml_parse(struct yaml_doc *doc, const char *name, const char *text, size_t len,
			 struct yaml *ret, struct err *err);
void yaml_done(struct yaml_doc *doc); /* of one that is all zero, too */

enum yaml_kind yaml_kind(struct yaml y);

/* The text of a YAML_TEXT, borrowed; it holds no NUL. */
const char *yaml_text(struct yaml y);

/* Each in turn: start with *iter = NULL; false at the end. */
bool yaml_next_pair(struct yaml map, void **iter, struct yaml *ret_key, struct yaml *ret_value);
bool yaml_next_item(struct yaml list, void **iter, struct yaml *ret);

/* Where it begins, counted from 1; of a list or map, where the first text in it does; else 0. */
void yaml_place(struct yaml y, int *ret_line, int *ret_column);

/* -EINVAL with "NAME:LINE:COLUMN: why". */
int yaml_error(struct yaml at, const char *name, struct err *err, const char *fmt, ...)
    PRINTF_LIKE(4, 5);

/* Add the texts of a list, or the one text, none of them empty; -EINVAL likewise if `key` has neither. */
NODISCARD int yaml_texts(struct yaml key, struct yaml value, const char *name, struct strlist *ret,
			 struct err *err);
/* The same, behind `n` texts that an array has already; array and texts are the caller's. */
NODISCARD int yaml_add_texts(struct yaml key, struct yaml value, const char *name, char ***list,
			     size_t *n, struct err *err);
