/*
 * hello.h - the host that the first message of a TLS connection names.
 */
#pragma once

#include <stddef.h>

#define HELLO_MAX      16384 /* bytes that a hello may take, with its records */
#define HELLO_NAME_MAX 255

enum hello_answer {
	HELLO_MORE,  /* so far it is one, and not whole */
	HELLO_OTHER, /* this is not TLS */
	HELLO_BAD,   /* it begins like TLS, and is none that could be understood */
	HELLO_READ,
};

/* `name` is what SNI says, as it stands there; "" if it names nobody. */
enum hello_answer hello_read(const void *data, size_t len, char name[HELLO_NAME_MAX + 1]);
