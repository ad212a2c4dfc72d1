#pragma once
/* The last part of reading a recording, after its events. */
#include <stdint.h>

#include "jobtrace/recording/recording.h"
#include "jobtrace/recording/ring_file.h"

/* Sets of each process how it ended and the bytes that the kernel counted of it, and in `facts`
 * what was recorded, what was not, and why; adds notes to the job about what is missing. `process`:
 * of each ring, its process in the job. */
void recording_ends(struct job *job, const struct ring_files *files, const uint32_t *process,
		    struct recording_facts *facts);
/* Why a program of this enum ring_image cannot be recorded: "statically linked"; NULL: it can, or
 * the number is none. */
const char *recording_image_why(uint64_t image);
