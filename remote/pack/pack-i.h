/*
 * pack-i.h - the fixed parts of an index.
 */
#pragma once

#define PACK_INDEX_MAGIC   "SNPI"
#define PACK_INDEX_VERSION 1
#define PACK_INDEX_HEAD    56
#define PACK_INDEX_FRAME   8
#define PACK_INDEX_OBJECT  36
