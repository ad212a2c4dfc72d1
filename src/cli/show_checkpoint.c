/* Ranks that hold the same are one line: a job of thousands has a handful of kinds. */
#include "cli/show_checkpoint.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/say.h"
#include "base/str.h"
#include "checkpoint/checkpoint_plan.h"
#include "cli/args.h"
#include "cli/cli.h"

#define RANGES_MAX 4 /* then "..." */

struct rank_kind {
	struct checkpoint_rank_bytes bytes;
	struct {
		int64_t first, last;
	} range[RANGES_MAX];
	int ranges;
	bool more;
	int64_t last, count;
};

struct kinds {
	struct rank_kind *v;
	size_t n;
};

static struct rank_kind *kind_of(struct kinds *k, const struct checkpoint_rank_bytes *b)
{
	struct rank_kind *new;

	/* the next rank is most likely like the one before it */
	for (size_t i = k->n; i-- > 0;)
		if (memcmp(&k->v[i].bytes, b, sizeof(*b)) == 0)
			return &k->v[i];
	k->v = xrealloc(k->v, (k->n + 1) * sizeof(*k->v));
	new = &k->v[k->n++];
	*new = (struct rank_kind){.bytes = *b, .last = -2};
	return new;
}

static void add_rank(struct kinds *k, int64_t rank, const struct checkpoint_rank_bytes *b)
{
	struct rank_kind *kind = kind_of(k, b);

	if (kind->last != rank - 1) {
		if (kind->ranges < RANGES_MAX) {
			kind->range[kind->ranges].first = rank;
			kind->ranges++;
		} else {
			kind->more = true;
		}
	}
	if (!kind->more)
		kind->range[kind->ranges - 1].last = rank;
	kind->last = rank;
	kind->count++;
}

static void print_kind(const struct rank_kind *k)
{
	char ranges[200] = "", size[32];
	size_t at = 0;

	for (int i = 0; i < k->ranges; i++) {
		at += (size_t)snprintf(ranges + at, sizeof(ranges) - at, "%s%" PRId64, i ? "," : "",
				       k->range[i].first);
		if (k->range[i].last > k->range[i].first)
			at += (size_t)snprintf(ranges + at, sizeof(ranges) - at, "-%" PRId64,
					       k->range[i].last);
	}
	say(stdout,
	    "%8" PRId64 "  %16" PRIu64 " %16" PRIu64 " %16" PRIu64 "  %10s %7" PRIu64 "  %s%s\n",
	    k->count, k->bytes.part[CHECKPOINT_WHOLE] + k->bytes.part[CHECKPOINT_LAYERS],
	    k->bytes.part[CHECKPOINT_OPTIMIZER], k->bytes.total,
	    str_bytes((double)k->bytes.total, size, sizeof(size)), k->bytes.files, ranges,
	    k->more ? ",..." : "");
}

static double gib(uint64_t bytes)
{
	return (double)bytes / (1 << 30);
}

static void print_when(const struct workload *w)
{
	int64_t steps = w->checkpoint.steps_between_checkpoints;
	int64_t writes = w->checkpoint.num_checkpoints_write;
	int64_t reads = w->checkpoint.num_checkpoints_read;

	say(stdout, "when   ");
	if (!w->workflow.checkpoint)
		say(stdout, "never: workflow.checkpoint is false\n");
	else if (!w->workflow.train)
		say(stdout, "nothing is trained: %" PRId64 " written, %" PRId64 " read back\n",
		    writes > 0 ? writes : 0, reads > 0 ? reads : 0);
	else if (w->checkpoint.seconds_between_checkpoints > 0)
		say(stdout,
		    "after the first step that ends at least %g s after the last checkpoint, or "
		    "training, began\n",
		    w->checkpoint.seconds_between_checkpoints);
	else if (steps > 0)
		say(stdout, "after every %" PRId64 " steps of an epoch\n", steps);
	else if (steps == 0)
		say(stdout, "never: checkpoint.steps_between_checkpoints is 0\n");
	else
		say(stdout, "after epoch %" PRId64 ", then every %" PRId64 "\n",
		    w->checkpoint.checkpoint_after_epoch, w->checkpoint.epochs_between_checkpoints);
}

static void print_plan(const struct workload *w, const struct checkpoint_plan *p)
{
	struct kinds kinds = {0};
	struct checkpoint_totals t;

	for (int64_t rank = 0; rank < p->ranks; rank++) {
		struct checkpoint_rank_bytes b;

		checkpoint_rank_size(p, rank, &b);
		add_rank(&kinds, rank, &b);
	}
	checkpoint_plan_totals(p, &t);
	say(stdout,
	    "%s: %" PRId64 " rank%s%s, tensor %" PRId64 " x pipeline %" PRId64 " x data %" PRId64
	    ", ZeRO %d",
	    w->model.name, p->ranks, p->ranks == 1 ? "" : "s",
	    w->checkpoint.mode == 1 ? " (subset)" : "", p->tensor, p->pipeline, p->data, p->zero);
	if (p->parameters && !p->predefined)
		say(stdout, ", %" PRIu64 " parameters", p->parameters);
	say(stdout, "\nfolder %s/global_epoch<E>_step<S>\n", w->checkpoint.checkpoint_folder);
	print_when(w);
	say(stdout, "\n");
	say(stdout, "%8s  %16s %16s %16s  %10s %7s  %s\n", "ranks", "model bytes",
	    "optimizer bytes", "bytes per rank", "", "files", "rank numbers");
	for (size_t i = 0; i < kinds.n; i++)
		print_kind(&kinds.v[i]);
	say(stdout,
	    "\nmodel      %18" PRIu64 " bytes  %14.6f GiB\n"
	    "optimizer  %18" PRIu64 " bytes  %14.6f GiB\n"
	    "total      %18" PRIu64 " bytes  %14.6f GiB in %" PRIu64 " file%s of %" PRIu64
	    " rank%s\n",
	    t.model_bytes, gib(t.model_bytes), t.optimizer_bytes, gib(t.optimizer_bytes),
	    t.total_bytes, gib(t.total_bytes), t.files, t.files == 1 ? "" : "s", t.writers,
	    t.writers == 1 ? "" : "s");
	if (t.ranks < t.whole_ranks)
		say(stdout,
		    "partial: the first %" PRIu64 " of the %" PRIu64 " ranks of a job whose "
		    "checkpoint has %" PRIu64 " bytes (%.3g %%)\n",
		    t.ranks, t.whole_ranks, t.whole_bytes,
		    t.whole_bytes ? 100 * (double)t.total_bytes / (double)t.whole_bytes : 0.0);
	if (t.dlio_model_bytes + t.dlio_optimizer_bytes != t.total_bytes)
		say(stdout, "in DLIO    %18" PRIu64 " bytes  %14.6f GiB (docs/compatibility.md)\n",
		    t.dlio_model_bytes + t.dlio_optimizer_bytes,
		    gib(t.dlio_model_bytes + t.dlio_optimizer_bytes));
	free(kinds.v);
}

int show_checkpoint(const struct command *c, int argc, char **argv)
{
	struct cli_args a;
	struct workload w = {0};
	struct checkpoint_plan p;
	struct err e = {0};
	int rc = cli_args_parse(c, &a, argc, argv, &e);

	a.inspect = true;
	if (rc == 0) {
		rc = cli_load_workload(&a, clock_wall_ns(), &w, &e);
		if (rc == 0)
			rc = checkpoint_plan_init(&p, &w, a.ranks, &e);
		if (rc == 0) {
			print_plan(&w, &p);
			checkpoint_plan_release(&p);
		}
	}
	workload_release(&w);
	cli_args_release(&a);
	return rc < 0 ? cli_fail(&e) : 0;
}
