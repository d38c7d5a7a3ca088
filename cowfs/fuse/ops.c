/*
 * libfuse answers everything that is not in this table with ENOSYS, and the kernel asks once:
 * FLUSH, POLL, BMAP, locks (it keeps them itself) and what is younger than libfuse, STATX.
 */
#include "cowfs/fuse/ops.h"

#include "cowfs/fuse/mount-i.h"

/*
 * Off: AUTO_INVAL_DATA and WRITEBACK_CACHE, because nobody but the kernel changes a file under one
 * node; ATOMIC_O_TRUNC, because without OPEN nobody would hear of O_TRUNC; splice, because
 * the bytes come from memory.  DONT_MASK, because a default ACL stands in the place of the umask.
 * POSIX_ACL would have the kernel check permissions also where it shall not.  Measurements:
 * docs/design/fuse.md.
 */
static void op_init(void *userdata, struct fuse_conn_info *conn)
{
	const struct mount *m = userdata;
	const unsigned off = FUSE_CAP_AUTO_INVAL_DATA | FUSE_CAP_ASYNC_DIO |
			     FUSE_CAP_ATOMIC_O_TRUNC | FUSE_CAP_WRITEBACK_CACHE |
			     FUSE_CAP_POSIX_LOCKS | FUSE_CAP_FLOCK_LOCKS | FUSE_CAP_SPLICE_READ |
			     FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE;
	const unsigned on = FUSE_CAP_ASYNC_READ | FUSE_CAP_PARALLEL_DIROPS | FUSE_CAP_READDIRPLUS |
			    FUSE_CAP_READDIRPLUS_AUTO | FUSE_CAP_CACHE_SYMLINKS |
			    FUSE_CAP_EXPLICIT_INVAL_DATA | FUSE_CAP_DONT_MASK |
			    (m->unchecked ? 0 : FUSE_CAP_POSIX_ACL);

	conn->want = (conn->want & ~off) | (conn->capable & on);
	conn->max_write = LAYER_IO_MAX;
	conn->max_background = 64;
	conn->congestion_threshold = 48;
	conn->time_gran = 1;
}

const struct fuse_lowlevel_ops ops = {
	.init = op_init,
	.lookup = op_lookup,
	.forget = op_forget,
	.forget_multi = op_forget_multi,
	.getattr = op_getattr,
	.setattr = op_setattr,
	.readlink = op_readlink,
	.mknod = op_mknod,
	.mkdir = op_mkdir,
	.unlink = op_unlink,
	.rmdir = op_rmdir,
	.symlink = op_symlink,
	.rename = op_rename,
	.link = op_link,
	.open = op_open,
	.read = op_read,
	.write = op_write,
	.fsync = op_fsync,
	.opendir = op_opendir,
	.readdir = op_readdir,
	.fsyncdir = op_fsync,
	.statfs = op_statfs,
	.access = op_access,
	.setxattr = op_setxattr,
	.getxattr = op_getxattr,
	.listxattr = op_listxattr,
	.removexattr = op_removexattr,
	.ioctl = op_ioctl,
	.fallocate = op_fallocate,
	.readdirplus = op_readdirplus,
	.copy_file_range = op_copy_file_range,
	.lseek = op_lseek,
};
