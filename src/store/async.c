/* The counted way to a queue of requests: what is the same for all stores. */
#include "store/async.h"

#include <errno.h>
#include <limits.h>

#include "base/clock.h"
#include "store/async_threads.h"

static const struct store_queue_ops *ops_of(const struct store *s)
{
	return s->ops->queue ? s->ops->queue : &store_queue_threads;
}

uint64_t store_queue_bytes(const struct store *s, unsigned depth)
{
	return ops_of(s)->bytes(s, depth);
}

uint32_t store_queue_align(const struct store *s)
{
	return ops_of(s)->align(s);
}

int store_queue_create(struct store_queue **out, const struct io *io,
		       const struct store_queue_config *config, struct err *e)
{
	const struct store_queue_ops *ops = ops_of(io->store);
	int rc;

	if (config->depth < 1 || config->depth > STORE_DEPTH_MAX)
		return err_set(e, ERR_USAGE, "a depth of %u requests is not between 1 and %u",
			       config->depth, STORE_DEPTH_MAX);
	rc = ops->create(out, io->store, config, e);
	if (rc < 0)
		return rc;
	(*out)->ops = ops;
	(*out)->io = io;
	(*out)->depth = config->depth;
	(*out)->in_flight = 0;
	return 0;
}

void store_queue_destroy(struct store_queue *q)
{
	if (q)
		q->ops->destroy(q);
}

static int check_request(const struct store_queue *q, const struct store_request *r, struct err *e)
{
	uint64_t align = q->ops->align(q->io->store), end;

	if (r->n > SSIZE_MAX || __builtin_add_overflow(r->offset, (uint64_t)r->n, &end) ||
	    end > INT64_MAX)
		return err_set(e, -EINVAL,
			       "cannot %s %zu bytes at offset %llu: no file reaches that far",
			       r->write ? "write" : "read", r->n, (unsigned long long)r->offset);
	if (((r->offset | r->n | (uintptr_t)r->buffer) & (align - 1)) != 0)
		return err_set(e, -EINVAL,
			       "a request of %zu bytes at offset %llu is not aligned: this store "
			       "wants multiples of %llu, of the memory's address too",
			       r->n, (unsigned long long)r->offset, (unsigned long long)align);
	return 0;
}

int store_queue_submit(struct store_queue *q, struct store_request *r, struct err *e)
{
	const struct io *io = q->io;
	int rc = check_request(q, r, e);

	if (rc < 0)
		return rc;
	if (q->in_flight == q->depth)
		return err_set(e, -EAGAIN, "%u requests are in flight already", q->depth);
	if (io->stop && atomic_load_explicit(&io->stop->set, memory_order_relaxed))
		return err_set(e, ERR_CANCELED, "the run was told to stop");
	r->result = 0;
	r->moved = 0;
	r->done_ns = 0;
	r->submitted_ns = io->stat || io->trace ? clock_now_ns() : 0;
	rc = q->ops->submit(q, r, e);
	if (rc == 0)
		q->in_flight++;
	return rc;
}

int store_queue_flush(struct store_queue *q, struct err *e)
{
	return q->in_flight ? q->ops->flush(q, e) : 0;
}

static void keep(struct span_ring *r, const struct store_request *q)
{
	span_put(r, &(struct span){.begin_ns = q->submitted_ns,
				   .end_ns = q->done_ns,
				   .sample = SPAN_NONE,
				   .file = q->blob->file,
				   .step = r->step,
				   .offset = q->offset,
				   .asked = q->n,
				   .moved = q->result > 0 ? (uint64_t)q->result : 0,
				   .kind = q->write ? SPAN_WRITE : SPAN_READ,
				   .flags = (uint8_t)(SPAN_IN_FLIGHT |
						      (q->result < 0 ? SPAN_FAILED : 0))});
}

static void count(struct io_stat *s, const struct store_request *q)
{
	io_stat_add(s, q->write ? IO_WRITE : IO_DATA, q->done_ns - q->submitted_ns, q->n,
		    q->result);
	if (!q->write && q->result > 0)
		read_log_add(&s->reads, q->submitted_ns, q->done_ns, (uint64_t)q->result);
}

int store_queue_reap(struct store_queue *q, struct store_request **out, unsigned max, struct err *e)
{
	int n;

	if (q->in_flight == 0 || max == 0)
		return 0;
	n = q->ops->reap(q, out, max, e);
	if (n < 0)
		return n;
	q->in_flight -= (unsigned)n;
	for (int i = 0; q->io->stat && i < n; i++)
		count(q->io->stat, out[i]);
	for (int i = 0; q->io->trace && i < n; i++)
		keep(q->io->trace, out[i]);
	return n;
}
