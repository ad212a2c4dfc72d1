/* Which reader a log is for. */
#include "jobtrace/trace_reader.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "base/buf.h"
#include "base/file_in.h"

/* The beginning of `n` bytes that may be gzip; what is unpacked goes to `out`. */
static size_t unpacked(const unsigned char *in, size_t n, unsigned char *out, size_t room)
{
	z_stream z = {0};
	size_t got;

	if (n < 2 || in[0] != 0x1f || in[1] != 0x8b) {
		memcpy(out, in, n < room ? n : room);
		return n < room ? n : room;
	}
	if (inflateInit2(&z, 15 + 16) != Z_OK)
		return 0;
	z.next_in = (unsigned char *)(uintptr_t)in;
	z.avail_in = (uInt)n;
	z.next_out = out;
	z.avail_out = (uInt)room;
	(void)inflate(&z, Z_SYNC_FLUSH);
	got = room - z.avail_out;
	inflateEnd(&z);
	return got;
}

static const struct trace_reader *reader_of(const char *path, struct err *e)
{
	unsigned char raw[TRACE_HEAD], head[TRACE_HEAD];
	struct stat st;
	bool folder = stat(path, &st) == 0 && S_ISDIR(st.st_mode);
	ssize_t got = 0;

	if (!folder) {
		int fd = file_open(path, NULL, e);

		if (fd < 0)
			return NULL;
		got = pread(fd, raw, sizeof(raw), 0);
		close(fd);
		if (got < 0) {
			err_sys(e, errno, "%s: cannot be read", path);
			return NULL;
		}
	}
	got = (ssize_t)unpacked(raw, (size_t)got, head, sizeof(head));
	for (size_t i = 0; trace_reader_table[i]; i++)
		if (trace_reader_table[i]->recognize(path, folder, head, (size_t)got))
			return trace_reader_table[i];
	{
		struct buf known = {0};

		for (size_t i = 0; trace_reader_table[i]; i++)
			buf_printf(&known, "%s%s", i ? ", " : "", trace_reader_table[i]->people);
		err_set(e, ERR_DATA, "%s: no log of a job that is known here (%s)", path,
			known.len ? known.data : "none");
		buf_release(&known);
	}
	return NULL;
}

int job_read(struct job *job, const char *const *paths, size_t n, struct err *e)
{
	const struct trace_reader *reader = NULL;
	int rc;

	for (size_t i = 0; i < n; i++) {
		const struct trace_reader *r = reader_of(paths[i], e);

		if (!r)
			return e->code;
		if (reader && r != reader)
			return err_set(e, ERR_USAGE,
				       "%s is a log of another kind (%s) than %s (%s): the logs of "
				       "one job are of one kind",
				       paths[i], r->people, paths[0], reader->people);
		reader = r;
	}
	rc = reader ? reader->read(job, paths, n, e) : err_set(e, ERR_USAGE, "no log was named");
	return rc < 0 ? rc : job_finish(job, e);
}
