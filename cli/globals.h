/*
 * globals.h - the options that every command takes.
 */
#pragma once

#include "base/opt.h"

struct global_args {
	const char *dir, *store, *color;
	bool json, quiet, help, version;
	unsigned verbose;
};

extern const struct opt global_opts[];
