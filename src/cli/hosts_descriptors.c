/* The descriptors that many hosts or processes need. */
#include <errno.h>
#include <sys/resource.h>

#include "cli/hosts.h"

#define DESCRIPTORS_BESIDE 32 /* of the command itself, and pipes that are being made */

int hosts_descriptors(uint64_t n, const char *what, struct err *e)
{
	const uint64_t need = 3 * n + DESCRIPTORS_BESIDE;
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= need)
		return 0;
	limit.rlim_cur = need < limit.rlim_max ? need : limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur >= need)
		return 0;
	return err_set(e, -EMFILE,
		       "%llu %s need %llu descriptors, and this process may have %llu: raise the "
		       "hard limit (ulimit -Hn)",
		       (unsigned long long)n, what, (unsigned long long)need,
		       (unsigned long long)limit.rlim_max);
}
