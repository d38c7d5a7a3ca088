/*
 * answers-i.h - questions of a run and their answers, as a record has them.
 */
#pragma once

#include "base/json.h"
#include "engine/api/question.h"

void answers_set(struct json j, const struct engine_answers *a);
NODISCARD int answers_get(struct json j, struct engine_answers *ret); /* -ENOMEM */
