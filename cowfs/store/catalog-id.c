#include "cowfs/store/catalog-id.h"

#include <string.h>

#include "base/hex.h"
#include "base/sys.h"

int catalog_id_new(struct catalog_id *ret, struct err *err)
{
	struct catalog_id id;
	int r;

	do {
		r = sys_random(id.b, sizeof(id.b));
		if (r < 0)
			return err_wrap(err, r, "drawing a random id");
	} while (catalog_id_is_zero(&id));
	*ret = id;
	return 0;
}

bool catalog_id_same(const struct catalog_id *a, const struct catalog_id *b)
{
	return memcmp(a->b, b->b, sizeof(a->b)) == 0;
}

bool catalog_id_is_zero(const struct catalog_id *id)
{
	static const struct catalog_id zero;

	return catalog_id_same(id, &zero);
}

char *catalog_id_hex(const struct catalog_id *id, char hex[CATALOG_HEX_SIZE])
{
	return hex_encode(id->b, sizeof(id->b), hex);
}
