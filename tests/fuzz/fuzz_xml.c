/* Any bytes as XML: no crash, bounded depth, and an end. */
#include <stdint.h>
#include <stdlib.h>

#include "http/xml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t events = 0;
	struct err e;
	struct xml x;
	int event;

	xml_begin(&x, (const char *)data, size);
	while ((event = xml_next(&x, &e)) > XML_END) {
		if (x.depth < 1 || x.depth > XML_DEPTH_MAX || ++events > size)
			abort();
		xml_is(&x, "ListBucketResult/Contents/Key");
		xml_text(&x);
	}
	xml_end(&x);
	return 0;
}
