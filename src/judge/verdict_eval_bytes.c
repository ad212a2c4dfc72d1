/* Whether the bytes of evaluations are those of their samples, and whether the device delivered
 * them. */
#include "base/str.h"
#include "judge/ledger.h"
#include "judge/origin.h"
#include "judge/uncounted.h"
#include "judge/verdict.h"
#include "store/store.h"

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
		.files = "the evaluation files",
		.before = "evaluations",
		.cached_share = s->looked_known && s->looked > 0 ? s->cached / s->looked : -1,
		.direct = direct};
	char a[32];

	if (!(workload_base_store(r->workload)->flags & STORE_HAS_FILES))
		return;
	if (!s->device_known || !(s->returned > 0)) {
		verdict_worsen(v, VERDICT_UNKNOWN);
		verdict_say(v, " The kernel does not report what the device delivered.");
		return;
	}
	if (share < CACHE_SHARE && counts_nothing(r, s)) {
		uncounted_judge(v, r, &u);
		return;
	}
	verdict_say(v, " The device delivered %.0f %% of that (%s)", 100 * share,
		    str_bytes(s->device, a, sizeof(a)));
	if (share >= DEVICE_SHARE) {
		if (!origin_judge_device(v, r, ", but"))
			verdict_say(v, ".");
		return;
	}
	verdict_worsen(v, VERDICT_WARN);
	if (direct) {
		verdict_say(v, ": O_DIRECT bypassed the page cache of this machine: the file "
			       "system has a cache of its own, holes or compressed files.");
		return;
	}
	verdict_takes(v, share < CACHE_SHARE ? TAKES_STORAGE : TAKES_PART, "the page cache");
	if (uncounted_are_links(r, DATASET_EVAL)) {
		verdict_say(v, ": ");
		uncounted_say_links(v, r);
		return;
	}
	verdict_say(v, share < CACHE_SHARE ? ": the page cache, not the storage, was measured."
					   : ": the page cache served the rest.");
	if (s->cold && share < CACHE_SHARE)
		verdict_say(v,
			    " It held %.2g %% of the files before: they were read into it during "
			    "an evaluation, by another program or under other names.",
			    100 * u.cached_share);
}

static void judge_eval_bytes(const struct result *r, const struct run_metrics *m, struct verdict *v)
{
	const struct dataset *d = r->dataset;
	struct eval_bytes s;
	char a[32], b[32];
	double expected;

	if (m->evals == 0 || r->workload->run.measure == MEASURE_NONE || !r->judged.epoch)
		return;
	s = sum_of(r, m);
	verdict_say(v, "%s of evaluation samples delivered (decoded)",
		    str_bytes(s.payload, a, sizeof(a)));
	if (s.returned_known)
		verdict_say(v, "; %s of bytes in files returned",
			    str_bytes(s.returned, b, sizeof(b)));
	verdict_say(v, ".");
	if (d && !d->drawn && s.samples > 0 && d->files[DATASET_EVAL] &&
	    r->workload->reader.read_type != READ_MEMORY) {
		expected = (double)dataset_sample_bytes(d, DATASET_EVAL, 0);
		if (s.payload != expected * s.samples) {
			verdict_worsen(v, VERDICT_FAIL);
			verdict_say(v, " Samples had %s on average, but the workload specifies %s.",
				    str_bytes(s.payload / s.samples, a, sizeof(a)),
				    str_bytes(expected, b, sizeof(b)));
			verdict_takes(v, TAKES_CONTENT, NULL);
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
