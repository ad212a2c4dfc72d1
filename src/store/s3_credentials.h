#pragma once
/* Whose requests they are: keys from the environment (where keys of a workload are put, too) or
 * from a profile in AWS's file of credentials. Nothing prints them. */
#include <stdbool.h>

#include "base/err.h"

struct s3_credentials {
	char access_key[256], secret[256];
	char *token; /* of a session; NULL: none. Heap */
};

/* AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN; else, and always when `profile`
 * is not NULL or AWS_PROFILE is set and the former are not, the file. ERR_USAGE when there are
 * none. Release with s3_credentials_release on success. */
int s3_credentials_find(struct s3_credentials *out, const char *profile, struct err *e);
void s3_credentials_release(struct s3_credentials *c);
