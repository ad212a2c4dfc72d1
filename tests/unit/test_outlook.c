/* Predictions for runs made by hand, against what their numbers must lead to. */
#include "result_synth.h"

#include <math.h>

#include "judge/decompose.h"
#include "predict/costs.h"
#include "predict/outlook.h"
#include "predict/own_work.h"

#define STEPS 40

/* What one reader did, beside the others or not. */
struct reads {
	uint32_t workers;
	double read_s, decode_s; /* of a batch */
	bool in_step;            /* all begin and end together, 1 ns a byte of each */
};

static void add_read(struct io_stat *io, int64_t begin, int64_t took, uint64_t bytes)
{
	io_stat_add(io, IO_DATA, took, bytes, (int64_t)bytes);
	read_log_add(&io->reads, begin, begin + took, bytes, 0, 0);
}

/* A run of one rank that waits `load` s in each step and computes 20 ms. */
static void begin(struct synth *s, const char *loader, const struct reads *q, double load)
{
	const char *framework = strstr(loader, "tensorflow") ? "tensorflow" : "pytorch";
	char text[48];
	const char *const overrides[] = {loader, text, "dataset.format=npy", "reader.batch_size=4",
					 NULL};
	struct epoch_split *split;
	struct rank_result *rank;
	int64_t at = SYNTH_EPOCH_NS;

	snprintf(text, sizeof(text), "framework=%s", framework);
	synth_begin(s, 1, 1, overrides);
	synth_even(s, 0, 0, STEPS, load, load, 0.02);
	rank = &s->r.rank[0];
	rank->workers = q->workers;
	rank->prefetch_batches = strstr(loader, "pytorch") ? 2 * q->workers : 2;
	s->w.reader.read_threads = q->workers;
	s->w.reader.prefetch_size = (int64_t)rank->prefetch_batches;
	split = &rank->epoch[0].split;
	split->batches = STEPS;
	split->work_ns[WORK_DATA] = synth_ns(STEPS * q->read_s);
	split->work_ns[WORK_DECODE] = synth_ns(STEPS * q->decode_s);
	split->wait_ns[WAIT_DATA] = synth_ns(STEPS * load);
	split->service_ns = 1e9 * STEPS * (q->read_s + q->decode_s);
	split->service_sq = split->service_ns * split->service_ns / STEPS;
	s->r.usage[0].cpu_ns = synth_ns(STEPS * q->decode_s);
	s->r.usage[0].wall_ns = s->r.rank[0].epoch[0].block[0].end_ns - at;
	for (int i = 0; i < STEPS * 4; i++) {
		int64_t took = synth_ns(q->read_s / 4);
		int beside = q->in_step ? (int)q->workers : 1 + i % 3;

		for (int k = 0; k < beside; k++)
			add_read(&rank->train_io, at, took, 65536);
		at += 2 * took;
	}
	for (int k = 0; k < IO_KINDS; k++)
		rank->train_io.kind[k].returned_bytes = 0;
	rank->train_io.kind[IO_DATA].returned_bytes = STEPS * 4 * 65536;
	for (int k = 0; k < IO_CLASSES; k++)
		rank->train_io.sized[IO_DATA - IO_META][k].total = k == 1 ? STEPS * 4 : 0;
}

/* Where a probe's readers got no more than so many samples/s; 0: it is not known. */
static const struct outlook *look_below(struct synth *s, double plateau)
{
	struct store_law law;

	decompose(&s->r, 0, 1, &s->r.judged.time);
	law = costs_store_law(&s->r);
	law.plateau = plateau;
	outlook_compute(&s->r, 1, &law, NULL, NAN, &s->r.judged.outlook, NULL);
	return &s->r.judged.outlook;
}

static const struct outlook *look(struct synth *s)
{
	return look_below(s, 0);
}

static const struct what_if *find_change(const struct outlook *o, const char *words)
{
	for (uint32_t i = 0; i < o->changes; i++)
		if (strcmp(o->change[i].keys, words) == 0 ||
		    strcmp(reason_name(o->change[i].what.reason), words) == 0)
			return &o->change[i];
	return NULL;
}

static const struct what_if *change(const struct outlook *o, const char *words)
{
	static const struct what_if none;
	const struct what_if *w = find_change(o, words);

	if (!w)
		fail_msg("no change '%s'", words);
	return w ? w : &none;
}

/* Two workers, 80 ms a batch: 40 ms a step, AU 50 %. What reads take does not change with their
 * company, but there were never more than three under way: nobody knows what four workers get. */
static void latency(void **state)
{
	const struct reads q = {.workers = 2, .read_s = 0.08};
	const struct what_if *w;
	const struct outlook *o;
	struct synth s;

	(void)state;
	begin(&s, "reader.data_loader=pytorch", &q, 0.02);
	o = look(&s);
	assert_true(o->known && !o->sharing_known && !o->needed_known);
	assert_int_equal(o->untold.reason, REASON_UNTOLD_READS);
	assert_near(o->untold.figure[0], 3, 0);
	assert_near(o->measured_au, 50, 1e-6);
	assert_near(o->modeled_au, 50, 2);
	w = change(o, "reader.read_threads=4 reader.prefetch_size=8");
	/* three at once, or more */
	assert_true(!w->known && isnan(w->low) && isnan(w->high));
	assert_near(w->au, 92, 6); /* but for the first batch */
	w = change(o, "reader.read_threads=1 reader.prefetch_size=2");
	assert_near(w->au, 25, 2);
	w = change(o, "reader.batch_size=8");
	assert_near(w->au, 25, 2);
	w = change(o, "reader.prefetch_size=8");
	assert_near(w->au, 50, 2);
	assert_near(w->rate_now, 4 * 65536 / 0.04, 1e4);
	/* whether it is a latency is not known either */
	assert_null(find_change(o, "change.latency"));
	assert_non_null(find_change(o, "change.storage"));
	synth_end(&s);
}

/* 200 samples/s are needed, and no number of readers got more than 120. */
static void plateau(void **state)
{
	const struct reads q = {.workers = 2, .read_s = 0.08};
	const struct what_if *w;
	const struct outlook *o;
	struct synth s;

	(void)state;
	begin(&s, "reader.data_loader=pytorch", &q, 0.02);
	o = look_below(&s, 120);
	assert_true(o->known);
	assert_int_equal(o->workers_needed, 0);
	w = change(o, "reader.read_threads=8 reader.prefetch_size=16");
	assert_near(w->au, 60, 0.1);
	assert_true(!w->known || w->high < 80);
	/* another store is none of the probe's */
	w = change(o, "change.storage");
	assert_true(w->au > 80);
	/* what the run itself had is possible, whatever the probe got */
	o = look_below(&s, 50);
	w = change(o, "reader.read_threads=8 reader.prefetch_size=16");
	assert_near(w->au, 50, 0.1);
	synth_end(&s);
}

/* Readers that always have the same company may share, or not. */
static void unknown(void **state)
{
	const struct reads q = {.workers = 2, .read_s = 0.08, .in_step = true};
	const struct what_if *w;
	const struct outlook *o;
	struct synth s;

	(void)state;
	begin(&s, "reader.data_loader=pytorch", &q, 0.02);
	o = look(&s);
	assert_true(o->known && !o->sharing_known && !o->needed_known);
	w = change(o, "reader.read_threads=4 reader.prefetch_size=8");
	assert_false(w->known);
	assert_true(isnan(w->low) && isnan(w->high));
	w = change(o, "reader.prefetch_size=8");
	assert_true(w->known);
	synth_end(&s);
}

/* 60 ms of decoding a batch on two processors: a third worker does not help. */
static void processors(void **state)
{
	const struct reads q = {.workers = 2, .read_s = 0.004, .decode_s = 0.076};
	const struct outlook *o;
	struct synth s;

	(void)state;
	begin(&s, "reader.data_loader=pytorch", &q, 0.02);
	o = look(&s);
	assert_true(o->known);
	assert_near(change(o, "reader.read_threads=4 reader.prefetch_size=8")->au, 51, 3);
	assert_int_equal(o->workers_needed, 0);
	assert_true(change(o, "reader.decode=none")->au > 90);
	synth_end(&s);
}

/* Preprocessing waits, so more workers speed the run up; a job that does it on the two processors
 * of this machine gets what they can do: 20 ms in every 40. The interval holds both. */
static void preprocessing(void **state)
{
	const struct reads q = {.workers = 2, .read_s = 0.004};
	const struct what_if *w;
	const struct outlook *o;
	struct fact_list said = {0};
	struct synth s;

	(void)state;
	for (int many = 0; many <= 1; many++) {
		begin(&s, "reader.data_loader=pytorch", &q, 0.02);
		s.r.host.cpu_count = many ? 64 : 2;
		s.r.rank[0].epoch[0].split.work_ns[WORK_PREPROCESS] = synth_ns(STEPS * 0.076);
		s.r.rank[0].epoch[0].split.service_ns = 1e9 * STEPS * 0.08;
		s.r.rank[0].epoch[0].split.service_sq = 1e18 * STEPS * 0.08 * 0.08;
		o = look(&s);
		assert_true(o->known);
		w = change(o, "reader.read_threads=4 reader.prefetch_size=8");
		assert_true(w->au > 85);
		assert_true(o->workers_needed >= 4 && o->workers_needed <= 5);
		said.count = 0;
		outlook_tell_best(o, 2, false, false, &said);
		assert_int_equal(said.fact[0].reason, REASON_REMEDY_WORKERS);
		if (many) {
			assert_true(isnan(w->here) && o->needed_low > 70);
			assert_int_equal(said.count, 1);
		} else {
			assert_near(w->here, 51, 3);
			assert_true(w->low <= w->here && o->needed_low <= o->needed_here);
			assert_int_equal(said.fact[1].reason, REASON_EFFECT_WORKERS_HERE);
			assert_near(said.fact[1].figure[0], o->workers_needed, 0);
			assert_near(said.fact[1].figure[1], 2, 0);
		}
		synth_end(&s);
	}
}

/* The same numbers, other rules: a generator is three batches ahead whatever is prefetched, and the
 * external source cuts a batch over its workers. */
static void loaders(void **state)
{
	const struct reads q = {.workers = 2, .read_s = 0.08};
	const struct outlook *o;
	struct synth s;

	(void)state;
	begin(&s, "reader.data_loader=tensorflow", &q, 0.02);
	o = look(&s);
	assert_true(o->known);
	assert_near(change(o, "reader.read_threads=1")->au, 25, 2);
	assert_true(isnan(o->unordered_au));
	synth_end(&s);
	begin(&s, "reader.data_loader=dali", &q, 0.02);
	o = look(&s);
	assert_true(o->known);
	assert_near(o->modeled_au, 50, 3);
	assert_true(change(o, "reader.read_threads=4")->au > 85);
	synth_end(&s);
	begin(&s, "reader.data_loader=native_dali", &q, 0.02);
	o = look(&s);
	assert_false(o->known);
	assert_int_equal(o->why.reason, REASON_NO_MODEL_LOADER);
	synth_end(&s);
}

/* ---- what a framework's own code would take ---- */

static struct framework_costs *profile(const char *laws)
{
	struct err e = {0};
	char text[512];
	struct framework_costs *f;
	struct node *doc;

	snprintf(text, sizeof(text), "name: torch-9.2\nlaws: {%s}\n", laws);
	doc = yaml_parse(text, strlen(text), "a profile", &e);
	f = doc ? costs_from_node(doc, false, &e) : NULL;
	node_free(doc);
	if (!f)
		fail_msg("%s", e.text);
	return f;
}

static const struct costs_effect *effect(struct synth *s, const char *laws)
{
	struct framework_costs *f = profile(laws);
	struct store_law law;

	decompose(&s->r, 0, 1, &s->r.judged.time);
	law = costs_store_law(&s->r);
	outlook_compute(&s->r, 1, &law, f, 99.5, &s->r.judged.outlook, NULL);
	costs_release(f);
	return &s->r.judged.outlook.costs;
}

/* The same of a run that has spent what its own profile says. */
static const struct costs_effect *spent(struct synth *s)
{
	struct store_law law;

	decompose(&s->r, 0, 1, &s->r.judged.time);
	law = costs_store_law(&s->r);
	outlook_compute(&s->r, 1, &law, s->w.costs, NAN, &s->r.judged.outlook, NULL);
	return &s->r.judged.outlook.costs;
}

/* Each law where it belongs; of loading what the run's own readers did not do. */
static void own_work(void **state)
{
	const struct reads q = {.workers = 2, .read_s = 0.08, .decode_s = 0.004};
	struct framework_costs *f;
	struct costs c = {.samples = 4, .decode = 0.004};
	struct own_work o;
	struct synth s;

	(void)state;
	begin(&s, "reader.data_loader=pytorch", &q, 0.02);
	s.r.rank[0].train_io.kind[IO_OPEN].requests = 2 * 4 * STEPS;
	decompose(&s.r, 0, 1, &s.r.judged.time);
	f = profile("load_npy: {fixed: 0.002, per_sample: 0.001, per_byte: 1.0e-8}, "
		    "sample: {per_sample: 0.0001}, collate: {fixed: 0.001, per_sample: 0.0002, "
		    "per_byte: 1.0e-9}, pack: {fixed: 0.003}, hand_over: {fixed: 0.004, per_byte: "
		    "1.0e-9}, step: {fixed: 0.005}, start_worker: {fixed: 0.006}, begin_worker: "
		    "{fixed: 0.007}");
	s.w.compat.dlio = true; /* whose own code is a part of it */
	assert_true(own_work_of(f, &s.r, 1, &c, s.w.compat.dlio, &o));
	/* 4 files, 4 samples of 64 KiB, less 4 ms; and the rest of a batch */
	assert_near(o.batch_s,
		    0.008 + 0.004 + 262144e-8 - 0.004 + 0.0004 + 0.001 + 0.0008 + 262144e-9 + 0.003,
		    1e-9);
	assert_near(o.take_s, 0.004 + 262144e-9, 1e-9);
	assert_near(o.step_s, 0.005, 1e-9);
	assert_near(o.fork_s, 0.006, 1e-9);
	assert_near(o.begin_s, 0.007, 1e-9);
	c.data_bytes = 1e6; /* texts are longer than what comes of them */
	assert_true(own_work_of(f, &s.r, 1, &c, s.w.compat.dlio, &o));
	assert_near(o.batch_s,
		    0.008 + 0.004 + 0.01 - 0.004 + 0.0004 + 0.001 + 0.0008 + 262144e-9 + 0.003,
		    1e-9);
	c.decode = 1; /* slower than the framework: nothing is taken off the rest */
	assert_true(own_work_of(f, &s.r, 1, &c, s.w.compat.dlio, &o));
	assert_near(o.batch_s, 0.0004 + 0.001 + 0.0008 + 262144e-9 + 0.003, 1e-9);
	s.r.rank[0].workers = 0; /* nobody to start, nothing to hand over */
	assert_true(own_work_of(f, &s.r, 1, &c, s.w.compat.dlio, &o));
	assert_near(o.batch_s, 0.0004, 1e-9);
	assert_true(o.take_s == 0 && o.fork_s == 0 && o.begin_s == 0 && o.step_s > 0);
	s.w.compat.dlio = false;
	assert_true(own_work_of(f, &s.r, 1, &c, s.w.compat.dlio, &o));
	assert_true(o.step_s == 0 && o.batch_s == 0); /* "inline", not "collate", without workers */
	costs_release(f);
	f = profile("load_npz: {fixed: 0.002}, collate: {fixed: 0.001}");
	assert_false(own_work_of(f, &s.r, 1, &c, s.w.compat.dlio, &o)); /* no law for the format */
	costs_release(f);
	synth_end(&s);
}

/* Code that runs again after a wait: for requests, between batches, for the computation. */
static void own_work_after_waits(void **state)
{
	const struct reads q = {.workers = 2, .read_s = 0.08};
	struct costs c = {.samples = 4, .service = 0.08, .reads = 0.016, .open = 0.008};
	struct framework_costs *f;
	struct own_work o;
	struct synth s;

	(void)state;
	begin(&s, "reader.data_loader=pytorch", &q, 0.02);
	decompose(&s.r, 0, 1, &s.r.judged.time);
	f = profile("load_npy: {after_wait: 0.001}, hand_over: {after_wait: 0.002}");
	/* 6 ms a sample; readers that never wait for the rank, but it 40 ms for them */
	assert_true(own_work_of(f, &s.r, 1, &c, s.w.compat.dlio, &o));
	assert_near(o.batch_s, 0.004 * (1 - exp(-6 / 4.)), 1e-6);
	assert_near(o.take_s, 0.002, 1e-6);
	c.service = 0.024; /* 40 ms for two batches, and the rank's 2 ms for each */
	assert_true(own_work_of(f, &s.r, 1, &c, s.w.compat.dlio, &o));
	assert_near(o.batch_s, 0.003 * (1 - exp(-6 / 4.)) + 0.001 * (1 - exp(-(6 + 16.6) / 4.)),
		    5e-6);
	s.r.rank[0].workers = 0; /* the first sample comes after the computation */
	assert_true(own_work_of(f, &s.r, 1, &c, s.w.compat.dlio, &o));
	assert_near(o.batch_s, 0.003 * (1 - exp(-6 / 4.)) + 0.001 * (1 - exp(-26 / 4.)), 1e-6);
	costs_release(f);
	/* of 5 requests of 3.2 ms a sample all but one; after a longer wait all of them */
	f = profile("load_npy: {after_each_wait: 0.001}");
	c = (struct costs){.samples = 4, .service = 0.08, .reads = 0.064, .requests = 20};
	s.r.rank[0].workers = 2;
	assert_true(own_work_of(f, &s.r, 1, &c, s.w.compat.dlio, &o));
	assert_near(o.batch_s, 16 * 0.001 * (1 - exp(-3.2 / 12)), 1e-6);
	s.r.rank[0].workers = 0;
	assert_true(own_work_of(f, &s.r, 1, &c, s.w.compat.dlio, &o));
	assert_near(o.batch_s, 17 * 0.001 * (1 - exp(-3.2 / 12)), 1e-6);
	c.reads = 0.0016; /* too short to be waits */
	assert_true(own_work_of(f, &s.r, 1, &c, s.w.compat.dlio, &o));
	assert_near(o.batch_s, 0, 1e-6);
	costs_release(f);
	synth_end(&s);
}

/* AU 50 % by two workers that take 80 ms for a batch. */
static void framework_costs(void **state)
{
	const struct reads q = {.workers = 2, .read_s = 0.08},
			   fast = {.workers = 2, .read_s = 0.02};
	const struct reads half = {.workers = 2, .read_s = 0.04, .decode_s = 0.04};
	const struct costs_effect *c;
	struct synth s;

	(void)state;
	begin(&s, "reader.data_loader=pytorch", &q, 0.02);
	c = effect(&s, "load_npy: {per_sample: 0.005}"); /* 100 ms a batch */
	assert_true(c->said && !c->spent);
	assert_near(c->au, 40, 1.5);
	assert_true(c->low < c->au && c->au < c->high);
	assert_string_equal(c->profile, "torch-9.2");
	assert_int_equal(costs_effect_fact(c).reason, REASON_COSTS_WITH);
	assert_string_equal(costs_effect_fact(c).text[0], "torch 9.2");
	c = effect(&s, "load_npy: {per_sample: 0.0001}"); /* 80.4 ms */
	assert_false(c->said);
	/* the rank waits for batches anyway */
	c = effect(&s, "load_npy: {per_sample: 0}, hand_over: {fixed: 0.004}");
	assert_false(c->said);
	/* 40 steps of 40 ms */
	c = effect(&s, "load_npy: {per_sample: 0}, start_worker: {fixed: 0.2}");
	assert_true(c->said);
	assert_near(c->au, 40, 2);
	c = effect(&s, "load_npz: {per_sample: 0.005}");
	assert_false(c->said);
	synth_end(&s);
	/* limited by computation: what workers need is hidden, what ranks need is not */
	begin(&s, "reader.data_loader=pytorch", &fast, 0.0001);
	c = effect(&s, "load_npy: {per_sample: 0.002}, collate: {fixed: 0.004}");
	assert_false(c->said);
	c = effect(&s, "load_npy: {per_sample: 0}, hand_over: {fixed: 0.0003}"); /* 1.5 points */
	assert_false(c->said);
	c = effect(&s, "load_npy: {per_sample: 0.002}, hand_over: {fixed: 0.002}");
	assert_true(c->said);
	assert_near(c->au, 90, 1.5);
	synth_end(&s);
	/* a run that spent 40 of the 80 ms of a batch */
	begin(&s, "reader.data_loader=pytorch", &half, 0.02);
	s.w.costs = profile("load_npy: {per_sample: 0.01}");
	s.r.rank[0].epoch[0].split.work_ns[WORK_DECODE] = 0;
	s.r.rank[0].epoch[0].split.work_ns[WORK_FRAMEWORK] = synth_ns(STEPS * 0.04);
	c = spent(&s);
	assert_true(c->said && c->spent);
	assert_near(c->au, 96, 3);
	assert_int_equal(costs_effect_fact(c).reason, REASON_COSTS_WITHOUT);
	s.r.rank[0].epoch[0].split.work_ns[WORK_DECODE] = synth_ns(STEPS * 0.039);
	s.r.rank[0].epoch[0].split.work_ns[WORK_FRAMEWORK] = synth_ns(STEPS * 0.001);
	assert_false(spent(&s)->said);
	synth_end(&s);
	begin(&s, "reader.data_loader=tensorflow", &q, 0.02);
	assert_false(effect(&s, "load_npy: {per_sample: 0.005}")->spent);
	synth_end(&s);
}

/* What the line says: as DLIO would run it, by both definitions of AU, with DLIO's own code apart
 * from the framework's; and in every run, whatever else is known of it. */
static void dlio_costs(void **state)
{
	const struct reads q = {.workers = 2, .read_s = 0.08},
			   fast = {.workers = 2, .read_s = 0.02};
	const struct costs_effect *c;
	struct synth s;

	(void)state;
	begin(&s, "reader.data_loader=pytorch", &fast, 0.0001);
	/* 24 samples of the rank: 24 ms a sample of DLIO's own, 48 ms a batch for each step */
	c = effect(&s, "load_npy: {per_sample: 0}, index: {per_sample: 0.001}");
	assert_true(c->said);
	assert_near(c->au, 100 * 0.02 / ((0.096 + 0.02) / 2), 2);
	assert_near(c->loop_au, 100, 1);
	/* starting takes its time before the first step, which DLIO's definition leaves out */
	c = effect(&s, "load_npy: {per_sample: 0}, begin_dlio: {fixed: 0.2}");
	assert_true(c->said);
	assert_near(c->au, 80, 2);
	assert_near(c->dlio_au, 100, 1);
	assert_near(c->loop_au, 100, 1);
	/* more than two points are said, however little is sure */
	c = effect(&s, "load_npy: {per_sample: 0}, hand_over: {fixed: 0.0006}");
	assert_true(c->said);
	assert_near(c->au, 97, 0.5);
	/* DLIO leaves out all files of a dataset with too few of them */
	s.d.samples_per_file = 12;
	assert_false(effect(&s, "load_npy: {per_sample: 0.01}")->said);
	s.d.samples_per_file = 2; /* 24 files: 6 steps of 8, so that the start weighs more */
	s.r.rank[0].workers = 2;
	c = effect(&s, "load_npy: {per_sample: 0}, begin_dlio: {fixed: 0.2}");
	assert_near(c->au, 100 * 12 * 0.02 / (12 * 0.02 + 0.2), 3);
	synth_end(&s);
	/* no model of the reads: at most the store makes up for all of it */
	begin(&s, "reader.data_loader=pytorch", &q, 0.02);
	s.r.rank[0].epoch[0].split.work_ns[WORK_DATA] /= 10;
	s.r.rank[0].epoch[0].split.service_ns /= 10;
	c = effect(&s, "load_npy: {per_sample: 0.1}");
	assert_false(s.r.judged.outlook.known);
	assert_true(c->said && c->au < 50);
	assert_true(c->high >= 50);
	synth_end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(latency),         cmocka_unit_test(plateau),
		cmocka_unit_test(unknown),         cmocka_unit_test(processors),
		cmocka_unit_test(preprocessing),   cmocka_unit_test(loaders),
		cmocka_unit_test(own_work),        cmocka_unit_test(own_work_after_waits),
		cmocka_unit_test(framework_costs), cmocka_unit_test(dlio_costs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
