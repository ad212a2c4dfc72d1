/* Where everything in a file of MDS or LitData lies: a pure function of the keys. */
#include "format/chunks/chunks_layout.h"

#include <inttypes.h>

int chunks_layout_of(const struct chunks_kind *k, const struct file_spec *f,
		     struct chunks_layout *l, struct err *e)
{
	uint64_t bytes = file_spec_sample_bytes_checked(f), items, head;

	l->sample_bytes = bytes;
	l->config_bytes = k->config ? k->config(l->config, true) : 0;
	if (__builtin_add_overflow(bytes, 4 * k->sizes + CHUNKS_LABEL_BYTES, &l->stride) ||
	    __builtin_mul_overflow(l->stride, f->samples, &items) ||
	    __builtin_mul_overflow(f->samples, (uint64_t)4, &head) ||
	    __builtin_add_overflow(head, 8 + l->config_bytes, &head) ||
	    __builtin_add_overflow(head, items, &l->file_bytes) || l->file_bytes > UINT32_MAX)
		return err_set(e, ERR_USAGE,
			       "%" PRIu64
			       " samples of these dimensions are more than a file can have, whose "
			       "offsets of 32 bits end at 4 GiB: lower "
			       "dataset.num_samples_per_file or dataset.record_length_bytes",
			       f->samples);
	if (k->config && l->file_bytes > 64u << 20) {
		size_t was = l->config_bytes;

		l->config_bytes = k->config(l->config, false);
		head = head - was + l->config_bytes;
	}
	l->items_at = head;
	l->file_bytes = head + items;
	l->filled_bytes = 0;
	if (f->want_bytes > l->file_bytes && f->want_bytes <= UINT32_MAX) {
		l->filled_bytes = f->want_bytes - l->file_bytes;
		l->file_bytes = f->want_bytes;
	}
	return 0;
}
