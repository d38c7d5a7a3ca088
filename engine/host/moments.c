#include "engine/host/moments-i.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cowfs/store/pin.h"
#include "engine/find/engine-i.h"

void moments_init(struct moments *m, struct store *s)
{
	*m = (struct moments){ .store = s };
	pthread_mutex_init(&m->lock, NULL);
}

void moments_done(struct moments *m)
{
	pthread_mutex_destroy(&m->lock);
}

static void write_token(const struct moment *one, char ret[MOMENTS_TOKEN_SIZE])
{
	char mounting[CATALOG_HEX_SIZE];

	snprintf(ret, MOMENTS_TOKEN_SIZE, "snap-%s-%" PRIx64,
		 catalog_id_hex(&one->mounting, mounting), one->number);
}

/* --- the list (lock held) ----------------------------------------------------------------- */

static struct moment pull(struct moments *m, size_t i)
{
	const struct moment gone = m->list[i];

	memmove(&m->list[i], &m->list[i + 1], (m->n - i - 1) * sizeof(gone));
	m->n--;
	return gone;
}

static void push(struct moments *m, struct moment one)
{
	memmove(&m->list[1], &m->list[0], m->n * sizeof(one));
	one.used = engine_clock_ms();
	m->list[0] = one;
	m->n++;
}

static void drop(struct moments *m, size_t i)
{
	const struct moment gone = pull(m, i);

	store_unpin(m->store, OBJECT_TREE, &gone.root);
}

/* Room for one more of that clone. */
static void make_room(struct moments *m, const struct catalog_id *mounting)
{
	size_t n = 0, last = 0;

	for (size_t i = 0; i < m->n; i++) {
		if (!catalog_id_same(&m->list[i].mounting, mounting))
			continue;
		n++;
		last = i;
	}
	if (n >= MOMENTS_OF_CLONE)
		drop(m, last);
	else if (m->n == MOMENTS_MAX)
		drop(m, m->n - 1);
}

/* The newest of a clone, which is the one with the highest number; m->n: there is none. */
static size_t find_newest(const struct moments *m, const struct catalog_id *mounting)
{
	size_t newest = m->n;

	for (size_t i = 0; i < m->n; i++)
		if (catalog_id_same(&m->list[i].mounting, mounting) &&
		    (newest == m->n || m->list[i].number > m->list[newest].number))
			newest = i;
	return newest;
}

/* --- what others want of it --------------------------------------------------------------- */

static int add(struct moments *m, const struct moment *one, char *ret_token, struct err *err)
{
	const size_t i = find_newest(m, &one->mounting);
	int r;

	if (i < m->n && m->list[i].switches == one->switches &&
	    object_id_equal(&m->list[i].root, &one->root)) {
		push(m, pull(m, i));
		write_token(&m->list[0], ret_token);
		return 0;
	}
	r = store_pin(m->store, OBJECT_TREE, &one->root, err);
	if (r < 0)
		return r;
	make_room(m, &one->mounting);
	push(m, *one);
	m->list[0].number = ++m->next;
	write_token(&m->list[0], ret_token);
	return 0;
}

int moments_add(struct moments *m, const struct catalog_id *mounting, uint64_t switches,
		const struct object_id *root, char ret_token[MOMENTS_TOKEN_SIZE], struct err *err)
{
	const struct moment one = { .mounting = *mounting, .switches = switches, .root = *root };

	LOCKED(&m->lock);
	return add(m, &one, ret_token, err);
}

static int find_moment(struct moments *m, const struct catalog_id *mounting, uint64_t switches,
		       const char *token, struct object_id *ret, struct err *err)
{
	char own[MOMENTS_TOKEN_SIZE];
	int r;

	for (size_t i = 0; i < m->n; i++) {
		const struct moment *one = &m->list[i];

		write_token(one, own);
		if (strcmp(own, token) != 0)
			continue;
		if (!catalog_id_same(&one->mounting, mounting) || one->switches != switches)
			return 0;
		r = store_pin(m->store, OBJECT_TREE, &one->root, err);
		if (r < 0)
			return r;
		*ret = one->root;
		push(m, pull(m, i));
		return 1;
	}
	return 0;
}

int moments_find(struct moments *m, const struct catalog_id *mounting, uint64_t switches,
		 const char *token, struct object_id *ret, struct err *err)
{
	LOCKED(&m->lock);
	return find_moment(m, mounting, switches, token, ret, err);
}

void moments_forget(struct moments *m, const struct catalog_id *mounting)
{
	LOCKED(&m->lock);
	for (size_t i = m->n; i-- > 0;)
		if (!mounting || catalog_id_same(&m->list[i].mounting, mounting))
			drop(m, i);
}

void moments_expire(struct moments *m)
{
	const uint64_t now = engine_clock_ms();

	LOCKED(&m->lock);
	while (m->n > 0 && now - m->list[m->n - 1].used > MOMENTS_KEEP_MS)
		drop(m, m->n - 1);
}
