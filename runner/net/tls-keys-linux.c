/*
 * The child's output: a struct err, then the certificate of the authority, then a certificate and a
 * key for each host; each after its length, a u32.
 */
#include "runner/net/tls-keys.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fdio.h"
#include "base/le.h"
#include "base/sys.h"
#include "runner/net/gnutls.h"

#define BLOB_MAX 4096 /* bytes of a certificate or a key; an authority has a name for each host */
#define ALL_MAX  (sizeof(struct err) + (2 * INSPECT_MAX + 1) * (BLOB_MAX + 4) + INSPECT_MAX * 512)

#define BEFORE_S (60 * 60)
#define AFTER_S  (30 * 24 * 60 * 60) /* longer than any run; the keys go with it */

void tls_keys_done(struct tls_keys *k)
{
	sys_unmap_secret(k->memory, k->size);
	*k = (struct tls_keys){ 0 };
}

/* --- in the child ------------------------------------------------------------------------- */

struct maker {
	struct gnutls lib;
	struct buf made; /* what is handed over */
	gnutls_x509_crt_t authority;
	gnutls_x509_privkey_t authority_key;
};

/* What the library says of a step, for the first that failed. */
static int check(const struct maker *m, int rc, const char *what, struct err *err)
{
	return rc >= 0 ? 0 : err_set(err, -EIO, "%s: %s", what, m->lib.strerror(rc));
}

static int put_bytes(struct maker *m, const void *data, size_t len, struct err *err)
{
	int r = buf_append_u32(&m->made, (uint32_t)len);

	if (r == 0)
		r = buf_append(&m->made, data, len);
	return r < 0 ? err_nomem(err) : 0;
}

static int put_cert(struct maker *m, gnutls_x509_crt_t cert, gnutls_x509_crt_fmt_t format,
		    struct err *err)
{
	unsigned char bytes[BLOB_MAX + INSPECT_MAX * 512];
	size_t len = sizeof(bytes);
	int r = check(m, m->lib.x509_crt_export(cert, format, bytes, &len), "writing a certificate",
		      err);

	return r < 0 ? r : put_bytes(m, bytes, len, err);
}

static int put_key(struct maker *m, gnutls_x509_privkey_t key, struct err *err)
{
	unsigned char bytes[BLOB_MAX];
	size_t len = sizeof(bytes);
	int r = check(m, m->lib.x509_privkey_export(key, GNUTLS_X509_FMT_DER, bytes, &len),
		      "writing a key", err);

	return r < 0 ? r : put_bytes(m, bytes, len, err);
}

static int make_key(const struct maker *m, gnutls_x509_privkey_t *ret, struct err *err)
{
	const unsigned bits = GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1);
	int rc = m->lib.x509_privkey_init(ret);

	if (rc >= 0)
		rc = m->lib.x509_privkey_generate(*ret, GNUTLS_PK_ECDSA, bits, 0);
	return check(m, rc, "making a key", err);
}

/* What every certificate has: a version, a number, a time, a name, a key and a mark of it. */
static int begin_cert(const struct maker *m, gnutls_x509_privkey_t key, const char *name,
		      gnutls_x509_crt_t *ret, struct err *err)
{
	const time_t now = time(NULL);
	unsigned char serial[16], id[64];
	size_t id_len = sizeof(id);
	int rc = sys_random(serial, sizeof(serial));

	if (rc < 0)
		return err_set(err, rc, "no random numbers");
	serial[0] = (serial[0] & 0x7f) | 0x40; /* positive, and as long as it looks */
	rc = m->lib.x509_crt_init(ret);
	if (rc >= 0)
		rc = m->lib.x509_crt_set_version(*ret, 3);
	if (rc >= 0)
		rc = m->lib.x509_crt_set_serial(*ret, serial, sizeof(serial));
	if (rc >= 0)
		rc = m->lib.x509_crt_set_activation_time(*ret, now - BEFORE_S);
	if (rc >= 0)
		rc = m->lib.x509_crt_set_expiration_time(*ret, now + AFTER_S);
	if (rc >= 0)
		rc = m->lib.x509_crt_set_dn_by_oid(*ret, GNUTLS_OID_X520_COMMON_NAME, 0, name,
						   (unsigned)strlen(name));
	if (rc >= 0)
		rc = m->lib.x509_crt_set_key(*ret, key);
	if (rc >= 0)
		rc = m->lib.x509_crt_get_key_id(*ret, 0, id, &id_len);
	if (rc >= 0)
		rc = m->lib.x509_crt_set_subject_key_id(*ret, id, id_len < 20 ? id_len : 20);
	return check(m, rc, "making a certificate", err);
}

/* A client that checks certificates refuses it for any other host. */
static int constrain(const struct maker *m, const struct allow *hosts, struct err *err)
{
	gnutls_x509_name_constraints_t names;
	int rc = m->lib.x509_name_constraints_init(&names);

	for (size_t i = 0; rc >= 0 && i < hosts->n; i++) {
		const gnutls_datum_t name = { (unsigned char *)hosts->rules[i].host,
					      (unsigned)strlen(hosts->rules[i].host) };

		rc = m->lib.x509_name_constraints_add_permitted(names, GNUTLS_SAN_DNSNAME, &name);
	}
	if (rc >= 0)
		rc = m->lib.x509_crt_set_name_constraints(m->authority, names, 1);
	return check(m, rc, "limiting a certificate to its hosts", err);
}

static int make_authority(struct maker *m, const struct allow *hosts, struct err *err)
{
	int r = make_key(m, &m->authority_key, err), rc;

	if (r < 0)
		return r;
	r = begin_cert(m, m->authority_key, "snap --tls-inspect, for one run", &m->authority, err);
	if (r < 0)
		return r;
	r = constrain(m, hosts, err);
	if (r < 0)
		return r;
	rc = m->lib.x509_crt_set_basic_constraints(m->authority, 1, 0);
	if (rc >= 0)
		rc = m->lib.x509_crt_set_key_usage(m->authority,
						   GNUTLS_KEY_KEY_CERT_SIGN | GNUTLS_KEY_CRL_SIGN);
	if (rc >= 0)
		rc = m->lib.x509_crt_sign2(m->authority, m->authority, m->authority_key,
					   GNUTLS_DIG_SHA256, 0);
	r = check(m, rc, "signing the certificate of an authority", err);
	return r < 0 ? r : put_cert(m, m->authority, GNUTLS_X509_FMT_PEM, err);
}

static int make_host(struct maker *m, const char *host, struct err *err)
{
	gnutls_x509_privkey_t key = NULL;
	gnutls_x509_crt_t cert = NULL;
	unsigned char id[64];
	size_t id_len = sizeof(id);
	int r = make_key(m, &key, err), rc;

	if (r < 0)
		return r;
	r = begin_cert(m, key, strlen(host) <= 64 ? host : "an inspected host", &cert, err);
	if (r < 0)
		return r;
	rc = m->lib.x509_crt_set_basic_constraints(cert, 0, -1);
	if (rc >= 0)
		rc = m->lib.x509_crt_set_key_usage(cert, GNUTLS_KEY_DIGITAL_SIGNATURE);
	if (rc >= 0)
		rc = m->lib.x509_crt_set_key_purpose_oid(cert, GNUTLS_KP_TLS_WWW_SERVER, 0);
	if (rc >= 0)
		rc = m->lib.x509_crt_set_subject_alt_name(cert, GNUTLS_SAN_DNSNAME, host,
							  (unsigned)strlen(host), GNUTLS_FSAN_SET);
	if (rc >= 0)
		rc = m->lib.x509_crt_get_key_id(m->authority, 0, id, &id_len);
	if (rc >= 0)
		rc = m->lib.x509_crt_set_authority_key_id(cert, id, id_len < 20 ? id_len : 20);
	if (rc >= 0)
		rc = m->lib.x509_crt_sign2(cert, m->authority, m->authority_key, GNUTLS_DIG_SHA256,
					   0);
	r = check(m, rc, "signing the certificate of a host", err);
	if (r < 0)
		return r;
	r = put_cert(m, cert, GNUTLS_X509_FMT_DER, err);
	return r < 0 ? r : put_key(m, key, err);
}

static int make_all(struct maker *m, const struct allow *hosts, struct err *err)
{
	int r = gnutls_load(&m->lib, err);

	if (r < 0)
		return r;
	r = make_authority(m, hosts, err);
	for (size_t i = 0; r >= 0 && i < hosts->n; i++)
		r = make_host(m, hosts->rules[i].host, err);
	return r;
}

/* All that it made goes with the process. */
NORETURN static void be_maker(const struct allow *hosts, int out)
{
	struct maker m = { .made = BUF_INIT };
	struct err err = { 0 };
	int r;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_DUMPABLE, 0);
	if (dup2(out, 3) < 0)
		_exit(1);
	sys_close_from(4);
	r = make_all(&m, hosts, &err);
	if (r >= 0)
		err = (struct err){ 0 };
	if (fdio_write(3, &err, sizeof(err)) < 0 ||
	    (r >= 0 && fdio_write(3, m.made.data, m.made.len) < 0))
		_exit(1);
	_exit(0);
}

/* --- outside of it ------------------------------------------------------------------------ */

static bool take_bytes(struct tls_bytes *left, struct tls_bytes *ret)
{
	size_t len;

	if (left->len < 4)
		return false;
	len = le32_load(left->at);
	if (len == 0 || len > left->len - 4)
		return false;
	*ret = (struct tls_bytes){ left->at + 4, len };
	*left = (struct tls_bytes){ left->at + 4 + len, left->len - 4 - len };
	return true;
}

static int take_all(struct tls_keys *k, size_t n_hosts, size_t len, struct err *err)
{
	struct tls_bytes left = { k->memory, len };
	struct err said = { 0 };
	bool whole;

	if (len < sizeof(said))
		return err_set(err, -EIO, "the process that makes certificates died");
	memcpy(&said, k->memory, sizeof(said));
	said.msg[sizeof(said.msg) - 1] = '\0';
	if (said.code < 0)
		return err_set(err, said.code, "%s", said.msg);
	left = (struct tls_bytes){ left.at + sizeof(said), len - sizeof(said) };
	whole = take_bytes(&left, &k->authority);
	for (k->n = 0; whole && k->n < n_hosts; k->n++)
		whole = take_bytes(&left, &k->cert[k->n]) && take_bytes(&left, &k->key[k->n]);
	return whole ? 0 : err_set(err, -EIO, "the process that makes certificates died");
}

int tls_keys_make(const struct allow *hosts, struct tls_keys *ret, struct err *err)
{
	CLEANUP(tls_keys_done) struct tls_keys k = { .size = ALL_MAX };
	int fds[2], r;
	ssize_t n;
	pid_t pid;

	k.memory = sys_map_secret(k.size);
	if (!k.memory)
		return err_sys(err, "memory for keys");
	r = sys_pipe(fds);
	if (r < 0)
		return err_set(err, r, "making a pipe for keys");
	pid = fork();
	if (pid == 0)
		be_maker(hosts, fds[1]);
	n = pid < 0 ? -errno : 0;
	close(fds[1]);
	if (n == 0)
		n = fdio_read(fds[0], k.memory, k.size);
	close(fds[0]);
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	if (n < 0)
		return err_set(err, (int)n, "starting a process that makes certificates: %s",
			       strerror((int)-n));
	r = take_all(&k, hosts->n, (size_t)n, err);
	if (r < 0)
		return r;
	*ret = TAKE_STRUCT(k);
	return 0;
}
