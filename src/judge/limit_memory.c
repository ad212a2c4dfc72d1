/* What memory had to do with it: whether the page cache served, and whether there was too little.
 */
#include <math.h>
#include <string.h>

#include "judge/limit_memory.h"
#include "os/sysinfo.h"
#include "store/store.h"

static const double CACHED_SHARE = 0.5;  /* of the dataset in the page cache: it served */
static const double STALLED_SHARE = 0.2; /* of the time, waiting for memory */
static const double KEEPS_UP = 99;       /* percent of AU: reads do not limit */
static const double AGAIN_SHARE = 0.4;   /* of what the storage delivered, brought in before */

static double file_bytes(const struct residency *c)
{
	return c->known && c->looked ? (double)c->bytes * (double)c->files / (double)c->looked : 0;
}

/* Whether most of the dataset was in the page cache when epochs began. */
static bool was_resident(const struct result *r)
{
	double held = 0, of = 0;

	for (uint32_t i = 0; i < r->epochs_done; i++) {
		const struct residency *c = &r->usage[i].cache_start;

		held += c->known ? (double)c->cached_bytes : 0;
		of += c->known ? (double)c->bytes : 0;
	}
	return of > 0 && held >= CACHED_SHARE * of;
}

bool limit_cached(const struct result *r)
{
	double fetched = 0, returned = 0;

	for (uint32_t i = 0; i < r->epochs_done; i++) {
		const double *bytes = r->judged.epoch[i].train_bytes;

		if (isnan(bytes[LEDGER_CHARGED]) || isnan(bytes[LEDGER_RETURNED]))
			continue;
		fetched += bytes[LEDGER_CHARGED];
		returned += bytes[LEDGER_RETURNED];
	}
	/* cached pages can be evicted before they are read */
	return was_resident(r) && fetched <= (1 - CACHED_SHARE) * returned;
}

bool limit_in_memory(const struct workload *w)
{
	return workload_base_store(w)->flags & STORE_IS_VOLATILE && !strchr(w->storage.store, '+');
}

uint32_t limit_copiers(const struct result *r, const struct run_metrics *m)
{
	double readers;

	if (!r->trained || !r->rank || !r->usage || r->nodes > 1 || !(m->whole.au < KEEPS_UP) ||
	    !(limit_in_memory(r->workload) || was_resident(r)))
		return 0;
	readers = fmax(1, r->rank[result_present_rank(r)].workers) * r->ranks;
	return (uint32_t)fmin(fmin(readers, MEMORY_COPIERS_MAX),
			      fmax(1, ceil(result_usable_cpus(&r->host))));
}

/* What epochs fetched through the page cache, and how much of that more than once. */
struct fetching {
	double bytes, again, files; /* sums over epochs */
	double refaults;            /* read again after eviction, by the kernel's count */
	bool refaults_known;
	uint32_t epochs;
};

static void sum_fetching(const struct result *r, struct fetching *f)
{
	const struct store_facts *base = workload_base_store(r->workload);
	bool through = base->flags & STORE_HAS_FILES && !(base->flags & STORE_IS_UNCACHED) &&
		       r->workload->storage.page_cache != PAGE_CACHE_DROP;

	*f = (struct fetching){.refaults_known = true};
	for (uint32_t i = 0; i < r->epochs_done; i++) {
		const struct epoch_usage *u = &r->usage[i];
		/* each host has a page cache of its own */
		double files = file_bytes(&u->cache_start) * (r->nodes > 1 ? r->nodes : 1);
		double fetched = (double)u->train.read_bytes, loaded = 0;

		f->refaults_known = f->refaults_known && u->memory.refault_bytes >= 0;
		f->refaults += (double)u->memory.refault_bytes;
		if (!through || !u->train.known || files <= 0 || u->cache_start.memory)
			continue;
		for (uint32_t k = 0; k < r->ranks; k++) {
			const struct rank_epoch *ep = &r->rank[k].epoch[i];

			for (uint32_t c = 0; !r->rank[k].lost && c < ep->loads; c++)
				loaded += (double)ep->load[c].stat.file_bytes;
		}
		fetched = fmax(0, fetched - loaded);
		f->epochs++;
		f->bytes += fetched;
		f->files += files;
		f->again += fmax(0, fetched - files);
	}
}

static struct fact where_memory_is_short(const struct result *r)
{
	const struct epoch_usage *u = &r->usage[r->epochs_done - 1];
	struct fact f =
		FACT(LIMIT_MEMORY, u->memory.limit_bytes ? (double)u->memory.limit_bytes : NAN);

	if (r->nodes > 1 && r->process && u->memory_process < r->processes)
		f = fact_with(f, 0, r->process[u->memory_process].hostname);
	return f;
}

bool limit_memory(const struct result *r, struct fact_list *out)
{
	double stalled = 0, wall = 0;
	struct fetching f;
	double hosts = r->nodes > 1 ? r->nodes : 1;
	bool waits, again;

	for (uint32_t i = 0; i < r->epochs_done; i++) {
		const struct epoch_usage *u = &r->usage[i];

		/* of a machine's memory, other programs may be those that waited */
		if (u->memory.limit_bytes > 0 && u->memory.stall_ns > 0)
			stalled += (double)u->memory.stall_ns / 1e9;
		wall += (double)u->wall_ns / 1e9;
	}
	sum_fetching(r, &f);
	waits = wall > 0 && stalled >= STALLED_SHARE * wall;
	/* dropped by hand, or by a file system without a cache, they are no refaults; what is
	 * counted of them is one host's, of what came again all hosts' */
	again = f.bytes > 0 && f.again >= AGAIN_SHARE * f.bytes &&
		(!f.refaults_known || f.refaults * hosts >= 0.5 * f.again);
	if (!waits && !again)
		return false;
	fact_add(out, where_memory_is_short(r));
	if (waits)
		fact_add(out, FACT(LIMIT_MEMORY_WAITS, fmin(1, stalled / wall),
				   f.refaults_known && f.refaults > 0 ? f.refaults : NAN));
	if (again)
		fact_add(out, FACT(LIMIT_MEMORY_AGAIN, f.bytes / f.epochs, f.files / f.epochs));
	return true;
}
