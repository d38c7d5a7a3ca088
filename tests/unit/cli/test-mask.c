/*
 * What looks like a secret, and how long it takes to look.
 */
#include "cli/mcp/mask.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "tests/lib/test.h"

#define LONG ((size_t)32 << 20)

static void check_mask(const char *text, const char *expected)
{
	AUTO_FREE char *masked = mask_text(text);

	CHECK(masked != NULL);
	CHECK_STR(masked, expected);
}

TEST(values_behind_names_and_keys_are_masked)
{
	check_mask("make all", "make all");
	check_mask("TOKEN=abc make", "TOKEN=*** make");
	check_mask("use ghp_abcdef123abcdef123 now", "use *** now");
	check_mask("-----BEGIN RSA PRIVATE KEY-----\nx\n-----END RSA PRIVATE KEY-----\nrest",
		   "***\nrest");
	check_mask("-----BEGIN CERTIFICATE-----", "-----BEGIN CERTIFICATE-----");
}

/* Each of these took the square of its length. */
TEST(a_long_text_is_cut_before_it_is_scanned)
{
	static const char *const pieces[] = { "+", "-----BEGIN ", "\"password\": ", "a/" };

	for (size_t i = 0; i < ARRAY_LEN(pieces); i++) {
		const size_t n = strlen(pieces[i]);
		AUTO_FREE char *text = malloc(LONG + 1), *masked = NULL;

		CHECK(text != NULL);
		for (size_t at = 0; at < LONG; at++)
			text[at] = pieces[i][at % n];
		text[LONG] = '\0';
		masked = mask_text(text);
		CHECK(masked != NULL);
		CHECK(strlen(masked) <= 8192);
	}
}

TEST(no_key_is_cut_in_two)
{
	for (size_t before = 4000; before < 4100; before++) {
		AUTO_FREE char *text = NULL, *masked = NULL;

		CHECK(asprintf(&text, "%*s ghp_abcdef123abcdef123abcdef123", (int)before, "x") > 0);
		masked = mask_text(text);
		CHECK(masked != NULL);
		CHECK(strstr(masked, "ghp_") == NULL);
	}
}

TEST_MAIN("mask")
