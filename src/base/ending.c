#include "base/ending.h"

#include <inttypes.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/transfer.h"

/* From the kernel's include/linux/sched.h. */
#define PF_EXITING 0x4u

static bool read_text(pid_t pid, const char *name, char *text, size_t size)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	return read_kernel_text(path, text, size) > 0;
}

/* Its first thread has not yet seen that it is to end, as it hangs or waits for a processor. */
static bool is_killed(pid_t pid)
{
	static const char *const names[] = {"\nSigPnd:", "\nShdPnd:"};
	char text[4096];
	bool killed = false;

	if (!read_text(pid, "status", text, sizeof(text)))
		return false;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *at = strstr(text, names[i]);
		uint64_t set;

		if (at && sscanf(at + strlen(names[i]), "%" SCNx64, &set) == 1)
			killed = killed || set >> (SIGKILL - 1) & 1;
	}
	return killed;
}

bool process_ends(pid_t pid, int *status)
{
	char text[1024], *rest, state = 0;
	unsigned flags = 0;
	int code = 0;

	if (!read_text(pid, "stat", text, sizeof(text)))
		return false;
	/* the name of the program may hold anything; field 52 is the exit code */
	rest = strrchr(text, ')');
	if (!rest || sscanf(rest + 1, " %c %*d %*d %*d %*d %*d %u", &state, &flags) != 2)
		return false;
	if (state == 'Z' || flags & PF_EXITING) {
		rest = strrchr(text, ' ');
		if (rest)
			sscanf(rest, "%d", &code);
		*status = code;
		return true;
	}
	*status = SIGKILL;
	return is_killed(pid);
}
