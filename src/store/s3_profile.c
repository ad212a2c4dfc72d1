/* Sources: s3dlio 0.9.106 and 0.10.0, s3torchconnector 1.5.0, s3fs 2026.9, minio 7.2, pyarrow 26:
 * their sources, and their requests as a recording server saw them; TensorFlow I/O: its constants.
 */
#include "store/s3_profile.h"

#include <stddef.h>

#define MIB (UINT64_C(1) << 20)

const struct s3_profile s3_profiles[] = {
	{.name = "native", .if_match = true},
	/* the loader of DLIO: one plain GET, but for records of 16 MiB and more */
	{.name = "s3dlio-0.9",
	 .head = S3_HEAD_LARGE,
	 .head_from = 16 * MIB,
	 .plain = true,
	 .retries = 2,
	 .put_bytes = 16 * MIB - 1,
	 .put_part = 16 * MIB,
	 .put_parts = 32},
	/* get and get_many */
	{.name = "s3dlio-0.10",
	 .head = S3_HEAD_ALWAYS,
	 .plain = true,
	 .retries = 2,
	 .put_bytes = 16 * MIB - 1,
	 .put_part = 16 * MIB,
	 .put_parts = 32},
	/* the AWS CRT at 10 Gbit/s */
	{.name = "s3torchconnector-1.5",
	 .if_match = true,
	 .retries = 9,
	 .put_part = 8 * MIB,
	 .put_parts = 25},
	{.name = "s3fs",
	 .head = S3_HEAD_ALWAYS,
	 .plain = true,
	 .retries = 4,
	 .put_bytes = 50 * MIB,
	 .put_part = 50 * MIB,
	 .put_parts = 10},
	{.name = "tfio",
	 .head = S3_HEAD_ALWAYS,
	 .retries = 3,
	 .put_bytes = 50000000,
	 .put_part = 50000000,
	 .put_parts = 25},
	{.name = "arrow",
	 .head = S3_HEAD_ALWAYS,
	 .retries = 2,
	 .put_part = 10 * MIB,
	 .put_parts = 8},
	{.name = "minio",
	 .plain = true,
	 .retries = 5,
	 .put_bytes = 5 * MIB,
	 .put_part = 5 * MIB,
	 .put_parts = 3},
};

const char *const s3_profile_names[] = {
	"native", "s3dlio-0.9", "s3dlio-0.10", "s3torchconnector-1.5", "s3fs", "tfio",
	"arrow",  "minio",      NULL,
};
_Static_assert(sizeof(s3_profiles) / sizeof(s3_profiles[0]) + 1 ==
		       sizeof(s3_profile_names) / sizeof(s3_profile_names[0]),
	       "one name a row");
