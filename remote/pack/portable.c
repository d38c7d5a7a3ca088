#include "remote/pack/portable.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/le.h"

#define MAGIC_DIR    'D'
#define MAGIC_FILE   'F'
#define VERSION      1
#define HEADER_SIZE  8
#define LEAF_CUT_MIN 128 /* entries; beyond them one name in 256 ends a leaf */

#define HAS_XATTRS 1
#define HAS_NLINK  2

static const struct digest zero_digest;

bool digest_is_zero(const struct digest *d)
{
	return digest_equal(d, &zero_digest);
}

static void put_header(uint8_t *at, char magic, unsigned level, uint32_t n)
{
	at[0] = (uint8_t)magic;
	at[1] = VERSION;
	at[2] = (uint8_t)level;
	at[3] = 0;
	le32_store(at + 4, n);
}

/* --- writing a directory ------------------------------------------------------------------ */

void portable_leaf_done(struct portable_leaf *l)
{
	buf_done(&l->bytes);
	l->n = 0;
}

void portable_leaf_reset(struct portable_leaf *l)
{
	buf_reset(&l->bytes);
	l->n = 0;
}

/* What only some types have. */
static int add_of_type(struct buf *b, const struct tree_entry *e)
{
	if (S_ISREG(e->mode))
		return buf_append_u64(b, e->size);
	if (S_ISCHR(e->mode) || S_ISBLK(e->mode))
		return buf_append_u64(b, e->rdev);
	if (!S_ISLNK(e->mode))
		return 0;
	return buf_append_u32(b, (uint32_t)e->target_len) < 0
		   ? -ENOMEM
		   : buf_append(b, e->target, e->target_len);
}

static int add_attributes(struct buf *b, const struct tree_entry *e)
{
	uint8_t fixed[40];

	le32_store(fixed, e->uid);
	le32_store(fixed + 4, e->gid);
	le64_store(fixed + 8, (uint64_t)e->mtime_s);
	le64_store(fixed + 16, (uint64_t)e->ctime_s);
	le32_store(fixed + 24, e->mtime_ns);
	le32_store(fixed + 28, e->ctime_ns);
	le64_store(fixed + 32, e->ino);
	return buf_append(b, fixed, sizeof(fixed));
}

static bool has_content(const struct tree_entry *e)
{
	return e->form == TREE_CHUNK || e->form == TREE_RECIPE || e->form == TREE_DIR;
}

static bool has_nlink(const struct tree_entry *e)
{
	return e->form != TREE_DIR && e->nlink != 0;
}

int portable_leaf_add(struct portable_leaf *l, const struct portable_entry *p)
{
	const struct tree_entry *e = &p->e;
	struct buf *b = &l->bytes;
	const bool link = e->form == TREE_LINK;
	uint8_t head[8];

	head[0] = (uint8_t)e->form;
	head[1] = (uint8_t)((p->has_xattrs ? HAS_XATTRS : 0) | (has_nlink(e) ? HAS_NLINK : 0));
	le16_store(head + 2, (uint16_t)e->name_len);
	le32_store(head + 4, e->mode);
	if ((b->len == 0 && buf_append_zero(b, HEADER_SIZE) < 0) ||
	    buf_append(b, head, sizeof(head)) < 0 || buf_append(b, e->name, e->name_len) < 0 ||
	    (link ? buf_append_u64(b, e->ino) < 0
		  : add_attributes(b, e) < 0 || add_of_type(b, e) < 0) ||
	    (has_nlink(e) && buf_append_u32(b, e->nlink) < 0) ||
	    (has_content(e) && buf_append(b, p->content.b, sizeof(p->content.b)) < 0) ||
	    (p->has_xattrs && buf_append(b, p->xattrs.b, sizeof(p->xattrs.b)) < 0))
		return -ENOMEM;
	l->n++;
	put_header(b->data, MAGIC_DIR, 0, l->n);
	return 0;
}

int portable_leaf_seal(struct portable_leaf *l)
{
	int r = l->bytes.len == 0 ? buf_append_zero(&l->bytes, HEADER_SIZE) : 0;

	if (r == 0 && l->n == 0)
		put_header(l->bytes.data, MAGIC_DIR, 0, 0);
	return r;
}

bool portable_leaf_ends(const struct portable_leaf *l, const char *name, size_t len)
{
	if (l->n >= PORTABLE_LEAF_ENTRIES || l->bytes.len >= PORTABLE_LEAF_BYTES)
		return true;
	return l->n >= LEAF_CUT_MIN && digest_of(name, len).b[0] == 0;
}

int portable_branch(const struct digest *leaves, size_t n, struct buf *out)
{
	uint8_t *at;

	assert(n >= 2 && n <= PORTABLE_BRANCH_LEAVES);
	buf_reset(out);
	at = buf_extend(out, HEADER_SIZE + n * sizeof(*leaves));
	if (!at)
		return -ENOMEM;
	put_header(at, MAGIC_DIR, 1, (uint32_t)n);
	memcpy(at + HEADER_SIZE, leaves, n * sizeof(*leaves));
	return 0;
}

/* --- reading one -------------------------------------------------------------------------- */

int portable_node(const void *bytes, size_t len, struct portable_node *ret, struct err *err)
{
	const uint8_t *at = bytes;
	struct portable_node node;

	if (len < HEADER_SIZE || at[0] != MAGIC_DIR || at[1] != VERSION || at[2] > 1 || at[3] != 0)
		return err_set(err, -EBADMSG, "a directory in a pack does not begin like one");
	node = (struct portable_node){
		.level = at[2],
		.n = le32_load(at + 4),
		.at = at + HEADER_SIZE,
		.end = at + len,
	};
	len -= HEADER_SIZE;
	if (node.level == 1 && (node.n < 2 || node.n > PORTABLE_BRANCH_LEAVES ||
				len != (size_t)node.n * sizeof(struct digest)))
		return err_set(err, -EBADMSG, "a large directory in a pack has a wrong length");
	if (node.level == 0 && (node.n > PORTABLE_LEAF_ENTRIES || len > PORTABLE_LEAF_MAX))
		return err_set(err, -EBADMSG, "a directory in a pack is too large for one node");
	*ret = node;
	return 0;
}

/* `n` bytes of what was not read yet; NULL: there are not so many. */
static const uint8_t *take_bytes(struct portable_node *node, size_t n)
{
	const uint8_t *at = node->at;

	if ((size_t)(node->end - at) < n)
		return NULL;
	node->at += n;
	return at;
}

static bool take_of_type(struct portable_node *node, struct tree_entry *e)
{
	const uint8_t *at;

	if (S_ISREG(e->mode) || S_ISCHR(e->mode) || S_ISBLK(e->mode)) {
		at = take_bytes(node, 8);
		if (!at)
			return false;
		*(S_ISREG(e->mode) ? &e->size : &e->rdev) = le64_load(at);
		return true;
	}
	if (!S_ISLNK(e->mode))
		return true;
	at = take_bytes(node, 4);
	if (!at)
		return false;
	e->target_len = e->size = le32_load(at);
	e->target = (const char *)take_bytes(node, e->target_len);
	return e->target != NULL;
}

static bool take_attributes(struct portable_node *node, struct tree_entry *e)
{
	const uint8_t *at = take_bytes(node, 40);

	if (!at)
		return false;
	e->uid = le32_load(at);
	e->gid = le32_load(at + 4);
	e->mtime_s = (int64_t)le64_load(at + 8);
	e->ctime_s = (int64_t)le64_load(at + 16);
	e->mtime_ns = le32_load(at + 24);
	e->ctime_ns = le32_load(at + 28);
	e->ino = le64_load(at + 32);
	return take_of_type(node, e);
}

static bool take_digest(struct portable_node *node, struct digest *ret)
{
	const uint8_t *at = take_bytes(node, sizeof(ret->b));

	if (!at)
		return false;
	memcpy(ret->b, at, sizeof(ret->b));
	return true;
}

static bool take_entry(struct portable_node *node, struct portable_entry *p)
{
	struct tree_entry *e = &p->e;
	const uint8_t *head = take_bytes(node, 8), *at;
	uint8_t flags;

	if (!head || head[0] > TREE_LINK || (head[1] & ~(HAS_XATTRS | HAS_NLINK)) != 0)
		return false;
	flags = head[1];
	*p = (struct portable_entry){ .has_xattrs = flags & HAS_XATTRS };
	e->form = head[0];
	e->mode = le32_load(head + 4);
	e->name_len = le16_load(head + 2);
	e->name = (const char *)take_bytes(node, e->name_len);
	if (!e->name)
		return false;
	if (e->form == TREE_LINK) {
		at = flags == 0 ? take_bytes(node, 8) : NULL;
		e->ino = at ? le64_load(at) : 0;
		return at != NULL;
	}
	if (!take_attributes(node, e))
		return false;
	if (flags & HAS_NLINK) {
		at = take_bytes(node, 4);
		e->nlink = at ? le32_load(at) : 0;
		if (e->nlink == 0 || e->form == TREE_DIR)
			return false;
	}
	if (has_content(e) && !take_digest(node, &p->content))
		return false;
	return !p->has_xattrs || take_digest(node, &p->xattrs);
}

int portable_next_entry(struct portable_node *node, struct portable_entry *ret, struct err *err)
{
	if (node->n == 0)
		return node->at == node->end
			   ? 0
			   : err_set(err, -EBADMSG, "bytes follow a directory in a pack");
	if (!take_entry(node, ret))
		return err_set(err, -EBADMSG, "an entry of a directory in a pack is malformed");
	if (node->last &&
	    tree_name_compare(node->last, node->last_len, ret->e.name, ret->e.name_len) >= 0)
		return err_set(err, -EBADMSG, "names of a directory in a pack are not in order");
	node->last = ret->e.name;
	node->last_len = ret->e.name_len;
	node->n--;
	return 1;
}

int portable_next_leaf(struct portable_node *node, struct digest *ret)
{
	if (node->n == 0)
		return 0;
	memcpy(ret->b, node->at, sizeof(ret->b));
	node->at += sizeof(ret->b);
	node->n--;
	return 1;
}

/* --- large files -------------------------------------------------------------------------- */

int portable_recipe_encode(const struct portable_recipe *node, struct buf *out)
{
	uint8_t *at;

	buf_reset(out);
	at = buf_extend(out, HEADER_SIZE + node->n * sizeof(struct digest));
	if (!at)
		return -ENOMEM;
	put_header(at, MAGIC_FILE, node->level, node->n);
	memcpy(at + HEADER_SIZE, node->slot, node->n * sizeof(struct digest));
	return 0;
}

int portable_recipe_decode(const void *bytes, size_t len, struct portable_recipe *ret,
			   struct err *err)
{
	const uint8_t *at = bytes;
	uint32_t n;

	if (len < HEADER_SIZE || at[0] != MAGIC_FILE || at[1] != VERSION ||
	    at[2] > RECIPE_LEVEL_MAX || at[3] != 0)
		return err_set(err, -EBADMSG, "a large file in a pack does not begin like one");
	n = le32_load(at + 4);
	if (n == 0 || n > RECIPE_FANOUT || len - HEADER_SIZE != n * sizeof(struct digest))
		return err_set(err, -EBADMSG, "a large file in a pack has a wrong length");
	ret->level = at[2];
	ret->n = n;
	memcpy(ret->slot, at + HEADER_SIZE, n * sizeof(struct digest));
	if (digest_is_zero(&ret->slot[n - 1]))
		return err_set(err, -EBADMSG, "a large file in a pack ends with a hole");
	return 0;
}
