#pragma once
/* A number with a unit, as people write sizes, rates and times: "64KiB", "100MB/s", "30ms".
 *
 * KB, MB, GB, TB, PB and EB are powers of 1000; KiB, MiB ... (also Ki, Mi ...) powers of 1024; B is
 * a byte. A rate is a size with "/s" behind it. Times have ns, us, ms, s, min, h. "90%" is 0.9
 * where a fraction is asked for. Letters count in either case, but Kb, Mb ... are bits, and a bare
 * K, M, G leaves open which of the two is meant: both are refused. */
#include <stdbool.h>
#include <stddef.h>

#define QUANTITY_WHY_MAX 240

/* What a key is measured in: opt.unit, or NULL. A count ("files", "steps" ...) takes no unit. */
#define QUANTITY_FRACTION "fraction" /* a number from 0 to 1 that takes "%" */

/* 1: `text` is a number with a unit, and *out is its value in `unit`. 0: it is not a number with
 * something behind it. -1: it is, but not one for `unit`; `why` begins with what to write instead.
 */
int quantity_read(const char *text, const char *unit, long double *out, char why[QUANTITY_WHY_MAX]);
/* Whether `text` is a number, with such a unit or (unit NULL: only) without. */
bool quantity_number(const char *text, const char *unit, double *out);
/* What a sentence adds when no number was found: ", such as 64KiB or 40KB", or "" for counts. */
const char *quantity_example(const char *unit);
