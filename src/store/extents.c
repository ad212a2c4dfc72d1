/* FIEMAP, in pieces, until the last extent. */
#include "store/extents.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/posix.h"

#define ASKED 64 /* extents of one request */
#define REQUESTS_MAX 4096

/* A request and the room for its extents, which end struct fiemap. */
union asked {
	struct fiemap map;
	unsigned char room[sizeof(struct fiemap) + ASKED * sizeof(struct fiemap_extent)];
};

static void keep_place(struct file_extents *out, uint64_t device, const struct fiemap_extent *x)
{
	/* how long a compressed extent is on the device is not said */
	uint64_t bytes = x->fe_flags & FIEMAP_EXTENT_ENCODED ? 1 : x->fe_length;

	/* what has no place yet, or none of its own */
	if (x->fe_flags & (FIEMAP_EXTENT_UNKNOWN | FIEMAP_EXTENT_DELALLOC |
			   FIEMAP_EXTENT_DATA_INLINE | FIEMAP_EXTENT_DATA_TAIL) ||
	    out->places == EXTENTS_KEPT)
		return;
	out->place[out->places++] =
		(struct extent_place){.device = device, .at = x->fe_physical, .bytes = bytes};
}

/* `from`: the end of what was accounted for; grows. */
static void add_extent(struct file_extents *out, uint64_t device, const struct fiemap_extent *x,
		       uint64_t *from)
{
	uint64_t begin = x->fe_logical < *from ? *from : x->fe_logical;
	uint64_t end = x->fe_logical + x->fe_length;

	/* blocks are whole, and may have been allocated beyond the end */
	end = end < out->file_bytes ? end : out->file_bytes;
	if (begin >= end)
		return;
	out->hole_bytes += begin - *from;
	*from = end;
	out->shared = out->shared || x->fe_flags & FIEMAP_EXTENT_SHARED;
	if (x->fe_flags & FIEMAP_EXTENT_UNWRITTEN)
		out->hole_bytes += end - begin;
	else if (x->fe_flags & FIEMAP_EXTENT_DATA_INLINE)
		out->inline_bytes += end - begin;
	else if (x->fe_flags & FIEMAP_EXTENT_ENCODED)
		out->compressed_bytes += end - begin;
	if (!(x->fe_flags & FIEMAP_EXTENT_UNWRITTEN))
		keep_place(out, device, x);
}

static int read_extents(int fd, const struct stat *st, bool sync, struct file_extents *out)
{
	uint64_t from = 0, next = 0;
	bool last = false;

	*out = (struct file_extents){.file_bytes = (uint64_t)st->st_size};
	for (int i = 0; !last && next < out->file_bytes && i < REQUESTS_MAX; i++) {
		union asked q;

		memset(&q, 0, sizeof(q));
		q.map.fm_start = next;
		q.map.fm_length = out->file_bytes - next;
		q.map.fm_flags = sync ? FIEMAP_FLAG_SYNC : 0;
		q.map.fm_extent_count = ASKED;
		if (ioctl(fd, FS_IOC_FIEMAP, &q) != 0)
			return errno;
		last = q.map.fm_mapped_extents == 0;
		for (uint32_t k = 0; k < q.map.fm_mapped_extents && k < ASKED; k++) {
			const struct fiemap_extent *x = &q.map.fm_extents[k];

			add_extent(out, st->st_dev, x, &from);
			next = x->fe_logical + x->fe_length;
			last = last || x->fe_flags & FIEMAP_EXTENT_LAST;
		}
	}
	out->hole_bytes += out->file_bytes - from;
	return 0;
}

int extents_look(const char *path, struct file_extents *out, struct err *e)
{
	struct stat st;
	int fd, code = 0;

	*out = (struct file_extents){0};
	fd = posix_open_fd(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return err_sys(e, errno, "cannot open '%s' to query its extents", path);
	if (fstat(fd, &st) != 0) {
		code = errno;
	} else if ((code = posix_settle(fd, O_RDONLY, st.st_mode, path, e)) < 0) {
		close(fd);
		return code;
	} else {
		code = read_extents(fd, &st, false, out);
	}
	/* data in memory may have its blocks later, and may be what makes them written */
	if (code == 0 && out->hole_bytes)
		code = read_extents(fd, &st, true, out);
	close(fd);
	if (code == ENOTTY || code == EINVAL || code == ENOSYS || code == EBADR)
		code = EOPNOTSUPP;
	return code ? err_sys(e, code, "cannot query the extents of '%s'", path) : 0;
}
