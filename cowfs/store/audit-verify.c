#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "cowfs/store/audit-i.h"
#include "cowfs/store/record-i.h"
#include "cowfs/store/ref-row-i.h"
#include "cowfs/store/store-i.h"

/* The last that the chain says of a record. */
struct subject {
	char *name;                /* owned */
	char sum[SHA256_HEX_SIZE]; /* "": it was deleted */
	bool seen;
};

struct verifying {
	const char *wanted;
	audit_fn fn;
	void *ctx;
	struct audit_state *state;
	struct audit head;
	struct map subjects;
	char before
	    [SHA256_HEX_SIZE];  /* digest of the last entry; "": it cannot be read, or is none */
	uint64_t number, first; /* of the last entry; of the first one that must be there */
	int64_t began;          /* when the first entry was written */
	bool headless;          /* the head cannot be read */
	bool damaged;           /* some entry cannot be read: what it was about is not known */
};

static void verifying_done(struct verifying *v)
{
	struct subject *s;

	for (size_t pos = 0; (s = map_next(&v->subjects, &pos));) {
		free(s->name);
		free(s);
	}
	map_done(&v->subjects);
	audit_done(&v->head);
}

static int note_subject(struct verifying *v, const struct audit *a, struct err *err)
{
	struct subject *s = map_get(&v->subjects, a->subject);
	void *twin;

	if (!s) {
		s = calloc(1, sizeof(*s));
		if (!s)
			return err_nomem(err);
		s->name = strdup(a->subject);
		if (!s->name || map_add(&v->subjects, s->name, s, &twin) < 0) {
			free(s->name);
			free(s);
			return err_nomem(err);
		}
	}
	snprintf(s->sum, sizeof(s->sum), "%s", a->sha256 ? a->sha256 : "");
	return 0;
}

static int complain_entry(struct verifying *v, const char *name, const char *problem,
			  struct err *err)
{
	return v->fn("audit entry", name, problem, v->ctx, err);
}

/* Entries between the last one and this are gone. */
static int check_number(struct verifying *v, const struct audit *a, const char *name,
			struct err *err)
{
	char number[AUDIT_NAME_SIZE], missing[AUDIT_NAME_SIZE];
	const uint64_t want = v->number > 0 ? v->number + 1 : v->first;

	snprintf(number, sizeof(number), "%016" PRIx64, a->number);
	if (strcmp(number, name) != 0)
		return complain_entry(v, name, "it stands at another place than it was written at",
				      err);
	if (a->number == want || want == 0)
		return 0;
	snprintf(missing, sizeof(missing), "%016" PRIx64, want);
	return complain_entry(v, missing, "it is missing, or others are behind it", err);
}

static const char *name_of(const struct ref *ref, char name[REF_NAME_MAX + 1])
{
	memcpy(name, ref->name, ref->name_len);
	name[ref->name_len] = '\0';
	return name;
}

/*
 * It keeps its place in the chain, but its digest and its subject are not known any more.  The sentence
 * about it names it already.
 */
static int complain_damaged(struct verifying *v, const char *name, const char *why, struct err *err)
{
	const uint64_t number = audit_number(name, strlen(name));

	v->damaged = true;
	if (number > 0 && number < AUDIT_NUMBER_MAX) {
		v->number = number;
		*v->before = '\0';
	}
	return complain_entry(v, name, why, err);
}

static int check_entry(const struct ref *ref, const struct ref_damage *damage, void *ctx,
		       struct err *err)
{
	CLEANUP(audit_done) struct audit a = { 0 };
	struct verifying *v = ctx;
	char digest[SHA256_HEX_SIZE], name[REF_NAME_MAX + 1];
	struct err why = { 0 };
	int r;

	if (!ref)
		return strcmp(damage->name, AUDIT_HEAD) == 0
			   ? 0
			   : complain_damaged(v, damage->name, damage->why.msg, err);
	r = record_read(ref, &a, &why);
	if (r == -EBADMSG)
		return complain_damaged(v, name_of(ref, name), why.msg, err);
	if (r < 0)
		return err_set(err, r, "%s", why.msg);
	if (strcmp(a.name, AUDIT_HEAD) == 0)
		return 0;
	r = check_number(v, &a, a.name, err);
	if (r < 0)
		return r;
	audit_digest(&a, digest);
	if (strcmp(digest, a.digest) != 0)
		r = complain_entry(v, a.name, "it was changed: it does not match its digest", err);
	else if (*v->before != '\0' && strcmp(a.before ? a.before : "", v->before) != 0)
		r = complain_entry(v, a.name, "it does not follow the entry before it", err);
	if (r < 0)
		return r;
	v->state->entries++;
	v->began = v->began == 0 ? a.time : v->began;
	v->state->has_wanted |= v->wanted && strcmp(v->wanted, digest) == 0;
	v->number = a.number;
	memcpy(v->before, digest, sizeof(v->before));
	return note_subject(v, &a, err);
}

static int check_head(struct verifying *v, struct err *err)
{
	/* Of a head that cannot be read nothing more is said; the last entry is as good. */
	if (v->headless) {
		v->state->number = v->number;
		memcpy(v->state->head, v->before, sizeof(v->state->head));
		return 0;
	}
	/* The head has the digest of a last entry that is damaged. */
	if (*v->before == '\0' && v->number > 0 && v->state->number == v->number)
		return 0;
	if (v->state->number == v->number &&
	    (v->number == 0 || strcmp(v->state->head, v->before) == 0))
		return 0;
	return complain_entry(v, AUDIT_HEAD, "it is not the last entry: the newest are gone", err);
}

/* After a removal half of AUDIT_MAX are left, and none goes before there are more. */
static int check_first(struct verifying *v, struct err *err)
{
	char name[AUDIT_NAME_SIZE];

	if (v->damaged || v->first <= 1 || v->number >= v->first + AUDIT_MAX / 2)
		return 0;
	snprintf(name, sizeof(name), "%016" PRIx64, v->first - 1);
	return complain_entry(v, name, "it is gone, and snap did not remove it", err);
}

static const char *why_differs(const struct verifying *v, const struct subject *s)
{
	if (v->damaged)
		return "it was changed, or the entry about its last change cannot be read";
	return *s->sum != '\0' ? "it was changed since it was written"
			       : "it was deleted, and is there again";
}

static int complain_receipt(struct verifying *v, const char *name, const char *why, struct err *err)
{
	struct subject *s = map_get(&v->subjects, name);

	if (s)
		s->seen = true;
	v->state->records++;
	return v->fn("receipt", name, why, v->ctx, err);
}

static int check_receipt(const struct ref *ref, const struct ref_damage *damage, void *ctx,
			 struct err *err)
{
	CLEANUP(receipt_done) struct receipt receipt = { 0 };
	struct verifying *v = ctx;
	char sum[SHA256_HEX_SIZE], name[REF_NAME_MAX + 1];
	struct err why = { 0 };
	struct subject *s;
	int r;

	if (!ref)
		return complain_receipt(v, damage->name, damage->why.msg, err);
	r = record_read(ref, &receipt, &why);
	if (r == -EBADMSG)
		return complain_receipt(v, name_of(ref, name), why.msg, err);
	if (r < 0)
		return err_set(err, r, "%s", why.msg);
	audit_sum(ref, sum);
	s = map_get(&v->subjects, catalog_id_hex(&receipt.id, (char[CATALOG_HEX_SIZE]){ 0 }));
	v->state->records++;
	if (s) {
		s->seen = true;
		if (strcmp(s->sum, sum) == 0)
			return 0;
		return v->fn("receipt", s->name, why_differs(v, s), v->ctx, err);
	}
	/* The store had it before there was a chain, or before the oldest entry that is kept. */
	if (v->began == 0 || receipt.created < v->began) {
		v->state->unchained++;
		return 0;
	}
	return v->fn("receipt", catalog_id_hex(&receipt.id, (char[CATALOG_HEX_SIZE]){ 0 }),
		     v->damaged
			 ? "the chain does not have it, or has it in an entry that cannot be read"
			 : "the chain does not have it: snap did not write it",
		     v->ctx, err);
}

static int check_missing(struct verifying *v, struct err *err)
{
	const struct subject *s;
	int r = 0;

	for (size_t pos = 0; r >= 0 && (s = map_next(&v->subjects, &pos));)
		if (!s->seen && *s->sum != '\0')
			r = v->fn("receipt", s->name, "it is gone, and nobody deleted it", v->ctx,
				  err);
	return r;
}

/* The head first: it says where the chain begins. */
static int read_state(struct store *s, struct verifying *v, struct err *err)
{
	CLEANUP(buf_done) struct buf hold = BUF_INIT;
	struct err why = { 0 };
	struct ref ref;
	int r = ref_get(s, REF_AUDIT, AUDIT_HEAD, strlen(AUDIT_HEAD), &ref, &hold, &why);

	if (r == -ENOENT)
		return 0;
	if (r >= 0)
		r = record_read(&ref, &v->head, &why);
	if (r == -EBADMSG) {
		v->headless = true;
		return complain_entry(v, AUDIT_HEAD, why.msg, err);
	}
	if (r < 0)
		return err_set(err, r, "%s", why.msg);
	v->first = v->head.first;
	v->state->number = v->head.number;
	snprintf(v->state->head, sizeof(v->state->head), "%s", v->head.digest);
	return 0;
}

int audit_verify(struct store *s, const char *wanted, audit_fn fn, void *ctx,
		 struct audit_state *ret, struct err *err)
{
	CLEANUP(verifying_done) struct verifying v = {
		.wanted = wanted,
		.fn = fn,
		.ctx = ctx,
		.state = ret,
		.subjects = MAP_INIT(map_hash_str, map_equal_str),
	};
	CLEANUP(reader_give_p) struct reader *rd = NULL;
	int r;

	*ret = (struct audit_state){ 0 };
	r = read_state(s, &v, err);
	if (r < 0)
		return r;
	r = reader_take(s, &rd, err);
	if (r < 0)
		return r;
	r = ref_scan(rd->db[TABLE_META], REF_AUDIT, check_entry, &v, err);
	if (r < 0)
		return r;
	r = check_head(&v, err);
	r = r < 0 ? r : check_first(&v, err);
	if (r < 0)
		return r;
	r = ref_scan(rd->db[TABLE_META], REF_RECEIPT, check_receipt, &v, err);
	return r < 0 ? r : check_missing(&v, err);
}
