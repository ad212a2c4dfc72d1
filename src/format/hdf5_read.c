#include "format/hdf5.h"
size_t hdf5_reader_bytes(const struct reader_config *c, const struct store *s){(void)c;(void)s;return 0;}
int hdf5_reader_init(void *memory, const struct reader_config *c, const struct io *io,
		     struct reader **out, struct err *e){(void)memory;(void)c;(void)io;(void)out;(void)e;return -1;}
int hdf5_read(struct reader *r, const char *path, const struct file_spec *f, uint64_t index,
	      struct sample *out, struct err *e){(void)r;(void)path;(void)f;(void)index;(void)out;(void)e;return -1;}
int hdf5_reader_close(struct reader *r, struct err *e){(void)r;(void)e;return 0;}
