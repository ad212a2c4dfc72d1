/* Batches through shared memory. */
#include "loader/handover.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/str.h"

#define SHARED_FOLDER "/dev/shm"
#define PAGE_BYTES 4096u

uint64_t handover_bytes(const struct loader_config *c, struct err *e)
{
	const struct workload *w = c->workload;
	const struct i64_list *dims = &w->reader.transformed_record_dims;
	uint64_t sample = c->dataset->max_sample_bytes, bytes;
	bool fits = true;

	if (dims->n) {
		const struct elem_type *elem = elem_find(w->reader.transformed_record_element_type);

		sample = elem ? elem->bytes : 1;
		for (size_t i = 0; i < dims->n; i++)
			fits = !__builtin_mul_overflow(sample, (uint64_t)dims->v[i], &sample) &&
			       fits;
	} else if (w->dataset.record_length_bytes_resize >= 1) {
		sample = (uint64_t)w->dataset.record_length_bytes_resize;
	}
	if (!fits || __builtin_mul_overflow(sample, c->batch_size, &bytes) ||
	    bytes > INT64_MAX / 4) {
		err_set(e, -ENOMEM,
			"a batch of %llu samples exceeds the memory of any machine; "
			"reader.transport and reader.pin_thread copy whole batches",
			(unsigned long long)c->batch_size);
		return 0;
	}
	return bytes ? bytes : 1;
}

static int check_space(uint64_t bytes, uint64_t parcels, struct err *e)
{
	char need[32], have[32];
	struct statvfs st;
	uint64_t total;
	double space;

	if (statvfs(SHARED_FOLDER, &st) < 0)
		return err_sys(e, errno,
			       "reader.transport shared_memory needs the file system "
			       "'" SHARED_FOLDER "'");
	space = (double)st.f_bavail * (double)st.f_frsize;
	if (!__builtin_mul_overflow(bytes, parcels, &total) && (double)total <= space)
		return 0;
	return err_set(e, -ENOSPC,
		       "reader.transport shared_memory needs up to %s in '" SHARED_FOLDER
		       "' for %llu batches and there are %s: mount it larger, or lower "
		       "reader.batch_size, reader.prefetch_size or reader.read_threads",
		       str_bytes((double)bytes * (double)parcels, need, sizeof(need)),
		       (unsigned long long)parcels, str_bytes(space, have, sizeof(have)));
}

int handover_init(struct handover *h, const struct loader_config *c, uint64_t parcels, bool shared,
		  struct err *e)
{
	int rc = 0;

	*h = (struct handover){.bytes = handover_bytes(c, e), .rank = c->rank};
	if (h->bytes == 0)
		return -ENOMEM;
	if (shared)
		rc = check_space(h->bytes, parcels, e);
	if (rc < 0)
		return rc;
	h->content = buffer_alloc(h->bytes, "the content of handed over batches", e);
	return h->content ? 0 : -ENOMEM;
}

void handover_release(struct handover *h)
{
	buffer_free(h->content, h->bytes);
	*h = (struct handover){0};
}

/* A descriptor of an object that has no name any more. */
static int shared_object(uint32_t rank, struct err *e)
{
	static _Atomic uint64_t counter;
	char name[64];
	int fd;

	snprintf(name, sizeof(name), "/stoker_%ld_%u_%llu", (long)getpid(), rank,
		 (unsigned long long)atomic_fetch_add_explicit(&counter, 1, memory_order_relaxed));
	fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_sys(e, errno, "cannot create the shared memory object '%s'", name);
	shm_unlink(name);
	return fd;
}

int handover_pack(const struct handover *h, struct parcel *p, struct err *e)
{
	int fd = shared_object(h->rank, e), rc;
	void *at;

	if (fd < 0)
		return fd;
	rc = ftruncate(fd, (off_t)h->bytes) < 0 ? errno : 0;
	/* a page that cannot be had would be a signal later */
	while (rc == 0 && (rc = posix_fallocate(fd, 0, (off_t)h->bytes)) == EINTR)
		rc = 0;
	if (rc != 0) {
		close(fd);
		return err_sys(e, rc, "cannot allocate %llu bytes of shared memory for a batch",
			       (unsigned long long)h->bytes);
	}
	at = mmap(NULL, h->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED) {
		rc = errno;
		close(fd);
		return err_sys(e, rc, "cannot map the shared memory of a batch");
	}
	memcpy(at, h->content, h->bytes);
	munmap(at, h->bytes);
	*p = (struct parcel){.packed = true, .fd = fd};
	return 0;
}

int handover_unpack(const struct handover *h, struct parcel *p, struct err *e)
{
	volatile unsigned char *at;
	int rc;

	if (!p->packed || p->map)
		return 0;
	p->map = mmap(NULL, h->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, p->fd, 0);
	rc = errno;
	if (p->map == MAP_FAILED) {
		p->map = NULL;
		return err_sys(e, rc, "cannot map the shared memory of a batch");
	}
	close(p->fd);
	p->fd = -1;
	at = p->map;
	for (uint64_t i = 0; i < h->bytes; i += PAGE_BYTES)
		(void)at[i];
	return 0;
}

void handover_drop(const struct handover *h, struct parcel *p)
{
	if (p->map)
		munmap(p->map, h->bytes);
	else if (p->packed)
		close(p->fd);
	*p = (struct parcel){0};
}
