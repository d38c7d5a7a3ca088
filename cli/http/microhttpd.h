/*
 * microhttpd.h - libmicrohttpd, loaded when HTTP is needed.
 *
 * It brings a library for TLS with its dependencies; linked, they would slow the start of every
 * command.
 */
#pragma once

#include <microhttpd.h>
#include <sys/socket.h>

#include "base/attr.h"
#include "base/err.h"

/* The functions by the names they have there. */
#define MICROHTTPD_FUNCTIONS(F)          \
	F(start_daemon)                  \
	F(stop_daemon)                   \
	F(run)                           \
	F(get_timeout)                   \
	F(get_daemon_info)               \
	F(get_connection_info)           \
	F(lookup_connection_value)       \
	F(create_response_from_buffer)   \
	F(create_response_from_callback) \
	F(add_response_header)           \
	F(queue_response)                \
	F(destroy_response)              \
	F(suspend_connection)            \
	F(resume_connection)

#define MICROHTTPD_MEMBER(name) __typeof__(&MHD_##name) name;
struct microhttpd {
	MICROHTTPD_FUNCTIONS(MICROHTTPD_MEMBER)
};
#undef MICROHTTPD_MEMBER

/* -ENOTSUP with a sentence if this machine has none. */
NODISCARD int microhttpd_load(struct microhttpd *ret, struct err *err);
