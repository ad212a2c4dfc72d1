#include "codec/crc.h"

#include <pthread.h>

#include "codec/crc_fold.h"

/* Both reflected: the highest bit is x^0. */
static struct crc_poly ieee = {.polynomial = 0xedb88320u};
static struct crc_poly castagnoli = {.polynomial = 0x82f63b78u};
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void init(void)
{
	crc_poly_init(&ieee);
	crc_poly_init(&castagnoli);
}

static uint32_t update(const struct crc_poly *p, uint32_t crc, const void *bytes, size_t n)
{
	if (!n)
		return crc;
	pthread_once(&once, init);
	return ~crc_fold(p, p->way, ~crc, bytes, n);
}

/* What follows moves A by its length. */
static uint32_t join(const struct crc_poly *p, uint32_t crc_a, uint32_t crc_b, uint64_t len_b)
{
	uint32_t power = crc_power(p->polynomial, len_b);

	/* bytes, not bits: to the eighth */
	for (int i = 0; i < 3; i++)
		power = crc_multiply(p->polynomial, power, power);
	return crc_multiply(p->polynomial, power, crc_a) ^ crc_b;
}

uint32_t crc32_update(uint32_t crc, const void *bytes, size_t n)
{
	return update(&ieee, crc, bytes, n);
}

uint32_t crc32_join(uint32_t crc_a, uint32_t crc_b, uint64_t len_b)
{
	return join(&ieee, crc_a, crc_b, len_b);
}

uint32_t crc32c_update(uint32_t crc, const void *bytes, size_t n)
{
	return update(&castagnoli, crc, bytes, n);
}

uint32_t crc32c_join(uint32_t crc_a, uint32_t crc_b, uint64_t len_b)
{
	return join(&castagnoli, crc_a, crc_b, len_b);
}
