/*
 * vehicle-i.h - the clone that lands a change in a target.
 */
#pragma once

#include "engine/pipeline/checkout-i.h"

/* Made for one landing, removed after it; one that a killed process left is removed first. */
struct vehicle {
	struct engine *engine; /* in the target */
	char name[CLONE_NAME_MAX + 1];
	bool made;
	struct checkout checkout; /* of a branch */
};

#define VEHICLE_INIT ((struct vehicle){ .checkout = CHECKOUT_INIT })

void vehicle_done(struct vehicle *v);

/* The target becomes a project of its own, if it is none yet. */
NODISCARD int vehicle_make(struct shipping *s, const char *target, struct vehicle *v,
			   struct err *err);
