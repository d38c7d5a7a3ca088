#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "cli/out.h"
#include "engine/api/audit.h"

struct audit_args {
	struct opt_list heads;
	const char *signers, *key;
};

static const struct opt audit_opts[] = {
	OPT_LIST(0, "head", "DIGEST", struct audit_args, heads,
		 "verify: a head kept elsewhere; may be repeated"),
	OPT_STR(0, "allowed-signers", "FILE", struct audit_args, signers,
		"verify: the signers that you accept"),
	OPT_STR(0, "key", "KEY", struct audit_args, key, "sign: the SSH key to sign with"),
	OPT_END,
};
_Static_assert(sizeof(struct audit_args) <= CMD_ARGS_MAX, "grow CMD_ARGS_MAX");

struct report {
	const struct invocation *inv;
	struct json problems;
};

static int on_problem(const char *kind, const char *name, const char *problem, void *ctx,
		      struct err *err)
{
	struct report *r = ctx;
	struct json j;

	if (!r->inv->json) {
		fprintf(r->inv->out, "%s%s ", out_style(r->inv, OUT_BAD), kind);
		out_name(r->inv->out, name);
		fprintf(r->inv->out, "%s: %s\n", out_style(r->inv, OUT_PLAIN), problem);
		return 0;
	}
	j = json_add_object(r->problems);
	json_set_text(j, "kind", kind);
	json_set_name(j, "name", name);
	json_set_text(j, "problem", problem);
	return 0;
}

static void set_head(struct json j, const char *key, uint64_t number, const char *digest)
{
	struct json head;

	if (*digest == '\0') {
		json_set_null(j, key);
		return;
	}
	head = json_set_object(j, key);
	json_set_uint(head, "number", number);
	json_set_text(head, "digest", digest);
}

/* That was made, or found. */
static void set_signature(struct json j, const struct engine_audit *a)
{
	const struct engine_audit_signature *s = &a->signature;
	struct json one;

	if (!a->is_signed) {
		json_set_null(j, "signature");
		return;
	}
	one = json_set_object(j, "signature");
	json_set_text(one, "file", s->file);
	if (*s->signer != '\0')
		json_set_name(one, "signer", s->signer);
	else
		json_set_null(one, "signer");
	out_json_time(one, "time", s->time);
	set_head(one, "receipt_head", s->receipts.number, s->receipts.digest);
	set_head(one, "event_head", s->events.number, s->events.digest);
	set_head(one, "record_head", s->records.number, s->records.digest);
}

static void set_counts(struct json j, const struct engine_audit *a)
{
	json_set_bool(j, "sound", a->problems == 0);
	json_set_uint(j, "receipts", a->receipts);
	json_set_uint(j, "events", a->events);
	json_set_uint(j, "runs", a->runs);
	json_set_uint(j, "records", a->records);
	json_set_uint(j, "unchained", a->unchained);
	set_head(j, "receipt_head", a->receipt_number, a->receipt_head);
	set_head(j, "event_head", a->event_number, a->event_head);
	set_head(j, "record_head", a->record_number, a->record_head);
	set_signature(j, a);
}

/* "signed by anna@example.org at ...: receipts 3 of 3, events 40 of 46, records 2 of 2" */
static void print_signature(const struct invocation *inv, const struct engine_audit *a)
{
	const struct engine_audit_signature *s = &a->signature;
	char time[OUT_TIME_MAX];

	if (!a->is_signed)
		return;
	fputs("signed", inv->out);
	if (*s->signer != '\0') {
		fputs(" by ", inv->out);
		out_name(inv->out, s->signer);
	}
	fprintf(inv->out,
		" at %s: receipts %" PRIu64 " of %" PRIu64 ", events %" PRIu64 " of %" PRIu64
		", records %" PRIu64 " of %" PRIu64 "\n",
		out_rfc3339(s->time / 1000000000, 0, time), s->receipts.number, a->receipt_number,
		s->events.number, a->event_number, s->records.number, a->record_number);
}

static void print_human(const struct invocation *inv, const struct engine_audit *a)
{
	FILE *out = inv->out;

	if (inv->quiet)
		return;
	out_plural(out, a->receipts, "receipt, ", "receipts, ");
	out_plural(out, a->events, "event, ", "events, ");
	out_plural(out, a->runs, "run and ", "runs and ");
	out_plural(out, a->records, "change or firing", "changes and firings");
	fputs(a->problems == 0 ? " are as they were written\n" : " were checked\n", out);
	if (a->unchained > 0) {
		out_plural(out, a->unchained, "of them is", "of them are");
		fputs(" older than the chain\n", out);
	}
	if (*a->receipt_head != '\0')
		fprintf(out, "head of receipts  %s\n", a->receipt_head);
	if (*a->event_head != '\0')
		fprintf(out, "head of events    %s\n", a->event_head);
	if (*a->record_head != '\0')
		fprintf(out, "head of records   %s\n", a->record_head);
	print_signature(inv, a);
}

static int check_words(const struct invocation *inv, struct err *err)
{
	const struct audit_args *args = inv->args;
	const bool signs = strcmp(inv->words[0], "sign") == 0;

	if (!signs && strcmp(inv->words[0], "verify") != 0)
		return err_set(err, -EINVAL,
			       "'audit' does not know '%s': say 'audit verify' or 'audit sign'",
			       inv->words[0]);
	if (signs && !args->key)
		return err_set(err, -EINVAL, "'audit sign' needs --key: an SSH key");
	if (signs && (args->heads.n > 0 || args->signers))
		return err_set(err, -EINVAL, "option '--%s' is for 'audit verify'",
			       args->heads.n > 0 ? "head" : "allowed-signers");
	if (!signs && args->key)
		return err_set(err, -EINVAL, "option '--key' is for 'audit sign'");
	for (size_t i = 0; i < args->heads.n; i++)
		if (strlen(args->heads.items[i]) != SHA256_HEX_SIZE - 1 ||
		    strspn(args->heads.items[i], "0123456789abcdef") != SHA256_HEX_SIZE - 1)
			return err_set(err, -EINVAL, "'%s' is no head: it has 64 hex digits",
				       args->heads.items[i]);
	return 0;
}

/* What was changed is not vouched for. */
static int sign(struct invocation *inv, struct engine_audit *a, struct err *err)
{
	const struct audit_args *args = inv->args;
	int r;

	if (!args->key || a->problems > 0)
		return 0;
	r = engine_audit_sign(inv->engine, a, args->key, &a->signature, err);
	a->is_signed = r == 0;
	return r;
}

static int audit_run(struct invocation *inv, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	const struct audit_args *args = inv->args;
	struct report report = { .inv = inv };
	struct json j = out_json_begin(inv, &doc);
	const struct engine_audit_options o = { .heads = args->heads.items,
						.n_heads = args->heads.n,
						.signers = args->signers };
	struct engine_audit a;
	int r = check_words(inv, err);

	if (r < 0)
		return r;
	report.problems = json_set_array(j, "problems");
	r = engine_audit_verify(inv->engine, &o, on_problem, &report, &a, err);
	if (r == 0)
		r = sign(inv, &a, err);
	if (r < 0)
		return r;
	set_counts(j, &a);
	r = inv->json ? json_print(&doc, inv->out, err) : 0;
	if (!inv->json)
		print_human(inv, &a);
	return r < 0 ? r : a.problems > 0 ? CMD_DAMAGED : CMD_OK;
}

const struct command cmd_audit = {
	.name = "audit",
	.group = "Store",
	.rare = true,
	.summary = "verify that records are as snap wrote them, or sign them",
	.words = "verify|sign",
	.min_words = 1,
	.max_words = 1,
	.opts = audit_opts,
	.details =
	    "Receipts and events form chains: each entry has the SHA-256 of the one before it, and the\n"
	    "event that ends a run has the SHA-256 of the run's record. Changes of `pipeline` and firings\n"
	    "of `watch` form a chain, too. `verify` names entries that were changed, removed or reordered\n"
	    "behind snap's back, and exits with 12. Anyone who can write to the store can compute the\n"
	    "chains anew: keep the heads elsewhere for --head, or sign them. `sign` verifies first.\n"
	    "`verify --allowed-signers` then says who signed last, and whether anything signed has\n"
	    "changed since.\n",
	.examples = "audit verify\naudit sign --key ~/.ssh/id_ed25519\n"
		    "audit verify --allowed-signers signers\n",
	.run = audit_run,
};
