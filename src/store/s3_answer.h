#pragma once
/* What S3 servers answer: errors as sentences, and the XML of lists and uploads. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "store/s3_call.h"

#define S3_CODE_MAX 64
#define S3_FAILED_LATER 1

/* The server's code of an error ("NoSuchKey"), "" when it says none. */
void s3_error_code(const struct s3_call *call, char code[S3_CODE_MAX]);
/* Whether the Date of the answer is more than 5 minutes from ours. */
bool s3_clock_differs(const struct s3_call *call);
/* The sentence of an answer that refuses, in call->err; its code. */
int s3_refused(struct s3_call *call, const char *code);
/* The same where there was no answer. */
int s3_not_answered(struct s3_call *call, enum http_end end);
/* Takes length, ETag and the like from an answer 2xx: 0, negative with call->err, or
 * S3_FAILED_LATER. */
int s3_take_answer(struct s3_call *call);

/* One page of a list. `fn` is called for each key and each prefix (which ends with a slash),
 * decoded, and may end it. *more: the token of the next page is appended to `token`. */
typedef int (*s3_list_fn)(void *arg, const char *key, bool is_prefix, uint64_t bytes);
int s3_list_page(const struct s3_call *call, s3_list_fn fn, void *arg, struct buf *token,
		 bool *more, struct err *e);
/* Counts the unfinished uploads of a page of a list of them; `key`: one of their keys. */
unsigned s3_count_uploads(const struct s3_call *call, struct buf *key);
/* The id of the upload that began. */
int s3_upload_id(const struct s3_call *call, struct buf *id, struct err *e);
