/* measures.bin: any bytes after its first line give measures that can be judged and rendered, or a
 * sentence. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "judge/judge.h"
#include "result/measures.h"
#include "result/sink.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const overrides[] = {
	"dataset.num_files_train=16",
	"dataset.num_files_eval=8",
	"dataset.record_length_bytes=4096",
	"train.computation_time=0.01",
	"train.epochs=2",
	"reader.batch_size=2",
	"dataset.data_folder=/nonexistent",
};

static void judge(struct result *r, bool with_limit)
{
	struct run_metrics m = {0};
	struct err e = {0};

	if (metrics_compute(&m, r, &e) == 0 &&
	    (with_limit ? judge_result(r, &m, &e) : judge_trust(r, &m, &e)) == 0)
		json_decref(result_tree(r, &m));
	metrics_release(&m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct workload_request req = {.workload = "default",
					     .overrides = overrides,
					     .override_count =
						     sizeof(overrides) / sizeof(overrides[0])};
	struct workload w;
	struct dataset d;
	struct result r = {0};
	struct err e = {0};

	if (workload_load(&w, &req, &e) < 0 || dataset_init(&d, &w, &e) < 0)
		abort();
	if (measures_read(&r, &w, &d, (const char *)data, size, "measures.bin", &e) == 0)
		judge(&r, size % 16 == 0); /* it takes long */
	else if (!e.text[0])
		abort();
	measures_release(&r);
	dataset_release(&d);
	workload_release(&w);
	return 0;
}
