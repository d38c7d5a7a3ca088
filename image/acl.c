#include "image/acl.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/le.h"

#define VERSION  2
#define TAG_SIZE 8
#define NO_ID    UINT32_MAX

const char *const acl_names[ACL_WHICH_N] = {
	[ACL_ACCESS] = "system.posix_acl_access",
	[ACL_DEFAULT] = "system.posix_acl_default",
};

/* As the kernel numbers them, which is also the order that it wants. */
static uint16_t kernel_tag(int tag)
{
	switch (tag) {
	case ARCHIVE_ENTRY_ACL_USER_OBJ:
		return 0x01;
	case ARCHIVE_ENTRY_ACL_USER:
		return 0x02;
	case ARCHIVE_ENTRY_ACL_GROUP_OBJ:
		return 0x04;
	case ARCHIVE_ENTRY_ACL_GROUP:
		return 0x08;
	case ARCHIVE_ENTRY_ACL_MASK:
		return 0x10;
	case ARCHIVE_ENTRY_ACL_OTHER:
		return 0x20;
	default:
		return 0;
	}
}

static int by_tag_and_id(const void *a, const void *b)
{
	const uint16_t x = le16_load(a), y = le16_load(b);
	const uint32_t xi = le32_load((const uint8_t *)a + 4),
		       yi = le32_load((const uint8_t *)b + 4);

	return x != y ? (x > y) - (x < y) : (xi > yi) - (xi < yi);
}

static int read_acl(const struct libarchive *lib, struct archive_entry *e, int type, uint8_t *bytes,
		    size_t *ret_len, struct err *err)
{
	int got_type, perm, tag, id;
	const char *name;
	size_t n = 0;

	lib->entry_acl_reset(e, type);
	while (lib->entry_acl_next(e, type, &got_type, &perm, &tag, &id, &name) == ARCHIVE_OK) {
		uint8_t *at = bytes + 4 + TAG_SIZE * n;
		const uint16_t kernel = kernel_tag(tag);
		const bool named = kernel == 0x02 || kernel == 0x08;

		if (kernel == 0 || n == ACL_ENTRIES_MAX)
			return err_set(err, -E2BIG, "its ACL is more than can be kept");
		if (named && id < 0)
			return err_set(err, -EINVAL, "its ACL names '%.60s' without a number",
				       name ? name : "");
		le16_store(at, kernel);
		le16_store(at + 2, (uint16_t)(perm & 7));
		le32_store(at + 4, named ? (uint32_t)id : NO_ID);
		n++;
	}
	if (n > 0) {
		le32_store(bytes, VERSION);
		qsort(bytes + 4, n, TAG_SIZE, by_tag_and_id);
		*ret_len = 4 + TAG_SIZE * n;
	}
	return 0;
}

int acl_of_entry(const struct libarchive *lib, struct archive_entry *e, struct acl_xattrs *ret,
		 struct err *err)
{
	static const int types[ACL_WHICH_N] = {
		[ACL_ACCESS] = ARCHIVE_ENTRY_ACL_TYPE_ACCESS,
		[ACL_DEFAULT] = ARCHIVE_ENTRY_ACL_TYPE_DEFAULT,
	};
	int r = 0;

	for (size_t i = 0; i < ACL_WHICH_N && r >= 0; i++) {
		ret->list[i].len = 0;
		if (lib->entry_acl_count(e, types[i]) > 0)
			r = read_acl(lib, e, types[i], ret->list[i].bytes, &ret->list[i].len, err);
	}
	return r;
}
