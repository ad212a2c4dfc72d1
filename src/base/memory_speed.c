/* A short measurement of memcpy. */
#include "base/memory_speed.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/sysinfo.h"
#include "base/thread.h"

#define BLOCK_BYTES ((size_t)16 << 20)
#define PIECE_BYTES ((size_t)256 << 10)
#define ROUNDS 4

struct copier {
	char *block, *piece;
	pthread_t thread;
	_Atomic uint32_t *go;
	int64_t begin_ns, end_ns;
};

static void *copy(void *arg)
{
	struct copier *c = arg;

	while (atomic_load_explicit(c->go, memory_order_acquire) == 0)
		thread_wait(c->go, 0, -1);
	c->begin_ns = clock_now_ns();
	for (int r = 0; r < ROUNDS; r++)
		for (size_t at = 0; at < BLOCK_BYTES; at += PIECE_BYTES) {
			memcpy(c->piece, c->block + at, PIECE_BYTES);
			/* the copy is wanted, though nobody reads it */
			__asm__ volatile("" : : "r"(c->piece) : "memory");
		}
	c->end_ns = clock_now_ns();
	return NULL;
}

static double speed_of(const struct copier *c, unsigned n)
{
	int64_t begin = c[0].begin_ns, end = c[0].end_ns;

	for (unsigned i = 1; i < n; i++) {
		begin = c[i].begin_ns < begin ? c[i].begin_ns : begin;
		end = c[i].end_ns > end ? c[i].end_ns : end;
	}
	return end > begin ? (double)n * ROUNDS * (double)BLOCK_BYTES * 1e9 / (double)(end - begin)
			   : 0;
}

double memory_copy_speed(unsigned threads)
{
	unsigned n = threads < 1                    ? 1
		     : threads > MEMORY_COPIERS_MAX ? MEMORY_COPIERS_MAX
						    : threads,
		 begun = 0;
	struct copier *c;
	_Atomic uint32_t go = 0;
	double speed = 0;
	struct err e;

	/* a control group ends who takes more than it gives, and no result was written yet */
	if (n * (BLOCK_BYTES + PIECE_BYTES) > host_available_bytes() / 2)
		return 0;
	c = calloc(n, sizeof(*c));

	for (unsigned i = 0; c && i < n; i++) {
		c[i].go = &go;
		c[i].block = malloc(BLOCK_BYTES);
		c[i].piece = malloc(PIECE_BYTES);
		if (!c[i].block || !c[i].piece)
			break;
		/* pages of one's own: untouched ones are all the same page of zeros */
		memset(c[i].block, (int)i + 1, BLOCK_BYTES);
		memset(c[i].piece, 0, PIECE_BYTES);
		if (thread_start(&c[i].thread, copy, &c[i], 0, "memory", &e) < 0)
			break;
		begun++;
	}
	atomic_store_explicit(&go, 1, memory_order_release);
	thread_wake(&go, (int)n);
	for (unsigned i = 0; i < begun; i++)
		pthread_join(c[i].thread, NULL);
	if (c && begun == n)
		speed = speed_of(c, n);
	for (unsigned i = 0; c && i < n; i++) {
		free(c[i].block);
		free(c[i].piece);
	}
	free(c);
	return speed;
}
