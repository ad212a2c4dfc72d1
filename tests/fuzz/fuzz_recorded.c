/* Files of recorded sizes and orders: any bytes give lists within their samples, or a sentence. The
 * head and the checksum are made right, so that what is behind them is reached. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "codec/crc.h"
#include "workload/recorded_file.h"

#define HEAD 24

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look(const struct recorded *r)
{
	for (int k = 0; k < RECORDED_PARTS; k++) {
		const struct recorded_part *p = &r->part[k];
		uint64_t most = recorded_visits_most(r, k), n;
		uint32_t *list = calloc(most + 1, sizeof(*list));

		if (!list || recorded_visits_least(r, k) > most)
			abort();
		for (uint64_t e = 1; e <= p->epochs && e <= 3; e++) {
			n = recorded_sequence(r, k, e, list);
			if (n > most)
				abort();
			for (uint64_t i = 0; i < n; i++)
				if (list[i] >= p->files * p->samples_per_file)
					abort();
		}
		for (uint64_t i = 0; p->bytes && i < p->files; i++)
			if (p->bytes[i] > INT64_MAX)
				abort();
		for (uint64_t f = 0; p->requests && f < p->files; f++)
			for (uint64_t i = 0; i <= p->samples_per_file; i++) {
				const struct recorded_requests *l = recorded_requests_of(p, f, i);

				for (uint32_t q = 0; q < l->n; q++) {
					uint64_t offset;
					uint32_t asked;

					recorded_request(l, q, &offset, &asked);
					if (offset > INT64_MAX)
						abort();
				}
			}
		free(list);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *bytes = malloc(size + 1);
	struct err e = {0};
	struct recorded *r;
	uint32_t crc;

	if (!bytes)
		return 0;
	memcpy(bytes, data, size);
	if (size > HEAD && data[0] != 'x') {
		memcpy(bytes, "stoker recorded\n\1\0\0\0", 20);
		if (data[0] == 'r') /* with requests */
			bytes[16] = 2;
		crc = crc32c_update(0, bytes + HEAD, size - HEAD);
		memcpy(bytes + 20, &crc, sizeof(crc));
	}
	r = recorded_parse(bytes, size, "file", &e);
	if (!r && !e.text[0])
		abort();
	if (r)
		look(r);
	recorded_release(r);
	return 0;
}
