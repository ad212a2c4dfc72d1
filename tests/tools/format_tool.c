/* Lets test scripts write, read and verify single files, and drive the emulated Python file object.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "format/format.h"
#include "format/pyfile.h"
#include "test_content.h"

static struct err err;

static int fail(void)
{
	fprintf(stderr, "format_tool: %s\n", err.text);
	return 1;
}

static uint64_t number(const char *s)
{
	uint64_t v;

	if (!str_to_u64(s, &v)) {
		fprintf(stderr, "format_tool: '%s' is not a number\n", s);
		exit(2);
	}
	return v;
}

static struct io posix_io(void)
{
	struct io io = {0};

	if (store_create(&io.store, "posix", NULL, &err) < 0)
		exit(fail());
	return io;
}

/* "4x32x32" */
static uint32_t numbers(char *s, uint64_t *out, uint32_t room)
{
	uint32_t n = 0;

	for (char *part = strtok(s, "x"); part && n < room; part = strtok(NULL, "x"))
		out[n++] = number(part);
	return n;
}

/* KEY=VALUE behind the dimensions */
static void set_key(struct file_spec *f, char *arg)
{
	char *value = strchr(arg, '=') + 1;

	if (strncmp(arg, "compression=", 12) == 0)
		f->compression = value;
	else if (strncmp(arg, "level=", 6) == 0)
		f->compression_level = (uint32_t)number(value);
	else if (strncmp(arg, "datasets=", 9) == 0)
		f->datasets = (uint32_t)number(value);
	else if (strncmp(arg, "chunk=", 6) == 0)
		f->chunk_ndims = numbers(value, f->chunk, FORMAT_DIMS_MAX + 1);
	else if (strncmp(arg, "max=", 4) == 0)
		f->max_ndims = numbers(value, f->max_dims, FORMAT_DIMS_MAX);
	else
		exit(2);
}

/* PATH FILE_INDEX ELEM SAMPLES DIM... KEY=VALUE... */
static struct file_spec spec_of(int argc, char **argv)
{
	struct file_spec f = {.compression = "none", .compression_level = 4};

	for (; argc > 4 && strchr(argv[argc - 1], '='); argc--)
		set_key(&f, argv[argc - 1]);
	if (argc < 4 || argc > 4 + FORMAT_DIMS_MAX)
		exit(2);
	f.file_index = number(argv[1]);
	f.elem = elem_find(argv[2]);
	if (!f.elem)
		exit(2);
	f.samples = number(argv[3]);
	for (int i = 4; i < argc; i++)
		f.dims[f.ndims++] = number(argv[i]);
	return f;
}

/* Writes or verifies the companions of the file at `path`. */
static int do_companions(const struct format_ops *format, const struct io *io, struct blob *b,
			 const char *path, const struct file_spec *f, void *scratch, bool verify)
{
	char name[1200];
	int rc = 0;

	for (uint32_t i = 0; i < format->sidecars && rc == 0; i++) {
		if (format->sidecar_path(path, i, name, sizeof(name)) < 0)
			exit(2);
		if (verify) {
			rc = format_sidecar_verify(format, io, name, f, i, scratch,
						   FORMAT_WRITE_SCRATCH, &err);
			continue;
		}
		rc = io_open(io, name, STORE_WRITE | STORE_CREATE, b, &err);
		if (rc == 0)
			rc = format_sidecar_write(format, io, b, name, f, i, scratch,
						  FORMAT_WRITE_SCRATCH, &err);
		if (rc == 0)
			rc = io_close(io, b, &err);
	}
	return rc;
}

static int do_write(const struct format_ops *format, int argc, char **argv, bool verify)
{
	struct file_spec f = spec_of(argc, argv);
	struct content_source content = test_content(f.elem);
	struct io io = posix_io();
	struct blob *b = store_blob_new(io.store, &err);
	void *scratch = buffer_alloc(FORMAT_WRITE_SCRATCH, "scratch", &err);
	int rc = format_check(format, &f, &err);

	if (rc == 0 && verify) {
		rc = format_verify(format, &io, argv[0], &f, &content, scratch,
				   FORMAT_WRITE_SCRATCH, &err);
	} else if (rc == 0) {
		rc = io_open(&io, argv[0], STORE_WRITE | STORE_CREATE, b, &err);
		if (rc == 0)
			rc = format_write(format, &io, b, argv[0], &f, &content, scratch,
					  FORMAT_WRITE_SCRATCH, &err);
		if (rc == 0)
			rc = io_close(&io, b, &err);
	}
	if (rc == 0)
		rc = do_companions(format, &io, b, argv[0], &f, scratch, verify);
	buffer_free(scratch, FORMAT_WRITE_SCRATCH);
	free(b);
	store_destroy(io.store);
	return rc < 0 ? fail() : 0;
}

/* ACCESS DECODE PYTHON BUFFER INDEX then a spec */
static int do_read(const struct format_ops *format, int argc, char **argv)
{
	struct reader_config c = {0};
	struct file_spec f;
	struct content_source content;
	struct io io = posix_io();
	struct reader *r;
	struct sample s;
	size_t bytes;
	void *memory;
	int rc;

	if (argc < 5)
		return 2;
	f = spec_of(argc - 5, argv + 5);
	content = test_content(f.elem);
	c.access = strcmp(argv[0], "native") == 0 ? ACCESS_NATIVE : ACCESS_FRAMEWORK;
	c.decode = strcmp(argv[1], "full") == 0     ? DECODE_FULL
		   : strcmp(argv[1], "verify") == 0 ? DECODE_VERIFY
						    : DECODE_NONE;
	/* "311", or "311,once": as NumPy 2.3 */
	c.npz_once = strchr(argv[2], ',') != NULL;
	argv[2][strcspn(argv[2], ",")] = '\0';
	c.python = (uint32_t)number(argv[2]);
	c.buffer_bytes = (uint32_t)number(argv[3]);
	c.max_sample_bytes = file_spec_sample_bytes(&f);
	c.max_file_bytes = format->file_bytes(&f);
	c.samples_per_file = f.samples;
	c.files = f.file_index + 1;
	c.content = &content;
	c.example = &f;
	bytes = format->reader_bytes(&c, io.store);
	memory = buffer_alloc(bytes, "reader", &err);
	if (!memory)
		return fail();
	memset(memory, 0, bytes);
	rc = format->reader_init(memory, &c, &io, &r, &err);
	if (rc == 0)
		rc = format->read(r, argv[5], &f, number(argv[4]), &s, &err);
	if (rc == 0)
		rc = format->reader_close(r, &err);
	buffer_free(memory, bytes);
	store_destroy(io.store);
	if (rc == 0)
		printf("%llu\n", (unsigned long long)s.payload_bytes);
	return rc < 0 ? fail() : 0;
}

/* PATH PYTHON BUFFER then rN read, iN readinto, sN seek, eN seek from the end, a read all. Prints
 * what each returns: bytes and their sum, or the position. */
static int do_python(int argc, char **argv)
{
	struct io io = posix_io();
	struct blob *b = store_blob_new(io.store, &err);
	struct store_stat st;
	struct pybuffer p;
	size_t size, room;
	unsigned char *buffer, *out;

	if (argc < 3 || io_open(&io, argv[0], STORE_READ, b, &err) < 0 ||
	    io_stat_blob(&io, b, &st, &err) < 0)
		return fail();
	size = number(argv[2]) ? number(argv[2])
			       : pybuffer_size((uint32_t)number(argv[1]), st.block_bytes);
	room = (size_t)st.bytes * 2 + (1u << 20);
	buffer = xmalloc(size);
	out = xmalloc(room);
	pybuffer_start(&p, &io, b, (uint32_t)number(argv[1]), st.bytes, buffer, size);
	for (int i = 3; i < argc; i++) {
		uint64_t n = argv[i][1] ? number(argv[i] + 1) : 0, sum = 0;
		ssize_t got = 0;

		switch (argv[i][0]) {
		case 'r':
			got = pybuffer_read(&p, out, n, &err);
			break;
		case 'i':
			got = pybuffer_readinto(&p, out, n, &err);
			break;
		case 'a':
			got = pybuffer_read_all(&p, out, room, &err);
			break;
		case 's':
			pybuffer_seek(&p, n);
			break;
		case 'e':
			pybuffer_seek_end(&p, n);
			break;
		default:
			return 2;
		}
		if (got < 0)
			return fail();
		for (ssize_t k = 0; k < got; k++)
			sum = sum * 31 % 1000003 + out[k];
		printf("%lld %llu %llu\n", (long long)got, (unsigned long long)sum,
		       (unsigned long long)pybuffer_tell(&p));
	}
	io_close(&io, b, &err);
	free(out);
	free(buffer);
	free(b);
	store_destroy(io.store);
	return 0;
}

int main(int argc, char **argv)
{
	const struct format_ops *format;

	if (argc >= 3 && strcmp(argv[1], "python") == 0)
		return do_python(argc - 2, argv + 2);
	format = argc >= 4 ? format_find(argv[2]) : NULL;
	if (!format) {
		fprintf(stderr, "usage: format_tool write|verify|read FORMAT ...\n");
		return 2;
	}
	if (strcmp(argv[1], "write") == 0)
		return do_write(format, argc - 3, argv + 3, false);
	if (strcmp(argv[1], "verify") == 0)
		return do_write(format, argc - 3, argv + 3, true);
	return do_read(format, argc - 3, argv + 3);
}
