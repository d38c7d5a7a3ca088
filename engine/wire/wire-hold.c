#include "base/hex.h"
#include "engine/wire/wire-i.h"

#include <string.h>

void wire_set_held(struct json j, const struct held *h)
{
	char hex[OBJECT_HEX_SIZE];

	json_set_text(j, "root", object_id_hex(&h->root, hex));
	json_set_int(j, "time", h->time);
}

int wire_get_held(struct json j, struct held *ret)
{
	const char *root = json_get_text(j, "root");

	ret->time = json_get_int(j, "time");
	return root ? hex_decode(root, strlen(root), ret->root.b, sizeof(ret->root.b)) : 0;
}
