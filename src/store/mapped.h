#pragma once
/* Blobs mapped into memory. Their pages are touched and copied through the kernel, so that a page
 * that cannot be had - the file was cut short, the disk failed - ends in an error and not in a
 * signal that would end the process. */
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "store/store.h"

struct store_map {
	const unsigned char *at; /* NULL: nothing is mapped */
	uint64_t bytes;
};

/* Whether blobs of this store can be mapped. */
bool store_maps(const struct store *s);
/* 0 when blobs of this store can be mapped; else a sentence that says why not and what to do. */
int store_map_check(const struct store *s, struct err *e);
/* 0 when mappings can be read on this system, whatever the store. */
int store_map_works(struct err *e);
/* Maps the first `bytes` of a blob that is open for reading; 0 bytes give an empty mapping, which
 * needs no unmapping. It outlives the blob. */
int store_map(struct blob *b, uint64_t bytes, struct store_map *out, struct err *e);
/* Empties the mapping. Fine when it is. */
void store_unmap(struct store_map *m);
/* Gives the page tables back, 8 bytes for each page touched, by moving to a fresh mapping of the
 * same file. The bytes stay where they are cached; only their address changes. */
void store_map_renew(struct store_map *m);
/* Gives back the page tables of all files that this process has mapped to read (mode "r--s" in
 * /proc/self/maps, proc_pid_maps(5)), so that they keep no page in the page cache; the next access
 * faults the page in again. Returns the bytes of mappings that the kernel did not let go. Any
 * thread, but while no other maps, unmaps or reads: what is read would hold its pages again. */
uint64_t store_maps_let_go(void);
/* What store_map_touch counts: pages that hold bytes of the range. */
uint64_t store_map_pages(uint64_t offset, uint64_t n);
/* Touches every page of a range, in ascending order, as reading one byte of each would. The range
 * must lie within the mapping. */
int store_map_touch(const struct store_map *m, uint64_t offset, uint64_t n, struct err *e);
/* Asks the system to read the pages of a range ahead, and does not wait for them
 * (madvise(MADV_WILLNEED)); what cannot be read is noticed when it is touched. The range must lie
 * within the mapping. */
void store_map_will_need(const struct store_map *m, uint64_t offset, uint64_t n);
/* Copies a range that must lie within the mapping. */
int store_map_copy(const struct store_map *m, uint64_t offset, void *out, size_t n, struct err *e);

/* The same, counted and timed. */
int io_map(const struct io *io, struct blob *b, uint64_t bytes, struct store_map *out,
	   struct err *e);
void io_map_will_need(const struct io *io, const struct store_map *m, uint64_t offset, uint64_t n);
int io_map_touch(const struct io *io, enum io_kind kind, const struct store_map *m, uint64_t offset,
		 uint64_t n, struct err *e);
int io_map_copy(const struct io *io, enum io_kind kind, const struct store_map *m, uint64_t offset,
		void *out, size_t n, struct err *e);
