/*
 * The XML of S3, read for the few elements that matter: S3 answers with no comments, no CDATA and
 * no attributes on those; anything else is refused or not ours.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "remote/s3-i.h"

#define NAME_SIZE 64

const char *s3_xml_element(const char *xml, size_t len, const char *name, size_t *ret_len)
{
	char open[NAME_SIZE], close[NAME_SIZE];
	const int n = snprintf(open, sizeof(open), "<%s>", name);
	const char *begin = memmem(xml, len, open, (size_t)n), *end;

	if (!begin)
		return NULL;
	begin += n;
	snprintf(close, sizeof(close), "</%s>", name);
	end = memmem(begin, len - (size_t)(begin - xml), close, strlen(close));
	if (!end)
		return NULL;
	*ret_len = (size_t)(end - begin);
	return begin;
}

/* One of the entities that XML has by itself; how long it is, 0: none. */
static size_t entity(const char *at, size_t len, char *ret)
{
	static const struct {
		const char *text;
		char is;
	} all[] = {
		{ "&amp;", '&' },   { "&lt;", '<' },   { "&gt;", '>' },   { "&quot;", '"' },
		{ "&apos;", '\'' }, { "&#34;", '"' },  { "&#39;", '\'' }, { "&#43;", '+' },
		{ "&#x2B;", '+' },  { "&#x2F;", '/' }, { "&#x3D;", '=' },
	};

	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		const size_t n = strlen(all[i].text);

		if (len >= n && memcmp(at, all[i].text, n) == 0) {
			*ret = all[i].is;
			return n;
		}
	}
	return 0;
}

char *s3_xml_text(const char *xml, size_t len, const char *name)
{
	size_t n = 0, out = 0;
	const char *at = s3_xml_element(xml, len, name, &n);
	char *text = at ? malloc(n + 1) : NULL;

	if (!text)
		return NULL;
	for (size_t i = 0; i < n;) {
		const size_t skip = at[i] == '&' ? entity(at + i, n - i, &text[out]) : 0;

		if (skip == 0)
			text[out] = at[i];
		i += skip > 0 ? skip : 1;
		out++;
	}
	text[out] = '\0';
	return text;
}
