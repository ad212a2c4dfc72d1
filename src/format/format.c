/* Finds formats by name; sizes of samples. */
#include "format/format.h"

#include <string.h>

#include "format/recorded_requests.h"

const struct format_ops *format_find(const char *name)
{
	for (size_t i = 0; format_table[i]; i++) {
		if (strcmp(format_table[i]->is.name, name) == 0)
			return format_table[i];
	}
	return NULL;
}

const struct format_ops *format_reader(const struct format_ops *format,
				       const struct reader_config *c)
{
	return c->access == ACCESS_RECORDED ? &recorded_requests_ops : format;
}

uint64_t file_spec_elements(const struct file_spec *f)
{
	uint64_t n = 1;

	for (uint32_t i = 0; i < f->ndims; i++)
		n *= f->dims[i];
	return n;
}

uint64_t file_spec_sample_bytes(const struct file_spec *f)
{
	return file_spec_elements(f) * f->elem->bytes;
}

int format_check(const struct format_ops *format, const struct file_spec *f, struct err *e)
{
	int rc = format_check_compression(&format->is, f->compression, e);

	return rc < 0 ? rc : format->check(f, e);
}
