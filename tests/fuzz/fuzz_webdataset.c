/* Any bytes as a tar shard, with right checksums in its headers where the input leaves room for
 * them, and as an extended header in a block of its exact size. */
#include "format/tar/tar.h"
#include "format_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void extra(const uint8_t *data, size_t size)
{
	static struct tar_member m;
	const char *extension;
	size_t key;

	for (int kind = TAR_PAX; kind < TAR_END; kind++) {
		tar_member_begin(&m);
		if (size > TAR_EXTRA_MAX ||
		    tar_member_extra(&m, (enum tar_kind)kind, data, size, NULL) < 0)
			continue;
		if (strlen(m.name) >= TAR_NAME_MAX)
			abort();
		tar_is_meta(m.name);
		if (tar_sample_key(m.name, &key, &extension) && key >= strlen(m.name))
			abort();
	}
}

/* Puts the checksum of every block right that may be a header: what lies behind is reached. */
static void mend(uint8_t *p, size_t size)
{
	for (; size >= TAR_BLOCK; p += TAR_BLOCK, size -= TAR_BLOCK) {
		unsigned sum = 0;

		if (memcmp(p + 257, "ustar", 5) != 0)
			continue;
		memset(p + 148, ' ', 8);
		for (unsigned i = 0; i < TAR_BLOCK; i++)
			sum += p[i];
		for (int i = 5; i >= 0; i--, sum >>= 3)
			p[148 + i] = (uint8_t)('0' + (sum & 7));
		p[154] = 0;
	}
}

/* What fuzz_read put there, as a shard of others. */
static void look(size_t size)
{
	struct file_look l;
	struct err e;
	int rc = fuzz.format->look(&fuzz.io, "f", size, &fuzz.spec, &l, &e);

	if (rc < 0 && (rc != ERR_DATA || !e.text[0]))
		abort();
	if (rc == 0 && l.samples > 0 && l.most_bytes < l.sample_bytes)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy;

	if (size > 1u << 20)
		return 0;
	copy = xmalloc(size + 1);
	memcpy(copy, data, size);
	extra(copy, size);
	fuzz_read("webdataset", data, size);
	look(size);
	mend(copy, size);
	fuzz_read("webdataset", copy, size);
	look(size);
	free(copy);
	return 0;
}
