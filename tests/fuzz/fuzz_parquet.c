/* Any bytes as a Parquet file, ours or of others, as its metadata, and as a page of any type, codec
 * and encoding. */
#include "format/parquet/parquet_decode.h"
#include "format/parquet/parquet_index.h"
#include "format_fuzz.h"

#define ROOM 4096u
#define MOST_VALUES (1u << 20)
#define MOST_ROOM (1u << 20)

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
		/* very many equal values take few bytes, and their time */
		if (parquet_page_head_parse(data + at, size - at, &h, &used, NULL) < 0 ||
		    h.stored > size - at - used || h.values > MOST_VALUES)
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

/* The first rows and the last one, through a reader as large as the file asks for. */
static void read_listed(const struct file_look *look, size_t size, bool native)
{
	struct file_spec f = fuzz.spec, form = fuzz.spec;
	struct reader_config c = {.access = native ? ACCESS_NATIVE : ACCESS_FRAMEWORK,
				  .decode = DECODE_FULL,
				  .python = 311,
				  .max_sample_bytes = look->most_bytes,
				  .max_file_bytes = size,
				  .samples_per_file = look->samples,
				  .files = 1,
				  .example = &form};
	struct reader *r;
	size_t bytes;
	void *memory;

	form.bytes = f.bytes = size;
	memcpy(form.room, look->room, sizeof(form.room));
	f.index = look->index;
	f.samples = look->samples;
	f.ndims = 1;
	f.dims[0] = look->sample_bytes;
	bytes = fuzz.format->reader_bytes(&c, fuzz.io.store);
	memory = aligned_alloc(4096, (bytes + 4095) & ~(size_t)4095);
	if (!memory || fuzz.format->reader_init(memory, &c, &fuzz.io, &r, NULL) < 0)
		abort();
	for (uint64_t i = 0; i < 4 && i < look->samples; i++) {
		struct err e = {0};
		struct sample s;
		int rc = fuzz.format->read(r, "f", &f, i < 3 ? i : look->samples - 1, &s, &e);

		fuzz_ended(rc == ERR_ABSENT ? 0 : rc, &e);
	}
	(void)fuzz.format->reader_close(r, NULL);
	free(memory);
}

static void as_listed(size_t size)
{
	struct file_look look;
	struct err e = {0};
	int rc = fuzz.format->look(&fuzz.io, "f", size, &fuzz.spec, &look, &e);
	const struct parquet_index *x = look.index;
	uint64_t values = 0;

	if (rc < 0) {
		if (rc != ERR_DATA || !e.text[0] || look.index)
			abort();
		return;
	}
	for (uint64_t i = 0; i < x->groups * x->columns; i++)
		if (x->place[i].values > values)
			values = x->place[i].values;
	if (values <= MOST_VALUES && look.room[PARQUET_ROOM_RAW] <= MOST_ROOM)
		for (int native = 0; native < 2; native++)
			read_listed(&look, size, native);
	free(look.index);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct parquet_totals totals;

	fuzz_read("parquet", data, size);
	as_listed(size);
	(void)parquet_metadata_parse(data, size, size, NULL, &totals, NULL);
	as_page(data, size);
	return 0;
}
