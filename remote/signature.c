#include "remote/signature.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "remote/keygen.h"

char *signature_repository(const char *url)
{
	const size_t scheme = strncmp(url, "oci://", 6) == 0         ? 6
			      : strncmp(url, "oci+http://", 11) == 0 ? 11
			      : strncmp(url, "s3+https://", 11) == 0 ? 11
			      : strncmp(url, "s3+http://", 10) == 0  ? 10
								     : 0;
	/* As docker writes it, without a scheme. */
	const bool docker = strncmp(url, "dir:", 4) != 0 && !strstr(url, "://");
	const char *host = url + scheme, *slash = strchr(host, '/');
	size_t len = strlen(url);

	/* It has no host, and begins with the bucket. */
	if (strncmp(url, "s3://", 5) == 0)
		return strdup(url + 5);
	if ((scheme > 0 || docker) && slash)
		return strdup(slash + 1);
	while (len > 1 && url[len - 1] == '/')
		len--;
	for (slash = url + len; slash > url && slash[-1] != '/' && slash[-1] != ':';)
		slash--;
	return strndup(slash, (size_t)(url + len - slash));
}

bool signature_place_valid(const char *place)
{
	const char *colon = strrchr(place, ':');

	if (!colon || colon == place || !depot_tag_valid(colon + 1) || strlen(place) > 512)
		return false;
	for (const char *c = place; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			return false;
	return true;
}

/* --- the statement ------------------------------------------------------------------------ */

static int add_line(struct buf *b, const char *what, const struct digest *d)
{
	char text[DIGEST_TEXT_SIZE];

	return buf_printf(b, "%s %s\n", what, digest_text(d, text));
}

/* The text that is signed; replaces `out`. */
static int write_statement(const struct manifest *m, const char *place, struct buf *out,
			   struct err *err)
{
	CLEANUP(buf_done) struct buf parts = BUF_INIT;
	struct digest all;
	int r = add_line(&parts, "snapshot", &m->config.digest);

	for (size_t i = 0; r >= 0 && i < m->n; i++) {
		r = add_line(&parts, "pack", &m->packs[i].pack.digest);
		if (r >= 0)
			r = add_line(&parts, "index", &m->packs[i].index.digest);
	}
	if (r < 0)
		return err_nomem(err);
	all = digest_of(parts.data, parts.len);
	buf_reset(out);
	if (buf_printf(out, "snapcow signature 1\nas %s\n", place) < 0 ||
	    add_line(out, "parts", &all) < 0)
		return err_nomem(err);
	return 0;
}

int signature_make(struct manifest *m, const char *place, const char *key, struct err *err)
{
	CLEANUP(buf_done) struct buf statement = BUF_INIT;
	int r = write_statement(m, place, &statement, err);

	if (r == 0)
		r = keygen_sign(KEYGEN_SNAPSHOT, &statement, key, &m->signature, err);
	return r < 0 ? r : text_set(&m->signed_as, err, "%s", place);
}

int signature_check(const struct manifest *m, const char *place, const char *signers,
		    const char *revoked, char **ret, struct err *err)
{
	const struct keygen_claim claim = {
		.space = KEYGEN_SNAPSHOT,
		.subject = place,
		.misfit = "its signature does not fit what it holds, or this name",
		.signers = signers,
		.revoked = revoked,
		.signature = m->signature,
	};
	CLEANUP(buf_done) struct buf statement = BUF_INIT;
	int r;

	if (m->signature && m->signed_as && strcmp(m->signed_as, place) != 0)
		return err_set(err, -ECANCELED,
			       "'%s' is not accepted: it was signed as '%.100s', another name",
			       place, m->signed_as);
	r = write_statement(m, place, &statement, err);
	return r < 0 ? r : keygen_check(&claim, &statement, ret, err);
}
