/*
 * A depot in a registry. Two connections to one repository share their authorization (auth.h).
 */
#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "remote/reference.h"
#include "remote/registry-i.h"

#define INSECURE "oci+http://"

static void close_registry(struct depot *d)
{
	struct registry *g = registry_of(d);

	http_close(g->http);
	free(g->server);
	free(g->origin);
	free(g->repository);
	free(g->depot.url);
	free(g);
}

static const struct depot_ops ops = {
	.close = close_registry,
	.has_blob = registry_has_blob,
	.put_blob = registry_put_blob,
	.get_blob = registry_get_blob,
	.mount_blob = registry_mount_blob,
	.put_manifest = registry_put_manifest,
	.get_manifest = registry_get_manifest,
	.list_tags = registry_list_tags,
	.delete_manifest = registry_delete_manifest,
	.collect = registry_collect,
	.probe = registry_probe,
};

/* Docker's own registry is called by one name and answers at another. */
static const char *api_host(const char *host)
{
	return strcmp(host, "docker.io") == 0 || strcmp(host, "index.docker.io") == 0
		   ? "registry-1.docker.io"
		   : host;
}

/* What `url` names, and whether without TLS. */
static int parse_url(const char *url, struct reference *ret, bool *ret_insecure, struct err *err)
{
	const char *scheme = strstr(url, "://");

	*ret_insecure = strncmp(url, INSECURE, sizeof(INSECURE) - 1) == 0;
	return reference_parse(scheme ? scheme + 3 : url, ret, err);
}

char *depot_registry_beside(const char *url, const char *other)
{
	CLEANUP(reference_done) struct reference a = { 0 };
	CLEANUP(reference_done) struct reference b = { 0 };
	struct err ignored = { 0 };
	bool insecure_a, insecure_b;

	if (parse_url(url, &a, &insecure_a, &ignored) < 0 ||
	    parse_url(other, &b, &insecure_b, &ignored) < 0 || insecure_a != insecure_b ||
	    strcmp(a.host, b.host) != 0 || strcmp(a.repository, b.repository) == 0)
		return NULL;
	return TAKE_PTR(b.repository);
}

int depot_registry_open(const char *url, const struct depot_config *config, struct depot **ret,
			struct err *err)
{
	CLEANUP(reference_done) struct reference ref = { 0 };
	CLEANUP(depot_close_p) struct depot *d = NULL;
	struct registry *g;
	bool insecure;
	int r = parse_url(url, &ref, &insecure, err);

	if (r < 0)
		return r;
	if (ref.name)
		return err_set(err, -EINVAL, "'%s' names a snapshot ('%s'), not a repository", url,
			       ref.name);
	g = calloc(1, sizeof(*g));
	if (!g)
		return err_nomem(err);
	g->depot.ops = &ops;
	d = &g->depot;
	g->local = ref.plain;
	r = text_set(&g->origin, err, "http%s://%s",
		     ref.plain || insecure || config->plain_http ? "" : "s", api_host(ref.host));
	if (r == 0)
		r = text_set(&g->depot.url, err, "%s%s/%s", insecure ? INSECURE : "oci://",
			     ref.host, ref.repository);
	if (r < 0)
		return r;
	g->server = TAKE_PTR(ref.host);
	g->repository = TAKE_PTR(ref.repository);
	r = http_depot_open(config, &g->http, err);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(d);
	return 0;
}
