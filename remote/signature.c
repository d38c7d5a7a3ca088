#include "remote/signature.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fdio.h"
#include "base/path.h"
#include "base/text.h"
#include "remote/program.h"

#define KEYGEN     "ssh-keygen"
#define OUTPUT_MAX ((size_t)64 << 10)
#define CHECK_MS   60000

/* What it says without a reason. */
#define NOT_VERIFIED "Could not verify signature."
#define NOT_LISTED   "No principal matched."

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

int signature_statement(const struct manifest *m, const char *place, struct buf *out,
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

/* --- ssh-keygen --------------------------------------------------------------------------- */

static int run(const char *const argv[], const struct buf *input, uint64_t wait_ms, struct buf *out,
	       struct err *err)
{
	const struct program p = { .argv = argv,
				   .input = input->data,
				   .input_len = input->len,
				   .output_max = OUTPUT_MAX,
				   .wait_ms = wait_ms,
				   .quiet = true };
	int r = program_run(&p, out);

	if (r == -ENOENT)
		return err_set(err, -ENOTSUP,
			       "signatures need '" KEYGEN "' (Debian: openssh-client)");
	return r < 0 ? err_set(err, r, "running '" KEYGEN "': %s", strerror(-r)) : r;
}

/* The last line that gives a reason, in what it said; `said` is cut up. */
static const char *last_words(struct buf *said)
{
	char *rest = (char *)(uintptr_t)buf_str(said), *line;
	const char *last = NULL, *reason = NULL;

	while (rest && (line = strsep(&rest, "\r\n"))) {
		if (*line == '\0')
			continue;
		last = line;
		if (strcmp(line, NOT_VERIFIED) != 0 && strcmp(line, NOT_LISTED) != 0)
			reason = line;
	}
	return reason ? reason : last ? last : "it said nothing";
}

int signature_make(struct manifest *m, const char *place, const char *key, struct err *err)
{
	const char *const argv[] = { KEYGEN, "-q", "-Y", "sign", "-n", SIGNATURE_NAMESPACE,
				     "-f",   key,  NULL };
	CLEANUP(buf_done) struct buf statement = BUF_INIT, said = BUF_INIT;
	const char *text, *begin;
	int r = signature_statement(m, place, &statement, err);

	/* It asks for a passphrase on the terminal; that takes as long as it takes. */
	if (r == 0)
		r = run(argv, &statement, 0, &said, err);
	if (r < 0)
		return r;
	text = buf_str(&said);
	begin = text ? strstr(text, "-----BEGIN SSH SIGNATURE-----") : NULL;
	if (r > 0 || !begin)
		return err_set(err, -EACCES, "signing with '%.100s': %.120s", key,
			       last_words(&said));
	r = text_set(&m->signature, err, "%s", begin);
	return r < 0 ? r : text_set(&m->signed_as, err, "%s", place);
}

/* The signature in a file, which ssh-keygen reads by its name; the caller unlinks it. */
static int write_signature(const char *signature, char **ret, struct err *err)
{
	const char *dir = getenv("TMPDIR");
	AUTO_FREE char *path = path_join(dir && dir[0] == '/' ? dir : "/tmp", "snapcow-sig-XXXXXX");
	AUTO_CLOSE int fd = -1;
	int r;

	if (!path)
		return err_nomem(err);
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0)
		return err_sys(err, "making '%s'", path);
	r = fdio_write(fd, signature, strlen(signature));
	if (r < 0) {
		unlink(path);
		return err_set(err, r, "writing '%s': %s", path, strerror(-r));
	}
	*ret = TAKE_PTR(path);
	return 0;
}

struct checking {
	const char *place, *signers, *revoked;
	const char *file; /* of the signature */
	struct buf statement;
	char *who; /* owned */
};

/* 1 if it is the signature of this principal, 0 if not; what was said is in `said`. */
static int check_one(struct checking *c, const char *who, const char *revoked, struct buf *said,
		     struct err *err)
{
	const char *const argv[] = {
		KEYGEN, "-Y", "verify", "-n",    SIGNATURE_NAMESPACE,   "-f",    c->signers,
		"-I",   who,  "-s",     c->file, revoked ? "-r" : NULL, revoked, NULL
	};
	int r;

	buf_reset(said);
	r = run(argv, &c->statement, CHECK_MS, said, err);
	return r < 0 ? r : r == 0;
}

static int refuse(const struct checking *c, const char *why, struct err *err)
{
	return err_set(err, -ECANCELED, "'%s' is not accepted: %.120s", c->place, why);
}

/* ssh-keygen does not say why it refuses a revoked key: without the list, it does not. */
static int check_revoked(struct checking *c, const char *who, struct err *err)
{
	CLEANUP(buf_done) struct buf said = BUF_INIT;
	int r = c->revoked ? check_one(c, who, NULL, &said, err) : 0;

	return r > 0 ? refuse(c, "the key that signed it was revoked", err) : r;
}

/* Each principal that the key stands for may be the one; a line may list several. */
static int check_all(struct checking *c, char *names, struct err *err)
{
	CLEANUP(buf_done) struct buf said = BUF_INIT;
	char *rest = names, *who;
	int r = 0;

	while (r == 0 && (who = strsep(&rest, ",\r\n"))) {
		if (*who == '\0')
			continue;
		r = check_one(c, who, c->revoked, &said, err);
		if (r > 0)
			return text_set(&c->who, err, "%s", who);
		if (r == 0)
			r = check_revoked(c, who, err);
	}
	if (r < 0)
		return r;
	if (said.len > 0 && memmem(said.data, said.len, "incorrect signature", 19))
		return refuse(c, "its signature does not fit what it holds, or this name", err);
	return refuse(c, last_words(&said), err);
}

static int find_principals(struct checking *c, struct err *err)
{
	const char *const argv[] = { KEYGEN,     "-Y", "find-principals", "-f",
				     c->signers, "-s", c->file,           NULL };
	CLEANUP(buf_done) struct buf said = BUF_INIT;
	char *names;
	int r = run(argv, &c->statement, CHECK_MS, &said, err);

	if (r < 0)
		return r;
	if (r > 0 && said.len > 0 && memmem(said.data, said.len, "o principal matched", 19))
		return err_set(
		    err, -ECANCELED,
		    "'%s' is not accepted: '%.100s' does not list the key that signed it, or "
		    "the key is not valid now",
		    c->place, c->signers);
	if (r > 0)
		return refuse(c, last_words(&said), err);
	names = (char *)(uintptr_t)buf_str(&said);
	return names ? check_all(c, names, err) : err_nomem(err);
}

int signature_check(const struct manifest *m, const char *place, const char *signers,
		    const char *revoked, char **ret, struct err *err)
{
	struct checking c = { .place = place, .signers = signers, .revoked = revoked };
	AUTO_FREE char *file = NULL;
	int r;

	if (!m->signature)
		return refuse(&c, "it is not signed", err);
	if (m->signed_as && strcmp(m->signed_as, place) != 0)
		return err_set(err, -ECANCELED,
			       "'%s' is not accepted: it was signed as '%.100s', another name",
			       place, m->signed_as);
	if (access(signers, R_OK) < 0)
		return err_sys(err, "reading the allowed signers in '%s'", signers);
	r = signature_statement(m, place, &c.statement, err);
	if (r == 0)
		r = write_signature(m->signature, &file, err);
	c.file = file;
	if (r == 0) {
		r = find_principals(&c, err);
		unlink(file);
	}
	buf_done(&c.statement);
	if (r == 0)
		*ret = c.who;
	else
		free(c.who);
	return r;
}
