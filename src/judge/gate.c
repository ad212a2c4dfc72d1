/* The decision behind --check and --min-samples-per-s. */
#include "judge/gate.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "workload/backend.h"
#include "workload/key.h"
#include "workload/workload.h"

/* Fetched, of the returned bytes, from which on the file system counts fetching. */
#define SHARE_SEEN 0.01
/* Of the bytes: runs whose sources differ by more did not measure the same. */
#define SHARE_OTHER 0.20

/* ---- one run ---- */

static double cached_share(const struct result *r)
{
	double fetched = 0, returned = 0, held = 0, looked = 0, missing;
	bool flagged;

	for (uint32_t i = 0; i < r->judged.epochs && i < r->epochs_begun; i++) {
		const struct epoch_judgement *ep = &r->judged.epoch[i];
		const double *bytes = r->only_evaluated ? ep->eval_bytes : ep->train_bytes;
		const struct residency *cache =
			r->only_evaluated ? &r->usage[i].cache_eval : &r->usage[i].cache_start;

		if (!isnan(bytes[LEDGER_RETURNED]) && !isnan(bytes[LEDGER_CHARGED])) {
			returned += bytes[LEDGER_RETURNED];
			fetched += bytes[LEDGER_CHARGED];
		}
		if (cache->known) {
			held += (double)cache->cached_bytes;
			looked += (double)cache->bytes;
		}
	}
	missing = returned > 0 ? fmax(0, 1 - fetched / returned) : NAN;
	if (looked <= 0)
		return fetched > SHARE_SEEN * returned ? missing : NAN;
	/* what was not fetched has other reasons, too: bytes that are read twice, holes, a file
	 * system that does not count; but none that the ledger knows where it is flagged */
	flagged =
		!r->only_evaluated && r->judged.ledger.line[LEDGER_CHARGED].state == LEDGER_FLAGGED;
	return flagged && isfinite(missing) ? missing : fmin(missing, held / looked);
}

static bool asks_for_warm(const struct result *r)
{
	const struct workload *w = r->workload;

	if (!(workload_base_store(w)->flags & STORE_HAS_FILES))
		return true;
	for (uint32_t i = 0; i < r->epochs_begun; i++)
		if (r->usage[i].cache_start.memory || r->usage[i].cache_eval.memory)
			return true;
	return w->storage.page_cache == PAGE_CACHE_KEEP && w->origin &&
	       workload_is_set(w, "storage.page_cache");
}

void gate_run_of(const struct result *r, const struct run_metrics *m, struct gate_run *out)
{
	struct whole_run of = m->whole;

	if (r->only_evaluated) {
		of.au = m->eval_au.count ? r->judged.eval_steady.whole_au : NAN;
		of.throughput = m->eval_throughput.count ? m->eval_throughput.mean : NAN;
	}
	*out = (struct gate_run){.reads = r->trained || r->only_evaluated,
				 .only_evaluated = r->only_evaluated,
				 .au = of.au,
				 .samples_per_s = of.throughput,
				 .cached_share = NAN};
	if (out->reads) {
		out->warm = asks_for_warm(r);
		out->cached_share = cached_share(r);
	}
	for (uint32_t i = 0; r->status == RUN_COMPLETE && i < r->judged.verdicts; i++) {
		const struct verdict *v = &r->judged.verdict[i];

		if (v->level != VERDICT_FAIL)
			continue;
		if (!out->failed[0]) {
			struct buf text = {0};

			words_put_all(&text, &v->facts, v->first_bad, v->end_bad, WORDS_SHORT);
			snprintf(out->failure, sizeof(out->failure), "%s", text.data);
			buf_release(&text);
		}
		str_append(out->failed, sizeof(out->failed), "%s%s", out->failed[0] ? ", " : "",
			   v->check);
	}
}

/* ---- several ---- */

static double au_of(const struct gate_run *run)
{
	return run->au;
}

static double rate_of(const struct gate_run *run)
{
	return run->samples_per_s;
}

static struct gate_measure measure(const struct gate_run *run, size_t n,
				   double (*of)(const struct gate_run *run))
{
	struct gate_measure out = {.low = NAN, .high = NAN};
	double *v = xcalloc(n + 1, sizeof(*v)), reach;
	size_t have = 0;

	for (size_t i = 0; i < n; i++)
		if (isfinite(of(&run[i])))
			v[have++] = of(&run[i]);
	if (have) {
		out.of = sample_stat_of(v, have);
		out.low = out.of.min;
		out.high = out.of.max;
	}
	if (have >= GATE_RUNS_FOR_INTERVAL) {
		reach = student_t(0.05, (double)(have - 1)) * out.of.stdev / sqrt((double)have);
		out.interval = true;
		out.low = out.of.mean - reach;
		out.high = out.of.mean + reach;
	}
	free(v);
	return out;
}

struct gate_measure gate_au(const struct gate_run *run, size_t n)
{
	return measure(run, n, au_of);
}

struct gate_measure gate_rate(const struct gate_run *run, size_t n)
{
	return measure(run, n, rate_of);
}

static void add_reason(struct buf *why)
{
	if (why->len)
		buf_putc(why, '\n');
}

/* "the lower end of its 95 % interval over 5 runs": which number counts. */
static void put_which(struct buf *why, const struct gate_measure *m, size_t n)
{
	if (m->interval)
		buf_printf(why, " (the lower end of the 95 %% interval over %zu runs)", n);
	else if (n > 1)
		buf_printf(why, " (the lowest of %zu runs; an interval needs %d)", n,
			   GATE_RUNS_FOR_INTERVAL);
}

static bool au_passes(const struct gate_run *run, size_t n, double target, struct buf *why)
{
	struct gate_measure m = gate_au(run, n);

	if (m.of.n == n && m.low >= target)
		return true;
	add_reason(why);
	if (m.of.n < n) {
		buf_printf(why,
			   "the target AU %.4g %% (metric.au) cannot be judged: no AU was "
			   "measured",
			   target);
		return false;
	}
	buf_printf(why, "%s %.2f %%",
		   run->only_evaluated ? "AU of evaluation" : "AU of the whole run", m.low);
	put_which(why, &m, n);
	buf_printf(why, " is below the target %.4g %% (metric.au)", target);
	return false;
}

static bool rate_passes(const struct gate_run *run, size_t n, double least, struct buf *why)
{
	struct gate_measure m = gate_rate(run, n);

	if (m.of.n == n && m.low >= least)
		return true;
	add_reason(why);
	if (m.of.n < n) {
		buf_printf(why,
			   "the rate of %s samples/s (--min-samples-per-s) cannot be judged: no "
			   "rate was measured",
			   NUMBER(least, 6));
		return false;
	}
	buf_printf(why, "%s samples/s%s", NUMBER(m.low, 6),
		   run->only_evaluated ? " of evaluation" : " over the whole run");
	put_which(why, &m, n);
	buf_printf(why, ", below the required %s (--min-samples-per-s)", NUMBER(least, 10));
	return false;
}

static bool cache_passes(const struct gate_run *run, size_t n, struct buf *why)
{
	double most = 0, lowest = INFINITY, highest = -INFINITY;
	size_t warm = 0;

	for (size_t i = 0; i < n; i++) {
		lowest = fmin(lowest, run[i].cached_share);
		highest = fmax(highest, run[i].cached_share);
	}
	for (size_t i = 0; i < n; i++)
		if (!run[i].warm && run[i].cached_share > GATE_CACHE_SHARE) {
			most = fmax(most, run[i].cached_share);
			warm++;
		}
	if (warm == 0 && !(highest - lowest > SHARE_OTHER))
		return true;
	add_reason(why);
	if (warm == 0) {
		buf_printf(why,
			   "the runs did not start alike: %.0f %% to %.0f %% of their bytes came "
			   "from the page cache",
			   100 * lowest, 100 * highest);
		return false;
	}
	buf_printf(why, "%.0f %% of the bytes came from the page cache", 100 * most);
	if (n > 1)
		buf_printf(why, " (%zu of %zu runs)", warm, n);
	buf_printf(why,
		   ", above the %.0f %% allowed (storage.page_cache=cold_epochs evicts the dataset "
		   "before every epoch, and keep allows a warm cache)",
		   100 * GATE_CACHE_SHARE);
	return false;
}

static bool verdicts_pass(const struct gate_run *run, size_t n, struct buf *why)
{
	const struct gate_run *first = NULL;
	size_t failed = 0;
	bool several;

	for (size_t i = 0; i < n; i++) {
		if (!run[i].failed[0])
			continue;
		first = first ? first : &run[i];
		failed++;
	}
	if (!first)
		return true;
	add_reason(why);
	several = strchr(first->failed, ',') != NULL;
	buf_printf(why, "the verdict%s '%s' %s FAIL", several ? "s" : "", first->failed,
		   several ? "are" : "is");
	if (n > 1)
		buf_printf(why, " in %zu of %zu runs", failed, n);
	buf_printf(why, ": %s", first->failure);
	/* the line goes on, or ends without a full stop */
	while (why->len && (why->data[why->len - 1] == '.' || why->data[why->len - 1] == ' '))
		why->data[--why->len] = '\0';
	return false;
}

bool gate_passes(const struct gate_run *run, size_t n, const struct gate_limits *want,
		 struct buf *why)
{
	bool reads = true, passed = true;

	assert(n > 0);
	for (size_t i = 0; i < n; i++)
		reads = reads && run[i].reads;
	/* checkpoints alone have no AU; a rate that is asked for is missing then */
	if (want->check && reads)
		passed = au_passes(run, n, want->au, why);
	if (want->samples_per_s > 0)
		passed = rate_passes(run, n, want->samples_per_s, why) && passed;
	if (want->check) {
		passed = cache_passes(run, n, why) && passed;
		passed = verdicts_pass(run, n, why) && passed;
	}
	return passed;
}
