/*
 * nettle-i.h - private to base: libnettle, of which version 4 dropped the length of a digest.
 *
 * Linked, not loaded when first needed: every `snap run` hashes (docs/dev/diary.md), and a process
 * behind walls must not have to find a library, least of all in a root that is not its own.
 */
#pragma once

#include <nettle/version.h>

#if NETTLE_VERSION_MAJOR < 4
#define NETTLE_END(function, state, digest, size) function(state, size, digest)
#else
#define NETTLE_END(function, state, digest, size) function(state, digest)
#endif
