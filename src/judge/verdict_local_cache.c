/* Whether epochs were downloaded, or came from the cache on this host (reader.cache_folder). */
#include <math.h>

#include "judge/verdict.h"

static const double SERVED_SHARE = 0.9; /* of an epoch, from which on the cache served it */
static const double PART_SHARE = 0.1;   /* above which it served a part */

/* Bytes in files of the samples of an epoch, each taken once. */
static double needed_bytes(const struct result *r, uint32_t epoch)
{
	double payload = 0;

	for (uint32_t k = 0; k < r->ranks; k++)
		payload += r->rank[k].lost ? 0 : (double)r->rank[k].epoch[epoch].payload_bytes;
	return payload * (r->dataset ? dataset_file_share(r->dataset, DATASET_TRAIN) : 1);
}

static void tell_sums(struct verdict *v, const struct result *r)
{
	double read = 0, busy_ns = 0;
	struct fetched all = {0};

	for (uint32_t i = 0; i < r->epochs_begun; i++) {
		struct fetched one = result_fetched(r, i, false);

		fetched_merge(&all, &one);
	}
	for (uint32_t k = 0; k < r->ranks; k++) {
		read += (double)io_stat_returned(&r->rank[k].train_io);
		busy_ns += (double)r->rank[k].train_busy_ns;
	}
	verdict_found(v, VERDICT_PASS,
		      FACT(LOCAL_CACHE_FILLED, (double)all.bytes, (double)all.shards, read,
			   all.removed ? (double)all.removed : (double)NAN));
	if (busy_ns > 0 && all.waited_ns > 0)
		verdict_found(v, VERDICT_PASS,
			      FACT(LOCAL_CACHE_WAITED, (double)all.waited_ns / 1e9,
				   fmin(1, (double)all.waited_ns / busy_ns)));
}

static void judge_local_cache(const struct result *r, const struct run_metrics *m,
			      struct verdict *v)
{
	uint32_t served = 0, first = r->epochs_begun, part = r->epochs_begun;
	double most = 0;

	(void)m;
	if (!result_caches(r))
		return;
	tell_sums(v, r);
	for (uint32_t i = 0; i < r->epochs_done; i++) {
		double needed = needed_bytes(r, i), share;

		if (!(needed > 0))
			continue;
		share = 1 - (double)result_fetched(r, i, false).bytes / needed;
		if (share >= SERVED_SHARE) {
			served++;
			first = first < i ? first : i;
		} else if (share > PART_SHARE && share > most) {
			most = share;
			part = i;
		}
	}
	if (served) {
		verdict_found(
			v, VERDICT_WARN,
			FACT(LOCAL_CACHE_SERVED, first + 1,
			     (double)result_fetched(r, first, false).bytes, needed_bytes(r, first),
			     r->epochs_done > 1 ? (double)served : (double)NAN, r->epochs_done));
		verdict_takes(v, served == r->epochs_done ? TAKES_STORAGE : TAKES_PART,
			      REASON_INSTEAD_LOCAL_CACHE);
	} else if (part < r->epochs_begun) {
		verdict_found(v, VERDICT_WARN, FACT(LOCAL_CACHE_PART, part + 1, most));
		verdict_takes(v, TAKES_PART, REASON_INSTEAD_LOCAL_CACHE);
	}
}

extern const struct verdict_ops verdict_local_cache;
const struct verdict_ops verdict_local_cache = {
	.name = "local-cache",
	.help = "Was the remote dataset read, or a cache of it on this host?",
	.about = ABOUT_ORIGIN,
	.needs = VERDICT_OF_TRAINING | VERDICT_OF_EPOCHS,
	.takes = TAKES_PART,
	.judge = judge_local_cache,
};
