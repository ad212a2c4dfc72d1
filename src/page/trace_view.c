#include "page/trace_view.h"

#include <assert.h>
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/compare.h"
#include "base/file.h"
#include "base/heap.h"
#include "base/map.h"
#include "base/str.h"
#include "page/trace_read.h"

#define LANES_MAX 4096u
#define PATHS_BYTES (1u << 20) /* of all names together */
#define FIRST_STEPS 3u

/* ---- names of spans as the kinds of a legend ---- */

const char *const view_kind_names[VIEW_KINDS] = {
	[VIEW_COMPUTE] = "compute",     [VIEW_WAIT] = "wait",
	[VIEW_BARRIER] = "barrier",     [VIEW_CHECKPOINT] = "checkpoint",
	[VIEW_STEP] = "step",           [VIEW_BATCH] = "batch",
	[VIEW_ITEM] = "item",           [VIEW_SAMPLE] = "sample",
	[VIEW_DECODE] = "decode",       [VIEW_PREPROCESS] = "preprocess",
	[VIEW_FRAMEWORK] = "framework", [VIEW_TRANSPORT] = "transport",
	[VIEW_OPEN] = "open, close",    [VIEW_METADATA] = "metadata",
	[VIEW_READ] = "read",           [VIEW_WRITE] = "write",
	[VIEW_OTHER] = "other",
};

static const struct {
	const char *cat, *name;
	enum view_kind kind;
} kinds[] = {
	{"rank", "run", VIEW_NOT},
	{"rank", "epoch", VIEW_NOT},
	{"rank", "train", VIEW_NOT},
	{"rank", "evaluate", VIEW_NOT},
	{"rank", "wait", VIEW_WAIT},
	{"rank", "step", VIEW_STEP},
	{"rank", "compute", VIEW_COMPUTE},
	{"rank", "barrier", VIEW_BARRIER},
	{"rank", "checkpoint", VIEW_CHECKPOINT},
	{"rank", "restore", VIEW_CHECKPOINT},
	{"reader", "sample", VIEW_SAMPLE},
	{"reader", "decode", VIEW_DECODE},
	{"reader", "preprocess", VIEW_PREPROCESS},
	{"reader", "item", VIEW_ITEM},
	{"reader", "batch", VIEW_BATCH},
	{"reader", "framework", VIEW_FRAMEWORK},
	{"reader", "transport", VIEW_TRANSPORT},
	{"reader", "unpack", VIEW_TRANSPORT},
	{"reader", "pin", VIEW_TRANSPORT},
	{"mapped", "touch", VIEW_READ},
	/* DFTracer's */
	{"ai_root", NULL, VIEW_NOT},
	{"pipeline", NULL, VIEW_NOT},
	{"dftracer", NULL, VIEW_NOT},
	{"dataloader", "fetch.iter", VIEW_WAIT},
	{"dataloader", "fetch.block", VIEW_STEP},
	{"compute", NULL, VIEW_COMPUTE},
	{"comm", NULL, VIEW_BARRIER},
	{"checkpoint", NULL, VIEW_CHECKPOINT},
	{"data", "preprocess", VIEW_PREPROCESS},
	{"data", "item", VIEW_ITEM},
	{"stoker", "batch", VIEW_BATCH},
	{"stoker", "decode", VIEW_DECODE},
	{"stoker", "framework", VIEW_FRAMEWORK},
	{"stoker", "transport", VIEW_TRANSPORT},
	{"stoker", "unpack", VIEW_TRANSPORT},
	{"stoker", "pin", VIEW_TRANSPORT},
};

static enum view_kind request_kind(const char *name, bool metadata)
{
	static const struct {
		const char *prefix;
		enum view_kind kind;
	} requests[] = {
		{"open", VIEW_OPEN},   {"creat", VIEW_OPEN},   {"close", VIEW_OPEN},
		{"fopen", VIEW_OPEN},  {"fclose", VIEW_OPEN},  {"read", VIEW_READ},
		{"pread", VIEW_READ},  {"fread", VIEW_READ},   {"touch", VIEW_READ},
		{"write", VIEW_WRITE}, {"pwrite", VIEW_WRITE}, {"fwrite", VIEW_WRITE},
	};

	if (metadata && !str_starts(name, "open") && !str_starts(name, "close"))
		return VIEW_METADATA;
	for (size_t i = 0; i < sizeof(requests) / sizeof(*requests); i++)
		if (str_starts(name, requests[i].prefix))
			return requests[i].kind;
	return VIEW_METADATA;
}

static enum view_kind view_kind_of(const char *cat, const char *name, bool metadata)
{
	if (strcmp(cat, "POSIX") == 0 || strcmp(cat, "STDIO") == 0 || strcmp(cat, "store") == 0)
		return request_kind(name, metadata);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (strcmp(cat, kinds[i].cat) == 0 &&
		    (!kinds[i].name || strcmp(name, kinds[i].name) == 0))
			return kinds[i].kind;
	if (strcmp(cat, "reader") == 0 && str_ends(name, ".read_index"))
		return VIEW_SAMPLE;
	return VIEW_OTHER;
}

/* ---- files ---- */

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static size_t add_like(const char *folder, const char *suffix, struct str_list *out)
{
	DIR *d = WITH_MEMORY(opendir(folder));
	const struct dirent *entry;
	size_t before = out->n;

	while (d && (entry = readdir(d)))
		if (str_starts(entry->d_name, "trace-") && str_ends(entry->d_name, suffix))
			str_list_add(out, path_join(folder, entry->d_name));
	if (d)
		closedir(d);
	if (out->n > before)
		qsort(out->v + before, out->n - before, sizeof(*out->v), by_name);
	return out->n - before;
}

void trace_view_files(const char *folder, struct str_list *out)
{
	char *one = path_join(folder, "trace.json");

	if (file_there(one, NULL) != 0) {
		str_list_add(out, one);
		return;
	}
	free(one);
	if (add_like(folder, ".json", out) == 0 && add_like(folder, ".pfw", out) == 0)
		add_like(folder, ".pfw.gz", out);
}

/* ---- the spans that are kept ---- */

static uint64_t span_weight(const struct view_span *s)
{
	uint64_t first = s->kind <= VIEW_STEP ? (uint64_t)1 << 62 : 0;

	return first + (uint64_t)s->dur_ns;
}

static bool lighter(const void *a, const void *b, const void *of)
{
	(void)of;
	return span_weight(a) < span_weight(b);
}

/* Counts a span of the window, and keeps it if it is among the longest; those of ranks go before
 * all others. */
static void view_keep(struct view_window *win, const struct view_span *s)
{
	assert(s->kind < VIEW_KINDS && s->dur_ns >= 0);
	win->seen++;
	win->count[s->kind]++;
	win->time_ns[s->kind] += (uint64_t)s->dur_ns;
	if (win->spans < TRACE_VIEW_SPANS) {
		win->span[win->spans++] = *s;
		if (win->spans == TRACE_VIEW_SPANS)
			heap_make(win->span, win->spans, sizeof(*s), lighter, NULL);
	} else if (span_weight(s) > span_weight(&win->span[0])) {
		win->span[0] = *s;
		heap_sink(win->span, win->spans, sizeof(*s), 0, lighter, NULL);
	}
}

/* By lane, by beginning, of those that begin together the longest first. */
static int by_time(const void *a, const void *b)
{
	const struct view_span *x = a, *y = b;

	return ORDER(x->lane, y->lane) ?: ORDER(x->begin_ns, y->begin_ns)
	       ?: ORDER(y->dur_ns, x->dur_ns) ?: ORDER(x->kind, y->kind);
}

/* The number of a span's name. */
static uint8_t view_name(struct trace_view *v, const char *name)
{
	for (size_t i = 0; i < v->names; i++)
		if (strncmp(v->name[i], name, sizeof(v->name[i]) - 1) == 0)
			return (uint8_t)i;
	/* the last stands for all that have no place */
	if (v->names + 1 == VIEW_NAMES)
		name = "other";
	if (v->names == VIEW_NAMES)
		return VIEW_NAMES - 1;
	snprintf(v->name[v->names], sizeof(v->name[0]), "%.47s", name);
	return (uint8_t)v->names++;
}

static int by_key(const void *a, const void *b)
{
	const struct view_path *x = a, *y = b;

	return ORDER(x->key, y->key);
}

int64_t trace_view_file(const struct trace_view *v, uint64_t key)
{
	struct view_path k = {.key = key};
	const struct view_path *p =
		v->paths ? bsearch(&k, v->path, v->paths, sizeof(k), by_key) : NULL;

	return p ? p - v->path : -1;
}

/* Lists the files of all kept spans; their names are not known yet. */
static void view_list_paths(struct trace_view *v)
{
	size_t n = 0;

	v->path = xcalloc(TRACE_VIEW_WINDOWS * TRACE_VIEW_SPANS, sizeof(*v->path));
	for (size_t i = 0; i < v->windows; i++)
		for (size_t k = 0; k < v->window[i].spans; k++)
			if (v->window[i].span[k].file != TRACE_NONE)
				v->path[n++].key = v->window[i].span[k].file;
	qsort(v->path, n, sizeof(*v->path), by_key);
	for (size_t i = 0; i < n; i++)
		if (v->paths == 0 || v->path[v->paths - 1].key != v->path[i].key)
			v->path[v->paths++] = v->path[i];
}

/* ---- what is built ---- */

/* A rank, or a process of it. */
struct proc {
	uint64_t pid;
	uint32_t rank;
	bool left_out;
	uint64_t last_epoch, last_step; /* of training steps seen in this pass */
	uint64_t wait_epoch, wait_step;
	int64_t wait_begin;
	int64_t eval_begin, eval_end;
};

/* A training step of one rank, from asking for its batch to the end of its barrier. */
struct rank_step {
	uint64_t epoch, step;
	int64_t begin_ns, end_ns;
};

struct view_builder {
	struct trace_view *v;
	const struct str_list *files;
	const struct trace_choice *choice;
	struct proc *proc;
	size_t procs;
	struct map proc_at, lane_at; /* by their numbers */
	bool ours;
	/* what the first pass learns */
	bool has_steps, has_slow;
	uint64_t first_epoch, first_step, last_epoch, last_step;
	struct rank_step slow;
	const struct proc *slow_proc; /* its name may come after it */
	uint32_t slow_rank;
	int64_t begin_ns, end_ns;
	uint64_t last_found[TRACE_VIEW_WINDOWS]; /* steps that are there */
	size_t found, bytes;                     /* names of files */
};

typedef bool (*item_fn)(struct view_builder *w, const struct trace_item *item); /* false: enough */

static void add_note(struct trace_view *v, const char *path, uint64_t line)
{
	if (!v->note[0])
		snprintf(v->note, sizeof(v->note),
			 "The trace '%.380s' ends unexpectedly in line %" PRIu64
			 ": only events before that line are shown.",
			 path, line);
}

/* Every item of every file. */
static int scan_items(struct view_builder *w, item_fn fn, struct err *e)
{
	struct trace_item item;
	bool more = true;

	for (size_t i = 0; more && i < w->files->n; i++) {
		struct trace_items r;
		int rc = 0;

		trace_items_open(&r, w->files->v[i]);
		while (more && (rc = trace_items_next(&r, &item, e)) == 1) {
			w->ours = r.ours;
			more = fn(w, &item);
		}
		/* each file of a run has the number of the whole run */
		RAISE(w->v->dropped, r.dropped);
		if (rc == 0 && r.cut)
			add_note(w->v, w->files->v[i], r.in.line + 1);
		trace_items_close(&r);
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* ---- ranks and their threads ---- */

static struct proc *proc_of(struct view_builder *w, uint64_t pid)
{
	uint32_t at = map_get(&w->proc_at, (int64_t)pid);

	if (at == MAP_NONE && w->procs == LANES_MAX)
		return NULL;
	if (at == MAP_NONE) {
		at = (uint32_t)w->procs++;
		w->proc[at] = (struct proc){.pid = pid, .rank = at};
		map_put(&w->proc_at, (int64_t)pid, at);
	}
	return &w->proc[at];
}

static struct view_lane *lane_of(struct view_builder *w, uint64_t pid, uint64_t tid)
{
	struct trace_view *v = w->v;
	uint32_t at = map_get2(&w->lane_at, (int64_t)pid, (int64_t)tid);

	if (at == MAP_NONE && v->lanes == LANES_MAX)
		return NULL;
	if (at == MAP_NONE) {
		at = (uint32_t)v->lanes++;
		v->lane[at] = (struct view_lane){.pid = pid, .tid = tid};
		map_put2(&w->lane_at, (int64_t)pid, (int64_t)tid, at);
	}
	return &v->lane[at];
}

static void name_process(struct view_builder *w, const struct trace_item *item)
{
	struct proc *p = proc_of(w, item->pid);
	unsigned rank;

	if (p && (sscanf(item->text, "rank %9u", &rank) == 1 ||
		  sscanf(item->text, "Rank %9u", &rank) == 1))
		p->rank = rank;
}

static bool rank_excluded(const struct view_builder *w, const struct proc *p)
{
	const struct trace_choice *c = w->choice;

	return c->has_ranks && (p->rank < c->first_rank || p->rank > c->last_rank);
}

/* ---- steps ---- */

/* Whether the span ends a step of training that was not there before: those of an evaluation have
 * the same numbers. */
static bool ends_step(struct proc *p, const struct trace_item *item, struct rank_step *out)
{
	enum view_kind kind = view_kind_of(item->cat, item->name, item->metadata);

	if (kind == VIEW_NOT && strcmp(item->name, "evaluate") == 0) {
		p->eval_begin = item->begin_ns;
		p->eval_end = item->end_ns;
	}
	if ((kind != VIEW_WAIT && kind != VIEW_STEP) || item->step == TRACE_NONE ||
	    (item->begin_ns >= p->eval_begin && item->begin_ns < p->eval_end))
		return false;
	if (kind == VIEW_WAIT) {
		p->wait_epoch = item->epoch;
		p->wait_step = item->step;
		p->wait_begin = item->begin_ns;
		return false;
	}
	*out = (struct rank_step){item->epoch == TRACE_NONE ? 1 : item->epoch, item->step,
				  item->begin_ns, item->end_ns};
	if (p->wait_epoch == item->epoch && p->wait_step == item->step &&
	    p->wait_begin <= item->begin_ns)
		out->begin_ns = p->wait_begin;
	if (out->epoch < p->last_epoch ||
	    (out->epoch == p->last_epoch && out->step <= p->last_step))
		return false;
	p->last_epoch = out->epoch;
	p->last_step = out->step;
	return true;
}

static void note_step(struct view_builder *w, const struct proc *p, const struct rank_step *s)
{
	const struct trace_choice *c = w->choice;

	if (c->epoch && s->epoch != c->epoch)
		return;
	if (!w->has_steps || s->epoch < w->first_epoch ||
	    (s->epoch == w->first_epoch && s->step < w->first_step)) {
		w->first_epoch = s->epoch;
		w->first_step = s->step;
	}
	if (!w->has_steps || s->epoch > w->last_epoch)
		w->last_epoch = s->epoch;
	if (!w->has_steps || s->step > w->last_step)
		w->last_step = s->step;
	w->has_steps = true;
	if (s->epoch == w->first_epoch && s->step < w->first_step + FIRST_STEPS)
		return;
	if (!w->has_slow || s->end_ns - s->begin_ns > w->slow.end_ns - w->slow.begin_ns) {
		w->has_slow = true;
		w->slow = *s;
		w->slow_proc = p;
	}
}

/* Before ranks can be chosen: DFTracer names them last. */
static bool pass_name_ranks(struct view_builder *w, const struct trace_item *item)
{
	if (item->kind == TRACE_ITEM_PROCESS)
		name_process(w, item);
	return true;
}

static bool pass_survey(struct view_builder *w, const struct trace_item *item)
{
	struct rank_step s;
	struct proc *p;

	if (item->kind == TRACE_ITEM_PROCESS)
		name_process(w, item);
	if (item->kind == TRACE_ITEM_THREAD) {
		struct view_lane *l = lane_of(w, item->pid, item->tid);

		if (l)
			snprintf(l->name, sizeof(l->name), "%.47s", item->text);
	}
	if (item->kind != TRACE_ITEM_SPAN)
		return true;
	p = proc_of(w, item->pid);
	if (!p || !lane_of(w, item->pid, item->tid)) {
		w->v->lanes_left_out++;
		return true;
	}
	if (rank_excluded(w, p))
		return true;
	if (w->end_ns == 0 || item->begin_ns < w->begin_ns)
		w->begin_ns = item->begin_ns;
	RAISE(w->end_ns, item->end_ns);
	if (ends_step(p, item, &s))
		note_step(w, p, &s);
	return true;
}

static int compare_ranks(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return ORDER(*x, *y);
}

static int choose_ranks(struct view_builder *w, struct err *e)
{
	uint32_t *rank = xcalloc(w->procs + 1, sizeof(*rank)), limit;
	size_t kept = 0;

	if (w->slow_proc)
		w->slow_rank = w->slow_proc->rank;
	for (size_t i = 0; i < w->procs; i++)
		rank[i] = w->proc[i].rank;
	qsort(rank, w->procs, sizeof(*rank), compare_ranks);
	limit = w->procs > TRACE_VIEW_RANKS ? rank[TRACE_VIEW_RANKS - 1] : UINT32_MAX;
	for (size_t i = 0; i < w->procs; i++) {
		struct proc *p = &w->proc[i];

		p->left_out = w->choice->has_ranks ? rank_excluded(w, p)
						   : p->rank > limit && !(w->has_slow &&
									  p->rank == w->slow_rank);
		kept += !p->left_out;
		p->last_epoch = p->last_step = p->wait_step = p->wait_epoch = 0;
		p->eval_begin = p->eval_end = 0;
	}
	w->v->ranks = w->procs;
	w->v->ranks_left_out = w->procs - kept;
	if (kept == 0 && w->procs)
		err_set(e, ERR_USAGE, "the trace contains ranks %u to %u, but none from %u to %u",
			rank[0], rank[w->procs - 1], w->choice->first_rank, w->choice->last_rank);
	free(rank);
	return kept == 0 && w->procs ? ERR_USAGE : 0;
}

static void slow_into(const struct view_builder *w, struct view_window *win)
{
	win->slowest = true;
	win->slow_step = w->slow.step;
	win->slow_rank = w->slow_rank;
	win->slow_ns = w->slow.end_ns - w->slow.begin_ns;
}

static int choose_steps(struct view_builder *w, struct err *e)
{
	const struct trace_choice *c = w->choice;
	struct view_window *win = w->v->window;
	uint64_t before;

	if (!w->has_steps && (c->epoch || c->first_step))
		return err_set(e, ERR_USAGE, "the trace contains no training steps%s",
			       c->epoch ? " of that epoch" : "");
	w->v->windows = w->end_ns > w->begin_ns;
	if (!w->has_steps) {
		win->begin_ns = w->begin_ns;
		win->end_ns = w->end_ns;
		return 0;
	}
	win->epoch = w->first_epoch;
	win->first_step = c->first_step ? c->first_step : w->first_step;
	win->last_step = c->first_step ? c->last_step : w->first_step + FIRST_STEPS - 1;
	if (c->first_step || !w->has_slow)
		return 0;
	before = w->slow.step > 1 ? w->slow.step - 1 : 1;
	if (w->slow.epoch == win->epoch && before <= win->last_step + 1) {
		win->last_step = w->slow.step + 1;
		slow_into(w, win);
		return 0;
	}
	win[1] = (struct view_window){
		.epoch = w->slow.epoch, .first_step = before, .last_step = w->slow.step + 1};
	slow_into(w, &win[1]);
	w->v->windows = 2;
	return 0;
}

/* Where the chosen steps lie in time. */
static bool pass_place(struct view_builder *w, const struct trace_item *item)
{
	struct proc *p = item->kind == TRACE_ITEM_SPAN ? proc_of(w, item->pid) : NULL;
	struct rank_step s;

	if (!p || p->left_out || !ends_step(p, item, &s))
		return true;
	for (size_t i = 0; i < w->v->windows; i++) {
		struct view_window *win = &w->v->window[i];

		if (s.epoch != win->epoch || s.step < win->first_step || s.step > win->last_step)
			continue;
		if (win->end_ns == 0 || s.begin_ns < win->begin_ns)
			win->begin_ns = s.begin_ns;
		RAISE(w->last_found[i], s.step);
		RAISE(win->end_ns, s.end_ns);
	}
	return true;
}

/* ---- spans ---- */

static void add_to_all(struct view_builder *w, struct view_span s, int64_t begin_ns)
{
	for (size_t i = 0; i < w->v->windows; i++) {
		struct view_window *win = &w->v->window[i];

		if (begin_ns >= win->end_ns || begin_ns + s.dur_ns <= win->begin_ns)
			continue;
		s.begin_ns = begin_ns - win->begin_ns;
		view_keep(win, &s);
	}
}

static void add_decode(struct view_builder *w, struct view_lane *l, int64_t until)
{
	struct view_span s = {.dur_ns = until - l->cursor,
			      .kind = VIEW_DECODE,
			      .lane = (uint32_t)(l - w->v->lane),
			      .file = TRACE_NONE,
			      .sample = l->sample,
			      .epoch = l->epoch,
			      .step = l->step,
			      .offset = TRACE_NONE,
			      .asked = TRACE_NONE,
			      .moved = TRACE_NONE};

	if (s.dur_ns <= 0)
		return;
	s.name = view_name(w->v, "decode");
	add_to_all(w, s, l->cursor);
}

/* What is left of a sample between its requests is decoding; a thread's spans come in order. */
static void follow_sample(struct view_builder *w, struct view_lane *l,
			  const struct trace_item *item, enum view_kind kind)
{
	bool request = kind >= VIEW_OPEN && kind <= VIEW_WRITE;

	if (l->sample_end && item->begin_ns >= l->sample_end) {
		add_decode(w, l, l->sample_end);
		l->sample_end = 0;
	}
	if (l->sample_end && request) {
		add_decode(w, l, item->begin_ns);
		RAISE(l->cursor, item->end_ns);
	}
	if (kind == VIEW_SAMPLE) {
		l->sample_end = item->end_ns;
		l->cursor = item->begin_ns;
		l->sample = item->sample;
		l->epoch = item->epoch;
		l->step = item->step;
	}
}

static bool pass_collect(struct view_builder *w, const struct trace_item *item)
{
	struct proc *p = item->kind == TRACE_ITEM_SPAN ? proc_of(w, item->pid) : NULL;
	struct view_lane *l = p && !p->left_out ? lane_of(w, item->pid, item->tid) : NULL;
	enum view_kind kind = view_kind_of(item->cat, item->name, item->metadata);
	struct view_span s;

	if (!l || kind == VIEW_NOT)
		return true;
	if (w->ours && !item->in_flight)
		follow_sample(w, l, item, kind);
	s = (struct view_span){.dur_ns = item->end_ns - item->begin_ns,
			       .kind = (uint8_t)kind,
			       .lane = (uint32_t)(l - w->v->lane),
			       .sample = item->sample,
			       .file = item->file,
			       .offset = item->offset,
			       .asked = item->asked,
			       .moved = item->moved,
			       .epoch = item->epoch,
			       .step = item->step,
			       .failed = item->failed};
	s.name = view_name(w->v, item->name);
	add_to_all(w, s, item->begin_ns);
	return true;
}

/* ---- names of files ---- */

static bool pass_name_files(struct view_builder *w, const struct trace_item *item)
{
	struct view_path *p;
	int64_t at;
	size_t n;

	if (item->file == TRACE_NONE || !item->text[0])
		return true;
	at = trace_view_file(w->v, item->file);
	p = at < 0 ? NULL : &w->v->path[at];
	if (!p || p->path)
		return true;
	n = strlen(item->text);
	w->found++;
	if (n < 1024 && w->bytes + n < PATHS_BYTES) {
		w->bytes += n;
		p->path = xstrdup(item->text);
	}
	return w->found < w->v->paths;
}

/* ---- the whole ---- */

static int build_view(struct view_builder *w, struct err *e)
{
	struct trace_view *v = w->v;
	int rc = w->choice->has_ranks ? scan_items(w, pass_name_ranks, e) : 0;

	if (rc == 0)
		rc = scan_items(w, pass_survey, e);
	if (rc == 0)
		rc = choose_ranks(w, e);
	if (rc == 0)
		rc = choose_steps(w, e);
	if (rc == 0 && w->has_steps)
		rc = scan_items(w, pass_place, e);
	if (rc < 0)
		return rc;
	if (w->choice->first_step && v->window[0].end_ns == 0)
		return err_set(e, ERR_USAGE,
			       "the trace contains no steps from %" PRIu64 " to %" PRIu64
			       " of epoch %" PRIu64 "; it contains epochs %" PRIu64 " to %" PRIu64
			       " with up to %" PRIu64 " steps",
			       v->window[0].first_step, v->window[0].last_step, v->window[0].epoch,
			       w->first_epoch, w->last_epoch, w->last_step);
	for (size_t i = 0; w->has_steps && i < v->windows; i++)
		v->window[i].last_step = w->last_found[i];
	for (size_t i = 0; i < v->windows; i++)
		v->window[i].span = xcalloc(TRACE_VIEW_SPANS, sizeof(struct view_span));
	rc = scan_items(w, pass_collect, e);
	for (size_t i = 0; i < v->lanes; i++)
		if (v->lane[i].sample_end)
			add_decode(w, &v->lane[i], v->lane[i].sample_end);
	for (size_t i = 0; i < v->windows; i++)
		qsort(v->window[i].span, v->window[i].spans, sizeof(struct view_span), by_time);
	view_list_paths(v);
	if (rc == 0 && v->paths)
		rc = scan_items(w, pass_name_files, e);
	for (size_t i = 0; i < v->lanes; i++) {
		const struct proc *p = proc_of(w, v->lane[i].pid);

		v->lane[i].rank = p ? p->rank : UINT32_MAX;
	}
	return rc;
}

int trace_view_build(struct trace_view *v, const struct str_list *files,
		     const struct trace_choice *choice, struct err *e)
{
	struct view_builder w = {.v = v, .files = files, .choice = choice};
	int rc;

	*v = (struct trace_view){0};
	v->lane = xcalloc(LANES_MAX, sizeof(*v->lane));
	w.proc = xcalloc(LANES_MAX, sizeof(*w.proc));
	rc = build_view(&w, e);
	free(w.proc);
	map_release(&w.proc_at);
	map_release(&w.lane_at);
	return rc;
}

void trace_view_release(struct trace_view *v)
{
	for (size_t i = 0; i < TRACE_VIEW_WINDOWS; i++)
		free(v->window[i].span);
	for (size_t i = 0; i < v->paths; i++)
		free(v->path[i].path);
	free(v->path);
	free(v->lane);
	*v = (struct trace_view){0};
}
