/* Any bytes as a shard that a job read: how many samples it holds is a number that its bytes bear
 * out, or not known. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "trace/profile/profile_parts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char name[64];
	uint8_t role = FILE_DATASET;
	uint32_t group = 0;
	struct job_file file = {.name = name, .kind = JOB_FILE_REGULAR, .size = (int64_t)size};
	struct job job = {.file = &file, .files = 1};
	struct profile a = {.job = &job, .role = &role, .group_of = &group};
	int fd = memfd_create("shard", MFD_CLOEXEC);

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	profile_shard_counts(&a);
	/* as many as there is memory for to count them */
	if (a.held[0] < -1 || a.held[0] > 1 << 24)
		abort();
	free(a.held);
	close(fd);
	return 0;
}
