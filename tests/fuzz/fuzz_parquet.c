/* Any bytes as a Parquet file, as its metadata, and as a page of any type, codec and encoding. */
#include "format/parquet/parquet_decode.h"
#include "format_fuzz.h"

#define ROOM 4096u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int ignore(void *arg, const unsigned char *values, size_t n, size_t bytes, struct err *e)
{
	uint64_t *sum = arg;

	(void)e;
	*sum += n;
	for (size_t i = 0; i < bytes; i++)
		*sum += values[i];
	return 0;
}

static void as_page(const uint8_t *data, size_t size)
{
	static unsigned char raw[ROOM], dictionary[ROOM], scratch[PARQUET_SCRATCH_BYTES],
		inflater[INFLATER_MEMORY];
	static uint32_t place[ROOM / 4 + 1];
	static struct parquet_decoder d;
	struct parquet_page_head h;
	uint64_t sum = 0;
	size_t at = 3, used;

	if (!d.raw) {
		d = (struct parquet_decoder){.raw = raw,
					     .dictionary = dictionary,
					     .place = place,
					     .scratch = scratch,
					     .raw_room = ROOM,
					     .dictionary_room = ROOM};
		inflater_init(&d.inflater, inflater);
	}
	if (size < 3)
		return;
	parquet_decoder_begin(&d, data[0] & 7, 1 + data[0] / 8, data[1] & 7, data[2] & 3,
			      data[2] / 4 & 3);
	while (at < size) {
		if (parquet_page_head_parse(data + at, size - at, &h, &used, NULL) < 0 ||
		    h.stored > size - at - used)
			return;
		at += used;
		/* room that ends with the page */
		unsigned char *page = xmalloc(h.stored + 1u);

		memcpy(page, data + at, h.stored);
		(void)parquet_decode_page(&d, &h, page, ignore, &sum, NULL);
		free(page);
		at += h.stored;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct parquet_totals totals;

	fuzz_read("parquet", data, size);
	(void)parquet_metadata_parse(data, size, size, NULL, &totals, NULL);
	as_page(data, size);
	return 0;
}
