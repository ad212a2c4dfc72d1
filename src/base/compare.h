#pragma once
/* Comparing. */

/* For qsort. */

/* Less than 0 where a goes before b, more than 0 where it goes behind; each is evaluated twice.
 * Several of them: ORDER(x->a, y->a) ?: ORDER(x->b, y->b). */
#define ORDER(a, b) (((a) > (b)) - ((a) < (b)))

/* The least or the most that was seen so far: x becomes v where that is more, or less. */
#define RAISE(x, v)                                                                                \
	do {                                                                                       \
		__typeof__(x) raised_ = (v);                                                       \
		if (raised_ > (x))                                                                 \
			(x) = raised_;                                                             \
	} while (0)
#define LOWER(x, v)                                                                                \
	do {                                                                                       \
		__typeof__(x) lowered_ = (v);                                                      \
		if (lowered_ < (x))                                                                \
			(x) = lowered_;                                                            \
	} while (0)
