/* GPUs through NVML. The types are those of the library's stable interface, by its reference. */
#include "metric/gpu.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

typedef struct nvml_device *nvml_handle;

struct nvml_utilization {
	unsigned int gpu, memory; /* percent of the last period, a sixth of a second to one */
};

struct nvml_memory {
	unsigned long long total, free, used;
};

#define NVML_OK 0

struct nvml {
	int (*init)(void);
	int (*shutdown)(void);
	int (*driver)(char *version, unsigned int length);
	int (*count)(unsigned int *devices);
	int (*handle)(unsigned int index, nvml_handle *device);
	int (*name)(nvml_handle device, char *name, unsigned int length);
	int (*utilization)(nvml_handle device, struct nvml_utilization *out);
	int (*memory)(nvml_handle device, struct nvml_memory *out);
	int (*energy)(nvml_handle device, unsigned long long *millijoules);
};

struct gpu {
	nvml_handle handle;
	char name[96];
	uint64_t memory_bytes;
	struct gpu_counters sum;
};

struct gpus {
	void *library;
	struct nvml call;
	char driver[80];
	int64_t last_ns; /* 0: no sample yet */
	uint32_t n;
	struct gpu gpu[GPUS_MAX];
};

static void bind_call(void *library, const char *name, void *out)
{
	void *symbol = dlsym(library, name);

	/* a function's address, which C does not convert from an object's */
	memcpy(out, &symbol, sizeof(symbol));
}

static void bind_calls(struct gpus *g)
{
	bind_call(g->library, "nvmlInit_v2", &g->call.init);
	bind_call(g->library, "nvmlShutdown", &g->call.shutdown);
	bind_call(g->library, "nvmlSystemGetDriverVersion", &g->call.driver);
	bind_call(g->library, "nvmlDeviceGetCount_v2", &g->call.count);
	bind_call(g->library, "nvmlDeviceGetHandleByIndex_v2", &g->call.handle);
	bind_call(g->library, "nvmlDeviceGetName", &g->call.name);
	bind_call(g->library, "nvmlDeviceGetUtilizationRates", &g->call.utilization);
	bind_call(g->library, "nvmlDeviceGetMemoryInfo", &g->call.memory);
	bind_call(g->library, "nvmlDeviceGetTotalEnergyConsumption", &g->call.energy);
}

static void find_devices(struct gpus *g)
{
	unsigned int n = 0;

	if (g->call.count(&n) != NVML_OK)
		return;
	for (unsigned int i = 0; i < n && g->n < GPUS_MAX; i++) {
		struct gpu *u = &g->gpu[g->n];
		struct nvml_memory memory = {0};

		if (g->call.handle(i, &u->handle) != NVML_OK)
			continue;
		if (!g->call.name || g->call.name(u->handle, u->name, sizeof(u->name)) != NVML_OK)
			memcpy(u->name, "GPU", sizeof("GPU"));
		u->name[sizeof(u->name) - 1] = 0;
		if (g->call.memory && g->call.memory(u->handle, &memory) == NVML_OK)
			u->memory_bytes = memory.total;
		g->n++;
	}
}

struct gpus *gpus_open(void)
{
	void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
	struct gpus *g;

	if (!library)
		return NULL;
	g = xcalloc(1, sizeof(*g));
	g->library = library;
	bind_calls(g);
	if (!g->call.init || !g->call.shutdown || !g->call.count || !g->call.handle ||
	    g->call.init() != NVML_OK) {
		dlclose(library);
		free(g);
		return NULL;
	}
	if (g->call.driver && g->call.driver(g->driver, sizeof(g->driver)) != NVML_OK)
		g->driver[0] = 0;
	g->driver[sizeof(g->driver) - 1] = 0;
	find_devices(g);
	if (g->n == 0) {
		gpus_close(g);
		return NULL;
	}
	return g;
}

uint32_t gpus_count(const struct gpus *g)
{
	return g ? g->n : 0;
}

const char *gpu_name(const struct gpus *g, uint32_t i)
{
	return g->gpu[i].name;
}

const char *gpus_driver(const struct gpus *g)
{
	return g->driver;
}

uint64_t gpu_memory_bytes(const struct gpus *g, uint32_t i)
{
	return g->gpu[i].memory_bytes;
}

static int64_t percent_of(int64_t ns, unsigned int percent)
{
	return ns / 100 * (int64_t)(percent < 100 ? percent : 100);
}

void gpus_sample(struct gpus *g, int64_t now_ns, struct gpu_counters *out)
{
	int64_t since = g->last_ns ? now_ns - g->last_ns : 0;

	for (uint32_t i = 0; i < g->n; i++) {
		struct gpu *u = &g->gpu[i];
		struct nvml_utilization use;
		struct nvml_memory memory;
		unsigned long long energy;

		if (g->call.utilization && g->call.utilization(u->handle, &use) == NVML_OK) {
			u->sum.busy_ns += percent_of(since, use.gpu);
			u->sum.memory_busy_ns += percent_of(since, use.memory);
		}
		if (g->call.memory && g->call.memory(u->handle, &memory) == NVML_OK)
			u->sum.memory_used = memory.used;
		if (g->call.energy && g->call.energy(u->handle, &energy) == NVML_OK)
			u->sum.energy_mj = energy;
		out[i] = u->sum;
	}
	g->last_ns = now_ns;
}

void gpus_close(struct gpus *g)
{
	if (!g)
		return;
	g->call.shutdown();
	dlclose(g->library);
	free(g);
}
