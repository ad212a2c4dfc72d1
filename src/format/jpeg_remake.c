/* Making again what a JPEG file was made of, to compare the two. */
#include <string.h>

#include "format/jpeg.h"

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

int jpeg_remake(struct jpeg_remake *m, const struct image_shape *shape, uint64_t file_index,
		const struct content_source *content, jpeg_sink *sink, void *arg, struct err *e)
{
	unsigned char *encoder = (unsigned char *)m->memory + JPEG_NOISE_BYTES;
	struct first first = {.bytes = m->head, .n = m->n};
	struct jpeg_encoder j = {0};
	bool pixels;
	int rc;

	if (m->n == 0 ||
	    alike(jpeg_noise(m->memory, shape, file_index, content, compare_first, &first, NULL)))
		return jpeg_noise(m->memory, shape, file_index, content, sink, arg, e);
	rc = jpeg_encoder_init(&j, encoder, m->width, e);
	if (rc < 0)
		return rc;
	first.same = 0;
	pixels = alike(jpeg_encode(&j, shape, file_index, content, compare_first, &first, NULL));
	rc = pixels ? jpeg_encode(&j, shape, file_index, content, sink, arg, e)
		    : jpeg_noise(m->memory, shape, file_index, content, sink, arg, e);
	m->beyond += j.arena.beyond;
	jpeg_encoder_release(&j);
	return rc;
}
