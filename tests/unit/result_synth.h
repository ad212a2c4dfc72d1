#pragma once
/* Results made by hand: step times in seconds become a struct result as run/ would have filled it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "judge/judge.h"
#include "result/metrics.h"
#include "result/result.h"

#define SYNTH_EPOCH_NS 1000000000000LL /* between the beginnings of epochs */
#define SYNTH_WALL_NS 1790000000000000000LL

struct synth {
	struct workload w;
	struct dataset d;
	struct result r;
	struct run_metrics m;
};

/* A workload "default" with overrides (NULL-terminated), and an empty result over it. */
static inline void synth_begin(struct synth *s, uint32_t ranks, uint32_t epochs,
			       const char *const *overrides)
{
	static const char *const base[] = {
		"dataset.num_files_train=24",
		"dataset.num_files_eval=8",
		"dataset.num_subfolders_train=0",
		"dataset.num_subfolders_eval=0",
		"dataset.record_length_bytes=65536",
		"reader.batch_size=2",
		"reader.batch_size_eval=1",
		"reader.read_threads=1",
		"reader.prefetch_size=2",
		"train.computation_time=0.02",
		"evaluation.eval_time=0.01",
		"workflow.evaluation=false",
	};
	const char *all[64];
	char epochs_text[48];
	size_t n = 0;
	struct err e = {0};

	memset(s, 0, sizeof(*s));
	for (size_t i = 0; i < sizeof(base) / sizeof(base[0]); i++)
		all[n++] = base[i];
	snprintf(epochs_text, sizeof(epochs_text), "train.epochs=%u", epochs);
	all[n++] = epochs_text;
	for (size_t i = 0; overrides && overrides[i]; i++)
		all[n++] = overrides[i];
	struct workload_request req = {.workload = "default",
				       .overrides = all,
				       .override_count = n,
				       .start_wall_ns = SYNTH_WALL_NS};

	if (workload_load(&s->w, &req, &e) < 0)
		fail_msg("%s", e.text);
	if (dataset_init(&s->d, &s->w, &e) < 0)
		fail_msg("%s", e.text);
	s->r.workload = &s->w;
	s->r.dataset = &s->d;
	s->r.trained = true;
	s->r.evaluated = s->w.workflow.evaluation;
	s->r.ranks = s->r.ranks_here = ranks;
	s->r.epochs_planned = s->r.epochs_begun = s->r.epochs_done = epochs;
	s->r.begin_wall_ns = SYNTH_WALL_NS;
	s->r.end_wall_ns = SYNTH_WALL_NS + 60000000000LL;
	s->r.rank = xcalloc(ranks, sizeof(*s->r.rank));
	s->r.usage = xcalloc(epochs ? epochs : 1, sizeof(*s->r.usage));
	for (uint32_t k = 0; k < ranks; k++) {
		io_stat_init(&s->r.rank[k].train_io);
		s->r.rank[k].epoch = xcalloc(epochs ? epochs : 1, sizeof(*s->r.rank[k].epoch));
		s->r.rank[k].workers = 1;
		s->r.rank[k].prefetch_batches = 2;
	}
	for (uint32_t i = 0; i < epochs; i++) {
		s->r.usage[i].order_kept = ORDER_KEPT;
		snprintf(s->r.usage[i].order_note, sizeof(s->r.usage[i].order_note),
			 "24 samples delivered, each once");
		s->r.usage[i].meminfo = xcalloc(1, sizeof(struct sysinfo_pair));
		s->r.usage[i].meminfo[0] =
			(struct sysinfo_pair){xstrdup("MemTotal"), xstrdup("1000 kB")};
		s->r.usage[i].meminfo_count = 1;
	}
	snprintf(s->r.host.hostname, sizeof(s->r.host.hostname), "vm");
	s->r.host.cpu_count = 2;
	s->r.host.memory_gib = 23.5;
}

static inline void synth_end(struct synth *s)
{
	metrics_release(&s->m);
	result_release(&s->r);
	dataset_release(&s->d);
	workload_release(&s->w);
}

static inline int64_t synth_ns(double s)
{
	return (int64_t)(s * 1e9 + 0.5);
}

/* Fills a phase of n steps that begins at begin_ns: waits, computations and barriers in seconds
 * (NULL: none), then `tail` seconds until the end of the phase. */
static inline void synth_phase(struct phase *p, enum phase_kind kind, int64_t begin_ns,
			       uint64_t first, uint64_t n, uint64_t batch, const double *load,
			       const double *compute, const double *barrier, double tail)
{
	int64_t t = begin_ns;

	*p = (struct phase){.kind = kind,
			    .number = 1,
			    .begin_ns = begin_ns,
			    .first_step = first,
			    .steps = n,
			    .capacity = n,
			    .samples = n * batch};
	p->step = xcalloc(n ? n : 1, sizeof(*p->step));
	for (uint64_t i = 0; i < n; i++) {
		struct step_times *st = &p->step[i];

		st->ask_ns = t;
		st->got_ns = t += synth_ns(load[i]);
		st->compute_begin_ns = t;
		st->compute_end_ns = t += synth_ns(compute[i]);
		st->barrier_in_ns = t;
		st->barrier_out_ns = t += barrier ? synth_ns(barrier[i]) : 0;
	}
	p->end_ns = t + synth_ns(tail);
	p->begin_wall_ns = SYNTH_WALL_NS + begin_ns;
	p->end_wall_ns = SYNTH_WALL_NS + p->end_ns;
}

/* One more block of an epoch (from 0), right behind the blocks that are there. */
static inline void synth_block(struct synth *s, uint32_t rank, uint32_t epoch, uint64_t n,
			       const double *load, const double *compute, const double *barrier,
			       double tail)
{
	struct rank_epoch *ep = &s->r.rank[rank].epoch[epoch];
	uint64_t batch = (uint64_t)s->w.reader.batch_size, first = 0;
	int64_t begin = (int64_t)(epoch + 1) * SYNTH_EPOCH_NS;

	ep->block = xrealloc(ep->block, (ep->blocks + 1) * sizeof(*ep->block));
	if (ep->blocks) {
		const struct phase *last = &ep->block[ep->blocks - 1];

		begin = last->end_ns;
		first = last->first_step + last->steps;
	} else {
		ep->begin_ns = begin;
		ep->begin_wall_ns = SYNTH_WALL_NS + begin;
	}
	synth_phase(&ep->block[ep->blocks], PHASE_BLOCK, begin, first, n, batch, load, compute,
		    barrier, tail);
	ep->block[ep->blocks].number = ep->blocks + 1;
	ep->train_end_ns = ep->end_ns = ep->block[ep->blocks].end_ns;
	ep->train_end_wall_ns = ep->end_wall_ns = SYNTH_WALL_NS + ep->end_ns;
	ep->payload_bytes += n * batch * 65536;
	ep->blocks++;
	if (s->r.steps_per_epoch < first + n)
		s->r.steps_per_epoch = first + n;
}

static inline void synth_eval(struct synth *s, uint32_t rank, uint32_t epoch, uint64_t n,
			      const double *load, const double *compute, double tail)
{
	struct rank_epoch *ep = &s->r.rank[rank].epoch[epoch];
	uint64_t batch = (uint64_t)s->w.reader.batch_size_eval;

	synth_phase(&ep->eval, PHASE_EVAL, ep->train_end_ns, 0, n, batch, load, compute, NULL,
		    tail);
	ep->has_eval = true;
	ep->end_ns = ep->eval.end_ns;
	ep->end_wall_ns = SYNTH_WALL_NS + ep->end_ns;
	ep->eval_payload_bytes = n * batch * 65536;
	s->r.eval_steps = n;
}

/* A block of n equal steps but for the wait of the first. */
static inline void synth_even(struct synth *s, uint32_t rank, uint32_t epoch, uint64_t n,
			      double first, double load, double compute)
{
	double *v = xcalloc(2 * n + 2, sizeof(*v));

	for (uint64_t i = 0; i < n; i++) {
		v[i] = i ? load : first;
		v[n + i] = compute;
	}
	synth_block(s, rank, epoch, n, v, v + n, NULL, 0);
	free(v);
}

static inline void synth_metrics(struct synth *s)
{
	struct err e = {0};

	metrics_release(&s->m);
	if (metrics_compute(&s->m, &s->r, &e) < 0)
		fail_msg("%s", e.text);
}

static inline void synth_judge(struct synth *s)
{
	struct err e = {0};

	if (judge_result(&s->r, &s->m, &e) < 0)
		fail_msg("%s", e.text);
}

static inline void assert_near(double have, double want, double tolerance)
{
	double off = have > want ? have - want : want - have;

	if (!(off <= tolerance))
		fail_msg("%.12g is not %.12g within %g", have, want, tolerance);
}

/* An empty one when there is none of that name. */
static inline const struct verdict *synth_verdict(const struct synth *s, const char *check)
{
	static const struct verdict none;

	for (uint32_t i = 0; i < s->r.judged.verdicts; i++)
		if (strcmp(s->r.judged.verdict[i].check, check) == 0)
			return &s->r.judged.verdict[i];
	return &none;
}
