#pragma once
/* A store with one file, readers over it and every mode of reading, for the contract of formats. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../tools/test_content.h"
#include "base/alloc.h"
#include "conf/node.h"
#include "format/format.h"

static const struct format_ops *format; /* of the group that runs */
static const char *base;

static struct {
	struct store *store;
	struct io io;
	struct io_stat stat;
	struct blob *blob;
	void *scratch;
	void *lent; /* memory of one reader at a time: most tests make thousands, one after another
		     */
	size_t lent_bytes;
	bool is_lent;
	char dir[64], path[96];
	struct err e;
} t;

static inline void use_store(const char *expression, const char *yaml)
{
	struct node *n = yaml ? yaml_parse(yaml, strlen(yaml), "test", &t.e) : NULL;

	free(t.blob);
	store_destroy(t.store);
	t.store = NULL;
	if (store_create(&t.store, expression, n, &t.e) < 0)
		fail_msg("%s", t.e.text);
	node_free(n);
	t.io = (struct io){.store = t.store, .stat = &t.stat};
	t.blob = store_blob_new(t.store, &t.e);
}

static inline int set_up(void **state)
{
	(void)state;
	memset(&t, 0, sizeof(t));
	if (strcmp(base, "posix") == 0) {
		strcpy(t.dir, "/tmp/stoker-format-XXXXXX");
		assert_non_null(mkdtemp(t.dir));
		snprintf(t.path, sizeof(t.path), "%s/f", t.dir);
	} else {
		strcpy(t.path, "f");
	}
	t.scratch = buffer_alloc(FORMAT_WRITE_SCRATCH, "scratch", &t.e);
	use_store(base, NULL);
	return 0;
}

/* Path of a companion of the file. */
static inline const char *companion(uint32_t which)
{
	static char path[160];

	assert_int_equal(format->sidecar_path(t.path, which, path, sizeof(path)), 0);
	return path;
}

static inline int tear_down(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < format->sidecars; i++)
		if (t.dir[0])
			unlink(companion(i));
	if (t.dir[0]) {
		unlink(t.path);
		rmdir(t.dir);
	}
	free(t.blob);
	store_destroy(t.store);
	buffer_free(t.scratch, FORMAT_WRITE_SCRATCH);
	buffer_free(t.lent, t.lent_bytes);
	return 0;
}

static inline struct file_spec spec(const char *elem, uint64_t samples, uint32_t ndims, uint64_t a,
				    uint64_t b, uint64_t c)
{
	return (struct file_spec){.elem = elem_find(elem),
				  .ndims = ndims,
				  .dims = {a, b, c},
				  .samples = samples,
				  .file_index = 3,
				  .compression = "none"};
}

#define SMALL spec("uint8", 2, 2, 5, 7, 0)

/* Whether a read asks for its sample alone, and not for the whole file. */
static inline bool by_sample(void)
{
	return strcmp(format->is.name, "hdf5") == 0 ||
	       strcmp(format->is.name, "indexed_binary") == 0 || format->is.flags & FORMAT_MAPS;
}

static inline void write_companions(const struct file_spec *f)
{
	/* faults are meant for the file itself */
	struct store *base_store = t.store;

	while (base_store->lower)
		base_store = base_store->lower;
	struct io io = {.store = base_store};

	for (uint32_t i = 0; i < format->sidecars; i++)
		if (io_open(&io, companion(i), STORE_WRITE | STORE_CREATE, t.blob, &t.e) < 0 ||
		    format_sidecar_write(format, &io, t.blob, companion(i), f, i, t.scratch,
					 FORMAT_WRITE_SCRATCH, &t.e) < 0 ||
		    io_close(&io, t.blob, &t.e) < 0)
			fail_msg("%s", t.e.text);
}

static inline void write_file(const struct file_spec *f)
{
	struct content_source c = test_content(f->elem);

	if (io_open(&t.io, t.path, STORE_WRITE | STORE_CREATE, t.blob, &t.e) < 0 ||
	    format_write(format, &t.io, t.blob, t.path, f, &c, t.scratch, FORMAT_WRITE_SCRATCH,
			 &t.e) < 0 ||
	    io_close(&t.io, t.blob, &t.e) < 0)
		fail_msg("%s", t.e.text);
	if (by_sample())
		write_companions(f);
}

static inline void put_bytes(const void *bytes, size_t n)
{
	if (io_open(&t.io, t.path, STORE_WRITE | STORE_CREATE, t.blob, &t.e) < 0 ||
	    (n && io_pwrite(&t.io, t.blob, bytes, n, 0, &t.e) < 0) ||
	    io_close(&t.io, t.blob, &t.e) < 0)
		fail_msg("%s", t.e.text);
}

static inline unsigned char *get_bytes(size_t *n)
{
	struct store_stat st;
	unsigned char *p;

	if (io_open(&t.io, t.path, STORE_READ, t.blob, &t.e) < 0 ||
	    io_stat_blob(&t.io, t.blob, &st, &t.e) < 0)
		fail_msg("%s", t.e.text);
	p = xmalloc(st.bytes + 1);
	assert_int_equal(io_pread(&t.io, IO_DATA, t.blob, p, st.bytes, 0, &t.e), st.bytes);
	io_close(&t.io, t.blob, NULL);
	*n = st.bytes;
	return p;
}

static inline int verify(const struct file_spec *f)
{
	struct content_source c = test_content(f->elem);

	memset(&t.e, 0, sizeof(t.e));
	return format_verify(format, &t.io, t.path, f, &c, t.scratch, FORMAT_WRITE_SCRATCH, &t.e);
}

/* A reader and its memory. */
struct open_reader {
	struct reader *r;
	struct content_source content;
	struct reader_config c;
	size_t bytes;
	void *memory;
	bool lent;
};

#define GUARD 64

static inline struct reader_config config(const struct file_spec *f, enum read_access access,
					  enum read_decode decode)
{
	return (struct reader_config){.access = access,
				      .decode = decode,
				      .python = 311,
				      .block_bytes = 65536,
				      .max_sample_bytes = file_spec_sample_bytes(f),
				      .max_file_bytes = format->file_bytes(f),
				      .samples_per_file = f->samples,
				      .files = 4,
				      .example = f};
}

static inline void reader_open(struct open_reader *o, const struct file_spec *f,
			       const struct reader_config *c)
{
	o->content = test_content(f->elem);
	o->c = *c;
	o->c.content = &o->content;
	o->bytes = format->reader_bytes(&o->c, t.store);
	assert_true(o->bytes > 0);
	o->lent = !t.is_lent;
	if (o->lent && t.lent_bytes < o->bytes + GUARD) {
		buffer_free(t.lent, t.lent_bytes);
		t.lent_bytes = o->bytes + GUARD;
		t.lent = buffer_alloc(t.lent_bytes, "a reader", &t.e);
	}
	t.is_lent = true;
	o->memory = o->lent ? t.lent : buffer_alloc(o->bytes + GUARD, "a reader", &t.e);
	assert_non_null(o->memory);
	/* a reader relies on nothing it did not write, and writes nothing behind its memory */
	memset(o->memory, 0xa5, o->bytes + GUARD);
	if (format->reader_init(o->memory, &o->c, &t.io, &o->r, &t.e) < 0)
		fail_msg("%s", t.e.text);
}

static inline void reader_end(struct open_reader *o)
{
	const unsigned char *behind = (const unsigned char *)o->memory + o->bytes;

	assert_int_equal(format->reader_close(o->r, &t.e), 0);
	for (size_t i = 0; i < GUARD; i++)
		assert_int_equal(behind[i], 0xa5);
	if (o->lent)
		t.is_lent = false;
	else
		buffer_free(o->memory, o->bytes + GUARD);
}

/* One sample with a new reader. */
static inline int read_once(const struct file_spec *f, const struct reader_config *c,
			    uint64_t index)
{
	struct open_reader o;
	struct sample s;
	int rc;

	reader_open(&o, f, c);
	memset(&t.e, 0, sizeof(t.e));
	rc = format->read(o.r, t.path, f, index, &s, &t.e);
	reader_end(&o);
	return rc;
}

/* A file is one array that says its type and shape; read whole through a Python file object, unless
 * by_sample. */
static inline bool is_array(void)
{
	return strcmp(format->is.name, "npz") == 0 || strcmp(format->is.name, "npy") == 0 ||
	       strcmp(format->is.name, "hdf5") == 0;
}

/* The payload is written as numbers, so its bytes are not in the file. */
static inline bool is_text(void)
{
	return strcmp(format->is.name, "csv") == 0;
}

/* Bytes are stored as wider numbers, in pages; a read takes a group of rows. */
static inline bool is_table(void)
{
	return strcmp(format->is.name, "parquet") == 0;
}

/* The file goes on behind its samples with what no read of one has to see. */
static inline bool has_an_end(void)
{
	return strcmp(format->is.name, "webdataset") == 0 ||
	       strcmp(format->is.name, "arrow_stream") == 0;
}

/* A changed payload byte is found without knowing what it was. */
static inline bool has_checksum(void)
{
	return strcmp(format->is.name, "npz") == 0 || strcmp(format->is.name, "tfrecord") == 0;
}

/* 70 bytes of payload in one piece. */
static inline struct file_spec in_one_piece(void)
{
	return is_array() || format->is.flags & (FORMAT_NO_IO | FORMAT_IMAGE)
		       ? SMALL
		       : spec("uint8", 1, 2, 5, 14, 0);
}

static inline bool no_io(void)
{
	return format->is.flags & FORMAT_NO_IO;
}

/* One image, coded, is the whole file and each of its samples. */
static inline bool image(void)
{
	return format->is.flags & FORMAT_IMAGE;
}

/* Images have shapes of their own kind; what they cannot have is refused. */
static inline bool not_for_images(const struct file_spec *f)
{
	if (is_table() && file_spec_elements(f) == 0) {
		assert_int_equal(format_check(format, f, &t.e), ERR_USAGE);
		return true;
	}
	if (!image() || format_check(format, f, &t.e) == 0)
		return false;
	assert_true(f->ndims > 2 || f->elem != elem_find("uint8") || file_spec_elements(f) == 0);
	return true;
}

static inline uint64_t size_now(void)
{
	struct store_stat st;
	const struct io io = {.store = t.store};

	assert_int_equal(io_stat_path(&io, t.path, &st, &t.e), 0);
	return st.bytes;
}

/* Offset of the payload in a file that was written. */
static inline size_t payload_at(const struct file_spec *f, const unsigned char *file, size_t n)
{
	size_t bytes = (size_t)(file_spec_sample_bytes(f) * f->samples);
	unsigned char *want = xmalloc(bytes + 1), *found;

	test_fill(NULL, f->file_index, 0, want, bytes);
	found = memmem(file, n, want, bytes);
	free(want);
	assert_non_null(found);
	return (size_t)(found - file);
}

static const enum read_decode decodes[] = {DECODE_FULL, DECODE_VERIFY, DECODE_NONE};
static const enum read_access accesses[] = {ACCESS_FRAMEWORK, ACCESS_NATIVE};

/* Mapping needs a store that can. */
static inline bool cannot(enum read_access access)
{
	return access == ACCESS_FRAMEWORK && format->is.flags & FORMAT_MAPS && !t.store->ops->map;
}

#define FOR_MODES(access, decode)                                                                  \
	for (int ai_ = 0; ai_ < 2; ai_++)                                                          \
		for (int di_ = 0; di_ < 3; di_++)                                                  \
			for (enum read_access access = accesses[ai_], once_ = 0; once_ == 0;       \
			     once_++)                                                              \
				for (enum read_decode decode = decodes[di_],                       \
						      one_ = cannot(access);                       \
				     one_ == 0; one_++)

/* Steps through every format over memory and over files; `group` gets a name for the pair. False
 * after the last. */
static inline bool next_backend(size_t *i, char *group, size_t n)
{
	if (!format_table[*i / 2])
		return false;
	format = format_table[*i / 2];
	base = *i % 2 ? "posix" : "memory";
	snprintf(group, n, "%s over %s", format->is.name, base);
	++*i;
	return true;
}
