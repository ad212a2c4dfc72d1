/* Open files of a flight. */
#include "loader/flight_files.h"

#define NONE UINT64_MAX

void flight_files_lay_out(struct carver *c, struct flight_files *f, const struct store *s,
			  unsigned count)
{
	unsigned char *blobs;
	size_t each = (store_blob_bytes(s) + 63) & ~(size_t)63;

	f->count = count;
	f->number = carve(c, count * sizeof(*f->number));
	f->file = carve(c, count * sizeof(*f->file));
	blobs = carve(c, count * each);
	for (unsigned i = 0; f->file && i < count; i++) {
		f->number[i] = NONE;
		f->file[i].blob = (struct blob *)(blobs + i * each);
		f->file[i].users = 0;
	}
}

static int close_place(struct flight_files *f, unsigned i, struct err *e)
{
	f->number[i] = NONE;
	return io_close(f->io, f->file[i].blob, e);
}

static unsigned find(const struct flight_files *f, uint64_t number)
{
	if (f->number[f->last] == number)
		return f->last;
	for (unsigned i = 0; i < f->count; i++)
		if (f->number[i] == number)
			return i;
	return f->count;
}

/* A place without a file, or the one unused for longest. */
static unsigned free_place(const struct flight_files *f)
{
	unsigned best = f->count;

	for (unsigned i = 0; i < f->count; i++) {
		if (f->number[i] == NONE)
			return i;
		if (f->file[i].users == 0 &&
		    (best == f->count || f->file[i].serial < f->file[best].serial))
			best = i;
	}
	return best;
}

static int open_file(struct flight_files *f, uint64_t number, unsigned *out, struct err *e)
{
	const struct loader_config *c = f->config;
	unsigned i = free_place(f);
	struct flight_file *file = &f->file[i];
	int rc = 0;

	if (f->number[i] != NONE)
		rc = close_place(f, i, e);
	if (rc == 0)
		rc = dataset_path(c->dataset, c->kind, number, f->path, sizeof(f->path), e);
	if (f->io->trace)
		f->io->trace->file = number;
	if (rc == 0)
		rc = io_open(f->io, f->path, STORE_READ, file->blob, e);
	if (rc < 0)
		return rc;
	f->number[i] = number;
	file->bytes = EXTENT_TO_END;
	file->users = 0;
	dataset_file_spec(c->dataset, c->kind, number, &file->spec);
	*out = i;
	return 0;
}

int flight_file_get(struct flight_files *f, uint64_t number, struct flight_file **out,
		    struct err *e)
{
	unsigned i = find(f, number);

	if (i == f->count) {
		int rc = open_file(f, number, &i, e);

		if (rc < 0)
			return rc;
	}
	f->last = i;
	f->file[i].users++;
	f->file[i].serial = ++f->serial;
	*out = &f->file[i];
	return 0;
}

int flight_file_put(struct flight_files *f, struct flight_file *file, struct err *e)
{
	if (--file->users > 0 || f->config->workload->reader.read_type == READ_MEMORY)
		return 0;
	return close_place(f, (unsigned)(file - f->file), e);
}

int flight_file_bytes(struct flight_files *f, struct flight_file *file, uint64_t *out,
		      struct err *e)
{
	struct store_stat st;

	if (file->bytes == EXTENT_TO_END) {
		int rc = io_stat_blob(f->io, file->blob, &st, e);

		if (rc < 0)
			return rc;
		file->bytes = st.bytes;
	}
	*out = file->bytes;
	return 0;
}

int flight_files_close(struct flight_files *f, struct err *e)
{
	int rc = 0;

	for (unsigned i = 0; i < f->count; i++) {
		int closed = f->number[i] == NONE ? 0 : close_place(f, i, rc == 0 ? e : NULL);

		rc = rc == 0 ? closed : rc;
	}
	return rc;
}
