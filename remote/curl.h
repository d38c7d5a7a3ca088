/*
 * curl.h - libcurl, loaded before the first transfer.
 *
 * It brings some thirty libraries; linked, they would slow the start of every command.
 */
#pragma once

#include <curl/curl.h>

#include "base/attr.h"
#include "base/err.h"

/* The functions by the names they have there. */
#define CURL_FUNCTIONS(F) \
	F(global_init)    \
	F(easy_init)      \
	F(easy_reset)     \
	F(easy_cleanup)   \
	F(easy_setopt)    \
	F(easy_perform)   \
	F(easy_getinfo)   \
	F(easy_strerror)  \
	F(slist_append)   \
	F(slist_free_all)

#define CURL_MEMBER(name) __typeof__(&curl_##name) name;
struct curl {
	CURL_FUNCTIONS(CURL_MEMBER)
};
#undef CURL_MEMBER

/* Loads it once; -ENOTSUP with a sentence if this machine has none. */
NODISCARD int curl_load(const struct curl **ret, struct err *err);
