/* Whether the bytes read are those of the samples, and whether the device delivered them. */
#include "base/str.h"
#include "judge/verdict.h"
#include "store/store.h"

static const double CACHE_SHARE = 0.10;  /* device bytes below this share: cache measured */
static const double DEVICE_SHARE = 0.90; /* above it: the device was measured */
static const double READ_AHEAD_SHARE = 1.10;

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
static void judge_payload(struct verdict *v, const struct result *r, const struct run_metrics *m)
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
			verdict_say(v, " Samples served from the reader's own copies "
				       "(reader.read_type=memory) are not included.");
		return;
	}
	expected = dataset_sample_bytes(d, DATASET_TRAIN, 0);
	if (m->payload_bytes == samples * expected)
		return;
	if (own_copies(r, m->payload_bytes, samples, expected, &copies)) {
		double share = (double)copies / (double)samples;

		if (share > 1 - DEVICE_SHARE)
			verdict_worsen(v, VERDICT_WARN);
		if (share > 1 - DEVICE_SHARE)
			verdict_takes(v, share > 0.5 ? TAKES_STORAGE : TAKES_PART,
				      "the reader's own copies");
		verdict_say(v,
			    " %.3g %% of the samples were served from the reader's own copies "
			    "(reader.read_type=memory), not from the store.",
			    100 * share);
		return;
	}
	verdict_worsen(v, VERDICT_FAIL);
	verdict_takes(v, TAKES_CONTENT, NULL);
	verdict_say(v, " Samples had %s on average, but the workload specifies %s.",
		    str_bytes((double)m->payload_bytes / (double)samples, have, sizeof(have)),
		    str_bytes((double)expected, want, sizeof(want)));
}

static void judge_device(struct verdict *v, const struct result *r, const struct run_metrics *m,
			 double returned)
{
	const struct store_facts *base = workload_base_store(r->workload);
	double share = returned > 0 ? (double)m->device_bytes / returned : 0;
	char a[32];

	if (!(base->flags & STORE_HAS_FILES)) {
		verdict_worsen(v, VERDICT_UNKNOWN);
		verdict_say(v, " The store '%s' has no device to compare with.",
			    r->workload->storage.store ? r->workload->storage.store : "");
		return;
	}
	if (!m->device_known) {
		verdict_worsen(v, VERDICT_UNKNOWN);
		verdict_say(v, " The kernel does not report what the device delivered.");
		return;
	}
	verdict_say(v, " The device delivered %.0f %% of that (%s): ", 100 * share,
		    str_bytes((double)m->device_bytes, a, sizeof(a)));
	if (share < CACHE_SHARE) {
		verdict_worsen(v, VERDICT_WARN);
		verdict_takes(v, TAKES_STORAGE, "the page cache");
		verdict_say(
			v, "the page cache, not the storage, was measured (unless this file system "
			   "does not "
			   "report its reads to the kernel).");
	} else if (share < DEVICE_SHARE) {
		verdict_worsen(v, VERDICT_WARN);
		verdict_takes(v, TAKES_PART, "the page cache");
		verdict_say(v, "the page cache served the other %.0f %%.", 100 * (1 - share));
	} else if (share > READ_AHEAD_SHARE) {
		verdict_say(
			v, "more than was requested (read-ahead, or other reads of this process).");
	} else {
		verdict_say(v, "the storage was measured.");
	}
}

static void judge_bytes(const struct result *r, const struct run_metrics *m, struct verdict *v)
{
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
		verdict_say(v, "Requests were neither counted nor timed (run.measure=none), so the "
			       "bytes that the store delivered are unknown.");
		return;
	}
	if (requests == 0) {
		v->level = VERDICT_WARN;
		verdict_takes(v, TAKES_STORAGE, "no request was issued");
		verdict_say(v, "No request was issued to the store: no storage was measured.");
		return;
	}
	verdict_say(v,
		    "%s of sample data read from the store; %s requested and %s returned in %llu "
		    "requests.",
		    str_bytes(payload, a, sizeof(a)), str_bytes(asked, b, sizeof(b)),
		    str_bytes(returned, c, sizeof(c)), (unsigned long long)requests);
	judge_payload(v, r, m);
	judge_device(v, r, m, returned);
}

extern const struct verdict_ops verdict_bytes;
const struct verdict_ops verdict_bytes = {
	.name = "bytes",
	.help = "Were the right bytes read, and did the device deliver them?",
	.needs = VERDICT_OF_TRAINING,
	.about_cache = true,
	.takes = TAKES_PART,
	.judge = judge_bytes,
};
