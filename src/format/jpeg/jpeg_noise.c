/* JPEG images of noise, made where the format keeps them: as quantised coefficients in Huffman
 * codes, without pixels, transform or library.
 *
 * A thousand blocks of random pixels are transformed and quantised once. What they leave is, for
 * each of seven runs of coefficients (bands), a thousand templates: the Huffman codes that say how
 * many zeros and how many bits come, and gaps for those bits, which are the coefficients' signs and
 * amplitudes. A block of an image is a template drawn for each band, and fresh random bits in all
 * gaps. So blocks are as long, and have as many codes, as those that an encoder makes of noise.
 *
 * All of it is done in integers: the bytes are the same everywhere. */
#include <assert.h>
#include <pthread.h>
#include <string.h>

#include "base/rng.h"
#include "format/jpeg/jpeg.h"

#define BANDS 7
#define TEMPLATES 1024
#define DRAWN_DC 256
#define DIFF_MAX 512 /* beyond any difference between the DC of two blocks of noise */
#define LENGTH_BITS 0xffu
#define BAND_BITS_MAX 56u /* with seven bits that wait for the rest of their byte, below 64 */
#define BLOCK_WORDS (1 + BANDS)
#define BLOCK_BITS_MAX (BANDS * BAND_BITS_MAX + 24)
#define BATCH 64u /* blocks made at once */
#define RAW_BYTES (BATCH * BLOCK_BITS_MAX / 8 + 16)

_Static_assert(BATCH *BLOCK_WORDS * 8 + RAW_BYTES * 3 <= JPEG_NOISE_BYTES, "the parts fit");

/* Bands end where a coefficient is rarely zero, as zeros cannot be counted over the end of one:
 * there one is made of a zero. About 40 bits each. */
static const unsigned char band_begin[BANDS + 1] = {1, 7, 13, 20, 29, 40, 52, 64};

/* In the order of the file, zigzag: the table of luminance of the standard's annex K, for quality
 * 75 as libjpeg scales it. */
static const unsigned char quant[64] = {
	8,  6,  6,  7,  6,  5,  8,  7,  7,  7,  9,  9,  8,  10, 12, 20, 13, 12, 11, 11, 12, 25,
	18, 19, 15, 20, 29, 26, 31, 30, 29, 26, 28, 28, 32, 36, 46, 39, 32, 34, 44, 35, 28, 28,
	40, 55, 41, 44, 48, 49, 52, 52, 52, 31, 39, 57, 61, 56, 50, 60, 46, 51, 52, 50};
static const unsigned char zigzag[64] = {
	0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,  12, 19, 26, 33, 40, 48,
	41, 34, 27, 20, 13, 6,  7,  14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23,
	30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63};

/* The Huffman tables of luminance of the same annex: how many codes of each length there are, and
 * their symbols. */
static const unsigned char dc_counts[16] = {0, 1, 5, 1, 1, 1, 1, 1, 1};
static const unsigned char dc_symbols[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
static const unsigned char ac_counts[16] = {0, 2, 1, 3, 3, 2, 4, 3, 5, 5, 4, 4, 0, 0, 1, 125};
static const unsigned char ac_symbols[162] = {
	0x01, 0x02, 0x03, 0x00, 0x04, 0x11, 0x05, 0x12, 0x21, 0x31, 0x41, 0x06, 0x13, 0x51, 0x61,
	0x07, 0x22, 0x71, 0x14, 0x32, 0x81, 0x91, 0xa1, 0x08, 0x23, 0x42, 0xb1, 0xc1, 0x15, 0x52,
	0xd1, 0xf0, 0x24, 0x33, 0x62, 0x72, 0x82, 0x09, 0x0a, 0x16, 0x17, 0x18, 0x19, 0x1a, 0x25,
	0x26, 0x27, 0x28, 0x29, 0x2a, 0x34, 0x35, 0x36, 0x37, 0x38, 0x39, 0x3a, 0x43, 0x44, 0x45,
	0x46, 0x47, 0x48, 0x49, 0x4a, 0x53, 0x54, 0x55, 0x56, 0x57, 0x58, 0x59, 0x5a, 0x63, 0x64,
	0x65, 0x66, 0x67, 0x68, 0x69, 0x6a, 0x73, 0x74, 0x75, 0x76, 0x77, 0x78, 0x79, 0x7a, 0x83,
	0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8a, 0x92, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99,
	0x9a, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, 0xa8, 0xa9, 0xaa, 0xb2, 0xb3, 0xb4, 0xb5, 0xb6,
	0xb7, 0xb8, 0xb9, 0xba, 0xc2, 0xc3, 0xc4, 0xc5, 0xc6, 0xc7, 0xc8, 0xc9, 0xca, 0xd2, 0xd3,
	0xd4, 0xd5, 0xd6, 0xd7, 0xd8, 0xd9, 0xda, 0xe1, 0xe2, 0xe3, 0xe4, 0xe5, 0xe6, 0xe7, 0xe8,
	0xe9, 0xea, 0xf1, 0xf2, 0xf3, 0xf4, 0xf5, 0xf6, 0xf7, 0xf8, 0xf9, 0xfa};

/* Bits from the highest on. */
struct template
{
	uint64_t codes; /* the low byte: how many bits, codes and gaps */
	uint64_t gaps;
};

static struct {
	struct template band[BANDS][TEMPLATES];
	int16_t dc[DRAWN_DC];
	uint64_t diff[2 * DIFF_MAX]; /* code and bits, as in `codes` */
} drawn;

/* ---- templates ---- */

struct code {
	uint16_t code;
	uint8_t bits;
};

static void huffman(struct code out[256], const unsigned char counts[16],
		    const unsigned char *symbols)
{
	uint16_t code = 0;

	for (unsigned bits = 1; bits <= 16; bits++, code = (uint16_t)(code << 1))
		for (unsigned i = 0; i < counts[bits - 1]; i++)
			out[*symbols++] = (struct code){code++, (uint8_t)bits};
}

static unsigned bit_size(int v)
{
	return v ? 32u - (unsigned)__builtin_clz((unsigned)(v < 0 ? -v : v)) : 0;
}

/* Bits at the end of the template's; those beyond its room count only. */
static void append_bits(struct template *t, unsigned *used, uint64_t bits, unsigned n, bool gap)
{
	if (n > 0 && *used + n <= BAND_BITS_MAX) {
		t->codes |= bits << (64 - *used - n);
		if (gap)
			t->gaps |= ((UINT64_C(1) << n) - 1) << (64 - *used - n);
	}
	*used += n;
}

/* The template of a band of these coefficients; false when it is too long. */
static bool template_of(const struct code ac[256], const int *coef, unsigned n, bool last,
			struct template *t)
{
	unsigned run = 0, used = 0;

	*t = (struct template){0};
	for (unsigned i = 0; i < n; i++) {
		unsigned size = bit_size(coef[i]);

		if (size == 0 && i == n - 1 && !last)
			size = 1;
		if (size == 0) {
			run++;
			continue;
		}
		append_bits(t, &used, ac[run << 4 | size].code, ac[run << 4 | size].bits, false);
		append_bits(t, &used, 0, size, true);
		run = 0;
	}
	if (run > 0)
		append_bits(t, &used, ac[0].code, ac[0].bits, false);
	t->codes |= used;
	return used <= BAND_BITS_MAX;
}

/* 4096 cos(k pi / 16), for 0 that of pi / 4. */
static const int cosine[16] = {2896, 4017, 3784,  3406,  2896,  2276,  1567,  799,
			       0,    -799, -1567, -2276, -2896, -3406, -3784, -4017};

static int basis(unsigned u, unsigned x)
{
	unsigned k = (2 * x + 1) * u % 32;

	if (u == 0)
		return cosine[0];
	/* an angle is of pi only where u is 16 or more */
	return cosine[k > 16 ? 32 - k : k];
}

/* The quantised coefficients, in zigzag order, of block i of a stream of random pixels. */
static void random_block(uint64_t i, int coef[64])
{
	int64_t rows[64], sum, scaled;
	int pixel[64];

	for (unsigned p = 0; p < 64; p++)
		pixel[p] = (int)(rng_word(0, i * 8 + p / 8) >> p % 8 * 8 & 0xff) - 128;
	for (unsigned y = 0; y < 8; y++) {
		for (unsigned u = 0; u < 8; u++) {
			sum = 0;
			for (unsigned x = 0; x < 8; x++)
				sum += pixel[8 * y + x] * basis(u, x);
			rows[8 * y + u] = sum;
		}
	}
	for (unsigned k = 0; k < 64; k++) {
		unsigned v = zigzag[k] / 8, u = zigzag[k] % 8;

		sum = 0;
		for (unsigned y = 0; y < 8; y++)
			sum += rows[8 * y + u] * basis(v, y);
		/* 4096 twice, and the transform's quarter */
		scaled = ((sum < 0 ? -sum : sum) / 4096 + quant[k] * 8192) / (quant[k] * 16384);
		coef[k] = (int)(sum < 0 ? -scaled : scaled);
	}
}

static void draw_blocks(void)
{
	struct code ac[256] = {0};
	unsigned have = 0;

	huffman(ac, ac_counts, ac_symbols);
	for (uint64_t i = 0; have < TEMPLATES; i++) {
		bool fit = true;
		int coef[64];

		random_block(i, coef);
		for (unsigned b = 0; b < BANDS; b++)
			fit &= template_of(ac, coef + band_begin[b],
					   (unsigned)(band_begin[b + 1] - band_begin[b]),
					   b == BANDS - 1, &drawn.band[b][have]);
		if (have < DRAWN_DC / 2)
			drawn.dc[have] = (int16_t)coef[0];
		have += fit;
	}
	/* so few would make all images a little dark, or bright */
	for (unsigned i = 0; i < DRAWN_DC / 2; i++)
		drawn.dc[DRAWN_DC / 2 + i] = (int16_t)-drawn.dc[i];
}

static void draw_tables(void)
{
	struct code dc[256] = {0};

	draw_blocks();
	huffman(dc, dc_counts, dc_symbols);
	for (int v = 1 - DIFF_MAX; v < DIFF_MAX; v++) {
		unsigned size = bit_size(v), used = 0;
		struct template t = {0};

		append_bits(&t, &used, dc[size].code, dc[size].bits, false);
		/* a negative one is told as its distance from the lowest of its size */
		append_bits(&t, &used, (uint64_t)(v < 0 ? v + (1 << size) - 1 : v), size, false);
		drawn.diff[v + DIFF_MAX] = t.codes | used;
	}
}

/* ---- blocks ---- */

/* Bits that are not whole bytes yet, from the highest on. */
struct bits {
	uint64_t waiting;
	unsigned n;
	unsigned char *out;
};

static inline void put_bits(struct bits *b, uint64_t code, unsigned n)
{
	uint64_t w = b->waiting | code >> b->n;

	n += b->n;
	b->out[0] = (unsigned char)(w >> 56);
	b->out[1] = (unsigned char)(w >> 48);
	b->out[2] = (unsigned char)(w >> 40);
	b->out[3] = (unsigned char)(w >> 32);
	b->out[4] = (unsigned char)(w >> 24);
	b->out[5] = (unsigned char)(w >> 16);
	b->out[6] = (unsigned char)(w >> 8);
	b->out[7] = (unsigned char)w;
	b->out += n / 8;
	b->waiting = w << (n & ~7u);
	b->n = n & 7;
}

/* Of `draw`, two bits go with the low byte of w. */
static inline void put_band(struct bits *b, unsigned band, uint64_t w, uint64_t draw)
{
	const struct template *t = &drawn.band[band][(w & 0xff) | (draw >> 8 * band & 0x300)];

	put_bits(b, (t->codes & ~(uint64_t)LENGTH_BITS) | (w & t->gaps), t->codes & LENGTH_BITS);
}

/* The first word of a block draws its DC and, with the low byte of each other word, the templates;
 * what is above that byte fills the gaps. */
static int put_blocks(struct bits *to, const unsigned char *words, size_t blocks, int dc)
{
	struct bits b = *to;

	for (size_t i = 0; i < blocks; i++, words += 8 * BLOCK_WORDS) {
		uint64_t w[BLOCK_WORDS], code;
		int before = dc;

		memcpy(w, words, sizeof(w));
		dc = drawn.dc[w[0] & 0xff];
		code = drawn.diff[dc - before + DIFF_MAX];
		put_bits(&b, code & ~(uint64_t)LENGTH_BITS, code & LENGTH_BITS);
		/* a loop would not be unrolled */
		put_band(&b, 0, w[1], w[0]);
		put_band(&b, 1, w[2], w[0]);
		put_band(&b, 2, w[3], w[0]);
		put_band(&b, 3, w[4], w[0]);
		put_band(&b, 4, w[5], w[0]);
		put_band(&b, 5, w[6], w[0]);
		put_band(&b, 6, w[7], w[0]);
	}
	*to = b;
	return dc;
}

/* A zero follows each byte that could begin a marker. */
static size_t stuff_bytes(unsigned char *out, const unsigned char *in, size_t n)
{
	unsigned char *begin = out;

	while (n > 0) {
		unsigned char *end = memccpy(out, in, 0xff, n);
		size_t part = end ? (size_t)(end - out) : n;

		out += part;
		in += part;
		n -= part;
		if (end)
			*out++ = 0;
	}
	return (size_t)(out - begin);
}

/* ---- files ---- */

static unsigned char *put_table(unsigned char *p, unsigned class, const unsigned char counts[16],
				const unsigned char *symbols, unsigned n)
{
	memcpy(p, (unsigned char[]){0xff, 0xc4, 0, (unsigned char)(19 + n), (unsigned char)class},
	       5);
	memcpy(p + 5, counts, 16);
	memcpy(p + 21, symbols, n);
	return p + 21 + n;
}

static void put_header(unsigned char out[JPEG_HEADER_BYTES], const struct image_shape *s)
{
	static const unsigned char begin[] = {
		0xff, 0xd8,                                        /* the image begins */
		0xff, 0xe0, 0, 16, 'J', 'F', 'I', 'F', 0, 1, 1, 0, /* JFIF 1.01, no unit */
		0,    1,    0, 1,  0,   0,                         /* 1 by 1, no small image */
		0xff, 0xdb, 0, 67, 0,                              /* quantisation */
	};
	const unsigned char frame[] = {
		0xff,
		0xc0, /* baseline */
		0,
		11,
		8,
		(unsigned char)(s->height >> 8),
		(unsigned char)s->height,
		(unsigned char)(s->width >> 8),
		(unsigned char)s->width,
		1, /* component, its number, sampling, quantisation */
		1,
		0x11,
		0,
	};
	static const unsigned char scan[] = {0xff, 0xda, 0, 8, 1, 1, 0, 0, 63, 0};
	unsigned char *p = out;

	memcpy(p, begin, sizeof(begin));
	memcpy(p += sizeof(begin), quant, sizeof(quant));
	memcpy(p += sizeof(quant), frame, sizeof(frame));
	p = put_table(p + sizeof(frame), 0x00, dc_counts, dc_symbols, sizeof(dc_symbols));
	p = put_table(p, 0x10, ac_counts, ac_symbols, sizeof(ac_symbols));
	memcpy(p, scan, sizeof(scan));
}

void jpeg_noise_prepare(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, draw_tables);
}

/* Mean of a block of noise with its stuffing, in thousandths of a byte, measured; of a flat one. */
#define NOISE_BLOCK 35573u
#define FLAT_BLOCK 750u
#define END_BYTES 2u

static uint64_t blocks_of(const struct image_shape *s)
{
	return (uint64_t)((s->width + 7) / 8) * ((s->height + 7) / 8);
}

static uint64_t bytes_of(uint64_t noise, uint64_t flat)
{
	return JPEG_HEADER_BYTES + END_BYTES + (noise * NOISE_BLOCK + flat * FLAT_BLOCK) / 1000;
}

/* How many of the blocks are noise. */
static uint64_t noise_blocks(const struct image_shape *s)
{
	uint64_t blocks = blocks_of(s), least = bytes_of(0, blocks), n;

	if (s->want_bytes == 0 || s->want_bytes >= bytes_of(blocks, 0))
		return blocks;
	if (s->want_bytes <= least)
		return 0;
	n = ((s->want_bytes - least) * 1000 + (NOISE_BLOCK - FLAT_BLOCK) / 2) /
	    (NOISE_BLOCK - FLAT_BLOCK);
	return n < blocks ? n : blocks;
}

uint64_t jpeg_noise_bytes(const struct image_shape *shape)
{
	uint64_t noise = noise_blocks(shape);

	/* filled up to what is wanted */
	if (shape->want_bytes > bytes_of(0, blocks_of(shape)))
		return shape->want_bytes;
	return bytes_of(noise, blocks_of(shape) - noise);
}

uint64_t jpeg_least_bytes(const struct image_shape *shape)
{
	uint64_t blocks = blocks_of(shape);

	/* some of it is noise: files differ */
	return bytes_of(1 + blocks / 100, blocks - 1 - blocks / 100);
}

uint64_t jpeg_most_bytes(const struct image_shape *shape)
{
	return bytes_of(blocks_of(shape), 0) * 102 / 100;
}

/* What a block of noise takes at most, with its stuffing. */
#define BLOCK_MOST 112u

/* Whether block k can be noise: `used` bytes were written, and what follows is flat. */
static bool fits(const struct image_shape *s, uint64_t used, uint64_t k, uint64_t blocks)
{
	uint64_t rest = ((blocks - k - 1) * FLAT_BLOCK + 999) / 1000 + END_BYTES;

	return s->want_bytes == 0 || used + BLOCK_MOST + rest <= s->want_bytes;
}

/* Blocks [at, at + n), of which `words` has the draws; `written` bytes lie before them. */
static int put_some(struct bits *b, const struct image_shape *s, uint64_t written,
		    const unsigned char *words, uint64_t at, size_t n, uint64_t noise, int dc)
{
	const unsigned char *begin = b->out;
	uint64_t blocks = blocks_of(s);

	if (s->want_bytes == 0)
		return put_blocks(b, words, n, dc);
	for (size_t i = 0; i < n; i++) {
		uint64_t k = at + i, raw = (uint64_t)(b->out - begin);

		/* of noise, one byte of 100 is stuffed */
		if ((k + 1) * noise / blocks > k * noise / blocks &&
		    fits(s, written + raw + raw / 32, k, blocks))
			dc = put_blocks(b, words + i * BLOCK_WORDS * 8, 1, dc);
		else /* the DC's difference is 0, and no coefficient follows */
			put_bits(b, UINT64_C(0x0a) << 58, 6);
	}
	return dc;
}

int jpeg_noise(void *memory, const struct image_shape *shape, uint64_t file_index,
	       const struct content_source *content, jpeg_sink *sink, void *arg, struct err *e)
{
	unsigned char *words = memory, *raw = words + BATCH * BLOCK_WORDS * 8,
		      *out = raw + RAW_BYTES;
	uint64_t blocks = blocks_of(shape), noise = noise_blocks(shape);
	uint64_t written = JPEG_HEADER_BYTES;
	struct bits b = {.out = raw};
	size_t bytes;
	int dc = 0, rc;

	jpeg_noise_prepare();
	put_header(out, shape);
	rc = sink(arg, out, JPEG_HEADER_BYTES, e);
	for (uint64_t at = 0; rc == 0 && at < blocks; at += BATCH) {
		size_t n = blocks - at < BATCH ? (size_t)(blocks - at) : BATCH;

		content->fill(content, file_index, at * BLOCK_WORDS * 8, words,
			      n * BLOCK_WORDS * 8);
		dc = put_some(&b, shape, written, words, at, n, noise, dc);
		if (at + n == blocks)
			/* ones up to the end of the last byte */
			put_bits(&b, ~UINT64_C(0) << 57, (8 - b.n) % 8);
		assert(b.out - raw <= (ptrdiff_t)RAW_BYTES);
		bytes = stuff_bytes(out, raw, (size_t)(b.out - raw));
		written += bytes;
		rc = sink(arg, out, bytes, e);
		b.out = raw;
	}
	/* fill bytes, of which any number may precede a marker */
	memset(out, 0xff, RAW_BYTES);
	for (uint64_t more = shape->want_bytes; rc == 0 && more > written + END_BYTES;) {
		bytes = more - written - END_BYTES < RAW_BYTES
				? (size_t)(more - written - END_BYTES)
				: RAW_BYTES;
		written += bytes;
		rc = sink(arg, out, bytes, e);
	}
	return rc < 0 ? rc : sink(arg, (const unsigned char *)"\xff\xd9", 2, e);
}
