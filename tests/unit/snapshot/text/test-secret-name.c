/*
 * Names of secrets, and where no run looks for them.
 */
#include "tests/lib/test.h"

#include "snapshot/text/secret-name.h"

TEST(a_secret_below_packages_is_unsearched_and_one_in_a_secret_directory_is_not)
{
	static const struct {
		const char *path;
		bool unsearched, with_key;
	} table[] = {
		{ "vendor/.env", true, true },
		{ "vendor/conf/.env", true, true },
		{ "a/node_modules/b/.ssh/work", true, true },
		{ "target/ca.pem", false, true },
		{ "conf/.env", false, false },
		{ "conf/ca.pem", false, false },
		{ "vendor", false, false },
		{ "vendor/conf/.env.example", false, false },
		{ "vendor/conf/README", false, false },
		{ "target/ca.pem/README", false, false },
		{ ".env/vendor", false, false },
		{ ".ssh/vendor/.env", false, false }, /* .ssh is found, and hidden as a whole */
	};

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		CHECK_EQ(secret_name_is_unsearched(table[i].path, false), table[i].unsearched);
		CHECK_EQ(secret_name_is_unsearched(table[i].path, true), table[i].with_key);
	}
}

TEST_MAIN("secret-name")
