/* A permutation that is computed, not stored: a Feistel network with cycle walking. */
#include "base/perm.h"

#include "base/rng.h"

void perm_init(struct perm *p, uint64_t n, uint64_t key)
{
	unsigned bits = n > 1 ? 64u - (unsigned)__builtin_clzll(n - 1) : 1;

	/* over fewer bits some orders of a few numbers come out up to a fifth too often */
	if (bits < 6)
		bits = 6;
	p->n = n;
	p->low_bits = bits / 2;
	p->high_mask = (1ull << (bits - p->low_bits)) - 1;
	for (unsigned r = 0; r < PERM_ROUNDS; r++)
		p->round_key[r] = rng_word(key, r);
}

uint64_t perm_at(const struct perm *p, uint64_t i)
{
	uint64_t low_mask = (1ull << p->low_bits) - 1;
	uint64_t v = i;

	if (p->n <= 1)
		return 0;
	/* the network permutes more numbers than n: the cycle that starts in range comes back to it
	 */
	do {
		uint64_t high = v >> p->low_bits, low = v & low_mask;

		for (unsigned r = 0; r < PERM_ROUNDS; r += 2) {
			high ^= rng_mix64(low + p->round_key[r]) & p->high_mask;
			low ^= rng_mix64(high + p->round_key[r + 1]) & low_mask;
		}
		v = (high << p->low_bits) | low;
	} while (v >= p->n);
	return v;
}
