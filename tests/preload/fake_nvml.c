/* A stand-in for NVIDIA's management library with two GPUs: the first 40 % busy and drawing 300 W,
 * the second idle and failing to tell its energy. */
#include <string.h>
#include <time.h>

static unsigned long long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (unsigned long long)t.tv_sec * 1000 + (unsigned long long)t.tv_nsec / 1000000;
}

static int places[2];

int nvmlInit_v2(void)
{
	return 0;
}

int nvmlShutdown(void)
{
	return 0;
}

int nvmlSystemGetDriverVersion(char *out, unsigned length)
{
	strncpy(out, "999.1", length);
	return 0;
}

int nvmlDeviceGetCount_v2(unsigned *n)
{
	*n = 2;
	return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **out)
{
	*out = &places[i];
	return 0;
}

int nvmlDeviceGetName(void *device, char *out, unsigned length)
{
	strncpy(out, device == &places[0] ? "Stand-in A" : "Stand-in B", length);
	return 0;
}

int nvmlDeviceGetUtilizationRates(void *device, unsigned *out)
{
	out[0] = device == &places[0] ? 40 : 0;
	out[1] = device == &places[0] ? 10 : 0;
	return 0;
}

int nvmlDeviceGetMemoryInfo(void *device, unsigned long long *out)
{
	out[0] = 80ULL << 30;
	out[2] = device == &places[0] ? 5ULL << 30 : 0;
	out[1] = out[0] - out[2];
	return 0;
}

int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *mj)
{
	if (device != &places[0])
		return 3; /* not supported */
	*mj = 1000000 + now_ms() * 300;
	return 0;
}
