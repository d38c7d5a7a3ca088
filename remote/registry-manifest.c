#include "remote/registry-i.h"

#include <errno.h>

#include "base/text.h"

/* What we can be given; without it a registry converts, or answers with its oldest format. */
static const char *const accepted[] = {
	"Accept: application/vnd.oci.image.manifest.v1+json",
	"Accept: application/vnd.oci.image.index.v1+json",
	"Accept: application/vnd.docker.distribution.manifest.v2+json",
};

static int add_accepted(struct strlist *headers)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_LEN(accepted); i++)
		r = strlist_add(headers, accepted[i]);
	return r;
}

/* Is it a tag or a digest?  What goes into a URL is nothing else. */
static int check_reference(const char *reference, struct digest *ret, bool *ret_is_digest,
			   struct err *err)
{
	*ret_is_digest = digest_parse(reference, ret) == 0;
	if (*ret_is_digest || depot_tag_valid(reference))
		return 0;
	return err_set(err, -EINVAL, "'%s' is neither a tag nor a digest", reference);
}

/* The manifest as it is, with what proves it. */
static int check_manifest(const struct registry *g, const char *reference,
			  const struct digest *want, const struct http_answer *a, struct err *err)
{
	const struct digest have = digest_of(a->body.data, a->body.len);

	if ((want && !digest_equal(&have, want)) || !registry_confirms(a, &have))
		return err_set(err, -EBADMSG, "'%s' gave wrong bytes for manifest %s", g->depot.url,
			       reference);
	return 0;
}

int registry_get_manifest(struct depot *d, const char *reference, struct buf *out, struct err *err)
{
	struct registry *g = registry_of(d);
	CLEANUP(http_answer_done) struct http_answer a = { 0 };
	CLEANUP(strlist_done) struct strlist headers = { 0 };
	AUTO_FREE char *url = NULL;
	struct http_request q = { .method = "GET", .headers = &headers };
	struct digest digest;
	bool is_digest;
	int r = check_reference(reference, &digest, &is_digest, err);

	if (r < 0)
		return r;
	url = registry_url(g, "/manifests/%s", reference);
	if (!url || add_accepted(&headers) < 0)
		return err_nomem(err);
	q.url = url;
	r = registry_send(g, &q, &a, err);
	if (r < 0)
		return r;
	if (a.status != 200)
		return registry_explain(g, &a, "reading a manifest", err);
	r = check_manifest(g, reference, is_digest ? &digest : NULL, &a, err);
	if (r < 0)
		return r;
	buf_swap(out, &a.body);
	return 0;
}

/* The digest that a tag has now; all zero: there is no such tag. */
static int look_up(struct registry *g, const char *tag, struct digest *ret, struct err *err)
{
	CLEANUP(buf_done) struct buf bytes = BUF_INIT;
	int r = registry_get_manifest(&g->depot, tag, &bytes, err);

	if (r == -ENOENT) {
		*ret = (struct digest){ 0 };
		return 0;
	}
	if (r < 0)
		return r;
	*ret = digest_of(bytes.data, bytes.len);
	return 0;
}

static int send_manifest(struct registry *g, const char *reference, const char *media_type,
			 const void *bytes, size_t len, struct err *err)
{
	const struct digest digest = digest_of(bytes, len);
	const struct http_source source = http_source_bytes(bytes, len);
	CLEANUP(http_answer_done) struct http_answer a = { 0 };
	CLEANUP(strlist_done) struct strlist headers = { 0 };
	AUTO_FREE char *url = registry_url(g, "/manifests/%s", reference), *type = NULL;
	struct http_request q = {
		.method = "PUT",
		.url = url,
		.headers = &headers,
		.source = &source,
	};
	int r = text_set(&type, err, "Content-Type: %s", media_type);

	if (r < 0)
		return r;
	if (!url || strlist_add(&headers, type) < 0)
		return err_nomem(err);
	r = registry_send(g, &q, &a, err);
	if (r < 0)
		return r;
	if (a.status == 404)
		return err_set(err, -EACCES, "'%s': the registry has no such repository",
			       g->depot.url);
	if (a.status != 201)
		return registry_explain(g, &a, "putting a manifest", err);
	if (!registry_confirms(&a, &digest))
		return err_set(err, -EBADMSG, "'%s' stored another manifest than it was given",
			       g->depot.url);
	return 0;
}

int registry_put_manifest(struct depot *d, const char *tag, const struct digest *expect,
			  const char *media_type, const void *bytes, size_t len, struct err *err)
{
	const struct digest digest = digest_of(bytes, len);
	struct registry *g = registry_of(d);
	char text[DIGEST_TEXT_SIZE];
	struct digest now;
	int r;

	if (len > DEPOT_MANIFEST_MAX)
		return err_set(err, -EFBIG, "a manifest of %zu bytes is too large for a registry",
			       len);
	if (tag && !depot_tag_valid(tag))
		return err_set(err, -EINVAL, "'%s' is no tag", tag);
	if (tag && expect) {
		r = look_up(g, tag, &now, err);
		if (r < 0)
			return r;
		if (!digest_equal(&now, expect))
			return err_set(err, -ESTALE, "'%s': '%s' names another snapshot by now",
				       d->url, tag);
	}
	return send_manifest(g, tag ? tag : digest_text(&digest, text), media_type, bytes, len,
			     err);
}

int registry_delete_manifest(struct depot *d, const char *reference, struct err *err)
{
	struct registry *g = registry_of(d);
	CLEANUP(http_answer_done) struct http_answer a = { 0 };
	AUTO_FREE char *url = NULL;
	struct http_request q = { .method = "DELETE" };
	struct digest digest;
	bool is_digest;
	int r = check_reference(reference, &digest, &is_digest, err);

	if (r < 0)
		return r;
	url = registry_url(g, "/manifests/%s", reference);
	if (!url)
		return err_nomem(err);
	q.url = url;
	r = registry_send(g, &q, &a, err);
	if (r < 0)
		return r;
	if (a.status == 200 || a.status == 202 || a.status == 204)
		return 0;
	/* Docker's 2.x removes by digest alone and calls a tag a wrong digest. */
	if (!is_digest && a.status == 400)
		return err_set(err, -ENOTSUP, "'%s': the registry removes no tags", d->url);
	return registry_explain(g, &a, "removing a manifest", err);
}
