/*
 * mount-none-i.h - private to fuse/: why this build cannot mount.
 */
#pragma once

#include "base/err.h"

int mount_refuse(struct err *err); /* -ENOTSUP and the sentence */
