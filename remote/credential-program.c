/*
 * docker-credential-NAME get: the server on its standard input, one object on its standard output.  The
 * protocol is that of github.com/docker/docker-credential-helpers.
 */
#include "remote/credential.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/text.h"
#include "base/wipe.h"
#include "remote/program.h"

#define ANSWER_MAX ((size_t)64 << 10)
#define WAIT_MS    60000 /* it may ask the user to unlock a key ring */

/* A file name of its own, not a path to somewhere else. */
static bool is_name(const char *name)
{
	for (const char *c = name; *c; c++)
		if (!isalnum((unsigned char)*c) && !strchr("._-", *c))
			return false;
	return *name != '\0' && strlen(name) < 200;
}

static int read_object(const char *program, const struct buf *answer, struct credential *ret,
		       struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	const char *user, *secret;
	struct json j;

	if (json_parse(&doc, (const char *)answer->data, answer->len, &j, NULL) < 0)
		return err_set(err, -EPROTO, "'%s' answered something that is not JSON", program);
	user = json_text_if(j, "Username");
	secret = json_text_if(j, "Secret");
	if (!user || !secret)
		return err_set(err, -EPROTO, "'%s' answered without a name or a secret", program);
	if (*secret == '\0')
		return 0;
	if (strcmp(user, "<token>") == 0) {
		ret->refresh = strdup(secret);
		return ret->refresh ? 1 : err_nomem(err);
	}
	ret->user = strdup(user);
	ret->secret = strdup(secret);
	return ret->user && ret->secret ? 1 : err_nomem(err);
}

int credential_ask_program(const char *name, const char *server, struct credential *ret,
			   struct err *err)
{
	CLEANUP(wipe_buf) struct buf answer = BUF_INIT;
	AUTO_FREE char *program = NULL;
	const char *argv[] = { NULL, "get", NULL };
	const struct program run = { .argv = argv,
				     .input = server,
				     .input_len = strlen(server),
				     .output_max = ANSWER_MAX,
				     .wait_ms = WAIT_MS };
	int r;

	if (!is_name(name))
		return err_set(err, -EINVAL, "docker's configuration: '%s' is no name of a program",
			       name);
	program = text_format("docker-credential-%s", name);
	if (!program)
		return err_nomem(err);
	argv[0] = program;
	r = program_run(&run, &answer);
	if (r == -ENOENT)
		return err_set(err, r, "docker's configuration wants '%s', which is not installed",
			       program);
	if (r < 0)
		return err_wrap(err, r, "'%s'", program);
	if (r > 0 && answer.len > 0 && memmem(answer.data, answer.len, "credentials not found", 21))
		return 0;
	if (r > 0)
		return err_set(err, -EACCES, "'%s' failed with status %d", program, r);
	return read_object(program, &answer, ret, err);
}
