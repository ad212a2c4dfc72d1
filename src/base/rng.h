#pragma once
/* Random numbers, bit for bit those of NumPy's legacy generator where DLIO's results depend on
 * them, and a counter-based generator for everything of our own. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* NumPy's global legacy RandomState: MT19937 seeded as `np.random.seed(int)` does (init_genrand),
 * the polar gaussian with its cache, masked-rejection integers. Source: numpy/random/src/{mt19937,
 * legacy}; vectors in tests/data/vectors/rng-vectors.json. Not thread-safe: one per thread. */
struct rng_np {
	uint32_t key[624];
	int pos;
	int has_gauss;
	double gauss;
};

void rng_np_seed(struct rng_np *r, uint32_t seed);
/* Seeds from the operating system's entropy; unreproducible by intention. */
void rng_np_seed_entropy(struct rng_np *r);
uint32_t rng_np_u32(struct rng_np *r);
/* Two u32 draws, the first is the high word. */
uint64_t rng_np_u64(struct rng_np *r);
/* [0, 1), 53 bits. */
double rng_np_double(struct rng_np *r);
/* Uniform in 0..max inclusive by masked rejection; draws nothing when max is 0. */
uint64_t rng_np_interval(struct rng_np *r, uint64_t max);
/* As np.random.shuffle on a 1-D array or list of n elements. */
void rng_np_shuffle_u64(struct rng_np *r, uint64_t *x, size_t n);
/* np.random.RandomState([word, ...]): seeded with an array (init_by_array). */
void rng_np_seed_words(struct rng_np *r, const uint32_t *word, uint32_t words);
/* Python's random.Random(seed): the same engine, seeded with an array (init_by_array). */
void rng_py_seed(struct rng_np *r, uint64_t seed);
/* randrange(n), n > 0. */
uint32_t rng_py_below(struct rng_np *r, uint32_t n);
double rng_np_gauss(struct rng_np *r);
double rng_np_normal(struct rng_np *r, double mean, double stdev);
double rng_np_uniform(struct rng_np *r, double low, double high);
double rng_np_exponential(struct rng_np *r, double scale);
double rng_np_gamma(struct rng_np *r, double shape, double scale);
/* A count. 0 <= lam <= 9e18, so that the result fits. */
int64_t rng_np_poisson(struct rng_np *r, double lam);

/* NumPy's np.random.default_rng(seed): PCG64 seeded through SeedSequence. (Source:
 * numpy/random/src/{pcg64, distributions}, bit_generator.pyx.) */
struct rng_pcg64 {
	unsigned __int128 state, increment;
	bool has_half; /* the upper half of a word that was drawn for 32 bits */
	uint32_t half;
};

void rng_pcg64_seed(struct rng_pcg64 *r, uint64_t seed);
/* Uniform in 0..max inclusive, as integers draws it, and as shuffle does; nothing is drawn when max
 * is 0. */
uint64_t rng_pcg64_interval(struct rng_pcg64 *r, uint64_t max);
uint64_t rng_pcg64_masked(struct rng_pcg64 *r, uint64_t max);
/* [0, 1), 53 bits. */
double rng_pcg64_double(struct rng_pcg64 *r);
/* shuffle of a list or 1-D array. */
void rng_pcg64_shuffle_u64(struct rng_pcg64 *r, uint64_t *x, size_t n);

/* PyTorch's CPU generator: the same engine seeded with seed mod 2^32. randperm(n) into out. Valid
 * for n < 2^32/20; larger n follow torch >= 2.x (64-bit inside-out). */
void rng_torch_randperm(struct rng_np *r, uint64_t *out, uint64_t n);
/* The same permutation in half the memory; n < 2^32. */
void rng_torch_randperm_u32(struct rng_np *r, uint32_t *out, uint64_t n);

/* A strong 64-bit mix (splitmix64's finaliser): a bijection of the 64-bit words. */
static inline uint64_t rng_mix64(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}

/* The i-th 64-bit word of the stream named by `key`: rng_mix64(key + (i + 1) * golden gamma). Pure:
 * any thread may ask for any word. */
uint64_t rng_word(uint64_t key, uint64_t i);
/* A key for the sub-stream (a, b) of `key`. */
uint64_t rng_key(uint64_t key, uint64_t a, uint64_t b);

/* ---- Philox ---- */

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

/* ---- a permutation that is computed, not stored ---- */

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
