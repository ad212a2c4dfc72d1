#include "format/file_spec.h"

#define LABELS 1000u

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

uint64_t file_spec_sample_bytes_checked(const struct file_spec *f)
{
	uint64_t bytes = f->elem->bytes;

	for (uint32_t i = 0; i < f->ndims; i++)
		if (__builtin_mul_overflow(bytes, f->dims[i], &bytes))
			bytes = UINT64_MAX;
	return bytes;
}

uint64_t file_spec_label(const struct file_spec *f, uint64_t sample)
{
	return (f->file_index * 331 + sample) % LABELS;
}
