/* Requests of one kind that take most of the time: all of them (closes, look-ups), or a few that
 * take far longer than the others of their kind. */
#include <math.h>
#include <stdio.h>

#include "judge/limit_view.h"
#include "predict/outlook.h"

static const double KIND_SHARE = 0.3;  /* of the time in requests: a kind of them that is named */
static const double RANK_SHARE = 0.3;  /* of the lost time, by one rank or host that is */
static const double LAST_SHARE = 0.7;  /* last in so many of the steps */
static const double NAMES_SHARE = 0.5; /* the same, of opens, closes and look-ups together */

/* ---- opens, closes and look-ups ---- */

/* s of the workers, all ranks. */
struct names {
	double files, open, close, stat;
};

static struct names names_of(const struct limit_view *v)
{
	struct names n = {.files = v->stations.opens_of_batch * (double)v->d->batches};
	double work = v->d->work_s[WORK_OPEN];

	n.stat = fmin(v->law.stat_s, v->d->work_s[WORK_META]);
	n.open = v->law.open_ns > 0 ? fmin(work, n.files * v->law.open_ns / 1e9) : work;
	n.close = work - n.open;
	return n;
}

static bool mostly_names(const struct limit_view *v, const struct names *n)
{
	return v->doing == LOST_REQUESTS && n->files > 0 &&
	       n->open + n->close + n->stat >= NAMES_SHARE * v->io;
}

static double part_of_requests(const struct limit_view *v, double s)
{
	return v->io > 0 ? v->lost[LOST_REQUESTS] * fmin(1, s / v->io) : 0;
}

double limit_lost_to_closes(const struct limit_view *v)
{
	return part_of_requests(v, names_of(v).close);
}

bool limit_at_closes(struct limit_view *v)
{
	struct names n = names_of(v);

	if (!mostly_names(v, &n) || n.close <= fmax(n.open, n.stat))
		return false;
	limit_found(v, FACT(LIMIT_CLOSING, v->inside, n.close / v->io, v->stations.opens_of_batch,
			    n.close / n.files));
	return limit_end_reading(v);
}

double limit_lost_to_lookups(const struct limit_view *v)
{
	return part_of_requests(v, names_of(v).stat);
}

/* Metadata requests that asked for no bytes. */
static double lookups(const struct result *r)
{
	double n = 0;

	for (uint32_t k = 0; k < r->ranks; k++) {
		const struct io_stat *io = &r->rank[k].train_io;

		n += (double)io->kind[IO_META].requests;
		for (int c = 0; c < IO_CLASSES; c++)
			n -= (double)io_stat_sized(io, IO_META, (enum io_class)c)->total;
	}
	return n;
}

bool limit_at_lookups(struct limit_view *v)
{
	struct names n = names_of(v);
	double count = lookups(v->r);

	if (!mostly_names(v, &n) || n.stat <= fmax(n.open, n.close) || !(count > 0))
		return false;
	limit_found(v, FACT(LIMIT_LOOKUPS, v->inside, n.stat / v->io, count / (double)v->d->batches,
			    n.stat / count));
	return limit_end_reading(v);
}

void limit_tell_kind(struct limit_view *v)
{
	const struct read_places *p = &v->law.places;
	struct names n = names_of(v);

	if (p->slow != READS_ALIKE &&
	    v->d->work_s[WORK_META] + v->d->work_s[WORK_DATA] >= KIND_SHARE * v->io)
		limit_found(v, p->slow == READS_FIRST ? FACT(LIMIT_FIRST_READS, p->slow_ns / 1e9,
							     p->other_ns / 1e9)
						      : FACT(LIMIT_LARGE_READS, p->slow_ns / 1e9,
							     p->other_ns / 1e9, (double)p->large));
	if (n.files > 0 && n.close >= KIND_SHARE * v->io &&
	    !fact_first(&v->limit->facts, REASON_LIMIT_CLOSING))
		limit_found(v, FACT(LIMIT_CLOSES, n.close / n.files, n.close / (n.open + n.close)));
}

/* Of a slow rank or host, they are no few among those of all. */
static bool is_of_a_rank(const struct limit_view *v)
{
	double rank = v->d->last_share >= LAST_SHARE ? limit_lost_to_rank(v) : 0;

	return fmax(rank, limit_lost_to_host(v)) >= RANK_SHARE * v->loss;
}

/* ---- a few of a kind ---- */

static struct fact tail_of(const struct slow_requests *s)
{
	switch (s->kind) {
	case SLOW_OPENS:
		return FACT(LIMIT_SLOW_OPENS, s->count, s->all, s->each_s, s->others_s);
	case SLOW_CLOSES:
		return FACT(LIMIT_SLOW_CLOSES, s->count, s->all, s->each_s, s->others_s);
	case SLOW_STATS:
		return FACT(LIMIT_SLOW_STATS, s->count, s->all, s->each_s, s->others_s);
	default:
		return FACT(LIMIT_SLOW_READS, s->count, s->all, s->each_s, s->others_s);
	}
}

static double lost_to_tail(const struct limit_view *v, bool reads)
{
	const struct slow_requests *s = &v->r->judged.slow;

	/* where a limit is granted in parts, those that wait for the next one are no tail */
	if (reads && v->law.reads.best.burst)
		return 0;
	return s->kind != SLOW_NONE && (s->kind == SLOW_READS) == reads && !is_of_a_rank(v)
		       ? part_of_requests(v, s->slow_s)
		       : 0;
}

double limit_lost_to_slow_names(const struct limit_view *v)
{
	return lost_to_tail(v, false);
}

double limit_lost_to_slow_reads(const struct limit_view *v)
{
	return lost_to_tail(v, true);
}

/* Others need not wait for a slow one, where batches are taken in any order or more are ahead. */
static void would_pass(struct limit_view *v)
{
	outlook_tell_window(v->outlook, result_window(v->r) * 4, &v->limit->effects);
	if (v->limit->effects.count == 0 && result_workers(v->r) > 1 &&
	    v->r->workload->reader.in_order &&
	    workload_loader(v->r->workload)->rule == RULE_PYTORCH)
		limit_would(v, FACT(EFFECT_TRY_UNORDERED));
}

bool limit_at_tail(struct limit_view *v)
{
	limit_found(v, tail_of(&v->r->judged.slow));
	would_pass(v);
	return true;
}

/* ---- folders and files ---- */

double limit_lost_by_name(const struct limit_view *v)
{
	const struct by_name *f = &v->r->judged.by_name;

	if (is_of_a_rank(v))
		return 0;
	return part_of_requests(
		v, f->share * (v->d->work_s[WORK_META] - v->law.stat_s + v->d->work_s[WORK_DATA]));
}

/* The folder of training whose files have that name in the log; "": it is not known. */
static void find_folder(const struct result *r, uint32_t name, char *out, size_t size)
{
	char path[256], file[sizeof(path) + 1];

	for (int64_t i = 0; r->dataset && i < r->workload->dataset.num_subfolders_train; i++) {
		if (dataset_folder(r->dataset, DATASET_TRAIN, (uint64_t)i, path, sizeof(path),
				   NULL) < 0)
			break;
		snprintf(file, sizeof(file), "%s/", path);
		snprintf(out, size, "%s", path);
		if (read_name_folder(read_name(file)) == name)
			return;
	}
	out[0] = 0;
}

bool limit_at_slow_files(struct limit_view *v)
{
	const struct by_name *f = &v->r->judged.by_name;
	char folder[256] = "";

	if (f->what == NAME_SLOW_FOLDERS) {
		if (f->slow == 1)
			find_folder(v->r, f->folder, folder, sizeof(folder));
		limit_found(v, fact_with(FACT(LIMIT_SLOW_FOLDERS, f->slow, f->all, f->slow_s,
					      f->others_s),
					 0, folder));
	} else if (f->what == NAME_SLOW_FILES) {
		limit_found(v, FACT(LIMIT_SLOW_FILES, f->slow, f->all, f->slow_s, f->others_s));
	} else {
		return false;
	}
	would_pass(v);
	return true;
}

bool limit_at_turns(struct limit_view *v)
{
	const struct by_name *f = &v->r->judged.by_name;
	bool folders = f->what == NAME_TURNS_FOLDER;

	if (v->doing != LOST_REQUESTS || (!folders && f->what != NAME_TURNS_FILE))
		return false;
	limit_found(v, folders ? FACT(LIMIT_TURNS_FOLDER, f->others_s, f->slow_s)
			       : FACT(LIMIT_TURNS_FILE, f->others_s, f->slow_s));
	limit_would(v, folders ? FACT(EFFECT_MORE_FOLDERS) : FACT(EFFECT_MORE_FILES));
	return true;
}
