#include "tests/lib/test.h"

#include "engine/wire/wire-i.h"

/* Two members under one key would overwrite each other. */
static void check_table(const struct fields *f)
{
	for (size_t i = 0; i < f->n; i++) {
		CHECK(f->list[i].at < f->size);
		for (size_t k = 0; k < i; k++)
			CHECK(strcmp(f->list[i].key, f->list[k].key) != 0);
		if (f->list[i].of)
			check_table(f->list[i].of);
	}
}

TEST(no_table_says_a_key_twice)
{
	const struct fields *const all[] = {
		&wire_clone_options, &wire_clones,
		&wire_clone_more,    &wire_overview,
		&wire_take_options,  &wire_taken,
		&wire_tag,           &wire_promote_options,
		&wire_promote_asked, &wire_promotion,
		&wire_rebased,       &wire_rebase_options,
		&wire_rolled,        &wire_rollback_options,
		&wire_overlaps,      &wire_stage_options,
		&wire_stage,         &wire_stage_end,
		&wire_gc_options,    &wire_gc,
		&wire_check,
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		check_table(all[i]);
}

TEST_MAIN("tables")
