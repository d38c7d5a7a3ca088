#include "engine/run/run-tls.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fdio.h"

#define OPTION    "option '--tls-inspect'"
#define ROOTS_MAX ((size_t)4 << 20)
#define NOWHERE   "/run/snapcow-roots.pem" /* where the machine has no file to cover */

void run_tls_done(struct run_tls *t)
{
	allow_done(&t->hosts);
	tls_keys_done(&t->keys);
	buf_done(&t->bundle);
	free(t->guest);
	strlist_done(&t->variables);
	*t = (struct run_tls){ 0 };
}

/* --- which hosts -------------------------------------------------------------------------- */

static int add_hosts(struct buf *all, const char *const *list, size_t n)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++) {
		r = all->len > 0 ? buf_append_u8(all, ',') : 0;
		if (r == 0)
			r = buf_append_str(all, list[i]);
	}
	return r;
}

static int read_hosts(struct run_tls *t, const struct engine_run_options *o,
		      const struct engine_profile *profile, struct err *err)
{
	CLEANUP(buf_done) struct buf all = BUF_INIT;
	int r =
	    add_hosts(&all, (const char *const *)profile->tls_inspect.list, profile->tls_inspect.n);

	if (r == 0)
		r = add_hosts(&all, o->tls_inspect.items, o->tls_inspect.n);
	if (r < 0 || !buf_str(&all))
		return err_nomem(err);
	if (profile->tls_inspect.n + o->tls_inspect.n == 0)
		return 0;
	r = inspect_parse(buf_str(&all), &t->hosts, err);
	return r < 0 ? err_wrap(err, r, OPTION) : 0;
}

/* --- what they need ----------------------------------------------------------------------- */

/* Where systems keep the roots of trust in one file. */
static const char *find_roots(void)
{
	static const char *const places[] = {
		"/etc/ssl/certs/ca-certificates.crt",
		"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
		"/etc/pki/tls/certs/ca-bundle.crt",
		"/etc/ssl/ca-bundle.pem",
		"/etc/ssl/cert.pem",
	};

	for (size_t i = 0; i < ARRAY_LEN(places); i++)
		if (access(places[i], R_OK) == 0)
			return places[i];
	return NULL;
}

/* As other programs of the caller do, we go by the file that a variable names. */
static int read_roots(struct run_tls *t, struct err *err)
{
	const char *system = find_roots(), *own = getenv("SSL_CERT_FILE");
	int r;

	if (own && *own == '\0')
		own = NULL;
	if (!own && !system)
		return err_set(err, -ENOENT,
			       OPTION ": no roots of trust found to check servers with: install "
				      "'ca-certificates' or set SSL_CERT_FILE");
	r = fdio_read_file(AT_FDCWD, own ? own : system, ROOTS_MAX, &t->bundle, err);
	if (r < 0)
		return err_wrap(err, r, OPTION);
	if (memchr(t->bundle.data, '\0', t->bundle.len))
		return err_set(err, -EINVAL, OPTION ": '%s' is no file of certificates",
			       own ? own : system);
	t->guest = system ? realpath(system, NULL) : strdup(NOWHERE);
	return t->guest ? 0 : err_sys(err, OPTION ": '%s'", system ? system : NOWHERE);
}

static int make_bundle(struct run_tls *t, struct err *err)
{
	const size_t roots = t->bundle.len;
	int r = buf_append_u8(&t->bundle, '\n');

	if (r == 0)
		r = buf_append(&t->bundle, t->keys.authority.at, t->keys.authority.len);
	if (r < 0 || !buf_str(&t->bundle))
		return err_nomem(err);
	t->plan = (struct tls_plan){ .hosts = &t->hosts,
				     .keys = &t->keys,
				     .roots = buf_str(&t->bundle),
				     .roots_len = roots };
	return 0;
}

static int set_variables(struct run_tls *t, struct err *err)
{
	static const char *const names[] = {
		"SSL_CERT_FILE",     "CURL_CA_BUNDLE",      "REQUESTS_CA_BUNDLE",
		"GIT_SSL_CAINFO",    "NODE_EXTRA_CA_CERTS", "PIP_CERT",
		"CARGO_HTTP_CAINFO", "AWS_CA_BUNDLE",       "DENO_CERT",
	};

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		char *word;

		if (asprintf(&word, "%s=%s", names[i], t->guest) < 0 ||
		    strlist_take(&t->variables, word) < 0)
			return err_nomem(err);
	}
	return 0;
}

int run_tls_choose(struct run_tls *t, const struct engine_run_options *o,
		   const struct engine_profile *profile, const struct allow *net, struct err *err)
{
	int r = read_hosts(t, o, profile, err);

	if (r < 0)
		return r;
	r = inspect_check(&t->hosts, net, err);
	if (r < 0 || t->hosts.n == 0)
		return r;
	r = read_roots(t, err);
	if (r < 0)
		return r;
	r = tls_keys_make(&t->hosts, &t->keys, err);
	if (r < 0)
		return err_wrap(err, r, OPTION);
	r = make_bundle(t, err);
	return r < 0 ? r : set_variables(t, err);
}

/* --- for the run -------------------------------------------------------------------------- */

struct engine_list run_tls_variables(const struct run_tls *t)
{
	return (struct engine_list){ (const char *const *)t->variables.list, t->variables.n };
}

int run_tls_show(const struct run_tls *t, struct layout *l, struct err *err)
{
	const struct sandbox_mount m = { .kind = SANDBOX_TEXT,
					 .host = t->plan.roots,
					 .guest = t->guest };

	return t->hosts.n > 0 ? layout_add(l, &m, err) : 0;
}

const struct tls_plan *run_tls_plan(const struct run_tls *t)
{
	return t->hosts.n > 0 ? &t->plan : NULL;
}

int run_tls_describe(const struct run_tls *t, struct strlist *ret)
{
	for (size_t i = 0; i < t->hosts.n; i++) {
		char *text;

		if (asprintf(&text, "%s:%u", t->hosts.rules[i].host, t->hosts.rules[i].low) < 0)
			return -ENOMEM;
		if (strlist_take(ret, text) < 0)
			return -ENOMEM;
	}
	return 0;
}
