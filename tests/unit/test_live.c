/* Figures of a run under way, and that no panel is ever larger than its terminal. */
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>

#include <cmocka.h>

#include "base/clock.h"
#include "screen/live.h"
#include "screen/terminal.h"

#define S NS_PER_S

/* Rank r of four computes half of each second, waits r / 10 of it, and stands at the barrier for
 * the rest. */
static struct rank_progress rank[4];

static struct run_progress after(int64_t seconds)
{
	struct run_progress p = {
		.phase = PROGRESS_TRAIN,
		.elapsed_ns = seconds * S,
		.done = (uint64_t)seconds,
		.total = 100,
		.training = true,
		.epoch = 1,
		.epochs = 2,
		.epoch_done = (uint64_t)seconds,
		.epoch_total = 50,
		.eval_total = 10,
		.ranks = 8,
		.ranks_here = 4,
		.first_rank = 4,
		.rank = rank,
		.train_samples = 40 * (uint64_t)seconds,
		.train_bytes = 4000 * (uint64_t)seconds,
		.samples = 40 * (uint64_t)seconds,
		.bytes = 4000 * (uint64_t)seconds,
		.read_samples = 40 * (uint64_t)seconds,
		.read_bytes = 4000 * (uint64_t)seconds,
		.device = DEVICE_DISK,
		.device_name = "sda",
		.device_ns = seconds * S,
		.device_read_bytes = 5000 * (uint64_t)seconds,
		.device_written_bytes = 10 * (uint64_t)seconds,
	};

	for (int r = 0; r < 4; r++) {
		rank[r] = (struct rank_progress){.steps = (uint64_t)seconds,
						 .train_ns = seconds * S,
						 .compute_ns = seconds * S / 2,
						 .wait_ns = seconds * r * S / 10,
						 .doing = "computes"};
		p.train_ns += rank[r].train_ns;
		p.compute_ns += rank[r].compute_ns;
		p.wait_ns += rank[r].wait_ns;
	}
	return p;
}

static void near(double got, double want)
{
	if (!(fabs(got - want) <= 1e-6 * fabs(want) + 1e-9))
		fail_msg("%.12g is not %.12g", got, want);
}

static void figures_of_training(void **state)
{
	struct live *l = calloc(1, sizeof(*l));
	struct live_figures f = {0};
	struct buf text = {0};
	struct run_progress p;

	(void)state;
	for (int64_t t = 0; t <= 20; t++) {
		p = after(t);
		live_add(l, &p, t * S);
	}
	live_figures(l, &p, 20 * S + S / 4, &f);
	near(f.part, 0.2);
	near(f.au, 50);
	near(f.au_recent, 50);
	near(f.wait, 15); /* the mean of 0, 10, 20, 30 */
	near(f.samples_rate, 40);
	near(f.bytes_rate, 4000);
	near(f.samples_recent, 40);
	near(f.bytes_recent, 4000);
	near(f.device_read, 5000);
	near(f.device_write, 10);
	assert_true(f.has_slowest);
	assert_int_equal(f.slow_rank, 7);
	near(f.slow_behind_s, 20 * 0.15);
	near(f.slow_wait, 30);
	/* 80 steps of 1 s, a quarter of one is over; evaluation was never timed */
	near(f.left_s, 79.75);
	assert_non_null(strstr(f.left_how, "80 steps at 1.0 s"));
	assert_non_null(strstr(f.left_how, "not known yet"));
	assert_true(isnan(f.standing_s));

	/* an evaluation: steps of 2 s; training stands still and so does its AU */
	for (int64_t t = 21; t <= 30; t++) {
		p = after(20);
		p.phase = PROGRESS_EVAL;
		p.eval_done = (uint64_t)(t - 20) / 2;
		p.eval_ns = (t - 20) / 2 * 2 * S;
		p.samples += 7 * (uint64_t)(t - 20);
		live_add(l, &p, t * S);
	}
	live_figures(l, &p, 30 * S, &f);
	near(f.au, 50);
	near(f.samples_rate, 40);
	near(f.samples_recent, 7);
	near(f.left_s, 80 * 1.0 + 5 * 2.0);
	/* all is done, and the run does not say so yet */
	p.phase = PROGRESS_TRAIN;
	p.done = p.total;
	p.eval_done = p.eval_total;
	live_add(l, &p, 31 * S);
	live_figures(l, &p, 31 * S, &f);
	near(f.left_s, 0);
	assert_non_null(strstr(f.left_how, "0 steps at"));
	/* a probe whose numbers of readers are not known yet */
	p.phase = PROGRESS_PROBE;
	live_line(&p, &f, &text);
	assert_null(strstr(text.data, "0 of 0"));
	buf_release(&text);
	free(l);
}

static void lately_differs_from_so_far(void **state)
{
	struct live *l = calloc(1, sizeof(*l));
	struct live_figures f = {0};
	struct run_progress p = after(0);
	double bytes[6], au[6];

	(void)state;
	live_add(l, &p, 0);
	/* 10 s as above, then ten in which computing takes 9 in 10 and reading trebles */
	for (int64_t t = 1; t <= 20; t++) {
		p = after(t);
		if (t > 10) {
			p.compute_ns += (t - 10) * 4 * 4 * S / 10;
			p.bytes += 8000 * (uint64_t)(t - 10);
			p.read_bytes += 8000 * (uint64_t)(t - 10);
		}
		live_add(l, &p, t * S);
	}
	live_figures(l, &p, 20 * S, &f);
	near(f.au, 70);
	near(f.au_recent, 90);
	near(f.bytes_recent, 12000);
	live_spark(l, 20 * S, 24, 6, bytes, au);
	assert_true(isnan(bytes[0]));
	near(bytes[1], 4000);
	near(au[2], 50);
	near(au[5], 90);
	near(bytes[5], 12000);
	free(l);
}

static void a_step_that_stands(void **state)
{
	struct live *l = calloc(1, sizeof(*l));
	struct live_figures f = {0};
	struct run_progress p = after(5);
	struct buf line = {0};

	(void)state;
	live_add(l, &p, 5 * S);
	rank[1].late = true;
	rank[1].doing = "waits for a batch";
	p.elapsed_ns = 12 * S;
	live_add(l, &p, 12 * S);
	live_figures(l, &p, 12 * S, &f);
	near(f.standing_s, 7);
	assert_int_equal(f.slow_rank, 5);
	live_line(&p, &f, &line);
	assert_non_null(strstr(line.data, "no step for 7.0 s: rank 5 waits for a batch"));
	buf_release(&line);
	free(l);
}

static void nothing_known_yet(void **state)
{
	struct live *l = calloc(1, sizeof(*l));
	struct live_figures f = {0};
	struct run_progress p = after(0);
	struct buf text = {0};

	(void)state;
	live_add(l, &p, 0);
	live_figures(l, &p, 0, &f);
	assert_true(isnan(f.au) && isnan(f.wait) && isnan(f.left_s) && isnan(f.samples_rate));
	live_line(&p, &f, &text);
	assert_null(strstr(text.data, "nan"));
	buf_reset(&text);
	live_json(&p, &f, NULL, 0, &text);
	assert_null(strstr(text.data, "nan"));
	assert_non_null(strstr(text.data, "\"au_percent\":null"));
	buf_release(&text);
	free(l);
}

/* Workers read 3 samples of 2 MB a second, and no rank has a batch yet. */
static void first_batches(void **state)
{
	struct live *l = calloc(1, sizeof(*l));
	struct live_style style = {.columns = 100, .rows = 24};
	struct live_figures f = {0};
	struct run_progress p;
	struct buf text = {0};

	(void)state;
	for (int64_t t = 0; t <= 8; t++) {
		p = after(0);
		p.elapsed_ns = t * S;
		p.read_samples = 3 * (uint64_t)t;
		p.read_bytes = 6000000 * (uint64_t)t;
		live_add(l, &p, t * S);
		live_figures(l, &p, t * S, &f);
	}
	assert_true(f.filling && isnan(f.samples_rate));
	near(f.read_samples_recent, 3);
	near(f.read_recent, 6e6);
	live_line(&p, &f, &text);
	assert_non_null(strstr(text.data, "no step yet: workers read 24 samples, 45.8 MiB, "
					  "recently 5.72 MiB/s"));
	assert_null(strstr(text.data, "AU so far"));
	buf_reset(&text);
	style.title = "planted";
	live_panel(l, &p, &f, 8 * S, &style, &text);
	assert_non_null(strstr(text.data, "workers read 24 samples, 45.8 MiB so far; "
					  "recently 5.72 MiB/s"));
	assert_non_null(strstr(text.data, "known when the first step ends"));
	assert_non_null(strstr(text.data, "for the first batches"));
	buf_reset(&text);
	live_json(&p, &f, NULL, 0, &text);
	assert_non_null(strstr(text.data, "\"read_samples\":24"));
	assert_non_null(strstr(text.data, "\"read_bytes\":48000000"));
	/* once a step has ended, what training got counts */
	p = after(9);
	p.read_samples = 100;
	live_add(l, &p, 9 * S);
	live_figures(l, &p, 9 * S, &f);
	assert_false(f.filling);
	buf_reset(&text);
	live_line(&p, &f, &text);
	assert_null(strstr(text.data, "workers read"));
	buf_release(&text);
	free(l);
}

/* Of figures, what no run will reach, and what one with many ranks may. */
static void lines_have_an_end(void **state)
{
	static const uint64_t count[] = {7, 1234567, 98765432101, UINT64_MAX};
	static const double size[] = {3.25, 98765.4, 1.2345e15, 1e300};
	static const enum progress_phase phase[] = {PROGRESS_TRAIN,      PROGRESS_EVAL,
						    PROGRESS_CHECKPOINT, PROGRESS_PROBE,
						    PROGRESS_GENERATE,   PROGRESS_VERIFY};
	struct buf line = {0};
	unsigned filling = 0, standing = 0;

	(void)state;
	for (int c = 0; c < 4 * 6 * 4 * 8; c++) {
		uint64_t n = count[c / 192];
		double v = size[c / 48 % 4];
		struct run_progress p = after(3);
		struct live_figures f = {.au = 36.6,
					 .wait = v,
					 .samples_rate = v,
					 .samples_recent = v,
					 .bytes_rate = v,
					 .read_recent = v,
					 .device = DEVICE_DISK,
					 .device_name =
						 "a-very-long-name-of-a-device-that-no-one-has",
					 .device_read = v,
					 .device_write = v,
					 .left_s = v,
					 .filling = c & 1,
					 .has_slowest = true,
					 .slow_rank = (uint32_t)n,
					 .slow_behind_s = v,
					 .slow_doing = "waits for the other ranks",
					 .standing_s = c & 2 ? v : NAN};

		p.phase = phase[c / 8 % 6];
		p.training = c & 4;
		p.epoch = p.epochs = p.probe_done = p.probe_total = (uint32_t)n;
		p.done = p.total = p.epoch_done = p.epoch_total = p.saves = p.saves_total = n;
		p.loads = p.loads_total = p.read_samples = p.read_bytes = n;
		p.ranks = UINT32_MAX;
		buf_reset(&line);
		live_line(&p, &f, &line);
		if (line.len > 100)
			fail_msg("%zu columns: %s", line.len, line.data);
		if (strstr(line.data, "no step for ") && p.training)
			standing++;
		if (strstr(line.data, "no step yet"))
			filling++;
		buf_reset(&line);
		live_summary(&p, &f, &line);
		if (line.len > 100)
			fail_msg("%zu columns: %s", line.len, line.data);
	}
	/* of 16 pairs of figures, in all phases of training but the probe, in two of eight */
	assert_int_equal(standing, 16 * 5 * 2);
	assert_in_range(filling, 16 * 5 / 2, 16 * 5 * 2);
	/* what the workers read has room for how fast it is, too */
	{
		struct run_progress p = after(0);
		struct live_figures f = {.filling = true,
					 .read_recent = 609 * 1024,
					 .left_s = NAN,
					 .standing_s = NAN,
					 .device_read = NAN};

		p.ranks = p.ranks_here;
		p.total = 30;
		p.read_samples = 4;
		p.read_bytes = 131072;
		buf_reset(&line);
		live_line(&p, &f, &line);
		assert_string_equal(line.data,
				    "Training, epoch 1/2, step 0/30, no step yet: workers read 4 "
				    "samples, 128 KiB, recently 609 KiB/s");
	}
	buf_release(&line);
}

static void generation_left(void **state)
{
	struct live *l = calloc(1, sizeof(*l));
	struct live_figures f = {0};
	struct run_progress p = {.elapsed_ns = 10 * S, .done = 60, .total = 100, .skipped = 50};

	(void)state;
	/* ten of fifty files in 10 s */
	live_add(l, &p, 10 * S);
	live_figures(l, &p, 10 * S, &f);
	near(f.left_s, 40);
	p.bytes = 25;
	p.bytes_total = 100;
	live_figures(l, &p, 10 * S, &f);
	near(f.left_s, 30);
	free(l);
}

static void panels_fit(void **state)
{
	static const char *const titles[] = {"unet3d", "", "a\033[2Jb\nc\rd\te",
					     "ein längerer Name ☃ ohne Ende ohne Ende",
					     "p\x9b[2Jq\xc2\x9b[2Jr\xe2"};
	struct live *l = calloc(1, sizeof(*l));
	struct live_figures f = {0};
	struct run_progress p;
	struct buf out = {0};

	(void)state;
	for (int64_t t = 0; t <= 90; t++) {
		p = after(t);
		live_add(l, &p, t * S);
	}
	p.total = UINT64_MAX;
	p.epoch_total = UINT64_MAX;
	live_figures(l, &p, 90 * S, &f);
	f.samples_rate = 1e300;
	for (unsigned i = 0; i < 260 * 60 * 5; i += 7) {
		struct live_style s = {.columns = 1 + i % 260,
				       .rows = 1 + i / 260 % 60,
				       .utf8 = i & 1,
				       .colour = i & 2,
				       .title = titles[i / (260 * 60)],
				       .target = 90};
		unsigned rows = 0;

		p.phase = (enum progress_phase)(i % (PROGRESS_FINISH + 1));
		buf_reset(&out);
		live_panel(l, &p, &f, 90 * S, &s, &out);
		for (char *at = out.data, *end; *at; at = end + 1, rows++) {
			end = strchr(at, '\n');
			assert_non_null(end);
			if (terminal_columns(at, (size_t)(end - at)) >
			    (s.columns > 1 ? s.columns - 1 : 1))
				fail_msg("%u columns: '%.*s'", s.columns, (int)(end - at), at);
			for (char *c = at; c < end; c++)
				assert_true(((unsigned char)*c >= ' ' && *c != '\x9b') ||
					    (*c == '\033' && s.colour));
		}
		assert_true(rows <= (s.rows > 1 ? s.rows - 1 : 1));
	}
	buf_release(&out);
	free(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(figures_of_training), cmocka_unit_test(lately_differs_from_so_far),
		cmocka_unit_test(a_step_that_stands),  cmocka_unit_test(nothing_known_yet),
		cmocka_unit_test(first_batches),       cmocka_unit_test(lines_have_an_end),
		cmocka_unit_test(generation_left),     cmocka_unit_test(panels_fit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
