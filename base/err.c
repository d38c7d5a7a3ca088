#include "base/err.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/sys.h"

#define ERR_MSG_SIZE sizeof(((struct err *)0)->msg)

_Static_assert(sizeof(struct err) == 256, "a struct err crosses pipes; its size is part of that");

/* `msg` was cut by the formatter at its last byte: say so, and leave no half of a character. */
static void mark_cut(char msg[ERR_MSG_SIZE])
{
	static const char mark[] = "...";
	size_t end = ERR_MSG_SIZE - sizeof(mark), lead = end;

	while (lead > 0 && end - lead < 3 && ((unsigned char)msg[lead] & 0xc0) == 0x80)
		lead--;
	if (((unsigned char)msg[lead] & 0xc0) != 0x80)
		end = lead;
	memcpy(msg + end, mark, sizeof(mark));
}

/* What goes into `msg` may point into the old one, so every sentence is built aside first. */
static int record(struct err *err, int code, char msg[ERR_MSG_SIZE], int full_len)
{
	if (full_len < 0)
		msg[0] = '\0';
	else if ((size_t)full_len >= ERR_MSG_SIZE)
		mark_cut(msg);
	err->code = code;
	memcpy(err->msg, msg, ERR_MSG_SIZE);
	return code;
}

int err_set(struct err *err, int code, const char *fmt, ...)
{
	char msg[ERR_MSG_SIZE] = { 0 };
	va_list ap;
	int n;

	assert(code < 0);
	if (!err)
		return code;

	va_start(ap, fmt);
	n = vsnprintf(msg, sizeof(msg), fmt, ap);
	va_end(ap);
	return record(err, code, msg, n);
}

static int record_joined(struct err *err, int code, const char *context, const char *reason)
{
	char msg[ERR_MSG_SIZE] = { 0 };
	int n = snprintf(msg, sizeof(msg), "%s: %s", context, reason);

	return record(err, code, msg, n);
}

int err_sys(struct err *err, const char *fmt, ...)
{
	int code = -errno;
	char context[ERR_MSG_SIZE] = { 0 }, text[128];
	va_list ap;

	assert(code < 0);
	if (!err)
		return code;

	va_start(ap, fmt);
	vsnprintf(context, sizeof(context), fmt, ap);
	va_end(ap);
	return record_joined(err, code, context, sys_errno_text(-code, text, sizeof(text)));
}

int err_wrap(struct err *err, int code, const char *fmt, ...)
{
	char context[ERR_MSG_SIZE] = { 0 }, text[128];
	bool recorded;
	va_list ap;

	assert(code < 0);
	if (!err)
		return code;

	va_start(ap, fmt);
	vsnprintf(context, sizeof(context), fmt, ap);
	va_end(ap);
	recorded = err->code == code && err->msg[0] != '\0';
	return record_joined(err, code, context,
			     recorded ? err->msg : sys_errno_text(-code, text, sizeof(text)));
}

int err_nomem(struct err *err)
{
	return err_set(err, -ENOMEM, "out of memory");
}
