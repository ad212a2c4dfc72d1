/* What repetitions of one run say together. */
#include "study/repeat.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/say.h"
#include "base/str.h"
#include "result/json_out.h"
#include "result/seal.h"

static void put_interval(struct buf *out, const struct gate_measure *m, size_t n, int digits,
			 double most)
{
	if (n > 1)
		buf_say(out, ", stdev %s", NUMBER(m->of.stdev, 2));
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

static void put_limits(json_t *root, const struct gate_limits *want)
{
	json_t *o = json_object();

	json_put_bool(o, "check", want->check);
	json_put_real(o, "au_percent", want->au);
	json_put_real(o, "samples_per_s", want->samples_per_s);
	json_put(root, "required", o);
}

static json_t *repeated_json(const struct repeated *x, bool passed, const char *why)
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
		AUTO_FREE char *path = path_join(x->folder, folder);
		struct run_name name;

		if (x->name_of)
			name = x->name_of[i];
		else
			run_name_read(&name, path);
		json_put_text(o, "folder", folder);
		run_name_put(o, &name);
		json_put_real(o, "whole_au_percent", x->run[i].au);
		json_put_real(o, "whole_throughput_samples_per_s", x->run[i].samples_per_s);
		json_put_real(o, "page_cache_percent", 100 * x->run[i].cached_share);
		json_put_text(o, "failed_verdicts", x->run[i].failed);
		json_put_bool(o, "warm_by_request", x->run[i].warm);
		json_array_append_new(runs, o);
	}
	json_put(root, "each", runs);
	if (why) {
		put_limits(root, &x->want);
		json_put_bool(root, "check_passed", passed);
		json_put_text(root, "check", why);
	}
	return root;
}

int repeated_write(const struct repeated *x, bool passed, const char *why, struct err *e)
{
	return seal_write(repeated_json(x, passed, why), x->folder, "repeat.json", e);
}

/* ---- made again ---- */

struct again {
	struct repeated x;
	const json_t *stated;
	bool gone; /* a run is not there */
};

static double stated_number(const json_t *o, const char *key)
{
	double v = derive_number(o, key);

	return isnan(v) ? 0 : v;
}

static void *begin_again(const json_t *stated, const char *folder)
{
	size_t rows = json_array_size(json_object_get(stated, "each"));
	const json_t *want = json_object_get(stated, "required");
	struct again *a = xcalloc(1, sizeof(*a));

	*a = (struct again){
		.x = {.name = derive_string(stated, "workload"),
		      .folder = xstrdup(folder),
		      .asked = json_integer_value(json_object_get(stated, "runs_asked")),
		      .ranks = json_integer_value(json_object_get(stated, "accelerators")),
		      .cold = json_is_true(json_object_get(stated, "cold_by_default")),
		      .want = {.check = json_is_true(json_object_get(want, "check")),
			       .au = stated_number(want, "au_percent"),
			       .samples_per_s = stated_number(want, "samples_per_s")},
		      .run = xcalloc(rows + 1, sizeof(*a->x.run)),
		      .name_of = xcalloc(rows + 1, sizeof(*a->x.name_of))},
		.stated = stated};
	return a;
}

static void take_again(void *of, const json_t *row, struct run_record *r, struct derive *d)
{
	struct again *a = of;
	size_t i = a->x.done++;
	struct gate_run *run = &a->x.run[i];
	const char *failed = derive_string(row, "failed_verdicts");
	bool warm = json_is_true(json_object_get(row, "warm_by_request"));
	struct err e = {0};

	run_name_stated(&a->x.name_of[i], row);
	const char *own = r && r->has_workload ? r->workload.output.folder : NULL;

	/* each was told its number */
	if (own && a->x.name_of[i].id[0])
		derive_text(d, derive_string(row, "folder"), path_basename(own), "its run",
			    "the number of run %zu of repeat.json", i + 1);
	if (r && audit_gate(r, run, &e) == 0) {
		derive_equal(d, (double)a->x.ranks, r->ranks, "its run",
			     "repeat.json accelerators");
		derive_text(d, a->x.name, sums_workload(r), "its run", "repeat.json workload");
		if (json_object_get(a->stated, "required"))
			derive_equal(d, a->x.want.au, 100 * r->workload.metric.au, "its run",
				     "repeat.json required.au_percent");
		derive_holds(
			d, !a->x.cold || r->workload.storage.page_cache == PAGE_CACHE_COLD_EPOCHS,
			"repeat.json says that its runs begin cold, but run %zu does not.", i + 1);
		derive_holds(d, run->warm || !warm,
			     "repeat.json says that run %zu asks for a warm page cache, but it "
			     "does not.",
			     i + 1);
	} else {
		a->gone = true;
		*run = (struct gate_run){
			.au = derive_number(row, "whole_au_percent"),
			.samples_per_s = derive_number(row, "whole_throughput_samples_per_s"),
			.cached_share = derive_number(row, "page_cache_percent") / 100};
		snprintf(run->failed, sizeof(run->failed), "%s", failed ? failed : "");
	}
	/* an override that was given is like one of the workload, when it is read back */
	run->warm = warm;
}

static void say_fewer(const struct again *a, struct derive *d)
{
	struct finding *f;

	if (a->x.done >= (size_t)a->x.asked)
		return;
	f = audit_add(d->audit, d->record, "complete", AUDIT_WARN);
	finding_say(f, "%zu of %lld repetitions that were asked for came to their end.", a->x.done,
		    (long long)a->x.asked);
	finding_advise(f, "An interval of runs that someone chose says nothing: repeat them all.");
}

static json_t *made_again(void *of, struct derive *d)
{
	struct again *a = of;
	const char *check = derive_string(a->stated, "check");
	struct buf why = {0};
	bool passed = json_is_true(json_object_get(a->stated, "check_passed"));
	json_t *made;

	say_fewer(a, d);
	buf_puts(&why, "");
	if (check && !a->gone && json_object_get(a->stated, "required"))
		passed = gate_passes(a->x.run, a->x.done, &a->x.want, &why);
	else if (check)
		buf_puts(&why, check);
	made = repeated_json(&a->x, passed, check ? why.data : NULL);
	buf_release(&why);
	return made;
}

static void release_again(void *of)
{
	struct again *a = of;

	free(a->x.folder);
	free(a->x.run);
	free(a->x.name_of);
	free(a);
}

const struct sums_ops sums_repeat = {
	.file = "repeat.json",
	.list = "each",
	.numbered = true,
	.told = "how many runs were asked for, whether a check was required, and whether the page "
		"cache was asked for; the required samples/s",
	.begin = begin_again,
	.take = take_again,
	.made = made_again,
	.release = release_again,
};
