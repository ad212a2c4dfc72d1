/* Manifests of datasets: any bytes give a manifest or a sentence. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "dataset/manifest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct manifest m;
	struct err e = {0};
	int rc = manifest_parse((const char *)data, size, "manifest", &m, &e);

	if ((rc == 0) != m.found || (rc < 0 && (rc != ERR_DATA || !e.text[0])))
		abort();
	if (m.found && (strlen(m.prefix) >= sizeof(m.prefix) || m.files[0] > INT64_MAX))
		abort();
	return 0;
}
