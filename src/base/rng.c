/* NumPy's legacy generator and PyTorch's permutation, and the counter-based words of our own. */
#include "base/rng.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"

#define MT_N 624
#define MT_M 397
#define GOLDEN 0x9e3779b97f4a7c15ull
/* torch's randperm changes its method here (2^32 / 20) */
#define TORCH_LARGE (UINT32_MAX / 20)

void rng_np_seed(struct rng_np *r, uint32_t seed)
{
	r->key[0] = seed;
	for (uint32_t i = 1; i < MT_N; i++)
		r->key[i] = 1812433253u * (r->key[i - 1] ^ (r->key[i - 1] >> 30)) + i;
	r->pos = MT_N;
	r->has_gauss = 0;
	r->gauss = 0;
}

void rng_np_seed_entropy(struct rng_np *r)
{
	size_t done = 0;

	/* where a sandbox forbids getrandom(2), different runs at least still differ */
	for (uint32_t i = 0; i < MT_N; i++)
		r->key[i] = (uint32_t)rng_word((uint64_t)clock_wall_ns(), i);
	while (done < sizeof(r->key)) {
		ssize_t n = getrandom((char *)r->key + done, sizeof(r->key) - done, 0);

		if (n > 0)
			done += (size_t)n;
		else if (n == 0 || errno != EINTR)
			break;
	}
	r->key[0] |= 0x80000000u; /* not all zero, whatever came */
	r->pos = MT_N;
	r->has_gauss = 0;
	r->gauss = 0;
}

static uint32_t twist(uint32_t hi, uint32_t lo, uint32_t far)
{
	uint32_t y = (hi & 0x80000000u) | (lo & 0x7fffffffu);

	return far ^ (y >> 1) ^ ((0u - (lo & 1u)) & 0x9908b0dfu);
}

static void refill(struct rng_np *r)
{
	uint32_t *k = r->key;
	int i;

	for (i = 0; i < MT_N - MT_M; i++)
		k[i] = twist(k[i], k[i + 1], k[i + MT_M]);
	for (; i < MT_N - 1; i++)
		k[i] = twist(k[i], k[i + 1], k[i + MT_M - MT_N]);
	k[MT_N - 1] = twist(k[MT_N - 1], k[0], k[MT_M - 1]);
	r->pos = 0;
}

uint32_t rng_np_u32(struct rng_np *r)
{
	uint32_t y;

	if (r->pos == MT_N)
		refill(r);
	y = r->key[r->pos++];
	y ^= y >> 11;
	y ^= (y << 7) & 0x9d2c5680u;
	y ^= (y << 15) & 0xefc60000u;
	return y ^ (y >> 18);
}

void rng_np_seed_words(struct rng_np *r, const uint32_t *word, uint32_t words)
{
	uint32_t i = 1, j = 0, *k = r->key;

	rng_np_seed(r, 19650218u);
	for (uint32_t n = 0; n < MT_N; n++) {
		k[i] = (k[i] ^ ((k[i - 1] ^ (k[i - 1] >> 30)) * 1664525u)) + word[j] + j;
		if (++i == MT_N) {
			k[0] = k[MT_N - 1];
			i = 1;
		}
		j = (j + 1) % words;
	}
	for (uint32_t n = 0; n < MT_N - 1; n++) {
		k[i] = (k[i] ^ ((k[i - 1] ^ (k[i - 1] >> 30)) * 1566083941u)) - i;
		if (++i == MT_N) {
			k[0] = k[MT_N - 1];
			i = 1;
		}
	}
	k[0] = 0x80000000u;
}

void rng_py_seed(struct rng_np *r, uint64_t seed)
{
	const uint32_t word[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};

	rng_np_seed_words(r, word, word[1] ? 2 : 1);
}

/* getrandbits of as many bits as n has, until it is below. */
uint32_t rng_py_below(struct rng_np *r, uint32_t n)
{
	unsigned drop = (unsigned)__builtin_clz(n);
	uint32_t v;

	do
		v = rng_np_u32(r) >> drop;
	while (v >= n);
	return v;
}

uint64_t rng_np_u64(struct rng_np *r)
{
	uint64_t high = rng_np_u32(r);

	return high << 32 | rng_np_u32(r);
}

double rng_np_double(struct rng_np *r)
{
	uint32_t a = rng_np_u32(r) >> 5;
	uint32_t b = rng_np_u32(r) >> 6;

	return (a * 67108864.0 + b) / 9007199254740992.0;
}

uint64_t rng_np_interval(struct rng_np *r, uint64_t max)
{
	uint64_t mask, v;

	if (max == 0)
		return 0;
	mask = UINT64_MAX >> __builtin_clzll(max);
	do {
		v = (max <= UINT32_MAX ? rng_np_u32(r) : rng_np_u64(r)) & mask;
	} while (v > max);
	return v;
}

void rng_np_shuffle_u64(struct rng_np *r, uint64_t *x, size_t n)
{
	for (size_t i = n; i-- > 1;) {
		size_t j = (size_t)rng_np_interval(r, i);
		uint64_t t = x[i];

		x[i] = x[j];
		x[j] = t;
	}
}

double rng_np_gauss(struct rng_np *r)
{
	double x1, x2, r2, f;

	if (r->has_gauss) {
		r->has_gauss = 0;
		return r->gauss;
	}
	do {
		x1 = 2.0 * rng_np_double(r) - 1.0;
		x2 = 2.0 * rng_np_double(r) - 1.0;
		r2 = x1 * x1 + x2 * x2;
	} while (r2 >= 1.0 || r2 == 0.0);
	f = sqrt(-2.0 * log(r2) / r2);
	r->gauss = f * x1;
	r->has_gauss = 1;
	return f * x2;
}

double rng_np_normal(struct rng_np *r, double mean, double stdev)
{
	return mean + stdev * rng_np_gauss(r);
}

double rng_np_uniform(struct rng_np *r, double low, double high)
{
	return low + (high - low) * rng_np_double(r);
}

static double standard_exponential(struct rng_np *r)
{
	return -log(1.0 - rng_np_double(r));
}

double rng_np_exponential(struct rng_np *r, double scale)
{
	return scale * standard_exponential(r);
}

static double gamma_below_one(struct rng_np *r, double shape)
{
	for (;;) {
		double u = rng_np_double(r), v = standard_exponential(r), x, y;

		if (u <= 1.0 - shape) {
			x = pow(u, 1.0 / shape);
			if (x <= v)
				return x;
		} else {
			y = -log((1.0 - u) / shape);
			x = pow(1.0 - shape + shape * y, 1.0 / shape);
			if (x <= v + y)
				return x;
		}
	}
}

/* Marsaglia and Tsang, "A simple method for generating gamma variables" (2000). */
static double gamma_above_one(struct rng_np *r, double shape)
{
	double b = shape - 1.0 / 3.0, c = 1.0 / sqrt(9.0 * b);

	for (;;) {
		double x, v, u;

		do {
			x = rng_np_gauss(r);
			v = 1.0 + c * x;
		} while (v <= 0.0);
		v = v * v * v;
		u = rng_np_double(r);
		if (u < 1.0 - 0.0331 * (x * x) * (x * x))
			return b * v;
		if (log(u) < 0.5 * x * x + b * (1.0 - v + log(v)))
			return b * v;
	}
}

double rng_np_gamma(struct rng_np *r, double shape, double scale)
{
	if (shape == 1.0)
		return scale * standard_exponential(r);
	if (shape == 0.0)
		return 0.0;
	return scale * (shape < 1.0 ? gamma_below_one(r, shape) : gamma_above_one(r, shape));
}

static int64_t poisson_multiply(struct rng_np *r, double lam)
{
	double enlam = exp(-lam), prod = 1.0;
	int64_t x = 0;

	for (;;) {
		prod *= rng_np_double(r);
		if (prod <= enlam)
			return x;
		x++;
	}
}

/* ln gamma by Stirling's series, with a shift for small arguments: the terms NumPy uses, because
 * the acceptance test must round alike. */
static double log_gamma(double x)
{
	static const double a[10] = {8.333333333333333e-02, -2.777777777777778e-03,
				     7.936507936507937e-04, -5.952380952380952e-04,
				     8.417508417508418e-04, -1.917526917526918e-03,
				     6.410256410256410e-03, -2.955065359477124e-02,
				     1.796443723688307e-01, -1.39243221690590e+00};
	double x0 = x, x2, gl, gl0;
	int n = 0;

	if (x == 1.0 || x == 2.0)
		return 0.0;
	if (x <= 7.0)
		n = (int)(7 - x);
	x0 = x + n;
	x2 = (1.0 / x0) * (1.0 / x0);
	gl0 = a[9];
	for (int k = 8; k >= 0; k--)
		gl0 = gl0 * x2 + a[k];
	gl = gl0 / x0 + 0.5 * 1.8378770664093453e+00 + (x0 - 0.5) * log(x0) - x0;
	if (x <= 7.0)
		for (int k = 1; k <= n; k++) {
			gl -= log(x0 - 1.0);
			x0 -= 1.0;
		}
	return gl;
}

/* Hoermann's transformed rejection (PTRS, 1993). */
static int64_t poisson_ptrs(struct rng_np *r, double lam)
{
	double slam = sqrt(lam), loglam = log(lam);
	double b = 0.931 + 2.53 * slam, a = -0.059 + 0.02483 * b;
	double invalpha = 1.1239 + 1.1328 / (b - 3.4), vr = 0.9277 - 3.6224 / (b - 2);

	for (;;) {
		double u = rng_np_double(r) - 0.5, v = rng_np_double(r);
		double us = 0.5 - fabs(u);
		int64_t k = (int64_t)floor((2 * a / us + b) * u + lam + 0.43);

		if (us >= 0.07 && v <= vr)
			return k;
		if (k < 0 || (us < 0.013 && v > us))
			continue;
		if (log(v) + log(invalpha) - log(a / (us * us) + b) <=
		    -lam + (double)k * loglam - log_gamma((double)k + 1))
			return k;
	}
}

int64_t rng_np_poisson(struct rng_np *r, double lam)
{
	if (lam == 0.0)
		return 0;
	return lam < 10.0 ? poisson_multiply(r, lam) : poisson_ptrs(r, lam);
}

void rng_torch_randperm(struct rng_np *r, uint64_t *out, uint64_t n)
{
	if (n >= TORCH_LARGE) {
		for (uint64_t i = 0; i < n; i++) {
			uint64_t j = rng_np_u64(r) % (i + 1);

			out[i] = i;
			out[i] = out[j];
			out[j] = i;
		}
		return;
	}
	for (uint64_t i = 0; i < n; i++)
		out[i] = i;
	for (uint64_t i = 0; i + 1 < n; i++) {
		uint64_t j = i + rng_np_u32(r) % (n - i), t = out[i];

		out[i] = out[j];
		out[j] = t;
	}
}

void rng_torch_randperm_u32(struct rng_np *r, uint32_t *out, uint64_t n)
{
	if (n >= TORCH_LARGE) {
		for (uint64_t i = 0; i < n; i++) {
			uint64_t j = rng_np_u64(r) % (i + 1);

			out[i] = (uint32_t)i;
			out[i] = out[j];
			out[j] = (uint32_t)i;
		}
		return;
	}
	for (uint64_t i = 0; i < n; i++)
		out[i] = (uint32_t)i;
	for (uint64_t i = 0; i + 1 < n; i++) {
		uint64_t j = i + rng_np_u32(r) % (n - i);
		uint32_t t = out[i];

		out[i] = out[j];
		out[j] = t;
	}
}

uint64_t rng_word(uint64_t key, uint64_t i)
{
	return rng_mix64(key + (i + 1) * GOLDEN);
}

uint64_t rng_key(uint64_t key, uint64_t a, uint64_t b)
{
	return rng_mix64(rng_mix64(rng_mix64(key + GOLDEN) ^ (a + 2 * GOLDEN)) + (b + 1) * GOLDEN);
}

/* ---- Philox ---- */

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

/* ---- a permutation that is computed, not stored ---- */

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

/* ---- NumPy's Generator ---- */

/* SeedSequence: words are hashed into a pool of four, and out of it. */
static uint32_t seed_hash(uint32_t value, uint32_t *factor, uint32_t by)
{
	value ^= *factor;
	*factor *= by;
	value *= *factor;
	return value ^ value >> 16;
}

static uint64_t pcg64_next(struct rng_pcg64 *r)
{
	const unsigned __int128 factor =
		(unsigned __int128)0x2360ed051fc65da4u << 64 | 0x4385df649fccf645u;
	uint64_t mixed;
	unsigned turn;

	r->state = r->state * factor + r->increment;
	mixed = (uint64_t)(r->state >> 64) ^ (uint64_t)r->state;
	turn = (unsigned)(r->state >> 122);
	return mixed >> turn | mixed << (-turn & 63);
}

void rng_pcg64_seed(struct rng_pcg64 *r, uint64_t seed)
{
	uint32_t pool[4] = {(uint32_t)seed, (uint32_t)(seed >> 32)}, factor = 0x43b0d7e5u;
	uint64_t word[4];

	for (int i = 0; i < 4; i++)
		pool[i] = seed_hash(pool[i], &factor, 0x931e8875u);
	for (int from = 0; from < 4; from++)
		for (int to = 0; to < 4; to++) {
			uint32_t mixed;

			if (from == to)
				continue;
			mixed = 0xca01f9ddu * pool[to] -
				0x4973f715u * seed_hash(pool[from], &factor, 0x931e8875u);
			pool[to] = mixed ^ mixed >> 16;
		}
	factor = 0x8b51f9ddu;
	for (int i = 0; i < 4; i++) {
		uint32_t low = seed_hash(pool[2 * i % 4], &factor, 0x58f38dedu);

		word[i] = low | (uint64_t)seed_hash(pool[(2 * i + 1) % 4], &factor, 0x58f38dedu)
					<< 32;
	}
	*r = (struct rng_pcg64){0};
	r->increment = ((unsigned __int128)word[2] << 64 | word[3]) << 1 | 1;
	pcg64_next(r);
	r->state += (unsigned __int128)word[0] << 64 | word[1];
	pcg64_next(r);
}

static uint32_t pcg64_u32(struct rng_pcg64 *r)
{
	uint64_t word;

	if (r->has_half) {
		r->has_half = false;
		return r->half;
	}
	word = pcg64_next(r);
	r->has_half = true;
	r->half = (uint32_t)(word >> 32);
	return (uint32_t)word;
}

uint64_t rng_pcg64_interval(struct rng_pcg64 *r, uint64_t max)
{
	if (max == 0)
		return 0;
	if (max == UINT32_MAX)
		return pcg64_u32(r);
	if (max < UINT32_MAX) {
		uint32_t n = (uint32_t)max + 1, least = (uint32_t)(UINT32_MAX - max) % n;
		uint64_t m = (uint64_t)pcg64_u32(r) * n;

		while ((uint32_t)m < least)
			m = (uint64_t)pcg64_u32(r) * n;
		return m >> 32;
	}
	if (max == UINT64_MAX)
		return pcg64_next(r);
	uint64_t n = max + 1, least = (UINT64_MAX - max) % n;
	unsigned __int128 m = (unsigned __int128)pcg64_next(r) * n;

	while ((uint64_t)m < least)
		m = (unsigned __int128)pcg64_next(r) * n;
	return (uint64_t)(m >> 64);
}

double rng_pcg64_double(struct rng_pcg64 *r)
{
	return (double)(pcg64_next(r) >> 11) * 0x1p-53;
}

uint64_t rng_pcg64_masked(struct rng_pcg64 *r, uint64_t max)
{
	uint64_t mask, value;

	if (max == 0)
		return 0;
	mask = UINT64_MAX >> __builtin_clzll(max);
	do
		value = (max <= UINT32_MAX ? pcg64_u32(r) : pcg64_next(r)) & mask;
	while (value > max);
	return value;
}

void rng_pcg64_shuffle_u64(struct rng_pcg64 *r, uint64_t *x, size_t n)
{
	for (size_t i = n; i-- > 1;) {
		uint64_t j = rng_pcg64_masked(r, i), was = x[i];

		x[i] = x[j];
		x[j] = was;
	}
}
