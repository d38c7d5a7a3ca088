#include "base/yaml.h"

#include <errno.h>
#include <libfyaml.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/utf8.h"
#include "base/vec.h"

#define DEPTH_MAX 32

static void diag_free(struct fy_diag *d)
{
	if (d)
		fy_diag_destroy(d);
}
DEFINE_CLEANUP(struct fy_diag *, diag_free)

static struct fy_diag *make_diag(void)
{
	struct fy_diag_cfg cfg;
	struct fy_diag *d;

	fy_diag_cfg_default(&cfg);
	cfg.fp = NULL;
	cfg.colorize = false;
	d = fy_diag_create(&cfg);
	if (d)
		fy_diag_set_collect_errors(d, true);
	return d;
}

static int first_error(struct fy_diag *d, const char *name, struct err *err)
{
	void *iter = NULL;
	const struct fy_diag_error *e = fy_diag_errors_iterate(d, &iter);

	if (!e)
		return err_set(err, -EINVAL, "%s: this is no YAML", name);
	return err_set(err, -EINVAL, "%s:%d:%d: %s", name, e->line, e->column, e->msg);
}

/* Bounded by the depth that libfyaml takes, and by DEPTH_MAX before that. */
static int check_plain(struct fy_node *n, const char *name, int depth, struct err *err)
{
	struct yaml key, value, at = { n };
	void *iter = NULL;
	int line, column, r = 0;

	yaml_place(at, &line, &column);
	if (depth > DEPTH_MAX)
		return err_set(err, -EINVAL, "%s:%d:%d: nested too deeply", name, line, column);
	if (fy_node_is_alias(n) || fy_node_get_anchor(n) || fy_node_get_tag_token(n))
		return err_set(err, -EINVAL,
			       "%s:%d:%d: aliases, anchors and tags are not used here", name, line,
			       column);
	if (yaml_kind(at) == YAML_TEXT && strlen(yaml_text(at)) != fy_node_get_scalar_length(n))
		return err_set(err, -EINVAL, "%s:%d:%d: a NUL in a text", name, line, column);
	while (r == 0 && fy_node_is_mapping(n) && yaml_next_pair(at, &iter, &key, &value)) {
		yaml_place(key, &line, &column);
		if (yaml_kind(key) != YAML_TEXT)
			return err_set(err, -EINVAL, "%s:%d:%d: a key must be a word", name, line,
				       column);
		r = check_plain(key.node, name, depth + 1, err);
		if (r == 0 && value.node)
			r = check_plain(value.node, name, depth + 1, err);
	}
	while (r == 0 && fy_node_is_sequence(n) && yaml_next_item(at, &iter, &value))
		r = value.node ? check_plain(value.node, name, depth + 1, err) : 0;
	return r;
}

/* Blank lines and comments; libfyaml takes a stream without a document for a failure. */
static bool is_empty(const char *text, size_t len)
{
	bool comment = false;

	for (size_t i = 0; i < len; i++) {
		comment = text[i] != '\n' && (comment || text[i] == '#');
		if (!comment && !strchr(" \t\r\n", text[i]))
			return false;
	}
	return true;
}

/* libfyaml passes on what is no UTF-8. */
static int check_bytes(const char *name, const char *text, size_t len, struct err *err)
{
	size_t n, line = 1, start = 0;

	for (size_t i = 0; i < len; i += n) {
		n = utf8_valid(text + i, len - i);
		if (n == 0)
			return err_set(err, -EINVAL, "%s:%zu:%zu: this is no UTF-8", name, line,
				       i - start + 1);
		line += text[i] == '\n';
		start = text[i] == '\n' ? i + 1 : start;
	}
	return 0;
}

int yaml_parse(struct yaml_doc *doc, const char *name, const char *text, size_t len,
	       struct yaml *ret, struct err *err)
{
	CLEANUP(diag_free_p) struct fy_diag *diag = make_diag();
	struct fy_parse_cfg cfg = { .flags = FYPCF_QUIET | FYPCF_COLLECT_DIAG, .diag = diag };
	CLEANUP(yaml_done) struct yaml_doc d = { 0 };
	struct fy_node *root;
	int r = 0;

	if (!diag)
		return err_nomem(err);
	if (len > YAML_MAX)
		return err_set(err, -EINVAL, "%s: larger than %d bytes", name, YAML_MAX);
	r = check_bytes(name, text, len, err);
	if (r < 0)
		return r;
	ret->node = NULL;
	if (is_empty(text, len))
		return 0;
	d.doc = fy_document_build_from_string(&cfg, text, len);
	if (!d.doc)
		return first_error(diag, name, err);
	root = fy_document_root(d.doc);
	if (root)
		r = check_plain(root, name, 0, err);
	if (r < 0)
		return r;
	*doc = d;
	d.doc = NULL;
	ret->node = root;
	return 0;
}

void yaml_done(struct yaml_doc *doc)
{
	if (doc->doc)
		fy_document_destroy(doc->doc);
	doc->doc = NULL;
}

/* As YAML's core schema has it; in quotes it is a text like any other. */
static bool is_null(struct fy_node *n)
{
	static const char *const words[] = { "", "~", "null", "Null", "NULL" };
	const char *text = fy_node_get_scalar0(n);

	if (fy_node_get_style(n) != FYNS_PLAIN)
		return false;
	for (size_t i = 0; text && i < ARRAY_LEN(words); i++)
		if (strcmp(text, words[i]) == 0)
			return true;
	return !text;
}

enum yaml_kind yaml_kind(struct yaml y)
{
	if (!y.node)
		return YAML_NOTHING;
	if (fy_node_is_mapping(y.node))
		return YAML_MAP;
	if (fy_node_is_sequence(y.node))
		return YAML_LIST;
	return is_null(y.node) ? YAML_NOTHING : YAML_TEXT;
}

const char *yaml_text(struct yaml y)
{
	const char *text = fy_node_get_scalar0(y.node);

	return text ? text : "";
}

bool yaml_next_pair(struct yaml map, void **iter, struct yaml *ret_key, struct yaml *ret_value)
{
	struct fy_node_pair *pair = fy_node_mapping_iterate(map.node, iter);

	if (!pair)
		return false;
	ret_key->node = fy_node_pair_key(pair);
	ret_value->node = fy_node_pair_value(pair);
	return true;
}

bool yaml_next_item(struct yaml list, void **iter, struct yaml *ret)
{
	ret->node = fy_node_sequence_iterate(list.node, iter);
	return ret->node != NULL;
}

void yaml_place(struct yaml y, int *ret_line, int *ret_column)
{
	const struct fy_mark *mark = NULL;
	struct yaml first = y, value;

	for (int depth = 0; first.node && depth <= DEPTH_MAX; depth++) {
		void *iter = NULL;

		if (fy_node_is_mapping(first.node)) {
			if (!yaml_next_pair(first, &iter, &first, &value))
				first.node = NULL;
		} else if (fy_node_is_sequence(first.node)) {
			yaml_next_item(first, &iter, &first);
		} else {
			mark = fy_token_start_mark(fy_node_get_scalar_token(first.node));
			break;
		}
	}
	*ret_line = mark ? mark->line + 1 : 0;
	*ret_column = mark ? mark->column + 1 : 0;
}

int yaml_error(struct yaml at, const char *name, struct err *err, const char *fmt, ...)
{
	char why[200];
	int line, column;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	yaml_place(at, &line, &column);
	return err_set(err, -EINVAL, "%s:%d:%d: %s", name, line, column, why);
}

int yaml_texts(struct yaml key, struct yaml value, const char *name, struct strlist *ret,
	       struct err *err)
{
	struct yaml item;
	void *iter = NULL;

	if (yaml_kind(value) == YAML_TEXT && *yaml_text(value) != '\0')
		return strlist_add(ret, yaml_text(value)) < 0 ? err_nomem(err) : 0;
	if (yaml_kind(value) != YAML_LIST)
		return yaml_error(key, name, err, "a text or a list of texts is needed");
	while (yaml_next_item(value, &iter, &item)) {
		if (yaml_kind(item) != YAML_TEXT || *yaml_text(item) == '\0')
			return yaml_error(item, name, err, "this is no text");
		if (strlist_add(ret, yaml_text(item)) < 0)
			return err_nomem(err);
	}
	return ret->n > 0 ? 0 : yaml_error(key, name, err, "the list is empty");
}

int yaml_add_texts(struct yaml key, struct yaml value, const char *name, char ***list, size_t *n,
		   struct err *err)
{
	CLEANUP(strlist_done) struct strlist texts = { 0 };
	int r = yaml_texts(key, value, name, &texts, err);

	for (size_t i = 0; r >= 0 && i < texts.n; i++) {
		if (!VEC_ONE_MORE(*list, *n))
			return err_nomem(err);
		(*list)[*n] = TAKE_PTR(texts.list[i]);
		++*n;
	}
	return r;
}
