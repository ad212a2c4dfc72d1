#pragma once
/* The cases of tests/data/vectors/tf-order.json, made by tests/truth/tf_sim.py. */
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "workload/workload.h"

#define TF_SEED_LOW 87654321u

static json_t *tf_cases(json_t **root)
{
	json_error_t e;

	*root = json_load_file(TEST_DATA "/vectors/tf-order.json", 0, &e);
	if (!*root)
		fail_msg("tf-order.json: %s", e.text);
	return json_object_get(*root, "cases");
}

static uint64_t tf_number(const json_t *c, const char *key)
{
	const json_t *v = json_object_get(c, key);

	return json_is_boolean(v) ? json_is_true(v) : (uint64_t)json_integer_value(v);
}

/* How the case's files are interleaved; without the key as num_parallel_reads does. */
static void tf_interleave(struct workload *w, const json_t *c)
{
	w->reader.interleave = (int)tf_number(c, "interleave");
	w->reader.block_length = w->reader.interleave ? (int64_t)tf_number(c, "block") : 1;
}

static size_t tf_records(const json_t *c)
{
	return json_array_size(json_object_get(c, "order"));
}

static uint64_t tf_sample(const json_t *c, uint64_t i)
{
	const json_t *at = json_array_get(json_object_get(c, "order"), i);

	return (uint64_t)json_integer_value(json_array_get(at, 0));
}

/* UINT32_MAX: nobody's thread. */
static uint32_t tf_worker(const json_t *c, uint64_t i)
{
	const json_t *by = json_array_get(json_array_get(json_object_get(c, "order"), i), 1);

	return json_is_integer(by) ? (uint32_t)json_integer_value(by) : UINT32_MAX;
}
