/* A process's part of the result as bytes, and back. Both ends are the same program on the same
 * kind of machine, so structs without pointers travel as they are; what is mostly zero (histograms)
 * travels without the zeros. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "comm/net.h"
#include "run/state.h"

/* How long process 0 waits for the others' results once the run was stopped, and they for it. */
#define PATIENCE_S 6

struct part {
	uint32_t layout; /* of the structs */
	uint32_t epochs_begun, epochs_done, epochs_planned;
	bool trained, stuck, has_ranks, has_host;
	uint64_t generated_files, generated_bytes;
	uint64_t memory_bound_bytes, peak_rss_bytes;
};
#define LAYOUT                                                                                     \
	(uint32_t)(sizeof(struct part) + 3 * sizeof(struct rank_result) +                          \
		   5 * sizeof(struct rank_epoch) + 13 * sizeof(struct checkpoint_times) +          \
		   7 * sizeof(struct phase) + 11 * sizeof(struct host_facts) +                     \
		   17 * sizeof(struct epoch_usage) + 19 * sizeof(struct series_flow))

/* Words of 8 bytes: how many zeros, how many others, the others; and so on. */
static void put_sparse(struct buf *b, const void *p, size_t bytes)
{
	const uint64_t *w = p;
	size_t n = bytes / 8;

	for (size_t i = 0; i < n;) {
		uint32_t run[2] = {0, 0};
		size_t from;

		for (; i < n && w[i] == 0; i++)
			run[0]++;
		for (from = i; i < n && w[i] != 0; i++)
			run[1]++;
		buf_append(b, run, sizeof(run));
		buf_append(b, w + from, (size_t)run[1] * 8);
	}
}

static void put_text(struct buf *b, const char *s)
{
	uint32_t n = (uint32_t)strlen(s);

	buf_append(b, &n, sizeof(n));
	buf_append(b, s, n);
}

static void put_pairs(struct buf *b, const struct sysinfo_pair *p, size_t count)
{
	uint64_t n = count;

	buf_append(b, &n, sizeof(n));
	for (size_t i = 0; i < count; i++) {
		put_text(b, p[i].key);
		put_text(b, p[i].value);
	}
}

static void put_phase(struct buf *b, const struct phase *p)
{
	buf_append(b, p, sizeof(*p));
	buf_append(b, p->step, p->step ? p->steps * sizeof(*p->step) : 0);
}

static void put_rank(struct buf *b, const struct rank_result *k, uint32_t epochs)
{
	put_sparse(b, &k->train_io, sizeof(k->train_io));
	put_sparse(b, &k->eval_io, sizeof(k->eval_io));
	put_sparse(b, &k->save_io, sizeof(k->save_io));
	put_sparse(b, &k->load_io, sizeof(k->load_io));
	buf_append(b, &k->worker_busy_ns,
		   sizeof(*k) - offsetof(struct rank_result, worker_busy_ns));
	for (uint32_t i = 0; i < epochs; i++) {
		const struct rank_epoch *ep = &k->epoch[i];

		buf_append(b, ep, sizeof(*ep));
		for (uint32_t j = 0; j < ep->blocks; j++)
			put_phase(b, &ep->block[j]);
		if (ep->has_eval)
			put_phase(b, &ep->eval);
		buf_append(b, ep->save, ep->saves * sizeof(*ep->save));
		buf_append(b, ep->load, ep->loads * sizeof(*ep->load));
	}
}

static void put_flows(struct buf *b, const struct series *s)
{
	struct series_flow flow[SERIES_FLOWS_MAX];
	uint32_t n = (uint32_t)series_flows(s, flow);

	buf_append(b, &n, sizeof(n));
	buf_append(b, flow, n * sizeof(flow[0]));
}

static void part_pack(const struct run_state *s, struct buf *out)
{
	const struct result *r = s->r;
	struct part p = {
		.layout = LAYOUT,
		.epochs_begun = r->epochs_begun,
		.epochs_done = r->epochs_done,
		.epochs_planned = r->epochs_planned,
		.trained = r->trained,
		.stuck = r->stuck,
		/* a stuck thread still writes into them */
		.has_ranks = r->rank && r->usage && !r->stuck,
		.has_host = run_tells_host(s),
		.generated_files = r->generation.files,
		.generated_bytes = r->generation.bytes,
		.memory_bound_bytes = r->memory_bound_bytes,
		.peak_rss_bytes = proc_peak_rss_bytes(),
	};

	buf_append(out, &p, sizeof(p));
	if (p.has_host) {
		buf_append(out, &r->host, sizeof(r->host));
		put_pairs(out, r->host.cpuinfo, r->host.cpuinfo_count);
		put_pairs(out, r->host.meminfo, r->host.meminfo_count);
	}
	if (!p.has_ranks)
		return;
	for (uint32_t i = 0; i < r->epochs_begun; i++) {
		buf_append(out, &r->usage[i], sizeof(r->usage[i]));
		if (p.has_host)
			put_pairs(out, r->usage[i].meminfo, r->usage[i].meminfo_count);
	}
	for (uint32_t k = 0; k < s->locals; k++)
		put_rank(out, &r->rank[k], r->epochs_begun);
	put_flows(out, r->series);
}

/* ---- back ---- */

struct reader {
	const char *p;
	size_t left;
	bool bad;
};

static void get(struct reader *in, void *out, size_t n)
{
	if (in->bad || in->left < n) {
		in->bad = true;
		memset(out, 0, n);
		return;
	}
	memcpy(out, in->p, n);
	in->p += n;
	in->left -= n;
}

static void get_sparse(struct reader *in, void *out, size_t bytes)
{
	size_t n = bytes / 8;
	char *to = out;

	memset(out, 0, bytes);
	for (size_t i = 0; i < n && !in->bad;) {
		uint32_t run[2];

		get(in, run, sizeof(run));
		if ((size_t)run[0] + run[1] > n - i || run[0] + run[1] == 0) {
			in->bad = true;
			return;
		}
		i += run[0];
		get(in, to + i * 8, (size_t)run[1] * 8);
		i += run[1];
	}
}

static char *get_text(struct reader *in)
{
	uint32_t n;
	char *s;

	get(in, &n, sizeof(n));
	if (in->bad || n > in->left) {
		in->bad = true;
		return xstrdup("");
	}
	s = xstrndup(in->p, n);
	in->p += n;
	in->left -= n;
	return s;
}

static void get_pairs(struct reader *in, struct sysinfo_pair **out, size_t *count)
{
	uint64_t n;

	get(in, &n, sizeof(n));
	*out = NULL;
	*count = 0;
	if (in->bad || n > in->left / 8 || n == 0)
		return;
	*out = xcalloc(n, sizeof(**out));
	for (*count = 0; *count < n; ++*count) {
		(*out)[*count].key = get_text(in);
		(*out)[*count].value = get_text(in);
	}
}

/* Monotonic and wall times become those of process 0's clocks. */
struct shift {
	int64_t mono_ns, wall_ns;
};

static void move(int64_t *t, int64_t by)
{
	if (*t)
		*t -= by;
}

static void get_phase(struct reader *in, struct phase *p, const struct shift *by)
{
	get(in, p, sizeof(*p));
	p->step = NULL;
	p->shared = false;
	p->capacity = p->steps;
	move(&p->begin_ns, by->mono_ns);
	move(&p->end_ns, by->mono_ns);
	move(&p->begin_wall_ns, by->wall_ns);
	move(&p->end_wall_ns, by->wall_ns);
	if (in->bad || p->steps == 0)
		return;
	if (p->steps > in->left / sizeof(*p->step)) {
		in->bad = true;
		p->steps = 0;
		return;
	}
	p->step = calloc(p->steps, sizeof(*p->step));
	if (!p->step) {
		in->bad = true;
		p->steps = 0;
		return;
	}
	get(in, p->step, p->steps * sizeof(*p->step));
	for (uint64_t i = 0; by->mono_ns && i < p->steps; i++) {
		struct step_times *t = &p->step[i];

		t->ask_ns -= by->mono_ns;
		t->got_ns -= by->mono_ns;
		t->compute_begin_ns -= by->mono_ns;
		t->compute_end_ns -= by->mono_ns;
		t->barrier_in_ns -= by->mono_ns;
		t->barrier_out_ns -= by->mono_ns;
	}
}

static struct checkpoint_times *get_checkpoints(struct reader *in, uint32_t *count,
						const struct shift *by)
{
	struct checkpoint_times *t = NULL;
	uint32_t n = *count;

	*count = 0;
	if (n == 0 || in->bad)
		return NULL;
	if (n <= in->left / sizeof(*t))
		t = calloc(n, sizeof(*t));
	in->bad = !t;
	if (!t)
		return NULL;
	get(in, t, n * sizeof(*t));
	*count = n;
	for (uint32_t i = 0; i < n; i++) {
		move(&t[i].begin_ns, by->mono_ns);
		move(&t[i].end_ns, by->mono_ns);
		move(&t[i].begin_wall_ns, by->wall_ns);
		move(&t[i].end_wall_ns, by->wall_ns);
	}
	return t;
}

static void get_epoch(struct reader *in, struct rank_epoch *ep, const struct shift *by)
{
	uint32_t blocks;

	get(in, ep, sizeof(*ep));
	blocks = ep->blocks;
	ep->blocks = 0;
	ep->block = NULL;
	ep->eval.step = NULL;
	ep->eval.steps = ep->has_eval ? ep->eval.steps : 0;
	move(&ep->begin_ns, by->mono_ns);
	move(&ep->train_end_ns, by->mono_ns);
	move(&ep->end_ns, by->mono_ns);
	move(&ep->begin_wall_ns, by->wall_ns);
	move(&ep->train_end_wall_ns, by->wall_ns);
	move(&ep->end_wall_ns, by->wall_ns);
	if (in->bad || blocks > in->left / sizeof(*ep->block))
		blocks = 0;
	if (blocks)
		ep->block = calloc(blocks, sizeof(*ep->block));
	for (; ep->block && ep->blocks < blocks; ep->blocks++)
		get_phase(in, &ep->block[ep->blocks], by);
	ep->block_capacity = ep->blocks;
	if (ep->has_eval)
		get_phase(in, &ep->eval, by);
	ep->save = get_checkpoints(in, &ep->saves, by);
	ep->load = get_checkpoints(in, &ep->loads, by);
}

static void get_rank(struct reader *in, struct rank_result *k, uint32_t epochs,
		     const struct shift *by)
{
	struct rank_epoch *epoch = k->epoch;

	get_sparse(in, &k->train_io, sizeof(k->train_io));
	get_sparse(in, &k->eval_io, sizeof(k->eval_io));
	get_sparse(in, &k->save_io, sizeof(k->save_io));
	get_sparse(in, &k->load_io, sizeof(k->load_io));
	get(in, &k->worker_busy_ns, sizeof(*k) - offsetof(struct rank_result, worker_busy_ns));
	k->epoch = epoch;
	if (k->slow.n > SLOW_SAMPLES_KEPT)
		in->bad = true;
	for (uint32_t i = 0; !in->bad && i < k->slow.n; i++)
		move(&k->slow.kept[i].begin_ns, by->mono_ns);
	for (uint32_t i = 0; i < epochs && !in->bad; i++)
		get_epoch(in, &k->epoch[i], by);
	k->lost = in->bad;
}

static void add_io(struct proc_io *to, const struct proc_io *from)
{
	to->known = to->known && from->known;
	to->rchar_bytes += from->rchar_bytes;
	to->read_bytes += from->read_bytes;
	to->write_bytes += from->write_bytes;
	to->syscr += from->syscr;
}

/* By the time in which programs waited, then by what was read again. */
static bool shorter_of_memory(const struct memory_pressure *a, const struct memory_pressure *b)
{
	return a->stall_ns > b->stall_ns ||
	       (a->stall_ns == b->stall_ns && a->refault_bytes > b->refault_bytes);
}

/* `memory`: of a process that tells of its host; NULL for others. */
static void get_usage(struct reader *in, struct epoch_usage *sum, uint32_t process, bool has_host,
		      struct host_memory *memory)
{
	struct epoch_usage one;

	get(in, &one, sizeof(one));
	if (memory)
		get_pairs(in, &memory->pairs, &memory->count);
	if (in->bad)
		return;
	if (has_host) {
		host_io_add(&sum->host_train, &one.host_train);
		host_io_add(&sum->host_eval, &one.host_eval);
		if (shorter_of_memory(&one.memory, &sum->memory)) {
			sum->memory = one.memory;
			sum->memory_process = process;
		}
	}
	add_io(&sum->train, &one.train);
	add_io(&sum->eval, &one.eval);
	sum->cpu_ns += one.cpu_ns;
}

static void get_host(struct reader *in, struct host_facts *h)
{
	get(in, h, sizeof(*h));
	h->cpuinfo = h->meminfo = NULL;
	h->cpuinfo_count = h->meminfo_count = 0;
	get_pairs(in, &h->cpuinfo, &h->cpuinfo_count);
	get_pairs(in, &h->meminfo, &h->meminfo_count);
}

static void get_flows(struct reader *in, struct series *s, const struct shift *by)
{
	struct series_flow flow[SERIES_FLOWS_MAX];
	uint32_t n;

	get(in, &n, sizeof(n));
	if (n > SERIES_FLOWS_MAX) {
		in->bad = true;
		return;
	}
	get(in, flow, n * sizeof(flow[0]));
	for (uint32_t i = 0; i < n; i++)
		flow[i].t_ns -= by->mono_ns;
	if (s && !in->bad)
		series_add_flows(s, flow, n);
}

static int part_unpack(struct run_state *s, uint32_t p, const struct buf *in, struct err *e)
{
	struct result *r = s->r;
	struct result_process *o = &r->process[p];
	const struct net_process *n = net_process(s->net, p);
	struct shift by = {n->mono_offset_ns, n->wall_offset_ns};
	struct reader from = {in->data, in->len, false};
	struct part head;

	get(&from, &head, sizeof(head));
	if (from.bad || head.layout != LAYOUT)
		return err_set(e, ERR_DATA,
			       "what process %u on host '%s' sent is not what this program sends",
			       p, n->host);
	o->peak_rss_bytes = head.peak_rss_bytes;
	r->generation.files += head.generated_files;
	r->generation.bytes += head.generated_bytes;
	r->memory_bound_bytes += head.memory_bound_bytes;
	if (head.has_host)
		get_host(&from, &o->host);
	if (!head.has_ranks || !r->rank || head.epochs_planned != r->epochs_planned ||
	    head.epochs_begun > r->epochs_planned)
		return 0;
	if (head.has_host)
		o->meminfo = try_calloc(r->epochs_planned, sizeof(*o->meminfo), "epochs", e);
	for (uint32_t i = 0; i < head.epochs_begun; i++)
		get_usage(&from, &r->usage[i], p, head.has_host,
			  o->meminfo ? &o->meminfo[i] : NULL);
	for (uint32_t k = 0; k < s->locals && !from.bad; k++)
		get_rank(&from, &r->rank[p * s->locals + k], head.epochs_begun, &by);
	get_flows(&from, r->series, &by);
	if (from.bad)
		return err_set(e, ERR_DATA, "the results of process %u on host '%s' are not whole",
			       p, n->host);
	o->lost = false;
	/* an epoch is begun or done when it is everywhere */
	r->epochs_begun = head.epochs_begun < r->epochs_begun ? head.epochs_begun : r->epochs_begun;
	r->epochs_done = head.epochs_done < r->epochs_done ? head.epochs_done : r->epochs_done;
	return 0;
}

/* ---- the end of a run ---- */

static int describe_processes(struct run_state *s, struct err *e)
{
	struct result *r = s->r;

	r->process = try_calloc(net_processes(s->net), sizeof(*r->process), "processes", e);
	if (!r->process)
		return -ENOMEM;
	r->processes = net_processes(s->net);
	r->nodes = net_nodes(s->net);
	for (uint32_t p = 0; p < r->processes; p++) {
		const struct net_process *n = net_process(s->net, p);
		struct result_process *o = &r->process[p];

		memcpy(o->hostname, n->host, sizeof(o->hostname));
		o->node = n->node;
		o->first_rank = p * s->locals;
		o->ranks = s->locals;
		o->own = p == net_process_number(s->net);
		o->lost = !o->own;
		o->wall_offset_ns = n->wall_offset_ns;
		o->offset_error_ns = n->rtt_ns / 2;
	}
	return 0;
}

/* Makes room for the ranks of all processes; those that are not here yet are lost. */
static int widen(struct run_state *s, struct err *e)
{
	struct result *r = s->r;
	struct rank_result *all;

	if (!r->rank)
		return 0;
	all = try_calloc(s->ranks, sizeof(*all), "ranks", e);
	if (!all)
		return -ENOMEM;
	for (uint32_t k = 0; k < s->ranks; k++) {
		struct rank_result *one = &all[k];

		if (k >= s->first && k < s->first + s->locals) {
			*one = r->rank[k - s->first];
			continue;
		}
		one->lost = true;
		io_stat_init(&one->train_io);
		io_stat_init(&one->eval_io);
		one->epoch = try_calloc(r->epochs_planned, sizeof(*one->epoch), "epochs", e);
		if (!one->epoch) {
			while (k-- > 0)
				if (all[k].lost)
					free(all[k].epoch);
			free(all);
			return -ENOMEM;
		}
	}
	free(r->rank);
	r->rank = all;
	r->ranks_here = s->ranks;
	r->first_rank = 0;
	return 0;
}

static int merge(struct run_state *s, struct err *e)
{
	uint32_t n = net_processes(s->net);
	struct buf *block = xcalloc(n, sizeof(*block));
	int rc = describe_processes(s, e);

	if (rc == 0)
		rc = net_collect(s->net, NULL, 0, PATIENCE_S, block, e);
	if (rc == 0)
		rc = widen(s, e);
	/* no place for the ranks of all: there is nothing to tell of them */
	if (rc < 0)
		s->r->trained = s->r->checkpointed = false;
	for (uint32_t p = 1; p < n; p++) {
		if (rc == 0 && block[p].len)
			rc = part_unpack(s, p, &block[p], e);
		buf_release(&block[p]);
	}
	free(block);
	return rc;
}

/* Process 0 is gone. The first of the others to say so in the output folder writes what it has;
 * lower ones are sooner. */
static bool take_over(struct run_state *s)
{
	AUTO_FREE char *mark = path_join(s->r->folder, RUN_TAKEN_OVER);
	AUTO_FREE char *done = path_join(s->r->folder, "result.json");
	uint32_t p = net_process_number(s->net);
	int fd;

	if (!s->r->folder[0])
		return false;
	clock_sleep_until(clock_now_ns() + (int64_t)(p < 20 ? p - 1 : 20) * NS_PER_S / 20);
	if (access(done, F_OK) == 0)
		return false;
	fd = open(mark, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);
	if (fd < 0)
		return false;
	close(fd);
	return true;
}

static void forget_take_over(struct run_state *s)
{
	AUTO_FREE char *mark = path_join(s->r->folder, RUN_TAKEN_OVER);

	unlink(mark);
}

static void tell_cause(struct run_state *s, int *rc, struct err *e)
{
	struct err cause = {0};

	if (net_cause(s->net, NULL, &cause)) {
		*rc = cause.code;
		*e = cause;
	}
}

void run_gather(struct run_state *s, int *rc, struct err *e)
{
	struct buf mine = {0};
	struct err own;
	int code;

	s->r->speaks = run_leads(s);
	if (!s->net)
		return;
	if (*rc < 0)
		net_stop(s->net, *rc == ERR_CANCELED ? NET_CAUSE_STOP : NET_CAUSE_ERROR, e);
	if (s->r->speaks) {
		code = merge(s, &own);
		tell_cause(s, rc, e);
		if (code < 0 && *rc == 0) {
			*rc = code;
			*e = own;
		}
		return;
	}
	part_pack(s, &mine);
	net_collect(s->net, mine.data, mine.len, PATIENCE_S, NULL, &own);
	buf_release(&mine);
	code = net_conclude(s->net, *rc, PATIENCE_S);
	tell_cause(s, rc, e);
	if (code != -EPIPE) {
		if (code < 0 && *rc == 0)
			*rc = err_set(e, code, "the run failed in process 0");
		return;
	}
	if (*rc == 0)
		*rc = err_set(e, -EPIPE,
			      "process 0 on host '%s' ended before it had written the "
			      "results",
			      net_process(s->net, 0)->host);
	if (take_over(s) && describe_processes(s, &own) == 0 && widen(s, &own) == 0)
		s->r->speaks = true;
}

int run_conclude(struct run_state *s, int rc)
{
	if (s->net && run_leads(s))
		net_conclude(s->net, rc, PATIENCE_S);
	else if (s->net && s->r->speaks)
		forget_take_over(s);
	return rc;
}
