/*
 * fetched.h - a snapshot that came from a remote, as `fetch` and `pull` print it.
 */
#pragma once

#include "base/json.h"
#include "cli/cmd.h"
#include "engine/api/remote.h"

void fetched_set(struct json j, const struct engine_fetched *f);

/* "fetched  0c4f11d2 as origin/main  80,000 files, received 84 MiB, in 2.1 s" */
void fetched_print(const struct invocation *inv, const struct engine_fetched *f);

/* What to run next if there is no such remote or name. */
void fetched_hint(struct invocation *inv, int r);
