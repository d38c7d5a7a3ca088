/*
 * Whatever a registry, a token server or docker's configuration says: what is taken from it can be sent or
 * shown without harm.  The first byte says what the rest is.
 */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "remote/auth-token-i.h"
#include "remote/challenge.h"
#include "remote/credential.h"
#include "remote/http-i.h"
#include "remote/reference.h"
#include "remote/registry-i.h"
#include "remote/url.h"
#include "tests/fuzz/fuzz.h"

static bool is_printable(const char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s < ' ' || *s == 0x7f)
			return false;
	return true;
}

static void check_challenge(const char *text)
{
	CLEANUP(challenge_done) struct challenge c = { 0 };

	FUZZ_CHECK(challenge_parse(text, &c) == 0);
	FUZZ_CHECK(c.kind != CHALLENGE_BEARER || c.realm);
	FUZZ_CHECK(!c.realm || is_printable(c.realm));
	FUZZ_CHECK(!c.service || is_printable(c.service));
	FUZZ_CHECK(!c.scope || is_printable(c.scope));
}

static int check_tag(const char *tag, void *ctx)
{
	FUZZ_CHECK(depot_tag_valid(tag) && !strchr(tag, '/'));
	return 0;
}

static void check_answers(const char *text, size_t len)
{
	AUTO_FREE char *told = registry_error_text(text, len), *next = registry_next_page(text);
	AUTO_FREE char *token = NULL;
	const int r = registry_read_tags(text, len, check_tag, NULL);

	FUZZ_CHECK(r == 0 || r == -EPROTO);
	FUZZ_CHECK(!told || is_printable(told));
	if (auth_token_read(text, len, &token) == 0)
		FUZZ_CHECK(strncmp(token, "Bearer ", 7) == 0 && is_printable(token) &&
			   !strchr(token + 7, ' '));
}

static void check_url(const char *text)
{
	AUTO_FREE char *origin = url_origin(text);
	AUTO_FREE char *to = url_resolve("https://h.example:5000/v2/x", text);
	CLEANUP(reference_done) struct reference r = { 0 };
	struct err err = { 0 };

	if (origin)
		FUZZ_CHECK(is_printable(origin) && !strchr(origin, '@') &&
			   url_same_origin(origin, text));
	if (to)
		FUZZ_CHECK(is_printable(to) &&
			   (text[0] != '/' || url_same_origin(to, "https://h.example:5000")));
	if (reference_parse(text, &r, &err) == 0)
		FUZZ_CHECK(reference_repository_valid(r.repository) && !strstr(r.repository, ".."));
	else
		FUZZ_CHECK(err.msg[0] != '\0');
}

/* A head, line by line. */
static void check_head(const char *text)
{
	CLEANUP(http_answer_done) struct http_answer a = { 0 };

	while (*text) {
		const size_t len = strcspn(text, "\n");

		if (http_answer_add(&a, text, len) < 0)
			return;
		text += len + (text[len] != '\0');
	}
	FUZZ_CHECK(a.challenges.n <= 8);
	FUZZ_CHECK(!a.location || !strchr(a.location, '\n'));
}

static void check_config(const char *text, size_t len)
{
	CLEANUP(credential_done) struct credential c = { 0 };
	struct err err = { 0 };
	/* A program would be run: nothing that could name one. */
	const int r = strcasestr(text, "cred") || strchr(text, '\\')
			  ? 0
			  : credential_read(text, len, "h.example", &c, &err);

	FUZZ_CHECK(r >= 0 || err.msg[0] != '\0');
	FUZZ_CHECK(r != 1 || c.secret || c.refresh || c.bearer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	AUTO_FREE char *text = NULL;

	if (len < 1)
		return 0;
	text = strndup((const char *)data + 1, len - 1);
	FUZZ_CHECK(text);
	len = strlen(text);
	switch (data[0] % 5) {
	case 0:
		check_challenge(text);
		break;
	case 1:
		check_answers(text, len);
		break;
	case 2:
		check_url(text);
		break;
	case 3:
		check_head(text);
		break;
	default:
		check_config(text, len);
	}
	return 0;
}
