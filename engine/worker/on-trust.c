#include "engine/worker/on-trust.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "engine/transfer/signers-i.h"
#include "remote/keygen.h"

#define SUBJECT_SIZE 64

/* The list is of the remote; a result has no name there that would matter here. */
static int find(struct engine *e, const struct target *t, const struct engine_trust *trust,
		struct signers *ret, struct err *err)
{
	struct target named = *t;

	if (!named.name)
		named.name = (char *)(uintptr_t)TRANSFER_NAME;
	return signers_find(e, &named, trust, ret, err);
}

int on_trust_find(struct engine *e, const struct target *t, const struct engine_trust *trust,
		  struct err *err)
{
	CLEANUP(signers_done) struct signers s = { 0 };
	int r = find(e, t, trust, &s, err);

	if (r == 0 && s.required && access(s.allowed, R_OK) < 0)
		return err_sys(err, "reading the allowed signers in '%s'", s.allowed);
	return r;
}

int on_trust_check(struct engine *e, const struct target *t, const struct engine_trust *trust,
		   const char *ticket, const struct result *res, char **ret_signer, struct err *err)
{
	CLEANUP(signers_done) struct signers s = { 0 };
	CLEANUP(buf_done) struct buf statement = BUF_INIT;
	char subject[SUBJECT_SIZE];
	struct keygen_claim claim = { .space = KEYGEN_RESULT,
				      .subject = subject,
				      .misfit = "its signature does not fit what it says",
				      .signature = res->signature };
	int r = find(e, t, trust, &s, err);

	snprintf(subject, sizeof(subject), "the result of ticket %.12s", ticket);
	if (r < 0 || !s.required)
		return r;
	if (strcmp(res->ticket, ticket) != 0)
		return err_set(err, -ECANCELED, "'%s' is not accepted: it belongs to ticket %.12s",
			       subject, res->ticket);
	if (!result_is_claim(res))
		return 0;
	claim.signers = s.allowed;
	claim.revoked = s.revoked;
	r = result_statement(res, &statement, err);
	return r < 0 ? r : keygen_check(&claim, &statement, ret_signer, err);
}
