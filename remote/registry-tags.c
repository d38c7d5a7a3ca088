#include "remote/registry-i.h"

#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "remote/url.h"

#define PAGES_MAX 10000 /* of a registry that never comes to an end */

int registry_read_tags(const char *body, size_t len, depot_tag_fn fn, void *ctx)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j, list;

	if (json_parse(&doc, body, len, &j, NULL) < 0)
		return -EPROTO;
	/* A repository whose tags are all gone says null. */
	if (json_kind(j, "tags") == JSON_MISSING)
		return 0;
	if (json_kind(j, "tags") != JSON_ARRAY)
		return -EPROTO;
	list = json_get_array(j, "tags");
	for (size_t i = 0; i < json_length(list); i++) {
		const char *tag = json_at_text(list, i);
		int r;

		if (!tag || !depot_tag_valid(tag))
			return -EPROTO;
		r = fn(tag, ctx);
		if (r != 0)
			return r;
	}
	return 0;
}

char *registry_next_page(const char *link)
{
	const char *end, *next;

	link = strchr(link, '<');
	end = link ? strchr(link, '>') : NULL;
	next = end ? strstr(end, "rel=") : NULL;
	if (!next || (strncmp(next, "rel=\"next\"", 10) != 0 && strncmp(next, "rel=next", 8) != 0))
		return NULL;
	return strndup(link + 1, (size_t)(end - link - 1));
}

/* The next page replaces *url; 0: there is none. */
static int turn_page(struct registry *g, const struct http_answer *a, char **url, struct err *err)
{
	AUTO_FREE char *next = a->link ? registry_next_page(a->link) : NULL;
	AUTO_FREE char *to = next ? url_resolve(*url, next) : NULL;

	if (!next)
		return 0;
	if (!to || !url_same_origin(to, g->origin) || strcmp(to, *url) == 0)
		return err_set(err, -EPROTO, "'%s' continues its list of tags in a wrong place",
			       g->depot.url);
	free(*url);
	*url = TAKE_PTR(to);
	return 1;
}

int registry_list_tags(struct depot *d, depot_tag_fn fn, void *ctx, struct err *err)
{
	struct registry *g = registry_of(d);
	AUTO_FREE char *url = registry_url(g, "/tags/list?n=1000");
	int r;

	if (!url)
		return err_nomem(err);
	for (unsigned page = 0; page < PAGES_MAX; page++) {
		CLEANUP(http_answer_done) struct http_answer a = { 0 };
		struct http_request q = { .method = "GET", .url = url };

		r = registry_send(g, &q, &a, err);
		if (r < 0)
			return r;
		if (a.status == 404)
			return 0;
		if (a.status != 200)
			return registry_explain(g, &a, "listing tags", err);
		r = registry_read_tags((const char *)a.body.data, a.body.len, fn, ctx);
		if (r == -EPROTO)
			return err_set(
			    err, r, "'%s' answers with something that is no list of tags", d->url);
		if (r != 0)
			return r;
		r = turn_page(g, &a, &url, err);
		if (r <= 0)
			return r;
	}
	return err_set(err, -EPROTO, "'%s' has a list of tags without end", d->url);
}
