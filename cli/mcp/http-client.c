#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "base/sys.h"
#include "cli/mcp/http-i.h"
#include "cli/mcp/progress.h"

static bool is_idle(const struct http_client *c)
{
	return !c->listener && !session_owes(&c->session, NULL);
}

/* The one that was not heard of for longest and waits for nothing; NULL: all are busy.  New ones come first. */
static struct http_client *find_idlest(struct http *h)
{
	struct http_client *idlest = NULL;

	for (struct http_client *c = h->clients; c; c = c->next)
		if (is_idle(c) && (!idlest || c->used_ms <= idlest->used_ms))
			idlest = c;
	return idlest;
}

static bool make_id(char id[CLIENT_ID_SIZE])
{
	unsigned char bytes[(CLIENT_ID_SIZE - 1) / 2];

	if (sys_random(bytes, sizeof(bytes)) < 0)
		return false;
	hex_encode(bytes, sizeof(bytes), id);
	return true;
}

struct http_client *http_client_new(struct http *h)
{
	struct http_client *c = h->n_clients < h->how->max_sessions ? NULL : find_idlest(h);

	if (c)
		http_client_end(h, c);
	if (h->n_clients >= h->how->max_sessions)
		return NULL;
	c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	if (!make_id(c->id)) {
		free(c);
		return NULL;
	}
	session_init(&c->session, h->options, &c->aside);
	c->used_ms = clock_ms();
	c->next = h->clients;
	h->clients = c;
	h->n_clients++;
	return c;
}

struct http_client *http_client_find(struct http *h, const char *id)
{
	for (struct http_client *c = h->clients; c; c = c->next) {
		if (strcmp(c->id, id) != 0)
			continue;
		c->used_ms = clock_ms();
		return c;
	}
	return NULL;
}

void http_client_end(struct http *h, struct http_client *c)
{
	struct http_client **at = &h->clients;

	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	h->n_clients--;
	for (struct exchange *x = h->exchanges; x; x = x->next) {
		if (x->client != c)
			continue;
		x->client = NULL;
		x->ended = true;
		if (!x->streams && x->taken && x->status == 0)
			exchange_refuse(x, 404, "the session was ended");
	}
	session_done(&c->session);
	buf_done(&c->aside);
	free(c);
}

int http_client_expire(struct http *h)
{
	const uint64_t now = clock_ms(), idle_ms = h->how->idle_ms;
	struct http_client *next;
	int least = -1;

	for (struct http_client *c = h->clients; c; c = next) {
		next = c->next;
		if (!is_idle(c))
			continue;
		if (c->used_ms + idle_ms <= now)
			http_client_end(h, c);
		else if (least < 0 || c->used_ms + idle_ms - now < (uint64_t)least)
			least = (int)(c->used_ms + idle_ms - now);
	}
	return least;
}
