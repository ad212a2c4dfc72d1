/* Making JPEG images of pixels, as Pillow saves them. */
#include <string.h>

#include "format/jpeg/jpeg.h"

static void dest_begin(j_compress_ptr c)
{
	struct jpeg_encoder *j = (struct jpeg_encoder *)c->err;

	j->dest.next_output_byte = j->out;
	j->dest.free_in_buffer = IMAGE_PIECE;
}

static void give(struct jpeg_encoder *j, size_t n)
{
	int rc = n ? j->sink(j->arg, j->out, n, j->guard.e) : 0;

	if (rc < 0)
		jpeg_guard_fail((j_common_ptr)&j->c, rc);
}

/* libjpeg calls it with the buffer full, whatever free_in_buffer says. */
static boolean dest_full(j_compress_ptr c)
{
	give((struct jpeg_encoder *)c->err, IMAGE_PIECE);
	dest_begin(c);
	return TRUE;
}

static void dest_end(j_compress_ptr c)
{
	struct jpeg_encoder *j = (struct jpeg_encoder *)c->err;

	give(j, IMAGE_PIECE - j->dest.free_in_buffer);
}

int jpeg_encoder_init(struct jpeg_encoder *j, void *memory, uint32_t width, struct err *e)
{
	unsigned char *m = memory;

	_Static_assert(offsetof(struct jpeg_encoder, guard) == 0, "c.err leads to the encoder");
	memset(j, 0, sizeof(*j));
	jpeg_guard_init(&j->guard);
	j->guard.e = e;
	j->c.err = &j->guard.manager;
	j->row = m;
	j->out = m + JPEG_ROW_ROOM;
	j->dest = (struct jpeg_destination_mgr){.init_destination = dest_begin,
						.empty_output_buffer = dest_full,
						.term_destination = dest_end};
	if (setjmp(j->guard.escape)) {
		jpeg_encoder_release(j);
		return j->guard.rc;
	}
	j->made = true;
	jpeg_create_compress(&j->c);
	j->c.dest = &j->dest;
	j->c.input_components = 1;
	j->c.in_color_space = JCS_GRAYSCALE;
	jpeg_set_defaults(&j->c);
	jpeg_set_quality(&j->c, 75, TRUE);
	jpeg_arena_arm(&j->arena, (j_common_ptr)&j->c, m + JPEG_ROW_ROOM + IMAGE_PIECE,
		       JPEG_ARENA_BYTES(width));
	return 0;
}

int jpeg_encode(struct jpeg_encoder *j, const struct image_shape *shape, uint64_t file_index,
		const struct content_source *content, jpeg_sink *sink, void *arg, struct err *e)
{
	JSAMPROW row = j->row;

	j->guard.e = e;
	j->sink = sink;
	j->arg = arg;
	j->arena.used = 0;
	j->c.image_width = shape->width;
	j->c.image_height = shape->height;
	if (setjmp(j->guard.escape)) {
		jpeg_abort_compress(&j->c);
		return j->guard.rc;
	}
	jpeg_start_compress(&j->c, TRUE);
	while (j->c.next_scanline < j->c.image_height) {
		content->fill(content, file_index, (uint64_t)j->c.next_scanline * j->c.image_width,
			      j->row, j->c.image_width);
		jpeg_write_scanlines(&j->c, &row, 1);
	}
	jpeg_finish_compress(&j->c);
	return 0;
}

void jpeg_encoder_release(struct jpeg_encoder *j)
{
	if (j->made)
		jpeg_destroy_compress(&j->c);
	j->made = false;
}
