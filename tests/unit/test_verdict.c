/* What the verdicts say about runs whose truth is known, the study's mistakes among them. */
#include "base/str.h"
#include "judge/verdict.h"
#include "result_synth.h"

#include <math.h>

/* Its sentences, which stay until the next call but one. */
static const char *said(const struct verdict *v)
{
	static char text[2][2048];
	static int at;
	struct buf b = {0};

	words_put_all(&b, &v->facts, 0, v->facts.count, WORDS_LONG);
	at = !at;
	snprintf(text[at], sizeof(text[at]), "%s", b.data ? b.data : "");
	buf_release(&b);
	return text[at];
}

/* Whether it says so; where sentences are replaced by their names, there is nothing to look at. */
static bool says(const struct verdict *v, const char *words)
{
#ifdef STOKER_BARE_WORDS
	(void)words;
	return v->facts.count > 0;
#else
	return strcasestr(said(v), words) != NULL;
#endif
}

static void judge(struct synth *s)
{
	synth_metrics(s);
	synth_judge(s);
	for (uint32_t i = 0; i < s->r.judged.verdicts; i++) {
		const char *t = said(&s->r.judged.verdict[i]);

		assert_true(t[0]);
		assert_null(strstr(t, "nan"));
		assert_null(strstr(t, "inf "));
	}
}

static void expect(const struct synth *s, const char *check, enum verdict_level level,
		   const char *words)
{
	const struct verdict *v = synth_verdict(s, check);

	if (!v->check[0])
		fail_msg("no verdict '%s'", check);
	if (v->level != level || (words && !says(v, words)))
		fail_msg("%s: level %d (not %d), '%s' (wanted '%s')", check, v->level, level,
			 said(v), words ? words : "");
}

/* Requests as if every payload byte had been asked for once. */
static void fill_io(struct synth *s, double device_share)
{
	for (uint32_t k = 0; k < s->r.ranks; k++) {
		struct io_stat *io = &s->r.rank[k].train_io;

		for (uint32_t i = 0; i < s->r.epochs_begun; i++) {
			uint64_t bytes = s->r.rank[k].epoch[i].payload_bytes;

			io->kind[IO_DATA].requests += 10;
			io->kind[IO_DATA].asked_bytes += bytes;
			io->kind[IO_DATA].returned_bytes += bytes;
			s->r.usage[i].train.known = true;
			s->r.usage[i].train.rchar_bytes += bytes;
			s->r.usage[i].train.read_bytes += (uint64_t)((double)bytes * device_share);
		}
	}
}

/* A dataset of 16 GiB in 16384 files, all looked at, `start` and `end` GiB of it cached. */
static void fill_cache(struct synth *s, uint32_t epoch, double start, double end)
{
	const struct residency c = {.known = true,
				    .files = 16384,
				    .looked = 16384,
				    .bytes = 16ull << 30,
				    .file_system = "ext4"};
	struct epoch_usage *u = &s->r.usage[epoch];

	u->cache_start = u->cache_end = c;
	u->cache_start.cached_bytes = (uint64_t)(start * 1073741824);
	u->cache_end.cached_bytes = (uint64_t)(end * 1073741824);
}

static void calm(struct synth *s)
{
	fill_io(s, 1);
	snprintf(s->r.presence.note, sizeof(s->r.presence.note), "The manifest matches.");
	for (uint32_t i = 0; i < s->r.epochs_done; i++) {
		s->r.usage[i].wall_ns = 1000000000;
		s->r.usage[i].cpu_ns = 200000000;
		fill_cache(s, i, 0, 0);
	}
}

static void good_run(void **state)
{
	struct synth s;

	(void)state;
	synth_begin(&s, 2, 2, NULL);
	for (uint32_t k = 0; k < 2; k++)
		for (uint32_t i = 0; i < 2; i++)
			synth_even(&s, k, i, 60, 0.01, 0.001, 0.02);
	calm(&s);
	judge(&s);
	for (uint32_t i = 0; i < s.r.judged.verdicts; i++)
		if (s.r.judged.verdict[i].level != VERDICT_PASS &&
		    strcmp(s.r.judged.verdict[i].check, "config") != 0)
			fail_msg("%s: %s", s.r.judged.verdict[i].check,
				 said(&s.r.judged.verdict[i]));
	expect(&s, "steady", VERDICT_PASS, "59 steps");
	expect(&s, "bytes", VERDICT_PASS, "the storage was measured");
	assert_string_equal(synth_verdict(&s, "complete")->check, "");
	assert_string_equal(synth_verdict(&s, "evaluation")->check, "");
	/* judging twice says the same once */
	uint32_t before = s.r.judged.verdicts;

	synth_judge(&s);
	assert_int_equal(s.r.judged.verdicts, before);
	synth_end(&s);
}

/* The study's best row: 4 steps, 8 batches prefetched; AU 86.5 % reported, 22.4 % by wall time. */
static void the_trap(void **state)
{
	double compute = 0.323, load = 0.0504;
	double first = 4 * compute / 0.224 - 4 * compute - 3 * load;
	struct synth s;

	(void)state;
	synth_begin(&s, 6, 5, NULL);
	for (uint32_t k = 0; k < 6; k++) {
		s.r.rank[k].prefetch_batches = 8;
		for (uint32_t i = 0; i < 5; i++)
			synth_even(&s, k, i, 4, first, load, compute);
	}
	calm(&s);
	judge(&s);
	assert_near(s.m.train_au.mean, 86.5, 0.1);
	assert_near(s.m.whole_au.mean, 22.4, 1e-6);
	expect(&s, "steady", VERDICT_FAIL, "Not steady: 4 steps per epoch");
	expect(&s, "steady", VERDICT_FAIL, "8 batches prefetched");
	expect(&s, "steady", VERDICT_FAIL,
	       "Whole-run AU is 22.4 %; AU by DLIO's definition, 86.5 %, shows how fast the "
	       "prefetch queue was emptied.");
	expect(&s, "whole-run", VERDICT_PASS, "22.4 %");
	synth_end(&s);
}

/* Rows of the study, by their AU, whole-run AU, steps and batches prefetched. */
static void the_study(void **state)
{
	static const struct {
		double au, whole;
		uint64_t steps, ahead;
		enum verdict_level level;
	} rows[] = {
		{77.9, 22.0, 3, 8, VERDICT_FAIL},   /* 8 processes */
		{97.5, 73.0, 6, 8, VERDICT_FAIL},   /* hdf5 */
		{21.1, 9.7, 6, 8, VERDICT_FAIL},    /* png */
		{27.5, 26.5, 6, 2, VERDICT_PASS},   /* 1 thread: the two agree */
		{80.9, 22.2, 6, 16, VERDICT_FAIL},  /* 8 threads */
		{98.4, 94.7, 42, 8, VERDICT_WARN},  /* batch 1 */
		{62.4, 43.8, 10, 8, VERDICT_FAIL},  /* batch 4 */
		{98.4, 97.0, 6, 8, VERDICT_WARN},   /* too few steps, but both agree */
		{90.0, 80.0, 200, 8, VERDICT_WARN}, /* a slow first step of a long epoch */
		{90.0, 89.0, 200, 0, VERDICT_PASS},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		double c = 0.323, load = c * 100 / rows[i].au - c, n = (double)rows[i].steps;
		double first = n * c * 100 / rows[i].whole - n * c - (n - 1) * load;
		struct synth s;

		synth_begin(&s, 1, 1, NULL);
		s.r.rank[0].prefetch_batches = rows[i].ahead;
		synth_even(&s, 0, 0, rows[i].steps, first, load, c);
		calm(&s);
		judge(&s);
		assert_near(s.m.train_au.mean, rows[i].au, 0.01);
		assert_near(s.m.whole_au.mean, rows[i].whole, 0.01);
		if (synth_verdict(&s, "steady")->level != rows[i].level)
			fail_msg("row %zu: %s", i, said(synth_verdict(&s, "steady")));
		synth_end(&s);
	}
}

/* Storage-bound: the first step pays for the queue, which then serves the measured ones. AU has no
 * points to lose; the throughput shows it. */
static void rate_trap(void **state)
{
	static const char *const none[] = {"train.computation_time=0", NULL};
	static const struct {
		double compute, measured, whole; /* s, samples/s */
		uint64_t steps, ahead;
		enum verdict_level level;
		const char *words;
	} rows[] = {
		{0, 94.9, 66.4, 20, 16, VERDICT_FAIL,
		 "throughput of 94.9 samples/s shows how fast the prefetch queue was emptied; over "
		 "the whole run it is 66.4"},
		{0.0001, 94.9, 66.4, 20, 16, VERDICT_FAIL, "At least 161 steps"},
		{0, 100, 92, 20, 8, VERDICT_WARN, "Barely steady: 42 %"},
		{0, 100, 88, 200, 8, VERDICT_WARN, "Steady after a slow start"},
		{0, 100, 96, 20, 16, VERDICT_PASS, "100.0 samples/s in the measured steps, 96.0"},
		{0, 100, 94, 200, 8, VERDICT_PASS, NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		double n = (double)rows[i].steps, step = 2 / rows[i].measured;
		double first = 2 * n / rows[i].whole - (n - 1) * step - rows[i].compute;
		struct synth s;

		synth_begin(&s, 1, 1, none);
		s.r.rank[0].prefetch_batches = rows[i].ahead;
		synth_even(&s, 0, 0, rows[i].steps, first, step - rows[i].compute, rows[i].compute);
		calm(&s);
		judge(&s);
		assert_near(s.m.train_throughput.mean, rows[i].measured, 0.01);
		assert_near(s.m.whole_throughput.mean, rows[i].whole, 0.01);
		expect(&s, "steady", rows[i].level, rows[i].words);
		synth_end(&s);
	}
}

/* The same steps are the same length of a run, however DLIO counts its throughput. */
static void length_with_compat(void **state)
{
	static const char *const modes[2][2] = {{"compat.dlio=false", NULL},
						{"compat.dlio=true", NULL}};
	static const double loads[] = {0.0001, 0.004, 0.02, 0.3};

	(void)state;
	for (uint64_t steps = 1; steps <= 30; steps = steps < 4 ? steps + 1 : steps * 2)
		for (size_t i = 0; i < 16; i++) {
			char text[2][2048];
			enum verdict_level level[2];

			for (int mode = 0; mode < 2; mode++) {
				struct synth s;
				const struct verdict *v;

				synth_begin(&s, 1, 2, modes[mode]);
				s.r.rank[0].prefetch_batches = 2;
				for (uint32_t e = 0; e < 2; e++)
					synth_even(&s, 0, e, steps, loads[i / 4], loads[i % 4],
						   0.1);
				calm(&s);
				judge(&s);
				v = synth_verdict(&s, "steady");
				level[mode] = v->level;
				snprintf(text[mode], sizeof(text[mode]), "%s", said(v));
				synth_end(&s);
			}
			if (level[0] != level[1])
				fail_msg("%llu steps: %s | %s", (unsigned long long)steps, text[0],
					 text[1]);
			assert_string_equal(text[0], text[1]);
		}
}

static void no_window(void **state)
{
	struct synth s;

	(void)state;
	synth_begin(&s, 1, 1, NULL);
	synth_even(&s, 0, 0, 1, 1.0, 0.1, 0.25);
	calm(&s);
	judge(&s);
	expect(&s, "steady", VERDICT_FAIL, "exclude_start_steps=1");
	expect(&s, "steady", VERDICT_FAIL, "Whole-run AU is 20.0 %");
	synth_end(&s);
	synth_begin(&s, 1, 1, NULL);
	s.r.epochs_done = 0;
	s.r.status = RUN_INTERRUPTED;
	err_set(&s.r.reason, ERR_CANCELED, "interrupted by a signal");
	judge(&s);
	expect(&s, "steady", VERDICT_UNKNOWN, "No training epoch");
	expect(&s, "complete", VERDICT_FAIL, "interrupted after 0 of 1 epochs");
	expect(&s, "complete", VERDICT_FAIL, "by a signal");
	expect(&s, "order", VERDICT_UNKNOWN, NULL);
	synth_end(&s);
}

static void ranks_differ(void **state)
{
	struct synth s;

	(void)state;
	synth_begin(&s, 6, 1, NULL);
	for (uint32_t k = 0; k < 6; k++)
		synth_even(&s, k, 0, 100, 0.1, k ? 0.001 + 0.001 * k : 0.0, 0.02);
	calm(&s);
	judge(&s);
	expect(&s, "whole-run", VERDICT_WARN, "Ranks differ");
	expect(&s, "whole-run", VERDICT_WARN, "to 100.0 %");
	synth_end(&s);
	/* a cold first epoch, a warm second one */
	synth_begin(&s, 1, 2, NULL);
	synth_even(&s, 0, 0, 100, 0.1, 0.02, 0.02);
	synth_even(&s, 0, 1, 100, 0.1, 0.001, 0.02);
	calm(&s);
	judge(&s);
	expect(&s, "whole-run", VERDICT_WARN, "in epoch 1 and");
	assert_false(says(synth_verdict(&s, "whole-run"), "anks differ"));
	synth_end(&s);
}

static void bytes(void **state)
{
	static const char *const memory[] = {"storage.store=throttle+memory", NULL};
	static const struct {
		double share;
		enum verdict_level level;
		const char *words;
	} rows[] = {
		{0, VERDICT_WARN,
		 "The device delivered 0 % of that (0 B). The page cache, not the storage, was "
		 "measured"},
		{0.5, VERDICT_WARN, "the page cache served the other 50 %"},
		{0.95, VERDICT_PASS, "the storage was measured"},
		{1.5, VERDICT_PASS, "read-ahead"},
	};
	struct synth s;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		synth_begin(&s, 1, 2, NULL);
		synth_even(&s, 0, 0, 20, 0.01, 0.001, 0.02);
		synth_even(&s, 0, 1, 20, 0.01, 0.001, 0.02);
		fill_io(&s, rows[i].share);
		judge(&s);
		expect(&s, "bytes", rows[i].level, rows[i].words);
		expect(&s, "bytes", rows[i].level,
		       "5 MiB of sample data (decoded) were delivered. ");
		synth_end(&s);
	}
	synth_begin(&s, 1, 1, memory);
	synth_even(&s, 0, 0, 20, 0.01, 0.001, 0.02);
	fill_io(&s, 0);
	judge(&s);
	expect(&s, "bytes", VERDICT_UNKNOWN, "'throttle+memory' has no device");
	synth_end(&s);
	synth_begin(&s, 1, 1, NULL);
	synth_even(&s, 0, 0, 20, 0.01, 0.001, 0.02);
	fill_io(&s, 1);
	s.r.usage[0].train.known = false;
	judge(&s);
	expect(&s, "bytes", VERDICT_UNKNOWN, "does not report what the device delivered");
	synth_end(&s);
	synth_begin(&s, 1, 1, NULL);
	synth_even(&s, 0, 0, 20, 0.01, 0.001, 0.02);
	judge(&s);
	expect(&s, "bytes", VERDICT_WARN, "No request");
	synth_end(&s);
}

/* The unfinished epoch's requests are among those returned: its device bytes count as well. */
static void interrupted_bytes(void **state)
{
	struct synth s;

	(void)state;
	synth_begin(&s, 1, 3, NULL);
	synth_even(&s, 0, 0, 20, 0.01, 0.001, 0.02);
	synth_even(&s, 0, 1, 20, 0.01, 0.001, 0.02);
	s.r.status = RUN_INTERRUPTED;
	s.r.epochs_begun = 2;
	s.r.epochs_done = 1;
	fill_io(&s, 1);
	judge(&s);
	expect(&s, "bytes", VERDICT_PASS,
	       "The device delivered 100 % of that (5 MiB). The storage was measured");
	s.r.epochs_done = 0;
	judge(&s);
	expect(&s, "bytes", VERDICT_PASS,
	       "The device delivered 100 % of that (5 MiB). The storage was measured");
	/* ended before the first read of epoch 3: nothing of it to know */
	s.r.epochs_begun = 3;
	s.r.epochs_done = 2;
	judge(&s);
	expect(&s, "bytes", VERDICT_PASS,
	       "The device delivered 100 % of that (5 MiB). The storage was measured");
	/* a rank that hangs never takes the counters at the end */
	s.r.rank[0].epoch[2].begin_ns = 1;
	judge(&s);
	expect(&s, "bytes", VERDICT_UNKNOWN, "does not report what the device delivered");
	synth_end(&s);
}

static void own_copies(void **state)
{
	static const char *const memory[] = {"reader.read_type=memory", NULL};
	static const struct {
		uint64_t second; /* payload of the second of two epochs of 40 samples */
		enum verdict_level level;
		const char *words;
	} rows[] = {
		{0, VERDICT_WARN, "50 % of the samples were served from the reader's own copies"},
		{36 * 65536, VERDICT_PASS, "5 % of the samples were served"},
		{40 * 65536, VERDICT_PASS, "the storage was measured"},
		{65536 + 1, VERDICT_FAIL, "but the workload specifies 64 KiB"},
		{41 * 65536, VERDICT_FAIL, "but the workload specifies 64 KiB"},
	};
	struct synth s;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		synth_begin(&s, 1, 2, memory);
		synth_even(&s, 0, 0, 20, 0.01, 0.001, 0.02);
		synth_even(&s, 0, 1, 20, 0.01, 0.001, 0.02);
		s.r.rank[0].epoch[1].payload_bytes = rows[i].second;
		fill_io(&s, 1);
		judge(&s);
		expect(&s, "bytes", rows[i].level, rows[i].words);
		synth_end(&s);
	}
	/* without it, missing bytes are wrong files */
	synth_begin(&s, 1, 2, NULL);
	synth_even(&s, 0, 0, 20, 0.01, 0.001, 0.02);
	synth_even(&s, 0, 1, 20, 0.01, 0.001, 0.02);
	s.r.rank[0].epoch[1].payload_bytes = 0;
	fill_io(&s, 1);
	judge(&s);
	expect(&s, "bytes", VERDICT_FAIL, "The average sample has 32 KiB");
	synth_end(&s);
}

/* Files of another size than the workload's: 512 MiB read as 147 MB. */
static void wrong_files(void **state)
{
	struct synth s;

	(void)state;
	synth_begin(&s, 1, 1, NULL);
	synth_even(&s, 0, 0, 20, 0.01, 0.001, 0.02);
	s.r.rank[0].epoch[0].payload_bytes *= 2;
	fill_io(&s, 1);
	judge(&s);
	expect(&s, "bytes", VERDICT_FAIL,
	       "The average sample has 128 KiB, but the workload specifies 64 KiB");
	synth_end(&s);
}

static void dataset_and_order(void **state)
{
	struct synth s;

	(void)state;
	synth_begin(&s, 1, 2, NULL);
	synth_even(&s, 0, 0, 20, 0.01, 0.001, 0.02);
	synth_even(&s, 0, 1, 20, 0.01, 0.001, 0.02);
	judge(&s);
	expect(&s, "dataset", VERDICT_UNKNOWN, "not checked");
	expect(&s, "order", VERDICT_PASS, "each epoch; epoch 1");
	snprintf(s.r.presence.note, sizeof(s.r.presence.note), "No manifest; names agree.");
	s.r.presence.how = PRESENCE_SIZES;
	s.r.usage[1].order_kept = ORDER_BROKEN;
	snprintf(s.r.usage[1].order_note, sizeof(s.r.usage[1].order_note), "sample 3 came twice");
	judge(&s);
	expect(&s, "dataset", VERDICT_WARN, "names agree");
	expect(&s, "order", VERDICT_FAIL, "Epoch 2 is not proved complete: sample 3 came twice");
	s.r.usage[0].order_kept = ORDER_UNKNOWN;
	judge(&s);
	expect(&s, "order", VERDICT_FAIL, "Epoch 2 is not proved complete");
	s.r.usage[1].order_kept = ORDER_KEPT;
	snprintf(s.r.usage[0].order_note, sizeof(s.r.usage[0].order_note), "no memory");
	judge(&s);
	expect(&s, "order", VERDICT_UNKNOWN, "Epoch 1 could not be checked: no memory");
	s.r.presence.sizes_checked = 24;
	judge(&s);
	expect(&s, "dataset", VERDICT_PASS, NULL);
	synth_end(&s);
}

static void config(void **state)
{
	struct synth s;

	(void)state;
	synth_begin(&s, 1, 1, NULL);
	synth_even(&s, 0, 0, 20, 0.01, 0.001, 0.02);
	s.r.dropped_samples = 4;
	judge(&s);
	expect(&s, "config", VERDICT_WARN, "4 of 24 samples (17 %) do not fill a whole step");
	for (int i = 0; i < 5; i++)
		workload_warn(&s.w, "key %d is not known, so that it has no effect", i);
	s.r.dropped_samples = 0;
	judge(&s);
	expect(&s, "config", VERDICT_WARN, "key 2 is not known");
	expect(&s, "config", VERDICT_WARN, "There are 2 more.");
	assert_null(strstr(said(synth_verdict(&s, "config")), "key 4"));
	synth_end(&s);
}

static void client(void **state)
{
	struct synth s;

	(void)state;
	synth_begin(&s, 1, 2, NULL);
	synth_even(&s, 0, 0, 20, 0.01, 0.001, 0.02);
	synth_even(&s, 0, 1, 20, 0.01, 0.001, 0.02);
	calm(&s);
	s.r.usage[1].cpu_ns = 1900000000;
	judge(&s);
	expect(&s, "client", VERDICT_WARN, "95 % of 2 cores were busy");
	/* what broke a threshold is said first, with it */
	assert_int_equal(strncmp(said(synth_verdict(&s, "client")),
				 "95 % of the cores were busy with this program (limit: 90 %)", 59),
			 0);
	s.r.usage[1].cpu_ns = 0;
	s.r.peak_rss_bytes = 23ULL << 30;
	judge(&s);
	expect(&s, "client", VERDICT_WARN, "Memory was nearly full");
	s.r.epochs_done = 0;
	judge(&s);
	expect(&s, "client", VERDICT_WARN, "CPU use is unknown");
	s.r.peak_rss_bytes = 0;
	judge(&s);
	expect(&s, "client", VERDICT_UNKNOWN, "No epoch was completed");
	synth_end(&s);
}

/* A container may use fewer processors than are online. */
static void client_limited(void **state)
{
	struct synth s;

	(void)state;
	synth_begin(&s, 1, 1, NULL);
	synth_even(&s, 0, 0, 20, 0.01, 0.001, 0.02);
	calm(&s);
	s.r.host.cpu_count = 64;
	s.r.host.usable_cpus = 1.5;
	s.r.usage[0].cpu_ns = 1450000000;
	judge(&s);
	expect(&s, "client", VERDICT_WARN, "97 % of 1.5 cores (of 64;");
	expect(&s, "client", VERDICT_WARN, "this process is limited to these");
	synth_end(&s);
}

static void client_workers(void **state)
{
	static const struct {
		int64_t busy_ms, cpu_ms;
		uint32_t workers;
		enum verdict_level level;
	} rows[] = {
		{3900, 3800, 4, VERDICT_WARN}, {3900, 3000, 4, VERDICT_PASS}, /* they wait */
		{3500, 3400, 4, VERDICT_PASS}, {950, 900, 1, VERDICT_WARN},
		{950, 900, 0, VERDICT_WARN},   {0, 900, 1, VERDICT_PASS},
		{950, 900, 2, VERDICT_PASS},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct synth s;

		synth_begin(&s, 1, 1, NULL);
		synth_even(&s, 0, 0, 20, 0.01, 0.001, 0.02);
		calm(&s);
		s.r.host.cpu_count = 64;
		s.r.rank[0].workers = rows[i].workers;
		s.r.rank[0].train_busy_ns = rows[i].busy_ms * 1000000;
		s.r.usage[0].cpu_ns = rows[i].cpu_ms * 1000000;
		judge(&s);
		expect(&s, "client", rows[i].level,
		       rows[i].level == VERDICT_WARN ? "and used the CPU for" : NULL);
		synth_end(&s);
	}
}

/* Preprocessing is a wait: of 0.6 s, so much needs three or one of two processors in a real job. */
static void client_preprocessing(void **state)
{
	(void)state;
	for (int much = 0; much <= 1; much++) {
		struct synth s;

		synth_begin(&s, 1, 1, NULL);
		synth_even(&s, 0, 0, 20, 0.01, 0.001, 0.02);
		calm(&s);
		s.r.host.cpu_count = 2;
		s.r.rank[0].workers = 4;
		s.r.rank[0].epoch[0].split.work_ns[WORK_PREPROCESS] = synth_ns(much ? 1.8 : 0.6);
		judge(&s);
		expect(&s, "client", much ? VERDICT_WARN : VERDICT_PASS,
		       much ? "and this machine has 2" : NULL);
		synth_end(&s);
	}
}

/* A run of 20 steps and 0.6 s whose ranks waited 10 ms in each; of that a share was without a
 * processor. The counters are those of its one epoch. */
static struct processors *begin_loss(struct synth *s, double share)
{
	struct rank_epoch *ep;
	struct processors *p;

	synth_begin(s, 1, 1, NULL);
	synth_even(s, 0, 0, 20, 0.01, 0.01, 0.02);
	calm(s);
	ep = &s->r.rank[0].epoch[0];
	for (uint64_t i = 0; i < ep->block[0].steps; i++) {
		struct step_times *t = &ep->block[0].step[i];

		ep->split.wait_ns[WAIT_OTHER] += t->got_ns - t->ask_ns;
		wait_split_take(&ep->split, t, (int64_t)((double)(t->got_ns - t->ask_ns) * share));
	}
	p = &s->r.usage[0].cpu_train;
	*p = (struct processors){.wall_ns = 620000000,
				 .waited_ns = 100000000,
				 .ran_ns = 50000000,
				 .cpu_ns = 50000000,
				 .busy_ns = 150000000,
				 .allowed = 2,
				 .online = 2};
	s->r.usage[0].cpu_ns = p->cpu_ns;
	return p;
}

/* By a cause, with a fact whose first figure is as said. */
static void limited(struct synth *s, enum cause cause, enum reason reason, double figure)
{
	const struct fact *f = fact_first(&s->r.judged.limit.facts, reason);

	assert_string_equal(cause_name(s->r.judged.limit.cause), cause_name(cause));
	assert_non_null(f);
	if (!(fabs(f->figure[0] - figure) < 0.01))
		fail_msg("%s: %g, not %g", reason_name(reason), f->figure[0], figure);
}

static void processors(void **state)
{
	struct processors *p;
	struct synth s;

	(void)state;
	/* others: by how much is lost */
	p = begin_loss(&s, 0.9);
	p->busy_ns = 1200000000;
	p->nice = 7;
	judge(&s);
	expect(&s, "client", VERDICT_FAIL, "ther programs used 93 % of the 2 processors");
	expect(&s, "client", VERDICT_FAIL, "runs at nice 7");
	expect(&s, "client", VERDICT_FAIL, "waited 0.1 s, 67 % of the time");
	limited(&s, CAUSE_OTHER_PROGRAMS, REASON_LIMIT_NO_CPU_OTHERS, 0.30);
	synth_end(&s);
	p = begin_loss(&s, 0.3);
	p->busy_ns = 1200000000;
	judge(&s);
	expect(&s, "client", VERDICT_WARN, "no processor for 10.0 %");
	synth_end(&s);
	/* the machine is busy, and the threads did not wait */
	p = begin_loss(&s, 0.01);
	p->busy_ns = 1200000000;
	judge(&s);
	expect(&s, "client", VERDICT_PASS, NULL);
	synth_end(&s);
	/* its own threads wait for each other: no alarm */
	p = begin_loss(&s, 0.9);
	p->cpu_ns = s.r.usage[0].cpu_ns = 1000000000;
	p->busy_ns = 1040000000;
	judge(&s);
	expect(&s, "client", VERDICT_PASS, "he run itself used 81 % of the 2 processors");
	assert_int_not_equal(s.r.judged.limit.cause, CAUSE_OTHER_PROGRAMS);
	synth_end(&s);
	/* a quota, used up */
	p = begin_loss(&s, 0.9);
	p->groups = 1;
	p->group[0] = (struct processor_group){
		.quota = 0.2, .periods = 62, .throttled_periods = 40, .throttled_ns = 400000000};
	p->cpu_ns = s.r.usage[0].cpu_ns = 120000000;
	judge(&s);
	expect(&s, "client", VERDICT_FAIL, "may use 0.2 processors: it was throttled in 40 of 62");
	limited(&s, CAUSE_CPU_QUOTA, REASON_CPU_QUOTA, 0.2);
	synth_end(&s);
	/* a quota that is never reached is not the reason */
	p = begin_loss(&s, 0.9);
	p->groups = 1;
	p->group[0] = (struct processor_group){.quota = 1.5, .periods = 62};
	p->busy_ns = 1200000000;
	judge(&s);
	limited(&s, CAUSE_OTHER_PROGRAMS, REASON_CPU_OTHERS, 0.93);
	synth_end(&s);
	/* stopped; and one thread */
	p = begin_loss(&s, 0.9);
	p->stopped_ns = 170000000;
	p->stops = 1;
	judge(&s);
	expect(&s, "client", VERDICT_FAIL, "he process was stopped for 0.17 s in all");
	limited(&s, CAUSE_STOPPED, REASON_CPU_STOPPED, 0.17);
	synth_end(&s);
	p = begin_loss(&s, 0.9);
	p->frozen_ns = 170000000;
	p->freezes = 1;
	snprintf(p->frozen_thread, sizeof(p->frozen_thread), "w0.1");
	judge(&s);
	limited(&s, CAUSE_STOPPED, REASON_CPU_FROZEN, 0.17);
	synth_end(&s);
}

static void processors_unknown(void **state)
{
	static const char *const off[] = {"run.measure=none", NULL};
	struct processors *p;
	struct synth s;

	(void)state;
	/* steal is told whatever threads say */
	p = begin_loss(&s, 0);
	p->steal_ns = 310000000;
	judge(&s);
	expect(&s, "client", VERDICT_WARN, "the hypervisor took 25 % of the processors' time");
	synth_end(&s);
	p = begin_loss(&s, 0);
	p->steal_ns = p->busy_ns = -1;
	judge(&s);
	expect(&s, "client", VERDICT_PASS, NULL);
	synth_end(&s);
	/* a kernel without the counters is no reason to pass */
	p = begin_loss(&s, 0);
	p->waited_ns = p->ran_ns = -1;
	judge(&s);
	expect(&s, "client", VERDICT_UNKNOWN, "does not say how long threads waited");
	synth_end(&s);
	synth_begin(&s, 1, 1, off);
	synth_even(&s, 0, 0, 20, 0.01, 0.001, 0.02);
	calm(&s);
	judge(&s);
	expect(&s, "client", VERDICT_UNKNOWN, "were not measured (run.measure=none)");
	synth_end(&s);
}

/* Several processes: what is said is of the worst one, with its host. */
static void processors_of_hosts(void **state)
{
	struct processors *p;
	struct synth s;

	(void)state;
	p = begin_loss(&s, 0.9);
	p->busy_ns = 1200000000;
	s.r.processes = s.r.nodes = 2;
	s.r.process = xcalloc(2, sizeof(*s.r.process));
	s.r.process[1].node = 1;
	snprintf(s.r.process[1].hostname, sizeof(s.r.process[1].hostname), "far");
	s.r.usage[0].cpu_train_process = 1;
	judge(&s);
	expect(&s, "client", VERDICT_FAIL, "ther programs on host far used");
	limited(&s, CAUSE_OTHER_PROGRAMS, REASON_CPU_OTHERS, 0.93);
	assert_string_equal(fact_first(&s.r.judged.limit.facts, REASON_CPU_OTHERS)->text[0], "far");
	synth_end(&s);
}

static void even_compute(double load_s, double wait_s, double compute_s, enum verdict_level level,
			 const char *words)
{
	struct synth s;

	synth_begin(&s, 1, 1, NULL);
	synth_even(&s, 0, 0, 20, load_s, wait_s, compute_s);
	judge(&s);
	expect(&s, "compute", level, words);
	synth_end(&s);
}

/* What lateness changes: the same lateness matters where steps are short of waiting. */
static void compute_late(void **state)
{
	struct rank_epoch *ep;
	struct synth s;

	(void)state;
	/* 4 % of computation, and 0.4 % of the time */
	even_compute(0.18, 0.18, 0.0208, VERDICT_PASS, "(4.00 % of that)");
	synth_begin(&s, 1, 1, NULL);
	synth_even(&s, 0, 0, 20, 0.001, 0.0001, 0.0208);
	judge(&s);
	expect(&s, "compute", VERDICT_WARN, "3.8 % of the training time");
	expect(&s, "compute", VERDICT_WARN, "wakes threads late");
	ep = &s.r.rank[0].epoch[0];
	for (uint64_t i = 0; i < ep->block[0].steps; i++)
		ep->block[0].step[i].late_compute = late_share(700, 20800);
	judge(&s);
	expect(&s, "compute", VERDICT_WARN, "threads had no processor");
	synth_end(&s);
}

/* Steps of 20 ms and what the barrier takes after the last rank, on `median` s measured before. */
static void meet(double after, double median, enum verdict_level level)
{
	double load[20], work[20], barrier[20];
	struct synth s;

	synth_begin(&s, 2, 1, NULL);
	for (int i = 0; i < 20; i++) {
		load[i] = 0.001;
		work[i] = 0.019;
		barrier[i] = after;
	}
	synth_block(&s, 0, 0, 20, load, work, barrier, 0);
	synth_block(&s, 1, 0, 20, load, work, barrier, 0);
	calm(&s);
	s.r.barrier = (struct barrier_cost){
		.count = 40, .median_s = median, .way = BARRIER_SOCKETS, .processes = 2};
	judge(&s);
	expect(&s, "client", level,
	       level == VERDICT_WARN ? "takes 0.5 ms by itself (sockets)" : NULL);
	if (level == VERDICT_WARN)
		assert_true(fabs(result_barrier_share(&s.r) - 0.0005 / (0.02 + after)) < 1e-6);
	synth_end(&s);
}

static void barrier_of_itself(void **state)
{
	(void)state;
	meet(0.0005, 0.0005, VERDICT_WARN);
	meet(0.0001, 0.0001, VERDICT_PASS);
	/* measured long, but not seen in training; and the other way round */
	meet(0.0001, 0.0005, VERDICT_PASS);
	meet(0.0005, 0.0001, VERDICT_PASS);
}

static void compute(void **state)
{
	static const char *const none[] = {"train.computation_time=0", NULL};
	struct synth s;

	(void)state;
	even_compute(0.01, 0.001, 0.0205, VERDICT_WARN, "2.50 %");
	even_compute(0.01, 0.001, 0.02002, VERDICT_PASS, NULL);
	synth_begin(&s, 1, 1, none);
	synth_even(&s, 0, 0, 20, 0.01, 0.001, 0);
	judge(&s);
	assert_string_equal(synth_verdict(&s, "compute")->check, "");
	synth_end(&s);
}

static void evaluation(void **state)
{
	static const char *const on[] = {"workflow.evaluation=true", NULL};
	static const double load[] = {0.1, 0.1}, work[] = {0.1, 0.1};
	struct synth s;

	(void)state;
	synth_begin(&s, 1, 1, on);
	synth_even(&s, 0, 0, 20, 0.01, 0.001, 0.02);
	synth_eval(&s, 0, 0, 0, load, work, 0);
	judge(&s);
	expect(&s, "evaluation", VERDICT_WARN, "nothing was evaluated");
	synth_end(&s);
	synth_begin(&s, 1, 1, on);
	synth_even(&s, 0, 0, 20, 0.01, 0.001, 0.02);
	synth_eval(&s, 0, 0, 1, load, work, 0);
	judge(&s);
	expect(&s, "evaluation", VERDICT_WARN, "has no AU: 1 step was completed");
	synth_end(&s);
	synth_begin(&s, 1, 1, on);
	synth_even(&s, 0, 0, 20, 0.01, 0.001, 0.02);
	synth_eval(&s, 0, 0, 2, load, work, 0);
	judge(&s);
	expect(&s, "evaluation", VERDICT_PASS, "2 steps");
	synth_end(&s);
}

/* A network file system whose client fetched a part of what was returned, and a dataset that its
 * server may hold. */
static void client_cache(void **state)
{
	static struct host_io_source source;

	(void)state;
	for (int part = 0; part < 4; part++) {
		bool less = part & 1, small = part & 2;
		struct host_io *io;
		struct synth s;
		const struct fact_list *f;
		const struct fact *found;

		source = (struct host_io_source){
			.client = {.kind = FS_CLIENT_NFS, .network = true, .type = "nfs4"}};
		synth_begin(&s, 1, 1, NULL);
		synth_even(&s, 0, 0, 60, 0.01, 0.001, 0.02);
		calm(&s);
		fill_io(&s, 1);
		s.r.host_source = &source;
		s.r.host.memory_gib = small ? 1e6 : 1e-6;
		io = &s.r.usage[0].host_train;
		io->client = (struct fs_client_io){.known = true, .fetched_known = true};
		io->client.returned_bytes = io_stat_returned(&s.r.rank[0].train_io);
		io->client.fetched_bytes = io->client.returned_bytes / (less ? 20 : 1);
		judge(&s);
		f = &synth_verdict(&s, "bytes")->facts;
		found = fact_first(f, REASON_BYTES_CLIENT_CACHE);
		assert_true(!found == !less);
		assert_true(!found || found->figure[0] < 0.06 * found->figure[1]);
		assert_true(!fact_first(f, REASON_BYTES_SERVER_MAY_HOLD) == !small);
		s.r.host_source = NULL;
		synth_end(&s);
	}
}

/* A normal that is folded at 0 is not what was asked for; one that is not, is. */
static void drawn_times(void **state)
{
	static const char *const law[] = {"train.computation_time=0.02",
					  "train.computation_time_stdev=0.03", NULL};
	static const struct {
		double took;
		enum verdict_level level;
	} of[] = {{0.02, VERDICT_PASS}, {0.021, VERDICT_PASS}, {0.03, VERDICT_WARN}};

	(void)state;
	for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		struct synth s;
		const struct fact *f;

		synth_begin(&s, 1, 1, law);
		synth_even(&s, 0, 0, 60, 0.01, 0.001, of[i].took);
		calm(&s);
		judge(&s);
		f = fact_first(&synth_verdict(&s, "config")->facts, REASON_CONFIG_DRAWN_TIME);
		assert_non_null(f);
		assert_true(fabs(f->figure[0] - 0.02) < 1e-9 && f->figure[1] == 0.03);
		assert_true(fabs(f->figure[2] - of[i].took) < 1e-4);
		expect(&s, "config", of[i].level, NULL);
		synth_end(&s);
	}
}

/* Two epochs whose dataset was cached that much before and after each; `device`: it delivered all
 * that was read nevertheless. */
static void cache_of(const char *const *overrides, double start1, double end1, double start2,
		     double end2, bool device, enum verdict_level level, const char *words)
{
	struct synth s;

	synth_begin(&s, 1, 2, overrides);
	for (uint32_t i = 0; i < 2; i++)
		synth_even(&s, 0, i, 60, 0.01, 0.001, 0.02);
	calm(&s);
	fill_cache(&s, 0, start1, end1);
	fill_cache(&s, 1, start2, end2);
	for (uint32_t i = 0; i < 2 && !device; i++)
		s.r.usage[i].train.read_bytes = 0;
	judge(&s);
	expect(&s, "cache", level, words);
	synth_end(&s);
}

static void cache_case(const char *const *overrides, double start1, double end1, double start2,
		       double end2, enum verdict_level level, const char *words)
{
	cache_of(overrides, start1, end1, start2, end2, false, level, words);
}

static void page_cache(void **state)
{
	static const char *const cold[] = {"storage.page_cache=cold", NULL};
	static const char *const epochs[] = {"storage.page_cache=cold_epochs", NULL};
	static const char *const drop[] = {"storage.page_cache=drop_behind", NULL};
	static const char *const direct[] = {"storage.store=throttle+direct", NULL};
	static const char *const memory[] = {"storage.store=memory", NULL};
	struct synth s;

	(void)state;
	cache_case(NULL, 0, 12, 12, 12, VERDICT_WARN,
		   "12 GiB of 16 GiB of the dataset were in the page cache before epoch 2: memory "
		   "was measured, not storage (1 of 2 epochs");
	cache_of(NULL, 0, 12, 12, 12, true, VERDICT_PASS,
		 "12 GiB of 16 GiB of the dataset were in the page cache before epoch 2, but the "
		 "device delivered all");
	cache_of(cold, 4, 16, 16, 16, true, VERDICT_FAIL,
		 "4 GiB of 16 GiB were in it before epoch 1");
	cache_case(NULL, 4, 4, 3, 4, VERDICT_WARN, "before epoch 1: memory was measured in part");
	cache_case(NULL, 1, 16, 1.5, 16, VERDICT_PASS, "1.5 GiB of 16 GiB");
	cache_case(cold, 0, 16, 16, 16, VERDICT_WARN, "before epoch 2: memory was measured");
	cache_case(cold, 0, 1, 1, 2, VERDICT_PASS, "1 GiB of 16 GiB");
	cache_case(cold, 4, 16, 16, 16, VERDICT_FAIL, "4 GiB of 16 GiB were in it before epoch 1");
	cache_case(epochs, 0, 16, 0, 16, VERDICT_PASS, "0 B of 16 GiB");
	cache_case(epochs, 0, 16, 4, 16, VERDICT_FAIL, "before epoch 2");
	cache_case(epochs, 0, 16, 1, 16, VERDICT_WARN, "1 GiB of 16 GiB were in it before epoch 2");
	cache_case(drop, 0, 0.01, 0.01, 0, VERDICT_PASS,
		   "Of the dataset, 10.2 MiB of 16 GiB remained in the page cache");
	cache_case(drop, 0, 1, 0, 0, VERDICT_WARN,
		   "Of the dataset, 1 GiB of 16 GiB remained in the page cache after epoch 1");
	cache_case(direct, 0, 0, 0, 0, VERDICT_PASS, "the page cache did not grow");
	/* what was there before is not read */
	cache_case(direct, 8, 8, 8, 7, VERDICT_PASS, "it held 8 GiB of the dataset's 16 GiB");
	cache_case(direct, 0, 0, 0, 1, VERDICT_FAIL, "grew by 1 GiB of the dataset in epoch 2");
	/* what the program itself maps is not blamed on others */
	synth_begin(&s, 1, 1, cold);
	synth_even(&s, 0, 0, 60, 0.01, 0.001, 0.02);
	calm(&s);
	fill_cache(&s, 0, 4, 4);
	for (uint64_t mapped = 0; mapped < 2; mapped++) {
		const struct fact_list *f;

		s.r.usage[0].own_mapped_bytes = mapped;
		judge(&s);
		f = &synth_verdict(&s, "cache")->facts;
		assert_true(!fact_first(f, REASON_CACHE_OWN_MAPPED) == !mapped);
		assert_true(!fact_first(f, REASON_CACHE_NOT_EVICTED) == !!mapped);
	}
	synth_end(&s);
	synth_begin(&s, 1, 1, NULL);
	synth_even(&s, 0, 0, 60, 0.01, 0.001, 0.02);
	calm(&s);
	s.r.usage[0].cache_start.known = false;
	snprintf(s.r.usage[0].cache_start.why, sizeof(s.r.usage[0].cache_start.why), "no kernel");
	judge(&s);
	expect(&s, "cache", VERDICT_UNKNOWN, "is unknown: no kernel.");
	s.r.usage[0].cache_start.known = true;
	s.r.usage[0].cache_start.looked = 1000;
	judge(&s);
	expect(&s, "cache", VERDICT_PASS, "1000 of 16384 files");
	s.r.usage[0].cache_start.memory = true;
	s.r.usage[0].cache_start.cached_bytes = 16ull << 30;
	snprintf(s.r.usage[0].cache_start.file_system, 24, "tmpfs");
	judge(&s);
	expect(&s, "cache", VERDICT_WARN, "is on tmpfs, which is memory");
	synth_end(&s);
	synth_begin(&s, 1, 1, memory);
	synth_even(&s, 0, 0, 60, 0.01, 0.001, 0.02);
	calm(&s);
	judge(&s);
	assert_string_equal(synth_verdict(&s, "cache")->check, "");
	synth_end(&s);
}

#define ROWS 30

static void judge_all(const struct result *r, const struct run_metrics *m, struct verdict *v)
{
	(void)r;
	(void)m;
	verdict_found(v, VERDICT_WARN, fact_with(FACT(CONFIG_WARNING), 0, v->check));
}

static void judge_none(const struct result *r, const struct run_metrics *m, struct verdict *v)
{
	(void)r;
	(void)m;
	v->level = VERDICT_FAIL;
}

/* As many verdicts as rows that apply and say something, in their order. */
static void each_row_has_its_verdict(void **state)
{
	const struct verdict_ops *table[ROWS + 3];
	struct verdict_ops row[ROWS];
	char name[ROWS][8];
	const struct verdict_ops silent = {.name = "silent", .judge = judge_none};
	const struct verdict_ops idle = {
		.name = "idle", .needs = VERDICT_OF_CHECKPOINTS, .judge = judge_all};
	struct err e = {0};
	struct synth s;

	(void)state;
	table[0] = &silent;
	table[1] = &idle;
	for (int i = 0; i < ROWS; i++) {
		snprintf(name[i], sizeof(name[i]), "row%d", i);
		row[i] = (struct verdict_ops){.name = name[i], .judge = judge_all};
		table[i + 2] = &row[i];
	}
	table[ROWS + 2] = NULL;
	synth_begin(&s, 1, 1, NULL);
	synth_even(&s, 0, 0, 20, 0.01, 0.001, 0.02);
	synth_metrics(&s);
	assert_int_equal(verdicts_judge(&s.r, &s.m, table, &e), 0);
	assert_int_equal(s.r.judged.verdicts, ROWS);
	for (int i = 0; i < ROWS; i++) {
		assert_string_equal(s.r.judged.verdict[i].check, name[i]);
		assert_string_equal(s.r.judged.verdict[i].facts.fact[0].text[0], name[i]);
	}
	s.r.checkpointed = true;
	assert_int_equal(verdicts_judge(&s.r, &s.m, table, &e), 0);
	assert_int_equal(s.r.judged.verdicts, ROWS + 1);
	assert_string_equal(s.r.judged.verdict[0].check, "idle");
	synth_end(&s);
}

static void rows(void **state)
{
	const struct verdict none = {0};

	(void)state;
	for (size_t i = 0; verdict_table[i]; i++) {
		const struct verdict_ops *row = verdict_table[i];

		assert_true(row->name[0] && strlen(row->name) < sizeof(none.check));
		assert_true(str_ends(row->help, "?"));
		assert_ptr_equal(verdict_find(row->name), row);
	}
	assert_true(verdict_find("cache")->about_cache && verdict_find("bytes")->about_cache);
	assert_null(verdict_find("absent"));
}

/* Two ranks of 400 steps; the reading of the second becomes slower in the middle, while computation
 * covers it, or not. */
static void slower_rank(struct synth *s, double extra_wait)
{
	synth_begin(s, 2, 1, NULL);
	for (uint32_t k = 0; k < 2; k++) {
		double load[400], compute[400];

		for (int i = 0; i < 400; i++) {
			load[i] = 0.001 + (i >= 250 ? extra_wait : 0);
			compute[i] = 0.02;
		}
		synth_block(s, k, 0, 400, load, compute, NULL, 0);
		for (int i = 0; i < 400; i++) {
			struct step_times *t = &s->r.rank[k].epoch[0].block[0].step[i];

			t->share[WAIT_DATA] = 255;
			t->service_us = k && i >= 250 ? 15000 : 5000;
		}
	}
	calm(s);
	judge(s);
}

static void one_rank_changes(void **state)
{
	struct synth s;
	(void)state;

	slower_rank(&s, 0.02);
	expect(&s, "steady", VERDICT_WARN, "on rank 1 alone");
	expect(&s, "steady", VERDICT_WARN, "throughput fell");
	assert_true(s.r.judged.steady.changed && !s.r.judged.steady.hidden);
	assert_true(!s.r.judged.outlook.known);
	synth_end(&s);
	slower_rank(&s, 0);
	expect(&s, "steady", VERDICT_WARN, "reading became slower");
	assert_true(s.r.judged.steady.hidden && s.r.judged.steady.rank == 1);
	synth_end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_rank_changes),
		cmocka_unit_test(good_run),
		cmocka_unit_test(the_trap),
		cmocka_unit_test(the_study),
		cmocka_unit_test(length_with_compat),
		cmocka_unit_test(no_window),
		cmocka_unit_test(ranks_differ),
		cmocka_unit_test(bytes),
		cmocka_unit_test(wrong_files),
		cmocka_unit_test(dataset_and_order),
		cmocka_unit_test(config),
		cmocka_unit_test(client),
		cmocka_unit_test(compute),
		cmocka_unit_test(evaluation),
		cmocka_unit_test(rate_trap),
		cmocka_unit_test(interrupted_bytes),
		cmocka_unit_test(own_copies),
		cmocka_unit_test(client_limited),
		cmocka_unit_test(barrier_of_itself),
		cmocka_unit_test(client_workers),
		cmocka_unit_test(client_preprocessing),
		cmocka_unit_test(processors),
		cmocka_unit_test(processors_unknown),
		cmocka_unit_test(processors_of_hosts),
		cmocka_unit_test(compute_late),
		cmocka_unit_test(client_cache),
		cmocka_unit_test(drawn_times),
		cmocka_unit_test(page_cache),
		cmocka_unit_test(each_row_has_its_verdict),
		cmocka_unit_test(rows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
