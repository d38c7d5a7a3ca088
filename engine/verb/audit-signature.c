/*
 * Signatures of the heads, in STORE/audit: a file for each, named by its time. A head has the
 * digest of everything before it in its chain, so the newest signature covers as much as all before
 * it; a few stay for readers who allow other signers than the last one.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fdio.h"
#include "base/path.h"
#include "base/sys.h"
#include "engine/verb/audit-i.h"
#include "remote/keygen.h"

#define DIRECTORY "audit"
#define KEPT      16
#define FILE_MAX  ((size_t)32 << 10)
#define NAME_LEN  16 /* of a file: its time in hex */

/* --- the statement ------------------------------------------------------------------------ */

static int add_head(struct buf *out, const char *chain, const struct engine_audit_head *head)
{
	return buf_printf(out, "%s %" PRIu64 " %s\n", chain, head->number,
			  *head->digest != '\0' ? head->digest : "-");
}

/* Which store it is, so that a signature fits no other one. */
static int add_store(struct buf *out, const struct engine *e)
{
	char host[256] = "";

	IGNORE_RESULT(gethostname(host, sizeof(host) - 1), "then it has no name");
	if (buf_printf(out, "store %s:", host) < 0 ||
	    path_append_escaped(out, e->store_path, strlen(e->store_path)) < 0)
		return -ENOMEM;
	return buf_append_str(out, "\n");
}

static int write_statement(const struct engine *e, const struct engine_audit_signature *s,
			   struct buf *out, struct err *err)
{
	return buf_printf(out, "snapcow audit 1\ntime %" PRId64 "\n", s->time) < 0 ||
		       add_store(out, e) < 0 || add_head(out, "receipts", &s->receipts) < 0 ||
		       add_head(out, "events", &s->events) < 0 ||
		       add_head(out, "records", &s->records) < 0
		   ? err_nomem(err)
		   : 0;
}

static void read_head(const char *text, const char *chain, struct engine_audit_head *ret)
{
	const char *line = strstr(text, chain);

	*ret = (struct engine_audit_head){ 0 };
	if (line)
		sscanf(line + strlen(chain), "%" SCNu64 " %64[0-9a-f]", &ret->number, ret->digest);
}

/* Read it, and see that it would be written so here.  False: it is none, or of another store. */
static bool read_statement(const struct engine *e, const char *text, size_t len,
			   struct engine_audit_signature *ret)
{
	CLEANUP(buf_done) struct buf again = BUF_INIT;
	struct err ignored = { 0 };

	if (sscanf(text, "snapcow audit 1\ntime %" SCNd64, &ret->time) != 1)
		return false;
	read_head(text, "\nreceipts ", &ret->receipts);
	read_head(text, "\nevents ", &ret->events);
	read_head(text, "\nrecords ", &ret->records);
	return write_statement(e, ret, &again, &ignored) == 0 && again.len == len &&
	       memcmp(again.data, text, len) == 0;
}

/* --- files -------------------------------------------------------------------------------- */

struct names {
	char list[KEPT + 1][NAME_LEN + 1]; /* the newest, newest first */
	size_t n;
};

static int add_name(const char *name, unsigned char type, void *ctx)
{
	struct names *all = ctx;
	size_t at = all->n;

	if (strlen(name) != NAME_LEN || strspn(name, "0123456789abcdef") != NAME_LEN)
		return 0;
	while (at > 0 && strcmp(all->list[at - 1], name) < 0)
		at--;
	if (at > KEPT)
		return 0;
	all->n += all->n <= KEPT;
	memmove(&all->list[at + 1], &all->list[at], (all->n - 1 - at) * sizeof(all->list[0]));
	memcpy(all->list[at], name, sizeof(all->list[at]));
	return 0;
}

static int open_dir(struct engine *e, bool make, int *ret, struct err *err)
{
	AUTO_FREE char *path = path_join(e->store_path, DIRECTORY);
	int r = !path ? err_nomem(err) : make ? path_make_dirs(path, 0700, err) : 0;

	if (r < 0)
		return r;
	*ret = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return *ret < 0 && (make || errno != ENOENT) ? err_sys(err, "opening '%s'", path) : 0;
}

static int list_names(int dir, struct names *ret, struct err *err)
{
	int r = sys_each_name(dir, add_name, ret);

	return r < 0 ? err_set(err, r, "reading '" DIRECTORY "' of the store: %s", strerror(-r))
		     : 0;
}

static struct engine_audit_head head_of(uint64_t number, const char *digest)
{
	struct engine_audit_head head = { .number = *digest != '\0' ? number : 0 };

	snprintf(head.digest, sizeof(head.digest), "%s", digest);
	return head;
}

int engine_audit_sign(struct engine *e, const struct engine_audit *a, const char *key,
		      struct engine_audit_signature *ret, struct err *err)
{
	struct engine_audit_signature s = {
		.time = engine_now(),
		.receipts = head_of(a->receipt_number, a->receipt_head),
		.events = head_of(a->event_number, a->event_head),
		.records = head_of(a->record_number, a->record_head),
	};
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	AUTO_FREE char *signature = NULL;
	struct names names = { .n = 0 };
	AUTO_CLOSE int dir = -1;
	int r;

	if (access(key, R_OK) < 0)
		return err_sys(err, "reading the key '%s'", key);
	r = write_statement(e, &s, &text, err);
	if (r == 0)
		r = keygen_sign(KEYGEN_AUDIT, &text, key, &signature, err);
	if (r == 0)
		r = open_dir(e, true, &dir, err);
	if (r == 0 && buf_append_str(&text, signature) < 0)
		r = err_nomem(err);
	snprintf(s.file, sizeof(s.file), "%016" PRIx64, (uint64_t)s.time);
	if (r == 0)
		r = fdio_replace_file(dir, s.file, text.data, text.len, 0600, err);
	if (r == 0)
		r = list_names(dir, &names, err);
	if (r < 0)
		return r;
	if (names.n > KEPT)
		unlinkat(dir, names.list[KEPT], 0);
	*ret = s;
	return 0;
}

/* --- looking ------------------------------------------------------------------------------ */

static int check_file(const struct engine *e, int dir, const char *name, const char *signers,
		      struct engine_audit_signature *ret, struct err *err)
{
	struct keygen_claim claim = { .space = KEYGEN_AUDIT,
				      .subject = name,
				      .misfit = "its signature does not fit what it says",
				      .signers = signers };
	CLEANUP(buf_done) struct buf file = BUF_INIT, statement = BUF_INIT;
	AUTO_FREE char *who = NULL;
	const char *text;
	int r = fdio_read_file(dir, name, FILE_MAX, &file, err);

	if (r < 0)
		return r;
	text = buf_str(&file);
	claim.signature = text ? strstr(text, KEYGEN_BEGIN) : NULL;
	if (!claim.signature || !read_statement(e, text, (size_t)(claim.signature - text), ret) ||
	    strtoull(name, NULL, 16) != (uint64_t)ret->time)
		return err_set(err, -ECANCELED,
			       "'%s' is not accepted: it is no signature of this store", name);
	if (buf_append(&statement, text, (size_t)(claim.signature - text)) < 0)
		return err_nomem(err);
	r = keygen_check(&claim, &statement, &who, err);
	if (r < 0)
		return r;
	snprintf(ret->file, sizeof(ret->file), "%s", name);
	snprintf(ret->signer, sizeof(ret->signer), "%s", who);
	return 0;
}

int audit_signature_find(struct auditing *a, const char *signers,
			 struct engine_audit_signature *ret, struct err *err)
{
	struct names names = { .n = 0 };
	struct err newest = { 0 };
	AUTO_CLOSE int dir = -1;
	int r = access(signers, R_OK) < 0
		    ? err_sys(err, "reading the allowed signers in '%s'", signers)
		    : open_dir(a->engine, false, &dir, err);

	if (r == 0 && dir >= 0)
		r = list_names(dir, &names, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < names.n; i++) {
		struct engine_audit_signature one = { 0 };
		struct err why = { 0 };

		r = check_file(a->engine, dir, names.list[i], signers, &one, &why);
		if (r == 0)
			*ret = one;
		if (r != -ECANCELED && r != -ENOENT && r != -EFBIG)
			return r < 0 ? err_set(err, r, "%s", why.msg) : 1;
		if (i == 0)
			newest = why;
	}
	return audit_complain(a, "signature", names.n > 0 ? names.list[0] : "-",
			      names.n > 0 ? newest.msg : "nobody signed what is recorded", err);
}
