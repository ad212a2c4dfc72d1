#pragma once
/* What one accelerator needs of its storage: samples and bytes a second at which it never waits,
 * and at which it reaches the target. It follows from the workload alone; what a storage gave is
 * measured (result/supply.h). */
#include <stdbool.h>
#include <stddef.h>

#include "workload/workload.h"

enum need_phase { NEED_TRAINING, NEED_EVALUATION };

struct need {
	bool known;
	char why[64];   /* when not known: "its computation takes no time" */
	double step_s;  /* mean computation time of a step, as it is waited */
	int64_t batch;  /* samples of a step of one accelerator */
	double samples; /* samples/s of one accelerator that always computes (AU 100 %) */
	double bytes;   /* bytes/s of that; NAN: the size of samples is not known */
	double target;  /* metric.au, above 0 to 1; 0: no target is set */
	double samples_at_target, bytes_at_target; /* the same at the target; NAN without */
};

/* need = batch size / mean computation time of a step, in samples/s; times sample_bytes, in
 * bytes/s; times metric.au, at the target.
 *
 * Training uses reader.batch_size and train.computation_time, evaluation reader.batch_size_eval and
 * evaluation.eval_time. The mean is that of what is waited: the absolute value of a draw, as
 * workload/time_draw.h has it. `sample_bytes` are the bytes in files for one sample (in the mean,
 * with its part of headers: dataset_sample_file_bytes), whatever the sample takes in memory: for
 * encoded formats that is not the decoded size, and reader.record_length_bytes_resize does not
 * matter. 0: samples take no bytes of files. NAN: not known, and rates in bytes are then NAN.
 *
 * Not known without a computation time: such an accelerator takes whatever it gets. Pure. */
void need_find(const struct workload *w, enum need_phase phase, double sample_bytes,
	       struct need *out);
/* Accelerators that `samples_per_s` are enough for at 100 %; NAN where the need is not known. */
double need_fed(const struct need *n, double samples_per_s);
/* The same at the target; NAN without one. */
double need_fed_at_target(const struct need *n, double samples_per_s);

/* "2.96 GiB/s (21.7 samples/s) at 100 %, 2.66 at 90 %"; "21.7 samples/s at 100 %, 19.5 at 90 %"
 * where bytes are not known; "no fixed rate: its computation takes
 * no time". Returns `out`. */
char *need_text(const struct need *n, char *out, size_t out_size);
/* "2.96 GiB/s", with three digits. Returns `out`. */
char *need_rate_text(double bytes_per_s, char *out, size_t out_size);
/* The number alone, in the unit that need_rate_text gives `whole`: "2.66". Returns `out`. */
char *need_part_text(double bytes_per_s, double whole, char *out, size_t out_size);
