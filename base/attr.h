/*
 * attr.h - compiler attributes, under one name each.
 */
#pragma once

#define NODISCARD         __attribute__((warn_unused_result))
#define PRINTF_LIKE(f, a) __attribute__((format(printf, f, a)))
#define NORETURN          __attribute__((noreturn))
#define ARRAY_LEN(a)      (sizeof(a) / sizeof((a)[0]))

/* Drop a result that must not be dropped by accident; `why` is for the reader. */
#define IGNORE_RESULT(expr, why)                            \
	do {                                                \
		_Static_assert(sizeof(why) > 1, "say why"); \
		__typeof__(expr) ignored_result_ = (expr);  \
		(void)ignored_result_;                      \
	} while (0)
