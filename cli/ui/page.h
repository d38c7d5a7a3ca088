/*
 * page.h - the page: one file of HTML with its scripts and styles in it, packed by gzip.
 *
 * web/ holds its sources.  The build puts web/page.html.gz here as it is.
 */
#pragma once

#include <stddef.h>

extern const unsigned char ui_page[];
extern const size_t ui_page_len;
