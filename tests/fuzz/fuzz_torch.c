/* Any bytes as a file of torch.save, and as its pickle. */
#include "checkpoint/pickle.h"
#include "checkpoint/torch.h"
#include "checkpoint_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int ignore(void *arg, const struct pickle_tensor *t, struct err *e)
{
	(void)arg;
	(void)e;
	if (t->rank > PICKLE_DIMS || strlen(t->storage) >= sizeof(t->storage))
		abort();
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err e = {0};

	if (size > 1u << 20)
		return 0;
	fuzz_begin("torch");
	fuzz_file(data, size);
	fuzz_ended(pickle_read_tensors(data, size, 1u << 22, ignore, NULL, &e), &e);
	return 0;
}
