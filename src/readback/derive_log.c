/* The log: DLIO's lines of measures, with four decimals. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "readback/derivation.h"

#define LOG_BYTES_MAX ((size_t)64 << 20)
static const double FOUR = 0.000051; /* of a number with four decimals */

static double near_enough(double v)
{
	return FOUR + 1e-9 * fabs(v);
}

/* What the lines say so far. */
struct lines {
	struct derive *d;
	const struct run_record *r;
	const json_t *metric;
};

/* "[METRIC] Training Throughput (samples/second): 99.0972 (0.0498)" */
static void check_metric(const struct lines *l, const char *line)
{
	static const struct {
		const char *text, *mean, *stdev;
	} known[] = {
		{"Training Accelerator Utilization [AU] (%): ", "train_au_mean_percentage",
		 "train_au_stdev_percentage"},
		{"Training Throughput (samples/second): ",
		 "train_throughput_mean_samples_per_second",
		 "train_throughput_stdev_samples_per_second"},
		{"Training I/O Throughput (MB/second): ", "train_io_mean_MB_per_second",
		 "train_io_stdev_MB_per_second"},
		{"Eval Accelerator Utilization [AU] (%): ", "eval_au_mean_percentage",
		 "eval_au_stdev_percentage"},
		{"Eval Throughput (samples/second): ", "eval_throughput_mean_samples_per_second",
		 "eval_throughput_stdev_samples_per_second"},
		{"Eval Throughput (MB/second): ", "eval_io_mean_MB_per_second",
		 "eval_io_stdev_MB_per_second"},
	};
	unsigned ranks;

	if (sscanf(line, "Number of Simulated Accelerators: %u", &ranks) == 1)
		derive_equal(l->d, ranks, l->r->ranks, "summary.json",
			     "the number of accelerators in the log");
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		size_t n = strlen(known[i].text);
		double mean, stdev, want;

		if (strncmp(line, known[i].text, n) != 0 ||
		    sscanf(line + n, "%lf (%lf)", &mean, &stdev) != 2)
			continue;
		want = derive_number(l->metric, known[i].mean);
		derive_near(l->d, mean, want, near_enough(want), "summary.json",
			    "the mean of '%.40s' in the log", known[i].text);
		want = derive_number(l->metric, known[i].stdev);
		derive_near(l->d, stdev, want, near_enough(want), "summary.json",
			    "the standard deviation of '%.40s' in the log", known[i].text);
	}
}

/* "Epoch 1 - Block 1 [Training] Throughput (samples/second): 86.2466": of rank 0, times the ranks.
 */
static void check_block(const struct lines *l, const char *line)
{
	const struct run_record *r = l->r;
	unsigned epoch, block;
	double v;
	int at = 0;
	const struct record_phase *p;

	/* DLIO measures a block again when a checkpoint ends it, and logs the first values */
	if (!r->ours)
		return;
	if (sscanf(line, "Epoch %u - Block %u [Training] %n", &epoch, &block, &at) != 2 || !at ||
	    !r->rank[0].found || epoch < 1 || epoch > r->rank[0].epochs || block < 1 ||
	    block > r->rank[0].epoch[epoch - 1].blocks)
		return;
	p = &r->rank[0].epoch[epoch - 1].block[block - 1];
	if (sscanf(line + at, "Accelerator Utilization [AU] (%%): %lf", &v) == 1)
		derive_near(l->d, v, p->au, near_enough(p->au), "0_output.json",
			    "AU (%%) of epoch %u, block %u in the log", epoch, block);
	else if (sscanf(line + at, "Throughput (samples/second): %lf", &v) == 1)
		derive_near(l->d, v, p->throughput * r->ranks,
			    near_enough(p->throughput * r->ranks),
			    "0_output.json, times the ranks,",
			    "samples/s of epoch %u, block %u in the log", epoch, block);
}

/* "Finished saving checkpoint 1 for epoch 5 in 0.0081 s; Throughput: 0.0012 GB/s": of rank 0. */
static void check_checkpoint(const struct lines *l, const char *line)
{
	const struct part *all = record_part(l->r, F_RUN_CHECKPOINT);
	bool load = strncmp(line, "loading", 7) == 0;
	const struct part *each =
		part(part(all, load ? F_CHECKPOINT_LOAD : F_CHECKPOINT_SAVE), F_SAVES_EACH);
	unsigned number, epoch;
	double took;

	if (sscanf(line, "%*s checkpoint %u for epoch %u in %lf s", &number, &epoch, &took) != 3)
		return;
	for (size_t i = 0; i < part_count(each); i++) {
		const struct part *one = part_at(each, i);

		if (figure(one, F_SAVED_EPOCH) == epoch && figure(one, F_SAVED_NUMBER) == number)
			derive_near(l->d, took, figure(one, F_SAVED_RANK_0), FOUR, "result.json",
				    "the duration (s) of %s checkpoint %u of epoch %u in the log",
				    load ? "loading" : "saving", number, epoch);
	}
}

static const char *log_name(const struct run_record *r)
{
	return r->has_workload && r->workload.output.log_file ? r->workload.output.log_file
							      : "dlio.log";
}

void derive_log(struct audit *a, size_t i)
{
	const struct run_record *r = &a->record[i];
	struct derive d = derive_begin(a, i, "figures", "log",
				       "measures in the log, from summary.json and 0_output.json");
	AUTO_FREE char *path = path_join(r->folder, log_name(r));
	struct lines l = {&d, r, json_object_get(r->summary, "metric")};
	struct buf text = {0};
	struct err e = {0};
	size_t runs = 0;
	char *line, *rest = NULL;

	if (strchr(log_name(r), '/') || file_read(path, LOG_BYTES_MAX, &text, &e) < 0 ||
	    !text.data) {
		if (e.code && e.code != -ENOENT)
			derive_unchecked(&d, "%s", e.text);
		else
			derive_unchecked(&d, "there is no readable log '%s' in the folder",
					 log_name(r));
		buf_release(&text);
		return;
	}
	for (const char *p = text.data; (p = strstr(p, " Running DLIO [")); p++)
		runs++;
	if (runs != 1) {
		derive_unchecked(&d, "the log is of %zu runs", runs);
		buf_release(&text);
		return;
	}
	for (line = strtok_r(text.data, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		const char *said = strstr(line, "Epoch ");
		const char *finished = strstr(line, " Finished ");

		if (strncmp(line, "[METRIC] ", 9) == 0)
			check_metric(&l, line + 9);
		else if (said)
			check_block(&l, said);
		else if (finished)
			check_checkpoint(&l, finished + 10);
	}
	if (a->topic[d.topic].compared == 0)
		derive_unchecked(&d, "it states no measures");
	buf_release(&text);
}
