/* Counters around phases. */
#include "run/usage.h"

#include "base/clock.h"
#include "comm/net.h"

static void host_take(struct run_state *s, struct usage_mark *m)
{
	m->host = (struct host_io){0};
	if (run_tells_host(s) && s->r->host_source)
		host_io_sample(s->r->host_source, "", &m->host);
}

/* The process's own counters are the last to be looked at before a phase and the first after it:
 * looking at the others is reading, too, of files in /proc and /sys. */
void usage_begin(struct run_state *s, uint32_t epoch, struct usage_mark *m)
{
	struct epoch_usage *u = &s->r->usage[epoch - 1];

	host_meminfo_load(&u->meminfo, &u->meminfo_count);
	u->memory = (struct memory_pressure){.stall_ns = -1, .refault_bytes = -1};
	u->memory_process = s->net ? net_process_number(s->net) : 0;
	if (s->w->run.measure == MEASURE_ALL) {
		memory_pressure_take(&m->memory);
		host_take(s, m);
		u->host_cpu_ns = host_cpu_ns();
		proc_io_sample(&m->process);
	}
	m->cpu_ns = proc_cpu_ns();
}

/* The process is charged when it asks, the device counts when it has delivered: read-ahead that is
 * still under way when a phase ends is waited for a little, outside of all that is timed. */
#define SETTLE_TRIES 10
#define SETTLE_NS (5 * NS_PER_S / 1000)

static void usage_settle(struct run_state *s, const struct usage_mark *since,
			 struct usage_mark *now)
{
	for (int i = 0; i < SETTLE_TRIES && now->host.whole.under_way > 0 &&
			now->host.whole.read_bytes - since->host.whole.read_bytes <
				now->process.read_bytes - since->process.read_bytes;
	     i++) {
		clock_sleep_until(clock_now_ns() + SETTLE_NS);
		host_io_sample(s->r->host_source, "", &now->host);
	}
}

/* The difference since *since, which becomes now. */
static void usage_next(struct run_state *s, struct proc_io *process, struct host_io *host,
		       struct usage_mark *since, struct usage_mark *now)
{
	host_take(s, now);
	usage_settle(s, since, now);
	*process = now->process;
	proc_io_sub(process, &since->process);
	*host = now->host;
	host_io_sub(host, &since->host);
	since->host = now->host;
	proc_io_sample(&since->process);
}

void usage_of_training(struct run_state *s, uint32_t epoch, struct usage_mark *since)
{
	struct epoch_usage *u = &s->r->usage[epoch - 1];
	struct usage_mark now;

	u->cpu_ns = proc_cpu_ns() - since->cpu_ns;
	if (s->w->run.measure == MEASURE_NONE)
		return;
	proc_io_sample(&now.process);
	u->host_cpu_ns = host_cpu_ns() - u->host_cpu_ns;
	memory_pressure_take(&u->memory);
	memory_pressure_sub(&u->memory, &since->memory);
	usage_next(s, &u->train, &u->host_train, since, &now);
}

void usage_of_evaluation(struct run_state *s, uint32_t epoch, struct usage_mark *since)
{
	struct epoch_usage *u = &s->r->usage[epoch - 1];
	struct usage_mark now;

	if (s->w->run.measure == MEASURE_NONE)
		return;
	proc_io_sample(&now.process);
	usage_next(s, &u->eval, &u->host_eval, since, &now);
}
