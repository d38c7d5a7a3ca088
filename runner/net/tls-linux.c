#include "runner/net/tls.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runner/net/gnutls.h"
#include "runner/net/relay.h"

#define PRIORITY      "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"
#define WARNINGS_MAX  16    /* in one go */
#define HANDSHAKE_MAX 65536 /* bytes of one message, such as a chain of certificates */

struct tls {
	struct gnutls lib;
	const struct allow *hosts;
	gnutls_certificate_credentials_t roots;
	gnutls_certificate_credentials_t as[INSPECT_MAX];
};

struct tls_end {
	struct gnutls *lib;
	gnutls_session_t session;
	struct buf *in, *out; /* of the call that is under way */
	size_t taken;         /* of `in` */
	bool eof;
	char host[ALLOW_HOST_MAX + 1]; /* to be verified; the library keeps only where it is */
	gnutls_typed_vdata_st wanted[2];
};

static int fail(const struct gnutls *lib, int rc, const char *what, struct err *err)
{
	return err_set(err, -EIO, "%s: %s", what, lib->strerror(rc));
}

/* --- what connections share --------------------------------------------------------------- */

void tls_close(struct tls *t)
{
	if (!t)
		return;
	if (t->roots)
		t->lib.certificate_free_credentials(t->roots);
	for (size_t i = 0; i < INSPECT_MAX; i++)
		if (t->as[i])
			t->lib.certificate_free_credentials(t->as[i]);
	free(t);
}

static int load_roots(struct tls *t, const struct tls_plan *plan, struct err *err)
{
	const gnutls_datum_t pem = { (unsigned char *)(uintptr_t)plan->roots,
				     (unsigned)plan->roots_len };
	int rc = t->lib.certificate_allocate_credentials(&t->roots);

	if (rc >= 0)
		rc = t->lib.certificate_set_x509_trust_mem(t->roots, &pem, GNUTLS_X509_FMT_PEM);
	if (rc < 0)
		return fail(&t->lib, rc, "reading the roots of trust", err);
	return rc > 0 ? 0 : err_set(err, -ENOENT, "there are no roots of trust");
}

static int load_key(struct tls *t, const struct tls_plan *plan, size_t i, struct err *err)
{
	const struct tls_bytes c = plan->keys->cert[i], k = plan->keys->key[i];
	const gnutls_datum_t cert = { c.at, (unsigned)c.len }, key = { k.at, (unsigned)k.len };
	int rc = t->lib.certificate_allocate_credentials(&t->as[i]);

	if (rc >= 0)
		rc =
		    t->lib.certificate_set_x509_key_mem(t->as[i], &cert, &key, GNUTLS_X509_FMT_DER);
	return rc < 0 ? fail(&t->lib, rc, "reading a key", err) : 0;
}

int tls_load(struct err *err)
{
	struct gnutls unused;

	return gnutls_load(&unused, err);
}

int tls_open(const struct tls_plan *plan, struct tls **ret, struct err *err)
{
	CLEANUP(tls_close_p) struct tls *t = calloc(1, sizeof(*t));
	int r;

	if (!t)
		return err_nomem(err);
	r = gnutls_load(&t->lib, err);
	if (r < 0)
		return r;
	t->hosts = plan->hosts;
	r = load_roots(t, plan, err);
	for (size_t i = 0; r >= 0 && i < plan->keys->n; i++)
		r = load_key(t, plan, i, err);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(t);
	return 0;
}

/* --- an end ------------------------------------------------------------------------------- */

static ssize_t pull(gnutls_transport_ptr_t ptr, void *data, size_t len)
{
	struct tls_end *e = ptr;
	const size_t left = e->in ? e->in->len - e->taken : 0, n = len < left ? len : left;

	if (n == 0 && !e->eof) {
		e->lib->transport_set_errno(e->session, EAGAIN);
		return -1;
	}
	if (n > 0)
		memcpy(data, e->in->data + e->taken, n);
	e->taken += n;
	return (ssize_t)n;
}

static int is_there(gnutls_transport_ptr_t ptr, unsigned ms)
{
	const struct tls_end *e = ptr;

	return e->eof || (e->in && e->in->len > e->taken);
}

static ssize_t push(gnutls_transport_ptr_t ptr, const void *data, size_t len)
{
	struct tls_end *e = ptr;

	if (buf_append(e->out, data, len) < 0) {
		e->lib->transport_set_errno(e->session, ENOMEM);
		return -1;
	}
	return (ssize_t)len;
}

static void begin(struct tls_end *e, struct buf *in, bool eof, struct buf *out)
{
	e->in = in;
	e->out = out;
	e->eof = eof;
	e->taken = 0;
}

static void end(struct tls_end *e)
{
	if (e->in && e->taken > 0)
		relay_consume(e->in, e->taken);
	e->in = e->out = NULL;
}

void tls_end_free(struct tls_end *e)
{
	if (!e)
		return;
	if (e->session)
		e->lib->deinit(e->session);
	free(e);
}

static int new_end(struct tls *t, unsigned role, gnutls_certificate_credentials_t who,
		   struct tls_end **ret, struct err *err)
{
	static unsigned char http[] = "http/1.1";
	const gnutls_datum_t protocol = { http, sizeof(http) - 1 };
	CLEANUP(tls_end_free_p) struct tls_end *e = calloc(1, sizeof(*e));
	int rc;

	if (!e)
		return err_nomem(err);
	e->lib = &t->lib;
	rc =
	    t->lib.init(&e->session, role | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL | GNUTLS_NO_TICKETS);
	if (rc >= 0)
		rc = t->lib.priority_set_direct(e->session, PRIORITY, NULL);
	if (rc >= 0)
		rc = t->lib.credentials_set(e->session, GNUTLS_CRD_CERTIFICATE, who);
	/* A program that insists on HTTP/2 is refused here, where it hears why. */
	if (rc >= 0)
		rc = t->lib.alpn_set_protocols(e->session, &protocol, 1, GNUTLS_ALPN_MANDATORY);
	if (rc < 0)
		return fail(&t->lib, rc, "preparing TLS", err);
	t->lib.handshake_set_max_packet_length(e->session, HANDSHAKE_MAX);
	t->lib.transport_set_ptr(e->session, e);
	t->lib.transport_set_pull_function(e->session, pull);
	t->lib.transport_set_pull_timeout_function(e->session, is_there);
	t->lib.transport_set_push_function(e->session, push);
	*ret = TAKE_PTR(e);
	return 0;
}

int tls_end_as(struct tls *t, const char *host, uint16_t port, struct tls_end **ret,
	       struct err *err)
{
	for (size_t i = 0; i < t->hosts->n; i++)
		if (strcmp(t->hosts->rules[i].host, host) == 0 && t->hosts->rules[i].low == port)
			return new_end(t, GNUTLS_SERVER, t->as[i], ret, err);
	return err_set(err, -ENOENT, "there is no certificate for '%s'", host);
}

int tls_end_with(struct tls *t, const char *host, struct tls_end **ret, struct err *err)
{
	static unsigned char purpose[] = GNUTLS_KP_TLS_WWW_SERVER;
	CLEANUP(tls_end_free_p) struct tls_end *e = NULL;
	int r = new_end(t, GNUTLS_CLIENT, t->roots, &e, err), rc;

	if (r < 0)
		return r;
	strncpy(e->host, host, sizeof(e->host) - 1);
	rc = t->lib.server_name_set(e->session, GNUTLS_NAME_DNS, e->host, strlen(e->host));
	if (rc < 0)
		return fail(&t->lib, rc, "preparing TLS", err);
	e->wanted[0] = (gnutls_typed_vdata_st){ .type = GNUTLS_DT_DNS_HOSTNAME,
						.data = (unsigned char *)e->host };
	e->wanted[1] =
	    (gnutls_typed_vdata_st){ .type = GNUTLS_DT_KEY_PURPOSE_OID, .data = purpose };
	t->lib.session_set_verify_cert2(e->session, e->wanted, 2, 0);
	*ret = TAKE_PTR(e);
	return 0;
}

/* --- the handshake ------------------------------------------------------------------------ */

/* The first that is true, from what people can mend to what they cannot. */
static const char *explain_status(unsigned status)
{
	static const struct {
		unsigned bit;
		const char *words;
	} reasons[] = {
		{ GNUTLS_CERT_EXPIRED, "it has expired" },
		{ GNUTLS_CERT_NOT_ACTIVATED, "it is not valid yet" },
		{ GNUTLS_CERT_UNEXPECTED_OWNER, "it is for another name" },
		{ GNUTLS_CERT_REVOKED, "it is revoked" },
		{ GNUTLS_CERT_SIGNER_NOT_FOUND, "its issuer is not known here" },
		{ GNUTLS_CERT_SIGNER_NOT_CA, "its issuer is no authority" },
		{ GNUTLS_CERT_INSECURE_ALGORITHM, "its signature is too weak" },
		{ GNUTLS_CERT_PURPOSE_MISMATCH, "it is not for servers" },
	};

	for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
		if (status & reasons[i].bit)
			return reasons[i].words;
	return "it is not to be trusted";
}

static int explain(struct tls_end *e, int rc, struct err *err)
{
	const unsigned status = e->lib->session_get_verify_cert_status(e->session);
	const char *alert;

	if (rc == GNUTLS_E_CERTIFICATE_VERIFICATION_ERROR)
		return err_set(err, -EKEYREJECTED, "%s", explain_status(status));
	if (rc == GNUTLS_E_FATAL_ALERT_RECEIVED) {
		alert = e->lib->alert_get_name(e->lib->alert_get(e->session));
		return err_set(err, -ECONNABORTED, "it said '%s'", alert ? alert : "no");
	}
	/* What some libraries say of a certificate, they say before they encrypt. */
	if (rc == GNUTLS_E_PREMATURE_TERMINATION || rc == GNUTLS_E_DECRYPTION_FAILED)
		return err_set(err, -ECONNABORTED, "it gave up");
	if (rc == GNUTLS_E_NO_APPLICATION_PROTOCOL)
		return err_set(err, -EPROTO, "it does not speak HTTP/1.1");
	return err_set(err, -EPROTO, "%s", e->lib->strerror(rc));
}

int tls_end_shake(struct tls_end *e, struct buf *in, bool eof, struct buf *out, struct err *err)
{
	int rc, r = 0;

	begin(e, in, eof, out);
	do
		rc = e->lib->handshake(e->session);
	while (rc < 0 && rc != GNUTLS_E_AGAIN && !e->lib->error_is_fatal(rc));
	if (rc < 0 && rc != GNUTLS_E_AGAIN) {
		r = explain(e, rc, err);
		IGNORE_RESULT(e->lib->alert_send_appropriate(e->session, rc), "it is only polite");
	}
	end(e);
	return r < 0 ? r : rc == GNUTLS_E_SUCCESS;
}

/* --- what is said ------------------------------------------------------------------------- */

/*
 * The library asks to be called again for a warning, and after messages that are for it alone, such as
 * a ticket, though more has come: as long as it takes bytes there may be something behind them.
 */
static bool asks_again(ssize_t n, size_t took, unsigned *warnings)
{
	if (n == GNUTLS_E_WARNING_ALERT_RECEIVED)
		return ++*warnings <= WARNINGS_MAX;
	return n == GNUTLS_E_AGAIN && took > 0;
}

int tls_end_read(struct tls_end *e, struct buf *in, bool eof, struct buf *out, struct buf *plain,
		 size_t max)
{
	unsigned warnings = 0;
	size_t before;
	ssize_t n = 1;
	int r = 0;

	begin(e, in, eof, out);
	while (plain->len < max) {
		if (buf_reserve(plain, max - plain->len) < 0) {
			r = -ENOMEM;
			break;
		}
		before = e->taken;
		n = e->lib->record_recv(e->session, plain->data + plain->len, max - plain->len);
		if (n > 0)
			plain->len += (size_t)n;
		else if (!asks_again(n, e->taken - before, &warnings))
			break;
	}
	if (r == 0 && n <= 0)
		r = n == 0                                ? 1
		    : n == GNUTLS_E_AGAIN                 ? 0
		    : n == GNUTLS_E_PREMATURE_TERMINATION ? -EPIPE
							  : -EPROTO;
	end(e);
	return r;
}

int tls_end_write(struct tls_end *e, const struct buf *plain, struct buf *out)
{
	size_t at = 0;
	ssize_t n = 1;

	begin(e, NULL, false, out);
	while (at < plain->len && n > 0) {
		n = e->lib->record_send(e->session, plain->data + at, plain->len - at);
		at += n > 0 ? (size_t)n : 0;
	}
	end(e);
	return at == plain->len ? 0 : -EPROTO;
}

void tls_end_bye(struct tls_end *e, struct buf *out)
{
	begin(e, NULL, false, out);
	IGNORE_RESULT(e->lib->bye(e->session, GNUTLS_SHUT_WR),
		      "a client that does not hear it hears the end");
	end(e);
}
