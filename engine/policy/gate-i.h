/*
 * gate-i.h - a short condition on the facts of a change: `lines<=200`, `risk<=low`, `tests==pass`.
 *
 * One name, one operator (== != < <= > >=), one value; blanks around the operator are fine. A name
 * stands for a number, for a word of an ordered list (risk), or for a word of an unordered one
 * (kind, tests), which allows only == and !=.
 */
#pragma once

#include "engine/api/policy.h"

struct gate_facts {
	const struct engine_facts *facts;
	const char *tests;
};

/* 1 if it holds, 0 if not; -EINVAL with a sentence for what is no condition. */
NODISCARD int gate_holds(const char *text, const struct gate_facts *f, struct err *err);

/* The same without facts: only whether it is one. */
NODISCARD int gate_check(const char *text, struct err *err);

/* "lines is 312": the value that decided, in `out`. */
#define GATE_TEXT_MAX 64
void gate_tell(const char *text, const struct gate_facts *f, char out[GATE_TEXT_MAX]);
