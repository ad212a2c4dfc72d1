/* libjpeg's errors as return codes, and its memory lent by the caller. */
#include <errno.h>
#include <string.h>

#include "format/jpeg/jpeg.h"

#include <jerror.h>

/* SIMD code reads and writes whole vectors of a row. */
#define ALIGN 64u

static void leave(j_common_ptr c)
{
	struct jpeg_guard *g = (struct jpeg_guard *)c->err;
	char text[JMSG_LENGTH_MAX];

	c->err->format_message(c, text);
	if (c->err->msg_code == JERR_OUT_OF_MEMORY)
		g->rc = err_set(g->e, -ENOMEM, "no memory is left for a JPEG image");
	else
		g->rc = err_set(g->e, ERR_DATA, "%s: libjpeg says '%s'",
				c->is_decompressor ? "the JPEG image cannot be decoded"
						   : "the JPEG image cannot be made",
				text);
	longjmp(g->escape, 1);
}

static void say_nothing(j_common_ptr c)
{
	(void)c;
}

/* Warnings: Pillow goes on after them, too. */
static void note(j_common_ptr c, int level)
{
	if (level < 0)
		c->err->num_warnings++;
}

void jpeg_guard_init(struct jpeg_guard *g)
{
	jpeg_std_error(&g->manager);
	g->manager.error_exit = leave;
	g->manager.output_message = say_nothing;
	g->manager.emit_message = note;
}

void jpeg_guard_fail(j_common_ptr c, int rc)
{
	struct jpeg_guard *g = (struct jpeg_guard *)c->err;

	g->rc = rc;
	longjmp(g->escape, 1);
}

static void *take(struct jpeg_arena *a, size_t n)
{
	size_t whole = (n + ALIGN - 1) & ~(size_t)(ALIGN - 1);
	void *p = a->memory + a->used;

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
	void *p = take(a, n);

	return p ? p : a->alloc_small(c, pool, n);
}

static void *alloc_large(j_common_ptr c, int pool, size_t n)
{
	struct jpeg_arena *a = c->client_data;
	void *p = take(a, n);

	return p ? p : a->alloc_large(c, pool, n);
}

static JSAMPARRAY alloc_sarray(j_common_ptr c, int pool, JDIMENSION samples, JDIMENSION rows)
{
	struct jpeg_arena *a = c->client_data;
	size_t row = (samples * sizeof(JSAMPLE) + ALIGN - 1) & ~(size_t)(ALIGN - 1), all,
	       before = a->used;
	JSAMPARRAY table = take(a, rows * sizeof(JSAMPROW));
	JSAMPROW p;

	if (!table || __builtin_mul_overflow(row, (size_t)rows, &all)) {
		a->used = before;
		return a->alloc_sarray(c, pool, samples, rows);
	}
	p = take(a, all);
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
