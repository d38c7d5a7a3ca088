/*
 * gnutls.h - GnuTLS, loaded when a run has hosts whose TLS is inspected.
 *
 * Linked, it and its dependencies would slow the start of every command.
 */
#pragma once

#include <gnutls/gnutls.h>
#include <gnutls/x509.h>

#include "base/attr.h"
#include "base/err.h"

/* The functions by the names they have there. */
#define GNUTLS_FUNCTIONS(F)                    \
	F(alert_get)                           \
	F(alert_get_name)                      \
	F(alert_send_appropriate)              \
	F(alpn_set_protocols)                  \
	F(bye)                                 \
	F(certificate_allocate_credentials)    \
	F(certificate_free_credentials)        \
	F(certificate_set_x509_key_mem)        \
	F(certificate_set_x509_trust_mem)      \
	F(credentials_set)                     \
	F(deinit)                              \
	F(error_is_fatal)                      \
	F(handshake)                           \
	F(handshake_set_max_packet_length)     \
	F(init)                                \
	F(priority_set_direct)                 \
	F(record_recv)                         \
	F(record_send)                         \
	F(server_name_set)                     \
	F(session_get_verify_cert_status)      \
	F(session_set_verify_cert2)            \
	F(strerror)                            \
	F(transport_set_errno)                 \
	F(transport_set_ptr)                   \
	F(transport_set_pull_function)         \
	F(transport_set_pull_timeout_function) \
	F(transport_set_push_function)         \
	F(x509_crt_deinit)                     \
	F(x509_crt_export)                     \
	F(x509_crt_get_key_id)                 \
	F(x509_crt_init)                       \
	F(x509_crt_set_activation_time)        \
	F(x509_crt_set_authority_key_id)       \
	F(x509_crt_set_basic_constraints)      \
	F(x509_crt_set_dn_by_oid)              \
	F(x509_crt_set_expiration_time)        \
	F(x509_crt_set_key)                    \
	F(x509_crt_set_key_purpose_oid)        \
	F(x509_crt_set_key_usage)              \
	F(x509_crt_set_name_constraints)       \
	F(x509_crt_set_serial)                 \
	F(x509_crt_set_subject_alt_name)       \
	F(x509_crt_set_subject_key_id)         \
	F(x509_crt_set_version)                \
	F(x509_crt_sign2)                      \
	F(x509_name_constraints_add_permitted) \
	F(x509_name_constraints_deinit)        \
	F(x509_name_constraints_init)          \
	F(x509_privkey_deinit)                 \
	F(x509_privkey_export)                 \
	F(x509_privkey_generate)               \
	F(x509_privkey_init)

#define GNUTLS_MEMBER(name) __typeof__(&gnutls_##name) name;
struct gnutls {
	GNUTLS_FUNCTIONS(GNUTLS_MEMBER)
};
#undef GNUTLS_MEMBER

/* -ENOTSUP with a sentence if this machine has none. */
NODISCARD int gnutls_load(struct gnutls *ret, struct err *err);
