#pragma once
/* measures.bin: all that a run measured, as it was measured, beside result.json, which is made from
 * it. Who reads a result back loads it into a struct result and judges again.
 *
 * After a line of text it is a sequence of chunks (codec/columns.h), which other versions read,
 * too.
 */
#include "base/buf.h"
#include "base/err.h"
#include "result/result.h"

#define MEASURES_FILE "measures.bin"

/* Appends the file of `r`, which need not be judged. The same bytes each time. */
void measures_put(const struct result *r, struct buf *out);

/* What the file `data` of `n` bytes holds, into `r`, with `w` as its workload (borrowed) and
 * `d`, built from `w`, as its dataset (NULL: none). Warnings and notes of the run go to `w`.
 * Damage and lengths that cannot be are sentences with the place (name: the file in them); memory
 * is at most 512 times the file and 64 MiB. Release with measures_release, in any case. */
int measures_read(struct result *r, struct workload *w, struct dataset *d, const char *data,
		  size_t n, const char *name, struct err *e);
void measures_release(struct result *r);
