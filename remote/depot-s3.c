/*
 * A depot in an S3-compatible store: "s3://bucket[/prefix]", where the environment and ~/.aws say which store;
 * or "s3+https://host[:port]/bucket[/prefix]" (s3+http: without TLS), which names it.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "remote/s3-i.h"
#include "remote/url.h"

#define REGION     "us-east-1" /* what stores of one region call it */
#define PREFIX_MAX 512         /* of 1024 bytes that a key may have */

static void close_s3(struct depot *d)
{
	struct s3_depot *s = s3_of(d);

	http_close(s->http);
	s3_config_done(&s->config);
	free(s->scope);
	free(s->base);
	free(s->bucket);
	free(s->prefix);
	free(s->depot.url);
	free(s);
}

static const struct depot_ops ops = {
	.close = close_s3,
	.has_blob = s3_has_blob,
	.put_blob = s3_put_blob,
	.get_blob = s3_get_blob,
	.put_manifest = s3_put_manifest,
	.get_manifest = s3_get_manifest,
	.list_tags = s3_list_tags,
	.delete_manifest = s3_delete_manifest,
	.collect = s3_collect,
	.probe = s3_probe,
};

/* --- the address -------------------------------------------------------------------------- */

static bool is_bucket(const char *text)
{
	const size_t len = strlen(text);

	for (const char *c = text; *c; c++)
		if (!isalnum((unsigned char)*c) && !strchr("._-", *c))
			return false;
	return len >= 3 && len <= 63 && isalnum((unsigned char)*text) && !strstr(text, "..");
}

/* Parts of letters that stand for themselves in a URL; neither "." nor "..", which a server would resolve. */
static bool is_prefix(const char *text)
{
	if (strlen(text) > PREFIX_MAX)
		return false;
	while (*text) {
		const size_t len = strcspn(text, "/");

		if (len == 0 || strspn(text, ".") == len)
			return false;
		for (size_t i = 0; i < len; i++)
			if (!isalnum((unsigned char)text[i]) && !strchr("._-~", text[i]))
				return false;
		text += len + (text[len] == '/');
	}
	return true;
}

/* bucket[/prefix] */
static int read_place(struct s3_depot *s, const char *rest, struct err *err)
{
	const size_t bucket = strcspn(rest, "/");
	const char *prefix = rest + bucket + (rest[bucket] == '/');
	size_t len = strlen(prefix);
	int r;

	while (len > 0 && prefix[len - 1] == '/')
		len--;
	r = text_set(&s->bucket, err, "%.*s", (int)bucket, rest);
	if (r == 0)
		r = text_set(&s->prefix, err, "%.*s%s", (int)len, prefix, len > 0 ? "/" : "");
	if (r < 0)
		return r;
	if (!is_bucket(s->bucket))
		return err_set(
		    err, -EINVAL,
		    "'%.200s' names no bucket: s3://bucket/prefix (letters, digits, '.', "
		    "'_' and '-')",
		    s->depot.url);
	if (!is_prefix(s->prefix))
		return err_set(err, -EINVAL,
			       "'%.200s' has a prefix with other than letters, digits, '.', '_', "
			       "'-' and '/'",
			       s->depot.url);
	return 0;
}

/* --- the store ---------------------------------------------------------------------------- */

static int set_endpoint(struct s3_depot *s, const char *endpoint, struct err *err)
{
	AUTO_FREE char *origin = url_origin(endpoint);
	size_t len = strlen(endpoint);

	if (!origin || strpbrk(endpoint, "?#"))
		return err_set(err, -EINVAL,
			       "'%.160s' is no address of an S3 store: http[s]://host[:port]",
			       endpoint);
	while (endpoint[len - 1] == '/')
		len--;
	return text_set(&s->base, err, "%.*s/%s", (int)len, endpoint, s->bucket);
}

/* AWS' own: a host for each bucket, unless its name has dots, which no certificate fits. */
static int set_amazon(struct s3_depot *s, const char *region, struct err *err)
{
	const char *china = strncmp(region, "cn-", 3) == 0 ? ".cn" : "";

	if (strchr(s->bucket, '.') || strchr(s->bucket, '_'))
		return text_set(&s->base, err, "https://s3.%s.amazonaws.com%s/%s", region, china,
				s->bucket);
	return text_set(&s->base, err, "https://%s.s3.%s.amazonaws.com%s", s->bucket, region,
			china);
}

static int set_base(struct s3_depot *s, const char *endpoint, struct err *err)
{
	const char *region = s->config.region ? s->config.region : REGION;
	int r;

	for (const char *c = region; *c; c++)
		if (!isalnum((unsigned char)*c) && !strchr("-_", *c))
			return err_set(err, -EINVAL, "'%.80s' is no region of S3", region);
	r = text_set(&s->scope, err, "aws:amz:%s:s3", region);
	if (r < 0)
		return r;
	s->keys = (struct http_keys){ s->config.access, s->config.secret, s->scope };
	if (!endpoint)
		endpoint = s->config.endpoint;
	return endpoint ? set_endpoint(s, endpoint, err) : set_amazon(s, region, err);
}

/* "s3+https://host:port/bucket/prefix": host as an endpoint, owned, and what follows. */
static int split_host(const char *url, char **ret_endpoint, const char **ret_rest, struct err *err)
{
	const char *host = strstr(url, "://") + 3, *slash = strchr(host, '/');

	if (!slash)
		return err_set(err, -EINVAL,
			       "'%.200s' names no bucket: s3+https://host/bucket/prefix", url);
	*ret_rest = slash + 1;
	return text_set(ret_endpoint, err, "%.*s", (int)(slash - url) - 3, url + 3);
}

int depot_s3_open(const char *url, const struct depot_config *config, struct depot **ret,
		  struct err *err)
{
	CLEANUP(depot_close_p) struct depot *d = NULL;
	AUTO_FREE char *endpoint = NULL;
	const char *rest = strstr(url, "://") + 3;
	struct s3_depot *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return err_nomem(err);
	s->depot.ops = &ops;
	d = &s->depot;
	r = text_set(&s->depot.url, err, "%s", url);
	if (r == 0 && url[2] == '+')
		r = split_host(url, &endpoint, &rest, err);
	if (r == 0)
		r = read_place(s, rest, err);
	if (r == 0)
		r = s3_config_find(&s->config, err);
	if (r == 0)
		r = set_base(s, endpoint, err);
	if (r == 0)
		r = http_depot_open(config, &s->http, err);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(d);
	return 0;
}
