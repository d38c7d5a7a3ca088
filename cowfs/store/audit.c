#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cowfs/store/audit-i.h"
#include "cowfs/store/record-i.h"
#include "cowfs/store/ref-row-i.h"

void audit_sum(const struct ref *ref, char hex[SHA256_HEX_SIZE])
{
	struct sha256 s;

	sha256_begin(&s);
	sha256_add(&s, ref->value, ref->value_len);
	sha256_end_hex(&s, hex);
}

static void add_text(struct sha256 *s, const char *text)
{
	sha256_add_text(s, text, text ? strlen(text) : 0);
}

void audit_digest(const struct audit *a, char hex[SHA256_HEX_SIZE])
{
	struct sha256 s;

	sha256_begin(&s);
	sha256_add_u64(&s, a->number);
	sha256_add_u64(&s, (uint64_t)a->time);
	sha256_add_u64(&s, a->first);
	sha256_add_u64(&s, a->kind);
	sha256_add_u64(&s, a->gone);
	add_text(&s, a->subject);
	add_text(&s, a->sha256);
	add_text(&s, a->before);
	sha256_end_hex(&s, hex);
}

/* --- adding ----------------------------------------------------------------------------- */

static int read_one(struct db *meta, const char *sql, struct audit *ret, struct err *err)
{
	CLEANUP(query_end_p) struct db_query *q = NULL;
	struct ref ref;
	int r = db_query(meta, sql, &q, err);

	if (r < 0)
		return r;
	query_bind_int(q, 0, REF_AUDIT);
	query_bind_blob(q, 1, AUDIT_HEAD, strlen(AUDIT_HEAD));
	r = query_step(q, err);
	if (r <= 0)
		return r < 0 ? r : -ENOENT;
	r = ref_row_read(q, REF_AUDIT, &ref, err);
	return r < 0 ? r : record_read(&ref, ret, err);
}

uint64_t audit_number(const char *name, size_t len)
{
	char text[AUDIT_NAME_SIZE] = "";

	if (len != AUDIT_NAME_SIZE - 1 || memchr(name, '\0', len))
		return 0;
	memcpy(text, name, len);
	if (strspn(text, "0123456789abcdef") != len)
		return 0;
	return strtoull(text, NULL, 16);
}

/*
 * The last entry that can be read, and in `number` the last there is: what is damaged keeps its place,
 * and what follows takes the next.  Before the first one, none of both is set.
 */
static int read_last(struct db *meta, struct audit *ret, uint64_t *number, struct err *err)
{
	static const char sql[] = "SELECT name, root, value, sum FROM ref"
				  " WHERE kind = ?1 AND name < ?2 ORDER BY name DESC";
	CLEANUP(query_end_p) struct db_query *q = NULL;
	int r = db_query(meta, sql, &q, err);

	if (r < 0)
		return r;
	query_bind_int(q, 0, REF_AUDIT);
	query_bind_blob(q, 1, AUDIT_HEAD, strlen(AUDIT_HEAD));
	while ((r = query_step(q, err)) > 0) {
		struct err why = { 0 };
		const void *name;
		struct ref ref;
		size_t len;

		/* A number beyond any chain is damage as well: nothing could follow it. */
		if (query_blob(q, 0, &name, &len, NULL) >= 0 && *number == 0 &&
		    audit_number(name, len) < AUDIT_NUMBER_MAX)
			*number = audit_number(name, len);
		r = ref_row_read(q, REF_AUDIT, &ref, &why);
		r = r < 0 ? r : record_read(&ref, ret, &why);
		if (r != -EBADMSG)
			return r < 0 ? err_set(err, r, "%s", why.msg) : r;
	}
	return r;
}

/*
 * Without a head, or with a damaged one, the last entry that can be read: no receipt may fail for want
 * of it.  If there is none, the chain begins anew behind the last one.
 */
static int read_head(struct db *meta, struct audit *ret, struct err *err)
{
	static const char head[] =
	    "SELECT name, root, value, sum FROM ref WHERE kind = ?1 AND name = ?2";
	struct err why = { 0 };
	uint64_t number = 0;
	int r = read_one(meta, head, ret, &why);

	if (r >= 0)
		return r;
	if (r != -ENOENT && r != -EBADMSG)
		return err_set(err, r, "%s", why.msg);
	r = read_last(meta, ret, &number, err);
	if (r < 0)
		return r;
	if (number > 0 && ret->first == 0)
		ret->first = number + 1;
	if (number > ret->number)
		ret->number = number;
	return 0;
}

static int write_entry(struct db *meta, struct audit *a, const char *name, enum ref_mode mode,
		       struct err *err)
{
	CLEANUP(record_ref_done) struct record_ref ref = { 0 };
	struct audit copy = *a;
	int r;

	copy.name = strdup(name);
	if (!copy.name)
		return err_nomem(err);
	r = record_write(REF_AUDIT, &copy, &ref, err);
	if (r >= 0)
		r = ref_row_write(meta, &ref.ref, mode, err);
	free(copy.name);
	return r;
}

/* Entries before `first` go. */
static int drop_oldest(struct db *meta, uint64_t first, struct err *err)
{
	static const char sql[] = "DELETE FROM ref WHERE kind = ?1 AND name < ?2";
	CLEANUP(query_end_p) struct db_query *q = NULL;
	char name[AUDIT_NAME_SIZE];
	int r = db_query(meta, sql, &q, err);

	if (r < 0)
		return r;
	snprintf(name, sizeof(name), "%016" PRIx64, first);
	query_bind_int(q, 0, REF_AUDIT);
	query_bind_blob(q, 1, name, strlen(name));
	return query_run(q, err);
}

int audit_append(struct db *meta, const struct ref *subject, bool gone, struct err *err)
{
	CLEANUP(audit_done) struct audit head = { 0 };
	char sum[SHA256_HEX_SIZE], digest[SHA256_HEX_SIZE], name[AUDIT_NAME_SIZE],
	    text[REF_NAME_MAX + 1];
	struct timespec now;
	struct audit a;
	int r = read_head(meta, &head, err);

	if (r < 0)
		return err_wrap(err, r, "the chain of receipts");
	if (clock_gettime(CLOCK_REALTIME, &now) < 0)
		return err_sys(err, "the time");
	audit_sum(subject, sum);
	memcpy(text, subject->name, subject->name_len);
	text[subject->name_len] = '\0';
	a = (struct audit){
		.number = head.number + 1,
		.time = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec,
		.first = head.first > 0 ? head.first : 1,
		.kind = subject->kind,
		.gone = gone,
		.subject = text,
		.sha256 = gone ? NULL : sum,
		.before = head.digest,
	};
	/* Half of them at once, so that this is rare. */
	if (a.number - a.first >= AUDIT_MAX) {
		a.first = a.number - AUDIT_MAX / 2;
		r = drop_oldest(meta, a.first, err);
		if (r < 0)
			return r;
	}
	audit_digest(&a, digest);
	a.digest = digest;
	snprintf(name, sizeof(name), "%016" PRIx64, a.number);
	r = write_entry(meta, &a, name, REF_NEW, err);
	return r < 0 ? r : write_entry(meta, &a, AUDIT_HEAD, REF_REPLACE, err);
}
