#include "base/perm.h"

#include "base/rng.h"

#define ROUNDS (sizeof(((struct perm *)0)->round_key) / sizeof(uint64_t))

void perm_init(struct perm *p, uint64_t n, uint64_t key)
{
	unsigned bits = n > 1 ? 64u - (unsigned)__builtin_clzll(n - 1) : 1;

	p->n = n;
	p->half_bits = (bits + 1) / 2;
	for (size_t r = 0; r < ROUNDS; r++)
		p->round_key[r] = rng_word(key, r);
}

uint64_t perm_at(const struct perm *p, uint64_t i)
{
	uint64_t mask = (1ull << p->half_bits) - 1;
	uint64_t v = i;

	if (p->n <= 1)
		return 0;
	/* the network permutes 0..2^(2*half_bits)-1, at most four times as many as n: walk the cycle
	 * until it comes back into range, which it must */
	do {
		uint64_t left = v >> p->half_bits, right = v & mask;

		for (size_t r = 0; r < ROUNDS; r++) {
			uint64_t next = left ^ (rng_mix64(right + p->round_key[r]) & mask);

			left = right;
			right = next;
		}
		v = (left << p->half_bits) | right;
	} while (v >= p->n);
	return v;
}
