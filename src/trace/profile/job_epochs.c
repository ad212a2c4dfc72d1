/* Passes over the samples: which belong to training and which to evaluation, and how often each was
 * read.
 *
 * A pass ends where a reader of its generation comes to a sample for the second time, where another
 * generation of workers begins, or where files of another part of the dataset follow (a folder, or
 * names with val or test) in one go. Passes that share most of their samples are over one part of
 * the dataset. Without workers, training and evaluation that follow each other over files of one
 * kind look like one pass; then the samples before a place in it are the same in all passes, in
 * another order. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/compare.h"
#include "base/file.h"
#include "base/vector.h"
#include "trace/profile/profile_parts.h"

#define PARTS_MAX 3
#define AGAIN_LEAST 2 /* in a generation of workers in the mean */
#define SHUFFLED 0.1  /* of the neighbours of a reader, in another order than in the first pass */
#define SAME_PART 0.5 /* of the samples of a pass */
#define FEW_SWITCHES 0.1 /* between parts by name: of the visits */

struct pass {
	uint32_t rank, round, part;
	uint32_t turn; /* which of its rank's passes: those of all ranks are one over the dataset */
	size_t visits;
};

struct passes {
	struct pass *v;
	size_t n, room;
	uint32_t *of;    /* of each visit */
	uint32_t *order; /* visits by rank, then time */
};

static uint32_t new_pass(struct passes *p, uint32_t rank, uint32_t round)
{
	VECTOR_PUSH(p->v, p->n, p->room, {.rank = rank, .round = round, .part = JOB_NONE});
	return (uint32_t)(p->n - 1);
}

static void take_visit(struct passes *p, size_t visit, uint32_t pass)
{
	p->v[pass].visits++;
	p->of[visit] = pass;
}

static uint32_t visit_rank(const struct profile *a, const struct visit *v)
{
	return a->reader[v->reader].rank;
}

static void order_by_rank(const struct profile *a, struct passes *p)
{
	AUTO_FREE size_t *at = xcalloc(a->trainers + 2, sizeof(*at));

	p->order = xcalloc(a->visits + 1, sizeof(*p->order));
	for (size_t i = 0; i < a->visits; i++)
		at[visit_rank(a, &a->visit[i]) + 1]++;
	for (size_t t = 0; t < a->trainers; t++)
		at[t + 1] += at[t];
	for (size_t i = 0; i < a->visits; i++)
		p->order[at[visit_rank(a, &a->visit[i])]++] = (uint32_t)i;
}

/* The part of the dataset by name: the group, and whether the name says evaluation. */
static uint32_t named_part(const struct profile *a, uint32_t sample)
{
	uint32_t file = a->sample[sample].file;

	return 2 * a->group_of[file] +
	       profile_is_evaluation_name(path_basename(a->job->file[file].name));
}

/* Whether parts by name are read in one go each. */
static bool parts_in_turn(const struct profile *a, const struct passes *p, const uint32_t *named)
{
	AUTO_FREE uint32_t *last = job_numbers(a->readers);
	size_t switches = 0;

	for (size_t i = 0; i < a->visits; i++) {
		const struct visit *v = &a->visit[p->order[i]];

		switches += last[v->reader] != JOB_NONE && last[v->reader] != named[v->sample];
		last[v->reader] = named[v->sample];
	}
	return switches > 0 && (double)switches < FEW_SWITCHES * (double)a->visits;
}

#define WHOLE_PASS 0.95 /* of the samples of a part, in each pass over it but the last */

/* Whether passes that go on behind those of other parts cover their parts: an evaluation in the
 * middle of an epoch does not end it. Else the epoch drew some of the samples, and ended there. */
static bool covers_parts(const struct profile *a, const struct passes *p, const uint32_t *named,
			 size_t parts)
{
	AUTO_FREE size_t *samples = xcalloc(parts + 1, sizeof(*samples)),
			 *part = xcalloc(p->n + 1, sizeof(*part));
	AUTO_FREE uint32_t *last = job_numbers((size_t)a->trainers * parts);

	for (size_t i = 0; i < a->samples; i++)
		samples[named[i]]++;
	for (size_t i = 0; i < a->visits; i++)
		part[p->of[i]] = named[a->visit[i].sample];
	for (size_t i = 0; i < p->n; i++)
		last[p->v[i].rank * parts + part[i]] = (uint32_t)i;
	for (size_t i = 0; i < p->n; i++)
		if (i != last[p->v[i].rank * parts + part[i]] &&
		    (double)p->v[i].visits < WHOLE_PASS * (double)samples[part[i]])
			return false;
	return true;
}

/* `revisits`: a second visit ends a pass; `through`: the visits of another part do not. */
static void find_passes_of(const struct profile *a, struct passes *p, bool revisits, bool through,
			   const uint32_t *named, size_t parts, bool in_turn)
{
	AUTO_FREE uint32_t *stamp = job_numbers(a->samples), *now = NULL, *part = NULL;
	uint32_t rounds = 1, rank = JOB_NONE;

	for (size_t t = 0; t < a->trainers; t++)
		RAISE(rounds, a->trainer[t].rounds);
	now = job_numbers(rounds * parts);
	part = job_numbers(rounds);
	p->n = 0;
	for (size_t i = 0; i < a->visits; i++) {
		const struct visit *v = &a->visit[p->order[i]];
		const struct job_reader *r = &a->reader[v->reader];
		uint32_t *at = &now[r->round * parts + (through ? named[v->sample] : 0)];

		if (r->rank != rank) {
			rank = r->rank;
			memset(now, 0xff, rounds * parts * sizeof(*now)); /* JOB_NONE */
		}
		if (*at == JOB_NONE || (revisits && stamp[v->sample] == *at) ||
		    (in_turn && !through && part[r->round] != named[v->sample]))
			*at = new_pass(p, rank, r->round);
		part[r->round] = named[v->sample];
		stamp[v->sample] = *at;
		take_visit(p, p->order[i], *at);
	}
}

/* Whether they are whole passes over parts with other names. */
static bool find_passes(const struct profile *a, struct passes *p, bool revisits)
{
	AUTO_FREE uint32_t *named = job_numbers(a->samples);
	size_t parts = 2 * a->groups;
	bool in_turn;

	for (size_t i = 0; i < a->samples; i++)
		named[i] = named_part(a, (uint32_t)i);
	in_turn = parts_in_turn(a, p, named);
	if (in_turn && revisits) {
		find_passes_of(a, p, true, true, named, parts, true);
		if (covers_parts(a, p, named, parts))
			return true;
	}
	find_passes_of(a, p, revisits, false, named, parts, in_turn);
	return false;
}

/* How often samples were read, rounded; `share`: of them, at least, so often exactly. 0: fewer. */
static uint32_t read_evenly(const struct profile *a, const uint32_t *times, double share)
{
	uint64_t epochs = (a->visits + a->samples / 2) / a->samples;
	size_t same = 0;

	for (size_t i = 0; i < a->samples; i++)
		same += times[i] == epochs;
	return (double)same >= share * (double)a->samples ? (uint32_t)epochs : 0;
}

/* Ranks without generations of workers that draw other samples in each epoch: a rank's pass ends
 * where it has read its share. Only where all samples are read as often, and the ranks as many. */
static bool passes_of_shares(const struct profile *a, const uint32_t *times, struct passes *p)
{
	AUTO_FREE size_t *of_rank = xcalloc(a->trainers + 1, sizeof(*of_rank)),
			 *done = xcalloc(a->trainers + 1, sizeof(*done));
	uint32_t epochs = read_evenly(a, times, 0.9);

	if (a->trainers < 2 || a->trainings > 0 || epochs == 0)
		return false;
	for (size_t i = 0; i < a->visits; i++)
		of_rank[visit_rank(a, &a->visit[i])]++;
	for (size_t t = 0; t < a->trainers; t++)
		if (a->trainer[t].rounds > 1 || of_rank[t] != of_rank[0] ||
		    of_rank[t] % epochs != 0 || of_rank[t] / epochs >= a->samples)
			return false;
	p->n = 0;
	for (uint32_t t = 0; t < a->trainers; t++)
		for (uint32_t k = 0; k < epochs; k++)
			new_pass(p, t, 0);
	for (size_t i = 0; i < a->visits; i++) {
		uint32_t t = visit_rank(a, &a->visit[i]);

		take_visit(p, i, t * epochs + (uint32_t)(done[t]++ / (of_rank[t] / epochs)));
	}
	return true;
}

/* Readers with samples of their own each, which are not all at the same pass: where all samples
 * were read as often, the k-th visit of a sample is of the k-th pass. */
static bool passes_of_readers(const struct profile *a, const uint32_t *times, struct passes *p)
{
	AUTO_FREE uint32_t *pass = xcalloc(a->samples + 1, sizeof(*pass));
	uint32_t epochs = read_evenly(a, times, 1);
	size_t threads = 0;

	for (size_t i = 0; i < a->readers; i++)
		threads += a->reader[i].worker && a->reader[i].thread != JOB_NONE;
	if (a->trainers != 1 || a->trainer[0].rounds > 1 || a->samples < 2 || threads < 2 ||
	    epochs == 0 || epochs >= p->n)
		return false;
	p->n = 0;
	for (uint32_t k = 0; k < epochs; k++)
		new_pass(p, 0, 0);
	for (size_t i = 0; i < a->visits; i++)
		take_visit(p, i, pass[a->visit[i].sample]++);
	return true;
}

/* Drawn with replacement, samples come again long before all were read, and how often varies as
 * much as a Poisson variable. */
static bool with_replacement(const struct profile *a, const uint32_t *times, const struct passes *p)
{
	double mean = (double)a->visits / (double)a->samples, variance = 0;
	size_t long_ones = 0;

	if (p->n < 3 || a->samples < 8)
		return false;
	for (size_t i = 0; i < p->n; i++)
		long_ones += 2 * p->v[i].visits * a->trainers >= a->samples;
	if (2 * long_ones >= p->n)
		return false;
	for (size_t i = 0; i < a->samples; i++)
		variance += (times[i] - mean) * (times[i] - mean);
	return variance / (double)a->samples > 0.3 * mean;
}

/* ---- parts of the dataset ---- */

/* Which pass of its rank each is; how many a rank has at most. */
static uint32_t number_turns(const struct profile *a, struct passes *p)
{
	AUTO_FREE uint32_t *turn = xcalloc(a->trainers + 1, sizeof(*turn));
	uint32_t most = 0;

	for (size_t i = 0; i < p->n; i++) {
		p->v[i].turn = turn[p->v[i].rank]++;
		RAISE(most, p->v[i].turn + 1);
	}
	return most;
}

/* Passes that share samples are of one part; the number of parts. `part_of`: of each sample,
 * JOB_NONE before. */
static uint32_t find_parts(const struct profile *a, struct passes *p, uint32_t *part_of)
{
	uint32_t parts = 0, turns = number_turns(a, p);
	AUTO_FREE size_t *begin = xcalloc((size_t)turns + 2, sizeof(*begin));
	AUTO_FREE uint32_t *visit = xcalloc(a->visits + 1, sizeof(*visit)),
			   *part = xcalloc((size_t)turns + 1, sizeof(*part));

	for (size_t i = 0; i < a->visits; i++)
		begin[p->v[p->of[i]].turn + 1]++;
	for (size_t i = 0; i < turns; i++)
		begin[i + 1] += begin[i];
	for (size_t i = 0; i < a->visits; i++)
		visit[begin[p->v[p->of[i]].turn]++] = (uint32_t)i;
	for (size_t i = 0, at = 0; i < turns; at = begin[i], i++) {
		size_t shared[PARTS_MAX + 1] = {0}, n = begin[i] - at;
		uint32_t best = 0;

		for (size_t k = at; k < begin[i]; k++) {
			uint32_t known = part_of[a->visit[visit[k]].sample];

			shared[known == JOB_NONE ? PARTS_MAX : known]++;
		}
		for (uint32_t k = 1; k < PARTS_MAX; k++)
			if (shared[k] > shared[best])
				best = k;
		part[i] = (double)shared[best] >= SAME_PART * (double)n ? best : parts++;
		if (parts > PARTS_MAX) {
			parts = 0;
			break;
		}
		for (size_t k = at; k < begin[i]; k++)
			if (part_of[a->visit[visit[k]].sample] == JOB_NONE)
				part_of[a->visit[visit[k]].sample] = part[i];
	}
	if (parts == 0) { /* no clear parts */
		parts = 1;
		memset(part, 0, turns * sizeof(*part));
		memset(part_of, 0, a->samples * sizeof(*part_of));
	}
	for (size_t i = 0; i < p->n; i++)
		p->v[i].part = part[p->v[i].turn];
	return parts;
}

/* ---- training and evaluation in one pass ---- */

/* The least number of samples m, such that the first m of each pass are the same ones, in another
 * order; 0: none. Only of passes of one length. */
static size_t closed_prefix(const struct profile *a, const struct passes *p)
{
	size_t n = p->v[0].visits, m = 0, moved = 0, pairs = 0, back = 0;
	AUTO_FREE uint32_t *place = xcalloc(a->samples + 1, sizeof(*place)),
			   *end = xcalloc(n + 1, sizeof(*end));
	/* of each reader: the place of its last visit, and in which pass that was */
	AUTO_FREE uint32_t *last = xcalloc(a->readers + 1, sizeof(*last)),
			   *last_pass = xcalloc(a->readers + 1, sizeof(*last_pass));
	AUTO_FREE size_t *at = xcalloc(p->n, sizeof(*at)), *high = xcalloc(p->n, sizeof(*high));

	for (size_t i = 0; i < a->visits; i++) {
		const struct visit *v = &a->visit[p->order[i]];
		uint32_t pass = p->of[p->order[i]];

		if (pass == 0) {
			place[v->sample] = (uint32_t)at[0]++;
			continue;
		}
		RAISE(high[pass], place[v->sample]);
		moved += place[v->sample] != at[pass];
		if (last_pass[v->reader] == pass) {
			pairs++;
			back += place[v->sample] < last[v->reader];
		}
		last_pass[v->reader] = pass;
		last[v->reader] = place[v->sample];
		at[pass]++;
		/* the first at[pass] samples of the pass are those of the first pass */
		if (high[pass] + 1 == at[pass] && at[pass] <= n)
			end[at[pass]]++;
	}
	for (size_t i = 2; i + 2 <= n && m == 0; i++)
		if (end[i] == p->n - 1)
			m = i;
	/* several readers in one order come to some samples sooner in one pass than in another */
	return moved > n / 4 && (double)back > SHUFFLED * (double)pairs ? m : 0;
}

static void split_passes(const struct profile *a, struct passes *p)
{
	struct passes whole = *p;
	AUTO_FREE size_t *at = NULL;
	size_t m;

	if (p->n < 2 || a->trainers != 1 || a->trainer[0].rounds > 1)
		return;
	for (size_t i = 1; i < p->n; i++)
		if (p->v[i].visits != p->v[0].visits)
			return;
	m = closed_prefix(a, p);
	if (m == 0)
		return;
	at = xcalloc(whole.n, sizeof(*at));
	p->v = NULL;
	p->n = p->room = 0;
	for (size_t i = 0; i < 2 * whole.n; i++)
		new_pass(p, 0, whole.v[i / 2].round);
	for (size_t i = 0; i < a->visits; i++) {
		uint32_t v = p->order[i], pass = p->of[v];

		take_visit(p, v, 2 * pass + (at[pass]++ >= m));
	}
	free(whole.v);
}

/* ---- which part is that of evaluation ---- */

static void choose_evaluation(struct profile *a, struct passes *p, uint32_t *part_of,
			      uint32_t parts)
{
	size_t samples[PARTS_MAX] = {0}, named[PARTS_MAX] = {0}, visits[PARTS_MAX] = {0};
	uint32_t training = 0;

	for (size_t i = 0; i < a->samples; i++) {
		const char *folder = a->group[a->group_of[a->sample[i].file]].folder;
		const char *name = a->job->file[a->sample[i].file].name;

		if (part_of[i] >= parts)
			continue;
		samples[part_of[i]]++;
		named[part_of[i]] += profile_is_evaluation_name(path_basename(name)) ||
				     profile_is_evaluation_name(path_basename(folder));
	}
	for (size_t i = 0; i < p->n; i++)
		visits[p->v[i].part] += p->v[i].visits;
	for (uint32_t k = 1; k < parts; k++) {
		bool eval = 2 * named[k] > samples[k],
		     other = 2 * named[training] > samples[training];

		if (eval != other ? other
				  : visits[k] > visits[training] && samples[k] > samples[training])
			training = k;
	}
	for (size_t i = 0; i < a->samples; i++)
		a->sample[i].evaluation = parts > 1 && part_of[i] != training;
}

static void number_passes(struct profile *a, struct passes *p)
{
	/* of each pass; and one of its visits */
	AUTO_FREE uint32_t *number = xcalloc(p->n + 1, sizeof(*number)),
			   *one = xcalloc(p->n + 1, sizeof(*one));

	for (size_t i = 0; i < a->visits; i++)
		one[p->of[p->order[i]]] = p->order[i];
	for (size_t i = 0; i < p->n; i++) {
		struct trainer *t = &a->trainer[p->v[i].rank];

		number[i] = is_eval(a, &a->visit[one[i]]) ? t->evaluations++ : t->epochs++;
	}
	for (size_t i = 0; i < a->visits; i++)
		a->visit[i].epoch = number[p->of[i]];
}

/* ---- values ---- */

/* Whether the places that were read of files are no division of them: windows at any offset. */
static bool drawn_at_random(const struct profile *a)
{
	const struct job_sample *s = a->sample;
	size_t overlap = 0;
	double read = 0, whole = 0;

	for (size_t i = 0; i < a->samples; i++) {
		read += (double)s[i].bytes;
		if (i == 0 || s[i].file != s[i - 1].file)
			whole += (double)a->job->file[s[i].file].size;
		else
			overlap += s[i].offset < s[i - 1].offset + s[i - 1].bytes;
	}
	return overlap > a->samples / 20 || (whole > 0 && read < 0.5 * whole);
}

/* `times`: how often each sample was read. */
static void say_epochs(struct profile *a, const struct passes *p, const uint32_t *times)
{
	uint32_t epochs = 0, evaluations = 0;
	uint64_t full = 0, training = 0, nearly = 0;
	size_t in_last = 0, in_first = 0;
	struct profile_value *f;
	bool shared = true, rounds = false;

	for (size_t t = 0; t < a->trainers; t++) {
		rounds |= a->trainer[t].rounds > 1;
		RAISE(epochs, a->trainer[t].epochs);
		RAISE(evaluations, a->trainer[t].evaluations);
	}
	for (size_t i = 0; i < a->visits; i++) {
		if (is_eval(a, &a->visit[i]))
			continue;
		in_first += a->visit[i].epoch == 0;
		in_last += a->visit[i].epoch + 1 == epochs;
	}
	for (size_t i = 0; i < a->samples; i++) {
		if (a->sample[i].evaluation)
			continue;
		training++;
		full += times[i] == epochs;
		/* the last one may not be complete */
		nearly += times[i] == epochs || times[i] + 1 == epochs;
		shared &= times[i] <= epochs;
	}
	if (!shared && a->trainers > 1) { /* each rank reads all */
		full = 0;
		for (size_t i = 0; i < a->samples; i++)
			full += !a->sample[i].evaluation && times[i] == epochs * a->trainers;
		nearly = full;
	}
	if (a->replacement && p->n < 2) {
		profile_unknown(a, PROFILE_EPOCHS, FACT(JOB_REPLACEMENT_NO_EPOCHS));
	} else if (a->trainers == 1 && epochs > 1 && 2 * nearly < training &&
		   (!rounds || epochs > a->trainer[0].rounds)) {
		profile_unknown(a, PROFILE_EPOCHS, FACT(JOB_READ_UNEVENLY));
	} else if (a->container && !rounds && epochs == 1 && drawn_at_random(a)) {
		profile_unknown(a, PROFILE_EPOCHS, FACT(JOB_PLACES_AT_RANDOM));
	} else {
		f = profile_inferred(a, PROFILE_EPOCHS, epochs,
				     a->replacement ? FACT(JOB_REPLACEMENT_GENERATIONS)
						    : FACT(JOB_PASSES),
				     full, full ? training : 0);
		if (epochs > 1 && (double)in_last < 0.95 * (double)in_first)
			f->text = profile_text(a, "the last has %zu of %zu samples", in_last,
					       in_first);
	}
	if (evaluations > 0) {
		size_t samples = 0, files = 0;
		uint32_t last = JOB_NONE;

		for (size_t i = 0; i < a->samples; i++) {
			if (!a->sample[i].evaluation)
				continue;
			samples++;
			files += a->sample[i].file != last;
			last = a->sample[i].file;
		}
		profile_inferred(a, PROFILE_EVALUATIONS, evaluations, FACT(JOB_PASSES_EVALUATION),
				 0, 0);
		profile_inferred(a, PROFILE_EVAL_FILES, (double)files, (struct fact){0}, 0, 0);
		profile_inferred(a, PROFILE_EVAL_SAMPLES, (double)samples, (struct fact){0}, 0, 0);
	}
}

/* Whether ranks read samples of their own in an epoch. */
static void say_sharding(struct profile *a)
{
	AUTO_FREE uint32_t *by = job_numbers(a->samples);
	uint64_t shared = 0, visits = 0;

	if (a->trainers < 2 || a->trainings > 0)
		return;
	for (size_t i = 0; i < a->visits; i++) {
		const struct visit *v = &a->visit[i];
		uint32_t rank = visit_rank(a, v);

		if (v->epoch != 0 || is_eval(a, v))
			continue;
		visits++;
		if (by[v->sample] == JOB_NONE)
			by[v->sample] = rank;
		shared += by[v->sample] != rank;
	}
	profile_inferred(a, PROFILE_SHARDING, 0, FACT(JOB_RANK_ALONE), visits - shared, visits)
		->text = (double)shared < 0.1 * (double)visits
				 ? "each rank reads samples of its own"
				 : "each rank reads all samples";
}

static void mark_groups(struct profile *a)
{
	AUTO_FREE size_t *training = xcalloc(a->groups + 1, sizeof(*training)),
			 *evaluation = xcalloc(a->groups + 1, sizeof(*evaluation));
	AUTO_FREE uint8_t *of_file = xcalloc(a->job->files + 1, sizeof(*of_file));
	bool any = false;

	for (size_t i = 0; i < a->samples; i++)
		(a->sample[i].evaluation ? evaluation : training)[a->group_of[a->sample[i].file]]++;
	for (size_t g = 0; g < a->groups; g++)
		if (evaluation[g] > 0 && training[g] == 0) {
			a->group[g].role = FILE_EVALUATION;
			any = true;
		}
	if (any)
		profile_sort_groups(a);
	for (size_t i = 0; i < a->samples; i++)
		of_file[a->sample[i].file] =
			(uint8_t)(of_file[a->sample[i].file] | (a->sample[i].evaluation ? 2 : 1));
	for (size_t i = 0; i < a->job->files; i++)
		if (of_file[i] == 2)
			a->role[i] = FILE_EVALUATION;
}

/* Streams and places that each generation of workers comes to several times, as for the footer of a
 * file and then for each of its parts, or for the samples of a chunk: a pass is what a generation
 * reads. */
static bool comes_again(const struct profile *a)
{
	AUTO_FREE size_t *first = profile_rounds(a);
	size_t rounds = first[a->trainers], again = 0, n = 0;
	AUTO_FREE uint32_t *last = job_numbers(a->samples);

	for (size_t i = 0; i < a->visits && (a->stream || a->container); i++) {
		const struct job_reader *r = &a->reader[a->visit[i].reader];
		uint32_t *at = &last[a->visit[i].sample];

		if (!r->worker || r->left_out)
			continue;
		n++;
		again += *at == first[r->rank] + r->round;
		*at = (uint32_t)first[r->rank] + r->round;
	}
	return rounds > a->trainers && again >= rounds * AGAIN_LEAST && 3 * again >= n;
}

void profile_epochs(struct profile *a)
{
	struct passes p = {.of = xcalloc(a->visits + 1, sizeof(*p.of))};
	AUTO_FREE uint32_t *part_of = job_numbers(a->samples),
			   *times = xcalloc(a->samples + 1, sizeof(*times));
	uint32_t parts;
	bool by_name, again;

	if (a->visits == 0 && a->trainers > 0 && a->trainer[0].rounds > 1) {
		for (size_t t = 0; t < a->trainers; t++)
			a->trainer[t].epochs = a->trainer[t].rounds;
		profile_inferred(a, PROFILE_EPOCHS, a->trainer[0].rounds,
				 FACT(JOB_GENERATIONS_UNSEEN), 0, 0);
	}
	if (a->visits > 0) {
		for (size_t i = 0; i < a->visits; i++)
			times[a->visit[i].sample]++;
		order_by_rank(a, &p);
		again = comes_again(a);
		a->again = again && a->container;
		by_name = find_passes(a, &p, !again);
		if (passes_of_shares(a, times, &p) || passes_of_readers(a, times, &p))
			;
		else if (!by_name && with_replacement(a, times, &p)) {
			a->replacement = true;
			(void)find_passes(a, &p, false);
		} else if (!by_name) {
			split_passes(a, &p);
		}
		parts = find_parts(a, &p, part_of);
		choose_evaluation(a, &p, part_of, parts);
		number_passes(a, &p);
		say_epochs(a, &p, times);
		say_sharding(a);
		mark_groups(a);
	}
	free(p.order);
	free(p.v);
	free(p.of);
}

/* ---- order: by name, shuffled, within a window, the same each epoch ---- */

/* Each reader takes its samples in the order in which the job drew them, so what ascends is looked
 * at reader by reader; how far a sample is from its place by name, over a rank. */

#define ASCENDING 0.97 /* of the neighbours: by name */
#define WINDOWED 0.5   /* rank correlation with the names: shuffled in a window */

struct order {
	uint64_t pairs, ascending;
	uint64_t counting;  /* of the pairs: ascending where numbers in names count as numbers */
	double correlation; /* summed over passes, weighted by samples */
	double weight;
	uint64_t displacement;         /* the most that a sample came early */
	uint64_t repeated, repeatable; /* same place and reader as in the epoch before */
};

static int by_number(const void *x, const void *y)
{
	uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;

	return ORDER(a, b);
}

/* Readers of two epochs are compared by their number in their generation. */
struct drawn {
	uint32_t rank, epoch, number, at, sample;
};

static int by_draw(const void *x, const void *y)
{
	const struct drawn *a = x, *b = y;

	return ORDER(a->rank, b->rank) ?: ORDER(a->epoch, b->epoch) ?:
	       ORDER(a->number, b->number) ?: ORDER(a->at, b->at);
}

static bool same_pass(const struct drawn *a, const struct drawn *b)
{
	return a->rank == b->rank && a->epoch == b->epoch;
}

static bool same_reader(const struct drawn *a, const struct drawn *b)
{
	return same_pass(a, b) && a->number == b->number;
}

/* One pass of one rank, in the order of visits. `sorted`, `place`: room for each sample. */
static void look_at_pass(const struct drawn *d, size_t n, uint32_t *sorted, uint32_t *place,
			 struct order *o)
{
	double sum = 0, all = (double)n;

	if (n < 4)
		return;
	for (size_t i = 0; i < n; i++)
		sorted[i] = d[i].sample;
	qsort(sorted, n, sizeof(*sorted), by_number);
	for (size_t i = 0; i < n; i++)
		place[sorted[i]] = (uint32_t)i;
	for (size_t i = 0; i < n; i++) {
		double off = (double)place[d[i].sample] - (double)i;

		sum += off * off;
		if (off > 0)
			RAISE(o->displacement, (uint64_t)off);
	}
	/* Spearman */
	o->correlation += all * (1 - 6 * sum / (all * (all * all - 1)));
	o->weight += all;
}

static void look_at_readers(struct order *o, const struct drawn *d, size_t n)
{
	size_t before = 0; /* where the same rank's previous epoch begins */

	for (size_t i = 1; i < n; i++)
		if (same_reader(&d[i], &d[i - 1])) {
			o->pairs++;
			o->ascending += d[i].sample > d[i - 1].sample;
		}
	for (size_t i = 0, begin = 0; i < n; i++) {
		if (i > 0 && !same_pass(&d[i], &d[i - 1])) {
			before = d[i].rank == d[i - 1].rank ? begin : i;
			begin = i;
		}
		if (begin == before || d[i].rank != d[before].rank || d[i].epoch == 0)
			continue;
		o->repeatable++;
		if (before + (i - begin) < begin)
			o->repeated += d[before + (i - begin)].sample == d[i].sample &&
				       d[before + (i - begin)].number == d[i].number;
	}
}

static int by_counting(const void *x, const void *y, void *of)
{
	const struct profile *a = of;
	uint32_t i = *(const uint32_t *)x, j = *(const uint32_t *)y;
	int c = 0;

	if (a->sample[i].file != a->sample[j].file)
		c = strverscmp(a->job->file[a->sample[i].file].name,
			       a->job->file[a->sample[j].file].name);
	return c ? c : ORDER(i, j);
}

/* f2 before f10, which is not the order of the bytes of names. */
static void look_at_numbers(struct profile *a, const struct drawn *d, size_t n, struct order *o)
{
	AUTO_FREE uint32_t *sorted = xcalloc(a->samples + 1, sizeof(*sorted)),
			   *place = xcalloc(a->samples + 1, sizeof(*place));

	for (size_t i = 0; i < a->samples; i++)
		sorted[i] = (uint32_t)i;
	qsort_r(sorted, a->samples, sizeof(*sorted), by_counting, a);
	for (size_t i = 0; i < a->samples; i++)
		place[sorted[i]] = (uint32_t)i;
	for (size_t i = 1; i < n; i++)
		if (same_reader(&d[i], &d[i - 1]))
			o->counting += place[d[i].sample] > place[d[i - 1].sample];
}

static bool ascends(const struct order *o, uint64_t pairs)
{
	return (double)pairs >= ASCENDING * (double)o->pairs;
}

/* How it is known; of streams only files are told apart. */
static void set_order(struct profile *a, enum job_order order, struct fact rule, uint64_t agree,
		      uint64_t of)
{
	static const struct {
		const char *samples, *files; /* of files: NULL where it is the same */
	} words[] = {
		[JOB_ORDER_NAMES] = {"in order of the names", "files in order of their names"},
		[JOB_ORDER_NUMBERS] = {"in order of the numbers in the names",
				       "files in order of the numbers in their names"},
		[JOB_ORDER_NEARLY_SAME] = {"nearly in order of the names, the same in each epoch",
					   "files nearly in order of their names, the same in each "
					   "epoch"},
		[JOB_ORDER_RANDOM_SAME] = {"random, the same in each epoch",
					   "files in random order, the same in each epoch"},
		[JOB_ORDER_REPLACEMENT] = {"random with replacement", NULL},
		[JOB_ORDER_WINDOW] = {"random within a window", NULL},
		[JOB_ORDER_RANDOM] = {"random", "files in random order"},
		[JOB_ORDER_RANDOM_ANEW] = {"random, anew in each epoch", NULL},
	};

	a->order = order;
	profile_inferred(a, PROFILE_ORDER, 0, rule, agree, of)->text =
		a->stream && words[order].files ? words[order].files : words[order].samples;
}

static void say_order(struct profile *a, const struct order *o)
{
	double ascending = (double)o->ascending / (double)o->pairs;
	double correlation = o->weight > 0 ? o->correlation / o->weight : 0;
	struct fact rule = o->repeatable ? FACT(JOB_NEIGHBOURS_DIFFER, 100 * ascending, correlation)
					 : FACT(JOB_NEIGHBOURS, 100 * ascending, correlation);

	if (o->pairs < 8) {
		profile_unknown(a, PROFILE_ORDER, FACT(JOB_FEW_NEIGHBOURS));
	} else if (ascends(o, o->ascending)) {
		set_order(a, JOB_ORDER_NAMES, FACT(JOB_ASCEND_BY_NAME), o->ascending, o->pairs);
	} else if (ascends(o, o->counting)) {
		set_order(a, JOB_ORDER_NUMBERS, FACT(JOB_ASCEND_BY_NUMBER), o->counting, o->pairs);
	} else if (a->replacement) {
		set_order(a, JOB_ORDER_REPLACEMENT, FACT(JOB_POISSON), 0, 0);
	} else if (o->repeatable > 0 && (double)o->repeated > 0.95 * (double)o->repeatable) {
		set_order(a, correlation > WINDOWED ? JOB_ORDER_NEARLY_SAME : JOB_ORDER_RANDOM_SAME,
			  FACT(JOB_SAME_PLACES), o->repeated, o->repeatable);
	} else if (correlation < WINDOWED || a->stream) {
		set_order(a, o->repeatable && !a->stream ? JOB_ORDER_RANDOM_ANEW : JOB_ORDER_RANDOM,
			  rule, 0, 0);
	} else {
		set_order(a, JOB_ORDER_WINDOW, rule, 0, 0);
		profile_inferred(a, PROFILE_SHUFFLE_WINDOW, (double)o->displacement + 1,
				 FACT(JOB_BEFORE_ITS_PLACE), 0, 0);
	}
}

void profile_order(struct profile *a)
{
	AUTO_FREE struct drawn *d = xcalloc(a->visits + 1, sizeof(*d));
	AUTO_FREE uint32_t *sorted = xcalloc(a->visits + 1, sizeof(*sorted)),
			   *place = xcalloc(a->samples + 1, sizeof(*place));
	struct order o = {0};
	size_t n = 0;

	for (size_t i = 0; i < a->visits; i++) {
		const struct visit *v = &a->visit[i];
		const struct job_reader *r = &a->reader[v->reader];

		if (!is_eval(a, v))
			d[n++] = (struct drawn){r->rank, v->epoch, 0, (uint32_t)i, v->sample};
	}
	/* passes of ranks, in the order of visits */
	qsort(d, n, sizeof(*d), by_draw);
	for (size_t i = 0, end; i < n; i = end) {
		for (end = i + 1; end < n && same_pass(&d[end], &d[i]); end++)
			;
		look_at_pass(d + i, end - i, sorted, place, &o);
	}
	for (size_t i = 0; i < n; i++)
		d[i].number = a->reader[a->visit[d[i].at].reader].number;
	qsort(d, n, sizeof(*d), by_draw);
	if (n == 0)
		return;
	look_at_readers(&o, d, n);
	if (!ascends(&o, o.ascending))
		look_at_numbers(a, d, n, &o);
	say_order(a, &o);
}
