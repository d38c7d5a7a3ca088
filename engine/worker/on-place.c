/*
 * How states travel for tickets: a project sends queue-DIGITS, a result comes back as
 * result-DIGITS. `remote gc` removes names that a killed process left there.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/hex.h"
#include "base/log.h"
#include "base/text.h"
#include "engine/transfer/signers-i.h"
#include "engine/worker/on-clone-i.h"
#include "engine/worker/on-i.h"
#include "engine/worker/on-trust.h"
#include "remote/slurm.h"
#include "remote/ssh.h"

#define HOME_DEPOT     "/~/.local/share/snapcow-depot" /* at the far end of ssh */
#define SLURM_VARIABLE "SNAPCOW_SLURM_DIR"
#define PUSH_TRIES     8
#define RENEW_MS       (UINT64_C(86400) * 1000) /* a week before `remote gc` removes it */

/* --- the remote --------------------------------------------------------------------------- */

static int find_only(struct engine *e, struct target *ret, struct err *err)
{
	CLEANUP(engine_remotes_done) struct engine_remotes all = { 0 };
	int r = engine_remotes(e, &all, err);

	if (r < 0)
		return r;
	if (all.n != 1)
		return err_set(
		    err, -EINVAL,
		    "states travel through a remote, and there %s: name one with --remote",
		    all.n == 0 ? "is none" : "are several");
	return target_find(e, all.list[0].name, ret, err);
}

static int find_there(struct engine *e, const char *host, struct target *ret, struct err *err)
{
	CLEANUP(ssh_place_done) struct ssh_place place = { 0 };
	AUTO_FREE char *url = NULL;
	int r = ssh_place_parse_host(host, &place, err);

	if (r == 0)
		r = text_set(&url, err, "ssh://%s%s%s" HOME_DEPOT, place.host,
			     place.port ? ":" : "", place.port ? place.port : "");
	return r < 0 ? r : target_find(e, url, ret, err);
}

int on_slurm_dir(char **ret, struct err *err)
{
	const char *named = getenv(SLURM_VARIABLE), *home = getenv("HOME");

	if (named && *named == '/')
		return text_set(ret, err, "%s", named);
	if (named && *named != '\0')
		return err_set(err, -EINVAL, "'%.200s' in " SLURM_VARIABLE " is no absolute path",
			       named);
	return home && *home == '/'
		   ? text_set(ret, err, "%s/.local/share/snapcow-slurm", home)
		   : err_set(
			 err, -EINVAL,
			 "there is no home directory: name one that all nodes see in " SLURM_VARIABLE);
}

static int find_shared(struct engine *e, struct target *ret, struct err *err)
{
	AUTO_FREE char *dir = NULL, *url = NULL;
	int r = on_slurm_dir(&dir, err);

	if (r == 0)
		r = text_set(&url, err, "dir:%s/depot", dir);
	return r < 0 ? r : target_find(e, url, ret, err);
}

int on_choose_remote(struct engine *e, const char *queue, const char *named,
		     const struct engine_trust *trust, struct target *ret, struct err *err)
{
	int r = named                   ? target_find(e, named, ret, err)
		: ssh_is_host(queue)    ? find_there(e, queue, ret, err)
		: slurm_is_place(queue) ? find_shared(e, ret, err)
					: find_only(e, ret, err);

	/* Before a worker runs for nothing. */
	return r < 0 ? r : on_trust_find(e, ret, trust, err);
}

/* Of the remotes that have this url, one that demands signatures. */
static int find_strict(struct engine *e, const char *url, struct target *ret, struct err *err)
{
	CLEANUP(engine_remotes_done) struct engine_remotes all = { 0 };
	int r = engine_remotes(e, &all, err);

	for (size_t i = 0; r == 0 && i < all.n; i++) {
		CLEANUP(target_done) struct target one = { 0 };

		if (strcmp(all.list[i].url, url) != 0)
			continue;
		r = target_find(e, all.list[i].name, &one, err);
		r = r < 0 ? r : signers_demanded(e, &one, err);
		if (r <= 0)
			continue;
		*ret = TAKE_STRUCT(one);
	}
	return r;
}

int on_find_remote(struct engine *e, const char *named, const char *url,
		   const struct engine_trust *trust, struct target *ret, struct err *err)
{
	int r = named ? target_find(e, named, ret, err) : find_strict(e, url, ret, err);

	if (r == 0 && named && strcmp(ret->url, url) != 0)
		return err_set(err, -EINVAL, "the ticket's state is in '%s', and '%.80s' is '%s'",
			       url, named, ret->url);
	if (r == 0 && !named)
		r = target_find(e, url, ret, err);
	return r < 0 ? r : on_trust_find(e, ret, trust, err);
}

bool on_place_is_machine(const char *queue)
{
	return ssh_is_host(queue);
}

int on_place_check(struct engine *e, const struct on_place *place, char **ret_remote,
		   struct err *err)
{
	const struct queue_config config = { .url = place->queue,
					     .creds = place->creds,
					     .insecure = place->insecure };
	CLEANUP(ssh_place_done) struct ssh_place far = { 0 };
	CLEANUP(target_done) struct target target = { 0 };
	const char *partition;
	const bool by_ssh = ssh_is_host(place->queue), by_slurm = slurm_is_place(place->queue);
	int r = by_ssh     ? ssh_place_parse_host(place->queue, &far, err)
		: by_slurm ? slurm_partition(place->queue, &partition, err)
			   : queue_check(&config, err);

	if (r == 0 && (by_ssh || by_slurm) &&
	    (place->labels.n > 0 || place->creds || place->insecure))
		return err_set(err, -EINVAL, "option '--%s' is for a queue, and '%s' is %s",
			       place->labels.n > 0 ? "label"
			       : place->creds      ? "creds"
						   : "insecure",
			       place->queue, by_ssh ? "a machine" : "a cluster");
	if (r == 0 && place->labels.n > QUEUE_LABELS_MAX)
		return err_set(err, -EINVAL, "a ticket has at most %d labels", QUEUE_LABELS_MAX);
	for (size_t i = 0; r == 0 && i < place->labels.n; i++)
		if (!queue_word_valid(place->labels.items[i]))
			return err_set(err, -EINVAL,
				       "'%.80s' cannot be a label: small letters, digits and '-', "
				       "at most %d",
				       place->labels.items[i], QUEUE_NAME_MAX);
	if (r == 0)
		r = on_choose_remote(e, place->queue, place->remote, &place->trust, &target, err);
	return r < 0 ? r : text_set(ret_remote, err, "%s", target_remote(&target));
}

/* --- sending ------------------------------------------------------------------------------ */

/* One for each project of each store. */
static int choose_name(struct engine *e, const struct target *target, char **ret, struct err *err)
{
	CLEANUP(project_done) struct project project = { 0 };
	char host[256] = "", hex[SHA256_HEX_SIZE];
	AUTO_FREE char *key = NULL;
	struct store *store;
	struct digest d;
	int r = engine_project(e, &store, &project, err);

	if (r < 0)
		return r;
	if (gethostname(host, sizeof(host) - 1) < 0)
		host[0] = '\0';
	r = text_set(&key, err, "%s %s %s", host, e->store_path, project.path);
	if (r < 0)
		return r;
	d = digest_of(key, strlen(key));
	hex_encode(d.b, sizeof(d.b), hex);
	return text_set(ret, err, "%s:queue-%.16s", target_remote(target), hex);
}

int on_push(struct engine *e, const struct target *target, const char *snapshot, const char *sign,
	    const struct engine_watch *watch, struct engine_pushed *ret, struct err *err)
{
	struct engine_push_options o = { .state = snapshot,
					 .force = true,
					 .renew_ms = RENEW_MS,
					 .sign = sign,
					 .watch = *watch };
	AUTO_FREE char *to = NULL;
	int r = choose_name(e, target, &to, err);

	if (r < 0)
		return r;
	o.to = to;
	/* Another run of the same project may move it at the same time: then the next try follows it. */
	r = -ESTALE;
	for (int tries = 0; r == -ESTALE && tries < PUSH_TRIES; tries++)
		r = engine_push(e, &o, ret, err);
	return r;
}

int on_place_send(struct engine *e, const struct on_place *place, const char *snapshot,
		  const struct engine_watch *watch, struct engine_pushed *ret, struct err *err)
{
	CLEANUP(target_done) struct target target = { 0 };
	int r = on_choose_remote(e, place->queue, place->remote, &place->trust, &target, err);

	return r < 0 ? r : on_push(e, &target, snapshot, place->sign, watch, ret, err);
}

int on_place_has(struct engine *e, const struct on_place *place, const char *manifest,
		 struct err *err)
{
	CLEANUP(target_done) struct target target = { 0 };
	CLEANUP(depot_close_p) struct depot *d = NULL;
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	int r = on_choose_remote(e, place->queue, place->remote, &place->trust, &target, err);

	if (r < 0)
		return r;
	r = depot_open(target.url, NULL, &d, err);
	if (r == 0)
		r = d->ops->get_manifest(d, manifest, &text, err);
	return r == -ENOENT ? 0 : r < 0 ? r : 1;
}

/* --- after a result ----------------------------------------------------------------------- */

static int delete_name(struct depot *d, const char *name, const char *manifest, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	char meant[DIGEST_TEXT_SIZE];
	struct digest digest;
	int r = d->ops->get_manifest(d, name, &text, err);

	if (r < 0)
		return r;
	/* A worker that was cut off may have pushed another: it goes by gc. */
	digest = digest_of(text.data, text.len);
	if (strcmp(digest_text(&digest, meant), manifest) != 0)
		return 0;
	r = d->ops->delete_manifest(d, name, err);
	/* Some registries take digests alone; no other name has this manifest. */
	return r == -ENOTSUP ? d->ops->delete_manifest(d, manifest, err) : r;
}

void on_forget(const struct target *target, const char *ticket, const char *manifest,
	       const char *base_manifest)
{
	CLEANUP(depot_close_p) struct depot *d = NULL;
	char name[sizeof("result-") + 32];
	struct err why = { 0 };
	int r;

	/* A result that is what was sent has no name of its own. */
	if (strcmp(manifest, base_manifest) == 0)
		return;
	snprintf(name, sizeof(name), "result-%.32s", ticket);
	r = depot_open(target->url, NULL, &d, &why);
	if (r == 0)
		r = delete_name(d, name, manifest, &why);
	if (r < 0 && r != -ENOENT && r != -ENOTSUP)
		log_warn("%s: '%s' stays there, continuing", why.msg, name);
}
