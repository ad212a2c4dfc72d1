/* What memory had to do with it: whether the page cache served, and whether there was too little.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "judge/limit_memory.h"
#include "store/store.h"

static const double CACHED_SHARE = 0.5;  /* of the dataset in the page cache: it served */
static const double STALLED_SHARE = 0.2; /* of the time, waiting for memory */
static const double AGAIN_SHARE = 0.4;   /* of what the storage delivered, brought in before */

static double file_bytes(const struct residency *c)
{
	return c->known && c->looked ? (double)c->bytes * (double)c->files / (double)c->looked : 0;
}

bool limit_cached(const struct result *r)
{
	double held = 0, of = 0, fetched = 0, returned = 0;

	for (uint32_t i = 0; i < r->epochs_done; i++) {
		const struct residency *c = &r->usage[i].cache_start;
		const double *bytes = r->judged.epoch[i].train_bytes;

		held += c->known ? (double)c->cached_bytes : 0;
		of += c->known ? (double)c->bytes : 0;
		if (isnan(bytes[LEDGER_CHARGED]) || isnan(bytes[LEDGER_RETURNED]))
			continue;
		fetched += bytes[LEDGER_CHARGED];
		returned += bytes[LEDGER_RETURNED];
	}
	/* cached pages can be evicted before they are read */
	return of > 0 && held >= CACHED_SHARE * of && fetched <= (1 - CACHED_SHARE) * returned;
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

static void say_where_memory_is_short(const struct result *r, char *out, size_t size)
{
	const struct epoch_usage *u = &r->usage[r->epochs_done - 1];
	char a[32];

	str_append(out, size, "limited by too little memory");
	if (r->nodes > 1 && r->process && u->memory_process < r->processes)
		str_append(out, size, " on host %.64s", r->process[u->memory_process].hostname);
	if (u->memory.limit_bytes)
		str_append(out, size, " (its control group is limited to %s)",
			   str_bytes((double)u->memory.limit_bytes, a, sizeof(a)));
}

bool limit_memory(const struct result *r, char *out, size_t size)
{
	double stalled = 0, wall = 0;
	struct fetching f;
	char a[32], b[32];
	double hosts = r->nodes > 1 ? r->nodes : 1;
	bool waits, again;

	for (uint32_t i = 0; i < r->epochs_done; i++) {
		const struct epoch_usage *u = &r->usage[i];

		stalled += u->memory.stall_ns > 0 ? (double)u->memory.stall_ns / 1e9 : 0;
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
	out[0] = '\0';
	say_where_memory_is_short(r, out, size);
	if (waits) {
		str_append(out, size,
			   ": for %.0f %% of the time, programs waited for pages being reclaimed "
			   "or read back",
			   100 * fmin(1, stalled / wall));
		if (f.refaults_known && f.refaults > 0)
			str_append(out, size, " (%s of file pages were read back)",
				   str_bytes(f.refaults, a, sizeof(a)));
	}
	if (again)
		str_append(out, size,
			   "%s %s per epoch were fetched for files of %s, because pages were "
			   "evicted before they were read again",
			   waits ? ", and" : ":", str_bytes(f.bytes / f.epochs, a, sizeof(a)),
			   str_bytes(f.files / f.epochs, b, sizeof(b)));
	str_append(out, size, "; provide more memory, or use fewer workers and batches.");
	return true;
}
