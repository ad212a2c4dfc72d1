#pragma once
/* Comparing, for qsort. */

/* Less than 0 where a goes before b, more than 0 where it goes behind; each is evaluated twice.
 * Several of them: ORDER(x->a, y->a) ?: ORDER(x->b, y->b). */
#define ORDER(a, b) (((a) > (b)) - ((a) < (b)))
