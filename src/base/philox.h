#pragma once
/* Philox4x32-10, the counter-based generator of Salmon, Moraes, Dror and Shaw, "Parallel random
 * numbers: as easy as 1, 2, 3" (SC 2011), and the stream of 32-bit words that TensorFlow makes of
 * it. */
#include <stdint.h>

/* One block of ten rounds. */
void philox_block(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

/* TensorFlow's PhiloxRandom(low, high) read word by word: the first seed is the key, the second the
 * upper half of the counter, whose lower half counts blocks. */
struct philox {
	uint64_t low, high;
	uint64_t block; /* the next one */
	uint32_t word[4];
	unsigned used; /* words of the present block */
};

void philox_init(struct philox *p, uint64_t low, uint64_t high);
uint32_t philox_next(struct philox *p);
/* The i-th word of the stream. */
uint32_t philox_at(uint64_t low, uint64_t high, uint64_t i);
