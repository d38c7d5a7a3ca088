#include "remote/credential.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/base64.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fdio.h"
#include "base/json.h"
#include "base/path.h"
#include "base/wipe.h"

#define CONFIG_MAX ((size_t)1 << 20)
#define HUB_KEY    "https://index.docker.io/v1/" /* what docker calls its own registry there */

void credential_done(struct credential *c)
{
	wipe_text(c->user);
	wipe_text(c->secret);
	wipe_text(c->refresh);
	wipe_text(c->bearer);
	*c = (struct credential){ 0 };
}

static bool is_hub(const char *server)
{
	return strcasecmp(server, "docker.io") == 0 || strcasecmp(server, "index.docker.io") == 0 ||
	       strcasecmp(server, "registry-1.docker.io") == 0;
}

/* Keys are hosts, or URLs as older versions of docker wrote them. */
static bool key_names(const char *key, const char *server)
{
	const char *host = strncmp(key, "https://", 8) == 0  ? key + 8
			   : strncmp(key, "http://", 7) == 0 ? key + 7
							     : key;
	const size_t len = strcspn(host, "/");

	return len == strlen(server) && strncasecmp(host, server, len) == 0;
}

struct wanted {
	const char *server;
	const char *key; /* borrowed from the document */
};

static bool is_other_key(const char *key, const void *ctx)
{
	return !key_names(key, ((const struct wanted *)ctx)->server);
}

/* The key of an object that stands for the server, borrowed; NULL: there is none. */
static const char *key_for(struct json j, const char *server)
{
	const struct wanted w = { .server = server };

	if (json_kind(j, server) != JSON_MISSING)
		return server;
	if (is_hub(server) && json_kind(j, HUB_KEY) != JSON_MISSING)
		return HUB_KEY;
	return json_unknown_key(j, is_other_key, &w);
}

/* "user:secret" in base64. */
static int split_auth(const char *auth, struct credential *ret, struct err *err)
{
	CLEANUP(wipe_buf) struct buf plain = BUF_INIT;
	const char *text, *colon;

	if (base64_decode(&plain, auth, strlen(auth)) < 0 || memchr(plain.data, '\0', plain.len))
		return err_set(err, -EINVAL,
			       "docker's configuration: an entry of 'auths' is damaged");
	text = buf_str(&plain);
	colon = text ? strchr(text, ':') : NULL;
	if (!colon)
		return err_set(err, -EINVAL,
			       "docker's configuration: an entry of 'auths' is damaged");
	ret->user = strndup(text, (size_t)(colon - text));
	ret->secret = strdup(colon + 1);
	return ret->user && ret->secret ? 0 : err_nomem(err);
}

static int copy_text(struct json j, const char *key, char **ret)
{
	const char *text = json_text_if(j, key);

	if (!text || *text == '\0')
		return 0;
	*ret = strdup(text);
	return *ret ? 0 : -ENOMEM;
}

static int read_entry(struct json entry, struct credential *ret, struct err *err)
{
	CLEANUP(credential_done) struct credential c = { 0 };
	const char *auth = json_text_if(entry, "auth");
	int r = 0;

	if (auth && *auth)
		r = split_auth(auth, &c, err);
	else if (copy_text(entry, "username", &c.user) < 0 ||
		 copy_text(entry, "password", &c.secret) < 0)
		r = -ENOMEM;
	if (r == 0 && (copy_text(entry, "identitytoken", &c.refresh) < 0 ||
		       copy_text(entry, "registrytoken", &c.bearer) < 0))
		r = -ENOMEM;
	if (r < 0)
		return r == -ENOMEM ? err_nomem(err) : r;
	if (!c.secret && !c.refresh && !c.bearer)
		return 0;
	*ret = TAKE_STRUCT(c);
	return 1;
}

/* The program that keeps the credentials of a server, borrowed; NULL: the file itself does. */
static const char *program_for(struct json j, const char *server)
{
	if (json_kind(j, "credHelpers") == JSON_OBJECT) {
		struct json helpers = json_get_object(j, "credHelpers");
		const char *key = key_for(helpers, server);
		const char *name = key ? json_text_if(helpers, key) : NULL;

		if (name)
			return *name ? name : NULL;
	}
	return json_text_if(j, "credsStore");
}

int credential_read(const char *text, size_t len, const char *server, struct credential *ret,
		    struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	const char *program, *key;
	struct json j, auths;
	int r = json_parse(&doc, text, len, &j, NULL);

	if (r < 0) /* not with the parser's sentence: it may quote what it stumbled over */
		return err_set(err, r, "docker's configuration is not JSON");
	program = program_for(j, server);
	if (program && *program) {
		r = credential_ask_program(program, is_hub(server) ? HUB_KEY : server, ret, err);
		if (r != 0)
			return r;
	}
	if (json_kind(j, "auths") != JSON_OBJECT)
		return 0;
	auths = json_get_object(j, "auths");
	key = key_for(auths, server);
	if (!key || json_kind(auths, key) != JSON_OBJECT)
		return 0;
	return read_entry(json_get_object(auths, key), ret, err);
}

/* The path of docker's configuration, owned; NULL: there is no place for it. */
static char *config_path(void)
{
	const char *dir = getenv("DOCKER_CONFIG"), *home = getenv("HOME");

	if (dir && *dir)
		return path_join(dir, "config.json");
	return home && *home ? path_join(home, ".docker/config.json") : NULL;
}

int credential_find(const char *server, struct credential *ret, struct err *err)
{
	CLEANUP(wipe_buf) struct buf text = BUF_INIT;
	AUTO_FREE char *path = config_path();
	int r;

	if (!path)
		return 0;
	r = fdio_read_file(AT_FDCWD, path, CONFIG_MAX, &text, err);
	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return r;
	r = credential_read((const char *)text.data, text.len, server, ret, err);
	return r < 0 ? err_wrap(err, r, "'%s'", path) : r;
}
