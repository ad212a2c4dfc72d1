#pragma once
/* What the machine did over time: cumulative counters, sampled by a thread of its own at a fixed
 * interval. Memory is bounded: when the room is full every second point goes and the interval
 * doubles, which loses no byte because the counters are cumulative. */
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "metric/block_device.h"
#include "metric/gpu.h"
#include "metric/proc_io.h"

struct series_point {
	int64_t t_ns; /* CLOCK_MONOTONIC */
	struct block_counters disk;
	struct proc_io process;
	int64_t process_cpu_ns;
	uint64_t cpu_busy_ticks, cpu_all_ticks; /* of the machine, over all processors */
	uint64_t cached_bytes, dirty_bytes, available_bytes;
	uint64_t user; /* what `extra` gives: payload bytes of the ranks here */
};

/* Called by the sampler's thread for the caller's own counters. */
typedef uint64_t (*series_extra_fn)(void *arg);

struct series; /* opaque while sampling */

#define SERIES_POINTS_MAX 2048
/* What one takes at most, to be stated; the GPUs' driver library apart. */
size_t series_memory_bytes(void);
/* Starts sampling the machine and the disks below `folder` (NULL: none) every interval_ns (at least
 * 10 ms), and with `gpus` the GPUs. */
int series_start(struct series **out, const char *folder, int64_t interval_ns, bool gpus,
		 series_extra_fn extra, void *arg, struct err *e);
/* The newest point. Any thread, while it samples and after; reaches `out` whole. */
void series_latest(struct series *s, struct series_point *out);
/* Takes a last point and ends the thread. Accepts NULL. */
void series_stop(struct series *s);
/* At any time. */
const struct block_list *series_devices(const struct series *s);
/* After series_stop. */
const struct series_point *series_points(const struct series *s, size_t *n);
/* NULL: none are sampled. Each point has gpus_count of them, one after another. */
const struct gpus *series_gpus(const struct series *s);
const struct gpu_counters *series_gpu_counters(const struct series *s, size_t point);

/* The counters of one process of several, to be sent and summed. */
struct series_flow {
	int64_t t_ns;
	uint64_t user, rchar_bytes;
	int64_t cpu_ns;
};

#define SERIES_FLOWS_MAX 128
/* Evenly chosen points of one's own, with the first and the last; how many. After series_stop;
 * 0 for NULL. */
size_t series_flows(const struct series *s, struct series_flow out[SERIES_FLOWS_MAX]);
/* Adds another process's flows, in the order of their times, to one's own points: between two of
 * them by a straight line, before and after them as at the first and the last. */
void series_add_flows(struct series *s, const struct series_flow *flow, size_t n);
/* One that is over, of points that were taken before: `point` is its own from then on. Without
 * GPUs.
 */
struct series *series_of(const struct block_list *devices, struct series_point *point, size_t n);
void series_release(struct series *s);
