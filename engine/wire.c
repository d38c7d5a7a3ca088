#include "engine/wire-i.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

void wire_set_short(struct json j, const char *key, const char *s)
{
	json_set_text(j, key, *s != '\0' ? s : NULL);
}

void wire_get_short(struct json j, const char *key, char *to, size_t size)
{
	const char *s = json_get_text_or_null(j, key);

	snprintf(to, size, "%s", s ? s : "");
}
