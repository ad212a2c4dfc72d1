/* What ranks hold: DLIO's own numbers, computed by its allocation code (argonne-lcf/dlio_benchmark
 * at e1919d7), for every workload of a transformer and for small models. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "checkpoint/checkpoint_plan.h"

#define OVERRIDES_MAX 24

static int load(struct workload *w, const char *name, const char *overrides, struct err *e)
{
	static char text[2048];
	const char *list[OVERRIDES_MAX];
	struct workload_request req = {.workload = name, .inspect = true, .overrides = list};

	snprintf(text, sizeof(text), "%s", overrides);
	for (char *at = text; *at;) {
		char *end = strchr(at, ' ');

		list[req.override_count++] = at;
		if (!end)
			break;
		*end = '\0';
		at = end + 1;
	}
	*w = (struct workload){0};
	return workload_load(w, &req, e);
}

static void plan_of(struct checkpoint_plan *p, const char *name, const char *overrides,
		    int64_t ranks)
{
	struct workload w;
	struct err e = {0};
	int rc = load(&w, name, overrides, &e);

	if (rc == 0 || rc == ERR_ABSENT)
		rc = checkpoint_plan_init(p, &w, ranks, &e);
	if (rc < 0)
		print_error("%s: %s\n", name, e.text);
	assert_int_equal(rc, 0);
	workload_release(&w);
}

struct expected {
	const char *workload, *overrides;
	int64_t ranks;
	uint64_t files;
	double total_gib; /* as DLIO prints it, six decimals */
	struct {
		int64_t rank;
		uint64_t bytes;
	} rank[6]; /* ends with 0 bytes */
};

static const struct expected table[] = {
	{"llama_7b", "", 1, 2, 87.859169, {{0, 94338064384}}},
	{"llama_7b", "", 8, 9, 87.860771, {{0, 23584700416}, {1, 10107869184}, {7, 10107869184}}},
	{"llama_7b_zero3", "", 1, 2, 87.859169, {{0, 94338064384}}},
	{"llama_7b_zero3", "", 8, 16, 87.860771, {{0, 11792473088}, {7, 11792473088}}},
	{"llama_8b_zero3", "", 1, 2, 104.702919, {{0, 112423903232}}},
	{"llama_8b_zero3", "", 8, 16, 104.704521, {{0, 14053202944}, {3, 14053202944}}},
	{"llama_70b",
	 "",
	 32,
	 696,
	 911.197479,
	 {{0, 30706043904}, {8, 30443375616}, {23, 30443375616}, {24, 30706060288}}},
	{"llama_70b",
	 "",
	 64,
	 728,
	 911.212128,
	 {{7, 17603053056},
	  {8, 17340384768},
	  {31, 17603069440},
	  {32, 13103482368},
	  {63, 13103482368}}},
	{"llama_70b_zero3", "", 8, 16, 911.186493, {{0, 122297380864}}},
	{"llama_70b_zero3", "", 64, 128, 911.212128, {{0, 15287602688}, {63, 15287602688}}},
	{"llama_405b",
	 "",
	 256,
	 1288,
	 5292.014343,
	 {{0, 22738630400},
	  {8, 22213293824},
	  {239, 22213293824},
	  {240, 21416310528},
	  {248, 21941679872}}},
	{"llama_405b",
	 "",
	 512,
	 1544,
	 5292.248718,
	 {{0, 13226441600},
	  {8, 12701105024},
	  {240, 11904121728},
	  {255, 12429491072},
	  {256, 9513171840}}},
	{"llama_1t",
	 "",
	 512,
	 1560,
	 15425.849060,
	 {{0, 33153985464}, {8, 32324425656}, {511, 33154037208}}},
	{"llama_1t",
	 "",
	 1024,
	 2072,
	 15426.589264,
	 {{0, 19290292860}, {8, 18460733052}, {511, 19290344604}, {512, 13865244924}}},
	/* MLPerf Storage v2 and v3, at the numbers of processes of its rules */
	{"llama3_8b", "", 8, 16, 104.704521, {{0, 14053202944}}},
	{"llama3_70b", "", 64, 128, 911.212128, {{0, 15287602688}}},
	{"llama3_405b", "", 512, 1544, 5292.248718, {{0, 13226441600}, {511, 9513171840}}},
	{"llama3_1t", "", 1024, 2072, 15426.589264, {{0, 19290292860}, {1023, 13865244924}}},
	/* a subset: the first 8 of 64 ranks */
	{"llama3_70b",
	 "checkpoint.mode=subset model.parallelism.data=8",
	 8,
	 16,
	 113.901516,
	 {{0, 15287602688}, {7, 15287602688}}},
};

static void test_table(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		const struct expected *x = &table[i];
		struct checkpoint_plan p;
		struct checkpoint_totals t;
		struct checkpoint_rank_bytes b;
		char want[32], got[32];

		plan_of(&p, x->workload, x->overrides, x->ranks);
		for (int k = 0; k < 6 && x->rank[k].bytes; k++) {
			checkpoint_rank_size(&p, x->rank[k].rank, &b);
			if (b.total != x->rank[k].bytes)
				print_error("%s, %lld ranks, rank %lld\n", x->workload,
					    (long long)x->ranks, (long long)x->rank[k].rank);
			assert_int_equal(b.total, x->rank[k].bytes);
		}
		checkpoint_plan_totals(&p, &t);
		assert_int_equal(t.files, x->files);
		snprintf(want, sizeof(want), "%.6f", x->total_gib);
		snprintf(got, sizeof(got), "%.6f", (double)t.total_bytes / (1 << 30));
		assert_string_equal(got, want);
		assert_int_equal(t.total_bytes, t.model_bytes + t.optimizer_bytes);
		/* here DLIO counts what it writes */
		assert_int_equal(t.total_bytes, t.dlio_model_bytes + t.dlio_optimizer_bytes);
		checkpoint_plan_release(&p);
	}
}

static const char parameters_small[] =
	"model.type=transformer model.num_layers=5 model.transformer.vocab_size=100 "
	"model.transformer.hidden_size=64 model.transformer.ffn_hidden_size=96 "
	"model.transformer.num_attention_heads=4 model.transformer.num_kv_heads=2 ";

/* Files and tensors of every rank add up to its size; every name is there once. */
static void check_walk(const struct checkpoint_plan *p)
{
	struct checkpoint_totals t;
	uint64_t total = 0, files = 0;

	for (int64_t rank = 0; rank < p->ranks; rank++) {
		struct checkpoint_rank_bytes b;
		uint64_t bytes = 0, count = checkpoint_file_count(p, rank);

		checkpoint_rank_size(p, rank, &b);
		assert_int_equal(b.files, count);
		for (uint64_t i = 0; i < count; i++) {
			struct checkpoint_file f;
			uint64_t in_file = 0;

			checkpoint_file_at(p, rank, i, &f);
			assert_true(f.name[0] != '\0');
			for (uint64_t k = 0; k < f.tensors; k++) {
				struct checkpoint_tensor x;

				checkpoint_tensor_at(p, &f, k, &x);
				assert_true(x.elements > 0);
				assert_int_equal(x.bytes,
						 x.elements * checkpoint_datatype_bytes[x.type]);
				in_file += x.bytes;
			}
			assert_int_equal(in_file, f.bytes);
			bytes += in_file;
		}
		assert_int_equal(bytes, b.total);
		total += bytes;
		files += count;
	}
	checkpoint_plan_totals(p, &t);
	assert_int_equal(total, t.total_bytes);
	assert_int_equal(files, t.files);
}

static void test_walk(void **state)
{
	static const struct {
		const char *keys;
		int64_t ranks;
	} cases[] = {
		{"model.parallelism.zero_stage=0", 4},
		{"model.parallelism.zero_stage=1", 4},
		{"model.parallelism.zero_stage=2 model.parallelism.tensor=2", 8},
		{"model.parallelism.zero_stage=3 model.parallelism.tensor=2", 6},
		{"model.parallelism.zero_stage=1 model.parallelism.pipeline=3", 9},
		{"model.parallelism.zero_stage=2 model.parallelism.pipeline=5", 10},
		{"model.parallelism.zero_stage=0 model.parallelism.pipeline=2 "
		 "checkpoint.type=all_ranks",
		 4},
		{"model.layer_parameters=[5,0,7] model.optimization_groups=[9,0,4]", 2},
		{"model.layer_parameters=[5,0,7] compat.dlio=true", 2},
		{"model.layer_parameters=[5,0,7] model.parallelism.pipeline=2 model.type=x", 4},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct checkpoint_plan p;
		char keys[1024];

		snprintf(keys, sizeof(keys), "%s%s", parameters_small, cases[i].keys);
		plan_of(&p, "default", keys, cases[i].ranks);
		check_walk(&p);
		checkpoint_plan_release(&p);
	}
}

static void test_small(void **state)
{
	struct checkpoint_plan p;
	struct checkpoint_file f;
	struct checkpoint_tensor t;
	char keys[1024];

	(void)state;
	snprintf(keys, sizeof(keys), "%smodel.parallelism.tensor=2 model.parallelism.zero_stage=1",
		 parameters_small);
	plan_of(&p, "default", keys, 2);
	assert_int_equal(p.parameters, 167104);
	assert_int_equal(checkpoint_file_count(&p, 1), 2);
	checkpoint_file_at(&p, 1, 0, &f);
	assert_string_equal(f.name, "model_1_model_states");
	assert_int_equal(f.tensors, 33);
	assert_int_equal(f.bytes, 167808);
	checkpoint_tensor_at(&p, &f, 0, &t);
	assert_string_equal(t.outer, "0");
	assert_string_equal(t.key, "0");
	assert_int_equal(t.elements, 64 * 100 / 2);
	checkpoint_tensor_at(&p, &f, 2, &t);
	assert_string_equal(t.outer, "1");
	assert_string_equal(t.key, "1");
	assert_int_equal(t.elements, 64 * (64 + 2 * 32) / 2);
	checkpoint_tensor_at(&p, &f, 32, &t);
	assert_string_equal(t.outer, "7");
	assert_int_equal(t.elements, 64);
	checkpoint_file_at(&p, 1, 1, &f);
	assert_string_equal(f.name, "zero_pp_rank_0_mp_rank_1_optim_states");
	assert_int_equal(f.tensors, 6);
	for (uint64_t i = 0; i < 6; i++) {
		checkpoint_tensor_at(&p, &f, i, &t);
		assert_string_equal(t.outer, "");
		assert_int_equal(t.elements, i % 2 ? 320 : 83552);
		assert_int_equal(t.type, CHECKPOINT_FP32);
	}
	checkpoint_plan_release(&p);
}

/* Each name once, in DLIO's order. */
static void expect_names(const char *keys, int64_t ranks, int64_t rank, const char *names)
{
	struct checkpoint_plan p;
	char got[4096] = "";
	char all[1024];

	snprintf(all, sizeof(all), "%s%s", parameters_small, keys);
	plan_of(&p, "default", all, ranks);
	for (uint64_t i = 0; i < checkpoint_file_count(&p, rank); i++) {
		struct checkpoint_file f;
		size_t at = strlen(got);

		checkpoint_file_at(&p, rank, i, &f);
		snprintf(got + at, sizeof(got) - at, "%s%s", at ? " " : "", f.name);
	}
	assert_string_equal(got, names);
	checkpoint_plan_release(&p);
}

static void test_names(void **state)
{
	(void)state;
	/* ZeRO 0: the first copy writes, a file a stage */
	expect_names("model.parallelism.tensor=2 model.parallelism.pipeline=2", 8, 3,
		     "zero_pp_rank_0_mp_rank_3_model_states zero_pp_rank_0_mp_rank_3_optim_states");
	expect_names("model.parallelism.tensor=2 model.parallelism.pipeline=2", 8, 4, "");
	expect_names("model.parallelism.tensor=2 checkpoint.type=all_ranks", 4, 3,
		     "zero_pp_rank_1_mp_rank_1_model_states zero_pp_rank_1_mp_rank_1_optim_states");
	expect_names("model.parallelism.tensor=2 checkpoint.type=all_ranks compat.dlio=true", 4, 3,
		     "");
	/* ZeRO 1 and 2 with a pipeline: a file a layer, written by the first copy */
	expect_names("model.parallelism.pipeline=2 model.parallelism.zero_stage=1", 4, 0,
		     "layer_0-model_0_model_states layer_1-model_0_model_states "
		     "layer_2-model_0_model_states layer_3-model_0_model_states "
		     "zero_pp_rank_0_mp_rank_0_optim_states");
	expect_names("model.parallelism.pipeline=2 model.parallelism.zero_stage=2", 4, 1,
		     "layer_4-model_1_model_states layer_5-model_1_model_states "
		     "layer_6-model_1_model_states layer_7-model_1_model_states "
		     "zero_pp_rank_0_mp_rank_1_optim_states");
	expect_names("model.parallelism.pipeline=2 model.parallelism.zero_stage=1", 4, 3,
		     "zero_pp_rank_1_mp_rank_1_optim_states");
	/* ZeRO 3: every rank its part of both */
	expect_names("model.parallelism.tensor=2 model.parallelism.zero_stage=3", 4, 3,
		     "zero_pp_rank_1_mp_rank_1_model_states zero_pp_rank_1_mp_rank_1_optim_states");
	/* no transformer: the bytes of the model */
	expect_names("model.type=cnn model.num_layers=-1", 2, 0, "model_states-0");
	expect_names("model.type=cnn model.num_layers=-1 model.parallelism.zero_stage=1", 2, 1,
		     "model_states-1");
	expect_names("model.type=x model.layer_parameters=[10,20] model.optimization_groups=[5]", 1,
		     0,
		     "model_states-0 zero_pp_rank_0_mp_rank_0_model_states "
		     "zero_pp_rank_0_mp_rank_0_optim_states");
}

/* Where DLIO miscounts, both numbers are known. */
static void test_dlio_totals(void **state)
{
	struct checkpoint_plan p;
	struct checkpoint_totals t;
	char keys[1024], text[32];

	(void)state;
	snprintf(keys, sizeof(keys), "%smodel.parallelism.zero_stage=2", parameters_small);
	plan_of(&p, "default", keys, 4);
	checkpoint_plan_totals(&p, &t);
	snprintf(text, sizeof(text), "%.6f", (double)t.total_bytes / (1 << 30));
	assert_string_equal(text, "0.002193");
	snprintf(text, sizeof(text), "%.6f",
		 (double)(t.dlio_model_bytes + t.dlio_optimizer_bytes) / (1 << 30));
	assert_string_equal(text, "0.003127");
	checkpoint_plan_release(&p);

	plan_of(&p, "megatron_deepspeed_LLNL", "model.model_size_bytes=10240", 64);
	checkpoint_plan_totals(&p, &t);
	assert_int_equal(t.total_bytes, 64 * (10240 + 5625369600ull) + 32 * 5 * 65574784ull);
	assert_int_equal(t.dlio_model_bytes + t.dlio_optimizer_bytes, 10240);
	assert_int_equal(t.files, 64 * 2 + 32 * 5);
	checkpoint_plan_release(&p);

	/* equal layers: one on disk for DLIO, each by itself here */
	plan_of(&p, "default",
		"model.num_layers=3 model.layer_parameters=[10,20] model.type=x "
		"model.model_size_bytes=0 model.optimization_groups=[1]",
		1);
	checkpoint_plan_totals(&p, &t);
	assert_int_equal(t.model_bytes, 90);
	checkpoint_plan_release(&p);
	plan_of(&p, "default",
		"model.num_layers=3 model.layer_parameters=[10,20] model.type=x "
		"model.model_size_bytes=0 model.optimization_groups=[1] "
		"compat.dlio=true",
		1);
	checkpoint_plan_totals(&p, &t);
	assert_int_equal(t.model_bytes, 30);
	checkpoint_plan_release(&p);
}

static void expect_error(const char *keys, int64_t ranks, const char *part)
{
	struct checkpoint_plan p;
	struct workload w;
	struct err e = {0};
	int rc = load(&w, "default", keys, &e);

	assert_true(rc == 0 || rc == ERR_ABSENT);
	assert_int_equal(checkpoint_plan_init(&p, &w, ranks, &e), ERR_USAGE);
	if (!strstr(e.text, part))
		print_error("%s\n", e.text);
	assert_non_null(strstr(e.text, part));
	workload_release(&w);
}

/* Ranks that are no multiple of tensor x pipeline hold what they would in the job of whole copies.
 */
static void test_partial(void **state)
{
	static const char *const keys[] = {
		"", /* ZeRO 0 */
		"checkpoint.type=all_ranks",
		"model.parallelism.zero_stage=1",
		"model.parallelism.zero_stage=2",
		("model.parallelism.zero_stage=3 model.parallelism.pipeline=1 "
		 "model.parallelism.tensor=6"),
		"model.layer_parameters=[10,0,20] model.optimization_groups=[5,7]",
		"model.layer_parameters=[10,20] model.parallelism.zero_stage=1",
		"model.layer_parameters=[10,20] compat.dlio=true",
		"model.type=cnn model.num_layers=-1 model.parallelism.zero_stage=1",
	};
	static const int64_t ranks[] = {1, 2, 5, 6, 7, 12, 13};

	(void)state;
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		for (size_t k = 0; k < sizeof(ranks) / sizeof(ranks[0]); k++) {
			int64_t job = (ranks[k] + 5) / 6 * 6;
			struct checkpoint_plan part, whole;
			struct checkpoint_totals of_part, of_whole;
			char all[1024];

			snprintf(all, sizeof(all),
				 "%smodel.parallelism.tensor=2 model.parallelism.pipeline=3 %s",
				 parameters_small, keys[i]);
			plan_of(&part, "default", all, ranks[k]);
			plan_of(&whole, "default", all, job);
			checkpoint_plan_totals(&part, &of_part);
			checkpoint_plan_totals(&whole, &of_whole);
			assert_int_equal(of_part.whole_ranks, job);
			assert_int_equal(of_part.whole_bytes, of_whole.total_bytes);
			assert_int_equal(of_whole.whole_bytes, of_whole.total_bytes);
			for (int64_t r = 0; r < ranks[k]; r++) {
				struct checkpoint_rank_bytes a, b;

				checkpoint_rank_size(&part, r, &a);
				checkpoint_rank_size(&whole, r, &b);
				assert_memory_equal(&a, &b, sizeof(a));
			}
			checkpoint_plan_release(&part);
			checkpoint_plan_release(&whole);
		}
	}
}

static void test_errors(void **state)
{
	(void)state;
	expect_error("checkpoint.mode=subset model.parallelism.data=2 model.parallelism.tensor=2",
		     5, "exceed the 4 ranks of the job");
	expect_error("model.num_layers=1000000 model.transformer.hidden_size=1000000000000", 1,
		     "exceeds 2^62 bytes");
	expect_error("model.optimization_groups=[1000000000000000,1000000000000000]", 1000000,
		     "exceeds 2^62 bytes");
	expect_error("model.num_layers=2 model.parallelism.pipeline=4", 4, "less than");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),       cmocka_unit_test(test_small),
		cmocka_unit_test(test_walk),        cmocka_unit_test(test_names),
		cmocka_unit_test(test_dlio_totals), cmocka_unit_test(test_partial),
		cmocka_unit_test(test_errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
