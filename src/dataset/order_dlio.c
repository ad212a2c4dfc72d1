/* DLIO's own arithmetic of files, blocks and sample maps, with NumPy's random numbers. */
#include "dataset/order_dlio.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/rng.h"

uint64_t order_dlio_files(uint64_t files, uint64_t samples_per_file, uint64_t batch, uint64_t ranks)
{
	uint64_t step;

	if (samples_per_file != 1)
		return files;
	if (__builtin_mul_overflow(batch, ranks, &step) || step == 0)
		return 0;
	return files / step * step;
}

void order_dlio_block(uint64_t samples, uint32_t ranks, uint32_t rank, uint64_t *first,
		      uint64_t *count)
{
	uint64_t block = samples / ranks + (samples % ranks != 0);

	/* rank * block may pass the end by up to ranks * ranks: the last ranks can be empty. */
	if (__builtin_mul_overflow(block, (uint64_t)rank, first) || *first > samples)
		*first = samples;
	*count = samples - *first < block ? samples - *first : block;
}
