/* Many requests in flight from one thread: calls of the client's, watched by an epoll. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "store/s3_store.h"

#define EVENTS 64
#define TICK_MS 100    /* how often time limits are looked at */
#define SLOTS_MAX 1024 /* requests for whole objects at once, at most */
#define SINK_BYTES (256u << 10)

struct object;

struct slot {
	struct s3_call *call;
	struct store_request *request; /* NULL: free */
	struct object *object;         /* that it is a request for; NULL: the request is one */
};

/* A whole object that is being read. */
struct object {
	struct store_request *request; /* NULL: free */
	bool looking;                  /* a HEAD comes first */
	uint64_t next, end;            /* of the next range; end: UINT64_MAX: not known */
	uint64_t got;
	unsigned flying;
	int failed;
	bool waits; /* for free slots */
	struct object *later;
};

struct s3_queue {
	struct store_queue base;
	struct s3_store *store;
	int epoll;
	unsigned slots, waiting; /* calls that pause before they are sent again */
	int64_t looked_ns;
	struct store_request *done, **last;
	unsigned *free_slot, frees;
	/* whole objects: those in flight, and those of them that wait for free slots */
	struct object *object;
	unsigned objects, processors;
	struct object *hungry, **last_hungry;
	void *sink;
	struct slot slot[];
};

static struct s3_queue *of(struct store_queue *q)
{
	return (struct s3_queue *)q;
}

static unsigned processors(void)
{
	long n = sysconf(_SC_NPROCESSORS_ONLN);

	return n > 0 ? (unsigned)n : 1;
}

/* Requests that are under way at once at most. */
static unsigned slots_of(const struct store *s, unsigned depth, bool objects)
{
	const struct s3_profile *p = ((const struct s3_store *)s)->profile;
	unsigned ranges = objects ? s3_profile_most_ranges(p, processors()) : 1;

	return depth * ranges > SLOTS_MAX ? (depth > SLOTS_MAX ? depth : SLOTS_MAX)
					  : depth * ranges;
}

static uint64_t queue_bytes(const struct store *s, unsigned depth, bool objects)
{
	uint64_t own = sizeof(struct s3_queue);

	if (objects)
		own += SINK_BYTES + depth * sizeof(struct object);
	depth = slots_of(s, depth, objects);
	return own + depth * (sizeof(struct slot) + sizeof(unsigned) + sizeof(struct s3_call) +
			      sizeof(struct http_connection) + 8192u);
}

static uint32_t queue_align(const struct store *s)
{
	(void)s;
	return 1;
}

static void queue_destroy_memory(struct s3_queue *q)
{
	free(q->free_slot);
	free(q->object);
	free(q->sink);
	free(q);
}

static void queue_destroy(struct store_queue *base)
{
	struct s3_queue *q = of(base);

	for (unsigned i = 0; i < q->slots; i++) {
		struct s3_call *call = q->slot[i].call;

		for (unsigned k = 0; call && k < S3_ENDPOINTS_MAX; k++)
			if (call->kept[k]) {
				/* the epoll goes, what it watches stays */
				call->kept[k]->watched = -1;
			}
		if (call)
			s3_call_give(call);
	}
	close(q->epoll);
	queue_destroy_memory(q);
}

static int no_descriptor(bool objects, struct err *e)
{
	struct rlimit l = {0};

	getrlimit(RLIMIT_NOFILE, &l);
	return err_set(
		e, -EMFILE,
		"too many requests in flight: each has a connection, which is a descriptor, and "
		"this process may have %llu of those: lower %s, have fewer accelerators in each "
		"process, or raise the limit (ulimit -n)",
		(unsigned long long)l.rlim_cur,
		objects ? "storage.s3.prefetch_window or reader.read_threads"
			: "reader.queue_depth");
}

/* While time is measured no connection is to be opened, but for those that were lost. What else
 * goes wrong the requests will say. */
static int connect_all(struct s3_queue *q, struct err *e)
{
	struct err why = {0};
	int rc = 1;

	/* of objects one each: how many ranges they are split into is not known yet */
	for (unsigned i = 0; i < (q->objects ? q->objects : q->slots) && rc == 1; i++)
		rc = s3_call_connect(q->slot[i].call, &why);
	return rc == -EMFILE || rc == -ENFILE ? no_descriptor(q->objects > 0, e) : 0;
}

static int queue_create(struct store_queue **out, struct store *s,
			const struct store_queue_config *config, struct err *e)
{
	unsigned slots = slots_of(s, config->depth, config->objects);
	struct s3_queue *q =
		try_calloc(1, sizeof(*q) + slots * sizeof(struct slot), "a queue of requests", e);

	if (!q)
		return -ENOMEM;
	/* a connection for each */
	file_allow_more();
	q->store = s3_of(s);
	q->last = &q->done;
	q->last_hungry = &q->hungry;
	q->slots = slots;
	q->processors = processors();
	q->free_slot = xcalloc(slots, sizeof(q->free_slot[0]));
	if (config->objects) {
		q->objects = config->depth;
		q->object = xcalloc(config->depth, sizeof(q->object[0]));
		q->sink = xcalloc(1, SINK_BYTES);
	}
	q->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (q->epoll < 0) {
		int code = errno;

		queue_destroy_memory(q);
		if (code == EMFILE)
			return no_descriptor(config->objects, e);
		return err_sys(e, code, "cannot watch the connections of a queue");
	}
	for (unsigned i = 0; i < slots; i++) {
		q->slot[i].call = s3_call_take(q->store->client);
		q->slot[i].call->owner = &q->slot[i];
		q->free_slot[q->frees++] = slots - 1 - i;
	}
	if (connect_all(q, e) < 0) {
		queue_destroy(&q->base);
		return -EMFILE;
	}
	*out = &q->base;
	return 0;
}

static void put_done(struct s3_queue *q, struct store_request *r, ssize_t result)
{
	r->result = result;
	r->done_ns = clock_now_ns();
	r->next = NULL;
	*q->last = r;
	q->last = &r->next;
}

static void watch(struct s3_queue *q, struct http_connection *c)
{
	struct epoll_event ev = {.data.ptr = c};
	short wanted = http_events(c);

	if (c->watched == c->fd && c->watched_for == wanted)
		return;
	ev.events = (wanted & POLLIN ? EPOLLIN : 0u) | (wanted & POLLOUT ? EPOLLOUT : 0u);
	/* a connection that was in another queue's epoll may be in this one, too */
	if (epoll_ctl(q->epoll, EPOLL_CTL_MOD, c->fd, &ev) != 0)
		epoll_ctl(q->epoll, EPOLL_CTL_ADD, c->fd, &ev);
	c->watched = c->fd;
	c->watched_for = wanted;
}

static void step(struct s3_queue *q, struct slot *s);

/* ---- whole objects ---- */

static void take_slot(struct s3_queue *q, struct slot **s, struct store_request *r,
		      struct object *o)
{
	*s = &q->slot[q->free_slot[--q->frees]];
	(*s)->request = r;
	(*s)->object = o;
}

static bool is_hungry(const struct s3_queue *q, const struct object *o)
{
	const struct s3_profile *p = q->store->profile;

	if (o->failed || o->next >= o->end)
		return false;
	/* the answer to come tells the size */
	if (o->end == UINT64_MAX)
		return o->flying == 0;
	return o->flying < s3_profile_split(p, o->end, q->processors).ranges;
}

/* The next request of an object's. */
static void ask_for(struct s3_queue *q, struct object *o)
{
	const struct s3_profile *p = q->store->profile;
	struct s3_blob *b = (struct s3_blob *)o->request->blob;
	struct slot *s;

	take_slot(q, &s, o->request, o);
	o->flying++;
	if (o->looking) {
		s->call->kind = SERVER_HEAD;
		s->call->path = b->path;
		s->call->query = s->call->if_match = NULL;
		s->call->into = NULL;
		s->call->from = s->call->n = s->call->sink_n = 0;
		s->call->plain = false;
	} else {
		struct s3_split how = s3_profile_split(p, o->end, q->processors);
		uint64_t n = o->end - o->next < how.part ? o->end - o->next : how.part;

		s3_prepare_get(s->call, b, q->sink, n == UINT64_MAX ? 0 : (size_t)n, o->next);
		s->call->sink_n = SINK_BYTES;
		s->call->if_match = p->if_match ? b->etag : NULL;
		s->call->plain = p->plain && o->next == 0 && n == o->end;
		o->next += n;
	}
	s3_call_begin(s->call);
	step(q, s);
}

static void finish(struct s3_queue *q, struct object *o)
{
	put_done(q, o->request, o->failed ? o->failed : (ssize_t)o->got);
	o->request = NULL;
}

/* Those that came first are served first. */
static void feed(struct s3_queue *q)
{
	while (q->hungry && q->frees) {
		struct object *o = q->hungry;

		while (q->frees && o->request && is_hungry(q, o))
			ask_for(q, o);
		if (o->request && is_hungry(q, o))
			break;
		o->waits = false;
		q->hungry = o->later;
		if (!q->hungry)
			q->last_hungry = &q->hungry;
		/* one that an answer ended, or made smaller, while it waited */
		if (o->request && o->flying == 0)
			finish(q, o);
	}
}

static void wait_to_be_fed(struct s3_queue *q, struct object *o)
{
	if (o->waits)
		return;
	o->waits = true;
	o->later = NULL;
	*q->last_hungry = o;
	q->last_hungry = &o->later;
}

static void object_answered(struct s3_queue *q, struct object *o, struct s3_call *call)
{
	struct store_request *r = o->request;
	struct s3_blob *b = (struct s3_blob *)r->blob;

	o->flying--;
	/* an empty one, whose first bytes were asked for */
	if (call->rc == -ERANGE && call->from == 0 && o->end == UINT64_MAX) {
		o->end = 0;
	} else if (call->rc < 0 && !o->failed) {
		o->failed = call->rc;
		r->err = call->err;
	} else if (call->rc == 0) {
		o->got += call->got;
		if (call->length != UINT64_MAX) {
			atomic_store_explicit(&b->size, call->length, memory_order_release);
			o->end = o->looking || call->length < o->end ? call->length : o->end;
		}
		if (!*b->etag)
			memcpy(b->etag, call->etag, S3_ETAG_MAX);
	}
	o->looking = false;
	if (is_hungry(q, o)) {
		wait_to_be_fed(q, o);
	} else if (o->flying == 0 && !o->waits) {
		finish(q, o);
	}
}

static void begin_object(struct s3_queue *q, struct store_request *r)
{
	const struct s3_profile *p = q->store->profile;
	struct object *o = q->object;

	while (o->request || o->waits)
		o++;
	*o = (struct object){.request = r, .end = UINT64_MAX};
	o->looking =
		p->head == S3_HEAD_ALWAYS || (p->head == S3_HEAD_LARGE && r->n >= p->head_from);
	wait_to_be_fed(q, o);
	feed(q);
}

/* After a step: what the call waits for, or how it ended. */
static void look(struct s3_queue *q, struct slot *s)
{
	struct object *o = s->object;
	struct store_request *r = s->request;
	struct s3_call *call = s->call;

	if (call->state == S3_CALL_RUNNING) {
		watch(q, call->conn);
		return;
	}
	if (call->state == S3_CALL_WAITING)
		return;
	s->request = NULL;
	s->object = NULL;
	q->free_slot[q->frees++] = (unsigned)(s - q->slot);
	if (o)
		object_answered(q, o, call);
	else
		put_done(q, r, s3_take_get(call, (struct s3_blob *)r->blob, &r->err));
}

static void step(struct s3_queue *q, struct slot *s)
{
	bool waited = s->call->state == S3_CALL_WAITING;

	s3_call_step(s->call);
	q->waiting += (s->call->state == S3_CALL_WAITING) - waited;
	look(q, s);
}

static int queue_submit(struct store_queue *base, struct store_request *r, struct err *e)
{
	struct s3_queue *q = of(base);
	struct s3_blob *b = (struct s3_blob *)r->blob;
	struct slot *s;
	uint64_t n;

	(void)e;
	if (!r->buffer && q->object) {
		begin_object(q, r);
		return 0;
	}
	if (r->write || b->writer) {
		put_done(q, r,
			 r->write ? store_pwrite(r->blob, r->buffer, r->n, r->offset, &r->err)
				  : store_pread(r->blob, r->buffer, r->n, r->offset, &r->err));
		return 0;
	}
	n = s3_clip(b, r->n, r->offset);
	if (n == 0) {
		put_done(q, r, 0);
		return 0;
	}
	take_slot(q, &s, r, NULL);
	s3_prepare_get(s->call, b, r->buffer, (size_t)n, r->offset);
	s3_call_begin(s->call);
	step(q, s);
	return 0;
}

static int queue_flush(struct store_queue *q, struct err *e)
{
	(void)q;
	(void)e;
	return 0;
}

/* Time limits, and calls whose pause is over. */
static void look_at_times(struct s3_queue *q)
{
	int64_t now = clock_now_ns();

	if (now - q->looked_ns < TICK_MS * 1000000LL && !q->waiting)
		return;
	q->looked_ns = now;
	for (unsigned i = 0; i < q->slots; i++) {
		struct slot *s = &q->slot[i];

		if (!s->request)
			continue;
		if (s->call->state == S3_CALL_WAITING ? now >= s->call->not_before_ns
						      : now >= s->call->conn->deadline_ns)
			step(q, s);
	}
}

static int queue_reap(struct store_queue *base, struct store_request **out, unsigned max,
		      struct err *e)
{
	struct s3_queue *q = of(base);
	struct epoll_event ev[EVENTS];
	/* whoever reads whole objects looks at its stop flag in between */
	int64_t until = clock_now_ns() + TICK_MS * 1000000LL;
	unsigned got = 0;

	while (!q->done) {
		int n = epoll_wait(q->epoll, ev, EVENTS, q->waiting ? 5 : TICK_MS);

		if (n < 0 && errno != EINTR)
			return err_sys(e, errno, "cannot wait for the connections of a queue");
		for (int i = 0; i < n; i++) {
			struct http_connection *c = ev[i].data.ptr;
			struct s3_call *call = c->owner;
			struct slot *s = call->owner;

			/* an idle one that the server closed or wrote to */
			if (!s->request || call->conn != c || call->state != S3_CALL_RUNNING)
				http_close(c);
			else
				step(q, s);
		}
		look_at_times(q);
		if (q->object) {
			feed(q);
			if (!q->done && (n == 0 || clock_now_ns() >= until))
				return 0;
		}
	}
	while (got < max && q->done) {
		out[got++] = q->done;
		q->done = q->done->next;
		if (!q->done)
			q->last = &q->done;
	}
	return (int)got;
}

const struct store_queue_ops s3_queue_ops = {
	.bytes = queue_bytes,
	.align = queue_align,
	.create = queue_create,
	.destroy = queue_destroy,
	.submit = queue_submit,
	.flush = queue_flush,
	.reap = queue_reap,
};
