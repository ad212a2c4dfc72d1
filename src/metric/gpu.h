#pragma once
/* The counters of this machine's NVIDIA GPUs, through the NVIDIA Management Library
 * (libnvidia-ml.so.1, of the driver; NVML API reference), which is loaded when a run begins and not
 * needed to build. Without it there are no GPUs here. */
#include <stdint.h>

#define GPUS_MAX 16

/* Of one GPU. Sums grow from the first sample on; what the GPU does not tell stays 0. */
struct gpu_counters {
	int64_t busy_ns;        /* a kernel was running: utilization times time, summed */
	int64_t memory_busy_ns; /* its memory was read or written, likewise */
	uint64_t energy_mj;     /* millijoules since the driver was loaded */
	uint64_t memory_used;   /* bytes, at the sample */
};

struct gpus; /* opaque */

/* Loads the library and looks the GPUs up, at most GPUS_MAX of them; NULL when there is no library,
 * none of its calls works, or the machine has no GPU. Starts no program and no kernel on a GPU. */
struct gpus *gpus_open(void);
uint32_t gpus_count(const struct gpus *g);              /* 0 for NULL */
const char *gpu_name(const struct gpus *g, uint32_t i); /* "NVIDIA H100 80GB HBM3" */
const char *gpus_driver(const struct gpus *g);          /* "570.86.15"; "" unknown */
uint64_t gpu_memory_bytes(const struct gpus *g, uint32_t i);
/* Fills out[gpus_count]. One thread at a time: the sums are kept in `g`. A GPU that fails keeps its
 * last sums. */
void gpus_sample(struct gpus *g, int64_t now_ns, struct gpu_counters *out);
/* Accepts NULL. */
void gpus_close(struct gpus *g);
