#pragma once
/* What each rank of a job holds and writes: DLIO's model of a checkpoint (dlio_benchmark
 * checkpointing/base_checkpointing.py at e1919d7), corrected where docs/compatibility.md says so.
 *
 * A job is a grid of tensor x pipeline x data ranks; rank = (dp * pipeline + pp) * tensor + tp.
 * Where the ranks are no multiple of tensor x pipeline they are the first ones of the smallest such
 * job, and each holds what its place in it gives: a part of the model is then written. All
 * answers are computed from a few numbers, so that a plan has the same small size for any model
 * and number of ranks. A plan is read-only after checkpoint_plan_init: any thread may ask. */
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "workload/workload.h"

enum checkpoint_datatype { /* the order of model.model_datatype's choices */
			   CHECKPOINT_FP16,
			   CHECKPOINT_BF16,
			   CHECKPOINT_FP32,
			   CHECKPOINT_FP64,
			   CHECKPOINT_INT8,
			   CHECKPOINT_UINT8,
			   CHECKPOINT_DATATYPES
};

extern const uint32_t checkpoint_datatype_bytes[CHECKPOINT_DATATYPES];

enum checkpoint_part {
	CHECKPOINT_WHOLE,     /* model.model_size_bytes of a model that is no transformer */
	CHECKPOINT_LAYERS,    /* the layers of the rank's pipeline stage */
	CHECKPOINT_OPTIMIZER, /* the state of the optimizer */
	CHECKPOINT_PARTS
};

#define CHECKPOINT_NAME_MAX 112
#define CHECKPOINT_LAYER_TENSORS 6

struct checkpoint_plan {
	int64_t ranks;
	int64_t tensor, pipeline, data; /* data: copies of the model in the whole job */
	int zero;
	bool all_ranks;   /* with ZeRO 0 every copy is written, not only the first */
	bool share_equal; /* compat.dlio: layers given by layer_parameters are one object */
	bool transformer; /* model.type is transformer */
	uint64_t model_size_bytes;
	int64_t layers;  /* transformer layers, or at most 0 */
	bool predefined; /* layers hold the tensors of layer_parameters */
	enum checkpoint_datatype model_type, optimizer_type;

	uint64_t parameters;
	uint64_t embedding, norm; /* elements in a rank's layers 0 and layers + 1, and layers + 2 */
	/* the tensors of one transformer layer that are not empty: their keys and elements */
	int64_t *layer_key;
	uint64_t *layer_elements;
	uint64_t layer_tensors;
	uint64_t layer_sum; /* elements */
	/* the groups of the optimizer that are not empty */
	int64_t *group_key;
	uint64_t *group_elements;
	uint64_t groups;
	bool grouped; /* from optimization_groups, each as a, b and once more in "combined" */
	uint64_t group_sum;
};

struct checkpoint_place {
	int64_t tp, pp, dp, mp; /* mp = rank mod (tensor * pipeline) */
};

/* A file of a rank, without the extension that its format adds. */
struct checkpoint_file {
	enum checkpoint_part part;
	int64_t rank;
	int64_t first_layer, last_layer; /* CHECKPOINT_LAYERS: inclusive */
	bool by_layer;                   /* keys are layer and tensor, else only tensor */
	bool shared;                     /* all layers are the first one's tensors */
	uint64_t tensors;                /* that hold bytes: with `shared` those of one layer */
	uint64_t bytes;                  /* of their elements */
	char name[CHECKPOINT_NAME_MAX];
};

struct checkpoint_tensor {
	uint64_t index; /* within its file */
	char outer[24]; /* layer or group, "" when the map is flat */
	char key[24];
	enum checkpoint_datatype type;
	uint64_t elements, bytes;
};

struct checkpoint_rank_bytes {
	uint64_t part[CHECKPOINT_PARTS];
	uint64_t total;
	uint64_t files;
};

struct checkpoint_totals {
	uint64_t ranks, writers, files;
	uint64_t model_bytes, optimizer_bytes, total_bytes; /* written by all ranks */
	/* Ranks of whole copies of the model, and what they would write. More than `ranks` where
	 * only a part of the model is written: checkpoint.mode subset, or ranks that are no
	 * multiple of tensor x pipeline. At most 2^62. */
	uint64_t whole_ranks, whole_bytes;
	/* what DLIO reports; not what is written where layers or groups are predefined, and under
	 * ZeRO 2 */
	uint64_t dlio_model_bytes, dlio_optimizer_bytes;
};

/* The plan of `w` (borrowed only during the call) for `ranks` processes. ERR_USAGE where they are
 * more than the job of which they are a subset, pipeline stages are more than layers, or sizes are
 * beyond 2^62 bytes. Release after success. */
int checkpoint_plan_init(struct checkpoint_plan *p, const struct workload *w, int64_t ranks,
			 struct err *e);
void checkpoint_plan_release(struct checkpoint_plan *p);

struct checkpoint_place checkpoint_place_of(const struct checkpoint_plan *p, int64_t rank);
/* Files that the rank writes, in this order: whole model, layers, optimizer. */
uint64_t checkpoint_file_count(const struct checkpoint_plan *p, int64_t rank);
void checkpoint_file_at(const struct checkpoint_plan *p, int64_t rank, uint64_t index,
			struct checkpoint_file *out);
/* Tensor `index` (below f->tensors) in the order of the file's map. */
void checkpoint_tensor_at(const struct checkpoint_plan *p, const struct checkpoint_file *f,
			  uint64_t index, struct checkpoint_tensor *out);
/* Bytes of tensors, without what formats put around them. Constant time. */
void checkpoint_rank_size(const struct checkpoint_plan *p, int64_t rank,
			  struct checkpoint_rank_bytes *out);
/* Over all ranks of the plan; time proportional to their number. */
void checkpoint_plan_totals(const struct checkpoint_plan *p, struct checkpoint_totals *out);
/* "<folder>/global_epoch<E>_step<S>". Heap string. */
char *checkpoint_folder_path(const struct workload *w, int64_t epoch, int64_t step);
