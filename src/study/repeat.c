/* What repetitions of one run say together. */
#include "study/repeat.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/say.h"
#include "result/json_out.h"

static void put_interval(struct buf *out, const struct gate_measure *m, size_t n, int digits,
			 double most)
{
	if (n > 1)
		buf_say(out, ", stdev %.2g", m->of.stdev);
	if (m->interval)
		buf_say(out, ", 95 %% interval %.*f to %.*f", digits, fmax(0, m->low), digits,
			fmin(most, m->high));
	else if (n > 1)
		buf_say(out, ", %.*f to %.*f (an interval needs %d runs)", digits, m->low, digits,
			m->high, GATE_RUNS_FOR_INTERVAL);
	else
		buf_say(out, " (one run: no interval)");
}

static void put_au(const struct repeated *x, struct buf *out)
{
	struct gate_measure m = gate_au(x->run, x->done);

	if (m.of.n == 0)
		return;
	buf_say(out, "  %-15s %.1f %% of the %s", "AU", m.of.mean,
		x->run[0].only_evaluated ? "evaluation" : "whole run");
	put_interval(out, &m, x->done, 1, 100);
	if (x->target > 0)
		buf_say(out, "\n  %-15s %.4g %%: %s", "target", x->target,
			m.of.n == x->done && m.low >= x->target ? "met" : "missed");
	if (x->target > 0 && x->done > 1)
		buf_say(out, " (by the %s)",
			m.interval ? "lower end of the interval" : "lowest run");
	buf_putc(out, '\n');
}

static void put_rate(const struct repeated *x, struct buf *out)
{
	struct gate_measure m = gate_rate(x->run, x->done);
	int digits;

	if (m.of.n == 0)
		return;
	digits = m.of.mean < 100 ? 2 : m.of.mean < 1000 ? 1 : 0;
	buf_say(out, "  %-15s %.*f samples/s", "rate", digits, m.of.mean);
	put_interval(out, &m, x->done, digits, INFINITY);
	buf_putc(out, '\n');
}

static void put_cache(const struct repeated *x, struct buf *out)
{
	double least = INFINITY, most = -INFINITY;

	for (size_t i = 0; i < x->done; i++) {
		least = fmin(least, x->run[i].cached_share);
		most = fmax(most, x->run[i].cached_share);
	}
	if (!(most >= least))
		return;
	buf_say(out, "  %-15s ", "page cache");
	if (most - least >= 0.005)
		buf_say(out, "%.0f to ", 100 * least);
	buf_say(out, "%.0f %% of the bytes came from it%s\n", 100 * most,
		x->cold ? "; the dataset is evicted from it before every epoch" : "");
}

static void put_failures(const struct repeated *x, struct buf *out)
{
	for (size_t i = 0; i < x->done; i++)
		if (x->run[i].failed[0])
			buf_say(out, "  %-15s %s in run %zu\n", "FAIL", x->run[i].failed, i + 1);
}

void repeated_text(const struct repeated *x, struct buf *out)
{
	buf_say(out, "%s: %zu of %lld runs, %lld accelerator%s\n", x->name, x->done,
		(long long)x->asked, (long long)x->ranks, x->ranks == 1 ? "" : "s");
	put_au(x, out);
	put_rate(x, out);
	put_cache(x, out);
	put_failures(x, out);
	buf_say(out, "  %-15s %s/1", "results", x->folder);
	if (x->done > 1)
		buf_say(out, " to %zu", x->done);
	buf_say(out, "; summary: %s/repeat.json\n", x->folder);
}

static json_t *measure_json(const struct gate_measure *m)
{
	json_t *o = json_stat(&m->of);

	if (m->interval) {
		json_put_real(o, "low_95", m->low);
		json_put_real(o, "high_95", m->high);
	}
	return o;
}

int repeated_write(const struct repeated *x, bool passed, const char *why, struct err *e)
{
	struct gate_measure au = gate_au(x->run, x->done), rate = gate_rate(x->run, x->done);
	json_t *root = json_object(), *runs = json_array();

	json_put_mark(root);
	json_put_text(root, "workload", x->name);
	json_put_int(root, "runs_asked", (uint64_t)x->asked);
	json_put_int(root, "runs", x->done);
	json_put_int(root, "accelerators", (uint64_t)x->ranks);
	json_put_bool(root, "cold_by_default", x->cold);
	json_put(root, "whole_au_percent", measure_json(&au));
	json_put(root, "whole_throughput_samples_per_s", measure_json(&rate));
	for (size_t i = 0; i < x->done; i++) {
		json_t *o = json_object();
		AUTO_FREE char *folder = xasprintf("%zu", i + 1);

		json_put_text(o, "folder", folder);
		json_put_real(o, "whole_au_percent", x->run[i].au);
		json_put_real(o, "whole_throughput_samples_per_s", x->run[i].samples_per_s);
		json_put_real(o, "page_cache_percent", 100 * x->run[i].cached_share);
		json_put_text(o, "failed_verdicts", x->run[i].failed);
		json_array_append_new(runs, o);
	}
	json_put(root, "each", runs);
	if (why) {
		json_put_bool(root, "check_passed", passed);
		json_put_text(root, "check", why);
	}
	return json_write(root, x->folder, "repeat.json", e);
}
