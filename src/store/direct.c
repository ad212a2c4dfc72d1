/* Files past the page cache: O_DIRECT (open(2)).
 *
 * The system takes only aligned requests. One read is one request all the same: the aligned cover
 * of the range is asked for, its middle straight into the caller's memory, the blocks at its ends
 * into a bounce buffer that is a part of the blob. Where the caller's memory is not aligned as the
 * system wants it, the middle is read to the first address in it that is, and moved into place.
 *
 * What a write has beyond whole pages, at either end, goes through the page cache, because two
 * writers may share the block, the file must have its exact size at any moment, and only the
 * kernel can see to both. It is written out and dropped when the blob is closed. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/abi.h"
#include "base/alloc.h"
#include "os/file_system.h"
#include "store/posix.h"

/* Room for a head block and three tail blocks of the largest alignment, and the size up to which
 * an unaligned read is copied. */
#define BOUNCE_BYTES 65536u
#define OFFSET_ALIGN_MAX 16384u
#define MEMORY_ALIGN_MAX 4096u
/* Less than Linux moves in one call, and aligned. */
#define CALL_MAX (1u << 30)
#define DEVICES_SEEN 16

struct direct_store {
	struct store base;
	_Atomic uint64_t seen[DEVICES_SEEN]; /* file systems known not to be memory; 0: free */
};

struct direct_blob {
	struct posix_blob posix;
	uint32_t offset_align, memory_align;
	pthread_mutex_t lock;            /* of what follows and the descriptor's flags */
	uint64_t cached_from, cached_to; /* what writes left in the page cache; equal: nothing */
	unsigned char room[BOUNCE_BYTES + MEMORY_ALIGN_MAX];
};

static uint64_t down(uint64_t v, uint64_t align)
{
	return v - v % align;
}

static uint64_t up(uint64_t v, uint64_t align)
{
	return v > UINT64_MAX - align ? down(UINT64_MAX, align) : down(v + align - 1, align);
}

static unsigned char *aligned(const void *p, size_t align)
{
	return (unsigned char *)(((uintptr_t)p + align - 1) / align * align);
}

static unsigned char *bounce_of(struct direct_blob *db)
{
	return aligned(db->room, MEMORY_ALIGN_MAX);
}

static int direct_create(struct store **out, const void *config, struct store *lower, struct err *e)
{
	struct direct_store *d = xcalloc(1, sizeof(*d));

	(void)config;
	(void)lower;
	(void)e;
	*out = &d->base;
	return 0;
}

/* ---- open ---- */

static int refuse_file_system(const char *path, const struct file_system *fs, struct err *e)
{
	return err_set(e, -EINVAL,
		       "'%s' is on a file system (%s) that does not support O_DIRECT, which "
		       "storage.store=direct and reader.odirect require; there is no fallback to "
		       "the page cache: use another file system, or storage.store=posix",
		       path, fs->name[0] ? fs->name : "of unknown type");
}

static int refuse_memory(const char *path, const struct file_system *fs, struct err *e)
{
	return err_set(e, -EINVAL,
		       "'%s' is on %s, which is memory: it may accept O_DIRECT, but there is no "
		       "storage behind its page cache. Put it on a disk, or set "
		       "storage.store=posix to measure memory",
		       path, fs->name);
}

/* Asks once for each file system; the answer cannot change while it is mounted. */
static int check_device(struct direct_store *d, int fd, uint64_t device, const char *path,
			struct err *e)
{
	struct file_system fs = {0};
	size_t i;

	for (i = 0; i < DEVICES_SEEN; i++) {
		uint64_t seen = atomic_load_explicit(&d->seen[i], memory_order_relaxed);

		if (seen == device)
			return 0;
		if (seen == 0)
			break;
	}
	if (!file_system_of_fd(fd, &fs))
		return err_sys(e, errno, "cannot determine the file system of '%s'", path);
	if (fs.memory)
		return refuse_memory(path, &fs, e);
	/* two threads may write one place: then one of the two asks again */
	if (i < DEVICES_SEEN)
		atomic_store_explicit(&d->seen[i], device, memory_order_relaxed);
	return 0;
}

/* The alignment the kernel states, or, before Linux 6.1 and on file systems that do not say, that
 * of a page, which the blocks of all devices divide. */
static int check_alignment(struct direct_blob *db, const struct statx *sx, const char *path,
			   struct err *e)
{
	uint32_t page = (uint32_t)sysconf(_SC_PAGESIZE);
	struct file_system fs = {0};

	db->offset_align = page;
	db->memory_align = page < MEMORY_ALIGN_MAX ? page : MEMORY_ALIGN_MAX;
	if (sx->stx_mask & STATX_DIOALIGN) {
		db->offset_align = statx_direct_offset_align(sx);
		db->memory_align = statx_direct_memory_align(sx);
	}
	if (db->offset_align == 0 || db->memory_align == 0) {
		file_system_of_fd(db->posix.fd, &fs);
		return refuse_file_system(path, &fs, e);
	}
	if (db->offset_align > OFFSET_ALIGN_MAX || db->memory_align > MEMORY_ALIGN_MAX)
		return err_set(e, -EINVAL,
			       "'%s' requires O_DIRECT requests at multiples of %u bytes in memory "
			       "aligned to %u; at most %u and %u are supported",
			       path, db->offset_align, db->memory_align, OFFSET_ALIGN_MAX,
			       MEMORY_ALIGN_MAX);
	return 0;
}

static int check_file(struct direct_store *d, struct direct_blob *db, const char *path,
		      struct err *e)
{
	const unsigned wanted = STATX_TYPE | STATX_DIOALIGN;
	struct statx sx;
	int rc;

	if (statx(db->posix.fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, wanted, &sx) != 0)
		return err_sys(e, errno, "cannot query the O_DIRECT support of '%s'", path);
	rc = posix_settle(db->posix.fd, O_DIRECT, sx.stx_mode, path, e);
	if (rc == 0)
		rc = check_device(d, db->posix.fd,
				  ((uint64_t)sx.stx_dev_major << 32 | sx.stx_dev_minor) + 1, path,
				  e);
	return rc < 0 ? rc : check_alignment(db, &sx, path, e);
}

static int not_opened(const char *path, unsigned how, int code, struct err *e)
{
	struct file_system fs = {0};
	struct stat st;

	if (code != EINVAL)
		return posix_not_opened(path, how, code, e);
	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
		return err_sys(e, EISDIR, "cannot open '%s'", path);
	file_system_of_path(path, &fs);
	return fs.memory ? refuse_memory(path, &fs, e) : refuse_file_system(path, &fs, e);
}

/* A file that is there is not given up for one that is then refused. */
static int check_old(struct direct_store *d, struct direct_blob *db, const char *path,
		     struct err *e)
{
	int rc;

	db->posix.fd = posix_open_fd(path, O_RDONLY | O_DIRECT | O_NOFOLLOW | O_CLOEXEC);
	if (db->posix.fd < 0)
		return errno == EINVAL ? not_opened(path, 0, EINVAL, e) : 0;
	rc = check_file(d, db, path, e);
	close(db->posix.fd);
	return rc;
}

static int direct_open(struct store *s, const char *path, unsigned how, struct blob *b,
		       struct err *e)
{
	struct direct_store *d = (struct direct_store *)s;
	struct direct_blob *db = (struct direct_blob *)b;
	bool creates = how & STORE_CREATE, made = false;
	struct stat old;
	int rc = 0;

	db->cached_from = db->cached_to = 0;
	db->posix.bytes = UINT64_MAX;
	if (creates && !(how & (STORE_NEW | STORE_UNNAMED)) && lstat(path, &old) == 0 &&
	    S_ISREG(old.st_mode))
		rc = check_old(d, db, path, e);
	if (rc < 0)
		return rc;
	db->posix.fd = posix_open_fd(path, posix_open_flags(how) | O_DIRECT);
	/* a file system that refuses has made the file before it does */
	if (creates && !(how & STORE_UNNAMED))
		made = db->posix.fd >= 0 || errno == EINVAL;
	if (db->posix.fd < 0)
		rc = not_opened(path, how, errno, e);
	else
		rc = check_file(d, db, path, e);
	if (rc == 0) {
		pthread_mutex_init(&db->lock, NULL);
		return 0;
	}
	if (db->posix.fd >= 0)
		close(db->posix.fd);
	if (made)
		unlink(path);
	return rc;
}

/* ---- reading ---- */

static int read_failed(const struct direct_blob *db, int code, size_t n, uint64_t offset,
		       struct err *e)
{
	if (code != EINVAL)
		return err_sys(e, code, "reading %zu bytes at offset %" PRIu64 " failed", n,
			       offset);
	return err_set(e, -EINVAL,
		       "the file system rejects an O_DIRECT read of %zu bytes at offset %" PRIu64
		       ", a multiple of %u: it cannot be used without the page cache",
		       n, offset, db->offset_align);
}

/* A range [from, to) and how its aligned cover [low, high) is laid out in memory. */
struct plan {
	uint64_t from, to, low, high;
	struct iovec part[3]; /* head block, middle, tail blocks; those of no bytes are left out */
	int parts;
	uint64_t middle_at; /* file offset of the middle */
	size_t head_bytes, middle_bytes;
	unsigned char *middle, *tail;
};

static void plan_add(struct plan *p, void *at, size_t n)
{
	if (n == 0)
		return;
	assert(p->parts < 3);
	p->part[p->parts++] = (struct iovec){at, n};
}

static void plan_read(struct plan *p, struct direct_blob *db, unsigned char *out, uint64_t from,
		      uint64_t to)
{
	uint64_t align = db->offset_align;
	unsigned char *bounce = bounce_of(db), *end = out + (to - from), *place;

	*p = (struct plan){.from = from, .to = to, .low = down(from, align)};
	p->high = up(to, align) > INT64_MAX ? down(INT64_MAX, align) : up(to, align);
	p->head_bytes = from == p->low ? 0 : (size_t)align;
	p->middle_at = p->low + p->head_bytes;
	place = out + (p->middle_at - from);
	if (p->high - p->low > BOUNCE_BYTES || (from == p->low && to == p->high)) {
		p->middle = aligned(place, db->memory_align) == place
				    ? place
				    : aligned(out, db->memory_align);
		if (p->middle < end)
			p->middle_bytes = (size_t)down((uint64_t)(end - p->middle), align);
		if (p->middle_bytes > p->high - p->middle_at)
			p->middle_bytes = (size_t)(p->high - p->middle_at);
	}
	p->tail = aligned(bounce + p->head_bytes, db->memory_align);
	plan_add(p, bounce, p->head_bytes);
	plan_add(p, p->middle, p->middle_bytes);
	plan_add(p, p->tail, (size_t)(p->high - p->middle_at) - p->middle_bytes);
}

/* Brings what was read, up to file offset `end`, to where the caller wants it. The middle first:
 * the others go where it may lie now. */
static void copy_out(const struct plan *p, struct direct_blob *db, unsigned char *out, uint64_t end)
{
	uint64_t middle_end = p->middle_at + p->middle_bytes;
	uint64_t upto = end < middle_end ? end : middle_end;

	if (upto > p->middle_at && p->middle != out + (p->middle_at - p->from))
		memmove(out + (p->middle_at - p->from), p->middle, (size_t)(upto - p->middle_at));
	if (p->head_bytes) {
		upto = end < p->middle_at ? end : p->middle_at;
		memcpy(out, bounce_of(db) + (p->from - p->low), (size_t)(upto - p->from));
	}
	if (end > middle_end)
		memcpy(out + (middle_end - p->from), p->tail, (size_t)(end - middle_end));
}

/* Whether a request needs neither the bounce buffer nor the page cache. */
static bool is_aligned(const struct direct_blob *db, const void *p, size_t n, uint64_t offset,
		       uint64_t align)
{
	return (offset | n) % align == 0 && (uintptr_t)p % db->memory_align == 0;
}

/* Reads what is planned; fewer bytes only at the end of the file. What a short read left is asked
 * for from where it ended: file systems that give a part of a block (FUSE, NFS) take such a
 * request. Where it is refused, the result ends with a whole block. Negative: -errno. */
static ssize_t read_parts(const struct direct_blob *db, const struct plan *p)
{
	size_t done = 0, asked;

	for (;;) {
		struct iovec left[3];
		int parts = posix_pieces_after(p->part, p->parts, done, left, 3, &asked);
		ssize_t r;

		if (parts == 0)
			return (ssize_t)done;
		r = preadv(db->posix.fd, left, parts, (off_t)(p->low + done));
		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0 && errno == EINVAL && done % db->offset_align != 0)
			return (ssize_t)down(done, db->offset_align);
		if (r < 0)
			return -errno;
		done += (size_t)r;
		if ((size_t)r < asked && posix_at_end(&db->posix, r, p->low + done))
			return (ssize_t)done;
	}
}

static ssize_t read_range(struct blob *b, void *out, size_t n, uint64_t offset, struct err *e)
{
	struct direct_blob *db = (struct direct_blob *)b;
	uint64_t at = offset, end = offset + n;

	while (at < end) {
		uint64_t to = end - at > CALL_MAX ? down(at + CALL_MAX, db->offset_align) : end;
		unsigned char *place = (unsigned char *)out + (at - offset);
		struct plan p;
		uint64_t got;
		ssize_t r;

		plan_read(&p, db, place, at, to);
		r = read_parts(db, &p);
		if (r < 0)
			return read_failed(db, (int)-r, (size_t)(p.high - p.low), p.low, e);
		got = p.low + (uint64_t)r < to ? p.low + (uint64_t)r : to;
		if (got > at)
			copy_out(&p, db, place, got);
		if (p.low + (uint64_t)r < p.high &&
		    posix_at_end(&db->posix, r, p.low + (uint64_t)r))
			return (ssize_t)((got > at ? got : at) - offset);
		if (got <= at)
			return err_set(e, -EIO,
				       "the file system read no whole block of %" PRIu64
				       " bytes at offset %" PRIu64,
				       p.high - p.low, p.low);
		at = got;
	}
	return (ssize_t)n;
}

/* Aligned reads of one blob go on beside each other; others take turns at its bounce buffer. */
static ssize_t direct_pread(struct blob *b, void *out, size_t n, uint64_t offset, struct err *e)
{
	struct direct_blob *db = (struct direct_blob *)b;
	ssize_t r;

	if (is_aligned(db, out, n, offset, db->offset_align))
		return read_range(b, out, n, offset, e);
	pthread_mutex_lock(&db->lock);
	r = read_range(b, out, n, offset, e);
	pthread_mutex_unlock(&db->lock);
	return r;
}

/* ---- writing ---- */

/* Through the page cache, by the same descriptor. */
static int write_cached(struct direct_blob *db, const unsigned char *p, size_t n, uint64_t offset,
			struct err *e)
{
	int flags = fcntl(db->posix.fd, F_GETFL);
	ssize_t w;

	if (n == 0)
		return 0;
	if (flags < 0 || fcntl(db->posix.fd, F_SETFL, flags & ~O_DIRECT) != 0)
		return err_sys(e, errno, "cannot write the unaligned end of a file");
	w = posix_pwrite(&db->posix.base, p, n, offset, e);
	if (fcntl(db->posix.fd, F_SETFL, flags) != 0 && w >= 0)
		w = err_sys(e, errno, "cannot re-enable O_DIRECT");
	if (db->cached_from == db->cached_to) {
		db->cached_from = offset;
		db->cached_to = offset + n;
	}
	if (offset < db->cached_from)
		db->cached_from = offset;
	if (offset + n > db->cached_to)
		db->cached_to = offset + n;
	return w < 0 ? (int)w : 0;
}

/* Whole pages at multiples of a page. */
static int write_aligned(struct direct_blob *db, const unsigned char *p, uint64_t n,
			 uint64_t offset, struct err *e)
{
	bool bounced = aligned(p, db->memory_align) != p;

	for (uint64_t done = 0; done < n;) {
		uint64_t ask = bounced ? BOUNCE_BYTES : CALL_MAX;
		const void *from = p + done;
		ssize_t w;

		if (ask > n - done)
			ask = n - done;
		if (bounced)
			from = memcpy(bounce_of(db), p + done, (size_t)ask);
		w = pwrite(db->posix.fd, from, (size_t)ask, (off_t)(offset + done));
		if (w < 0 && errno == EINTR)
			continue;
		if (w < 0)
			return err_sys(e, errno,
				       "writing %" PRIu64 " bytes at offset %" PRIu64 " failed",
				       ask, offset + done);
		/* a part of a block is written again with the rest of it */
		w = (ssize_t)down((uint64_t)w, db->offset_align);
		if (w == 0)
			return err_set(e, -EIO,
				       "the file system wrote no block of %" PRIu64
				       " bytes at offset %" PRIu64,
				       ask, offset + done);
		done += (uint64_t)w;
	}
	return 0;
}

static ssize_t write_range(struct blob *b, const void *p, size_t n, uint64_t offset, struct err *e)
{
	struct direct_blob *db = (struct direct_blob *)b;
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), end = offset + n;
	uint64_t align = db->offset_align > page ? db->offset_align : page;
	uint64_t low = up(offset, align), high = down(end, align);
	const unsigned char *from = p;
	int rc;

	if (high <= low) {
		rc = write_cached(db, from, n, offset, e);
		return rc < 0 ? rc : (ssize_t)n;
	}
	rc = write_cached(db, from, (size_t)(low - offset), offset, e) ?:
	     write_aligned(db, from + (low - offset), high - low, low, e) ?:
	     write_cached(db, from + (high - offset), (size_t)(end - high), high, e);
	return rc < 0 ? rc : (ssize_t)n;
}

static ssize_t direct_pwrite(struct blob *b, const void *p, size_t n, uint64_t offset,
			     struct err *e)
{
	struct direct_blob *db = (struct direct_blob *)b;
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	ssize_t w;

	if (is_aligned(db, p, n, offset, db->offset_align > page ? db->offset_align : page))
		return write_range(b, p, n, offset, e);
	pthread_mutex_lock(&db->lock);
	w = write_range(b, p, n, offset, e);
	pthread_mutex_unlock(&db->lock);
	return w;
}

static int direct_close(struct blob *b, struct err *e)
{
	struct direct_blob *db = (struct direct_blob *)b;
	uint64_t from = db->cached_from, n = db->cached_to - from;
	int rc = 0, closed, written;

	do
		written = n ? sync_file_range(db->posix.fd, (off_t)from, (off_t)n,
					      SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
						      SYNC_FILE_RANGE_WAIT_AFTER)
			    : 0;
	while (written != 0 && errno == EINTR);
	if (written != 0 && errno != ENOSYS && errno != EINVAL && errno != ESPIPE)
		rc = err_sys(e, errno, "writing the unaligned end of a file failed");
	if (n)
		posix_drop(b, from, n, NULL);
	pthread_mutex_destroy(&db->lock);
	closed = posix_close(b, rc ? NULL : e);
	return rc ? rc : closed;
}

const struct store_ops store_direct = {
	.is.name = "direct",
	.is.help = "files without the page cache (O_DIRECT, any offset and length); a file system "
		   "that does not support it, or that is memory (tmpfs), is an error",
	.is.flags = STORE_HAS_FILES | STORE_IS_UNCACHED,
	.blob_bytes = sizeof(struct direct_blob),
	.create = direct_create,
	.destroy = posix_destroy,
	.open = direct_open,
	.close = direct_close,
	.pread = direct_pread,
	.pwrite = direct_pwrite,
	.align = MEMORY_ALIGN_MAX,
	POSIX_NAME_OPS,
};
