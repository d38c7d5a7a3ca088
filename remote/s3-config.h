/*
 * s3-config.h - the address of an S3 store and the keys for it, from the same places as AWS' own
 * tools.
 *
 * AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL, AWS_REGION or AWS_DEFAULT_REGION, AWS_ACCESS_KEY_ID,
 * AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN; then, for values that these leave open, a profile
 * (AWS_PROFILE, by default "default") of ~/.aws/credentials (AWS_SHARED_CREDENTIALS_FILE) and
 * ~/.aws/config (AWS_CONFIG_FILE). Both keys come from one place, never half from one and half from
 * another.
 */
#pragma once

#include <stddef.h>

#include "base/attr.h"
#include "base/err.h"

struct s3_config {
	char *endpoint, *region;       /* owned; NULL: not said */
	char *access, *secret, *token; /* owned; no access: there are no keys */
	char *
	    other; /* owned: a setting by which the profile gets keys that we cannot get; NULL: none */
};

void s3_config_done(struct s3_config *c); /* wiped before it is freed */

/* -EINVAL or -EACCES with a sentence: a file that cannot be read, a profile that is nowhere, half a pair of keys. */
NODISCARD int s3_config_find(struct s3_config *ret, struct err *err);

/*
 * What a section ("default", "profile team") of a file says, for what `c` does not have yet.  1: there is
 * such a section; 0: there is none.  -ENOMEM.
 */
NODISCARD int s3_config_read(const char *text, const char *section, struct s3_config *c);
