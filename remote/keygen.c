#include "remote/keygen.h"

#include <errno.h>
#include <fcntl.h>
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

int keygen_sign(const char *space, const struct buf *text, const char *key, char **ret,
		struct err *err)
{
	const char *const argv[] = { KEYGEN, "-q", "-Y", "sign", "-n", space, "-f", key, NULL };
	CLEANUP(buf_done) struct buf said = BUF_INIT;
	const char *all, *begin;
	/* It asks for a passphrase on the terminal; that takes as long as it takes. */
	int r = run(argv, text, 0, &said, err);

	if (r < 0)
		return r;
	all = buf_str(&said);
	begin = all ? strstr(all, KEYGEN_BEGIN) : NULL;
	if (r > 0 || !begin)
		return err_set(err, -EACCES, "signing with '%.100s': %.120s", key,
			       last_words(&said));
	return text_set(ret, err, "%s", begin);
}

/* --- checking ----------------------------------------------------------------------------- */

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
	const struct keygen_claim *of;
	const struct buf *text;
	const char *file; /* of the signature */
	char *who;        /* owned */
};

/* 1 if it is the signature of this principal, 0 if not; what was said is in `said`. */
static int check_one(struct checking *c, const char *who, const char *revoked, struct buf *said,
		     struct err *err)
{
	const char *const argv[] = { KEYGEN,       "-Y", "verify",       "-n",
				     c->of->space, "-f", c->of->signers, "-I",
				     who,          "-s", c->file,        revoked ? "-r" : NULL,
				     revoked,      NULL };
	int r;

	buf_reset(said);
	r = run(argv, c->text, CHECK_MS, said, err);
	return r < 0 ? r : r == 0;
}

static int refuse(const struct checking *c, const char *why, struct err *err)
{
	return err_set(err, -ECANCELED, "'%s' is not accepted: %.120s", c->of->subject, why);
}

/* ssh-keygen does not say why it refuses a revoked key: without the list, it does not. */
static int check_revoked(struct checking *c, const char *who, struct err *err)
{
	CLEANUP(buf_done) struct buf said = BUF_INIT;
	int r = c->of->revoked ? check_one(c, who, NULL, &said, err) : 0;

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
		r = check_one(c, who, c->of->revoked, &said, err);
		if (r > 0)
			return text_set(&c->who, err, "%s", who);
		if (r == 0)
			r = check_revoked(c, who, err);
	}
	if (r < 0)
		return r;
	if (said.len > 0 && memmem(said.data, said.len, "incorrect signature", 19))
		return refuse(c, c->of->misfit, err);
	return refuse(c, last_words(&said), err);
}

static int find_principals(struct checking *c, struct err *err)
{
	const char *const argv[] = { KEYGEN,         "-Y", "find-principals", "-f",
				     c->of->signers, "-s", c->file,           NULL };
	CLEANUP(buf_done) struct buf said = BUF_INIT;
	char *names;
	int r = run(argv, c->text, CHECK_MS, &said, err);

	if (r < 0)
		return r;
	if (r > 0 && said.len > 0 && memmem(said.data, said.len, "o principal matched", 19))
		return err_set(
		    err, -ECANCELED,
		    "'%s' is not accepted: '%.100s' does not list the key that signed it, or "
		    "the key is not valid now",
		    c->of->subject, c->of->signers);
	if (r > 0)
		return refuse(c, last_words(&said), err);
	names = (char *)(uintptr_t)buf_str(&said);
	return names ? check_all(c, names, err) : err_nomem(err);
}

int keygen_check(const struct keygen_claim *claim, const struct buf *text, char **ret,
		 struct err *err)
{
	struct checking c = { .of = claim, .text = text };
	AUTO_FREE char *file = NULL;
	int r;

	if (!claim->signature)
		return refuse(&c, "it is not signed", err);
	if (access(claim->signers, R_OK) < 0)
		return err_sys(err, "reading the allowed signers in '%s'", claim->signers);
	r = write_signature(claim->signature, &file, err);
	if (r < 0)
		return r;
	c.file = file;
	r = find_principals(&c, err);
	unlink(file);
	if (r == 0)
		*ret = c.who;
	else
		free(c.who);
	return r;
}
