#include "engine/transfer/fetching-i.h"

#include <errno.h>
#include <sys/statvfs.h>

#include "base/hex.h"
#include "base/size.h"
#include "base/vec.h"

const char *fetching_file(const struct digest *d, const char *end, char name[PACK_NAME_SIZE])
{
	char hex[SHA256_HEX_SIZE];

	return pack_file_name(hex_encode(d->b, sizeof(d->b), hex), end, name);
}

bool fetching_has(const struct fetching *f, const struct digest *d)
{
	return VEC_HAS(it, f->have.packs, f->have.n, digest_equal(&it->pack.digest, d));
}

struct engine_receive_options fetching_options(const struct fetching *f, char root[SHA256_HEX_SIZE])
{
	return (struct engine_receive_options){
		.packs = f->packs.list,
		.n_packs = f->packs.n,
		.root = hex_encode(f->told.root.b, SHA256_SIZE, root),
		.base = f->has_seen ? f->seen.snapshot : NULL,
		.since = f->known.snapshot[0] != '\0' ? f->known.snapshot : NULL,
		.message = f->told.message,
		.meta = f->meta,
		.hidden = f->told.hidden,
		.tag = f->tag,
		.watch = f->options->watch,
	};
}

int fetching_check_room(const struct fetching *f, int dir, uint64_t need, struct err *err)
{
	char needs[SIZE_TEXT_MAX], has[SIZE_TEXT_MAX];
	struct statvfs fs;
	uint64_t room;

	if (fstatvfs(dir, &fs) < 0)
		return err_sys(err, "looking for room in '%s'", f->e->store_path);
	room = (uint64_t)fs.f_bavail * fs.f_frsize;
	if (need <= room)
		return 0;
	return err_set(err, -ENOSPC,
		       "'%s' of '%s' needs %s and the disk of the store has %s: "
		       "No space left on device",
		       f->target.name, f->target.url, size_format(need, needs),
		       size_format(room, has));
}
