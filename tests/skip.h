#pragma once
/* A case that cannot run here says why; the runner counts and prints it. After <cmocka.h>. */

/* `left out: ...` on a line of its own, for a part of a test or a whole group of cases. */
#define left_out(...)                                                                              \
	do {                                                                                       \
		print_message("left out: " __VA_ARGS__);                                           \
		print_message("\n");                                                               \
	} while (0)

/* Ends the case as skipped. */
#define skip_because(...)                                                                          \
	do {                                                                                       \
		print_message("skipped: " __VA_ARGS__);                                            \
		print_message("\n");                                                               \
		skip();                                                                            \
	} while (0)
