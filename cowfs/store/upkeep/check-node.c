/*
 * Every node is summed up by its own records alone, and compared with the sums in each record that
 * names it. If all of them agree then all sums are right, from the leaves up, and no node need be
 * walked again to know it.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cowfs/store/upkeep/check-walk-i.h"

_Static_assert(TREE_NAME_LEN_MAX <= UINT8_MAX && TREE_LEVEL_MAX <= UINT8_MAX &&
		   CHECK_PATHS_MAX <= UINT8_MAX,
	       "struct seen_node keeps them in a byte");

static uint64_t seq_hash(const void *key)
{
	return (uint64_t) * (const int64_t *)key * 0x9e3779b97f4a7c15u;
}

static bool seq_equal(const void *a, const void *b)
{
	return *(const int64_t *)a == *(const int64_t *)b;
}

struct seen_node *seen_node_get(const struct check_walk *w, int64_t seq)
{
	return w->nodes.hash ? map_get(&w->nodes, &seq) : NULL;
}

/* Sum up the records; the name of the last of them in *ret_name. */
static int sum_up(struct seen_node *n, const struct tree_node *node, uint32_t from, uint32_t to,
		  const char **ret_name, size_t *ret_len, struct err *err)
{
	struct tree_entry e;
	struct tree_child c;
	int r;

	for (uint32_t i = from; i < to; i++) {
		if (node->level > 0) {
			r = tree_node_child(node, i, &c, err);
			if (r < 0)
				return r;
			tree_node_count(&n->entries, &n->below, c.entries, &c.below);
			*ret_name = c.name;
			*ret_len = c.name_len;
			continue;
		}
		r = tree_node_entry(node, i, &e, err);
		if (r < 0)
			return r;
		if (e.form != TREE_DIR)
			e.below = (struct tree_summary){ .files = 1,
							 .bytes = e.size,
							 .links = e.form == TREE_LINK };
		tree_node_count(&n->entries, &n->below, 1, &e.below);
		n->dirs += e.form == TREE_DIR;
		*ret_name = e.name;
		*ret_len = e.name_len;
	}
	return 0;
}

int seen_node_add(struct check_walk *w, int64_t seq, const struct tree_node *node,
		  struct seen_node **ret, struct err *err)
{
	AUTO_FREE struct seen_node *n = NULL;
	struct seen_node sum = {
		.seq = seq,
		.level = (uint8_t)node->level,
		.counted = node->level == 0,
	};
	const char *first = "", *last = "";
	size_t first_len = 0, last_len = 0;
	void *there = NULL;
	int r;

	if (!w->nodes.hash)
		w->nodes = MAP_INIT(seq_hash, seq_equal);
	if (node->n > 0) {
		r = sum_up(&sum, node, 0, 1, &first, &first_len, err);
		last = first;
		last_len = first_len;
		if (r < 0)
			return r;
		r = sum_up(&sum, node, 1, node->n, &last, &last_len, err);
		if (r < 0)
			return r;
	}
	n = malloc(sizeof(*n) + first_len + last_len);
	if (!n)
		return err_nomem(err);
	*n = sum;
	n->first_len = (uint8_t)first_len;
	n->last_len = (uint8_t)last_len;
	memcpy(n->names, first, first_len);
	memcpy(n->names + first_len, last, last_len);
	if (map_add(&w->nodes, &n->seq, n, &there) < 0)
		return err_nomem(err);
	*ret = TAKE_PTR(n);
	return 0;
}

const char *node_claim_flaw(const struct node_claim *claim, const struct seen_node *n,
			    struct err *why)
{
	const struct tree_child *c = claim->child;
	const struct tree_summary *say = claim->below;

	if (c && tree_name_compare(n->names, n->first_len, c->name, c->name_len) != 0)
		err_set(why, -EBADMSG, "it does not begin with the name that its branch says");
	else if (c && n->entries != c->entries)
		err_set(why, -EBADMSG,
			"it has %" PRIu64 " names, not %" PRIu64 " as its branch says", n->entries,
			c->entries);
	else if (say && n->below.files != say->files)
		err_set(why, -EBADMSG,
			"it has %" PRIu64 " files, not %" PRIu64 " as is said above it",
			n->below.files, say->files);
	else if (say && n->below.bytes != say->bytes)
		err_set(why, -EBADMSG,
			"its files have %" PRIu64 " bytes, not %" PRIu64 " as is said above it",
			n->below.bytes, say->bytes);
	else if (say && n->below.links != say->links)
		err_set(why, -EBADMSG, "it has %s hard links, unlike what is said above it",
			n->below.links ? "some" : "no");
	else if (claim->nlink && n->counted && claim->nlink != n->dirs + 2)
		err_set(why, -EBADMSG,
			"it has %" PRIu64 " directories, unlike the %" PRIu32
			" links said above it",
			n->dirs, claim->nlink);
	else
		return NULL;
	return why->msg;
}

bool seen_node_is_before(const struct seen_node *n, const char *name, size_t name_len)
{
	while (n && n->level > 0)
		n = n->right; /* levels fall: it was not walked otherwise */
	return !n || tree_name_compare(n->names + n->first_len, n->last_len, name, name_len) < 0;
}
