/* Before and after the training: is the dataset there, and was every sample delivered once? */
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/sysinfo.h"
#include "dataset/verify.h"
#include "run/state.h"

/* How long threads may take to leave after the run was stopped. */
#define LEAVE_S 8
/* and while other processes wait for what this one measured */
#define LEAVE_TOGETHER_S 4
/* Samples whose order is proved in less than a second. */
#define PROVED_AFTER_STOP (1u << 24)
/* Sizes asked for at once by the check of the dataset: their latencies count, not the CPU. */
#define CHECK_THREADS 16
#define CHECK_STACK (1u << 20)

bool run_join(struct run_state *s, pthread_t thread)
{
	int64_t leave_s = s->net ? LEAVE_TOGETHER_S : LEAVE_S;

	for (;;) {
		int64_t stopped = atomic_load(&s->stop_ns);
		struct timespec ts;

		clock_gettime(CLOCK_REALTIME, &ts);
		ts.tv_nsec += NS_PER_S / 10;
		ts.tv_sec += ts.tv_nsec / NS_PER_S;
		ts.tv_nsec %= NS_PER_S;
		if (pthread_timedjoin_np(thread, NULL, &ts) == 0)
			return true;
		if (stopped && clock_now_ns() - stopped > leave_s * NS_PER_S)
			return false;
	}
}

struct checking {
	struct run_state *s;
	struct presence_result found;
	struct err err;
	int rc;
};

static void *check_main(void *arg)
{
	struct checking *c = arg;
	struct run_state *s = c->s;
	struct presence_options o = {
		.threads = CHECK_THREADS, .stop = &s->stop, .done = &s->checked};

	c->rc = dataset_check(s->d, s->store, s->w->workflow.evaluation, &o, &c->found, &c->err);
	return NULL;
}

int run_check_dataset(struct run_state *s, struct err *e)
{
	struct checking *c = xcalloc(1, sizeof(*c));
	pthread_t thread;
	int rc;

	c->s = s;
	s->phase = PROGRESS_CHECK;
	s->phase_begin_ns = clock_now_ns();
	rc = monitor_start(s, e);
	if (rc < 0) {
		free(c);
		return rc;
	}
	rc = thread_start(&thread, check_main, c, CHECK_STACK, "check", e);
	if (rc == 0)
		s->r->stuck = !run_join(s, thread);
	monitor_stop(s);
	s->monitor_quit = 0;
	if (rc == 0 && s->r->stuck) {
		/* the thread keeps `c` */
		*e = s->reason;
		return e->code;
	}
	s->r->presence = c->found;
	if (rc == 0 && c->rc < 0) {
		*e = s->reason.code ? s->reason : c->err;
		rc = e->code;
	}
	free(c);
	return rc;
}

static int prove_epoch(struct run_state *s, uint32_t epoch, enum dataset_kind kind, uint64_t steps,
		       struct err *e)
{
	bool eval = kind == DATASET_EVAL;
	struct epoch_usage *u = &s->r->usage[epoch - 1];
	const struct stop_flag *stop = s->o->stop;
	struct order_proof delivered = {0}, rest = {0};
	char *note = eval ? u->eval_order_note : u->order_note;
	bool accounted = true;
	uint32_t lost = 0;
	struct order o;

	if (s->list[kind].n)
		order_list_fill(&s->list[kind], s->w, s->seed, epoch);
	run_order(s, kind, epoch, &o);
	for (uint32_t k = 0; k < s->ranks; k++) {
		const struct rank_epoch *ep = &s->r->rank[k].epoch[epoch - 1];

		order_proof_merge(&delivered, eval ? &ep->eval_delivered : &ep->delivered);
		order_proof_merge(&rest, eval ? &ep->eval_rest : &ep->rest);
		accounted = accounted && (eval ? ep->eval_accounted : ep->accounted);
		lost += s->r->rank[k].lost;
	}
	if (lost) {
		snprintf(note, sizeof(u->order_note), "what %u of %u ranks read is not known", lost,
			 s->ranks);
		return 0;
	}
	if (accounted) {
		bool proved = order_proof_check(&o, &delivered, &rest, note, sizeof(u->order_note));

		*(eval ? &u->eval_order_proved : &u->order_proved) = proved;
		return 0;
	}
	/* after a stop, what takes no time is still proved */
	if (stop && atomic_load(&stop->set) && o.samples <= PROVED_AFTER_STOP)
		stop = NULL;
	return order_prove(&o, steps, &delivered, host_threads(), stop,
			   eval ? &u->eval_order_proved : &u->order_proved, note,
			   sizeof(u->order_note), e);
}

int run_prove_order(struct run_state *s, struct err *e)
{
	int rc = 0;

	for (uint32_t epoch = 1; epoch <= s->r->epochs_done && rc == 0; epoch++) {
		rc = prove_epoch(s, epoch, DATASET_TRAIN, run_epoch_steps(s, epoch), e);
		if (rc == 0 && run_epoch_has_eval(s->w, epoch))
			rc = prove_epoch(s, epoch, DATASET_EVAL, s->steps[DATASET_EVAL], e);
	}
	return rc;
}
