/* Topology, sizes and names of checkpoints. */
#include "checkpoint/checkpoint_plan.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

#define BYTES_LIMIT (1ull << 62)

const uint32_t checkpoint_datatype_bytes[CHECKPOINT_DATATYPES] = {2, 2, 4, 8, 1, 1};

/* a * b, with everything that is too large ending at the limit. */
static uint64_t saturating_mul(uint64_t a, uint64_t b)
{
	uint64_t r;

	return __builtin_mul_overflow(a, b, &r) || r > BYTES_LIMIT ? BYTES_LIMIT : r;
}

static uint64_t saturating_add(uint64_t a, uint64_t b)
{
	return a + b > BYTES_LIMIT ? BYTES_LIMIT : a + b;
}

static int check_ranks(const struct checkpoint_plan *p, bool subset, struct err *e)
{
	int64_t model = p->tensor * p->pipeline;

	if (subset && p->ranks > p->data * model)
		return err_set(e, ERR_USAGE,
			       "%" PRId64 " ranks exceed the %" PRId64
			       " ranks of the job of which they are a subset (model.parallelism: "
			       "data %" PRId64 " x tensor %" PRId64 " x pipeline %" PRId64 ")",
			       p->ranks, p->data * model, p->data, p->tensor, p->pipeline);
	if (p->layers > 0 && p->layers < p->pipeline)
		return err_set(e, ERR_USAGE,
			       "model.num_layers %" PRId64
			       " is less than model.parallelism.pipeline %" PRId64,
			       p->layers, p->pipeline);
	return 0;
}

/* Keeps the entries of a list that are not zero. */
static uint64_t keep_nonzero(const uint64_t *n, size_t count, int64_t **key, uint64_t **elements)
{
	uint64_t kept = 0;

	*key = xcalloc(count ? count : 1, sizeof(**key));
	*elements = xcalloc(count ? count : 1, sizeof(**elements));
	for (size_t i = 0; i < count; i++) {
		if (n[i] == 0)
			continue;
		(*key)[kept] = (int64_t)i;
		(*elements)[kept++] = n[i];
	}
	return kept;
}

static void derive_layers(struct checkpoint_plan *p, const struct workload *w)
{
	const uint64_t tp = (uint64_t)p->tensor;
	const uint64_t shards = p->zero == 3 ? (uint64_t)p->data : 1;
	const uint64_t h = (uint64_t)w->model.transformer.hidden_size;
	const uint64_t f = (uint64_t)w->model.transformer.ffn_hidden_size;
	const uint64_t v = (uint64_t)w->model.transformer.vocab_size;
	const uint64_t kv = saturating_mul(h / (uint64_t)w->model.transformer.num_attention_heads,
					   (uint64_t)w->model.transformer.num_kv_heads);
	const uint64_t qkv = saturating_mul(h, saturating_add(h, saturating_mul(2, kv)));
	const uint64_t gated = saturating_mul(saturating_mul(2, h), f);
	const uint64_t whole[CHECKPOINT_LAYER_TENSORS] = {
		h, qkv, saturating_mul(h, h), h, gated, saturating_mul(h, f),
	};
	uint64_t one = 0, held[CHECKPOINT_LAYER_TENSORS];
	uint64_t *given;

	for (int i = 0; i < CHECKPOINT_LAYER_TENSORS; i++) {
		bool vector = i == 0 || i == 3;

		one = saturating_add(one, whole[i]);
		held[i] = (vector ? whole[i] : whole[i] / tp) / shards;
	}
	if (p->layers > 0)
		p->parameters =
			saturating_add(saturating_add(saturating_mul(2, saturating_mul(v, h)), h),
				       saturating_mul((uint64_t)p->layers, one));
	if (!p->predefined) {
		p->embedding = saturating_mul(h, v) / tp / shards;
		p->norm = h / shards;
		p->layer_tensors = keep_nonzero(held, CHECKPOINT_LAYER_TENSORS, &p->layer_key,
						&p->layer_elements);
	} else {
		size_t n = w->model.layer_parameters.n;

		given = xcalloc(n, sizeof(*given));
		for (size_t i = 0; i < n; i++)
			given[i] = (uint64_t)w->model.layer_parameters.v[i] / tp;
		p->layer_tensors = keep_nonzero(given, n, &p->layer_key, &p->layer_elements);
		free(given);
	}
	for (uint64_t i = 0; i < p->layer_tensors; i++)
		p->layer_sum = saturating_add(p->layer_sum, p->layer_elements[i]);
}

static void derive_optimizer(struct checkpoint_plan *p, const struct workload *w)
{
	const struct i64_list *given = &w->model.optimization_groups;
	uint64_t share = p->parameters / (uint64_t)(p->tensor * p->pipeline);
	uint64_t moments = saturating_mul(5, (uint64_t)w->model.transformer.hidden_size);
	uint64_t *n;

	if (p->zero > 0)
		share = p->parameters /
			saturating_mul((uint64_t)(p->tensor * p->pipeline), (uint64_t)p->data);
	if (given->n > 0) {
		n = xcalloc(given->n, sizeof(*n));
		for (size_t i = 0; i < given->n; i++)
			n[i] = (uint64_t)given->v[i];
		p->grouped = true;
		p->groups = keep_nonzero(n, given->n, &p->group_key, &p->group_elements);
		free(n);
	} else if (p->layers > 0) {
		const uint64_t six[] = {share, moments, share, moments, share, moments};

		p->groups = keep_nonzero(six, 6, &p->group_key, &p->group_elements);
	}
	for (uint64_t i = 0; i < p->groups; i++)
		p->group_sum = saturating_add(p->group_sum, p->group_elements[i]);
}

int checkpoint_plan_init(struct checkpoint_plan *p, const struct workload *w, int64_t ranks,
			 struct err *e)
{
	const bool subset = w->checkpoint.mode == 1;
	struct checkpoint_rank_bytes most;
	int64_t model = w->model.parallelism.tensor * w->model.parallelism.pipeline;
	int rc;

	*p = (struct checkpoint_plan){
		.ranks = ranks,
		.tensor = w->model.parallelism.tensor,
		.pipeline = w->model.parallelism.pipeline,
		.data = w->model.parallelism.data,
		.zero = (int)w->model.parallelism.zero_stage,
		.all_ranks = w->checkpoint.type == 1 && !w->compat.dlio,
		.transformer = w->model.type && strcmp(w->model.type, "transformer") == 0,
		.model_size_bytes = (uint64_t)w->model.model_size_bytes,
		.layers = w->model.num_layers,
		.predefined = w->model.layer_parameters.n > 0,
		.model_type = (enum checkpoint_datatype)w->model.model_datatype,
		.optimizer_type = (enum checkpoint_datatype)w->model.optimizer_datatype,
	};
	p->share_equal = w->compat.dlio && p->predefined;
	if (p->data <= 0) /* the last copy may lack ranks */
		p->data = ranks / model + (ranks % model != 0);
	rc = check_ranks(p, subset, e);
	if (rc < 0)
		return rc;
	derive_layers(p, w);
	derive_optimizer(p, w);
	/* the largest rank bounds all others; 64 bits must hold the sum */
	most = (struct checkpoint_rank_bytes){
		.total = saturating_add(
			saturating_mul(
				saturating_add(
					saturating_mul(2, p->embedding),
					saturating_add(
						p->norm,
						saturating_mul(
							(uint64_t)(p->layers > 0 ? p->layers : 0),
							p->layer_sum))),
				8),
			saturating_mul(p->group_sum, 24)),
	};
	if (saturating_add(saturating_mul(most.total, (uint64_t)ranks), p->model_size_bytes) >=
	    BYTES_LIMIT) {
		checkpoint_plan_release(p);
		return err_set(e, ERR_USAGE,
			       "the checkpoint of this model with %" PRId64
			       " ranks exceeds 2^62 bytes: reduce the model.* sizes",
			       ranks);
	}
	return 0;
}

void checkpoint_plan_release(struct checkpoint_plan *p)
{
	free(p->layer_key);
	free(p->layer_elements);
	free(p->group_key);
	free(p->group_elements);
	*p = (struct checkpoint_plan){0};
}

struct checkpoint_place checkpoint_place_of(const struct checkpoint_plan *p, int64_t rank)
{
	return (struct checkpoint_place){
		.tp = rank % p->tensor,
		.pp = rank / p->tensor % p->pipeline,
		.dp = rank / (p->tensor * p->pipeline),
		.mp = rank % (p->tensor * p->pipeline),
	};
}

/* The first and last layer of a pipeline stage; embedding and head belong to the outer ones. */
static void stage_layers(const struct checkpoint_plan *p, int64_t pp, int64_t *first, int64_t *last)
{
	int64_t each = p->layers / p->pipeline, more = p->layers % p->pipeline;

	*first = pp * each + (pp < more ? pp : more) + 1;
	*last = *first + each - (pp < more ? 0 : 1);
	if (!p->predefined && pp == 0)
		*first = 0;
	if (!p->predefined && pp == p->pipeline - 1)
		*last = p->layers + 2;
}

static bool writes(const struct checkpoint_plan *p, const struct checkpoint_place *at)
{
	return p->zero > 0 || at->dp == 0 || p->all_ranks;
}

static bool holds_layers(const struct checkpoint_plan *p, const struct checkpoint_place *at)
{
	if (p->layers <= 0 || p->layer_sum == 0 || !writes(p, at))
		return false;
	return (p->zero != 1 && p->zero != 2) || at->dp == 0;
}

static bool file_each_layer(const struct checkpoint_plan *p)
{
	return p->pipeline > 1 && (p->zero == 1 || p->zero == 2);
}

static bool holds_whole(const struct checkpoint_plan *p, const struct checkpoint_place *at)
{
	return !p->transformer && p->model_size_bytes > 0 && writes(p, at);
}

static bool holds_optimizer(const struct checkpoint_plan *p, const struct checkpoint_place *at)
{
	return p->groups > 0 && writes(p, at);
}

/* Tensors and elements of layers first to last. */
static void sum_layers(const struct checkpoint_plan *p, int64_t first, int64_t last,
		       uint64_t *tensors, uint64_t *elements)
{
	int64_t low = first > 1 ? first : 1, high = last < p->layers ? last : p->layers;
	uint64_t count = high >= low ? (uint64_t)(high - low + 1) : 0;

	*tensors = count * p->layer_tensors;
	*elements = count * p->layer_sum;
	if (first <= 0 && p->embedding) {
		*tensors += 1;
		*elements += p->embedding;
	}
	if (first <= p->layers + 1 && last >= p->layers + 1 && p->embedding) {
		*tensors += 1;
		*elements += p->embedding;
	}
	if (last >= p->layers + 2 && p->norm) {
		*tensors += 1;
		*elements += p->norm;
	}
}

static enum checkpoint_datatype layers_type(const struct checkpoint_plan *p)
{
	return p->predefined ? CHECKPOINT_INT8 : p->model_type;
}

static uint64_t optimizer_bytes(const struct checkpoint_plan *p)
{
	if (p->grouped)
		return 3 * p->group_sum;
	return p->group_sum * checkpoint_datatype_bytes[p->optimizer_type];
}

uint64_t checkpoint_file_count(const struct checkpoint_plan *p, int64_t rank)
{
	struct checkpoint_place at = checkpoint_place_of(p, rank);
	uint64_t files = (holds_whole(p, &at) ? 1u : 0u) + (holds_optimizer(p, &at) ? 1u : 0u);
	int64_t first, last;

	if (!holds_layers(p, &at))
		return files;
	stage_layers(p, at.pp, &first, &last);
	return files + (file_each_layer(p) ? (uint64_t)(last - first + 1) : 1);
}

static void layers_file(const struct checkpoint_plan *p, const struct checkpoint_place *at,
			uint64_t index, struct checkpoint_file *out)
{
	uint64_t elements;

	out->part = CHECKPOINT_LAYERS;
	stage_layers(p, at->pp, &out->first_layer, &out->last_layer);
	if (file_each_layer(p)) {
		out->first_layer += (int64_t)index;
		out->last_layer = out->first_layer;
		snprintf(out->name, sizeof(out->name),
			 "layer_%" PRId64 "-model_%" PRId64 "_model_states", out->first_layer,
			 at->mp);
	} else {
		out->by_layer = true;
		out->shared = p->share_equal;
		if (p->zero == 1 || p->zero == 2)
			snprintf(out->name, sizeof(out->name), "model_%" PRId64 "_model_states",
				 at->mp);
		else
			snprintf(out->name, sizeof(out->name),
				 "zero_pp_rank_%" PRId64 "_mp_rank_%" PRId64 "_model_states",
				 at->dp, at->mp);
	}
	sum_layers(p, out->first_layer, out->shared ? out->first_layer : out->last_layer,
		   &out->tensors, &elements);
	out->bytes = elements * checkpoint_datatype_bytes[layers_type(p)];
}

void checkpoint_file_at(const struct checkpoint_plan *p, int64_t rank, uint64_t index,
			struct checkpoint_file *out)
{
	struct checkpoint_place at = checkpoint_place_of(p, rank);
	bool last = index + 1 == checkpoint_file_count(p, rank);

	assert(index < checkpoint_file_count(p, rank));
	*out = (struct checkpoint_file){.rank = rank};
	if (holds_whole(p, &at)) {
		if (index == 0) {
			out->part = CHECKPOINT_WHOLE;
			out->tensors = 1;
			out->bytes = p->model_size_bytes;
			snprintf(out->name, sizeof(out->name), "model_states-%" PRId64, rank);
			return;
		}
		index--;
	}
	if (!last || !holds_optimizer(p, &at)) {
		layers_file(p, &at, index, out);
		return;
	}
	out->part = CHECKPOINT_OPTIMIZER;
	out->by_layer = p->grouped;
	out->tensors = p->grouped ? 2 * p->groups + 1 : p->groups;
	out->bytes = optimizer_bytes(p);
	snprintf(out->name, sizeof(out->name),
		 "zero_pp_rank_%" PRId64 "_mp_rank_%" PRId64 "_optim_states", at.dp, at.mp);
}

static void set_tensor(struct checkpoint_tensor *t, int64_t outer, int64_t key, uint64_t elements,
		       enum checkpoint_datatype type)
{
	if (outer >= 0)
		snprintf(t->outer, sizeof(t->outer), "%" PRId64, outer);
	snprintf(t->key, sizeof(t->key), "%" PRId64, key);
	t->elements = elements;
	t->type = type;
}

static void layer_tensor(const struct checkpoint_plan *p, const struct checkpoint_file *f,
			 uint64_t index, struct checkpoint_tensor *t)
{
	int64_t low = f->first_layer > 1 ? f->first_layer : 1, layer;
	int64_t high = f->last_layer < p->layers ? f->last_layer : p->layers;
	uint64_t count = high >= low ? (uint64_t)(high - low + 1) * p->layer_tensors : 0;
	enum checkpoint_datatype type = layers_type(p);

	if (f->first_layer == 0 && p->embedding) {
		if (index == 0) {
			set_tensor(t, f->by_layer ? 0 : -1, 0, p->embedding, type);
			return;
		}
		index--;
	}
	if (index < count) {
		uint64_t k = index % p->layer_tensors;

		layer = low + (int64_t)(index / p->layer_tensors);
		set_tensor(t, f->by_layer ? layer : -1, p->layer_key[k], p->layer_elements[k],
			   type);
		return;
	}
	index -= count;
	/* what is left is head and norm, or one of them */
	if (index == 0 && p->embedding && f->first_layer <= p->layers + 1) {
		set_tensor(t, f->by_layer ? p->layers + 1 : -1, 0, p->embedding, type);
		return;
	}
	set_tensor(t, f->by_layer ? p->layers + 2 : -1, 0, p->norm, type);
}

void checkpoint_tensor_at(const struct checkpoint_plan *p, const struct checkpoint_file *f,
			  uint64_t index, struct checkpoint_tensor *out)
{
	assert(index < f->tensors);
	*out = (struct checkpoint_tensor){.index = index};
	switch (f->part) {
	case CHECKPOINT_LAYERS:
		layer_tensor(p, f, index, out);
		break;
	case CHECKPOINT_OPTIMIZER:
		if (!p->grouped) {
			set_tensor(out, -1, p->group_key[index], p->group_elements[index],
				   p->optimizer_type);
		} else if (index == 2 * p->groups) {
			set_tensor(out, -1, 0, p->group_sum, CHECKPOINT_INT8);
			snprintf(out->key, sizeof(out->key), "combined");
		} else {
			set_tensor(out, p->group_key[index / 2], 0, p->group_elements[index / 2],
				   CHECKPOINT_INT8);
			snprintf(out->key, sizeof(out->key), index % 2 ? "b" : "a");
		}
		break;
	default:
		set_tensor(out, -1, 0, p->model_size_bytes, CHECKPOINT_INT8);
		snprintf(out->key, sizeof(out->key), "a");
	}
	out->bytes = out->elements * checkpoint_datatype_bytes[out->type];
}

void checkpoint_rank_size(const struct checkpoint_plan *p, int64_t rank,
			  struct checkpoint_rank_bytes *out)
{
	struct checkpoint_place at = checkpoint_place_of(p, rank);

	*out = (struct checkpoint_rank_bytes){.files = checkpoint_file_count(p, rank)};
	if (holds_whole(p, &at))
		out->part[CHECKPOINT_WHOLE] = p->model_size_bytes;
	if (holds_layers(p, &at)) {
		int64_t first, last;
		uint64_t tensors, elements;

		stage_layers(p, at.pp, &first, &last);
		if (p->share_equal && !file_each_layer(p))
			last = first;
		sum_layers(p, first, last, &tensors, &elements);
		out->part[CHECKPOINT_LAYERS] = elements * checkpoint_datatype_bytes[layers_type(p)];
	}
	if (holds_optimizer(p, &at))
		out->part[CHECKPOINT_OPTIMIZER] = optimizer_bytes(p);
	for (int i = 0; i < CHECKPOINT_PARTS; i++)
		out->total += out->part[i];
}

/* What checkpoint_rank_size gives, summed over every rank of whole copies, without a look at each:
 * there may be far more of them than run. */
static uint64_t whole_bytes(const struct checkpoint_plan *p)
{
	const bool every = p->zero > 0 || p->all_ranks;
	const uint64_t copies = every ? (uint64_t)p->data : 1;
	const uint64_t tensor = (uint64_t)p->tensor, stages = (uint64_t)p->pipeline;
	const uint64_t writers = saturating_mul(saturating_mul(tensor, stages), copies);
	uint64_t each, elements, sum = 0;

	if (!p->transformer)
		sum = saturating_mul(p->model_size_bytes, writers);
	if (p->layers > 0 && p->layer_sum > 0) {
		each = p->share_equal && !file_each_layer(p) ? stages : (uint64_t)p->layers;
		elements = saturating_add(saturating_mul(each, p->layer_sum),
					  saturating_add(saturating_mul(2, p->embedding), p->norm));
		sum = saturating_add(
			sum,
			saturating_mul(saturating_mul(saturating_mul(elements, tensor),
						      checkpoint_datatype_bytes[layers_type(p)]),
				       p->zero == 1 || p->zero == 2 ? 1 : copies));
	}
	return saturating_add(sum, p->groups ? saturating_mul(optimizer_bytes(p), writers) : 0);
}

/* Bytes of layers that DLIO allocates on a rank, and so counts. */
static uint64_t dlio_layer_bytes(const struct checkpoint_plan *p, const struct checkpoint_place *at)
{
	int64_t first, last;
	uint64_t tensors, elements;

	if (p->layers <= 0 || p->predefined || (p->zero < 2 && at->dp > 0))
		return 0;
	stage_layers(p, at->pp, &first, &last);
	sum_layers(p, first, last, &tensors, &elements);
	return elements * checkpoint_datatype_bytes[p->model_type];
}

void checkpoint_plan_totals(const struct checkpoint_plan *p, struct checkpoint_totals *out)
{
	bool whole = !p->transformer && p->model_size_bytes > 0;

	*out = (struct checkpoint_totals){
		.ranks = (uint64_t)p->ranks,
		.whole_ranks =
			saturating_mul(saturating_mul((uint64_t)p->tensor, (uint64_t)p->pipeline),
				       (uint64_t)p->data),
		.whole_bytes = whole_bytes(p),
	};
	for (int64_t rank = 0; rank < p->ranks; rank++) {
		struct checkpoint_place at = checkpoint_place_of(p, rank);
		struct checkpoint_rank_bytes b;

		checkpoint_rank_size(p, rank, &b);
		out->writers += b.files > 0;
		out->files += b.files;
		out->model_bytes += b.part[CHECKPOINT_WHOLE] + b.part[CHECKPOINT_LAYERS];
		out->optimizer_bytes += b.part[CHECKPOINT_OPTIMIZER];
		out->total_bytes += b.total;
		if (!whole)
			out->dlio_model_bytes += dlio_layer_bytes(p, &at);
		if (!p->grouped)
			out->dlio_optimizer_bytes += b.part[CHECKPOINT_OPTIMIZER];
	}
	if (whole)
		out->dlio_model_bytes = p->model_size_bytes;
}

char *checkpoint_folder_path(const struct workload *w, int64_t epoch, int64_t step)
{
	return xasprintf("%s/global_epoch%" PRId64 "_step%" PRId64, w->checkpoint.checkpoint_folder,
			 epoch, step);
}
