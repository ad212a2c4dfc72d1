/* Each read is held against those like it: of about its size, at its place in the file. */
#include "judge/by_name.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "predict/costs.h"

static const double SLOW = 0.9;        /* of the logarithm: 2.5 times those like it */
static const double FOLDER_SLOW = 0.7; /* of the reads of a slow folder */
static const double OTHERS_SLOW = 0.2; /* of the reads of all others, at most */
static const double FILES_SLOW = 0.35; /* of all reads, at most, where some files are slow */
static const double AGAIN = 0.7;       /* of the next reads of a file of which one was slow */
static const double AMONG = 0.25;      /* of the slow reads or files: others were not, meanwhile */
static const size_t READS_LEAST = 12;  /* of a folder */
static const size_t SLOW_FILES_LEAST = 3, FILES_LEAST = 9;
static const double TURNS = 0.35;     /* of the logarithm: longer beside one of the same name */
static const double TURNS_SURE = 5;   /* times the standard error of that */
static const size_t TURNS_LEAST = 40; /* reads that are compared */
static const double APART = 0.5;      /* of a read's time without: from one end to the next */
static const double MOSTLY_APART = 0.85;
#define FOLDERS_MOST 64
#define LEVELS 16
#define BEFORE 512 /* reads among which those under way are looked for */

struct read {
	const struct read_seen *of;
	uint32_t like; /* size and place */
	double log_s, beyond, weight;
	double usual; /* mean of `beyond` under its name */
	bool slow;
	bool apart; /* and others were not, meanwhile */
	bool met;   /* all that were under way when it began are known */
};

struct reads {
	struct read *at;
	size_t n;
};

static int by_like(const void *x, const void *y)
{
	const struct read *a = x, *b = y;

	if (a->like != b->like)
		return a->like < b->like ? -1 : 1;
	return (a->log_s > b->log_s) - (a->log_s < b->log_s);
}

static int by_begin(const void *x, const void *y)
{
	const struct read *a = x, *b = y;

	return (a->of->begin_ns > b->of->begin_ns) - (a->of->begin_ns < b->of->begin_ns);
}

/* By folder, file and time. */
static int by_file(const void *x, const void *y)
{
	const struct read *a = x, *b = y;

	if (a->of->name != b->of->name)
		return a->of->name < b->of->name ? -1 : 1;
	return by_begin(x, y);
}

/* Of reads that are alike, the median, each weighing as little as it is likely to be in the log. */
static void hold_against_alike(struct reads *r)
{
	qsort(r->at, r->n, sizeof(*r->at), by_like);
	for (size_t i = 0, to; i < r->n; i = to) {
		double all = 0, half = 0;
		size_t m = i;

		for (to = i; to < r->n && r->at[to].like == r->at[i].like; to++)
			all += r->at[to].weight;
		while (m + 1 < to && (half += r->at[m].weight) < all / 2)
			m++;
		for (size_t k = i; k < to; k++) {
			r->at[k].beyond = r->at[k].log_s - r->at[m].log_s;
			r->at[k].slow = r->at[k].beyond > SLOW;
		}
	}
	qsort(r->at, r->n, sizeof(*r->at), by_begin);
}

/* Marks the slow reads during which one under another name, a folder or a file, was served as
 * usual. `r` by time. */
static void mark_apart(struct reads *r, bool folders)
{
	for (size_t i = 0; i < r->n; i++) {
		const struct read_seen *s = r->at[i].of;

		r->at[i].apart = false;
		for (size_t k = i + 1; r->at[i].slow && !r->at[i].apart && k < r->n &&
				       r->at[k].of->begin_ns < s->end_ns;
		     k++) {
			uint32_t other = r->at[k].of->name ^ s->name;

			r->at[i].apart =
				!r->at[k].slow && (folders ? read_name_folder(other) : other);
		}
	}
}

static bool among_others(const struct reads *r)
{
	size_t slow = 0, apart = 0;

	for (size_t i = 0; i < r->n; i++) {
		slow += r->at[i].slow;
		apart += r->at[i].apart;
	}
	return slow > 0 && (double)apart >= AMONG * (double)slow;
}

/* The time of slow reads, and what they took beyond those like them. */
static void sum_up(const struct reads *r, struct by_name *f)
{
	double slow = 0, slow_s = 0, other = 0, other_s = 0, beyond_s = 0;

	for (size_t i = 0; i < r->n; i++) {
		const struct read *a = &r->at[i];
		double s = exp(a->log_s);

		slow += a->slow ? a->weight : 0;
		slow_s += a->slow ? a->weight * s : 0;
		other += a->slow ? 0 : a->weight;
		other_s += a->slow ? 0 : a->weight * s;
		beyond_s += a->slow ? a->weight * (s - exp(a->log_s - a->beyond)) : 0;
	}
	f->slow_s = slow > 0 ? slow_s / slow : 0;
	f->others_s = other > 0 ? other_s / other : 0;
	f->share = slow_s + other_s > 0 ? beyond_s / (slow_s + other_s) : 0;
}

static bool slow_folders(struct reads *r, struct by_name *f)
{
	struct folder {
		uint32_t name;
		size_t n;
		double slow, all;
	} folder[FOLDERS_MOST];
	size_t count = 0, k;
	double slow = 0, all = 0;

	for (size_t i = 0; i < r->n; i++) {
		uint32_t name = read_name_folder(r->at[i].of->name);

		for (k = 0; k < count && folder[k].name != name; k++)
			;
		if (k == FOLDERS_MOST)
			return false;
		if (k == count)
			folder[count++] = (struct folder){.name = name};
		folder[k].n++;
		folder[k].all += r->at[i].weight;
		folder[k].slow += r->at[i].slow ? r->at[i].weight : 0;
	}
	*f = (struct by_name){.what = NAME_SLOW_FOLDERS, .all = (double)count};
	for (k = 0; k < count; k++)
		if (folder[k].n >= READS_LEAST && folder[k].slow >= FOLDER_SLOW * folder[k].all) {
			f->slow++;
			f->folder = folder[k].name;
		} else {
			slow += folder[k].slow;
			all += folder[k].all;
		}
	mark_apart(r, true);
	return f->slow > 0 && 2 * f->slow <= f->all && slow <= OTHERS_SLOW * all && among_others(r);
}

/* Others are served beside the first reads of a slow file, and have nothing to read after that:
 * files are counted, not reads. */
static bool slow_files(struct reads *r, struct by_name *f)
{
	double slow = 0, all = 0, again = 0, next = 0;
	size_t files = 0, slow_ones = 0, apart = 0;

	mark_apart(r, false);
	qsort(r->at, r->n, sizeof(*r->at), by_file);
	for (size_t i = 0, to; i < r->n; i = to) {
		bool any = false, beside = false;

		for (to = i; to < r->n && r->at[to].of->name == r->at[i].of->name; to++) {
			const struct read *a = &r->at[to];

			any = any || a->slow;
			beside = beside || a->apart;
			all += a->weight;
			slow += a->slow ? a->weight : 0;
			if (to == i || !a[-1].slow)
				continue;
			next += a->weight;
			again += a->slow ? a->weight : 0;
		}
		files++;
		slow_ones += any;
		apart += beside;
	}
	*f = (struct by_name){
		.what = NAME_SLOW_FILES, .slow = (double)slow_ones, .all = (double)files};
	return slow_ones >= SLOW_FILES_LEAST && files >= FILES_LEAST &&
	       (double)apart >= AMONG * (double)slow_ones && slow <= FILES_SLOW * all &&
	       again >= AGAIN * next && next > 0;
}

/* ---- one after another, under one name ---- */

struct level {
	double n, sum, square;
};

static void add(struct level *l, double x)
{
	l->n++;
	l->sum += x;
	l->square += x * x;
}

static double square_error(const struct level *l)
{
	double mean = l->sum / l->n;

	return fmax(0, l->square / l->n - mean * mean) / (l->n - 1);
}

/* By folder or file: where one is slow by itself, its reads are often beside each other. */
static void set_usual(struct reads *r, bool folders)
{
	qsort(r->at, r->n, sizeof(*r->at), by_file);
	for (size_t i = 0, to; i < r->n; i = to) {
		uint32_t name = r->at[i].of->name, other;
		double sum = 0;

		for (to = i; to < r->n; to++) {
			other = r->at[to].of->name ^ name;
			if (folders ? read_name_folder(other) : other)
				break;
			sum += r->at[to].beyond;
		}
		for (size_t k = i; k < to; k++)
			r->at[k].usual = sum / (double)(to - i);
	}
	qsort(r->at, r->n, sizeof(*r->at), by_begin);
}

/* Beside as many others in all, is a read longer where one of them is of its name? Reads of another
 * name must be there to compare with: what serves all in turn makes no difference. */
static bool takes_turns(struct reads *r, bool folders, struct by_name *f)
{
	struct level with[LEVELS] = {{0}}, without[LEVELS] = {{0}};
	double diff = 0, error = 0, weights = 0, apart = 0, alone = 0, alone_n = 0;
	double *gap = xcalloc(r->n ? r->n : 1, sizeof(*gap));
	size_t pairs = 0;

	set_usual(r, folders);
	for (size_t i = 0; i < r->n; i++) {
		const struct read_seen *s = r->at[i].of, *last = NULL;
		size_t level = 0, same = 0;

		if (!r->at[i].met)
			continue;
		for (size_t k = i; k-- > 0 && i - k < BEFORE;) {
			const struct read_seen *o = r->at[k].of;
			uint32_t other = o->name ^ s->name;

			if (o->end_ns <= s->begin_ns)
				continue;
			level++;
			if (folders ? read_name_folder(other) : other)
				continue;
			same++;
			last = last && last->end_ns > o->end_ns ? last : o;
		}
		if (level >= LEVELS || level == 0)
			continue;
		add(same ? &with[level] : &without[level], r->at[i].beyond - r->at[i].usual);
		if (!same) {
			alone += exp(r->at[i].log_s);
			alone_n++;
		} else {
			gap[pairs++] = (double)(s->end_ns - last->end_ns) / 1e9;
		}
	}
	for (size_t i = 0; i < pairs; i++)
		apart += gap[i] * alone_n >= APART * alone;
	free(gap);
	for (int l = 1; l < LEVELS; l++) {
		double n = fmin(with[l].n, without[l].n);

		if (n < 4)
			continue;
		diff += n * (with[l].sum / with[l].n - without[l].sum / without[l].n);
		error += n * n * (square_error(&with[l]) + square_error(&without[l]));
		weights += n;
	}
	if (weights < (double)TURNS_LEAST || diff < TURNS * weights ||
	    diff < TURNS_SURE * sqrt(error) || apart < MOSTLY_APART * (double)pairs)
		return false;
	*f = (struct by_name){.what = folders ? NAME_TURNS_FOLDER : NAME_TURNS_FILE,
			      .others_s = alone / alone_n,
			      .slow_s = alone / alone_n * exp(diff / weights),
			      .share = 1};
	return true;
}

struct by_name by_name_find(const struct read_seen *seen, size_t n, uint64_t apart, uint64_t wide)
{
	struct reads r = {.at = xcalloc(n ? n : 1, sizeof(*r.at))};
	struct by_name found = {.what = NAME_NOTHING}, f;

	for (size_t i = 0; i < n; i++) {
		const struct read_seen *s = &seen[i];
		double took = (double)(s->end_ns - s->begin_ns);

		if (!s->name)
			continue;
		r.at[r.n++] = (struct read){
			.of = s,
			.like = 2 * (s->bytes ? 64 - (uint32_t)__builtin_clzll(s->bytes) : 0) +
				(s->place == 0),
			.log_s = log(fmax(1, took) / 1e9),
			.weight = read_log_weight(apart, wide, s),
			.met = read_log_window(apart, wide, s->begin_ns) >= 0};
	}
	hold_against_alike(&r);
	if (takes_turns(&r, true, &f) || takes_turns(&r, false, &f)) {
		found = f;
	} else if (slow_folders(&r, &f)) {
		sum_up(&r, &f);
		found = f;
	} else if (slow_files(&r, &f)) {
		sum_up(&r, &f);
		found = f;
	}
	free(r.at);
	return found;
}

struct by_name by_name_of(const struct result *r)
{
	struct read_set set;
	double times;
	struct read_seen *seen = costs_reads(r, false, NULL, &set, &times);
	struct by_name f = by_name_find(seen, seen ? set.n : 0, set.apart, set.wide);

	free(seen);
	return f;
}
