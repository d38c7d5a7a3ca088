#include "tests/lib/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

TEST(a_text_is_written_anew_even_from_its_own_words)
{
	AUTO_FREE char *text = NULL;
	struct err err = { 0 };

	CHECK_EQ(text_set(&text, &err, "%d arms", 3), 0);
	CHECK_STR(text, "3 arms");
	CHECK_EQ(text_set(&text, &err, "%s passed", text), 0);
	CHECK_STR(text, "3 arms passed");
}

TEST(a_copy_of_nothing_is_nothing)
{
	AUTO_FREE char *text = NULL;
	struct err err = { 0 };

	CHECK_EQ(text_copy(&text, "arms", &err), 0);
	CHECK_EQ(text_copy(&text, text + 1, &err), 0);
	CHECK_STR(text, "rms");
	CHECK_EQ(text_copy(&text, NULL, &err), 0);
	CHECK(!text);
}

TEST_MAIN("text")
