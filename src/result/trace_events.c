#include "result/trace_events.h"

#include <stdio.h>

#include "base/str.h"

struct walk {
	const struct result *r;
	const struct rank_result *rank;
	trace_event_fn fn;
	void *arg;
	struct trace_event ev;
};

static void emit_span(struct walk *w, enum span_kind kind, int64_t begin, int64_t end,
		      uint32_t step, uint64_t bytes)
{
	struct span s = {.begin_ns = begin,
			 .end_ns = end,
			 .sample = SPAN_NONE,
			 .file = SPAN_NONE,
			 .step = step,
			 .moved = bytes,
			 .kind = (uint8_t)kind};

	if (begin == 0 || end < begin)
		return;
	w->ev.span = &s;
	w->fn(w->arg, &w->ev);
}

static void phase_events(struct walk *w, const struct phase *p)
{
	for (uint64_t i = 0; i < p->steps; i++) {
		const struct step_times *t = &p->step[i];
		uint32_t step = (uint32_t)(p->first_step + i);

		emit_span(w, SPAN_WAIT, t->ask_ns, t->got_ns, step, 0);
		emit_span(w, SPAN_STEP, t->got_ns, t->barrier_out_ns, step, 0);
		emit_span(w, SPAN_COMPUTE, t->compute_begin_ns, t->compute_end_ns, step, 0);
		if (p->kind == PHASE_BLOCK)
			emit_span(w, SPAN_BARRIER, t->barrier_in_ns, t->barrier_out_ns, step, 0);
	}
}

/* What goes on in the background lies beside the steps. */
static void checkpoint_events(struct walk *w, const struct checkpoint_times *list, uint32_t n,
			      enum span_kind kind)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct checkpoint_times *t = &list[i];
		struct span s = {.begin_ns = t->begin_ns,
				 .end_ns = t->end_ns,
				 .sample = SPAN_NONE,
				 .file = SPAN_NONE,
				 .step = SPAN_NO_STEP,
				 .kind = (uint8_t)kind,
				 .flags = SPAN_IN_FLIGHT};

		if (!t->done || t->end_ns < t->begin_ns)
			continue;
		w->ev.span = &s;
		w->fn(w->arg, &w->ev);
	}
}

static int64_t epoch_end(const struct rank_epoch *ep)
{
	int64_t end = ep->end_ns;

	if (ep->train_end_ns > end)
		end = ep->train_end_ns;
	if (ep->has_eval && ep->eval.end_ns > end)
		end = ep->eval.end_ns;
	return end;
}

static void rank_events(struct walk *w)
{
	const struct result *r = w->r;

	w->ev.epoch = 0;
	emit_span(w, SPAN_RUN, r->begin_ns, r->begin_ns + (r->end_wall_ns - r->begin_wall_ns),
		  SPAN_NO_STEP, 0);
	for (uint32_t i = 0; i < r->epochs_begun; i++) {
		const struct rank_epoch *ep = &w->rank->epoch[i];

		w->ev.epoch = i + 1;
		emit_span(w, SPAN_EPOCH, ep->begin_ns, epoch_end(ep), SPAN_NO_STEP, 0);
		if (ep->blocks)
			emit_span(w, SPAN_TRAIN, ep->block[0].begin_ns, ep->train_end_ns,
				  SPAN_NO_STEP, ep->payload_bytes);
		for (uint32_t b = 0; b < ep->blocks; b++)
			phase_events(w, &ep->block[b]);
		checkpoint_events(w, ep->save, ep->saves, SPAN_CAPTURE);
		checkpoint_events(w, ep->load, ep->loads, SPAN_RESTART);
		if (!ep->has_eval)
			continue;
		emit_span(w, SPAN_EVALUATE, ep->eval.begin_ns, ep->eval.end_ns, SPAN_NO_STEP,
			  ep->eval_payload_bytes);
		phase_events(w, &ep->eval);
	}
}

static void ring_events(struct walk *w, struct span_ring *ring)
{
	uint32_t n = span_ring_sort(ring), epoch = 0;

	w->ev.dataset = ring->dataset;
	w->ev.ring = ring;
	for (uint32_t i = 0; i < n; i++) {
		while (epoch < w->r->epochs_begun && w->rank->epoch[epoch].begin_ns > 0 &&
		       w->rank->epoch[epoch].begin_ns <= ring->span[i].begin_ns)
			epoch++;
		w->ev.epoch = epoch;
		w->ev.span = &ring->span[i];
		w->fn(w->arg, &w->ev);
	}
}

/* The rings of a rank come after the ranks, so that no number is used twice. */
static uint32_t thread_of(const struct result *r, const struct span_ring *ring)
{
	return ring->of_rank ? ring->rank + 1 : ring->rank + 1 + (ring->slot + 1) * r->ranks;
}

void trace_rank_events(const struct result *r, uint32_t rank, trace_event_fn fn, void *arg)
{
	struct walk w = {.r = r, .rank = &r->rank[rank - r->first_rank], .fn = fn, .arg = arg};

	w.ev.pid = rank + 1;
	w.ev.tid = rank + 1;
	w.ev.dataset = DATASET_TRAIN;
	rank_events(&w);
	for (struct span_ring *ring = r->trace->first; ring; ring = ring->next) {
		if (ring->rank != rank)
			continue;
		w.ev.tid = thread_of(r, ring);
		ring_events(&w, ring);
	}
}

void trace_rank_threads(const struct result *r, uint32_t rank, trace_thread_fn fn, void *arg)
{
	char name[48];

	snprintf(name, sizeof(name), "rank %u", rank);
	fn(arg, rank + 1, rank + 1, name);
	for (const struct span_ring *ring = r->trace->first; ring; ring = ring->next) {
		if (ring->rank != rank || ring->of_rank)
			continue;
		if (ring->dataset == SPAN_NAMED)
			snprintf(name, sizeof(name), "checkpoints");
		else if (ring->worker == SPAN_RECEIVES)
			snprintf(name, sizeof(name), "%s pinning",
				 ring->dataset == DATASET_TRAIN ? "train" : "eval");
		else
			snprintf(name, sizeof(name), "%s worker %u",
				 ring->dataset == DATASET_TRAIN ? "train" : "eval", ring->worker);
		fn(arg, rank + 1, thread_of(r, ring), name);
	}
}

bool trace_file_path(const struct result *r, const struct trace_event *ev, char *out, size_t size)
{
	uint64_t file = ev->span->file;
	int dataset = ev->dataset, n;

	if (file != SPAN_NONE && dataset == SPAN_NAMED) {
		n = snprintf(out, size, "%s", ev->ring->names + file);
		return n >= 0 && (size_t)n < size;
	}
	return file != SPAN_NONE && r->dataset && file < r->dataset->files[dataset] &&
	       dataset_path(r->dataset, dataset, file, out, size, NULL) == 0;
}

void trace_put_text(struct out_file *f, const char *text)
{
	while (*text) {
		unsigned char c = (unsigned char)*text;
		size_t n = utf8_length(text);

		if (c < 0x20 || c == 0x7f)
			out_file_print(f, "\\u%04x", c);
		else if (c == '"' || c == '\\')
			out_file_print(f, "\\%c", c);
		else if (n == 0)
			out_file_put(f, "?", 1);
		else
			out_file_put(f, text, n);
		text += n ? n : 1;
	}
}
