/* Which bytes of a pipe are one message follows from how they are read: four bytes, then as many
 * requests as the message takes. When it was written follows from its place in the stream. */
#include "jobtrace/account/messages.h"

#include <stdlib.h>

#include "base/alloc.h"

#define AT_ONCE_NS 1000000

enum { AT_LENGTH, AT_MESSAGE, IN_MESSAGE };

struct stream {
	uint64_t read, written;
	int64_t left;
	uint32_t last; /* message */
	uint8_t state;
	bool other; /* no such messages */
};

struct written {
	uint32_t pipe, thread;
	int64_t end_ns;
	uint64_t end;
};

struct writes {
	struct written *v;
	size_t n, room;
};

/* What a thread is at. */
struct taking {
	uint32_t message; /* last one whose taking may go on; JOB_NONE */
	int64_t wait_ns;  /* begin of a wait that was its last event; JOB_UNKNOWN */
	int64_t last_ns;  /* end of its last event */
};

static bool is_pipe(const struct job *job, uint32_t file)
{
	return file != JOB_NONE && job->file[file].kind == JOB_FILE_PIPE;
}

static void add_message(struct messages *m, const struct job_event *v, const struct stream *s,
			int64_t asked_ns)
{
	if (m->n == m->room) {
		m->room = m->room ? 2 * m->room : 256;
		m->v = xrealloc(m->v, m->room * sizeof(*m->v));
	}
	m->v[m->n++] = (struct message){
		.pipe = v->file,
		.thread = v->thread,
		.writer = JOB_NONE,
		.ready_ns = JOB_UNKNOWN,
		.asked_ns = asked_ns,
		.begin_ns = v->begin_ns,
		.taken_ns = v->end_ns,
		.position = s->read,
	};
}

static void on_read(struct messages *m, struct stream *s, struct taking *t,
		    const struct job_event *v)
{
	if (v->result <= 0 || s->other)
		return;
	if (s->state == AT_LENGTH) {
		if (v->result != 4 || (v->asked != JOB_UNKNOWN && v->asked != 4)) {
			s->other = true;
			return;
		}
		s->last = (uint32_t)m->n;
		t->message = s->last;
		add_message(m, v, s, t->wait_ns != JOB_UNKNOWN ? t->wait_ns : v->begin_ns);
		m->v[m->n - 1].waited = t->wait_ns != JOB_UNKNOWN;
		s->state = AT_MESSAGE;
	} else {
		if (s->state == AT_MESSAGE)
			s->left = v->asked == JOB_UNKNOWN ? v->result : v->asked;
		s->left -= v->result;
		s->state = s->left > 0 ? IN_MESSAGE : AT_LENGTH;
		m->v[s->last].taken_ns = v->end_ns;
	}
	s->read += (uint64_t)v->result;
}

static void on_write(struct writes *w, struct stream *s, const struct job_event *v)
{
	if (v->result <= 0)
		return;
	if (w->n == w->room) {
		w->room = w->room ? 2 * w->room : 256;
		w->v = xrealloc(w->v, w->room * sizeof(*w->v));
	}
	s->written += (uint64_t)v->result;
	w->v[w->n++] = (struct written){v->file, v->thread, v->end_ns, s->written};
}

static int by_pipe(const void *x, const void *y)
{
	const struct message *a = x, *b = y;

	if (a->pipe != b->pipe)
		return a->pipe < b->pipe ? -1 : 1;
	return (a->position > b->position) - (a->position < b->position);
}

static int by_pipe_written(const void *x, const void *y)
{
	const struct written *a = x, *b = y;

	if (a->pipe != b->pipe)
		return a->pipe < b->pipe ? -1 : 1;
	return (a->end > b->end) - (a->end < b->end);
}

static void match(struct messages *m, const struct writes *w)
{
	size_t k = 0;

	for (size_t i = 0; i < m->n; i++) {
		struct message *v = &m->v[i];

		while (k < w->n && (w->v[k].pipe < v->pipe ||
				    (w->v[k].pipe == v->pipe && w->v[k].end <= v->position)))
			k++;
		if (k == w->n || w->v[k].pipe != v->pipe)
			continue;
		v->ready_ns = w->v[k].end_ns;
		v->writer = w->v[k].thread;
	}
}

/* Whether an event belongs to taking a batch: what came over the pipe names sockets over which
 * descriptors of shared memory come. */
static bool belongs(const struct job *job, const struct job_event *v)
{
	return v->file != JOB_NONE && (job->file[v->file].kind == JOB_FILE_SOCKET ||
				       job->file[v->file].kind == JOB_FILE_MEMORY);
}

/* The batch before is let go when the next one is handed out: at once, or, where that lay ready,
 * after the computation. */
static bool is_later_close(const struct taking *t, const struct job_event *v)
{
	return v->kind == JOB_CLOSE && v->begin_ns - t->last_ns > AT_ONCE_NS;
}

void messages_find(struct messages *m, const struct job *job)
{
	struct stream *stream = xcalloc(job->files + 1, sizeof(*stream));
	struct taking *taking = xcalloc(job->threads + 1, sizeof(*taking));
	struct writes w = {0};
	size_t kept = 0;

	*m = (struct messages){0};
	for (size_t i = 0; i < job->threads; i++)
		taking[i] = (struct taking){JOB_NONE, JOB_UNKNOWN, JOB_UNKNOWN};
	for (size_t i = 0; i < job->events; i++) {
		const struct job_event *v = &job->event[i];
		struct taking *t = &taking[v->thread];

		if (v->kind == JOB_WAIT) {
			t->wait_ns = v->begin_ns;
			continue;
		}
		if (v->kind == JOB_READ && is_pipe(job, v->file))
			on_read(m, &stream[v->file], t, v);
		else if (v->kind == JOB_WRITE && is_pipe(job, v->file))
			on_write(&w, &stream[v->file], v);
		else if (t->message != JOB_NONE && belongs(job, v) && !is_later_close(t, v))
			m->v[t->message].taken_ns = v->end_ns, m->v[t->message].fetched = true;
		else if (v->file != JOB_NONE)
			t->message = JOB_NONE; /* something else has begun */
		t->last_ns = v->end_ns;
		t->wait_ns = JOB_UNKNOWN;
	}
	for (size_t i = 0; i < m->n; i++)
		if (!stream[m->v[i].pipe].other)
			m->v[kept++] = m->v[i];
	m->n = kept;
	if (m->n > 0)
		qsort(m->v, m->n, sizeof(*m->v), by_pipe);
	if (w.n > 0)
		qsort(w.v, w.n, sizeof(*w.v), by_pipe_written);
	match(m, &w);
	free(w.v);
	free(taking);
	free(stream);
}

void messages_release(struct messages *m)
{
	free(m->v);
	*m = (struct messages){0};
}

const struct message *messages_of(const struct messages *m, uint32_t pipe, size_t *n)
{
	size_t low = 0, high = m->n, end;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (m->v[middle].pipe < pipe)
			low = middle + 1;
		else
			high = middle;
	}
	for (end = low; end < m->n && m->v[end].pipe == pipe; end++)
		;
	*n = end - low;
	return m->v + low;
}
