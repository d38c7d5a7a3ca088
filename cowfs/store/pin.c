#include "cowfs/store/pin.h"

#include <assert.h>

#include "cowfs/store/store-i.h"

struct pin {
	struct object_ref what; /* its key in store->pins */
	uint64_t n;
};

int store_pin(struct store *s, enum object_kind kind, const struct object_id *id, struct err *err)
{
	AUTO_FREE struct pin *fresh = malloc(sizeof(*fresh));
	struct pin *pin;
	void *there = NULL;
	int r;

	assert(!object_id_is_zero(id));
	if (!fresh)
		return err_nomem(err);
	*fresh = (struct pin){ .what = { .id = *id, .kind = kind } };

	LOCKED(&s->lock);
	r = map_add(&s->pins, &fresh->what, fresh, &there);
	if (r < 0)
		return err_nomem(err);
	pin = r == 1 ? there : TAKE_PTR(fresh);
	pin->n++;
	return 0;
}

void store_unpin(struct store *s, enum object_kind kind, const struct object_id *id)
{
	const struct object_ref what = { .id = *id, .kind = kind };
	struct pin *pin;

	pthread_mutex_lock(&s->lock);
	pin = map_get(&s->pins, &what);
	assert(pin);
	if (--pin->n > 0)
		pin = NULL;
	else
		map_remove(&s->pins, &what);
	pthread_mutex_unlock(&s->lock);
	free(pin);
}

int pins_each(struct store *s, pin_fn fn, void *ctx, struct err *err)
{
	struct pin *pin;
	size_t pos = 0;
	int r = 0;

	while (r >= 0 && (pin = map_next(&s->pins, &pos)))
		r = fn(&pin->what, ctx, err);
	return r;
}

void pins_done(struct store *s)
{
	struct pin *pin;
	size_t pos = 0;

	while ((pin = map_next(&s->pins, &pos)))
		free(pin);
	map_done(&s->pins);
}
