/* Philox4x32-10. */
#include "base/philox.h"

#include <string.h>

#define ROUNDS 10
#define WORDS 4

void philox_block(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
	uint32_t c[4], k[2] = {key[0], key[1]};

	memcpy(c, counter, sizeof(c));
	for (int round = 0; round < ROUNDS; round++) {
		uint64_t a = (uint64_t)c[0] * 0xd2511f53u, b = (uint64_t)c[2] * 0xcd9e8d57u;
		uint32_t next[4] = {(uint32_t)(b >> 32) ^ c[1] ^ k[0], (uint32_t)b,
				    (uint32_t)(a >> 32) ^ c[3] ^ k[1], (uint32_t)a};

		memcpy(c, next, sizeof(c));
		k[0] += 0x9e3779b9u;
		k[1] += 0xbb67ae85u;
	}
	memcpy(out, c, sizeof(c));
}

static void block_of(uint64_t low, uint64_t high, uint64_t block, uint32_t out[4])
{
	const uint32_t counter[4] = {(uint32_t)block, (uint32_t)(block >> 32), (uint32_t)high,
				     (uint32_t)(high >> 32)};
	const uint32_t key[2] = {(uint32_t)low, (uint32_t)(low >> 32)};

	philox_block(counter, key, out);
}

void philox_init(struct philox *p, uint64_t low, uint64_t high)
{
	*p = (struct philox){.low = low, .high = high, .used = WORDS};
}

uint32_t philox_next(struct philox *p)
{
	if (p->used == WORDS) {
		block_of(p->low, p->high, p->block++, p->word);
		p->used = 0;
	}
	return p->word[p->used++];
}

uint32_t philox_at(uint64_t low, uint64_t high, uint64_t i)
{
	uint32_t word[4];

	block_of(low, high, i / WORDS, word);
	return word[i % WORDS];
}
