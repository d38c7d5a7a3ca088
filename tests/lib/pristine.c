#include "tests/lib/pristine.h"

#include <stdio.h>

#include "cowfs/store/upkeep/check.h"
#include "tests/lib/damage.h"
#include "tests/lib/stock.h"

const char *const pristine_file[PRISTINE_FILES] = { "meta.db", "chunks.db" };

static void learn_object(struct pristine *p, struct store *s, enum object_kind kind,
			 const struct buf *id)
{
	struct known_object *o = &p->object[p->n_objects++];
	struct err err = { 0 };

	CHECK(p->n_objects <= PRISTINE_OBJECTS);
	CHECK_EQ(id->len, OBJECT_ID_SIZE);
	o->kind = kind;
	memcpy(o->id.b, id->data, OBJECT_ID_SIZE);
	CHECK_OK(store_get(s, kind, &o->id, &o->bytes, &err), &err);
}

static void learn_table(struct pristine *p, struct store *s, const char *file, const char *table)
{
	const int64_t max = damage_ask(p->path, file, "SELECT max(seq) FROM %s", table);
	enum object_kind kind = OBJECT_CHUNK;
	char sql[128];

	for (int64_t seq = 1; seq <= max; seq++) {
		CLEANUP(buf_done) struct buf id = BUF_INIT;

		snprintf(sql, sizeof(sql), "SELECT id FROM %s WHERE seq = %lld", table,
			 (long long)seq);
		damage_ask_blob(p->path, file, sql, &id);
		if (strcmp(table, "object") == 0)
			kind = (enum object_kind)damage_ask(
			    p->path, file, "SELECT kind FROM object WHERE seq = %lld",
			    (long long)seq);
		learn_object(p, s, kind, &id);
	}
}

struct pristine pristine_new(const char *name)
{
	struct pristine p = { .path = test_path(name) };
	struct store *s = stock_open(p.path, STORE_CREATE);

	stock_fill_small(s);
	p.root = stock_root(s, "s");
	learn_table(&p, s, "meta.db", "object");
	learn_table(&p, s, "chunks.db", "chunk");
	CHECK_EQ(p.n_objects, stock_rows(s));
	store_close(s);
	for (size_t f = 0; f < PRISTINE_FILES; f++)
		damage_read(p.path, pristine_file[f], &p.file[f]);
	return p;
}

void pristine_done(struct pristine *p)
{
	for (size_t i = 0; i < p->n_objects; i++)
		buf_done(&p->object[i].bytes);
	for (size_t f = 0; f < PRISTINE_FILES; f++)
		buf_done(&p->file[f]);
}

/* Is everything that can be read what was put?  A failure to read is fine, wrong bytes are not. */
static void check_objects(const struct pristine *p, struct store *s, bool all)
{
	for (size_t i = 0; i < p->n_objects; i++) {
		const struct known_object *o = &p->object[i];
		CLEANUP(buf_done) struct buf out = BUF_INIT;
		struct err err = { 0 };
		int r = store_get(s, o->kind, &o->id, &out, &err);

		if (r >= 0) {
			CHECK_MEM(out.data, out.len, o->bytes.data, o->bytes.len);
			continue;
		}
		CHECK(!all);
		CHECK_EQ(err.code, r);
		CHECK_EQ(out.len, 0);
	}
}

struct refs {
	const struct pristine *pristine;
	unsigned n;
};

static int check_ref(const struct ref *ref, void *ctx, struct err *err)
{
	struct refs *refs = ctx;
	const bool tag = ref->kind == REF_TAG;
	static const struct object_id zero;

	(void)err;
	refs->n++;
	CHECK_MEM(ref->name, ref->name_len, tag ? "t" : "s", 1);
	CHECK_MEM(ref->value, ref->value_len, "v", tag ? 1 : 0);
	CHECK(object_id_equal(&ref->root, tag ? &zero : &refs->pristine->root));
	return 0;
}

static void check_refs(const struct pristine *p, struct store *s, bool all)
{
	static const enum ref_kind has[] = { REF_SNAPSHOT, REF_TAG };
	struct refs refs = { .pristine = p };

	for (int k = 1; k <= REF_KINDS; k++) {
		const int r = ref_each(s, (enum ref_kind)k, NULL, 0, check_ref, &refs, NULL);

		CHECK(r >= 0 || !all);
	}
	CHECK(refs.n == 2 || !all);
	for (size_t i = 0; i < ARRAY_LEN(has); i++) {
		CLEANUP(buf_done) struct buf hold = BUF_INIT;
		struct ref ref;
		const int r = ref_get(s, has[i], i ? "t" : "s", 1, &ref, &hold, NULL);

		CHECK(r >= 0 || !all);
		if (r >= 0)
			check_ref(&ref, &refs, NULL);
	}
}

bool pristine_is_damaged(const struct pristine *p)
{
	struct check_report report = { 0 };
	struct store *s = NULL;
	struct err err = { 0 };
	bool found;
	int r;

	r = store_open(p->path, STORE_READ, &s, &err);
	if (r < 0) {
		CHECK_EQ(err.code, r);
		CHECK(err.msg[0]);
		return true;
	}
	r = check_store(s, NULL, NULL, &report, &err);
	CHECK(r >= 0 || err.code == r);
	found = r < 0 || report.n_findings > 0;
	for (size_t i = 0; i < report.n_findings; i++)
		CHECK(report.findings[i].what[0] && report.findings[i].why[0]);
	check_report_done(&report);
	check_objects(p, s, !found);
	check_refs(p, s, !found);
	store_close(s);
	return found;
}

void pristine_restore(const struct pristine *p, size_t file)
{
	damage_write(p->path, pristine_file[file], p->file[file].data, p->file[file].len);
}
