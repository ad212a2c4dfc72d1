/* Whether objects were read so much faster from the second epoch on that something between their
 * disks and this host must have kept them. This host keeps none. */
#include <math.h>

#include "base/alloc.h"
#include "base/stats.h"
#include "judge/server_view.h"
#include "judge/verdict.h"

struct reads {
	double middle_s, quick_s; /* what half of them, and a quarter, took at most; NAN: too few */
};

/* Those that began in [from, to). Their mean would count repetitions and new connections, too. */
static struct reads reads_of(const struct result *r, int64_t from, int64_t to)
{
	size_t room = (size_t)r->ranks * READ_LOG_KEPT, n = 0;
	AUTO_FREE double *s = xcalloc(room + 1, sizeof(*s));

	for (uint32_t k = 0; k < r->ranks; k++) {
		const struct read_log *l = &r->rank[k].train_io.reads;

		for (uint32_t i = 0; i < l->n; i++)
			if (l->seen[i].begin_ns >= from && l->seen[i].begin_ns < to)
				s[n++] = (double)(l->seen[i].end_ns - l->seen[i].begin_ns) / 1e9;
	}
	if (n < CACHED_READS)
		return (struct reads){NAN, NAN};
	return (struct reads){nth_number(s, n, n / 2), nth_number(s, n, n / 4)};
}

/* Other programs may have made the first epoch slow. */
static bool lacked_processors(const struct result *r)
{
	const struct epoch_judgement *e = r->judged.epoch;

	return !e || e[0].time.mean_s[TIME_NO_CPU] > CACHED_NO_CPU * e[0].time.wall_s;
}

static void judge_far_cache(const struct result *r, const struct run_metrics *m, struct verdict *v)
{
	const struct rank_epoch *ep = r->rank[result_present_rank(r)].epoch;
	struct reads first;
	double later = 0;

	(void)m;
	if (r->epochs_done < 2) {
		verdict_found(v, VERDICT_PASS, FACT(FAR_CACHE_UNSEEN));
		return;
	}
	/* the beginning of a run is slow, whatever the storage */
	first = reads_of(r, ep[0].begin_ns + (ep[0].train_end_ns - ep[0].begin_ns) / 2,
			 ep[0].train_end_ns);
	for (uint32_t i = 1; i < r->epochs_done; i++) {
		struct reads one = reads_of(r, ep[i].begin_ns, ep[i].train_end_ns);

		later = isfinite(later) && isfinite(one.middle_s) ? fmax(later, one.middle_s) : NAN;
	}
	if (!isfinite(first.middle_s) || !isfinite(later)) {
		verdict_found(v, VERDICT_PASS, FACT(FAR_CACHE_UNSEEN));
	} else if (lacked_processors(r)) {
		verdict_found(v, VERDICT_PASS, FACT(FAR_CACHE_NO_CPU));
	} else if (first.middle_s > CACHED_RATIO * later && first.quick_s > later &&
		   first.middle_s - later > CACHED_LEAST_S) {
		verdict_found(v, VERDICT_WARN,
			      FACT(FAR_CACHE, first.middle_s, later, CACHED_RATIO));
		verdict_takes(v, TAKES_PART, REASON_INSTEAD_STORAGE_CACHE);
	} else {
		verdict_found(v, VERDICT_PASS, FACT(FAR_CACHE_NOT, first.middle_s, later));
	}
}

extern const struct verdict_ops verdict_far_cache;
const struct verdict_ops verdict_far_cache = {
	.name = "far-cache",
	.help = "Did a cache of the storage, or on the way to it, serve later epochs?",
	.about = ABOUT_ORIGIN,
	.needs = VERDICT_OF_SERVERS | VERDICT_OF_TRAINING | VERDICT_OF_EPOCHS,
	.takes = TAKES_PART,
	.judge = judge_far_cache,
};
