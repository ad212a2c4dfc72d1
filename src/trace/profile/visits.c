/* Visits of samples: requests of one reader on one file in one go, or, where files hold many
 * samples that are read by their places, each request of data with the small ones before it.
 *
 * Whether a dataset's files hold many samples: its format does, or visits of one file read other
 * places each time. Requests of data are those of at least a quarter of the size that half of the
 * bytes came in. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/compare.h"
#include "base/file.h"
#include "base/saturate.h"
#include "base/vector.h"
#include "trace/profile/profile_parts.h"
#include "workload/backend.h"

#define FEW_SMALL 4   /* times fewer requests than larger ones */
#define PLACE_BYTES 8 /* of a file with an index beside it: where an item begins and ends */
#define LOOK 0.25     /* of what other visits of a file read */
#define LOOKS_MIN 4   /* fewer are visits that were cut */
/* Of a file: less of it was read, and it is opened again: still one visit. */
#define SAME_VISIT 0.5

/* What is known of a group of the dataset. */
struct shape {
	uint64_t by_size[64]; /* bytes that came in requests of 2^i to 2^(i+1)-1 bytes, */
	uint64_t n[64];       /* and how many these were */
	int64_t data_size;    /* a request of data is at least so large */
	bool candidate;       /* may hold many samples */
	bool stream;          /* read from begin to end, as a rule */
	bool container;
	bool joined; /* a sample is several requests, one behind the other */
	/* of the visits from open to close: */
	uint64_t data_requests, visits;
	uint64_t contiguous, backward; /* requests behind the one before, and before its end */
	uint64_t in_files, in_visits;  /* different places of each file, of each visit */
};

/* Requests of data as they come, with the visit that they are in. */
struct place_read {
	uint32_t file, visit;
	int64_t offset;
};
struct places_read {
	struct place_read *v;
	size_t n, room;
};

/* A thread in the middle of a visit. */
struct under_way {
	uint32_t file, visit;
	bool closed;
	uint32_t before;    /* the visit of a file that is opened anew at once */
	int64_t pending_ns; /* of a container: the first request behind the last visit */
	uint32_t pending_file;
	int64_t data_end;    /* of the last request of data, */
	uint32_t data_visit; /* which was in this visit */
	int64_t opened_ns;
	uint32_t opened_file;
};

bool profile_is_apart(const struct profile *a, const struct job_event *v)
{
	return v->begin_ns < a->looks_end_ns ||
	       (a->apart_until_ns && v->begin_ns < a->apart_until_ns[v->thread]);
}

static void find_data_sizes(struct profile *a, struct shape *shape)
{
	for (size_t i = 0; i < a->job->events; i++) {
		const struct job_event *v = &a->job->event[i];

		if (v->kind == JOB_READ && v->result > 0 && profile_is_data(a, v->file) &&
		    !profile_is_apart(a, v)) {
			struct shape *s = &shape[a->group_of[v->file]];

			s->by_size[log2_of(v->result)] += (uint64_t)v->result;
			s->n[log2_of(v->result)]++;
		}
	}
	for (size_t g = 0; g < a->groups; g++) {
		uint64_t all = 0, sum = 0;

		for (size_t i = 0; i < 64; i++)
			all += shape[g].by_size[i];
		for (unsigned i = 0; i < 64 && all > 0; i++) {
			sum += shape[g].by_size[i];
			if (sum * 2 >= all) {
				unsigned low = i > 2 ? i - 2 : 0;
				uint64_t larger = 0;

				for (unsigned k = low; k < 64; k++)
					larger += shape[g].n[k];
				/* a few samples are smaller */
				for (; low > 0 && shape[g].n[low - 1] > 0 &&
				       shape[g].n[low - 1] <= larger / FEW_SMALL;
				     low--)
					larger += shape[g].n[low - 1];
				shape[g].data_size = INT64_C(1) << low;
				break;
			}
		}
	}
}

static uint32_t begin_visit(struct profile *a, const struct job_event *v, int64_t begin_ns,
			    int64_t offset)
{
	VECTOR_PUSH(a->visit, a->visits, a->visit_room,
		    {.begin_ns = begin_ns,
		     .end_ns = v->end_ns,
		     .offset = offset,
		     .sample = v->file, /* until samples are numbered */
		     .reader = v->thread,
		     .batch = JOB_NONE});
	return (uint32_t)(a->visits - 1);
}

static void extend(struct visit *x, const struct job_event *v)
{
	RAISE(x->end_ns, v->end_ns);
	if (v->kind != JOB_READ || v->result < 0)
		return;
	x->requests++;
	x->bytes = i64_sum(x->bytes, v->result);
	if (v->begin_ns != JOB_UNKNOWN && v->end_ns > v->begin_ns)
		x->read_ns = i64_sum(x->read_ns, v->end_ns - v->begin_ns);
}

/* A request on a file that is one sample. */
static void whole_file(struct profile *a, struct under_way *u, const struct job_event *v)
{
	bool same = u->file == v->file && u->visit != JOB_NONE;

	if (v->kind == JOB_OPEN) {
		if (same && u->closed)
			same = (double)a->visit[u->visit].bytes <
			       SAME_VISIT * (double)a->job->file[v->file].size;
		if (same)
			u->closed = false;
		u->opened_ns = v->begin_ns;
		u->opened_file = v->file;
		u->before = !same && u->file == v->file ? u->visit : JOB_NONE;
		if (!same)
			u->file = JOB_NONE;
		return;
	}
	if (v->kind == JOB_CLOSE) {
		if (same) {
			extend(&a->visit[u->visit], v);
			u->closed = true;
		}
		return;
	}
	if (v->kind != JOB_READ && v->kind != JOB_MAP)
		return;
	if (v->kind == JOB_MAP && u->before != JOB_NONE && a->visit[u->before].sample == v->file) {
		/* its header was read before it is mapped */
		u->visit = u->before;
		same = true;
	}
	u->before = JOB_NONE;
	if (!same)
		u->visit = begin_visit(a, v,
				       u->opened_file == v->file && u->opened_ns != JOB_UNKNOWN
					       ? u->opened_ns
					       : v->begin_ns,
				       0);
	u->file = v->file;
	u->opened_file = JOB_NONE;
	extend(&a->visit[u->visit], v);
}

static void part_of_file(struct profile *a, const struct shape *s, struct under_way *u,
			 const struct job_event *v)
{
	int64_t offset = v->offset == JOB_UNKNOWN ? 0 : v->offset;
	bool joined;

	if (v->kind != JOB_READ && v->kind != JOB_OPEN)
		return;
	if (v->kind != JOB_READ || v->result < s->data_size) {
		if (u->pending_file != v->file) {
			u->pending_file = v->file;
			u->pending_ns = v->begin_ns;
		}
		return;
	}
	joined = s->joined && u->file == v->file && u->visit != JOB_NONE && offset == u->data_end;
	if (!joined)
		u->visit = begin_visit(
			a, v, u->pending_file == v->file ? u->pending_ns : v->begin_ns, offset);
	u->file = v->file;
	u->pending_file = JOB_NONE;
	u->data_end = offset + v->result;
	extend(&a->visit[u->visit], v);
}

static void note_place(struct places_read *r, struct shape *s, struct under_way *u,
		       const struct job_event *v)
{
	if (r->n > 0 && u->data_visit == u->visit) {
		s->contiguous += v->offset == u->data_end;
		s->backward += v->offset < u->data_end;
	}
	VECTOR_PUSH(r->v, r->n, r->room, {v->file, u->visit, v->offset});
	s->data_requests++;
	u->data_visit = u->visit;
	u->data_end = v->offset + v->result;
}

/* `read`: what requests of data of candidates read; NULL: not wanted. */
static void collect(struct profile *a, struct shape *shape, struct places_read *read)
{
	AUTO_FREE struct under_way *u = xcalloc(a->job->threads + 1, sizeof(*u));

	a->visits = 0;
	for (size_t i = 0; i < a->job->threads; i++)
		u[i] = (struct under_way){.file = JOB_NONE,
					  .visit = JOB_NONE,
					  .data_visit = JOB_NONE,
					  .before = JOB_NONE,
					  .pending_file = JOB_NONE,
					  .opened_file = JOB_NONE};
	for (size_t i = 0; i < a->job->events; i++) {
		const struct job_event *v = &a->job->event[i];
		struct shape *s;

		if (!profile_is_data(a, v->file) || (v->result < 0 && v->kind != JOB_MAP) ||
		    profile_is_apart(a, v))
			continue;
		s = &shape[a->group_of[v->file]];
		if (s->container) {
			part_of_file(a, s, &u[v->thread], v);
			continue;
		}
		whole_file(a, &u[v->thread], v);
		if (read && s->candidate && v->kind == JOB_READ && v->result > 0 &&
		    v->result >= s->data_size && v->offset != JOB_UNKNOWN)
			note_place(read, s, &u[v->thread], v);
	}
}

/* ---- which groups hold many samples in a file ---- */

static int by_file_and_offset(const void *x, const void *y)
{
	const struct place_read *a = x, *b = y;

	return ORDER(a->file, b->file) ?: ORDER(a->offset, b->offset);
}

static int by_visit_and_offset(const void *x, const void *y)
{
	const struct place_read *a = x, *b = y;

	return ORDER(a->visit, b->visit) ?: ORDER(a->offset, b->offset);
}

static void count_places(struct profile *a, struct shape *shape, struct places_read *r)
{
	if (r->n == 0)
		return;
	qsort(r->v, r->n, sizeof(*r->v), by_file_and_offset);
	for (size_t i = 0; i < r->n; i++)
		shape[a->group_of[r->v[i].file]].in_files +=
			i == 0 || by_file_and_offset(&r->v[i], &r->v[i - 1]) != 0;
	qsort(r->v, r->n, sizeof(*r->v), by_visit_and_offset);
	for (size_t i = 0; i < r->n; i++) {
		struct shape *s = &shape[a->group_of[r->v[i].file]];

		s->in_visits += i == 0 || by_visit_and_offset(&r->v[i], &r->v[i - 1]) != 0;
		s->visits += i == 0 || r->v[i].visit != r->v[i - 1].visit;
	}
}

/* A file that is one sample is read at the same places in each visit. Of one that is kept open, a
 * visit may be all that a reader ever reads of it: then it goes back and forth, or there are no
 * more files than readers. */
#define NEVER_AGAIN 0.95 /* of the places of all visits */
#define WHOLE_LEAST 0.7  /* of the bytes of the files, in one pass over their samples */
#define WHOLE_MOST 1.3
#define FILES_MIN 8

/* A piece at a random place of each file: no visit reads what another did, and together they are no
 * pass over the files, either. The file is the sample. */
static bool reads_pieces(const struct profile *a, const struct file_group *g, const struct shape *s)
{
	double bytes = 0, passes;

	for (size_t i = 0; i < a->job->files; i++)
		if (&a->group[a->group_of[i]] == g)
			bytes += profile_file_bytes(&a->job->file[i]);
	passes = bytes > 0 ? (double)g->bytes_read / bytes : 0;
	return g->files >= FILES_MIN && s->visits >= 2 * g->files && s->visits <= 64 * g->files &&
	       (double)s->in_files >= NEVER_AGAIN * (double)s->in_visits && passes > 0 &&
	       (passes < WHOLE_LEAST || passes > WHOLE_MOST);
}

/* Whether all files of a group are visited once before any of them is visited again: then a visit
 * is a sample, whatever part of the file it reads. Visits are by time. */
static bool visited_in_turn(const struct profile *a, size_t group)
{
	AUTO_FREE uint32_t *seen = xcalloc(a->job->files + 1, sizeof(*seen));
	size_t files = a->group[group].files, n = 0, again = 0;
	uint32_t pass = 1;

	for (size_t i = 0; i < a->visits; i++) {
		uint32_t file = a->visit[i].sample;

		if (a->group_of[file] != group)
			continue;
		again += seen[file] == pass;
		seen[file] = pass;
		pass += ++n % files == 0;
	}
	return files >= FILES_MIN && n >= 2 * files && (double)again <= 0.05 * (double)n;
}

static void choose_containers(struct profile *a, struct shape *shape)
{
	for (size_t g = 0; g < a->groups; g++) {
		struct shape *s = &shape[g];
		const struct format_facts *f = a->group[g].format;
		double in_file, in_visit, share, back;

		if (!s->candidate || s->data_requests == 0 || reads_pieces(a, &a->group[g], s))
			continue;
		in_file = (double)s->in_files / (double)a->group[g].files;
		/* an index tells where each item is */
		if (f && f->folder_file) {
			s->container = in_file >= 2;
			continue;
		}
		in_visit = (double)s->in_visits / (double)s->visits;
		share = (double)s->contiguous / (double)s->data_requests;
		back = (double)s->backward / (double)s->data_requests;
		/* a stream that is read by an index is none */
		if (s->stream) {
			s->container = in_file >= 4 && back > 0.1;
			continue;
		}
		s->container = (in_file > 1.5 * in_visit && !visited_in_turn(a, g)) ||
			       (in_file >= 4 && back > 0.1 && (f || a->group[g].files == 1)) ||
			       (f && in_file >= 4 && s->visits <= 2 * a->group[g].files &&
				a->group[g].files <= a->job->threads);
		/* in any order but that of the file, m requests a sample: m - 1 of m follow */
		s->joined = s->container && share >= 0.3 && share <= 0.97;
	}
}

static bool is_stream(const char *extension, const struct format_facts *f)
{
	static const char *const names[] = {"tar",   "tgz",    "rec", "arrow", "zst",
					    "jsonl", "ndjson", "tsv", NULL};

	for (size_t i = 0; names[i]; i++)
		if (strcmp(names[i], extension) == 0)
			return true;
	return f && f->flags & FORMAT_STREAM;
}

/* ---- samples ---- */

struct keyed_place {
	uint32_t rank; /* of the file among names */
	uint32_t visit;
	int64_t offset;
};

static int by_keyed_place(const void *x, const void *y)
{
	const struct keyed_place *a = x, *b = y;

	return ORDER(a->rank, b->rank) ?: ORDER(a->offset, b->offset) ?: ORDER(a->visit, b->visit);
}

static void number_samples(struct profile *a)
{
	AUTO_FREE struct keyed_place *key = xcalloc(a->visits + 1, sizeof(*key));
	AUTO_FREE uint32_t *file = xcalloc(a->job->files + 1, sizeof(*file)),
			   *rank = xcalloc(a->job->files + 1, sizeof(*rank));
	size_t files = 0;

	for (size_t i = 0; i < a->visits; i++)
		rank[a->visit[i].sample] = 1;
	for (size_t i = 0; i < a->job->files; i++)
		if (rank[i])
			file[files++] = (uint32_t)i;
	job_sort_by_name(a->job, file, files);
	for (size_t i = 0; i < files; i++)
		rank[file[i]] = (uint32_t)i;
	for (size_t i = 0; i < a->visits; i++)
		key[i] = (struct keyed_place){rank[a->visit[i].sample], (uint32_t)i,
					      a->visit[i].offset};
	qsort(key, a->visits, sizeof(*key), by_keyed_place);
	a->sample = xcalloc(a->visits + 1, sizeof(*a->sample));
	for (size_t i = 0; i < a->visits; i++) {
		struct visit *v = &a->visit[key[i].visit];

		if (i == 0 || key[i].rank != key[i - 1].rank || key[i].offset != key[i - 1].offset)
			a->sample[a->samples++] = (struct job_sample){
				.file = file[key[i].rank],
				.offset = key[i].offset,
			};
		v->sample = (uint32_t)(a->samples - 1);
		RAISE(a->sample[a->samples - 1].bytes, v->bytes);
	}
	if (a->samples > 0)
		a->sample = xrealloc(a->sample, a->samples * sizeof(*a->sample));
}

/* ---- samples of several files ---- */

#define TOGETHER 0.95 /* of the runs of files with one key have as many */
#define KEYS_MIN 4

/* What the names of files that are one sample have in common, without folder and extension: all of
 * it (images/7.png, masks/7.png), or the digits (img_7.png, mask_7.png). */
static void key_of(const char *name, bool digits, struct buf *out)
{
	const char *base = path_basename(name), *end;

	end = strrchr(base, '.');
	if (!end || end == base)
		end = base + strlen(base);
	buf_reset(out);
	for (const char *p = base; p < end; p++)
		if (!digits || (*p >= '0' && *p <= '9'))
			buf_putc(out, *p);
	buf_putc(out, '\0');
}

/* A number for the key of each file that has a visit; JOB_NONE without one. *n: how many there are.
 */
static uint32_t *find_keys(const struct profile *a, bool digits, size_t *n)
{
	uint32_t *key = job_numbers(a->job->files);
	struct texts texts = {0};
	struct buf text = {0};

	for (size_t i = 0; i < a->visits; i++) {
		uint32_t file = a->visit[i].sample;

		if (key[file] != JOB_NONE)
			continue;
		key_of(a->job->file[file].name, digits, &text);
		if (text.data[0])
			key[file] = (uint32_t)texts_add(&texts, text.data);
	}
	*n = texts.n;
	texts_release(&texts);
	buf_release(&text);
	return key;
}

/* A thread in the middle of a run of visits whose files have one key. */
struct run {
	uint32_t visit, last; /* its first one; the file of the last */
	uint32_t key, n;
};

struct lengths {
	uint64_t of[8]; /* the last: as many or more */
	uint64_t runs;
};

static void end_run(const struct run *r, struct lengths *l)
{
	if (r->n == 0)
		return;
	l->of[r->n < 7 ? r->n : 7]++;
	l->runs++;
}

/* Goes through the runs; with `first`, notes for each visit the first one of its run. */
static struct lengths find_runs(const struct profile *a, const uint32_t *key, uint32_t *first)
{
	AUTO_FREE struct run *run = xcalloc(a->job->threads + 1, sizeof(*run));
	struct lengths l = {0};

	for (size_t i = 0; i < a->visits; i++) {
		uint32_t file = a->visit[i].sample;
		struct run *r = &run[a->visit[i].reader];

		if (r->n == 0 || key[file] == JOB_NONE || key[file] != r->key || file == r->last) {
			end_run(r, &l);
			*r = (struct run){.visit = (uint32_t)i, .key = key[file]};
		}
		r->last = file;
		r->n++;
		if (first)
			first[i] = r->visit;
	}
	for (size_t i = 0; i < a->job->threads; i++)
		end_run(&run[i], &l);
	return l;
}

/* The visits of each run become one. */
static void join_runs(struct profile *a, const uint32_t *key)
{
	AUTO_FREE uint32_t *first = xcalloc(a->visits + 1, sizeof(*first)),
			   *now = xcalloc(a->visits + 1, sizeof(*now));
	size_t kept = 0;

	find_runs(a, key, first);
	for (size_t i = 0; i < a->visits; i++) {
		struct visit *v = &a->visit[i], *f;

		if (first[i] == i) {
			now[i] = (uint32_t)kept;
			a->visit[kept++] = *v;
			continue;
		}
		f = &a->visit[now[first[i]]];
		RAISE(f->end_ns, v->end_ns);
		f->bytes = i64_sum(f->bytes, v->bytes);
		f->read_ns = i64_sum(f->read_ns, v->read_ns);
		f->requests += v->requests;
	}
	a->visits = kept;
}

/* Files whose names have the same key and that are always read in succession, such as an image and
 * its mask or label, are joined to one sample, which gets the number of the first file. */
static void join_companions(struct profile *a)
{
	for (int digits = 0; digits < 2 && a->companions == 0; digits++) {
		size_t keys;
		AUTO_FREE uint32_t *key = find_keys(a, digits, &keys);
		struct lengths l = find_runs(a, key, NULL);

		for (uint32_t n = 2; n < 7 && keys >= KEYS_MIN; n++)
			if ((double)l.of[n] >= TOGETHER * (double)l.runs)
				a->companions = n;
		if (a->companions > 0)
			join_runs(a, key);
	}
}

/* ---- what is read of a file before its samples ---- */

/* A reader of a file. */
struct opening {
	uint32_t file, thread;
	uint32_t visit;  /* its first one */
	int64_t last_ns; /* end of its last */
};

static int by_opening(const void *x, const void *y)
{
	const struct opening *a = x, *b = y;

	return ORDER(a->file, b->file) ?: ORDER(a->thread, b->thread) ?: ORDER(a->visit, b->visit);
}

static int by_opening_and_time(const void *x, const void *y)
{
	const struct opening *a = x, *b = y;

	return ORDER(a->file, b->file) ?: ORDER(a->visit, b->visit);
}

/* Each reader once for each file that it reads; how many. Visits are by time. */
static size_t find_openings(const struct profile *a, struct opening *o)
{
	size_t n = 0;

	for (size_t i = 0; i < a->visits; i++)
		o[i] = (struct opening){a->sample[a->visit[i].sample].file, a->visit[i].reader,
					(uint32_t)i, a->visit[i].end_ns};
	qsort(o, a->visits, sizeof(*o), by_opening);
	for (size_t i = 0; i < a->visits; i++) {
		if (n > 0 && o[i].file == o[n - 1].file && o[i].thread == o[n - 1].thread) {
			RAISE(o[n - 1].last_ns, o[i].last_ns);
			continue;
		}
		o[n++] = o[i];
	}
	qsort(o, n, sizeof(*o), by_opening_and_time);
	return n;
}

/* The directory of an archive, or an index: a place with which all readers of the file begin, also
 * those that read it at once, and to which none comes back. It is no sample. */
static void drop_directories(struct profile *a)
{
	AUTO_FREE struct opening *o = xcalloc(a->visits + 1, sizeof(*o));
	AUTO_FREE uint32_t *times = xcalloc(a->samples + 1, sizeof(*times));
	AUTO_FREE bool *keep = xcalloc(a->samples + 1, sizeof(*keep));
	bool any = false;
	size_t n;

	for (size_t i = 0; i < a->visits; i++) {
		times[a->visit[i].sample]++;
		keep[a->visit[i].sample] = true;
	}
	n = find_openings(a, o);
	for (size_t i = 0, end; i < n; i = end) {
		uint32_t sample = a->visit[o[i].visit].sample;
		bool same = true, at_once = false;

		for (end = i; end < n && o[end].file == o[i].file; end++) {
			same &= a->visit[o[end].visit].sample == sample;
			at_once |= end > i && a->visit[o[end].visit].begin_ns < o[end - 1].last_ns;
		}
		keep[sample] &= !same || !at_once || times[sample] != end - i;
	}
	for (size_t i = 0; i < a->samples; i++)
		any |= keep[i];
	if (any)
		profile_keep_samples(a, keep);
}

static int by_visit_begin(const void *x, const void *y)
{
	const struct visit *a = x, *b = y;

	return ORDER(a->begin_ns, b->begin_ns);
}

/* Visits of files of which nothing was read (opened to look at) are none. */
static void drop_empty(struct profile *a)
{
	size_t kept = 0;

	for (size_t i = 0; i < a->visits; i++)
		if (a->visit[i].bytes != 0 || a->visit[i].requests == 0)
			a->visit[kept++] = a->visit[i];
	a->visits = kept;
}

/* A program may look into the files (count records, check headers) before it reads them: visits
 * that come before any whole one and read a small part of what later ones read are none. */
static void drop_looks(struct profile *a)
{
	AUTO_FREE int64_t *most = xcalloc(a->job->files + 1, sizeof(*most));
	size_t looks = 0;

	for (size_t i = 0; i < a->visits; i++)
		RAISE(most[a->visit[i].sample], a->visit[i].bytes);
	while (looks < a->visits &&
	       (double)a->visit[looks].bytes < LOOK * (double)most[a->visit[looks].sample])
		looks++;
	if (looks < LOOKS_MIN)
		return;
	if (looks < a->visits && a->visit[looks].begin_ns != JOB_UNKNOWN)
		a->looks_end_ns = a->visit[looks].begin_ns;
	a->visits -= looks;
	memmove(a->visit, a->visit + looks, a->visits * sizeof(*a->visit));
}

void profile_visits(struct profile *a)
{
	AUTO_FREE struct shape *shape = xcalloc(a->groups + 1, sizeof(*shape));
	struct places_read read = {0};
	bool again = false;

	if (!(a->job->sees & JOB_SEES_REQUESTS))
		return;
	for (size_t g = 0; g < a->groups; g++) {
		const struct format_facts *f = a->group[g].format;

		if (a->group[g].role != FILE_DATASET)
			continue;
		shape[g].stream = is_stream(a->group[g].extension, f);
		shape[g].candidate = shape[g].stream || !f || f->kept_open || f->folder_file ||
				     f->flags & FORMAT_MAPS;
	}
	find_data_sizes(a, shape);
	/* what is not an item is its place */
	for (size_t g = 0; g < a->groups; g++)
		if (a->group[g].format && a->group[g].format->folder_file)
			shape[g].data_size = PLACE_BYTES + 1;
	collect(a, shape, &read);
	count_places(a, shape, &read);
	free(read.v);
	choose_containers(a, shape);
	for (size_t g = 0; g < a->groups; g++) {
		again |= shape[g].container;
		a->stream |= shape[g].stream && !shape[g].container;
	}
	if (again) {
		a->container = true;
		collect(a, shape, NULL);
	}
	drop_empty(a);
	if (!a->container)
		drop_looks(a);
	if (!a->container && !a->stream && !a->files_of_sample)
		join_companions(a);
	number_samples(a);
	for (size_t i = 1; i < a->visits; i++)
		if (a->visit[i].begin_ns < a->visit[i - 1].begin_ns) {
			qsort(a->visit, a->visits, sizeof(*a->visit), by_visit_begin);
			break;
		}
	if (a->container)
		drop_directories(a);
}

/* ---- samples of several places ---- */

#define FOLLOW_LEAST 0.95   /* of the visits */
#define FOLLOWERS_LEAST 8   /* places, */
#define FOLLOWERS_SHARE 0.2 /* of all */
#define ANEW 0.1            /* openings and visits of other places differ by less */

/* Of a place: how often it is visited, and where its reader was before, in the file. */
struct visited {
	uint32_t times, followed; /* by another place of the file */
	uint32_t before;          /* a sample; JOB_NONE */
	bool differs;             /* from visit to visit, or was none */
};

/* The visit before of the same reader, where it is of another place of the same file. */
static uint32_t *find_befores(const struct profile *a)
{
	AUTO_FREE uint32_t *last = job_numbers(a->readers);
	uint32_t *before = job_numbers(a->visits);

	for (size_t i = 0; i < a->visits; i++) {
		const struct visit *v = &a->visit[i];
		uint32_t b = last[v->reader];

		if (b != JOB_NONE && a->visit[b].sample != v->sample &&
		    a->sample[a->visit[b].sample].file == a->sample[v->sample].file)
			before[i] = b;
		last[v->reader] = (uint32_t)i;
	}
	return before;
}

static struct visited *look_at_places(const struct profile *a, const uint32_t *before)
{
	struct visited *s = xcalloc(a->samples + 1, sizeof(*s));

	for (size_t i = 0; i < a->samples; i++)
		s[i].before = JOB_NONE;
	for (size_t i = 0; i < a->visits; i++) {
		struct visited *v = &s[a->visit[i].sample];
		uint32_t b = before[i] == JOB_NONE ? JOB_NONE : a->visit[before[i]].sample;

		v->differs |= b == JOB_NONE || (v->times > 0 && v->before != b);
		v->before = b;
		v->times++;
		if (b != JOB_NONE)
			s[b].followed++;
	}
	return s;
}

/* Places behind all those of their file that are read in changing succession, each always behind
 * the same of these: the label that is read with an image. `keep`: not of them. */
static bool find_labels(const struct profile *a, const struct visited *s, const uint32_t *before,
			bool *keep)
{
	AUTO_FREE int64_t *drawn = xcalloc(a->job->files + 1, sizeof(*drawn));
	size_t labels = 0, visits = 0, behind = 0;

	for (size_t i = 0; i < a->job->files; i++)
		drawn[i] = -1;
	for (size_t i = 0; i < a->samples; i++)
		if (s[i].times > 1 && s[i].differs)
			RAISE(drawn[a->sample[i].file], a->sample[i].offset);
	for (size_t i = 0; i < a->samples; i++)
		keep[i] = a->sample[i].offset <= drawn[a->sample[i].file];
	/* one that was always read behind the same by chance has a label of its own */
	for (size_t i = 0; i < a->visits; i++)
		if (before[i] != JOB_NONE && !keep[a->visit[i].sample] &&
		    a->visit[before[i]].sample < a->visit[i].sample)
			keep[a->visit[before[i]].sample] = true;
	for (size_t i = 0; i < a->samples; i++)
		labels += !keep[i];
	for (size_t i = 0; i < a->visits; i++)
		if (!keep[a->visit[i].sample]) {
			visits++;
			behind += before[i] != JOB_NONE && keep[a->visit[before[i]].sample];
		}
	return labels >= FOLLOWERS_LEAST &&
	       (double)labels >= FOLLOWERS_SHARE * (double)a->samples &&
	       (double)behind >= FOLLOW_LEAST * (double)visits;
}

/* One place of each file, which is read anew before each of the others: its directory. */
static bool find_anew(const struct profile *a, const struct visited *s, bool *keep)
{
	double openings = 0, followed = 0, others = 0;
	size_t files = 0;

	for (size_t i = 0, end; i < a->samples; i = end) {
		size_t most = i;

		files++;
		for (end = i; end < a->samples && a->sample[end].file == a->sample[i].file; end++) {
			if (s[end].times > s[most].times)
				most = end;
			others += s[end].times;
			keep[end] = true;
		}
		others -= s[most].times;
		openings += s[most].times;
		followed += s[most].followed;
		keep[most] = false;
	}
	return a->samples >= 3 * files && others > 0 && openings >= (1 - ANEW) * others &&
	       openings <= (1 + ANEW) * others && followed >= FOLLOW_LEAST * openings;
}

static void take_in(struct profile *a, struct visit *into, const struct visit *v)
{
	LOWER(into->begin_ns, v->begin_ns);
	RAISE(into->end_ns, v->end_ns);
	into->bytes = i64_sum(into->bytes, v->bytes);
	into->read_ns = i64_sum(into->read_ns, v->read_ns);
	into->requests += v->requests;
	RAISE(a->sample[into->sample].bytes, into->bytes);
}

void profile_join_places(struct profile *a)
{
	AUTO_FREE uint32_t *before = find_befores(a);
	AUTO_FREE struct visited *s = look_at_places(a, before);
	AUTO_FREE bool *keep = xcalloc(a->samples + 1, sizeof(*keep));
	bool labels = find_labels(a, s, before, keep);

	if (!labels && !find_anew(a, s, keep))
		return;
	for (size_t i = 0; i < a->visits; i++) {
		struct visit *v = &a->visit[i], *b;

		if (before[i] == JOB_NONE)
			continue;
		b = &a->visit[before[i]];
		if (labels && keep[b->sample] && !keep[v->sample])
			take_in(a, b, v);
		else if (!labels && keep[v->sample] && !keep[b->sample])
			take_in(a, v, b);
	}
	profile_keep_samples(a, keep);
}
