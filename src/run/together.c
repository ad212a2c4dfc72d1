/* Collectives of processes; and a process's part of the result as bytes, and back. Both ends are
 * the same program on the same kind of machine, so structs without pointers travel as they are;
 * what is mostly zero (histograms) travels without the zeros. */
#include "run/together.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "comm/net.h"
#include "dataset/manifest.h"
#include "run/apart.h"

/* Files whose size every host is asked for. */
#define PROBE_FILES 64u

void run_place_init(struct run_place *at, struct net *net, struct comm *processes, uint32_t ranks)
{
	assert(!net || ranks % net_processes(net) == 0);
	at->net = net;
	at->processes = processes;
	at->ranks = ranks;
	at->locals = net ? ranks / net_processes(net) : ranks;
	at->first = net ? net_process_number(net) * at->locals : 0;
}

bool run_leads(const struct run_place *at)
{
	return !at->net || net_process_number(at->net) == 0;
}

bool run_reads_host(const struct run_place *at)
{
	return !at->net || net_process(at->net, net_process_number(at->net))->on_node == 0;
}

int run_agree(const struct run_place *at, int rc, struct err *e)
{
	if (rc == 0)
		rc = alloc_refusal(e);
	return at->net ? comm_agree(at->processes, rc, e) : rc;
}

int run_share(const struct run_place *at, void *p, size_t n, struct err *e)
{
	int rc = at->net ? comm_broadcast(at->processes, 0, p, n) : 0;

	/* what stopped it is found by the agreement */
	return rc < 0 ? run_agree(at, err_set(e, rc, "the run was stopped"), e) : 0;
}

int run_follow(const struct run_place *at, int rc, void *p, size_t n, struct err *e)
{
	struct err outcome = {0};

	if (run_leads(at) && rc < 0)
		outcome = *e;
	if (run_share(at, &outcome, sizeof(outcome), e) < 0)
		return e->code;
	if (outcome.code < 0) {
		*e = outcome;
		return outcome.code;
	}
	return run_share(at, p, n, e);
}

uint32_t run_processes_here(const struct run_place *at)
{
	uint32_t n = 0;

	if (!at->net)
		return 1;
	for (uint32_t p = 0; p < net_processes(at->net); p++)
		n += net_process(at->net, p)->node ==
		     net_process(at->net, net_process_number(at->net))->node;
	return n;
}

uint32_t run_nodes(const struct run_place *at)
{
	return at->net ? net_nodes(at->net) : 1;
}

/* ---- one dataset for all hosts ---- */

struct seen_dataset {
	bool manifest;
	char created[32];
	uint64_t config_hash;
	uint32_t files;
	struct {
		uint64_t bytes; /* UINT64_MAX: not there */
		int64_t mtime_ns;
	} file[2 * PROBE_FILES];
};

struct probe_answer {
	bool same, one_file_system;
	char host[NET_HOST_MAX];
	char why[512];
};

static void probe_kind(const struct dataset *d, struct store *store, enum dataset_kind kind,
		       struct seen_dataset *out)
{
	struct io io = {.store = store};
	uint64_t files = d->files[kind], n = files < PROBE_FILES ? files : PROBE_FILES;
	char path[DATASET_PATH_MAX];

	for (uint64_t i = 0; i < n; i++) {
		struct store_stat st;
		uint64_t index = n > 1 ? i * (files - 1) / (n - 1) : 0;
		bool there = dataset_path(d, kind, index, path, sizeof(path), NULL) == 0 &&
			     io_stat_path(&io, path, &st, NULL) == 0;

		out->file[out->files].bytes = there ? st.bytes : UINT64_MAX;
		out->file[out->files++].mtime_ns = there ? st.mtime_ns : 0;
	}
}

struct probing {
	const struct dataset *d;
	struct store *store;
	bool eval;
	struct seen_dataset seen;
};

static int probe_dataset(void *arg, struct err *e)
{
	struct probing *p = arg;
	const struct dataset *d = p->d;
	struct store *store = p->store;
	struct seen_dataset *out = &p->seen;
	struct io io = {.store = store};
	struct manifest m;

	(void)e;
	if (manifest_read(&io, d->folder, &m, NULL) == 0 && m.found) {
		out->manifest = true;
		memcpy(out->created, m.created, sizeof(out->created));
		out->config_hash = m.config_hash;
	}
	probe_kind(d, store, DATASET_TRAIN, out);
	if (p->eval)
		probe_kind(d, store, DATASET_EVAL, out);
	assert(out->files <= 2 * PROBE_FILES);
	return 0;
}

/* Left behind, it keeps what it was given. */
static int probe_apart(const struct shared_look *l, struct seen_dataset *out, struct err *e)
{
	struct probing *p = xcalloc(1, sizeof(*p));
	AUTO_FREE char *place = xasprintf("the storage below '%.600s'", l->d->folder);
	const struct apart a = {
		.work = probe_dataset, .arg = p, .place = place, .limit_s = l->limit_s};
	bool stuck = false;
	int rc;

	p->d = l->d;
	p->store = l->store;
	p->eval = l->eval;
	rc = run_apart(l->stop, &a, &stuck, e);
	*l->stuck = *l->stuck || stuck;
	if (rc == 0)
		*out = p->seen;
	if (!stuck)
		free(p);
	return rc;
}

static void compare_probes(const struct seen_dataset *a, const struct seen_dataset *b,
			   struct probe_answer *out)
{
	uint32_t absent = 0, other = 0;

	out->one_file_system = true;
	for (uint32_t i = 0; i < a->files; i++) {
		absent += b->file[i].bytes == UINT64_MAX;
		other += b->file[i].bytes != UINT64_MAX && b->file[i].bytes != a->file[i].bytes;
		if (a->file[i].mtime_ns != b->file[i].mtime_ns)
			out->one_file_system = false;
	}
	out->same = absent == 0 && other == 0 && a->manifest == b->manifest &&
		    a->config_hash == b->config_hash && strcmp(a->created, b->created) == 0;
	if (absent || other)
		snprintf(out->why, sizeof(out->why),
			 "of %u files checked, %u are missing and %u differ in size", a->files,
			 absent, other);
	else if (!out->same)
		snprintf(out->why, sizeof(out->why), "the manifests differ");
}

static int judge_probes(const struct run_place *at, const struct buf *part, const char *folder,
			char *note, size_t note_size, struct err *e)
{
	struct buf hosts = {0};
	const char *why = "";
	uint32_t bad = 0;
	bool one = true;
	size_t n;

	for (uint32_t p = 0; p < net_processes(at->net); p++) {
		const struct probe_answer *a = (const void *)part[p].data;

		if (part[p].len != sizeof(*a) || net_process(at->net, p)->on_node != 0)
			continue;
		one = one && a->one_file_system;
		if (a->same)
			continue;
		buf_printf(&hosts, "%s'%s'", bad ? ", " : "", a->host);
		why = bad++ ? why : a->why;
	}
	if (bad) {
		err_set(e, ERR_DATA,
			"the hosts see different datasets in '%s': on %.500s it differs from "
			"the one on host '%s' (%s): use a folder that all hosts share, or an "
			"identical copy on each",
			folder, hosts.data, net_process(at->net, 0)->host, why);
		buf_release(&hosts);
		return ERR_DATA;
	}
	n = strlen(note);
	snprintf(note + n, note_size - n, ". %s %u hosts %s", one ? "All" : "Each of",
		 net_nodes(at->net), one ? "see the same files" : "has a copy of its own");
	return 0;
}

int run_check_shared(const struct run_place *at, const struct shared_look *look, char *note,
		     size_t note_size, struct err *e)
{
	const struct net_process *me;
	struct seen_dataset *first, *mine;
	struct probe_answer a = {.same = true, .one_file_system = true};
	struct buf *part;
	int rc, seen = 0;

	if (!at->net || net_nodes(at->net) == 1)
		return 0;
	me = net_process(at->net, net_process_number(at->net));
	first = xcalloc(2, sizeof(*first));
	mine = first + 1;
	part = xcalloc(net_processes(at->net), sizeof(*part));
	if (me->on_node == 0)
		seen = probe_apart(look, mine, e);
	*first = *mine;
	rc = run_agree(at, seen, e);
	if (rc == 0)
		rc = run_share(at, first, sizeof(*first), e);
	if (rc == 0 && me->on_node == 0)
		compare_probes(first, mine, &a);
	memcpy(a.host, me->host, sizeof(a.host));
	if (rc == 0 && comm_gather(at->processes, &a, sizeof(a), part) < 0)
		rc = err_set(e, ERR_CANCELED, "the run was stopped");
	if (rc == 0 && run_leads(at))
		rc = judge_probes(at, part, look->d->folder, note, note_size, e);
	for (uint32_t p = 0; p < net_processes(at->net); p++)
		buf_release(&part[p]);
	free(part);
	free(first);
	return run_agree(at, rc, e);
}

/* ---- a part of the result as bytes ---- */

struct part {
	uint32_t layout; /* of the structs */
	uint32_t epochs_begun, epochs_done, epochs_planned;
	bool trained, stuck, has_ranks, has_host;
	uint64_t generated_files, generated_bytes;
	uint64_t memory_bound_bytes, peak_rss_bytes;
	struct probe probe; /* its logs stay here */
	uint32_t servers;
};
#define LAYOUT                                                                                     \
	(uint32_t)(sizeof(struct part) + 3 * sizeof(struct rank_result) +                          \
		   5 * sizeof(struct rank_epoch) + 13 * sizeof(struct checkpoint_times) +          \
		   7 * sizeof(struct phase) + 11 * sizeof(struct host_facts) +                     \
		   17 * sizeof(struct epoch_usage) + 19 * sizeof(struct series_flow) +             \
		   23 * sizeof(struct server_use))

/* Words of 8 bytes: how many zeros, how many others, the others; and so on. */
static void pack_sparse(struct buf *b, const void *p, size_t bytes)
{
	const uint64_t *w = p;
	size_t n = bytes / 8;

	assert(bytes % 8 == 0);
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

/* Counters that may not be there. */
static void pack_counters(struct buf *b, const struct io_stat *io)
{
	uint64_t there = io != NULL;

	buf_append(b, &there, sizeof(there));
	if (io)
		pack_sparse(b, io, sizeof(*io));
}

static void pack_text(struct buf *b, const char *s)
{
	uint32_t n = (uint32_t)strlen(s);

	buf_append(b, &n, sizeof(n));
	buf_append(b, s, n);
}

static void pack_pairs(struct buf *b, const struct sysinfo_pair *p, size_t count)
{
	uint64_t n = count;

	buf_append(b, &n, sizeof(n));
	for (size_t i = 0; i < count; i++) {
		pack_text(b, p[i].key);
		pack_text(b, p[i].value);
	}
}

static void pack_phase(struct buf *b, const struct phase *p)
{
	buf_append(b, p, sizeof(*p));
	buf_append(b, p->step, p->step ? p->steps * sizeof(*p->step) : 0);
}

static void pack_rank(struct buf *b, const struct rank_result *k, uint32_t epochs)
{
	pack_sparse(b, &k->train_io, sizeof(k->train_io));
	pack_counters(b, k->save_io);
	pack_counters(b, k->load_io);
	buf_append(b, &k->worker_busy_ns,
		   sizeof(*k) - offsetof(struct rank_result, worker_busy_ns));
	for (uint32_t i = 0; i < epochs; i++) {
		const struct rank_epoch *ep = &k->epoch[i];

		buf_append(b, ep, sizeof(*ep));
		for (uint32_t j = 0; j < ep->blocks; j++)
			pack_phase(b, &ep->block[j]);
		if (ep->has_eval)
			pack_phase(b, &ep->eval);
		buf_append(b, ep->save, ep->saves * sizeof(*ep->save));
		buf_append(b, ep->load, ep->loads * sizeof(*ep->load));
	}
}

static void pack_flows(struct buf *b, const struct series *s)
{
	struct series_flow flow[SERIES_FLOWS_MAX];
	uint32_t n = (uint32_t)series_flows(s, flow);

	assert(n <= SERIES_FLOWS_MAX);
	buf_append(b, &n, sizeof(n));
	buf_append(b, flow, n * sizeof(flow[0]));
}

void part_pack(const struct run_place *at, const struct result *r, struct buf *out)
{
	struct part p = {
		.layout = LAYOUT,
		.epochs_begun = r->epochs_begun,
		.epochs_done = r->epochs_done,
		.epochs_planned = r->epochs_planned,
		.trained = r->trained,
		.stuck = r->stuck,
		/* also of threads that hang: what they measured before is there */
		.has_ranks = r->rank && r->usage,
		.has_host = run_reads_host(at),
		.generated_files = r->generation.files,
		.generated_bytes = r->generation.bytes,
		.memory_bound_bytes = r->memory_bound_bytes,
		.peak_rss_bytes = proc_peak_rss_bytes(),
		.probe = r->probe,
		.servers = r->servers.n,
	};

	buf_append(out, &p, sizeof(p));
	if (p.has_host) {
		buf_append(out, &r->host, sizeof(r->host));
		pack_pairs(out, r->host.cpuinfo, r->host.cpuinfo_count);
		pack_pairs(out, r->host.meminfo, r->host.meminfo_count);
	}
	buf_append(out, r->servers.use, r->servers.n * sizeof(*r->servers.use));
	if (!p.has_ranks)
		return;
	for (uint32_t i = 0; i < r->epochs_begun; i++) {
		buf_append(out, &r->usage[i], sizeof(r->usage[i]));
		if (p.has_host)
			pack_pairs(out, r->usage[i].meminfo, r->usage[i].meminfo_count);
	}
	for (uint32_t k = 0; k < at->locals; k++)
		pack_rank(out, &r->rank[k], r->epochs_begun);
	pack_counters(out, r->eval_io);
	pack_flows(out, r->series);
}

/* ---- back ---- */

struct part_reader {
	const char *p;
	size_t left;
	bool bad;
};

static void unpack_bytes(struct part_reader *in, void *out, size_t n)
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

static void unpack_sparse(struct part_reader *in, void *out, size_t bytes)
{
	size_t n = bytes / 8;
	char *to = out;

	memset(out, 0, bytes);
	for (size_t i = 0; i < n && !in->bad;) {
		uint32_t run[2];

		unpack_bytes(in, run, sizeof(run));
		if ((size_t)run[0] + run[1] > n - i || run[0] + run[1] == 0) {
			in->bad = true;
			return;
		}
		i += run[0];
		unpack_bytes(in, to + i * 8, (size_t)run[1] * 8);
		i += run[1];
	}
}

/* `n` zeroed structs for as many in the part; NULL, and the part is bad, where it has fewer. */
static void *unpack_room(struct part_reader *in, uint64_t n, size_t size)
{
	void *p = in->bad || n > in->left / size ? NULL : calloc(n, size);

	in->bad = !p;
	return p;
}

/* NULL: there are none, or the part is bad. */
static struct io_stat *unpack_counters(struct part_reader *in)
{
	struct io_stat *io;
	uint64_t there;

	unpack_bytes(in, &there, sizeof(there));
	if (!there)
		return NULL;
	io = malloc(sizeof(*io));
	if (io)
		unpack_sparse(in, io, sizeof(*io));
	in->bad = in->bad || !io;
	if (in->bad) {
		free(io);
		return NULL;
	}
	return io;
}

static char *unpack_text(struct part_reader *in)
{
	uint32_t n;
	char *s;

	unpack_bytes(in, &n, sizeof(n));
	if (in->bad || n > in->left) {
		in->bad = true;
		return xstrdup("");
	}
	s = xstrndup(in->p, n);
	in->p += n;
	in->left -= n;
	return s;
}

static void unpack_pairs(struct part_reader *in, struct sysinfo_pair **out, size_t *count)
{
	uint64_t n;

	unpack_bytes(in, &n, sizeof(n));
	*out = NULL;
	*count = 0;
	if (in->bad || n > in->left / 8 || n == 0)
		return;
	*out = xcalloc(n, sizeof(**out));
	for (*count = 0; *count < n; ++*count) {
		(*out)[*count].key = unpack_text(in);
		(*out)[*count].value = unpack_text(in);
	}
}

/* Monotonic and wall times become those of process 0's clocks. */
struct clock_shift {
	int64_t mono_ns, wall_ns;
};

static void shift_time(int64_t *t, int64_t by)
{
	if (*t)
		*t -= by;
}

static void unpack_phase(struct part_reader *in, struct phase *p, const struct clock_shift *by)
{
	unpack_bytes(in, p, sizeof(*p));
	p->step = NULL;
	p->shared = false;
	p->capacity = p->steps;
	shift_time(&p->begin_ns, by->mono_ns);
	shift_time(&p->end_ns, by->mono_ns);
	shift_time(&p->begin_wall_ns, by->wall_ns);
	shift_time(&p->end_wall_ns, by->wall_ns);
	if (in->bad || p->steps == 0)
		return;
	p->step = unpack_room(in, p->steps, sizeof(*p->step));
	if (!p->step) {
		p->steps = 0;
		return;
	}
	unpack_bytes(in, p->step, p->steps * sizeof(*p->step));
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

static struct checkpoint_times *unpack_checkpoints(struct part_reader *in, uint32_t *count,
						   const struct clock_shift *by)
{
	struct checkpoint_times *t;
	uint32_t n = *count;

	*count = 0;
	t = n ? unpack_room(in, n, sizeof(*t)) : NULL;
	if (!t)
		return NULL;
	unpack_bytes(in, t, n * sizeof(*t));
	*count = n;
	for (uint32_t i = 0; i < n; i++) {
		shift_time(&t[i].begin_ns, by->mono_ns);
		shift_time(&t[i].end_ns, by->mono_ns);
		shift_time(&t[i].begin_wall_ns, by->wall_ns);
		shift_time(&t[i].end_wall_ns, by->wall_ns);
	}
	return t;
}

static void unpack_epoch(struct part_reader *in, struct rank_epoch *ep,
			 const struct clock_shift *by)
{
	uint32_t blocks;

	unpack_bytes(in, ep, sizeof(*ep));
	blocks = ep->blocks;
	ep->blocks = 0;
	ep->block = NULL;
	ep->eval.step = NULL;
	ep->eval.steps = ep->has_eval ? ep->eval.steps : 0;
	shift_time(&ep->begin_ns, by->mono_ns);
	shift_time(&ep->train_end_ns, by->mono_ns);
	shift_time(&ep->end_ns, by->mono_ns);
	shift_time(&ep->begin_wall_ns, by->wall_ns);
	shift_time(&ep->train_end_wall_ns, by->wall_ns);
	shift_time(&ep->end_wall_ns, by->wall_ns);
	if (in->bad || blocks > in->left / sizeof(*ep->block))
		blocks = 0;
	if (blocks)
		ep->block = calloc(blocks, sizeof(*ep->block));
	for (; ep->block && ep->blocks < blocks; ep->blocks++)
		unpack_phase(in, &ep->block[ep->blocks], by);
	ep->block_capacity = ep->blocks;
	if (ep->has_eval)
		unpack_phase(in, &ep->eval, by);
	ep->save = unpack_checkpoints(in, &ep->saves, by);
	ep->load = unpack_checkpoints(in, &ep->loads, by);
}

static void unpack_rank(struct part_reader *in, struct rank_result *k, uint32_t epochs,
			const struct clock_shift *by)
{
	struct rank_epoch *epoch = k->epoch;

	unpack_sparse(in, &k->train_io, sizeof(k->train_io));
	k->save_io = unpack_counters(in);
	k->load_io = unpack_counters(in);
	unpack_bytes(in, &k->worker_busy_ns,
		     sizeof(*k) - offsetof(struct rank_result, worker_busy_ns));
	k->epoch = epoch;
	if (k->slow.n > SLOW_SAMPLES_KEPT)
		in->bad = true;
	for (uint32_t i = 0; !in->bad && i < k->slow.n; i++)
		shift_time(&k->slow.kept[i].begin_ns, by->mono_ns);
	for (uint32_t i = 0; i < epochs && !in->bad; i++)
		unpack_epoch(in, &k->epoch[i], by);
	k->lost = in->bad;
}

static void add_proc_io(struct proc_io *to, const struct proc_io *from)
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

/* Standing still, then waiting for a processor. */
static bool worse_of_processors(const struct processors *a, const struct processors *b)
{
	int64_t stood = a->stopped_ns + a->frozen_ns, other = b->stopped_ns + b->frozen_ns;

	return stood != other ? stood > other : a->waited_ns > b->waited_ns;
}

/* `memory`: of a process that tells of its host; NULL for others. */
static void unpack_usage(struct part_reader *in, struct epoch_usage *sum, uint32_t process,
			 bool has_host, struct host_memory *memory)
{
	struct epoch_usage one;

	unpack_bytes(in, &one, sizeof(one));
	if (memory)
		unpack_pairs(in, &memory->pairs, &memory->count);
	if (in->bad)
		return;
	if (has_host) {
		host_io_add(&sum->host_train, &one.host_train);
		host_io_add(&sum->host_eval, &one.host_eval);
		residency_join(&sum->cache_start, &one.cache_start, process);
		residency_join(&sum->cache_end, &one.cache_end, process);
		if (shorter_of_memory(&one.memory, &sum->memory)) {
			sum->memory = one.memory;
			sum->memory_process = process;
		}
	}
	if (worse_of_processors(&one.cpu_train, &sum->cpu_train)) {
		sum->cpu_train = one.cpu_train;
		sum->cpu_train_process = process;
	}
	if (worse_of_processors(&one.cpu_eval, &sum->cpu_eval)) {
		sum->cpu_eval = one.cpu_eval;
		sum->cpu_eval_process = process;
	}
	sum->cpu_eval_ns += one.cpu_eval_ns;
	sum->own_mapped_bytes += one.own_mapped_bytes;
	add_proc_io(&sum->train, &one.train);
	add_proc_io(&sum->eval, &one.eval);
	sum->cpu_ns += one.cpu_ns;
}

static void unpack_host(struct part_reader *in, struct host_facts *h)
{
	unpack_bytes(in, h, sizeof(*h));
	h->cpuinfo = h->meminfo = NULL;
	h->cpuinfo_count = h->meminfo_count = 0;
	unpack_pairs(in, &h->cpuinfo, &h->cpuinfo_count);
	unpack_pairs(in, &h->meminfo, &h->meminfo_count);
}

static void unpack_flows(struct part_reader *in, struct series *s, const struct clock_shift *by)
{
	struct series_flow flow[SERIES_FLOWS_MAX];
	uint32_t n;

	unpack_bytes(in, &n, sizeof(n));
	if (n > SERIES_FLOWS_MAX) {
		in->bad = true;
		return;
	}
	unpack_bytes(in, flow, n * sizeof(flow[0]));
	for (uint32_t i = 0; i < n; i++)
		flow[i].t_ns -= by->mono_ns;
	if (s && !in->bad)
		series_add_flows(s, flow, n);
}

/* `sum`: NULL when this process evaluates nothing. */
static void unpack_evaluation(struct part_reader *in, struct io_stat *sum)
{
	struct io_stat *io = unpack_counters(in);

	if (io && sum)
		io_stat_merge(sum, io);
	free(io);
}

static void add_point(struct probe_point *p, const struct probe_point *q)
{
	p->seconds = fmax(p->seconds, q->seconds);
	p->samples += q->samples;
	p->opens += q->opens;
	p->requests += q->requests;
	p->bytes += q->bytes;
	p->open_s += q->open_s;
	p->read_s += q->read_s;
	p->meta_s += q->meta_s;
	p->reader_s += q->reader_s;
	p->longest_s = fmax(p->longest_s, q->longest_s);
	p->cpu_s += q->cpu_s;
}

/* The readers of another process, at the same points. */
static void add_probe(struct probe *sum, const struct probe *one)
{
	sum->cold = sum->cold && one->cold;
	for (uint32_t i = 0; i < sum->count && i < one->count && i < PROBE_POINTS_MAX; i++)
		add_point(&sum->point[i], &one->point[i]);
	for (uint32_t i = 0; i < sum->sized_count && i < one->sized_count && i < PROBE_SIZED_MAX;
	     i++)
		add_point(&sum->sized[i], &one->sized[i]);
}

static int unpack_servers(struct part_reader *in, uint32_t n, struct servers *sum, struct err *e)
{
	struct server_use one;
	int rc = 0;

	for (uint32_t i = 0; i < n && !in->bad && rc == 0; i++) {
		unpack_bytes(in, &one, sizeof(one));
		one.address[sizeof(one.address) - 1] = '\0';
		if (!in->bad)
			rc = servers_add(sum, &one, e);
	}
	return rc;
}

int part_unpack(const struct run_place *at, struct result *r, uint32_t p, const struct buf *in,
		struct err *e)
{
	struct result_process *o = &r->process[p];
	const struct net_process *n = net_process(at->net, p);
	struct clock_shift by = {n->mono_offset_ns, n->wall_offset_ns};
	struct part_reader from = {in->data, in->len, false};
	struct part head;

	unpack_bytes(&from, &head, sizeof(head));
	if (from.bad || head.layout != LAYOUT)
		return err_set(
			e, ERR_DATA,
			"the results of process %u on host '%s' do not match this build of the "
			"program: start the same build on all hosts",
			p, n->host);
	o->peak_rss_bytes = head.peak_rss_bytes;
	r->generation.files += head.generated_files;
	r->generation.bytes += head.generated_bytes;
	r->memory_bound_bytes += head.memory_bound_bytes;
	add_probe(&r->probe, &head.probe);
	if (head.has_host)
		unpack_host(&from, &o->host);
	if (unpack_servers(&from, head.servers, &r->servers, e) < 0)
		return e->code;
	if (!head.has_ranks || !r->rank || head.epochs_planned != r->epochs_planned ||
	    head.epochs_begun > r->epochs_planned)
		return 0;
	if (head.has_host)
		o->meminfo = try_calloc(r->epochs_planned, sizeof(*o->meminfo), "epochs", e);
	for (uint32_t i = 0; i < head.epochs_begun; i++)
		unpack_usage(&from, &r->usage[i], p, head.has_host,
			     o->meminfo ? &o->meminfo[i] : NULL);
	for (uint32_t k = 0; k < at->locals && !from.bad; k++)
		unpack_rank(&from, &r->rank[p * at->locals + k], head.epochs_begun, &by);
	unpack_evaluation(&from, r->eval_io);
	unpack_flows(&from, r->series, &by);
	if (from.bad)
		return err_set(e, ERR_DATA, "the results of process %u on host '%s' are incomplete",
			       p, n->host);
	o->lost = false;
	/* an epoch is begun or done when it is everywhere */
	r->epochs_begun = head.epochs_begun < r->epochs_begun ? head.epochs_begun : r->epochs_begun;
	r->epochs_done = head.epochs_done < r->epochs_done ? head.epochs_done : r->epochs_done;
	return 0;
}
