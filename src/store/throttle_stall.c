/* The clock of a store that stalls. */
#include "store/throttle_stall.h"

#include <stddef.h>

void throttle_stall_start(struct throttle_stall *s, int64_t now_ns)
{
	int64_t none = 0;

	if (atomic_load_explicit(&s->start_ns, memory_order_relaxed) == 0)
		atomic_compare_exchange_strong_explicit(&s->start_ns, &none, now_ns,
							memory_order_relaxed, memory_order_relaxed);
}

/* When the first stall begins; INT64_MAX without one. */
static int64_t first_stall(const struct throttle_stall *s)
{
	int64_t start;

	if (!s || s->length_ns == 0)
		return INT64_MAX;
	start = atomic_load_explicit(&s->start_ns, memory_order_relaxed);
	return start == 0 || s->at_ns > INT64_MAX - start ? INT64_MAX : start + s->at_ns;
}

int64_t throttle_stall_work_ns(const struct throttle_stall *s, int64_t real_ns)
{
	int64_t first = first_stall(s), past = real_ns - first, whole = 0;

	if (real_ns <= first)
		return real_ns;
	if (s->every_ns > 0) {
		whole = past / s->every_ns * s->length_ns;
		past %= s->every_ns;
	}
	return real_ns - whole - (past < s->length_ns ? past : s->length_ns);
}

int64_t throttle_stall_real_ns(const struct throttle_stall *s, int64_t work_ns)
{
	int64_t first = first_stall(s), stalls = 1;

	if (work_ns <= first || work_ns == INT64_MAX)
		return work_ns;
	if (s->every_ns > 0) {
		int64_t between = s->every_ns - s->length_ns;

		/* what is due as a stall begins is not late */
		stalls = (work_ns - first + between - 1) / between;
	}
	if (stalls > (INT64_MAX - work_ns) / s->length_ns)
		return INT64_MAX;
	return work_ns + stalls * s->length_ns;
}
