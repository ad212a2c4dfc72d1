/* Where the bytes came from: what was asked, what the device delivered, and what lay in the page
 * cache. */
#include <ctype.h>
#include <math.h>

#include "judge/ledger.h"
#include "judge/verdict_parts.h"
#include "store/store.h"

static const double CACHE_SHARE = 0.10;  /* device bytes below this share: cache measured */
static const double DEVICE_SHARE = 0.90; /* above it: the device was measured */
static const double READ_AHEAD_SHARE = 1.10;
static const double LEFT_SHARE = 0.01; /* of the dataset, still cached where it should not be */
static const uint64_t LEFT_BYTES = 65536;

const struct store_ops *verdict_base_store(const struct workload *w)
{
	const char *name = w->storage.store ? strrchr(w->storage.store, '+') : NULL;

	if (!w->storage.store)
		return NULL;
	name = name ? name + 1 : w->storage.store;
	return store_find(name + strspn(name, " "));
}

/* Samples that took nothing from the store, under reader.read_type=memory. False when the bytes do
 * not say: each sample takes all its bytes or none. */
static bool own_copies(const struct result *r, uint64_t payload, uint64_t samples,
		       uint64_t sample_bytes, uint64_t *out)
{
	if (r->workload->reader.read_type != READ_MEMORY || sample_bytes == 0 ||
	    payload % sample_bytes != 0 || payload / sample_bytes > samples)
		return false;
	*out = samples - payload / sample_bytes;
	return true;
}

/* Wrong files on disk show in what a sample delivers, where all samples have one size. */
static void check_payload(struct verdict *v, const struct result *r, const struct run_metrics *m)
{
	const struct dataset *d = r->dataset;
	uint64_t samples = 0, expected, copies;
	char have[32], want[32];

	for (uint32_t i = 0; i < m->epochs; i++)
		samples += m->epoch[i].samples;
	if (!d || samples == 0 || d->files[DATASET_TRAIN] == 0)
		return;
	if (d->drawn) {
		if (r->workload->reader.read_type == READ_MEMORY)
			say(v, " Samples served from the reader's own copies (reader.read_type "
			       "memory) took none of it.");
		return;
	}
	expected = dataset_sample_bytes(d, DATASET_TRAIN, 0);
	if (m->payload_bytes == samples * expected)
		return;
	if (own_copies(r, m->payload_bytes, samples, expected, &copies)) {
		double share = (double)copies / (double)samples;

		if (share > 1 - DEVICE_SHARE)
			worsen(v, VERDICT_WARN);
		say(v,
		    " %.3g %% of the samples were served from the reader's own copies "
		    "(reader.read_type memory), not from the store.",
		    100 * share);
		return;
	}
	worsen(v, VERDICT_FAIL);
	say(v, " A sample delivered %s on average, but the workload's samples have %s.",
	    bytes_text((double)m->payload_bytes / (double)samples, have),
	    bytes_text((double)expected, want));
}

static void judge_device(struct verdict *v, const struct result *r, const struct run_metrics *m,
			 double returned)
{
	const struct store_ops *base = verdict_base_store(r->workload);
	double share = returned > 0 ? (double)m->device_bytes / returned : 0;
	char a[32];

	if (!base || !(base->is.flags & STORE_HAS_FILES)) {
		worsen(v, VERDICT_UNKNOWN);
		say(v, " The store '%s' has no device below it to compare with.",
		    r->workload->storage.store ? r->workload->storage.store : "");
		return;
	}
	if (!m->device_known) {
		worsen(v, VERDICT_UNKNOWN);
		say(v, " The kernel does not say what the device delivered.");
		return;
	}
	say(v, " Device %.0f %% (%s): ", 100 * share, bytes_text((double)m->device_bytes, a));
	if (share < CACHE_SHARE) {
		worsen(v, VERDICT_WARN);
		say(v, "the page cache, not the storage, was measured (unless this file system "
		       "does not "
		       "report its reads to the kernel).");
	} else if (share < DEVICE_SHARE) {
		worsen(v, VERDICT_WARN);
		say(v, "the page cache served the other %.0f %%.", 100 * (1 - share));
	} else if (share > READ_AHEAD_SHARE) {
		say(v,
		    "it read more than was asked (read-ahead, or other readers in this process).");
	} else {
		say(v, "the storage was measured.");
	}
}

void verdict_bytes(struct result *r, const struct run_metrics *m)
{
	struct verdict *v = add(r, "bytes");
	double asked = 0, returned = 0, payload = 0;
	uint64_t requests = 0;
	char a[32], b[32], c[32];

	/* requests are counted over all epochs, also one that was not finished: so is payload here
	 */
	for (uint32_t k = 0; r->rank && k < r->ranks; k++) {
		const struct io_stat *io = &r->rank[k].train_io;

		for (uint32_t i = 0; i < r->epochs_begun; i++)
			payload += (double)r->rank[k].epoch[i].payload_bytes;
		requests += io->kind[IO_DATA].requests + io->kind[IO_META].requests;
		asked += (double)io->kind[IO_DATA].asked_bytes +
			 (double)io->kind[IO_META].asked_bytes;
		returned += (double)io->kind[IO_DATA].returned_bytes +
			    (double)io->kind[IO_META].returned_bytes;
	}
	if (r->workload->run.measure == MEASURE_NONE) {
		v->level = VERDICT_UNKNOWN;
		say(v, "Requests were neither counted nor timed (run.measure=none): what the store "
		       "did is not known.");
		return;
	}
	if (requests == 0) {
		v->level = VERDICT_WARN;
		say(v, "No request was issued to the store: no storage was measured.");
		return;
	}
	say(v, "%s of sample data read from the store; %s asked and %s returned in %llu requests.",
	    bytes_text(payload, a), bytes_text(asked, b), bytes_text(returned, c),
	    (unsigned long long)requests);
	check_payload(v, r, m);
	judge_device(v, r, m, returned);
}

void verdict_ledger(struct result *r)
{
	struct ledger l;
	struct verdict *v;
	uint32_t compared = 0, flagged = 0, explained = 0;

	if (!r->usage || r->epochs_begun == 0)
		return;
	ledger_of(r, &l);
	for (int k = 0; k < LEDGER_LINES; k++) {
		const struct ledger_line *line = &l.line[k];

		compared += line->known && line->against >= 0;
		flagged += line->known && line->state == LEDGER_FLAGGED;
		explained += line->known && line->state == LEDGER_EXPLAINED;
	}
	if (compared == 0)
		return;
	v = add(r, "ledger");
	if (flagged == 0) {
		say(v,
		    "Every count of bytes, from the samples down to the storage, agrees with the "
		    "one above it within 1 %% or 64 KiB%s.",
		    explained ? ", or differs by what is known" : "");
		return;
	}
	v->level = VERDICT_WARN;
	for (int k = 0; k < LEDGER_LINES; k++) {
		const struct ledger_line *line = &l.line[k];
		char a[32], b[32];

		if (line->known && line->state == LEDGER_FLAGGED)
			say(v, "%s%s %s, %s %s: %s.", v->text[0] ? " " : "", ledger_titles[k],
			    bytes_text(line->bytes, a), ledger_titles[line->against],
			    bytes_text(l.line[line->against].bytes, b), line->why);
	}
	v->text[0] = (char)toupper((unsigned char)v->text[0]);
}

/* ---- page cache ---- */

static double share_of(const struct residency *c)
{
	return c->bytes ? (double)c->cached_bytes / (double)c->bytes : 0;
}

static bool too_much(uint64_t bytes, uint64_t of)
{
	return bytes > LEFT_BYTES && (double)bytes > LEFT_SHARE * (double)of;
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

static void say_sample(struct verdict *v, const struct residency *c)
{
	if (c->looked < c->files)
		say(v, " (Counted over %llu of %llu files, evenly spread.)",
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

		if (!from->known || !to->known || to->cached_bytes <= from->cached_bytes)
			continue;
		if (to->cached_bytes - from->cached_bytes > grown) {
			grown = to->cached_bytes - from->cached_bytes;
			worst = i;
		}
	}
	const struct residency *from = &r->usage[worst].cache_start;
	const struct residency *to = &r->usage[worst].cache_end;

	if (!to->known) {
		v->level = VERDICT_UNKNOWN;
		say(v, "No epoch was finished, so that growth of the page cache is not known.");
		return;
	}
	if (too_much(grown, to->bytes)) {
		v->level = VERDICT_FAIL;
		say(v,
		    "O_DIRECT was asked for, and yet the page cache grew by %s of the dataset in "
		    "epoch %u: the file system reads through it.",
		    bytes_text((double)grown, a), worst + 1);
		return;
	}
	say(v,
	    "O_DIRECT: the page cache did not grow; it held %s of the dataset's %s before epoch "
	    "%u and %s after it.",
	    bytes_text((double)from->cached_bytes, a), bytes_text((double)to->bytes, b), worst + 1,
	    bytes_text((double)to->cached_bytes, c));
	say_sample(v, to);
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
		v->level = share_of(c) > CACHE_SHARE ? VERDICT_FAIL : VERDICT_WARN;
		say(v,
		    "storage.page_cache should have kept the dataset out of the page cache, but %s "
		    "of %s were in it before epoch %u: something else maps, locks or reads these "
		    "files, or the file system keeps them.",
		    bytes_text((double)c->cached_bytes, a), bytes_text((double)c->bytes, b), i + 1);
		return true;
	}
	return false;
}

static void judge_start(struct verdict *v, const struct result *r, uint32_t worst)
{
	const struct residency *c = &r->usage[worst].cache_start;
	double share = share_of(c);
	uint32_t warm = 0;
	char a[32], b[32];

	if (c->memory) {
		v->level = VERDICT_WARN;
		say(v, "The dataset lies on %s, which is memory: no storage was measured.",
		    c->file_system);
		return;
	}
	for (uint32_t i = 0; i < r->epochs_begun; i++)
		warm += share_of(&r->usage[i].cache_start) > CACHE_SHARE;
	say(v, "%s of %s of the dataset were in the page cache before epoch %u",
	    bytes_text((double)c->cached_bytes, a), bytes_text((double)c->bytes, b), worst + 1);
	if (share <= CACHE_SHARE) {
		say(v, "%s.", r->epochs_begun > 1 ? ", the most of all epochs" : "");
		return;
	}
	v->level = VERDICT_WARN;
	say(v, ": this measured memory%s", share >= 0.5 ? ", not storage" : " in part");
	if (r->epochs_begun > 1)
		say(v, " (%u of %u epochs began with more than %.0f %% of it there)", warm,
		    r->epochs_begun, 100 * CACHE_SHARE);
	say(v, ". storage.page_cache=cold_epochs evicts it before every epoch.");
}

void verdict_page_cache(struct result *r)
{
	const struct store_ops *base = verdict_base_store(r->workload);
	uint32_t worst, end;
	struct verdict *v;
	char a[32], b[32];

	if (!base || !(base->is.flags & STORE_HAS_FILES) || !r->usage || r->epochs_begun == 0 ||
	    !r->dataset || r->dataset->format->is.flags & FORMAT_NO_IO)
		return;
	v = add(r, "cache");
	worst = fullest(r, false);
	if (worst == r->epochs_begun) {
		v->level = VERDICT_UNKNOWN;
		say(v, "What the page cache held of the dataset is not known: %.300s.",
		    r->usage[0].cache_start.why[0] ? r->usage[0].cache_start.why
						   : "it was not looked at");
		return;
	}
	if (base->is.flags & STORE_IS_UNCACHED) {
		judge_uncached(v, r);
		return;
	}
	if (!judge_eviction(v, r))
		judge_start(v, r, worst);
	end = fullest(r, true);
	if (r->workload->storage.page_cache == PAGE_CACHE_DROP && end < r->epochs_begun) {
		const struct residency *c = &r->usage[end].cache_end;

		say(v, " Reading left %s of %s there after epoch %u.",
		    bytes_text((double)c->cached_bytes, a), bytes_text((double)c->bytes, b),
		    end + 1);
		if (too_much(c->cached_bytes, c->bytes)) {
			worsen(v, VERDICT_WARN);
			say(v, " What is still being read ahead when a file is closed stays, and "
			       "may serve other samples of the file.");
		}
	}
	say_sample(v, &r->usage[worst].cache_start);
}
