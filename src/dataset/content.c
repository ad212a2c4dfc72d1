/* The payload stream: word i of a file is rng_word(key of the file, i), shaped to the element type.
 * No element crosses a word but complex128, which is two of them, so every byte stands alone. */
#include "dataset/content.h"

#include <string.h>

#include "base/rng.h"

#define GAMMA 0x9e3779b97f4a7c15u

/* rng_word's mix, here to be inlined into the loops below. */
static inline uint64_t mix(uint64_t z)
{
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

static inline uint64_t shape_int(uint64_t w)
{
	return w;
}

static inline uint64_t shape_bool(uint64_t w)
{
	return w & 0x0101010101010101u;
}

/* 24 random bits over 2^24 in each half. */
static inline uint64_t shape_f32(uint64_t w)
{
	float f[2] = {(float)((uint32_t)w >> 8) * 0x1p-24f,
		      (float)((uint32_t)(w >> 32) >> 8) * 0x1p-24f};
	uint64_t out;

	memcpy(&out, f, sizeof(out));
	return out;
}

static inline uint64_t shape_f64(uint64_t w)
{
	double f = (double)(w >> 11) * 0x1p-53;
	uint64_t out;

	memcpy(&out, &f, sizeof(out));
	return out;
}

/* k / 2^11 for 11 random bits k: exact in a half, and never subnormal, so that the bits of the
 * float need only a smaller exponent. */
static inline uint64_t half_bits(uint64_t k)
{
	float f = (float)k * 0x1p-11f;
	uint32_t bits;

	memcpy(&bits, &f, sizeof(bits));
	return k ? (bits - (112u << 23)) >> 13 : 0;
}

static inline uint64_t shape_f16(uint64_t w)
{
	return half_bits(w & 0x7ff) | half_bits(w >> 16 & 0x7ff) << 16 |
	       half_bits(w >> 32 & 0x7ff) << 32 | half_bits(w >> 48 & 0x7ff) << 48;
}

/* The part of a word from byte `skip` on, at most n bytes. Returns how many. */
static size_t put_part(uint64_t word, size_t skip, void *out, size_t n)
{
	size_t part = sizeof(word) - skip < n ? sizeof(word) - skip : n;

	memcpy(out, (const char *)&word + skip, part);
	return part;
}

/* One function a type, so that the shape is part of the loop and not a call in it. */
#define FILL(name)                                                                                 \
	static void fill_##name(const struct content_source *src, uint64_t file_index,             \
				uint64_t offset, void *out, size_t n)                              \
	{                                                                                          \
		uint64_t key = rng_key(src->seed, file_index, 0);                                  \
		uint64_t state = key + (offset / 8 + 1) * GAMMA;                                   \
		char *p = out;                                                                     \
                                                                                                   \
		if (n > 0 && offset % 8) {                                                         \
			size_t part = put_part(shape_##name(mix(state)), offset % 8, p, n);        \
                                                                                                   \
			p += part;                                                                 \
			n -= part;                                                                 \
			state += GAMMA;                                                            \
		}                                                                                  \
		for (size_t i = 0; i < n / 8; i++) {                                               \
			uint64_t word = shape_##name(mix(state + i * GAMMA));                      \
                                                                                                   \
			memcpy(p + 8 * i, &word, 8);                                               \
		}                                                                                  \
		if (n % 8)                                                                         \
			put_part(shape_##name(mix(state + n / 8 * GAMMA)), 0, p + n / 8 * 8,       \
				 n % 8);                                                           \
	}

FILL(int)
FILL(bool)
FILL(f16)
FILL(f32)
FILL(f64)

#ifdef __x86_64__
/* The same words of integers, several at a time, where the processor can multiply so. */
#define WIDE_MIN 256

#define FILL_WIDE(name, isa, lanes, ...)                                                           \
	__attribute__((target(isa))) static void fill_##name(const struct content_source *src,     \
							     uint64_t file_index, uint64_t offset, \
							     void *out, size_t n)                  \
	{                                                                                          \
		typedef uint64_t words __attribute__((vector_size(8 * (lanes))));                  \
		words z, state = {__VA_ARGS__};                                                    \
		size_t at = 0;                                                                     \
		char *p = out;                                                                     \
                                                                                                   \
		if (n >= WIDE_MIN) {                                                               \
			at = (size_t)(-offset % 8);                                                \
			fill_int(src, file_index, offset, p, at);                                  \
			state = rng_key(src->seed, file_index, 0) +                                \
				(state + (offset + at) / 8) * GAMMA;                               \
		}                                                                                  \
		for (; n >= WIDE_MIN && n - at >= sizeof(z); at += sizeof(z)) {                    \
			z = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9u;                         \
			z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;                                 \
			z ^= z >> 31;                                                              \
			memcpy(p + at, &z, sizeof(z));                                             \
			state += (lanes)*GAMMA;                                                    \
		}                                                                                  \
		fill_int(src, file_index, offset + at, p + at, n - at);                            \
	}

FILL_WIDE(int_avx2, "avx2", 4, 1, 2, 3, 4)
FILL_WIDE(int_avx512, "avx512f,avx512dq", 8, 1, 2, 3, 4, 5, 6, 7, 8)

static void choose(struct content_source *src)
{
	if (src->fill != fill_int)
		return;
	if (__builtin_cpu_supports("avx512dq"))
		src->fill = fill_int_avx512;
	else if (__builtin_cpu_supports("avx2"))
		src->fill = fill_int_avx2;
}
#else
static void choose(struct content_source *src)
{
	(void)src;
}
#endif

static void of_elem(const struct content_source *src, const struct elem_type *elem,
		    struct content_source *out)
{
	content_init(out, src->seed, elem);
}

void content_init(struct content_source *src, uint64_t seed, const struct elem_type *elem)
{
	bool floats = elem->class == ELEM_FLOAT || elem->class == ELEM_COMPLEX;
	uint32_t part = elem->class == ELEM_COMPLEX ? elem->bytes / 2 : elem->bytes;

	src->seed = seed;
	src->elem = elem;
	src->of_elem = of_elem;
	if (elem->class == ELEM_BOOL)
		src->fill = fill_bool;
	else if (!floats)
		src->fill = fill_int;
	else
		src->fill = part == 2 ? fill_f16 : part == 4 ? fill_f32 : fill_f64;
	choose(src);
}
