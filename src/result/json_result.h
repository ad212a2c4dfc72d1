#pragma once
/* What result.json holds beside figures. Private to this folder. */
#include <jansson.h>

#include "result/result.h"

/* Of what judging yields: each verdict, what they leave of the numbers, what held the run back,
 * what would change it. */
json_t *json_verdicts(const struct judgement *j);
json_t *json_measured(const struct judgement *j);
json_t *json_limit(const struct limit *l);
json_t *json_what_if(const struct outlook *w);
/* Curves over time of the machine; only with r->series. */
json_t *json_series(const struct result *r);
/* Each key of the workload with value, unit and origin. */
json_t *json_configuration(const struct workload *w);
/* A tree of YAML: numbers as numbers, all else as texts. */
struct node;
json_t *json_node(const struct node *n);
/* [lower bound in ns, requests] of each bucket that is not empty. */
json_t *latency_buckets(const struct hist *h);
json_t *sized_buckets(const struct io_latency *l);
/* Names of devices. */
json_t *block_names(const struct block_list *l);
/* One number an epoch, null where it is not known; NULL when none is. */
json_t *ledger_epochs(const struct judgement *j, enum ledger_key key, bool eval);
