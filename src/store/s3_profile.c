/* Sources: s3dlio 0.9.106 and 0.10.0, s3torchconnector 1.5.0, s3fs 2026.9.0, minio 7.2.20, pyarrow
 * 26.0.1: their sources, and their requests as a recording server saw them, which
 * tests/interop/test_s3_libraries.py compares; TensorFlow I/O: its constants alone. DLIO's readers:
 * its _s3_iterable_mixin.py. The rate of s3dlio in a process: what its users reported of DLIO. */
#include "store/s3_profile.h"

#include <stddef.h>

#define MIB (UINT64_C(1) << 20)
#define RANGES (sizeof(s3_profiles[0].whole) / sizeof(s3_profiles[0].whole[0]))

/* s3dlio's ranges: of 4 MiB, above 256 MiB of 8. */
#define S3DLIO_RANGES                                                                              \
	{                                                                                          \
		{32 * MIB, 4 * MIB, 4, 1}, {256 * MIB, 8 * MIB, 4, 1}, {512 * MIB, 8 * MIB, 8, 2}, \
	}

/* DLIO's own: s3dlio keeps prefetch_window objects under way, the others ask for chunks of them. */
#define SLIDING .window = 64
#define CHUNKS .window = 256, .chunks = true, .staggers = true

const struct s3_profile s3_profiles[] = {
	{.name = "native", .if_match = true, .files_if_match = true, SLIDING},
	/* the loader of DLIO: one plain GET, but for records of 16 MiB and more */
	{.name = "s3dlio-0.9",
	 .head = S3_HEAD_LARGE,
	 .head_from = 16 * MIB,
	 .plain = true,
	 .retries = 2,
	 .put_bytes = 16 * MIB - 1,
	 .put_part = 16 * MIB,
	 .put_parts = 32,
	 .whole = S3DLIO_RANGES,
	 SLIDING,
	 .process_bytes_s = 1.1e9},
	/* get and get_many */
	{.name = "s3dlio-0.10",
	 .head = S3_HEAD_ALWAYS,
	 .plain = true,
	 .retries = 2,
	 .put_bytes = 16 * MIB - 1,
	 .put_part = 16 * MIB,
	 .put_parts = 32,
	 .whole = S3DLIO_RANGES,
	 SLIDING,
	 .process_bytes_s = 1.1e9},
	/* the AWS CRT at 10 Gbit/s */
	{.name = "s3torchconnector-1.5",
	 .if_match = true,
	 .files_if_match = true,
	 .retries = 9,
	 .put_part = 8 * MIB,
	 .put_parts = 25,
	 .whole = {{0, 8 * MIB, 25, 0}},
	 CHUNKS,
	 .at_once = 1},
	/* whole objects: cat */
	{.name = "s3fs",
	 .head = S3_HEAD_ALWAYS,
	 .plain = true,
	 .files_if_match = true,
	 .retries = 4,
	 .put_bytes = 50 * MIB,
	 .put_part = 50 * MIB,
	 .put_parts = 1,
	 .read_ahead = 50 * MIB,
	 .whole = {{50 * MIB + 1, 50 * MIB, 10, 0}},
	 .window = 1},
	{.name = "tfio",
	 .head = S3_HEAD_ALWAYS,
	 .retries = 3,
	 .put_bytes = 50000000,
	 .put_part = 50000000,
	 .put_parts = 25,
	 .window = 1},
	{.name = "arrow",
	 .head = S3_HEAD_ALWAYS,
	 .retries = 2,
	 .put_part = 10 * MIB,
	 .put_parts = 8,
	 .window = 1},
	{.name = "minio",
	 .plain = true,
	 .retries = 5,
	 .put_bytes = 5 * MIB,
	 .put_part = 5 * MIB,
	 .put_parts = 3,
	 CHUNKS,
	 .at_once = 16},
};

const char *const s3_profile_names[] = {
	"native", "s3dlio-0.9", "s3dlio-0.10", "s3torchconnector-1.5", "s3fs", "tfio",
	"arrow",  "minio",      NULL,
};
_Static_assert(sizeof(s3_profiles) / sizeof(s3_profiles[0]) + 1 ==
		       sizeof(s3_profile_names) / sizeof(s3_profile_names[0]),
	       "one name a row");

struct s3_split s3_profile_split(const struct s3_profile *p, uint64_t bytes, unsigned processors)
{
	struct s3_split s = {.part = UINT64_MAX, .ranges = 1};

	if (bytes == UINT64_MAX) {
		if (p->whole[0].part && p->whole[0].from == 0)
			s.part = p->whole[0].part;
		return s;
	}
	for (unsigned i = 0; i < RANGES && p->whole[i].part && bytes >= p->whole[i].from; i++) {
		unsigned more = p->whole[i].per_processor * processors;

		s.part = p->whole[i].part;
		s.ranges = more > p->whole[i].least ? more : p->whole[i].least;
	}
	return s;
}

unsigned s3_profile_most_ranges(const struct s3_profile *p, unsigned processors)
{
	unsigned most = 1;

	for (unsigned i = 0; i < RANGES && p->whole[i].part; i++) {
		struct s3_split s = s3_profile_split(p, p->whole[i].from, processors);

		most = s.ranges > most ? s.ranges : most;
	}
	return most;
}
