/* What the page cache held of the dataset, looked at before and after each epoch. */
#include <math.h>

#include "base/str.h"
#include "judge/verdict.h"
#include "store/store.h"

static const double CACHE_SHARE = 0.10; /* of the dataset, in the page cache: it was measured */
static const double NOT_STORAGE_SHARE = 0.5; /* from there on, it was not the storage */
static const double LEFT_SHARE = 0.01; /* of the dataset, still cached where it should not be */
static const uint64_t LEFT_BYTES = 65536;
static const double ALL_SHARE = 0.99; /* of what training read: the device delivered it all */

static double share_of(const struct residency *c)
{
	return c->bytes ? (double)c->cached_bytes / (double)c->bytes : 0;
}

static unsigned taken_by(double share)
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

		if (c->known && share_of(c) > most) {
			most = share_of(c);
			at = i;
		}
	}
	return at;
}

static void say_sample(struct verdict *v, const struct result *r, const struct residency *c)
{
	if (c->hosts > 1 && r->process && c->process < r->processes)
		verdict_say(v, " (On host %.64s, which had the most of %u hosts.)",
			    r->process[c->process].hostname, c->hosts);
	if (c->looked < c->files)
		verdict_say(v, " (%llu of %llu files, spread over all subfolders, were checked.)",
			    (unsigned long long)c->looked, (unsigned long long)c->files);
}

/* Nothing may stay behind a reader that goes past the cache. */
static void judge_uncached(struct verdict *v, const struct result *r)
{
	uint64_t grown = 0;
	uint32_t worst = 0;
	char a[32], b[32], c[32];

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
		verdict_worsen(v, VERDICT_UNKNOWN);
		verdict_say(v,
			    "No epoch was completed, so the growth of the page cache is unknown.");
		return;
	}
	if (too_much(grown, to->bytes)) {
		v->level = VERDICT_FAIL;
		verdict_takes(v, TAKES_PART, "the page cache");
		verdict_say(v,
			    "O_DIRECT was requested, but the page cache grew by %s of the dataset "
			    "in epoch %u: the file system reads through the cache.",
			    str_bytes((double)grown, a, sizeof(a)), worst + 1);
		return;
	}
	verdict_say(v,
		    "O_DIRECT: the page cache did not grow; it held %s of the dataset's %s before "
		    "epoch "
		    "%u and %s after it.",
		    str_bytes((double)from->cached_bytes, a, sizeof(a)),
		    str_bytes((double)to->bytes, b, sizeof(b)), worst + 1,
		    str_bytes((double)to->cached_bytes, c, sizeof(c)));
	say_sample(v, r, to);
}

/* What was to be evicted before epoch `i`. */
static bool was_evicted(const struct result *r, uint32_t i)
{
	int how = r->workload->storage.page_cache;

	return how == PAGE_CACHE_COLD ? i == 0 : how != PAGE_CACHE_KEEP;
}

static bool judge_eviction(struct verdict *v, const struct result *r)
{
	char a[32], b[32];

	for (uint32_t i = 0; i < r->epochs_begun; i++) {
		const struct residency *c = &r->usage[i].cache_start;

		if (!was_evicted(r, i) || !c->known || !too_much(c->cached_bytes, c->bytes))
			continue;
		verdict_worsen(v, share_of(c) > CACHE_SHARE ? VERDICT_FAIL : VERDICT_WARN);
		verdict_takes(v, share_of(c) > CACHE_SHARE ? taken_by(share_of(c)) : 0,
			      "the page cache");
		verdict_say(v,
			    "storage.page_cache should have kept the dataset out of the page "
			    "cache, but %s of %s were in it before epoch %u: other programs map, "
			    "lock or read these files, or the file system retains them.",
			    str_bytes((double)c->cached_bytes, a, sizeof(a)),
			    str_bytes((double)c->bytes, b, sizeof(b)), i + 1);
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

		if (!c->known || device_delivered_all(r, i) || share_of(c) <= CACHE_SHARE)
			continue;
		if (at == r->epochs_begun || share_of(c) > share_of(&r->usage[at].cache_start))
			at = i;
	}
	return at < r->epochs_begun ? at : fullest(r, false);
}

static void judge_start(struct verdict *v, const struct result *r, uint32_t worst)
{
	const struct residency *c = &r->usage[worst].cache_start;
	double share = share_of(c);
	uint32_t warm = 0;
	char a[32], b[32];

	if (c->memory) {
		v->level = VERDICT_WARN;
		verdict_takes(v, TAKES_STORAGE, "memory");
		verdict_say(v, "The dataset is on %s, which is memory: no storage was measured.",
			    c->file_system);
		return;
	}
	for (uint32_t i = 0; i < r->epochs_begun; i++)
		warm += share_of(&r->usage[i].cache_start) > CACHE_SHARE &&
			!device_delivered_all(r, i);
	verdict_say(v, "%s of %s of the dataset were in the page cache before epoch %u",
		    str_bytes((double)c->cached_bytes, a, sizeof(a)),
		    str_bytes((double)c->bytes, b, sizeof(b)), worst + 1);
	if (share <= CACHE_SHARE) {
		verdict_say(v, "%s.", r->epochs_begun > 1 ? ", the maximum over all epochs" : "");
		return;
	}
	if (device_delivered_all(r, worst)) {
		verdict_say(v, ", but the device delivered all that training read in this epoch: "
			       "what was cached was evicted before it was read, or is of "
			       "evaluation.");
		return;
	}
	v->level = VERDICT_WARN;
	verdict_takes(v, taken_by(share), "the page cache");
	verdict_say(v, ": memory was measured%s",
		    share >= NOT_STORAGE_SHARE ? ", not storage" : " in part");
	if (r->epochs_begun > 1)
		verdict_say(v, " (%u of %u epochs began with more than %.0f %% cached)", warm,
			    r->epochs_begun, 100 * CACHE_SHARE);
	verdict_say(v, ". storage.page_cache=cold_epochs evicts it before every epoch.");
}

/* Memory below the file system. */
static void judge_device(struct verdict *v, const struct result *r)
{
	const struct block_tree *t = r->host_source ? &r->host_source->tree : NULL;

	if (!t || !t->memory[0])
		return;
	verdict_worsen(v, VERDICT_WARN);
	verdict_takes(v, TAKES_STORAGE, "memory");
	verdict_say(v, "The device %s: this says nothing about storage. ", t->memory);
}

static void judge_cache(const struct result *r, const struct run_metrics *m, struct verdict *v)
{
	const struct store_facts *base = workload_base_store(r->workload);
	uint32_t worst, end;
	char a[32], b[32];

	(void)m;
	judge_device(v, r);
	worst = fullest_of_served(r);
	if (worst == r->epochs_begun) {
		verdict_worsen(v, VERDICT_UNKNOWN);
		verdict_say(v, "How much of the dataset was in the page cache is unknown: %.300s.",
			    r->usage[0].cache_start.why[0] ? r->usage[0].cache_start.why
							   : "it was not checked");
		return;
	}
	if (base->flags & STORE_IS_UNCACHED) {
		judge_uncached(v, r);
		return;
	}
	if (!judge_eviction(v, r))
		judge_start(v, r, worst);
	end = fullest(r, true);
	if (r->workload->storage.page_cache == PAGE_CACHE_DROP && end < r->epochs_begun) {
		const struct residency *c = &r->usage[end].cache_end;

		verdict_say(v, " Of the dataset, %s of %s remained there after epoch %u.",
			    str_bytes((double)c->cached_bytes, a, sizeof(a)),
			    str_bytes((double)c->bytes, b, sizeof(b)), end + 1);
		if (too_much(c->cached_bytes, c->bytes)) {
			verdict_worsen(v, VERDICT_WARN);
			verdict_takes(v, TAKES_PART, "the page cache");
			verdict_say(v, " Pages still being read ahead when a file is closed "
				       "remain, and may serve other samples of the file.");
		}
	}
	say_sample(v, r, &r->usage[worst].cache_start);
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
