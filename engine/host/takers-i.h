/*
 * takers-i.h - programs that take announced warm clones, one after the other.
 *
 * A program that takes one is about to use it, and a walk through another would slow it down. So
 * nobody walks while clones are being taken, unless a taker waits for that. A taker waits if warm
 * clones were announced, or if an earlier taker has looked at most names in a cold clone: walking a
 * clone and then looking at it is faster than looking at a cold one.
 *
 * Pure, like others-i.h: the caller counts, passes the time, and locks.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TAKERS_MS       3000  /* after one was taken, it is probably looked at */
#define TAKERS_LEARN_MS 60000 /* later requests say nothing of the taker */
#define TAKERS_WAIT_MS  1500  /* a walk through 80,000 names takes a third of that */
#define TAKERS_KEEP_MS  600000

struct takers {
	uint64_t at;       /* ms: when the last one was taken; 0: none was */
	uint64_t requests; /* of programs in clones, up to then */
	uint64_t thorough; /* ms: until then, takers are expected to look at most names */
	bool asked;        /* for warm ones, before they came */
	unsigned waiting;
};

/* One is being taken, of so many files; programs in clones have made so many requests so far. */
void takers_learn(struct takers *t, uint64_t requests, uint64_t files, uint64_t now);

/* One was taken. */
void takers_took(struct takers *t, uint64_t requests, uint64_t now);

/* Must a taker wait until it is walked through? */
bool takers_are_patient(const struct takers *t, uint64_t now);

/* Must nobody walk now? */
bool takers_hold(const struct takers *t, uint64_t now);
