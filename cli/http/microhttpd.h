/*
 * microhttpd.h - libmicrohttpd, loaded when somebody wants HTTP.
 *
 * It brings a library for TLS with all that one needs, which every command would pay for at its
 * start if it were linked.
 */
#pragma once

#include <microhttpd.h>
#include <sys/socket.h>

#include "base/attr.h"
#include "base/err.h"

/* The functions by the names they have there. */
struct microhttpd {
	__typeof__(&MHD_start_daemon) start_daemon;
	__typeof__(&MHD_stop_daemon) stop_daemon;
	__typeof__(&MHD_run) run;
	__typeof__(&MHD_get_timeout) get_timeout;
	__typeof__(&MHD_get_daemon_info) get_daemon_info;
	__typeof__(&MHD_get_connection_info) get_connection_info;
	__typeof__(&MHD_lookup_connection_value) lookup_connection_value;
	__typeof__(&MHD_create_response_from_buffer) create_response_from_buffer;
	__typeof__(&MHD_create_response_from_callback) create_response_from_callback;
	__typeof__(&MHD_add_response_header) add_response_header;
	__typeof__(&MHD_queue_response) queue_response;
	__typeof__(&MHD_destroy_response) destroy_response;
	__typeof__(&MHD_suspend_connection) suspend_connection;
	__typeof__(&MHD_resume_connection) resume_connection;
};

/* -ENOTSUP with a sentence if this machine has none. */
NODISCARD int microhttpd_load(struct microhttpd *ret, struct err *err);
