/*
 * curl.h - libcurl, loaded when something is to travel.
 *
 * It brings some thirty libraries, which every command would pay for at its start if it were linked.
 */
#pragma once

#include <curl/curl.h>

#include "base/attr.h"
#include "base/err.h"

/* The functions by the names they have there. */
struct curl {
	__typeof__(&curl_global_init) global_init;
	__typeof__(&curl_easy_init) easy_init;
	__typeof__(&curl_easy_reset) easy_reset;
	__typeof__(&curl_easy_cleanup) easy_cleanup;
	__typeof__(&curl_easy_setopt) easy_setopt;
	__typeof__(&curl_easy_perform) easy_perform;
	__typeof__(&curl_easy_getinfo) easy_getinfo;
	__typeof__(&curl_easy_strerror) easy_strerror;
	__typeof__(&curl_slist_append) slist_append;
	__typeof__(&curl_slist_free_all) slist_free_all;
};

/* Loads it once; -ENOTSUP with a sentence if this machine has none. */
NODISCARD int curl_load(const struct curl **ret, struct err *err);
