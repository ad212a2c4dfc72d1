#pragma once
/* Measures of a result that was read back. Seconds of wall clock are the epoch's, not the window's.
 */
#include "readback/record.h"

/* Of one epoch of a run; NaN when it is not known. */
typedef double (*record_measure)(const struct run_record *r, size_t epoch);
/* Of a whole run; NaN when it is not known. */
typedef double (*record_run_measure)(const struct run_record *r);

/* As summary.json lists them. */
double record_au(const struct run_record *r, size_t epoch);
double record_throughput(const struct run_record *r, size_t epoch);
/* A measure of the runs r[index[0]], ... (NULL: r[0], ...), n of them: its mean over the epochs of
 * each run, or with `by_epoch` the values of all epochs; what is not finite is left out. Heap;
 * *count gets how many. */
double *record_values(const struct run_record *r, const size_t *index, size_t n, record_measure of,
		      bool by_epoch, size_t *count);
/* A measure of whole runs: each run's own value, or with `by_epoch` the values of all epochs. *mean
 * is that of the runs' own values in either case: in them an epoch counts by its time. Heap; *count
 * gets how many; *mean is NaN without any. */
double *record_whole_values(const struct run_record *r, const size_t *index, size_t n,
			    record_measure of_epoch, record_run_measure of_run, bool by_epoch,
			    size_t *count, double *mean);
/* Emulated compute over wall time of the epoch's training part, mean over ranks, percent, without
 * what result.json says was late for want of a processor; NaN when a file is missing. */
double record_whole_au(const struct run_record *r, size_t epoch);
/* That over all epochs together, each by its time: the one number of a run, as
 * training.whole_run_au_percent of result.json, if it has that. */
double record_whole_run_au(const struct run_record *r);
/* Batches that a rank reads ahead, by the loader's rules; 0 when the workload is not known. */
uint64_t record_window(const struct run_record *r);
/* What one accelerator of the run needs in training; without result.json's mean bytes of a sample
 * in files by the configured size of one. Not known without a workload. */
void record_need(const struct run_record *r, struct need *out);
/* Samples really taken a second over the wall time of an epoch's training part: steps x batch x
 * ranks / wall of the slowest rank; NaN when a file is missing. */
double record_whole_rate(const struct run_record *r, size_t epoch);
/* Figure `i` of those that tables have (result/fields.h); NaN. */
double record_shown(const struct run_record *r, size_t i);
/* Seconds of the epoch's training part, of the slowest rank; NaN. */
double record_wall(const struct run_record *r, size_t epoch);
/* That rate over all epochs together: training.whole_run_samples_per_s of result.json. */
double record_whole_throughput(const struct run_record *r);
