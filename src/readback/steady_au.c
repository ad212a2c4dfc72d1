
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "loader/loader.h"
#include "readback/record.h"

#define REPLICATES 400u
#define BLOCKS_AIM 8u
static const double BARRIER_MOST = 1.25; /* of the time of steps; more is a damaged file */

struct series {
	double *compute, *wall; /* of each measured step; compute: mean over ranks */
	size_t n, capacity;
};

/* Steps that every rank made of a phase. */
static size_t common_steps(const struct run_record *r, size_t epoch, size_t block)
{
	size_t least = SIZE_MAX;

	for (uint32_t k = 0; k < r->ranks; k++) {
		const struct record_phase *p;
		size_t n;

		if (r->rank[k].epochs <= epoch || r->rank[k].epoch[epoch].blocks <= block)
			return 0;
		p = &r->rank[k].epoch[epoch].block[block];
		n = p->computes < p->procs ? p->computes : p->procs;
		least = n < least ? n : least;
	}
	return least == SIZE_MAX ? 0 : least;
}

/* Mean compute over the ranks; the time of the slowest. */
static void step_of(const struct run_record *r, size_t epoch, size_t block, size_t i,
		    double *compute, double *wall)
{
	double sum = 0, most = 0;

	for (uint32_t k = 0; k < r->ranks; k++) {
		const struct record_phase *p = &r->rank[k].epoch[epoch].block[block];

		sum += p->compute[i];
		most = fmax(most, p->proc[i]);
	}
	*compute = sum / r->ranks;
	*wall = most;
}

/* What of a second of computation was not late for want of a processor. */
static double in_time(const struct run_record *r, size_t epoch)
{
	const struct part *of =
		part_at(part(record_part(r, F_RUN_TRAINING), F_TRAINING_EPOCHS), epoch);
	double late = figure(of, F_EPOCH_LATE), compute = figure(of, F_EPOCH_COMPUTE);

	return compute > 0 && late > 0 && late < compute ? 1 - late / compute : 1;
}

static void add_phase(struct series *s, const struct run_record *r, size_t epoch, size_t block,
		      uint64_t turn, struct steady_au *out)
{
	size_t n = common_steps(r, epoch, block), from = out->ahead + 1;
	double all = 0, scale = 1, share = in_time(r, epoch);
	double whole = n ? r->rank[0].epoch[epoch].block[block].wall_s : NAN;

	if (n <= from) {
		out->left_out += n;
		return;
	}
	if ((n - from) / turn >= 2)
		from += (n - from) % turn;
	if (s->n + n > s->capacity) {
		s->capacity = 2 * (s->n + n);
		s->compute = xrealloc(s->compute, s->capacity * sizeof(*s->compute));
		s->wall = xrealloc(s->wall, s->capacity * sizeof(*s->wall));
	}
	for (size_t i = 0; i < n; i++) {
		double compute, wall;

		step_of(r, epoch, block, i, &compute, &wall);
		all += wall;
		if (i < from)
			continue;
		s->compute[s->n] = compute * share;
		s->wall[s->n++] = wall;
	}
	if (isfinite(whole) && whole > all && all > 0)
		scale = fmin(whole / all, BARRIER_MOST);
	for (size_t i = s->n - (n - from); i < s->n; i++)
		s->wall[i] *= scale;
	out->left_out += from;
}

/* Resamples blocks that follow one another, with the end joined to the begin (Politis and Romano
 * 1992), as steps that share a turn of the workers are not independent. */
static double bootstrap_error(const struct series *s, size_t length)
{
	size_t blocks = (s->n + length - 1) / length;
	double *compute = xcalloc(s->n, sizeof(*compute)), *wall = xcalloc(s->n, sizeof(*wall));
	double sum = 0, squares = 0;
	uint64_t word = 0;

	for (size_t k = 0; k < length; k++) {
		compute[0] += s->compute[k % s->n];
		wall[0] += s->wall[k % s->n];
	}
	for (size_t i = 1; i < s->n; i++) {
		size_t in = (i + length - 1) % s->n;

		compute[i] = compute[i - 1] + s->compute[in] - s->compute[i - 1];
		wall[i] = wall[i - 1] + s->wall[in] - s->wall[i - 1];
	}
	for (unsigned b = 0; b < REPLICATES; b++) {
		double c = 0, w = 0, au;

		for (size_t k = 0; k < blocks; k++) {
			size_t at = philox_at(0x6b6e6565, s->n, word++) % s->n;

			c += compute[at];
			w += wall[at];
		}
		au = 100 * c / w;
		sum += au;
		squares += au * au;
	}
	free(compute);
	free(wall);
	sum /= REPLICATES;
	return sqrt(fmax(0, squares / REPLICATES - sum * sum));
}

void steady_au_find(const struct run_record *r, struct steady_au *out)
{
	const struct loader_ops *loader =
		r->has_workload ? loader_find(r->workload.reader.data_loader) : NULL;
	double compute = 0, wall = 0;
	struct series s = {0};
	uint32_t workers = 0;
	uint64_t turn;

	*out = (struct steady_au){.au = NAN, .error = NAN, .step_s = NAN};
	if (!loader || r->ranks == 0)
		return;
	loader->window(&r->workload, &workers, &out->ahead);
	turn = out->turn = workers ? workers : 1;
	for (size_t e = 0; e < r->rank[0].epochs; e++)
		for (size_t b = 0; b < r->rank[0].epoch[e].blocks; b++)
			add_phase(&s, r, e, b, turn, out);
	for (size_t i = 0; i < s.n; i++) {
		compute += s.compute[i];
		wall += s.wall[i];
	}
	out->known = wall > 0;
	if (out->known) {
		size_t length = (size_t)fmax((double)turn, cbrt((double)s.n));

		if (length * BLOCKS_AIM > s.n && length > turn)
			length = turn;
		if (length * 2 > s.n)
			length = s.n / 2 ? s.n / 2 : 1;
		out->steps = s.n;
		out->per_block = length;
		out->blocks = (double)s.n / (double)length;
		out->au = 100 * compute / wall;
		out->step_s = wall / (double)s.n;
		out->error = s.n > 1 ? bootstrap_error(&s, length) : INFINITY;
	}
	free(s.compute);
	free(s.wall);
}
