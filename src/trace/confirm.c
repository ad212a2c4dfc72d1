/* What the readers of a run asked for, against what the reader of the format asks for. */
#include "trace/confirm.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/map.h"
#include "base/vector.h"
#include "dataset/dataset.h"
#include "dataset/listing.h"
#include "loader/loader.h"
#include "loader/sample_reader.h"
#include "store/store.h"

enum request_kind { ASK_OPEN, ASK_READ, ASK_MAP };

struct request {
	int64_t offset, asked, got;
	uint8_t kind;
	uint8_t which; /* 0: the file, k: its companion k - 1 */
};

/* Requests of one sample, or of what is loaded before the first. */
struct group {
	size_t first, n; /* in expected.request */
	bool opens;
	bool index;
};

/* What is asked of one file of the dataset. */
struct expected {
	struct request *request;
	size_t n, room;
	struct group *group;
	size_t groups, group_room;
	bool known;
	bool each;  /* the library opens the file for each sample */
	bool count; /* every sample has requests of its own */
};

/* ---- a store that writes down what is asked ---- */

struct noted_store {
	struct store s;
	struct expected *to; /* NULL: nothing is written down */
	const char *path;    /* of the file */
	const struct format_ops *format;
};

struct noted_blob {
	struct blob b;
	uint8_t which;
};

static void note(const struct store *store, const struct blob *b, enum request_kind kind,
		 uint64_t offset, uint64_t asked, ssize_t got)
{
	struct expected *x = ((const struct noted_store *)store)->to;

	if (x)
		VECTOR_PUSH(x->request, x->n, x->room,
			    {.kind = (uint8_t)kind,
			     .which = ((const struct noted_blob *)b)->which,
			     .offset = (int64_t)offset,
			     .asked = (int64_t)asked,
			     .got = got});
}

static int noted_open(struct store *store, const char *path, unsigned how, struct blob *b,
		      struct err *e)
{
	struct noted_store *s = (struct noted_store *)store;
	struct noted_blob *nb = (struct noted_blob *)b;
	char companion[DATASET_PATH_MAX];
	int rc = store_open(store->lower, path, how, store_blob_below(b), e);

	nb->which = 0;
	for (uint32_t i = 0; i < s->format->sidecars && strcmp(path, s->path) != 0; i++)
		if (s->format->sidecar_path(s->path, i, companion, sizeof(companion)) == 0 &&
		    strcmp(companion, path) == 0)
			nb->which = (uint8_t)(i + 1);
	if (rc == 0)
		note(store, b, ASK_OPEN, 0, 0, 0);
	return rc;
}

static ssize_t noted_preadv(struct blob *b, const struct iovec *v, int count, uint64_t offset,
			    struct err *e)
{
	const struct io io = {.store = b->store->lower};
	ssize_t got = io_preadv(&io, IO_DATA, store_blob_below(b), v, count, offset, e);

	note(b->store, b, ASK_READ, offset, io_pieces_bytes(v, count), got);
	return got;
}

static ssize_t noted_pread(struct blob *b, void *p, size_t n, uint64_t offset, struct err *e)
{
	ssize_t got = store_pread(store_blob_below(b), p, n, offset, e);

	note(b->store, b, ASK_READ, offset, n, got);
	return got;
}

static int noted_map(struct blob *b, uint64_t bytes, const void **at, struct err *e)
{
	struct blob *below = store_blob_below(b);

	if (!below->store->ops->map)
		return err_set(e, ERR_USAGE, "files of this store cannot be mapped");
	note(b->store, b, ASK_MAP, 0, bytes, 0);
	return below->store->ops->map(below, bytes, at, e);
}

static int noted_close(struct blob *b, struct err *e)
{
	return store_close(store_blob_below(b), e);
}

static const struct store_ops noted_ops = {
	.is = {.name = "requests written down", .flags = STORE_IS_SHIM},
	.blob_bytes = sizeof(struct noted_blob),
	.open = noted_open,
	.close = noted_close,
	.pread = noted_pread,
	.preadv = noted_preadv,
	.map = noted_map,
};

/* ---- what the reader asks ---- */

struct confirming {
	const struct job *job;
	struct dataset dataset;
	const struct workload *w;
	struct store *store;
	struct noted_store noted;
	struct io io;
	struct reader_config settings;
	void *memory;
	size_t memory_bytes;
	struct expected *expected; /* by number of the file, both kinds */
	uint64_t expected_files;
	size_t kept;       /* requests in all of them */
	uint32_t *file_of; /* by file of the job: number + 1 of the dataset's, 0: none */
	uint8_t *which_of;
	struct confirmation *out;
	bool ours, named; /* named: the log has names of threads */
};

static void group_end(struct expected *x, size_t first, bool index)
{
	struct group g = {.first = first, .n = x->n - first, .index = index};

	for (size_t i = first; i < x->n; i++)
		g.opens = g.opens || x->request[i].kind == ASK_OPEN;
	VECTOR_PUSH(x->group, x->groups, x->group_room, g);
}

static void forget(struct confirming *c)
{
	for (uint64_t i = 0; i < c->expected_files; i++) {
		free(c->expected[i].request);
		free(c->expected[i].group);
		c->expected[i] = (struct expected){0};
	}
	c->kept = 0;
}

static enum dataset_kind kind_of(const struct confirming *c, uint64_t number, uint64_t *index)
{
	enum dataset_kind kind =
		number < c->dataset.files[DATASET_TRAIN] ? DATASET_TRAIN : DATASET_EVAL;

	*index = kind == DATASET_TRAIN ? number : number - c->dataset.files[DATASET_TRAIN];
	return kind;
}

/* Reads all samples of a file, in their order, with a new reader. */
static int expect(struct confirming *c, uint64_t number, const char *path, struct err *e)
{
	struct expected *x = &c->expected[number];
	const struct format_ops *format = format_reader(c->dataset.format, &c->settings);
	struct reader *reader;
	struct file_spec spec;
	struct sample sample;
	uint64_t index;
	enum dataset_kind kind = kind_of(c, number, &index);
	size_t first;
	int rc;

	if (x->known)
		return 0;
	if (c->kept > CONFIRM_REQUESTS)
		forget(c);
	dataset_file_spec(&c->dataset, kind, index, &spec);
	c->noted.path = path;
	c->noted.to = NULL;
	rc = format->reader_init(c->memory, &c->settings, &c->io, &reader, e);
	if (rc < 0)
		return rc;
	c->noted.to = x;
	if (c->w->compat.dlio && format->load_index && c->settings.access == ACCESS_FRAMEWORK) {
		rc = format->load_index(reader, path, &spec, e);
		group_end(x, 0, true);
	}
	for (uint64_t i = 0; i < spec.samples && rc == 0; i++) {
		first = x->n;
		rc = format->read(reader, path, &spec, i, &sample, e);
		group_end(x, first, false);
	}
	first = x->n;
	if (rc == 0)
		rc = format->reader_close(reader, e);
	else
		format->reader_close(reader, NULL);
	c->noted.to = NULL;
	x->known = x->each = x->count = true;
	for (size_t i = 0; i < x->groups; i++) {
		x->each = x->each && (x->group[i].opens || x->group[i].index || !x->group[i].n);
		x->count = x->count && (x->group[i].n || c->settings.keep_open);
	}
	c->kept += x->n;
	return rc;
}

/* ---- which files ---- */

/* The N of `..._N_of_M.ext`; false: no such name. */
static bool name_numbers(const char *name, uint64_t *index, uint64_t *total)
{
	const char *base = path_basename(name), *of = NULL, *p;
	unsigned long long i, n;

	for (p = strstr(base, "_of_"); p; p = strstr(p + 1, "_of_"))
		of = p;
	if (!of || of == base)
		return false;
	for (p = of; p > base && p[-1] >= '0' && p[-1] <= '9';)
		p--;
	if (p == of || sscanf(p, "%19llu_of_%19llu", &i, &n) != 2)
		return false;
	*index = i;
	*total = n;
	return true;
}

/* Whether the log's name is `path`, which may be relative or lead over links. */
static bool same_path(const char *name, const char *path)
{
	char real[PATH_MAX];
	size_t n = strlen(name), k;

	while (path[0] == '.' && path[1] == '/')
		path += 2;
	k = strlen(path);
	if (strcmp(name, path) == 0 ||
	    (path[0] != '/' && n > k && name[n - k - 1] == '/' && strcmp(name + n - k, path) == 0))
		return true;
	return realpath(path, real) && strcmp(name, real) == 0;
}

/* The file of the dataset with the log's name. */
static void place(struct confirming *c, uint32_t file)
{
	const struct dataset *d = &c->dataset;
	const char *name = c->job->file[file].name;
	char path[DATASET_PATH_MAX], companion[DATASET_PATH_MAX];
	uint64_t index, total;

	if (c->job->file[file].kind != JOB_FILE_REGULAR ||
	    !(name_numbers(name, &index, &total) ||
	      listing_parse(d, path_basename(name), &index, &total)))
		return;
	for (int kind = 0; kind < DATASET_KINDS; kind++) {
		uint64_t number = index + (kind == DATASET_EVAL ? d->files[DATASET_TRAIN] : 0);

		if (index >= d->files[kind] ||
		    dataset_path(d, kind, index, path, sizeof(path), NULL) < 0)
			continue;
		if (same_path(name, path)) {
			c->file_of[file] = (uint32_t)number + 1;
			return;
		}
		for (uint32_t i = 0; i < d->format->sidecars; i++) {
			if (d->format->sidecar_path(path, i, companion, sizeof(companion)) < 0 ||
			    !same_path(name, companion))
				continue;
			c->file_of[file] = (uint32_t)number + 1;
			c->which_of[file] = (uint8_t)(i + 1);
			return;
		}
	}
}

/* The dataset may have more files than the run used, and says so in their names. */
static int adopt_total(struct confirming *c, struct err *e)
{
	struct dataset *d = &c->dataset;
	uint64_t most[DATASET_KINDS], index, total;
	const char *folder[] = {"/train/", "/valid/"};

	memcpy(most, d->name_total, sizeof(most));
	for (size_t i = 0; i < c->job->files; i++)
		for (int kind = 0; kind < DATASET_KINDS; kind++)
			if (d->files[kind] && strstr(c->job->file[i].name, folder[kind]) &&
			    name_numbers(c->job->file[i].name, &index, &total) &&
			    total > most[kind] && total < UINT32_MAX)
				most[kind] = total;
	return memcmp(most, d->name_total, sizeof(most)) == 0 ? 0
							      : dataset_set_name_total(d, most, e);
}

/* ---- visits ---- */

struct visit {
	uint32_t thread, file;
	bool open;
	bool opened; /* the log has its open */
	size_t *event;
	size_t n, room;
};

static bool is_reader(const struct confirming *c, uint32_t thread)
{
	const char *p = c->job->thread[thread].name;

	if (!c->ours || !c->named)
		return true;
	if (!p || !*p)
		return false;
	while (*p >= 'a' && *p <= 'z')
		p++;
	if (!*p)
		return false;
	return p[strspn(p, "0123456789.")] == '\0';
}

static bool equal(const struct job_event *v, const struct request *r)
{
	if (r->kind == ASK_MAP)
		return v->kind == JOB_MAP && v->offset == r->offset &&
		       (v->asked == JOB_UNKNOWN || v->asked == r->asked);
	return v->kind == JOB_READ && v->offset == r->offset && v->result == r->got &&
	       (v->asked == JOB_UNKNOWN || v->asked == r->asked);
}

/* How many requests of a group, without opens and those of other files, follow in a visit from
 * `at` on. *n: how many the group has. */
static size_t agree(const struct confirming *c, const struct visit *v, size_t at,
		    const struct expected *x, const struct group *g, size_t *n,
		    const struct request **missed)
{
	uint8_t which = c->which_of[v->file];
	size_t same = 0;

	*n = 0;
	*missed = NULL;
	for (size_t i = g->first; i < g->first + g->n; i++) {
		const struct request *r = &x->request[i];

		if (r->kind == ASK_OPEN || r->which != which)
			continue;
		if (same == *n && at + same < v->n && equal(&c->job->event[v->event[at + same]], r))
			same++;
		else if (!*missed)
			*missed = r;
		++*n;
	}
	return same;
}

static void put_request(struct buf *b, bool map, int64_t offset, int64_t asked, int64_t got)
{
	buf_puts(b, map ? "a mapping of " : "a read of ");
	if (asked == JOB_UNKNOWN)
		buf_printf(b, "%" PRId64, got);
	else
		buf_printf(b, "%" PRId64, asked);
	if (offset == JOB_UNKNOWN)
		buf_puts(b, " bytes at an unknown offset");
	else
		buf_printf(b, " bytes at %" PRId64, offset);
	if (!map && asked != JOB_UNKNOWN && got != asked)
		buf_printf(b, " (%" PRId64 " came)", got);
}

static void tell_difference(struct confirming *c, const struct visit *v, size_t at,
			    const struct request *want)
{
	const struct job_event *had = at < v->n ? &c->job->event[v->event[at]] : NULL;
	const struct job_event *near = had ? had : &c->job->event[v->event[v->n - 1]];
	const struct job_thread *t = &c->job->thread[v->thread];
	struct buf b = {0};

	buf_printf(&b, "%s: request %zu of a visit", c->job->file[v->file].name, at + 1);
	if (near->flags)
		buf_printf(&b, " (line %u of the log, thread %" PRId64 ")", near->flags, t->tid);
	else
		buf_printf(&b, " (thread %" PRId64 ")", t->tid);
	buf_puts(&b, " should be ");
	if (want)
		put_request(&b, want->kind == ASK_MAP, want->offset, want->asked, want->got);
	else
		buf_puts(&b, "none, as all of a sample was read");
	if (had) {
		buf_puts(&b, " and is ");
		put_request(&b, had->kind == JOB_MAP, had->offset, had->asked, had->result);
	} else {
		buf_puts(&b, " and there is none");
	}
	snprintf(c->out->difference, sizeof(c->out->difference), "%s", b.data);
	buf_release(&b);
}

/* Takes a visit apart into groups. The first difference of all is kept. */
static int check_visit(struct confirming *c, struct visit *v, struct err *e)
{
	uint32_t number = c->file_of[v->file] - 1;
	const struct expected *x = &c->expected[number];
	uint64_t index, samples = 0;
	char path[DATASET_PATH_MAX];
	size_t at = 0, turn = 0;
	int rc;

	if (!v->n)
		return 0;
	if (c->which_of[v->file]) {
		enum dataset_kind kind = kind_of(c, number, &index);

		rc = dataset_path(&c->dataset, kind, index, path, sizeof(path), e);
		if (rc == 0)
			rc = expect(c, number, path, e);
	} else {
		rc = expect(c, number, c->job->file[v->file].name, e);
	}
	if (rc < 0)
		return rc;
	while (at < v->n) {
		size_t best = 0, best_n = 0, best_group = x->groups;
		const struct request *missed = NULL, *m;

		for (size_t k = 0; k < x->groups; k++) {
			size_t g = (turn + k) % x->groups, n;
			size_t same = agree(c, v, at, x, &x->group[g], &n, &m);

			if (n && same == n && (best < best_n || !best_n || n > best_n)) {
				best = best_n = n;
				best_group = g;
				missed = NULL;
				if (!x->each)
					break;
			} else if (n && !(best_n && best == best_n) &&
				   (best_group == x->groups || same > best)) {
				best = same;
				best_n = n;
				best_group = g;
				missed = m;
			}
		}
		if (best_group == x->groups || best < best_n) {
			if (!c->out->differ++)
				tell_difference(c, v, at + best, missed);
			return 0;
		}
		at += best;
		turn = best_group + 1;
		samples += x->count && !x->group[best_group].index &&
			   c->job->event[v->event[at - 1]].kind == JOB_READ;
		if (x->each && !x->group[best_group].index && at < v->n) {
			if (!c->out->differ++)
				tell_difference(c, v, at, NULL);
			return 0;
		}
	}
	c->out->visits++;
	c->out->samples += c->which_of[v->file] ? 0 : samples;
	c->out->requests += v->n;
	for (size_t i = 0; i < v->n; i++)
		if (c->job->event[v->event[i]].kind == JOB_READ)
			c->out->bytes += (uint64_t)c->job->event[v->event[i]].result;
	return 0;
}

static int check_events(struct confirming *c, struct err *e)
{
	const struct job *job = c->job;
	struct map open = {0};
	struct visit *visit = NULL;
	size_t visits = 0, room = 0;
	bool *read = xcalloc(c->expected_files + 1, sizeof(*read));
	int rc = 0;

	for (size_t i = 0; i < job->events && rc == 0; i++) {
		const struct job_event *v = &job->event[i];
		struct visit *at;
		int64_t key;
		uint32_t k;

		if (v->file == JOB_NONE || !c->file_of[v->file] || v->result < 0 ||
		    (v->kind != JOB_OPEN && v->kind != JOB_READ && v->kind != JOB_MAP &&
		     v->kind != JOB_CLOSE))
			continue;
		if (!is_reader(c, v->thread)) {
			c->out->others += v->kind == JOB_READ;
			continue;
		}
		key = (int64_t)v->thread << 32 | v->file;
		k = map_get(&open, key);
		if (k == MAP_NONE) {
			k = (uint32_t)visits;
			VECTOR_PUSH(visit, visits, room, {.thread = v->thread, .file = v->file});
			map_put(&open, key, k);
		}
		at = &visit[k];
		if (v->kind == JOB_OPEN || v->kind == JOB_CLOSE) {
			rc = check_visit(c, at, e);
			free(at->event);
			at->event = NULL;
			at->n = at->room = 0;
			continue;
		}
		c->out->bare += v->kind == JOB_READ && v->asked == JOB_UNKNOWN;
		if (!read[c->file_of[v->file] - 1] && !c->which_of[v->file]) {
			read[c->file_of[v->file] - 1] = true;
			c->out->files++;
		}
		VECTOR_PUSH(at->event, at->n, at->room, i);
	}
	for (size_t i = 0; i < visits; i++) {
		if (rc == 0)
			rc = check_visit(c, &visit[i], e);
		free(visit[i].event);
	}
	free(visit);
	free(read);
	map_release(&open);
	return rc;
}

/* ---- the whole ---- */

static int prepare(struct confirming *c, struct err *e)
{
	const struct store_facts *base = workload_base_store(c->w);
	struct loader_config config;
	int rc;

	if (!base || !(base->flags & STORE_HAS_FILES) ||
	    base->flags & (STORE_IS_UNCACHED | STORE_MAPS) || !(base->flags & STORE_IS_BUFFERED))
		return err_set(e, ERR_USAGE,
			       "the run read through the store '%s', which asks the system in its "
			       "own way: only runs that read with pread through the page cache can "
			       "be confirmed",
			       base ? base->name : "");
	rc = dataset_init(&c->dataset, c->w, e);
	if (rc < 0)
		return rc;
	if (c->dataset.format->is.flags & FORMAT_NO_IO)
		return err_set(e, ERR_USAGE, "the format '%s' reads nothing",
			       c->dataset.format->is.name);
	if (c->dataset.samples_per_file > CONFIRM_SAMPLES)
		return err_set(e, ERR_USAGE, "files of more than %d samples cannot be confirmed",
			       CONFIRM_SAMPLES);
	rc = adopt_total(c, e);
	if (rc == 0)
		rc = store_create(&c->store, base->name, NULL, e);
	if (rc < 0)
		return rc;
	c->noted.s = (struct store){.ops = &noted_ops, .lower = c->store};
	c->noted.format = c->dataset.format;
	c->io = (struct io){.store = &c->noted.s};
	config = (struct loader_config){.workload = c->w,
					.dataset = &c->dataset,
					.kind = DATASET_TRAIN,
					.store = &c->noted.s,
					.batch_size = 1,
					.one_request = true};
	sample_reader_settings(&c->settings, &config);
	c->settings.decode = DECODE_NONE;
	c->memory_bytes = format_reader(c->dataset.format, &c->settings)
				  ->reader_bytes(&c->settings, &c->noted.s);
	c->memory = c->memory_bytes ? buffer_alloc(c->memory_bytes, "a reader", e) : NULL;
	if (!c->memory)
		return c->memory_bytes
			       ? -ENOMEM
			       : err_set(e, -ENOMEM, "the samples are too large to be read");
	c->expected_files = c->dataset.files[DATASET_TRAIN] + c->dataset.files[DATASET_EVAL];
	c->expected = try_calloc(c->expected_files + 1, sizeof(*c->expected), "the files", e);
	c->file_of = xcalloc(c->job->files + 1, sizeof(*c->file_of));
	c->which_of = xcalloc(c->job->files + 1, 1);
	if (!c->expected)
		return -ENOMEM;
	for (size_t i = 0; i < c->job->files; i++)
		place(c, (uint32_t)i);
	for (size_t i = 0; i < c->job->threads; i++)
		c->named = c->named || c->job->thread[i].name;
	return 0;
}

int confirm(const struct workload *w, bool ours, const struct job *job, struct confirmation *out,
	    struct err *e)
{
	struct workload as = *w;
	struct confirming c = {.job = job, .w = &as, .out = out, .ours = ours};
	unsigned needs = JOB_SEES_REQUESTS | JOB_SEES_OFFSETS;
	int rc;

	*out = (struct confirmation){0};
	if ((job->sees & needs) != needs)
		return err_set(e, ERR_USAGE, "the log has no requests with their offsets");
	if (!ours)
		as.compat.dlio = true;
	rc = prepare(&c, e);
	if (rc == 0)
		rc = check_events(&c, e);
	if (rc == 0) {
		out->format = c.dataset.format->is.name;
		out->of_files = c.expected_files;
		out->access = c.settings.access == ACCESS_NATIVE ? "in the fewest requests"
								 : "as its library";
	}
	if (rc == 0 && !out->visits && !out->differ)
		rc = err_set(
			e, ERR_USAGE,
			"the log reads no file of the run's dataset (%s): it is of another run, "
			"or was taken without its children",
			c.dataset.folder);
	forget(&c);
	free(c.expected);
	free(c.file_of);
	free(c.which_of);
	if (c.memory)
		buffer_free(c.memory, c.memory_bytes);
	store_destroy(c.store);
	dataset_release(&c.dataset);
	return rc;
}

void confirm_print(const struct confirmation *c, struct buf *out)
{
	buf_printf(out, "%s\n\n%" PRIu64 " requests ", c->differ ? "Differs." : "Equal.",
		   c->requests);
	if (c->samples)
		buf_printf(out, "of %" PRIu64 " samples ", c->samples);
	buf_printf(out,
		   "in %" PRIu64 " visits to %" PRIu64 " of %" PRIu64 " files (%" PRIu64
		   " bytes) are those of a reader that reads %s %s.\n",
		   c->visits, c->files, c->of_files, c->bytes, c->format, c->access);
	if (c->differ)
		buf_printf(out, "%" PRIu64 " %s. The first: %s.\n", c->differ,
			   c->differ == 1 ? "visit differs" : "visits differ", c->difference);
	if (c->others)
		buf_printf(out,
			   "%" PRIu64 " reads of the dataset were made by threads that are no "
			   "readers, such as checks before and after training.\n",
			   c->others);
	if (c->bare)
		buf_printf(out,
			   "%" PRIu64 " reads have no size asked for in the log; only what they "
			   "returned was compared.\n",
			   c->bare);
}
