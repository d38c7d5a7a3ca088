/*
 * acl-fixture.h - lists written as text: "u:rwx u1000:r-- g:r-x g5:-w- m:rwx o:---".
 */
#pragma once

#include <ctype.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/le.h"
#include "tests/lib/test.h"

static const struct {
	char letter;
	uint16_t own, named; /* tags, without and with an id */
} acl_tags[] = { { 'u', 0x01, 0x02 }, { 'g', 0x04, 0x08 }, { 'm', 0x10, 0 }, { 'o', 0x20, 0 } };

static inline void acl_put(struct buf *out, uint16_t tag, uint16_t perm, uint32_t id)
{
	CHECK_EQ(buf_append_u32(out, tag | (uint32_t)perm << 16), 0);
	CHECK_EQ(buf_append_u32(out, id), 0);
}

/* Replace `out` with the bytes of a list. */
static inline void acl_parse(const char *text, struct buf *out)
{
	buf_reset(out);
	CHECK_EQ(buf_append_u32(out, 2), 0);
	while (*text) {
		const char letter = *text++;
		const bool named = isdigit((unsigned char)*text);
		char *end;
		const uint32_t id = named ? (uint32_t)strtoul(text, &end, 10) : UINT32_MAX;
		uint16_t tag = 0, perm = 0;

		if (named)
			text = end;
		for (size_t i = 0; i < ARRAY_LEN(acl_tags); i++)
			if (acl_tags[i].letter == letter)
				tag = named ? acl_tags[i].named : acl_tags[i].own;
		CHECK_EQ(*text++, ':');
		for (int i = 0; i < 3; i++)
			perm = (uint16_t)(perm << 1 | (*text++ != '-'));
		acl_put(out, tag, perm, id);
		text += *text == ' ';
	}
}

/* The text of a list, in a buffer that is used again. */
static inline const char *acl_text(const void *acl, size_t len)
{
	static char text[512];
	const uint8_t *e = (const uint8_t *)acl + 4;
	size_t at = 0;

	text[0] = '\0';
	for (; e + 8 <= (const uint8_t *)acl + len; e += 8) {
		const uint16_t tag = le16_load(e), perm = le16_load(e + 2);

		for (size_t i = 0; i < ARRAY_LEN(acl_tags); i++) {
			if (tag != acl_tags[i].own && tag != acl_tags[i].named)
				continue;
			at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%c", at ? " " : "",
					       acl_tags[i].letter);
			if (tag == acl_tags[i].named)
				at += (size_t)snprintf(text + at, sizeof(text) - at, "%u",
						       le32_load(e + 4));
			at += (size_t)snprintf(text + at, sizeof(text) - at, ":%c%c%c",
					       perm & 4 ? 'r' : '-', perm & 2 ? 'w' : '-',
					       perm & 1 ? 'x' : '-');
		}
	}
	return text;
}
