/*
 * topics.h - help topics that belong to no single command.
 */
#pragma once

struct topic {
	const char *name, *summary;
	const char *text; /* in lines that fit a terminal */
};

extern const struct topic topics[]; /* a name that is NULL ends */

const struct topic *topic_find(const char *name); /* NULL: none */
