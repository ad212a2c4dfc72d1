#pragma once
/* A keyed permutation of 0..n-1 in constant memory: a Feistel network over the smallest number of
 * bits that covers n, at least 6, cycle-walked back into range (less than one more turn on average
 * for n over 32). Pure and thread-safe after perm_init. */
#include <stdint.h>

#define PERM_ROUNDS 6

struct perm {
	uint64_t n;
	unsigned low_bits; /* the low half; the high half has as many or one more */
	uint64_t high_mask;
	uint64_t round_key[PERM_ROUNDS];
};

/* n may be 0 (then perm_at must not be called). */
void perm_init(struct perm *p, uint64_t n, uint64_t key);
/* Where position i (< n) of the shuffled sequence comes from: a value in 0..n-1, each exactly once.
 */
uint64_t perm_at(const struct perm *p, uint64_t i);
