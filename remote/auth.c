#include "remote/auth.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/lock.h"
#include "base/vec.h"
#include "base/wipe.h"
#include "remote/auth-token-i.h"
#include "remote/challenge.h"
#include "remote/credential.h"

struct known {
	char *key;           /* owned: base and repository */
	char *authorization; /* owned */
};

/* What all connections of the process share. */
static struct {
	pthread_mutex_t lock; /* guards what follows, and is held while a token is fetched */
	struct known *list;
	size_t n, cap;
} known = { .lock = PTHREAD_MUTEX_INITIALIZER };

static char *key_of(const struct auth_place *p)
{
	char *key;

	return asprintf(&key, "%s/%s", p->base, p->repository) < 0 ? NULL : key;
}

static struct known *find_known(const char *key)
{
	return VEC_FIND(it, known.list, known.n, strcmp(it->key, key) == 0);
}

static int remember(const char *key, char *authorization)
{
	struct known *k = find_known(key);

	if (k) {
		wipe_text(k->authorization);
		k->authorization = authorization;
		return 0;
	}
	if (VEC_ROOM(known.list, known.n, known.cap)) {
		k = &known.list[known.n];
		k->key = strdup(key);
		k->authorization = authorization;
		if (k->key) {
			known.n++;
			return 0;
		}
	}
	wipe_text(authorization);
	return -ENOMEM;
}

int auth_current(const struct auth_place *p, char **ret)
{
	AUTO_FREE char *key = key_of(p);
	const struct known *k;
	char *copy = NULL;
	int r = 0;

	if (!key)
		return -ENOMEM;
	pthread_mutex_lock(&known.lock);
	k = find_known(key);
	if (k) {
		copy = strdup(k->authorization);
		r = copy ? 0 : -ENOMEM;
	}
	pthread_mutex_unlock(&known.lock);
	*ret = copy;
	return r;
}

static int meet_basic(const struct auth_place *p, const struct credential *c, const char *used,
		      char **ret, struct err *err)
{
	int r;

	if (!c->user || !c->secret)
		return err_set(err, -EACCES,
			       "'%s' wants credentials and there are none (docker login %s)",
			       p->server, p->server);
	/* Only a registry on this machine is spoken to without TLS unasked; see depot_config. */
	r = auth_basic(c, ret);
	if (r < 0)
		return err_nomem(err);
	if (!used || strcmp(used, *ret) != 0)
		return 0;
	wipe_text(TAKE_PTR(*ret));
	return err_set(err, -EACCES, "'%s' refuses the credentials of '%s' (docker login %s)",
		       p->server, c->user, p->server);
}

/* What the challenge asks for. */
static int meet(const struct auth_place *p, struct http *http, const struct http_answer *refusal,
		const char *used, char **ret, struct err *err)
{
	CLEANUP(challenge_done) struct challenge c = { 0 };
	CLEANUP(credential_done) struct credential mine = { 0 };
	int r;

	if (challenge_choose(&refusal->challenges, &c) < 0)
		return err_nomem(err);
	if (c.kind == CHALLENGE_NONE)
		return err_set(err, -EACCES,
			       "'%s' wants credentials of a kind other than Basic and Bearer",
			       p->server);
	r = credential_find(p->server, &mine, err);
	if (r < 0)
		return r;
	if (c.kind == CHALLENGE_BASIC)
		return meet_basic(p, &mine, used, ret, err);
	return auth_token(p, http, &c, &mine, ret, err);
}

int auth_meet(const struct auth_place *p, struct http *http, const struct http_answer *refusal,
	      const char *used, struct err *err)
{
	AUTO_FREE char *key = key_of(p);
	CLEANUP(wipe_text_p) char *authorization = NULL;
	const struct known *k;
	int r = 0;

	if (!key)
		return err_nomem(err);
	LOCKED(&known.lock);
	k = find_known(key);
	/* Another connection may have been refused first and have found out meanwhile. */
	if (!k || (used && strcmp(k->authorization, used) == 0)) {
		r = meet(p, http, refusal, used, &authorization, err);
		if (r == 0 && remember(key, TAKE_PTR(authorization)) < 0)
			r = err_nomem(err);
	}
	return r;
}
