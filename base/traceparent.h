/*
 * traceparent.h - the trace that a caller belongs to, in the form of W3C Trace Context.
 *
 * "00-TRACE-SPAN-FLAGS": 32, 16 and 2 lower-case hex digits.
 */
#pragma once

#include <stdbool.h>

#define TRACEPARENT_VARIABLE  "TRACEPARENT"
#define TRACEPARENT_SIZE      56 /* with its NUL */
#define TRACEPARENT_TRACE     3  /* where the parts begin, */
#define TRACEPARENT_SPAN      36
#define TRACEPARENT_FLAGS     53
#define TRACEPARENT_TRACE_LEN 32 /* and how long they are */
#define TRACEPARENT_SPAN_LEN  16

/* Copy what `text` begins with, if it is one; else "" and false.  Of later versions only the parts above are kept. */
bool traceparent_take(const char *text, char ret[TRACEPARENT_SIZE]);

/* The same from the environment of the process. */
bool traceparent_here(char ret[TRACEPARENT_SIZE]);

/* Make `id`, some hex digits that are not all 0, the span: with zeros behind it. */
void traceparent_set_span(char trace[TRACEPARENT_SIZE], const char *id);
