/* libjpeg's errors as return codes, its memory lent by the caller, and images of pixels encoded as
 * Pillow saves them. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "format/jpeg/jpeg_lib.h"

#include <jerror.h>

/* SIMD code reads and writes whole vectors of a row. */
#define ALIGN 64u

static void error_exit(j_common_ptr c)
{
	struct jpeg_guard *g = (struct jpeg_guard *)c->err;
	char text[JMSG_LENGTH_MAX];

	c->err->format_message(c, text);
	if (c->err->msg_code == JERR_OUT_OF_MEMORY)
		g->rc = err_set(g->e, -ENOMEM, "not enough memory for a JPEG image");
	else
		g->rc = err_set(g->e, ERR_DATA, "%s (libjpeg: '%s')",
				c->is_decompressor ? "the JPEG image cannot be decoded"
						   : "the JPEG image cannot be encoded",
				text);
	longjmp(g->escape, 1);
}

static void print_nothing(j_common_ptr c)
{
	(void)c;
}

/* Warnings: Pillow goes on after them, too. */
static void count_warning(j_common_ptr c, int level)
{
	if (level < 0)
		c->err->num_warnings++;
}

void jpeg_guard_init(struct jpeg_guard *g)
{
	jpeg_std_error(&g->manager);
	g->manager.error_exit = error_exit;
	g->manager.output_message = print_nothing;
	g->manager.emit_message = count_warning;
}

void jpeg_guard_fail(j_common_ptr c, int rc)
{
	struct jpeg_guard *g = (struct jpeg_guard *)c->err;

	g->rc = rc;
	longjmp(g->escape, 1);
}

static void *arena_take(struct jpeg_arena *a, size_t n)
{
	size_t whole = (n + ALIGN - 1) & ~(size_t)(ALIGN - 1);
	void *p = a->memory + a->used;

	assert(a->used <= a->bytes);
	if (whole < n || whole > a->bytes - a->used) {
		a->beyond += n;
		return NULL;
	}
	a->used += whole;
	return p;
}

static void *alloc_small(j_common_ptr c, int pool, size_t n)
{
	struct jpeg_arena *a = c->client_data;
	void *p = arena_take(a, n);

	return p ? p : a->alloc_small(c, pool, n);
}

static void *alloc_large(j_common_ptr c, int pool, size_t n)
{
	struct jpeg_arena *a = c->client_data;
	void *p = arena_take(a, n);

	return p ? p : a->alloc_large(c, pool, n);
}

static JSAMPARRAY alloc_sarray(j_common_ptr c, int pool, JDIMENSION samples, JDIMENSION rows)
{
	struct jpeg_arena *a = c->client_data;
	size_t row = (samples * sizeof(JSAMPLE) + ALIGN - 1) & ~(size_t)(ALIGN - 1), all,
	       before = a->used;
	JSAMPARRAY table = arena_take(a, rows * sizeof(JSAMPROW));
	JSAMPROW p;

	if (!table || __builtin_mul_overflow(row, (size_t)rows, &all)) {
		a->used = before;
		return a->alloc_sarray(c, pool, samples, rows);
	}
	p = arena_take(a, all);
	if (!p) {
		a->used = before;
		return a->alloc_sarray(c, pool, samples, rows);
	}
	for (JDIMENSION i = 0; i < rows; i++)
		table[i] = p + i * row;
	return table;
}

void jpeg_arena_arm(struct jpeg_arena *a, j_common_ptr c, void *memory, size_t bytes)
{
	*a = (struct jpeg_arena){.memory = memory,
				 .bytes = bytes,
				 .alloc_small = c->mem->alloc_small,
				 .alloc_large = c->mem->alloc_large,
				 .alloc_sarray = c->mem->alloc_sarray};
	c->client_data = a;
	c->mem->alloc_small = alloc_small;
	c->mem->alloc_large = alloc_large;
	c->mem->alloc_sarray = alloc_sarray;
}

/* ---- making images of pixels ---- */

static void dest_begin(j_compress_ptr c)
{
	struct jpeg_encoder *j = (struct jpeg_encoder *)c->err;

	j->dest.next_output_byte = j->out;
	j->dest.free_in_buffer = IMAGE_PIECE;
}

static void give_output(struct jpeg_encoder *j, size_t n)
{
	int rc = n ? j->sink(j->arg, j->out, n, j->guard.e) : 0;

	if (rc < 0)
		jpeg_guard_fail((j_common_ptr)&j->c, rc);
}

/* libjpeg calls it with the buffer full, whatever free_in_buffer says. */
static boolean dest_full(j_compress_ptr c)
{
	give_output((struct jpeg_encoder *)c->err, IMAGE_PIECE);
	dest_begin(c);
	return TRUE;
}

static void dest_end(j_compress_ptr c)
{
	struct jpeg_encoder *j = (struct jpeg_encoder *)c->err;

	give_output(j, IMAGE_PIECE - j->dest.free_in_buffer);
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
