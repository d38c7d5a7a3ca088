/*
 * typo.h - the word that a mistyped one probably means.
 *
 * Start with the word that was typed, offer every candidate, read `best`.
 */
#pragma once

#include <stddef.h>

struct typo {
	const char *typed; /* borrowed, typed[0..len) */
	size_t len;
	const char *best; /* borrowed from the offers; NULL while nothing comes near */
	unsigned distance;
};

#define TYPO_INIT(word, word_len) ((struct typo){ .typed = (word), .len = (word_len) })

/*
 * Near is one slip (a letter wrong, missing, extra or swapped with its neighbour)
 * per three letters, or a beginning of two letters or more.  The first of equals wins.
 */
void typo_offer(struct typo *t, const char *candidate);
