/*
 * Whatever an index, a pack, a node or a manifest holds, reading it stays within its bytes and within
 * the bounds of pack.h, and what is handed out has the SHA-256 that was asked for.  The first byte
 * says what the rest is; of a pack, the next four say how long its index is.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fdio.h"
#include "base/le.h"
#include "remote/manifest.h"
#include "remote/pack/pack.h"
#include "remote/pack/portable.h"
#include "tests/fuzz/fuzz.h"

static void check_code(int r, const struct err *err)
{
	FUZZ_CHECK(r == 0 || ((r == -EBADMSG || r == -EPROTO || r == -E2BIG) && err->code == r &&
			      err->msg[0] != '\0'));
}

static void get_all(struct pack_set *s)
{
	struct buf out = BUF_INIT;

	for (size_t i = 0; i < s->where.n; i++) {
		const struct digest_entry *slot = &s->where.list[i];
		struct err err = { 0 };
		struct digest have;
		int r;

		r = pack_set_get(s, (enum object_kind)slot->kind, &slot->digest, &out, &err);
		check_code(r, &err);
		if (r < 0)
			continue;
		FUZZ_CHECK(out.len > 0 && out.len <= object_kind_max((enum object_kind)slot->kind));
		have = digest_of(out.data, out.len);
		FUZZ_CHECK(digest_equal(&have, &slot->digest));
	}
	buf_done(&out);
}

static void read_pack(const uint8_t *data, size_t len)
{
	struct pack_set s = { 0 };
	struct err err = { 0 };
	FILE *file;
	size_t index;
	int fd, r;

	if (len < 4)
		return;
	index = le32_load(data);
	data += 4;
	len -= 4;
	index = index < len ? index : len;
	file = tmpfile();
	FUZZ_CHECK(file);
	fd = dup(fileno(file));
	FUZZ_CHECK(fd >= 0 && fdio_write(fd, data + index, len - index) == 0);
	r = pack_set_add(&s, data, index, fd, &err);
	check_code(r, &err);
	if (r == 0)
		get_all(&s);
	pack_set_done(&s);
	fclose(file);
}

/* What is accepted as a leaf is encoded to the same bytes. */
static void read_leaf(const uint8_t *data, size_t len, struct portable_node *node)
{
	struct portable_leaf again = { 0 };
	struct portable_entry p;
	struct err err = { 0 };
	int r;

	while ((r = portable_next_entry(node, &p, &err)) > 0)
		FUZZ_CHECK(portable_leaf_add(&again, &p) == 0);
	check_code(r, &err);
	if (r == 0) {
		FUZZ_CHECK(portable_leaf_seal(&again) == 0);
		FUZZ_CHECK(again.bytes.len == len && memcmp(again.bytes.data, data, len) == 0);
	}
	portable_leaf_done(&again);
}

static void read_node(const uint8_t *data, size_t len)
{
	struct portable_node node;
	struct err err = { 0 };
	struct digest leaf;
	int r = portable_node(data, len, &node, &err);

	check_code(r, &err);
	if (r == 0 && node.level == 0)
		read_leaf(data, len, &node);
	while (r == 0 && node.level == 1 && portable_next_leaf(&node, &leaf) > 0)
		FUZZ_CHECK(node.at <= node.end);
}

static void read_recipe(const uint8_t *data, size_t len)
{
	static struct portable_recipe node;
	struct buf again = BUF_INIT;
	struct err err = { 0 };
	int r = portable_recipe_decode(data, len, &node, &err);

	check_code(r, &err);
	if (r == 0) {
		FUZZ_CHECK(portable_recipe_encode(&node, &again) == 0);
		FUZZ_CHECK(again.len == len && memcmp(again.data, data, len) == 0);
	}
	buf_done(&again);
}

static void read_manifest(const uint8_t *data, size_t len)
{
	struct buf text = BUF_INIT;
	struct manifest_snapshot s = { 0 };
	struct manifest m = { 0 };
	struct err err = { 0 };

	FUZZ_CHECK(buf_append(&text, data, len) == 0);
	check_code(manifest_decode(&text, &m, &err), &err);
	err = (struct err){ 0 };
	check_code(manifest_snapshot_decode(&text, &s, &err), &err);
	manifest_done(&m);
	manifest_snapshot_done(&s);
	buf_done(&text);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	if (len == 0)
		return 0;
	switch (data[0] % 4) {
	case 0:
		read_pack(data + 1, len - 1);
		break;
	case 1:
		read_node(data + 1, len - 1);
		break;
	case 2:
		read_recipe(data + 1, len - 1);
		break;
	default:
		read_manifest(data + 1, len - 1);
	}
	return 0;
}
