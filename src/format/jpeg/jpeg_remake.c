/* Making again what a JPEG file was made of, to compare the two. */
#include <string.h>

#include "format/jpeg/jpeg.h"

struct first {
	const unsigned char *bytes;
	size_t n, same;
};

static int compare_first(void *arg, const unsigned char *bytes, size_t n, struct err *e)
{
	struct first *f = arg;
	size_t left = f->n - f->same, part = n < left ? n : left;

	(void)e;
	if (memcmp(f->bytes + f->same, bytes, part) != 0)
		return ERR_DATA;
	f->same += part;
	return f->same == f->n ? ERR_CANCELED : 0;
}

/* Whether a maker's end is that of its image (0), or all of the first bytes were alike. */
static bool alike(int rc)
{
	return rc == 0 || rc == ERR_CANCELED;
}

int jpeg_remake_init(struct jpeg_remake *m, void *memory, uint32_t width, struct err *e)
{
	*m = (struct jpeg_remake){.memory = memory};
	jpeg_noise_prepare();
	return jpeg_encoder_init(&m->encoder, (unsigned char *)memory + JPEG_NOISE_BYTES, width, e);
}

void jpeg_remake_release(struct jpeg_remake *m)
{
	jpeg_encoder_release(&m->encoder);
}

int jpeg_remake(struct jpeg_remake *m, const struct image_shape *shape, uint64_t file_index,
		const struct content_source *content, jpeg_sink *sink, void *arg, struct err *e)
{
	struct first first = {.bytes = m->head, .n = m->n};

	if (m->n == 0 ||
	    alike(jpeg_noise(m->memory, shape, file_index, content, compare_first, &first, NULL)))
		return jpeg_noise(m->memory, shape, file_index, content, sink, arg, e);
	first.same = 0;
	if (alike(jpeg_encode(&m->encoder, shape, file_index, content, compare_first, &first,
			      NULL)))
		return jpeg_encode(&m->encoder, shape, file_index, content, sink, arg, e);
	return jpeg_noise(m->memory, shape, file_index, content, sink, arg, e);
}
