/* Keeps requests of one worker in flight. */
#include <errno.h>

#include "base/clock.h"
#include "loader/flight_state.h"

/* The range of a sample, cut to what the place can hold. */
static int set_range(struct flight *f, struct place *p, struct err *e)
{
	struct extent x;
	int rc = f->config->dataset->format->extent(f->settings, &p->file->spec, p->index, &x, e);

	if (rc == 0 && x.bytes == EXTENT_TO_END) {
		rc = flight_file_bytes(&f->files, p->file, &x.bytes, e);
		x.bytes = x.bytes > x.offset ? x.bytes - x.offset : 0;
	}
	if (rc < 0)
		return rc;
	p->from = p->next = x.offset & ~(uint64_t)(f->align - 1);
	p->want = x.offset + x.bytes;
	p->end = flight_round_up(p->want, f->align);
	if (f->room && p->end - p->from > f->room)
		p->want = p->end = p->from + f->room;
	p->have = p->end;
	p->loaded = false;
	if (x.whole)
		file_marks_set(&f->loaded, p->file->spec.file_index);
	return 0;
}

/* Takes a sample up. One that needs no request is ready. */
static int begin(struct flight *f, uint64_t sample, struct err *e)
{
	const struct dataset *d = f->config->dataset;
	uint64_t file = sample / d->samples_per_file;
	struct place *p = f->free_place[--f->free_places];
	int rc = 0;

	p->sample = sample;
	p->index = sample - file * d->samples_per_file;
	p->file = NULL;
	p->out = 0;
	p->begun_ns = 0;
	p->next = p->end = 0;
	p->loaded = f->settings->keep_open &&
		    file_marks_get(&f->loaded, dataset_file_index(d, f->config->kind, file));
	if (!p->loaded) {
		rc = flight_file_get(&f->files, file, &p->file, e);
		if (rc == 0)
			rc = set_range(f, p, e);
	}
	if (rc < 0) {
		if (p->file)
			flight_file_put(&f->files, p->file, NULL);
		f->free_place[f->free_places++] = p;
		return rc;
	}
	if (p->next < p->end)
		f->splitting = p;
	else
		f->ready[f->ready_count++] = p;
	return 0;
}

static int send(struct flight *f, struct err *e)
{
	struct place *p = f->splitting;
	unsigned i = f->free_request[f->free_requests - 1];
	struct store_request *r = &f->request[i];
	uint64_t left = p->end - p->next;
	int rc;

	r->blob = p->file->blob;
	r->offset = p->next;
	r->n = (size_t)(left < f->piece ? left : f->piece);
	r->write = false;
	r->tag = (uint64_t)(p - f->place);
	if (p->buffer)
		r->buffer = p->buffer + (p->next - p->from);
	rc = store_queue_submit(f->queue, r, e);
	if (rc < 0)
		return rc;
	if (p->out++ == 0 && p->begun_ns == 0)
		p->begun_ns = r->submitted_ns;
	f->free_requests--;
	p->next += r->n;
	if (p->next == p->end)
		f->splitting = NULL;
	return 0;
}

/* Fails a sample with a sentence that names its file. */
static int in_file(struct flight *f, const struct place *p, int rc, struct err *e)
{
	const struct dataset *d = f->config->dataset;

	if (e && dataset_path(d, f->config->kind, p->sample / d->samples_per_file, f->path,
			      sizeof(f->path), NULL) == 0)
		err_wrap(e, "reading '%s'", f->path);
	return rc;
}

/* Takes one result. The place is ready once it was the last. */
static int receive(struct flight *f, struct store_request *r, struct err *e)
{
	struct place *p = &f->place[r->tag];
	uint64_t end = r->offset + (r->result > 0 ? (uint64_t)r->result : 0);

	f->free_request[f->free_requests++] = (unsigned)(r - f->request);
	p->out--;
	if (end < p->have)
		p->have = end == r->offset + r->n ? p->have : end;
	if (p->out == 0 && p != f->splitting)
		f->ready[f->ready_count++] = p;
	if (r->result >= 0)
		return 0;
	if (e)
		*e = r->err;
	return in_file(f, p, (int)r->result, e);
}

/* What is to be done with the bytes that were read. */
static int decode(struct flight *f, struct reader *reader, struct place *p, uint64_t *payload,
		  int64_t *now, struct err *e)
{
	const struct dataset *d = f->config->dataset;
	struct sample got = {0};
	int rc;

	*payload = 0;
	if (p->loaded)
		return 0;
	if (f->settings->decode == DECODE_NONE) {
		if (p->have >= p->want) {
			*payload = file_spec_sample_bytes(&p->file->spec);
			return 0;
		}
		dataset_path(d, f->config->kind, p->sample / d->samples_per_file, f->path,
			     sizeof(f->path), NULL);
		return io_report_short(p->file->blob, f->path,
				       p->have > p->from ? (size_t)(p->have - p->from) : 0,
				       (size_t)(p->want - p->from), p->from, e);
	}
	rc = dataset_path(d, f->config->kind, p->sample / d->samples_per_file, f->path,
			  sizeof(f->path), e);
	if (rc < 0)
		return rc;
	f->current = p;
	rc = d->format->read(reader, f->path, &p->file->spec, p->index, &got, e);
	f->current = NULL;
	*now = clock_now_ns();
	*payload = got.payload_bytes;
	return rc;
}

static int give_up(struct flight *f, struct place *p, struct err *e)
{
	int rc = p->file ? flight_file_put(&f->files, p->file, e) : 0;

	f->free_place[f->free_places++] = p;
	return rc;
}

/* Everything that is ready, unless something failed before. */
static int finish_ready(struct flight *f, struct reader *reader, struct flight_run *run, int rc,
			int64_t *now, struct err *e)
{
	while (f->ready_count > 0) {
		struct place *p = f->ready[--f->ready_count];
		uint64_t payload = 0;
		int closed;

		if (rc == 0) {
			run->failed = p->sample;
			rc = decode(f, reader, p, &payload, now, e);
			closed = give_up(f, p, rc == 0 ? e : NULL);
			rc = rc == 0 ? closed : rc;
			run->begun_ns = p->begun_ns ? p->begun_ns : *now;
			if (rc == 0)
				run->done(run, p->sample, payload, now);
			if (run->lingers)
				f->oldest = NULL; /* the watchdog was told of the wait */
		} else {
			give_up(f, p, NULL);
		}
	}
	return rc;
}

/* Sends requests as long as there is room. */
static int fill(struct flight *f, struct flight_run *run, bool *more, struct err *e)
{
	int rc = 0;

	while (rc == 0 && f->free_requests > 0) {
		uint64_t sample;

		if (f->splitting) {
			run->failed = f->splitting->sample;
			rc = send(f, e);
			continue;
		}
		if (!*more || f->free_places == 0)
			break;
		*more = run->next(run, &sample);
		if (!*more)
			break;
		run->failed = sample;
		rc = begin(f, sample, e);
	}
	return rc;
}

/* Tells the watchdog of the oldest sample in flight, when that is another than before. */
static void tell(struct flight *f, struct flight_run *run)
{
	const struct place *oldest = f->oldest;

	if (oldest && oldest->out > 0 && oldest->begun_ns == f->oldest_ns)
		return;
	oldest = NULL;
	for (unsigned i = 0; i < f->places; i++) {
		const struct place *p = &f->place[i];

		if (p->out > 0 && (!oldest || p->begun_ns < oldest->begun_ns))
			oldest = p;
	}
	if (!oldest)
		return;
	f->oldest = oldest;
	f->oldest_ns = oldest->begun_ns;
	run->doing(run, oldest->sample, oldest->begun_ns);
}

/* Waits for results. The first failure of a request is the run's. */
static int collect(struct flight *f, struct flight_run *run, int rc, int64_t *now, struct err *e)
{
	int n = store_queue_reap(f->queue, f->reaped, f->depth, rc == 0 ? e : NULL);

	if (n < 0) {
		f->broken = true;
		return rc < 0 ? rc : n;
	}
	for (int i = 0; i < n; i++) {
		struct store_request *r = f->reaped[i];
		uint64_t sample = f->place[r->tag].sample;
		int code = receive(f, r, rc == 0 ? e : NULL);

		*now = r->done_ns;
		if (code < 0 && rc == 0) {
			rc = code;
			run->failed = sample;
		}
	}
	return rc;
}

int flight_read(struct flight *f, struct reader *reader, struct flight_run *run, struct err *e)
{
	bool more = true, slow = run->lingers || f->settings->decode != DECODE_NONE;
	int64_t now = clock_now_ns();
	int rc = 0;

	f->oldest = NULL;
	if (f->broken)
		return err_set(e, -EIO, "requests cannot be kept in flight any more");
	while (!f->broken) {
		if (rc == 0)
			rc = fill(f, run, &more, e);
		if (rc == 0 && slow)
			rc = store_queue_flush(f->queue, e);
		rc = finish_ready(f, reader, run, rc, &now, e);
		if (f->queue->in_flight > 0) {
			tell(f, run);
			rc = collect(f, run, rc, &now, e);
		} else if (rc < 0 || (!more && f->ready_count == 0)) {
			break;
		}
	}
	if (rc < 0 && f->splitting) {
		give_up(f, f->splitting, NULL);
		f->splitting = NULL;
	}
	return rc;
}
