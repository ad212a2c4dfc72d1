#include "run/background.h"

#include <stdio.h>

#include "base/clock.h"
#include "run/state.h"

#define LOOK_NS (NS_PER_S / 10)

static void write_one(struct rank *k)
{
	struct rank_checkpoints *c = &k->checkpoints;
	struct checkpoint_times *t = &c->writing;

	c->rc = checkpoint_write(c->rank, t->epoch, t->step, &c->io, &t->stat, &c->err);
	rank_checkpoint_ended(k, t, c->rc == 0);
}

static void *background_main(void *arg)
{
	struct rank *k = arg;
	struct rank_checkpoints *c = &k->checkpoints;

	for (;;) {
		uint32_t state = atomic_load(&c->state);

		if (state == BACKGROUND_QUIT)
			return NULL;
		if (state == BACKGROUND_IDLE) {
			thread_wait(&c->state, state, -1);
			continue;
		}
		write_one(k);
		/* a failure ends the run at once, not when the next one is due */
		if (c->rc < 0 && c->rc != ERR_CANCELED)
			run_stop(k->run, &c->err);
		atomic_compare_exchange_strong(&c->state, &state, BACKGROUND_IDLE);
		thread_wake(&c->state, -1);
	}
}

int background_start(struct rank *k, struct err *e)
{
	struct rank_checkpoints *c = &k->checkpoints;
	char name[16];
	int rc;

	snprintf(name, sizeof(name), "ckpt%u", k->comm.rank);
	rc = thread_start(&c->thread, background_main, k, (size_t)k->run->w->run.stack_bytes, name,
			  e);
	c->started = rc == 0;
	return rc;
}

void background_write(struct rank *k, struct checkpoint_times *t)
{
	struct rank_checkpoints *c = &k->checkpoints;

	c->open = t;
	c->writing = *t;
	atomic_store(&c->state, BACKGROUND_WRITING);
	thread_wake(&c->state, -1);
}

int background_wait(struct rank *k, struct err *e)
{
	struct rank_checkpoints *c = &k->checkpoints;

	while (atomic_load(&c->state) == BACKGROUND_WRITING) {
		if (atomic_load(&k->run->stop.set))
			return ERR_CANCELED;
		thread_wait(&c->state, BACKGROUND_WRITING, LOOK_NS);
	}
	if (c->rc < 0)
		*e = c->err;
	return c->rc;
}

void background_stop(struct rank *k)
{
	struct rank_checkpoints *c = &k->checkpoints;

	if (!c->started)
		return;
	atomic_store(&c->state, BACKGROUND_QUIT);
	thread_wake(&c->state, -1);
	pthread_join(c->thread, NULL);
	c->started = false;
}
