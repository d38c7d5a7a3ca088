/*
 * Whatever the bytes hold, opening a node and asking for everything in it stays within
 * them.  What is accepted as sound is encoded to the same bytes, and each name is found.
 */
#include "cowfs/store/tree-node.h"
#include "tests/fuzz/fuzz.h"

/* Hand out a record and give it to the writer; canonical or refused, verified or not. */
static bool take_record(const struct tree_node *node, uint32_t i, struct tree_node_writer *w)
{
	struct err err = { 0 };
	struct tree_entry e;
	struct tree_child c;
	int r;

	if (node->level == 0)
		r = tree_node_entry(node, i, &e, &err);
	else
		r = tree_node_child(node, i, &c, &err);
	FUZZ_CHECK(r == 0 || (r == -EBADMSG && err.code == r));
	if (r < 0)
		return false;
	if (node->level == 0)
		FUZZ_CHECK(tree_node_add_entry(w, &e) == 0);
	else
		FUZZ_CHECK(tree_node_add_child(w, &c) == 0);
	return true;
}

static void find_record(const struct tree_node *node, uint32_t i)
{
	struct tree_entry e;
	struct tree_child c;
	uint32_t at;
	bool equal;

	if (node->level == 0) {
		FUZZ_CHECK(tree_node_entry(node, i, &e, NULL) == 0);
		FUZZ_CHECK(tree_node_find(node, e.name, e.name_len, &at, &equal, NULL) == 0);
	} else {
		FUZZ_CHECK(tree_node_child(node, i, &c, NULL) == 0);
		FUZZ_CHECK(tree_node_find(node, c.name, c.name_len, &at, &equal, NULL) == 0);
	}
	FUZZ_CHECK(equal && at == i);
}

/* A name from the input itself, so that it comes close to those in the node. */
static void find_any(const struct tree_node *node, const uint8_t *data, size_t len)
{
	const size_t name_len = len < TREE_NAME_LEN_MAX ? len : TREE_NAME_LEN_MAX;
	struct err err = { 0 };
	uint32_t at;
	bool equal;
	int r;

	for (size_t n = 0; n <= name_len; n += 1 + n / 2) {
		r = tree_node_find(node, (const char *)data + len - n, n, &at, &equal, &err);
		FUZZ_CHECK(r == 0 || (r == -EBADMSG && err.code == r));
		FUZZ_CHECK(r < 0 || (at <= node->n && (!equal || at < node->n)));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	CLEANUP(tree_node_writer_done) struct tree_node_writer w = { 0 };
	CLEANUP(buf_done) struct buf again = BUF_INIT;
	struct err err = { 0 };
	struct tree_node node;
	uint32_t taken = 0;
	int r;

	r = tree_node_open(data, len, &node, &err);
	FUZZ_CHECK(r == 0 || (r == -EBADMSG && err.code == r));
	if (r < 0)
		return 0;

	w.level = node.level;
	find_any(&node, data, len);
	for (uint32_t i = 0; i < node.n; i++)
		taken += take_record(&node, i, &w);

	r = tree_node_verify(&node, &err);
	FUZZ_CHECK(r == 0 || (r == -EBADMSG && err.code == r));
	if (r < 0)
		return 0;
	FUZZ_CHECK(taken == node.n);
	for (uint32_t i = 0; i < node.n; i++)
		find_record(&node, i);
	FUZZ_CHECK(tree_node_finish(&w, &again) == 0);
	FUZZ_CHECK(again.len == len && memcmp(again.data, data, len) == 0);
	return 0;
}
