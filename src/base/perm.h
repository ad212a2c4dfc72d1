#pragma once
/* A keyed permutation of 0..n-1 in constant memory: a balanced Feistel network over the smallest even
 * number of bits that covers n, cycle-walked back into range. Pure and thread-safe after perm_init. */
#include <stdint.h>

struct perm {
	uint64_t n;
	unsigned half_bits;
	uint64_t round_key[6];
};

/* n may be 0 (then perm_at must not be called). */
void perm_init(struct perm *p, uint64_t n, uint64_t key);
/* Where position i (< n) of the shuffled sequence comes from: a value in 0..n-1, each exactly once. */
uint64_t perm_at(const struct perm *p, uint64_t i);
