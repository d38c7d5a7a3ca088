#include "engine/worker/ticket.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/fields.h"
#include "base/hex.h"
#include "base/path.h"
#include "base/size.h"
#include "base/utf8.h"
#include "base/vec.h"
#include "engine/find/run-record-i.h"
#include "remote/depot.h"

#define TICKET_SCHEMA "snapcow.ticket/1"
#define RESULT_SCHEMA "snapcow.result/2" /* 1 had no signature */
#define NONCE_LEN     32
#define NAME_LEN_MAX  200
#define SIGNATURE_MAX ((size_t)16 << 10)

static const char hex_digits[] = "0123456789abcdef";

/* --- the tables --------------------------------------------------------------------------- */

#define NAMES(key) FIELD_STRINGS(FIELD_STRLIST, struct ticket, #key, key)

static const struct field ticket_fields[] = {
	FIELD(FIELD_TEXT, struct ticket, schema),
	FIELD(FIELD_TEXT, struct ticket, snapshot),
	FIELD(FIELD_TEXT, struct ticket, name),
	FIELD(FIELD_NAME, struct ticket, remote),
	FIELD(FIELD_NAME_OR_NULL, struct ticket, profile),
	NAMES(command),
	FIELD(FIELD_NAME, struct ticket, workdir),
	NAMES(env),
	NAMES(pass_env),
	FIELD_OF(struct ticket, "limits", limits, &run_limits_fields),
	FIELD(FIELD_INT, struct ticket, deadline),
	NAMES(labels),
	FIELD(FIELD_NAME_OR_NULL, struct ticket, experiment),
	FIELD(FIELD_NAME_OR_NULL, struct ticket, arm),
	FIELD(FIELD_TEXT, struct ticket, nonce),
};
static const struct fields ticket_table = FIELDS(struct ticket, ticket_fields);

static const struct field result_fields[] = {
	FIELD(FIELD_TEXT, struct result, schema),
	FIELD(FIELD_TEXT, struct result, ticket),
	FIELD(FIELD_TEXT, struct result, outcome),
	FIELD(FIELD_NAME_OR_NULL, struct result, worker),
	FIELD(FIELD_NAME_OR_NULL, struct result, host),
	FIELD(FIELD_NAME_OR_NULL, struct result, problem),
	FIELD(FIELD_NAME_OR_NULL, struct result, experiment),
	FIELD(FIELD_NAME_OR_NULL, struct result, arm),
	FIELD(FIELD_NAME_OR_NULL, struct result, command),
	FIELD(FIELD_UINT, struct result, attempt),
	FIELD(FIELD_UINT, struct result, code),
	FIELD(FIELD_UINT, struct result, signal),
	FIELD(FIELD_NAME_OR_NULL, struct result, snapshot),
	FIELD(FIELD_NAME_OR_NULL, struct result, run),
	FIELD(FIELD_NAME_OR_NULL, struct result, profile),
	FIELD(FIELD_NAME_OR_NULL, struct result, limit),
	FIELD(FIELD_INT, struct result, started),
	FIELD(FIELD_INT, struct result, ended),
	FIELD(FIELD_UINT, struct result, duration_ms),
	FIELD(FIELD_UINT, struct result, cpu_ms),
	FIELD(FIELD_UINT, struct result, max_rss),
	FIELD(FIELD_UINT, struct result, added),
	FIELD(FIELD_UINT, struct result, modified),
	FIELD(FIELD_UINT, struct result, deleted),
	FIELD(FIELD_UINT, struct result, fetched),
	FIELD(FIELD_UINT, struct result, pushed),
	FIELD(FIELD_UINT, struct result, skipped),
	FIELD(FIELD_UINT, struct result, out),
	FIELD(FIELD_UINT, struct result, err),
	FIELD(FIELD_TEXT_OR_NULL, struct result, signature),
};
static const struct fields result_table = FIELDS(struct result, result_fields);

DEFINE_FIELDS_DONE(ticket_done, struct ticket, ticket_table)

DEFINE_FIELDS_DONE(result_done, struct result, result_table)

/* --- one text for one content ------------------------------------------------------------- */

static int encode(const struct fields *table, const void *from, struct buf *out, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	int r;

	fields_set(json_begin(&doc), table, from);
	r = json_append(&doc, &text, err);
	if (r == 0)
		buf_swap(out, &text);
	return r;
}

/* Another version is reported as such, not as one that lacks members. */
static int check_schema(struct json j, const char *schema, struct err *err)
{
	const char *have = json_text_if(j, "schema");
	const size_t stem = strcspn(schema, "/") + 1;

	if (have && strcmp(have, schema) == 0)
		return 0;
	if (have && strncmp(have, schema, stem) == 0 && strlen(have) > stem &&
	    strlen(have) < stem + 10 && strspn(have + stem, "0123456789") == strlen(have) - stem)
		return err_set(err, -EINVAL,
			       "it was written by another version of snapcow ('%s', and this one "
			       "reads '%s'): install the same version on both machines",
			       have, schema);
	return err_set(err, -EINVAL, "it is no '%s'", schema);
}

/* Unknown or doubled members, blanks and other spellings would not come out again. */
static int decode(const struct fields *table, const char *schema, const struct buf *text, void *to,
		  struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	CLEANUP(buf_done) struct buf again = BUF_INIT;
	struct json j;
	int r = json_parse(&doc, (const char *)text->data, text->len, &j, err);

	if (r == 0)
		r = check_schema(j, schema, err);
	if (r == 0)
		r = fields_read(j, table, to, err);
	if (r == 0)
		r = encode(table, to, &again, err);
	if (r < 0)
		return r;
	if (again.len != text->len || memcmp(again.data, text->data, text->len) != 0)
		return err_set(err, -EINVAL, "its text is not in canonical form");
	return 0;
}

/* --- what may be in one ------------------------------------------------------------------- */

static int wrong(struct err *err, const char *member)
{
	return err_set(err, -EINVAL, "the value of '%s' is not allowed", member);
}

bool ticket_is_shown(const char *text)
{
	size_t left = strlen(text), len;

	if (left > NAME_LEN_MAX)
		return false;
	for (; left > 0; text += len, left -= len) {
		len = utf8_printable(text, left);
		if (len == 0)
			return false;
	}
	return true;
}

static bool is_variable(const char *name, size_t len)
{
	if (len == 0 || len > NAME_LEN_MAX || (name[0] >= '0' && name[0] <= '9'))
		return false;
	return VEC_ALL(it, name, len,
		       *it == '_' || (*it >= '0' && *it <= '9') || (*it >= 'A' && *it <= 'Z') ||
			   (*it >= 'a' && *it <= 'z'));
}

static bool are_variables(const struct strlist *l, bool with_values)
{
	if (l->n > TICKET_WORDS_MAX)
		return false;
	for (size_t i = 0; i < l->n; i++) {
		const char *equals = strchr(l->list[i], '=');

		if ((equals != NULL) != with_values ||
		    !is_variable(l->list[i],
				 equals ? (size_t)(equals - l->list[i]) : strlen(l->list[i])))
			return false;
	}
	return true;
}

static bool are_labels(const struct strlist *l)
{
	if (l->n > QUEUE_LABELS_MAX)
		return false;
	for (size_t i = 0; i < l->n; i++)
		if (!queue_word_valid(l->list[i]) || strcmp(l->list[i], "any") == 0 ||
		    (i > 0 && strcmp(l->list[i - 1], l->list[i]) >= 0))
			return false;
	return true;
}

/* Relative, without "." and ".." and doubled slashes. */
static bool is_below(const char *path)
{
	for (const char *at = path; *at != '\0';) {
		const size_t len = strcspn(at, "/");

		if (len == 0 || (len == 1 && at[0] == '.') ||
		    (len == 2 && at[0] == '.' && at[1] == '.'))
			return false;
		at += len;
		if (*at == '/' && *++at == '\0')
			return false;
	}
	return strlen(path) < 4096;
}

static int check_ticket(const struct ticket *t, struct err *err)
{
	struct digest unused;

	if (digest_parse(t->snapshot, &unused) < 0)
		return wrong(err, "snapshot");
	if (!depot_tag_valid(t->name))
		return wrong(err, "name");
	if (t->remote[0] == '\0' || strlen(t->remote) > 1024)
		return wrong(err, "remote");
	if (t->profile && (!ticket_is_shown(t->profile) || t->profile[0] == '\0' ||
			   strchr(t->profile, '/') || t->profile[0] == '.'))
		return wrong(err, "profile");
	if (t->command.n == 0 || t->command.n > TICKET_WORDS_MAX || t->command.list[0][0] == '\0')
		return wrong(err, "command");
	if (!is_below(t->workdir))
		return wrong(err, "workdir");
	if (!are_variables(&t->env, true))
		return wrong(err, "env");
	if (!are_variables(&t->pass_env, false))
		return wrong(err, "pass_env");
	if (t->deadline < 0)
		return wrong(err, "deadline");
	if (!are_labels(&t->labels))
		return wrong(err, "labels");
	if ((t->experiment && !ticket_is_shown(t->experiment)) ||
	    (t->arm && !ticket_is_shown(t->arm)))
		return wrong(err, "experiment");
	if (strlen(t->nonce) != NONCE_LEN || strspn(t->nonce, hex_digits) != NONCE_LEN)
		return wrong(err, "nonce");
	return 0;
}

int ticket_encode(const struct ticket *t, struct buf *out, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	struct ticket whole = *t;
	int r;

	whole.schema = (char *)(uintptr_t)TICKET_SCHEMA;
	r = check_ticket(&whole, err);
	if (r == 0)
		r = encode(&ticket_table, &whole, &text, err);
	if (r < 0)
		return err_wrap(err, r, "a ticket");
	if (text.len > QUEUE_TICKET_MAX)
		return err_set(err, -E2BIG, "a ticket has no more than %u bytes, and this has %zu",
			       QUEUE_TICKET_MAX, text.len);
	buf_swap(out, &text);
	return 0;
}

int ticket_decode(const struct buf *text, struct ticket *ret, struct err *err)
{
	CLEANUP(ticket_done) struct ticket t = { 0 };
	int r;

	if (text->len > QUEUE_TICKET_MAX)
		return err_set(err, -EINVAL, "a ticket has no more than %u bytes",
			       QUEUE_TICKET_MAX);
	r = decode(&ticket_table, TICKET_SCHEMA, text, &t, err);
	if (r == 0)
		r = check_ticket(&t, err);
	if (r < 0)
		return err_wrap(err, r, "a ticket");
	*ret = TAKE_STRUCT(t);
	return 0;
}

char *ticket_id(const struct buf *text, char id[QUEUE_ID_SIZE])
{
	const struct digest d = digest_of(text->data, text->len);

	return hex_encode(d.b, sizeof(d.b), id);
}

struct queue_need ticket_need(const struct ticket *t)
{
	return (struct queue_need){ t->limits.mem, t->limits.cpus_milli };
}

struct queue_need need_part(const struct queue_need *of, const struct queue_need *asked)
{
	return (struct queue_need){ asked->mem > 0 ? of->mem : 0,
				    asked->cpus_milli > 0 ? of->cpus_milli : 0 };
}

char *need_text(const struct queue_need *need, char to[NEED_TEXT_MAX])
{
	const double cpus = (double)need->cpus_milli / 1000;
	char mem[SIZE_TEXT_MAX];

	size_format(need->mem, mem);
	if (need->cpus_milli == 0)
		snprintf(to, NEED_TEXT_MAX, "%s of memory", mem);
	else if (need->mem == 0)
		snprintf(to, NEED_TEXT_MAX, "%.10g processors", cpus);
	else
		snprintf(to, NEED_TEXT_MAX, "%s of memory and %.10g processors", mem, cpus);
	return to;
}

/* --- results ------------------------------------------------------------------------------ */

static bool is_outcome(const char *text)
{
	static const char *const all[] = { RESULT_EXIT,     RESULT_TIME,   RESULT_REFUSED,
					   RESULT_EXPIRED,  RESULT_FAILED, RESULT_LOST,
					   RESULT_CANCELLED };

	return VEC_HAS(it, all, ARRAY_LEN(all), strcmp(text, *it) == 0);
}

/* As ssh-keygen writes one: lines of ASCII. */
static bool is_signature(const char *text)
{
	if (strlen(text) > SIGNATURE_MAX)
		return false;
	for (; *text != '\0'; text++)
		if (*text != '\n' && (*text < ' ' || *text > '~'))
			return false;
	return true;
}

bool result_is_claim(const struct result *r)
{
	return strcmp(r->outcome, RESULT_EXIT) == 0 || strcmp(r->outcome, RESULT_TIME) == 0;
}

static int check_result(const struct result *r, struct err *err)
{
	const char *const shown[] = { r->worker, r->host,    r->experiment, r->arm,
				      r->run,    r->profile, r->limit };
	struct digest unused;

	if (strlen(r->ticket) != QUEUE_ID_SIZE - 1 ||
	    strspn(r->ticket, hex_digits) != QUEUE_ID_SIZE - 1)
		return wrong(err, "ticket");
	if (!is_outcome(r->outcome))
		return wrong(err, "outcome");
	if (r->code > 255 || r->signal > 64)
		return wrong(err, "code");
	if (r->snapshot && digest_parse(r->snapshot, &unused) < 0)
		return wrong(err, "snapshot");
	if (!result_is_claim(r) &&
	    (r->code == 0 || r->snapshot || r->added > 0 || r->modified > 0 || r->deleted > 0))
		return wrong(err, "outcome");
	for (size_t i = 0; i < ARRAY_LEN(shown); i++)
		if (shown[i] && !ticket_is_shown(shown[i]))
			return wrong(err, "worker");
	if (r->signature && !is_signature(r->signature))
		return wrong(err, "signature");
	return 0;
}

int result_encode(const struct result *r, struct buf *out, struct err *err)
{
	struct result whole = *r;
	int x;

	whole.schema = (char *)(uintptr_t)RESULT_SCHEMA;
	x = check_result(&whole, err);
	if (x == 0)
		x = encode(&result_table, &whole, out, err);
	return x < 0 ? err_wrap(err, x, "a result") : 0;
}

int result_decode(const struct buf *text, struct result *ret, struct err *err)
{
	CLEANUP(result_done) struct result res = { 0 };
	int r;

	if (text->len > QUEUE_RESULT_MAX)
		return err_set(err, -EINVAL, "a result has no more than %u bytes",
			       QUEUE_RESULT_MAX);
	r = decode(&result_table, RESULT_SCHEMA, text, &res, err);
	if (r == 0)
		r = check_result(&res, err);
	if (r < 0)
		return err_wrap(err, r, "a result");
	*ret = TAKE_STRUCT(res);
	return 0;
}

int result_statement(const struct result *r, struct buf *out, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	char hex[DIGEST_TEXT_SIZE];
	struct result known = *r;
	struct digest all;
	int x;

	known.attempt = known.out = known.err = 0;
	known.signature = NULL;
	x = result_encode(&known, &text, err);
	if (x < 0)
		return x;
	all = digest_of(text.data, text.len);
	buf_reset(out);
	return buf_printf(out, "snapcow result 1\nticket %s\ntext %s\n", r->ticket,
			  digest_text(&all, hex)) < 0
		   ? err_nomem(err)
		   : 0;
}
