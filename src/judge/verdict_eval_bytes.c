/* Whether the bytes of evaluations are those of their samples, and whether the device delivered
 * them. */
#include <math.h>

#include "judge/ledger.h"
#include "judge/origin.h"
#include "judge/uncounted.h"
#include "judge/verdict.h"

static const double CACHE_SHARE = 0.10;  /* device bytes below this share: cache measured */
static const double DEVICE_SHARE = 0.90; /* above it: the device was measured */

struct eval_bytes {
	double payload, samples, returned, device;
	bool returned_known, device_known;
	double looked, cached;   /* bytes of the files, and of these in the page cache before */
	bool looked_known, cold; /* cold: it held next to nothing before any evaluation */
};

static struct eval_bytes sum_of(const struct result *r, const struct run_metrics *m)
{
	struct eval_bytes s = {
		.returned_known = true, .device_known = true, .looked_known = true, .cold = true};

	for (uint32_t i = 0; i < m->epochs; i++) {
		const double *bytes = r->judged.epoch[i].eval_bytes;
		const struct residency *c = &r->usage[i].cache_eval;

		if (!m->epoch[i].has_eval)
			continue;
		s.payload += (double)m->epoch[i].eval_payload_bytes;
		s.samples += (double)m->epoch[i].eval_samples;
		s.returned_known = s.returned_known && bytes[LEDGER_RETURNED] >= 0;
		s.returned += s.returned_known ? bytes[LEDGER_RETURNED] : 0;
		s.device_known = s.device_known && r->usage[i].eval.known;
		s.device += (double)r->usage[i].eval.read_bytes;
		s.looked_known = s.looked_known && c->known;
		s.looked += (double)c->bytes;
		s.cached += (double)c->cached_bytes;
		s.cold = s.cold && c->known &&
			 (double)c->cached_bytes <= CACHE_SHARE * (double)c->bytes;
	}
	return s;
}

/* As for training: the client does not count, or nothing came from a device and the page cache held
 * nothing. */
static bool counts_nothing(const struct result *r, const struct eval_bytes *s)
{
	const struct host_io_source *source = r->host_source;
	const struct survey *x = &r->presence.survey;

	if (!source || source->client.kind != FS_CLIENT_NONE || source->memory || x->hole_files ||
	    x->compressed_files || x->inline_files)
		return false;
	return ledger_uncounted(r, s->device) ||
	       (s->device <= 0 && s->looked_known && s->cached <= uncounted_left_share * s->looked);
}

static void judge_device(struct verdict *v, const struct result *r, const struct eval_bytes *s)
{
	bool direct = workload_base_store(r->workload)->flags & STORE_IS_UNCACHED;
	double share = s->returned > 0 ? s->device / s->returned : 0;
	const struct uncounted u = {
		.eval = true,
		.cached_share = s->looked_known && s->looked > 0 ? s->cached / s->looked : -1,
		.direct = direct};

	if (!(workload_base_store(r->workload)->flags & STORE_HAS_FILES))
		return;
	if (!s->device_known || !(s->returned > 0)) {
		verdict_found(v, VERDICT_UNKNOWN, FACT(BYTES_NOT_REPORTED));
		return;
	}
	if (share < CACHE_SHARE && counts_nothing(r, s)) {
		uncounted_judge(v, r, &u);
		return;
	}
	verdict_found(v, VERDICT_PASS, FACT(BYTES_DEVICE, share, s->device));
	if (share >= DEVICE_SHARE) {
		origin_judge_device(v, r);
		return;
	}
	if (direct) {
		verdict_found(v, VERDICT_WARN, FACT(BYTES_DIRECT));
		return;
	}
	verdict_takes(v, share < CACHE_SHARE ? TAKES_STORAGE : TAKES_PART,
		      REASON_INSTEAD_PAGE_CACHE);
	if (uncounted_are_links(r, DATASET_EVAL)) {
		verdict_found(v, VERDICT_WARN, uncounted_links(r));
		return;
	}
	verdict_found(v, VERDICT_WARN,
		      share < CACHE_SHARE ? FACT(BYTES_CACHE) : FACT(BYTES_CACHE_PART, 1 - share));
	if (s->cold && share < CACHE_SHARE)
		verdict_found(v, VERDICT_WARN,
			      FACT(BYTES_OTHER_READER, 100 * u.cached_share, true));
}

static void judge_eval_bytes(const struct result *r, const struct run_metrics *m, struct verdict *v)
{
	const struct dataset *d = r->dataset;
	struct eval_bytes s;
	double expected;

	if (m->evals == 0 || r->workload->run.measure == MEASURE_NONE || !r->judged.epoch)
		return;
	s = sum_of(r, m);
	verdict_found(
		v, VERDICT_PASS,
		FACT(BYTES_EVAL_MOVED, s.payload, s.returned_known ? s.returned : (double)NAN));
	/* of others' files each has its own */
	if (d && !d->drawn && !d->listed && s.samples > 0 && d->files[DATASET_EVAL] &&
	    r->workload->reader.read_type != READ_MEMORY) {
		expected = (double)dataset_sample_bytes(d, DATASET_EVAL, 0);
		if (s.payload != expected * s.samples) {
			verdict_found(v, VERDICT_FAIL,
				      FACT(BYTES_SIZE, s.payload / s.samples, expected));
			verdict_takes(v, TAKES_CONTENT, REASON_NONE);
		}
	}
	judge_device(v, r, &s);
	if (s.returned_known && s.cold)
		origin_judge_server(v, r, s.returned, s.device_known ? s.device : 0,
				    origin_delivered(r, true));
}

extern const struct verdict_ops verdict_eval_bytes;
const struct verdict_ops verdict_eval_bytes = {
	.name = "eval-bytes",
	.help = "Did evaluations read the right bytes, and did the device deliver them?",
	.about = ABOUT_ORIGIN,
	.needs = VERDICT_OF_EVALUATION | VERDICT_OF_EVAL_STEPS | VERDICT_OF_EPOCHS,
	.about_cache = true,
	.takes = TAKES_PART,
	.judge = judge_eval_bytes,
};
