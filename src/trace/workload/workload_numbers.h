#pragma once
/* Numbers of a workload that does what a job did, of those that a profile has. All are pure. */
#include <stdbool.h>
#include <stdint.h>

#include "trace/profile/profile.h"

/* Whether the log has a number of it, also where it is incomplete. */
bool workload_counts(const struct profile *a, enum profile_key f);
/* That number: of an incomplete log, as many as it has. */
double workload_number(const struct profile *a, enum profile_key f, double otherwise);
/* Of a dataset whose reads are in no log, as it is mapped: samples for each file, which are steps
 * where these are known. 0: it is none. */
double workload_unread(const struct profile *a);
/* Samples of a step where batches differ; 0: not known. */
double workload_mean_batch(const struct profile *a);
/* Samples of a batch of the workload; 0: not known. `requests`: it makes those of the job. */
double workload_of_batch(const struct profile *a, bool evaluation, bool requests);
/* How many evaluations the job made in an epoch, which follow it as one; at least 1. */
uint32_t workload_of_evaluations(const struct profile *a);
