/* What the page cache held of the dataset, looked at before and after each epoch. */
#include <math.h>

#include "judge/verdict.h"
#include "store/store.h"

static const double NOT_STORAGE_SHARE = 0.5; /* from there on, it was not the storage */
static const double LEFT_SHARE = 0.01; /* of the dataset, still cached where it should not be */
static const uint64_t LEFT_BYTES = 65536;
static const double ALL_SHARE = 0.99; /* of what training read: the device delivered it all */

static const double BEHIND_RATIO = 1.5;     /* of a batch's time in the first epoch to later ones */
static const double BEHIND_NO_CPU = 0.05;   /* of the first epoch: time without a processor */
static const double BEHIND_LEAST_S = 0.001; /* that it is longer by */

double verdict_cached(const struct residency *c)
{
	return c->bytes ? (double)c->cached_bytes / (double)c->bytes : 0;
}

unsigned verdict_takes_cached(double share)
{
	return share >= NOT_STORAGE_SHARE ? TAKES_STORAGE : TAKES_PART;
}

static bool too_much(uint64_t bytes, uint64_t of)
{
	return bytes > LEFT_BYTES && (double)bytes > LEFT_SHARE * (double)of;
}

/* What the page cache held before epoch `i` served nothing of it: pages were evicted before they
 * were read, as of a dataset larger than memory, or are of evaluation. */
static bool device_delivered_all(const struct result *r, uint32_t i)
{
	const struct proc_io *io = &r->usage[i].train;
	double returned, payload = 0;

	if (i >= r->judged.epochs || !r->rank || !io->known || r->usage[i].cache_start.memory)
		return false;
	returned = r->judged.epoch[i].train_bytes[LEDGER_RETURNED];
	for (uint32_t k = 0; k < r->ranks; k++)
		payload += (double)r->rank[k].epoch[i].payload_bytes;
	/* headers lie in pages that samples' requests reach into, too: what is read again is not
	 * fetched again */
	if (payload > 0 && r->dataset)
		returned = fmin(returned, payload * dataset_file_share(r->dataset, DATASET_TRAIN));
	return returned > 0 && (double)io->read_bytes >= ALL_SHARE * returned;
}

/* The epoch (from 0) with the largest share in the page cache at its start or end; epochs_begun
 * when none is known. */
static uint32_t fullest(const struct result *r, bool end)
{
	uint32_t at = r->epochs_begun;
	double most = -1;

	for (uint32_t i = 0; i < r->epochs_begun; i++) {
		const struct residency *c = end ? &r->usage[i].cache_end : &r->usage[i].cache_start;

		if (c->known && verdict_cached(c) > most) {
			most = verdict_cached(c);
			at = i;
		}
	}
	return at;
}

static void judge_sample(struct verdict *v, const struct result *r, const struct residency *c)
{
	if (c->hosts > 1 && r->process && c->process < r->processes)
		verdict_found(
			v, VERDICT_PASS,
			fact_with(FACT(CACHE_HOST, c->hosts), 0, r->process[c->process].hostname));
	if (c->looked < c->files)
		verdict_found(v, VERDICT_PASS,
			      FACT(CACHE_SAMPLE, (double)c->looked, (double)c->files));
}

/* Nothing may stay behind a reader that goes past the cache. */
static void judge_uncached(struct verdict *v, const struct result *r)
{
	uint64_t grown = 0;
	uint32_t worst = 0;

	for (uint32_t i = 0; i < r->epochs_begun; i++) {
		const struct residency *from = &r->usage[i].cache_start,
				       *to = &r->usage[i].cache_end;

		uint64_t before = residency_cached(from), after = residency_cached(to);

		if (!from->known || !to->known || after <= before)
			continue;
		if (after - before > grown) {
			grown = after - before;
			worst = i;
		}
	}
	const struct residency *from = &r->usage[worst].cache_start;
	const struct residency *to = &r->usage[worst].cache_end;

	if (!to->known) {
		verdict_found(v, VERDICT_UNKNOWN, FACT(CACHE_NO_EPOCH));
		return;
	}
	if (too_much(grown, to->bytes)) {
		verdict_found(v, VERDICT_FAIL, FACT(CACHE_DIRECT_GREW, (double)grown, worst + 1));
		verdict_takes(v, TAKES_PART, REASON_INSTEAD_PAGE_CACHE);
		return;
	}
	verdict_found(v, VERDICT_PASS,
		      FACT(CACHE_DIRECT, (double)from->cached_bytes, (double)to->bytes, worst + 1,
			   (double)to->cached_bytes));
	judge_sample(v, r, to);
}

bool verdict_evicted(const struct result *r, uint32_t epoch)
{
	int how = r->workload->storage.page_cache;

	return how == PAGE_CACHE_COLD ? epoch == 0 : how != PAGE_CACHE_KEEP;
}

static bool judge_eviction(struct verdict *v, const struct result *r)
{
	for (uint32_t i = 0; i < r->epochs_begun; i++) {
		const struct residency *c = &r->usage[i].cache_start;
		double share = verdict_cached(c);

		if (!verdict_evicted(r, i) || !c->known || !too_much(c->cached_bytes, c->bytes))
			continue;
		verdict_found(v, share > VERDICT_CACHE_SHARE ? VERDICT_FAIL : VERDICT_WARN,
			      r->usage[i].own_mapped_bytes
				      ? FACT(CACHE_OWN_MAPPED, (double)c->cached_bytes,
					     (double)c->bytes, i + 1,
					     (double)r->usage[i].own_mapped_bytes)
				      : FACT(CACHE_NOT_EVICTED, (double)c->cached_bytes,
					     (double)c->bytes, i + 1));
		verdict_takes(v, share > VERDICT_CACHE_SHARE ? verdict_takes_cached(share) : 0,
			      REASON_INSTEAD_PAGE_CACHE);
		return true;
	}
	return false;
}

/* Of the epochs that the page cache may have served, the one of which it held most; else the one of
 * which it held most. */
static uint32_t fullest_of_served(const struct result *r)
{
	uint32_t at = r->epochs_begun;

	for (uint32_t i = 0; i < r->epochs_begun; i++) {
		const struct residency *c = &r->usage[i].cache_start;

		if (!c->known || device_delivered_all(r, i) ||
		    verdict_cached(c) <= VERDICT_CACHE_SHARE)
			continue;
		if (at == r->epochs_begun ||
		    verdict_cached(c) > verdict_cached(&r->usage[at].cache_start))
			at = i;
	}
	return at < r->epochs_begun ? at : fullest(r, false);
}

static void judge_start(struct verdict *v, const struct result *r, uint32_t worst)
{
	const struct residency *c = &r->usage[worst].cache_start;
	double share = verdict_cached(c), cached = (double)c->cached_bytes,
	       bytes = (double)c->bytes;
	uint32_t warm = 0, epochs = r->epochs_begun;

	if (c->memory) {
		verdict_found(v, VERDICT_WARN,
			      fact_with(FACT(CACHE_MEMORY, false), 0, c->file_system));
		verdict_takes(v, TAKES_STORAGE, REASON_INSTEAD_MEMORY);
		return;
	}
	for (uint32_t i = 0; i < epochs; i++)
		warm += verdict_cached(&r->usage[i].cache_start) > VERDICT_CACHE_SHARE &&
			!device_delivered_all(r, i);
	if (share <= VERDICT_CACHE_SHARE) {
		verdict_found(v, VERDICT_PASS,
			      FACT(CACHE_HELD, cached, bytes, worst + 1, epochs > 1));
		return;
	}
	if (device_delivered_all(r, worst)) {
		verdict_found(v, VERDICT_PASS, FACT(CACHE_HELD_UNUSED, cached, bytes, worst + 1));
		return;
	}
	verdict_found(v, VERDICT_WARN,
		      FACT(CACHE_MEASURED, cached, bytes, worst + 1, share >= NOT_STORAGE_SHARE,
			   epochs > 1 ? warm : (double)NAN, epochs));
	verdict_takes(v, verdict_takes_cached(share), REASON_INSTEAD_PAGE_CACHE);
}

/* Memory below the file system. */
static void judge_device(struct verdict *v, const struct result *r)
{
	const struct block_tree *t = r->host_source ? &r->host_source->tree : NULL;

	if (!t || !t->memory[0])
		return;
	verdict_found(v, VERDICT_WARN, fact_with(FACT(CACHE_DEVICE_MEMORY), 0, t->memory));
	verdict_takes(v, TAKES_STORAGE, REASON_INSTEAD_MEMORY);
}

/* Whether batches were read so much faster from the second epoch on, although this host had to
 * fetch them again, that something behind it must have kept them. */
static void judge_behind(struct verdict *v, const struct result *r, bool uncached)
{
	const struct epoch_judgement *e = r->judged.epoch;
	double later = 0, first;

	if (!e || r->epochs_done < 2 || r->judged.epochs < r->epochs_done)
		return;
	/* other programs may have made it slow */
	if (e[0].time.mean_s[TIME_NO_CPU] > BEHIND_NO_CPU * e[0].time.wall_s)
		return;
	first = e[0].time.service_mean_s;
	for (uint32_t i = 0; i < r->epochs_done; i++) {
		const struct residency *c = &r->usage[i].cache_start;

		if (!uncached && (!c->known || verdict_cached(c) > VERDICT_CACHE_SHARE))
			return;
		later = i ? fmax(later, e[i].time.service_mean_s) : 0;
	}
	if (later > 0 && first >= BEHIND_RATIO * later && first - later >= BEHIND_LEAST_S)
		verdict_found(v, VERDICT_WARN, FACT(CACHE_BEHIND, first, later));
}

static void judge_cache(const struct result *r, const struct run_metrics *m, struct verdict *v)
{
	const struct store_facts *base = workload_base_store(r->workload);
	uint32_t worst, end;

	(void)m;
	judge_device(v, r);
	worst = fullest_of_served(r);
	if (worst == r->epochs_begun) {
		verdict_found(v, VERDICT_UNKNOWN,
			      fact_with(FACT(CACHE_UNKNOWN, false), 0,
					r->usage[0].cache_start.why[0] ? r->usage[0].cache_start.why
								       : "it was not checked"));
		return;
	}
	if (base->flags & STORE_IS_UNCACHED) {
		judge_uncached(v, r);
		judge_behind(v, r, true);
		return;
	}
	if (!judge_eviction(v, r))
		judge_start(v, r, worst);
	end = fullest(r, true);
	if (r->workload->storage.page_cache == PAGE_CACHE_DROP && end < r->epochs_begun) {
		const struct residency *c = &r->usage[end].cache_end;

		verdict_found(
			v, VERDICT_PASS,
			FACT(CACHE_REMAINED, (double)c->cached_bytes, (double)c->bytes, end + 1));
		if (too_much(c->cached_bytes, c->bytes)) {
			verdict_found(v, VERDICT_WARN, FACT(CACHE_REMAINS_SERVE));
			verdict_takes(v, TAKES_PART, REASON_INSTEAD_PAGE_CACHE);
		}
	}
	judge_sample(v, r, &r->usage[worst].cache_start);
	judge_behind(v, r, false);
}

extern const struct verdict_ops verdict_cache;
const struct verdict_ops verdict_cache = {
	.name = "cache",
	.help = "How much of the dataset was in the page cache?",
	.about = ABOUT_ORIGIN,
	.needs = VERDICT_OF_TRAINING | VERDICT_OF_EPOCHS | VERDICT_OF_FILES,
	.about_cache = true,
	.takes = TAKES_PART,
	.judge = judge_cache,
};
