#pragma once
/* Reads that take time and move no bytes, in the place of a loader's readers: the loaders' own code
 * with a model of storage below it, in virtual time (base/virtual.h). A loader with a model opens
 * no file, counts no request and takes no memory for samples. Its policy, which is who reads what
 * and when, how far ahead, and in which order batches are delivered, is the same code. */
#include <stdbool.h>
#include <stdint.h>

/* Who reads what. */
struct modelled_read {
	uint32_t rank, worker;
	uint64_t batch;   /* of the epoch, from 0; UINT64_MAX where a reader knows of no batch */
	uint64_t first;   /* position of the first sample in the rank's epoch, with a batch */
	uint64_t sample;  /* of the dataset; UINT64_MAX where several are read */
	uint32_t samples; /* 1, or a run of a batch */
};

/* What is done with a batch, or a sample, beside reading it. */
enum modelled_work {
	MODEL_INDEX,  /* the index of the sample's file, before the first sample of any is read */
	MODEL_COPY,   /* a sample, by a copying thread of DALI's own readers */
	MODEL_PACK,   /* a batch, for the rank: reader.transport, by the worker */
	MODEL_UNPACK, /* the same, by its receiver */
	MODEL_PIN,    /* reader.pin_thread */
};

/* All are called in the fiber of whoever reads or works, and return when that is over: they may
 * wait in any way (base/virtual.h). */
struct read_model {
	/* Workers that read batches, or runs of them, ask for one at once, not for its samples one
	 * after another. DALI's own readers and TensorFlow's records are read by samples anyway. */
	bool whole;
	void (*read)(void *arg, const struct modelled_read *r);
	/* NULL: none of it takes time. */
	void (*work)(void *arg, const struct modelled_read *r, enum modelled_work what);
	void *arg;
};

static inline void read_model_work(const struct read_model *m, const struct modelled_read *r,
				   enum modelled_work what)
{
	if (m->work)
		m->work(m->arg, r, what);
}
