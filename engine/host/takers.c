#include "engine/host/takers-i.h"

#define THOROUGH 4 /* to look at all names takes more than a request for every fourth */

void takers_learn(struct takers *t, uint64_t requests, uint64_t files, uint64_t now)
{
	if (t->at > 0 && now - t->at < TAKERS_LEARN_MS && requests - t->requests > files / THOROUGH)
		t->thorough = now + TAKERS_KEEP_MS;
}

void takers_took(struct takers *t, uint64_t requests, uint64_t now)
{
	t->requests = requests;
	t->at = now;
}

bool takers_are_patient(const struct takers *t, uint64_t now)
{
	return t->asked || now < t->thorough;
}

bool takers_hold(const struct takers *t, uint64_t now)
{
	return t->at > 0 && now - t->at < TAKERS_MS && t->waiting == 0;
}
