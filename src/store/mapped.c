/* Mapped blobs, read without the danger of a signal.
 *
 * A mapped page that cannot be read raises SIGBUS, which no thread can be made to survive cleanly.
 * process_vm_readv on ourselves faults pages in exactly as a load would - same readahead, same page
 * tables - and returns EFAULT instead. So does MADV_POPULATE_READ, in half the time, without saying
 * which page it was. */
#include "store/mapped.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/abi.h"
#include "base/file.h"

/* Pages touched in one system call. */
#define TOUCH_PAGES 128
#define TOUCH_BYTES (UINT64_C(2) << 20) /* at once in the quick way: a whole number of pages */
#define MAPS_BYTES ((size_t)256 << 20)  /* of the list of mappings: about two million of them */

/* The kernel's list is asked: keeping one of our own would cost the timed path a lock. */
uint64_t store_maps_let_go(void)
{
	struct buf maps = {0};
	struct err e = {0};
	uint64_t kept = 0;

	if (file_read("/proc/self/maps", MAPS_BYTES, &maps, &e) != 0 || !maps.data)
		return 0;
	for (const char *line = maps.data, *next; *line; line = next) {
		uintptr_t from, to;
		char mode[5];
		uint64_t inode;
		size_t n;

		next = line + strcspn(line, "\n");
		next += *next != '\0';
		if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s %*x %*x:%*x %" SCNu64, &from, &to,
			   mode, &inode) != 4 ||
		    strcmp(mode, "r--s") != 0 || inode == 0)
			continue;
		n = to - from;
		/* locked pages (mlockall) are not let go */
		if (madvise((void *)from, n, MADV_DONTNEED) != 0 &&
		    (munlock((void *)from, n) != 0 || madvise((void *)from, n, MADV_DONTNEED) != 0))
			kept += n;
	}
	buf_release(&maps);
	return kept;
}

static uint64_t page_bytes(void)
{
	return (uint64_t)sysconf(_SC_PAGESIZE);
}

/* The first store of the stack that cannot, or NULL. */
static const struct store *cannot_map(const struct store *s)
{
	while (s && s->ops->map)
		s = s->lower;
	return s;
}

bool store_maps(const struct store *s)
{
	return !cannot_map(s);
}

int store_map_works(struct err *e)
{
	char here = 1, there = 0;
	struct iovec from = {&here, 1}, to = {&there, 1};

	if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) != 1)
		return err_sys(e, errno,
			       "mapped files are read with process_vm_readv, so that a file that "
			       "is truncated does not end the process, and this system does not "
			       "allow it; set storage.store to posix, and dataset.format to "
			       "indexed_binary or reader.access to native");
	return 0;
}

int store_map_check(const struct store *s, struct err *e)
{
	const struct store *who = cannot_map(s);

	if (who && who->ops->is.flags & STORE_IS_SHIM)
		return err_set(e, ERR_USAGE,
			       "the store '%s' cannot intercept the page faults of mapped files: "
			       "set reader.access to native, which reads, or leave '%s' out of "
			       "storage.store",
			       who->ops->is.name, who->ops->is.name);
	if (who && who->ops->is.flags & STORE_IS_UNCACHED &&
	    !(who->ops->is.flags & STORE_HAS_OBJECTS))
		return err_set(
			e, ERR_USAGE,
			"the store '%s' bypasses the page cache, which mapped files need: "
			"set reader.access to native, which reads, or storage.store to posix",
			who->ops->is.name);
	if (who)
		return err_set(e, ERR_USAGE,
			       "the store '%s' has no files that can be mapped into memory: set "
			       "reader.access to native, which reads, or storage.store to posix",
			       who->ops->is.name);
	return store_map_works(e);
}

int store_map(struct blob *b, uint64_t bytes, struct store_map *out, struct err *e)
{
	*out = (struct store_map){0};
	if (bytes == 0)
		return 0;
	if (!b->store->ops->map)
		return store_map_check(b->store, e);
	if (bytes > SIZE_MAX / 2)
		return err_set(e, -EFBIG,
			       "%" PRIu64 " bytes are more than a process can map on this machine",
			       bytes);
	const void *at = NULL;
	int rc = b->store->ops->map(b, bytes, &at, e);

	if (rc == 0)
		*out = (struct store_map){at, bytes};
	return rc;
}

static void *map_address(const struct store_map *m, uint64_t offset)
{
	return (void *)((uintptr_t)m->at + offset);
}

void store_unmap(struct store_map *m)
{
	if (m->at)
		munmap(map_address(m, 0), (size_t)m->bytes);
	*m = (struct store_map){0};
}

void store_map_renew(struct store_map *m)
{
	void *fresh;

	if (!m->at)
		return;
	/* an old size of 0 duplicates a shared mapping (mremap(2)) */
	fresh = mremap(map_address(m, 0), 0, (size_t)m->bytes, MREMAP_MAYMOVE);
	if (fresh == MAP_FAILED)
		return;
	munmap(map_address(m, 0), (size_t)m->bytes);
	m->at = fresh;
}

uint64_t store_map_pages(uint64_t offset, uint64_t n)
{
	uint64_t page = page_bytes();

	return n ? (offset + n - 1) / page - offset / page + 1 : 0;
}

static int unreadable(uint64_t offset, int code, struct err *e)
{
	if (code != EFAULT)
		return err_sys(e, code, "the mapped file cannot be read at offset %" PRIu64,
			       offset);
	return err_set(e, -EIO,
		       "the mapped file cannot be read at offset %" PRIu64
		       ": it was truncated while it was mapped, or the device failed",
		       offset);
}

/* Touches pages from `at` on, in the same order, until the end or a range that has one that cannot
 * be had (or all of it, before Linux 5.14). Returns where it stopped. */
static uint64_t touch_quickly(const struct store_map *m, uint64_t at, uint64_t end)
{
	uint64_t page = page_bytes();

	while (at < end) {
		uint64_t from = at / page * page;
		uint64_t n = end - from < TOUCH_BYTES ? end - from : TOUCH_BYTES;

		if (madvise(map_address(m, from), (size_t)n, MADV_POPULATE_READ) != 0)
			break;
		at = from + n;
	}
	return at;
}

int store_map_touch(const struct store_map *m, uint64_t offset, uint64_t n, struct err *e)
{
	uint64_t page = page_bytes(), end = offset + n, at;
	struct iovec from[TOUCH_PAGES];
	char seen[TOUCH_PAGES];
	struct iovec to = {seen, 0};

	assert(offset <= m->bytes && n <= m->bytes - offset);
	/* what it does not yield is looked at page by page, which tells where and why */
	at = touch_quickly(m, offset, end);
	while (at < end) {
		size_t pages = 0;
		uint64_t next = at;
		ssize_t got;

		for (; pages < TOUCH_PAGES && next < end; pages++) {
			from[pages] = (struct iovec){map_address(m, next), 1};
			next = (next / page + 1) * page;
		}
		to.iov_len = pages;
		got = process_vm_readv(getpid(), &to, 1, from, pages, 0);
		if (got <= 0)
			return unreadable(at, got < 0 ? errno : EFAULT, e);
		/* fewer: the one after these cannot be read, which the next call says */
		at = (size_t)got == pages
			     ? next
			     : (uint64_t)((uintptr_t)from[got].iov_base - (uintptr_t)m->at);
	}
	return 0;
}

void store_map_will_need(const struct store_map *m, uint64_t offset, uint64_t n)
{
	uint64_t from = offset / page_bytes() * page_bytes();

	assert(offset <= m->bytes && n <= m->bytes - offset);
	if (n > 0)
		(void)madvise(map_address(m, from), (size_t)(offset + n - from), MADV_WILLNEED);
}

int store_map_copy(const struct store_map *m, uint64_t offset, void *out, size_t n, struct err *e)
{
	size_t done = 0;

	assert(offset <= m->bytes && n <= m->bytes - offset);
	while (done < n) {
		struct iovec from = {map_address(m, offset + done), n - done};
		struct iovec to = {(char *)out + done, n - done};
		ssize_t got = process_vm_readv(getpid(), &to, 1, &from, 1, 0);

		if (got <= 0)
			return unreadable(offset + done, got < 0 ? errno : EFAULT, e);
		done += (size_t)got;
	}
	return 0;
}
