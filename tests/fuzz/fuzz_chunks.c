/* Any bytes as an MDS shard, as the index.json of MDS and LitData, as the text of a shard, and as
 * an item. */
#include "codec/json_scan.h"
#include "format/chunks/chunks_index.h"
#include "format_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int file_of(const struct folder_files *files, uint64_t i, char *name, size_t name_size,
		   struct file_spec *f, struct err *e)
{
	(void)files;
	(void)e;
	snprintf(name, name_size, "shard.%05llu.mds", (unsigned long long)i);
	*f = fuzz.spec;
	return 0;
}

static void told(int rc, const struct err *e)
{
	/* words of the text are quoted as they are: whoever prints a sentence escapes it */
	if (rc != 0 && (rc != ERR_DATA || !e->text[0]))
		abort();
}

/* A payload of 20 bytes, or none (-1). */
static void inside(int64_t at, size_t n)
{
	if (at < -1 || (at >= 0 && at + 20 > (int64_t)n))
		abort();
}

static void texts(const char *text, size_t n)
{
	const struct folder_files files = {.files = 2, .file = file_of};
	struct chunks_columns c;
	struct json_scan s;
	struct err e;
	int rc;

	told(mds_folder_check(text, n, &files, &e), &e);
	told(litdata_folder_check(text, n, &files, &e), &e);
	rc = chunks_columns_parse(text, n, &c, &e);
	told(rc, &e);
	if (rc == 0)
		inside(chunks_payload_at(&c, (const unsigned char *)text, n, 20), n);
	inside(chunks_payload_at(NULL, (const unsigned char *)text, n, 20), n);
	json_scan_begin(&s, text, n);
	told(json_scan_skip(&s, &e), &e);
	if (s.at > n)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *copy;

	if (size > 1u << 20)
		return 0;
	fuzz_read("mds", data, size);
	/* no byte behind it may be looked at */
	copy = xmalloc(size ? size : 1);
	memcpy(copy, data, size);
	texts(copy, size);
	free(copy);
	return 0;
}
