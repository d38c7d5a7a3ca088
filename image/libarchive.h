/*
 * libarchive.h - libarchive, loaded when an archive is first read or written.
 *
 * It is not linked: it brings libxml2, ICU, nettle and six compressors, which would slow the start
 * of every command, and which cowfsd must not have in its address space at all.
 */
#pragma once

#include <archive.h>
#include <archive_entry.h>

#include "base/err.h"

struct libarchive {
#define LIBARCHIVE_SYMBOL(name) __typeof__(&archive_##name) name;
#include "image/libarchive-symbols-i.h"
#undef LIBARCHIVE_SYMBOL
};

/* Loaded and never given back.  -ENOTSUP with a sentence if this machine has none. */
NODISCARD int libarchive_load(struct libarchive *ret, struct err *err);

/*
 * Reading failed: because of `why`, if that is set, else as the library says.  A warning of it counts too:
 * something of the entry was lost.
 */
int libarchive_failed(const struct libarchive *lib, struct archive *a, const struct err *why,
		      struct err *err);
