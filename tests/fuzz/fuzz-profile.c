/*
 * Whatever text a project brings as a profile is read, or refused in one sentence that names the
 * file; and what was read of it can be joined with a built-in one.
 */
#include "engine/run/profile-i.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

/* libfyaml 0.7 loses a buffer of each text with more than five quotes in it: nothing to free it by.
 */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:libfyaml.so";
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static const char file[] = "profiles/it.yaml";
	CLEANUP(engine_profile_done) struct engine_profile p = { 0 }, base = { 0 };
	struct profile_source src = { .shown = file, .project = "/project", .home = "/home/me" };
	struct profile_source built_in = { .shown = "default" };
	const char *text = profile_built_in("default");
	struct err err = { 0 };
	int r;

	p.name = strdup("it");
	base.name = strdup("default");
	FUZZ_CHECK(p.name && base.name);
	r = profile_read(&src, (const char *)data, len, &p, &err);
	FUZZ_CHECK(r == 0 || (r < 0 && err.code == r && strstr(err.msg, file)));
	if (r < 0)
		return 0;
	FUZZ_CHECK(profile_read(&built_in, text, strlen(text), &base, &err) == 0);
	r = profile_narrows(&src, &p, &base, &err);
	FUZZ_CHECK(r == 0 || (r == -ECANCELED && strstr(err.msg, file)));
	FUZZ_CHECK(profile_inherit(&src, &p, &base, &err) == 0);
	return 0;
}
