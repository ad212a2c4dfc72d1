#pragma once
/* Where a law is off: how the times that were measured differ from those that it foretells, by the
 * number of requests under way. A law that is off by as much everywhere is right about what
 * changes. What more or fewer of them would change is known from two sides: groups of about as many
 * under way, where they have some requests each, and a line through all of them, for what lies
 * beyond these groups. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MISFIT_LEVELS 14

struct misfit {
	uint32_t count;
	struct misfit_at {
		double level;     /* requests under way, itself included: mean */
		double off, sure; /* of the time foretold, less 1; its standard error */
		double scatter;   /* its standard deviation from request to request, of what they
				   * took; 0: little */
		double n;         /* requests */
	} at[MISFIT_LEVELS];      /* groups, by level */
	/* The line: what is off rises by so much with the logarithm of the level. INFINITY for its
	 * standard error where all have one level. */
	double slope, slope_sure;
};

/* Of n requests: what each took, and took beyond what the law says (NAN: it says nothing), ns; as
 * many are under way as `level` says, times `times`. */
void misfit_of(struct misfit *m, size_t n, const double *took, const double *beyond,
	       const uint32_t *level, double times);

/* What a law that agrees with the requests beside some others is off by beside more or fewer of
 * them: the time is `factor` times as long, and *low to *high times as far as that is known. */
struct misfit_range {
	double factor, low, high;
};
struct misfit_range misfit_from_to(const struct misfit *m, double from, double to);
/* Whether it is off by more than `by` anywhere, beside what it is off at `from`. */
bool misfit_refutes(const struct misfit *m, double from, double by);
/* Of n requests in groups below MISFIT_LEVELS: the part of their time that the law gives to other
 * groups than those that took it, apart from what it is off by in all; the arguments are those of
 * misfit_of. */
double misfit_misplaced(size_t n, const double *took, const double *beyond, const uint8_t *group);
/* Of a law that has one time for all requests: what they get together beside most of them, as a
 * part of what they get beside fewer, where it is clearly less; else 1. */
double misfit_falls(const struct misfit *m);
/* Whether it foretells each request well beside some others, and none of them beside others: who is
 * served when is not as it says. */
bool misfit_scatters(const struct misfit *m);
