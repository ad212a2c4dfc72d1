#pragma once
/* Which servers an S3 client talks to: the keys of the store, else what DLIO and MLPerf Storage
 * read from the environment. */
#include "base/err.h"
#include "conf/opt.h"
#include "store/s3_call.h"

/* Their addresses, none for Amazon's own; in this order: storage.s3.endpoints; S3_ENDPOINT_URIS,
 * separated by commas; S3_ENDPOINT_TEMPLATE, in which {1...8} stands for each number;
 * S3_ENDPOINT_FILE, one a line; AWS_ENDPOINT_URL_S3 and AWS_ENDPOINT_URL. `out` is empty; release
 * it in any case. */
int s3_endpoints(const struct s3_options *o, struct str_list *out, struct err *e);
/* storage.s3.balance, or where that is left out S3_LOAD_BALANCE_STRATEGY. */
int s3_balance(const struct s3_options *o, enum s3_balance *out, struct err *e);
