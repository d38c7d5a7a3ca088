#include "remote/http-i.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/size.h"

#define VALUE_MAX      8192 /* of one header */
#define CHALLENGES_MAX 8

static const struct {
	const char *name;
	size_t offset;
} kept[] = {
	{ "Content-Type", offsetof(struct http_answer, content_type) },
	{ "Location", offsetof(struct http_answer, location) },
	{ "Link", offsetof(struct http_answer, link) },
	{ "Docker-Content-Digest", offsetof(struct http_answer, digest) },
	{ "Range", offsetof(struct http_answer, range) },
	{ "Content-Range", offsetof(struct http_answer, content_range) },
	{ "Retry-After", offsetof(struct http_answer, retry_after) },
	{ "OCI-Chunk-Min-Length", offsetof(struct http_answer, chunk_min) },
	{ "Date", offsetof(struct http_answer, date) },
	{ "ETag", offsetof(struct http_answer, etag) },
	{ "x-amz-meta-digest", offsetof(struct http_answer, meta_digest) },
	{ "x-amz-bucket-region", offsetof(struct http_answer, region) },
};

static char **kept_at(struct http_answer *a, size_t i)
{
	return (char **)((char *)a + kept[i].offset);
}

void http_answer_done(struct http_answer *a)
{
	for (size_t i = 0; i < ARRAY_LEN(kept); i++)
		free(*kept_at(a, i));
	strlist_done(&a->challenges);
	buf_done(&a->body);
	*a = (struct http_answer){ .length = UINT64_MAX };
}

static int keep_value(struct http_answer *a, const char *name, size_t name_len, const char *value)
{
	if (name_len == 16 && strncasecmp(name, "WWW-Authenticate", 16) == 0)
		return a->challenges.n < CHALLENGES_MAX ? strlist_add(&a->challenges, value) : 0;
	if (name_len == 14 && strncasecmp(name, "Content-Length", 14) == 0)
		return size_parse_u64(value, &a->length) < 0 ? -EPROTO : 0;
	for (size_t i = 0; i < ARRAY_LEN(kept); i++) {
		char *copy;

		if (strlen(kept[i].name) != name_len ||
		    strncasecmp(kept[i].name, name, name_len) != 0)
			continue;
		copy = strdup(value);
		if (!copy)
			return -ENOMEM;
		free(*kept_at(a, i));
		*kept_at(a, i) = copy;
	}
	return 0;
}

int http_answer_add(struct http_answer *a, const char *line, size_t len)
{
	const char *colon = memchr(line, ':', len);
	size_t name_len;
	AUTO_FREE char *value = NULL;

	if (!colon)
		return 0;
	name_len = (size_t)(colon - line);
	len -= name_len + 1;
	line = colon + 1;
	while (len > 0 && (*line == ' ' || *line == '\t'))
		line++, len--;
	while (len > 0 && strchr(" \t\r\n", line[len - 1]))
		len--;
	if (len > VALUE_MAX || memchr(line, '\0', len))
		return 0;
	value = strndup(line, len);
	if (!value)
		return -ENOMEM;
	return keep_value(a, colon - name_len, name_len, value);
}
