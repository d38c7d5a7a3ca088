/*
 * md5.h - MD5 of a whole text, for the sums that dpkg keeps of configuration files.
 *
 * Use it to agree with dpkg and for nothing else: two contents with one MD5 can be made in seconds.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define MD5_SIZE     16
#define MD5_HEX_SIZE (2 * MD5_SIZE + 1)

void md5(const void *data, size_t len, uint8_t digest[static MD5_SIZE]);
