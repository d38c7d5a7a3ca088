#include "image/ingest.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#if __has_include(<sys/sysmacros.h>)
#include <sys/sysmacros.h>
#endif

#include "base/size.h"
#include "cowfs/store/xattrs.h"

#define NS_PER_S 1000000000

const struct ingest_limits ingest_default = {
	/* A name costs cowfsd 300 to 500 bytes of memory while it is read: half a gigabyte at most. */
	.tree = { .names = 1000000, .text = (uint64_t)128 << 20 },
	.bytes = (uint64_t)256 << 30,
	.entries = 4000000,
};

struct ingest_limits ingest_limits_for(struct ingest_limits limits, uint64_t names)
{
	const uint64_t most = names < UINT64_MAX / 1024 ? names : UINT64_MAX / 1024;

	limits.tree = (struct draft_limits){ .names = most, .text = 128 * most };
	limits.entries = 4 * most;
	return limits;
}

struct ingest {
	struct batch *batch;
	const struct ingest_limits *limits;
	struct draft *draft;
	struct content_writer *writer;
	struct draft_file *open; /* borrowed; whose bytes come; NULL: nobody's */
	uint64_t at, size;       /* of it: what came, and what is to come */
	uint64_t entries, bytes;
	struct stream_record rec;
};

static void ingest_free(struct ingest *g)
{
	if (!g)
		return;
	draft_free(g->draft);
	content_writer_free(g->writer);
	free(g);
}
DEFINE_CLEANUP(struct ingest *, ingest_free)

/* --- files ------------------------------------------------------------------------------ */

/* The last file has all its bytes now; what is missing at its end is a hole. */
static int close_file(struct ingest *g, struct err *err)
{
	struct content c;
	int r = 0;

	if (!g->open)
		return 0;
	if (g->at < g->size)
		r = content_writer_skip(g->writer, g->size - g->at, err);
	if (r < 0)
		return r;
	r = content_writer_finish(g->writer, &c, err);
	if (r < 0)
		return r;
	draft_set_content(g->open, &c);
	g->open = NULL;
	return 0;
}

static int charge(struct ingest *g, uint64_t size, struct err *err)
{
	char most[SIZE_TEXT_MAX];

	if (size > g->limits->bytes - g->bytes)
		return err_set(err, -EDQUOT, "its files have more than %s in all",
			       size_format(g->limits->bytes, most));
	g->bytes += size;
	return 0;
}

static int open_file(struct ingest *g, struct draft_file *f, uint64_t size, struct err *err)
{
	int r = charge(g, size, err);

	if (r < 0)
		return r;
	g->open = f;
	g->at = 0;
	g->size = size;
	return 0;
}

static int add_data(struct ingest *g, const struct stream_record *rec, struct err *err)
{
	int r = 0;

	if (!g->open || rec->off < g->at || rec->off > g->size ||
	    rec->data.len > g->size - rec->off)
		return err_set(err, -EBADMSG, "the parsed archive has bytes of no file");
	if (rec->off > g->at)
		r = content_writer_skip(g->writer, rec->off - g->at, err);
	if (r < 0)
		return r;
	g->at = rec->off + rec->data.len;
	return content_writer_add(g->writer, rec->data.at, rec->data.len, err);
}

/* --- entries ---------------------------------------------------------------------------- */

static int put_xattrs(struct ingest *g, const struct stream_record *rec, struct object_id *ret,
		      struct err *err)
{
	struct xattr list[STREAM_XATTRS_MAX];
	int r = 0;

	for (size_t i = 0; i < rec->n_xattrs; i++) {
		const struct stream_xattr *x = &rec->xattrs[i];

		if (x->name.len < 1 || x->name.len > XATTR_NAME_LEN_MAX ||
		    memchr(x->name.at, '\0', x->name.len) || x->value.len > XATTR_VALUE_LEN_MAX)
			return err_set(err, -EINVAL, "an extended attribute of it cannot be");
		list[i] = (struct xattr){
			.name = x->name.at,
			.name_len = x->name.len,
			.value = x->value.at,
			.value_len = x->value.len,
		};
		/* They take as much of the disk as the bytes of files. */
		r = charge(g, x->name.len + x->value.len, err);
		if (r < 0)
			return r;
	}
	return rec->n_xattrs > 0 ? xattrs_put(g->batch, list, rec->n_xattrs, ret, err) : 0;
}

static int check_type(const struct stream_record *rec, struct err *err)
{
	const uint32_t type = rec->mode & S_IFMT;

	if ((rec->mode & ~(uint32_t)(S_IFMT | 07777)) != 0 ||
	    (type != S_IFREG && type != S_IFDIR && type != S_IFLNK && type != S_IFCHR &&
	     type != S_IFBLK && type != S_IFIFO && type != S_IFSOCK))
		return err_set(err, -EINVAL, "its type is none that a file can have");
	if (rec->mtime_ns >= NS_PER_S)
		return err_set(err, -EINVAL, "its time has too many nanoseconds");
	if (type != S_IFLNK)
		return 0;
	if (rec->target.len < 1 || rec->target.len > TREE_TARGET_LEN_MAX ||
	    memchr(rec->target.at, '\0', rec->target.len))
		return err_set(err, -EINVAL, "its target is none that a symlink can have");
	return 0;
}

static void describe(const struct stream_record *rec, struct tree_entry *ret)
{
	*ret = (struct tree_entry){
		.form = S_ISDIR(rec->mode) ? TREE_DIR : TREE_NONE,
		.mode = rec->mode,
		.uid = rec->uid,
		.gid = rec->gid,
		.mtime_s = rec->mtime_s,
		.mtime_ns = rec->mtime_ns,
	};
	if (S_ISCHR(rec->mode) || S_ISBLK(rec->mode))
		ret->rdev = makedev(rec->major, rec->minor);
	if (S_ISLNK(rec->mode)) {
		ret->target = rec->target.at;
		ret->target_len = ret->size = rec->target.len;
	}
}

static int add_entry(struct ingest *g, const struct stream_record *rec, struct err *err)
{
	struct draft_file *f = NULL;
	struct tree_entry e;
	int r = check_type(rec, err);

	if (r >= 0) {
		describe(rec, &e);
		r = put_xattrs(g, rec, &e.xattrs, err);
	}
	if (r < 0)
		return err_wrap(err, r, "its entry '%.*s'",
				(int)(rec->path.len > 100 ? 100 : rec->path.len),
				rec->path.at ? rec->path.at : "");
	r = draft_add(g->draft, rec->path, &e, &f, err);
	if (r < 0 || !S_ISREG(rec->mode))
		return r;
	return open_file(g, f, rec->size, err);
}

/* 1 at the end. */
static int take_record(struct ingest *g, const struct stream_record *rec, struct err *err)
{
	int r = rec->kind == STREAM_DATA ? 0 : close_file(g, err);

	if (r < 0)
		return r;
	if (rec->kind != STREAM_DATA && ++g->entries > g->limits->entries)
		return err_set(err, -EDQUOT, "it has more than %llu entries",
			       (unsigned long long)g->limits->entries);
	switch (rec->kind) {
	case STREAM_LAYER:
		draft_next_layer(g->draft);
		return 0;
	case STREAM_ENTRY:
		return add_entry(g, rec, err);
	case STREAM_LINK:
		return draft_link(g->draft, rec->path, rec->target, err);
	case STREAM_DATA:
		return add_data(g, rec, err);
	case STREAM_WHITEOUT:
		return draft_whiteout(g->draft, rec->path, err);
	case STREAM_OPAQUE:
		return draft_opaque(g->draft, rec->path, err);
	case STREAM_END:
		break;
	}
	return 1;
}

int ingest_stream(struct stream_reader *in, struct batch *b, const struct ingest_limits *limits,
		  const struct ingest_report *report, struct ingested *ret, struct err *err)
{
	CLEANUP(ingest_free_p) struct ingest *g = calloc(1, sizeof(*g));
	int r = g ? 0 : err_nomem(err);

	if (r < 0)
		return r;
	g->batch = b;
	g->limits = limits;
	r = draft_new(&limits->tree, &g->draft, err);
	if (r < 0)
		return r;
	r = content_writer_new(b, &g->writer, err);
	while (r == 0) {
		r = stream_next(in, &g->rec, err);
		if (r >= 0)
			r = take_record(g, &g->rec, err);
		if (report->fn)
			report->fn(g->entries, g->bytes, report->ctx);
	}
	if (r < 0)
		return r;
	ret->entries = g->entries;
	ret->bytes = g->bytes;
	return draft_put(g->draft, b, &ret->id, &ret->root, err);
}
