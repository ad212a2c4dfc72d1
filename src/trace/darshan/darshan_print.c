/* Darshan logs as text. */
#include "trace/darshan/darshan_log.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/say.h"
#include "base/str.h"
#include "base/vector.h"

#define FLUSH 65536

struct rank_time {
	int64_t rank;
	double all, metadata, data;
};

struct printer {
	struct darshan_log log;
	darshan_put *put;
	void *context;
	struct buf out, place; /* the latter of the record with place_id */
	uint64_t place_id;
	unsigned place_module;
	/* totals of the module */
	bool any, summed;
	struct darshan_record total;
	struct rank_time *rank; /* those with records, as they come */
	size_t ranks, room;
	struct map by_rank;
	double shared_s;
	int64_t bytes;
};

static void flush(struct printer *p, size_t above)
{
	if (p->out.len <= above)
		return;
	p->put(p->context, p->out.data, p->out.len);
	buf_reset(&p->out);
}

/* Name, mount and type of a record, as the tail of a line. The lines of a record follow each
 * other. */
static void put_place(struct printer *p, unsigned module, uint64_t id)
{
	if (p->place.len == 0 || p->place_id != id || p->place_module != module) {
		const char *name = darshan_name(&p->log, id);
		/* what DAOS stores is below no mount */
		bool daos = module == DARSHAN_DFS || module == DARSHAN_DAOS;
		const struct darshan_mount *m =
			name && !daos ? darshan_mount_of(&p->log, name) : NULL;
		const char *none = daos ? "N/A" : "UNKNOWN";

		if (!name)
			name = module == DARSHAN_BGQ ? "darshan-bgq-record" : "(unknown)";
		buf_reset(&p->place);
		buf_say(&p->place, "\t%s\t%s\t%s\n", name, m ? m->path : none, m ? m->type : none);
		p->place_id = id;
		p->place_module = module;
	}
	buf_append(&p->out, p->place.data, p->place.len);
	flush(p, FLUSH);
}

static void put_head(struct printer *p, unsigned module, int64_t rank, uint64_t id)
{
	buf_say(&p->out, "%s\t%" PRId64 "\t%" PRIu64 "\t", darshan_module_name(module), rank, id);
}

/* The line of one counter: its name and value as `fmt` says. */
__attribute__((format(printf, 5, 6))) static void put_line(struct printer *p, unsigned module,
							   int64_t rank, uint64_t id,
							   const char *fmt, ...)
{
	va_list ap;

	put_head(p, module, rank, id);
	va_start(ap, fmt);
	buf_vsay(&p->out, fmt, ap);
	va_end(ap);
	put_place(p, module, id);
}

/* ---- totals ---- */

/* How a counter of several records becomes one: Darshan's own rules. */
enum rule { SUM, GREATEST, LAST, BEGIN, END, SLOWEST, APART };

static enum rule rule_of(const char *name)
{
	static const char *const apart[] = {"_TIME_SIZE", "_RANK",  "_RANK_BYTES", "_RANK_TIME",
					    "_ACCESS",    "_COUNT", "_STRIDE"};
	static const char *const last[] = {"_MODE",       "_RENAMED_FROM", "_ALIGNMENT",
					   "_CHUNK_SIZE", "_OTYPE",        "_CELL_SIZE"};

	for (size_t i = 0; i < sizeof(apart) / sizeof(apart[0]); i++)
		if (str_ends(name, apart[i]))
			return APART;
	for (size_t i = 0; i < sizeof(last) / sizeof(last[0]); i++)
		if (str_ends(name, last[i]))
			return LAST;
	if (strstr(name, "_MAX_BYTE_"))
		return GREATEST;
	if (str_ends(name, "_START_TIMESTAMP"))
		return BEGIN;
	if (str_ends(name, "_END_TIMESTAMP"))
		return END;
	return str_ends(name, "_MAX_READ_TIME") || str_ends(name, "_MAX_WRITE_TIME") ? SLOWEST
										     : SUM;
}

static int64_t plus(int64_t a, int64_t b)
{
	int64_t sum;

	if (__builtin_add_overflow(a, b, &sum))
		sum = b > 0 ? INT64_MAX : -1;
	return sum < 0 ? -1 : sum;
}

/* The counter whose name is the module's prefix and `suffix`; -1. */
static int find(const char *const *name, size_t n, const char *suffix)
{
	for (size_t i = 0; i < n; i++)
		if (str_ends(name[i], suffix))
			return (int)i;
	return -1;
}

static double seconds(double s)
{
	return isfinite(s) ? s : 0;
}

static double named(const struct darshan_record *r, const char *suffix)
{
	int i = find(r->layout->double_name, r->layout->doubles, suffix);

	return i < 0 ? 0 : seconds(r->doubles[i]);
}

static struct rank_time *time_of(struct printer *p, int64_t rank)
{
	uint32_t i = map_get(&p->by_rank, rank);

	if (i != MAP_NONE)
		return &p->rank[i];
	map_put(&p->by_rank, rank, (uint32_t)p->ranks);
	VECTOR_PUSH(p->rank, p->ranks, p->room, {.rank = rank});
	return &p->rank[p->ranks - 1];
}

static void add_time(struct printer *p, const struct darshan_record *r)
{
	struct rank_time *sum;
	struct rank_time t = {.metadata = named(r, "_F_META_TIME"),
			      .data = named(r, "_F_READ_TIME") + named(r, "_F_WRITE_TIME")};

	if (r->rank < 0) {
		p->shared_s += named(r, "_F_SLOWEST_RANK_TIME");
		return;
	}
	sum = time_of(p, r->rank);
	sum->all += t.metadata + t.data;
	sum->metadata += t.metadata;
	sum->data += t.data;
}

static void add_bytes(struct printer *p, const struct darshan_record *r)
{
	static const char *const of[] = {"_BYTES_READ", "_BYTES_WRITTEN"};

	for (size_t k = 0; k < 2; k++) {
		int i = find(r->layout->int_name, r->layout->ints, of[k]);

		if (i >= 0 && r->ints[i] > 0)
			p->bytes = plus(p->bytes, r->ints[i]);
	}
}

static void add_total(struct printer *p, const struct darshan_record *r)
{
	const struct darshan_layout *l = r->layout;
	struct darshan_record *t = &p->total;

	for (size_t i = 0; i < l->ints; i++) {
		enum rule rule = rule_of(l->int_name[i]);

		if (rule == SUM)
			t->ints[i] = plus(t->ints[i], r->ints[i]);
		else if (rule == LAST || (rule == GREATEST && r->ints[i] > t->ints[i]))
			t->ints[i] = r->ints[i];
	}
	for (size_t i = 0; i < l->doubles; i++) {
		enum rule rule = rule_of(l->double_name[i]);
		double v = r->doubles[i];
		bool reading = strstr(l->double_name[i], "_READ_") != NULL;
		int size;

		if (!isfinite(v))
			continue;
		if (rule == SUM)
			t->doubles[i] += v;
		else if ((rule == BEGIN && v > 0 && (t->doubles[i] == 0 || v < t->doubles[i])) ||
			 ((rule == END || rule == SLOWEST) && v > t->doubles[i]))
			t->doubles[i] = v;
		else
			continue;
		size = rule != SLOWEST
			       ? -1
			       : find(l->int_name, l->ints,
				      reading ? "_MAX_READ_TIME_SIZE" : "_MAX_WRITE_TIME_SIZE");
		if (size >= 0)
			t->ints[size] = r->ints[size];
	}
	add_time(p, r);
	add_bytes(p, r);
}

static void put_totals(struct printer *p)
{
	const struct darshan_layout *l = p->total.layout;
	struct rank_time slowest = {0};
	double all;

	for (size_t i = 0; i < l->ints; i++)
		if (rule_of(l->int_name[i]) != APART || str_ends(l->int_name[i], "_TIME_SIZE"))
			buf_say(&p->out, "total_%s: %" PRId64 "\n", l->int_name[i],
				p->total.ints[i]);
	for (size_t i = 0; i < l->doubles; i++)
		if (rule_of(l->double_name[i]) != APART)
			buf_say(&p->out, "total_%s: %f\n", l->double_name[i], p->total.doubles[i]);
	/* of equally slow ranks the first */
	for (size_t i = 0; i < p->ranks; i++)
		if (p->rank[i].all > slowest.all ||
		    (p->rank[i].all == slowest.all && slowest.all > 0 &&
		     p->rank[i].rank < slowest.rank))
			slowest = p->rank[i];
	all = slowest.all + p->shared_s;
	buf_say(&p->out,
		"# total_bytes: %" PRId64 "\n"
		"# unique files: slowest_rank_io_time: %f\n"
		"# unique files: slowest_rank_meta_only_time: %f\n"
		"# unique files: slowest_rank_rw_only_time: %f\n"
		"# unique files: slowest_rank: %" PRId64 "\n"
		"# shared files: time_by_slowest: %f\n"
		"# agg_time_by_slowest: %f # seconds\n"
		"# agg_perf_by_slowest: %f # MiB/s\n",
		p->bytes, slowest.all, slowest.metadata, slowest.data, slowest.rank, p->shared_s,
		all, all > 0 ? (double)p->bytes / 1048576.0 / all : 0);
}

/* ---- modules ---- */

static int put_record(void *context, const struct darshan_record *r, struct err *e)
{
	struct printer *p = context;
	const struct darshan_layout *l = r->layout;

	(void)e;
	for (size_t i = 0; i < l->ints; i++)
		if (l->module == DARSHAN_POSIX && i == POSIX_RENAMED_FROM)
			put_line(p, l->module, r->rank, r->id, "%s\t%" PRIu64, l->int_name[i],
				 (uint64_t)r->ints[i]);
		else
			put_line(p, l->module, r->rank, r->id, "%s\t%" PRId64, l->int_name[i],
				 r->ints[i]);
	for (size_t i = 0; i < l->doubles; i++)
		put_line(p, l->module, r->rank, r->id, "%s\t%f", l->double_name[i], r->doubles[i]);
	if (l->file_id_name)
		put_line(p, l->module, r->rank, r->id, "%s\t%" PRIu64, l->file_id_name, r->file_id);
	if (!p->summed)
		return 0;
	p->any = true;
	p->total.layout = l;
	add_total(p, r);
	return 0;
}

static int put_segment(void *context, const struct darshan_trace *t,
		       const struct darshan_segment *s, struct err *e)
{
	struct printer *p = context;
	const char *name = darshan_name(&p->log, t->id);

	(void)e;
	put_head(p, t->module, t->rank, t->id);
	buf_say(&p->out, "%s\t%" PRId64 "\t", s->write ? "write" : "read", s->index);
	if (t->has_offsets)
		buf_say(&p->out, "%" PRId64, s->offset);
	else
		buf_puts(&p->out, "N/A");
	buf_say(&p->out, "\t%" PRId64 "\t%.9f\t%.9f\t", s->length, s->begin_s, s->end_s);
	if (t->has_threads)
		buf_say(&p->out, "%" PRIu64, s->thread);
	else
		buf_puts(&p->out, "N/A");
	buf_say(&p->out, "\t%s\t%s\n", t->host, name ? name : "(unknown)");
	flush(p, FLUSH);
	return 0;
}

static int put_heat(void *context, const struct darshan_heat *h, struct err *e)
{
	struct printer *p = context;

	(void)e;
	put_line(p, DARSHAN_HEATMAP, h->rank, h->id, "HEATMAP_F_BIN_WIDTH_SECONDS\t%f", h->bin_s);
	for (size_t k = 0; k < 2; k++)
		for (size_t i = 0; i < h->bins; i++)
			put_line(p, DARSHAN_HEATMAP, h->rank, h->id, "HEATMAP_%s_BIN_%zu\t%" PRId64,
				 k ? "WRITE" : "READ", i, (k ? h->written : h->read)[i]);
	return 0;
}

static int put_stripes(void *context, const struct darshan_stripes *s, struct err *e)
{
	struct printer *p = context;

	(void)e;
	put_line(p, DARSHAN_LUSTRE, s->rank, s->id, "LUSTRE_NUM_COMPONENTS\t%" PRId64,
		 s->components);
	put_line(p, DARSHAN_LUSTRE, s->rank, s->id, "LUSTRE_NUM_STRIPES\t%" PRId64, s->stripes);
	return 0;
}

/* Names of Lustre's constants, as in lustreapi.h. */
static const char *pattern_name(int64_t pattern)
{
	static const char *const name[] = {
		[0] = "raid0", [2] = "mdt", [4] = "raid0,overstriped", [8] = "foreign"};

	return pattern >= 0 && pattern <= 8 && name[pattern] ? name[pattern] : "N/A";
}

static void put_flags(struct buf *b, int64_t flags)
{
	static const char *const name[] = {"stale",    "prefrd",  "prefwr",    "offline",
					   "init",     "nosync",  "extension", "parity",
					   "compress", "partial", "nocompr",   "neg"};
	bool first = true;

	if (flags == -1) {
		buf_puts(b, "N/A");
		return;
	}
	for (size_t i = 0; i < sizeof(name) / sizeof(name[0]); i++)
		if (flags >> i & 1) {
			buf_printf(b, "%s%s", first ? "" : ",", name[i]);
			first = false;
		}
	if (first)
		buf_puts(b, "0");
}

static int put_component(void *context, const struct darshan_stripes *s, int64_t index,
			 const int64_t *counter, const char *pool, const int64_t *ost,
			 struct err *e)
{
	static const char *const name[DARSHAN_COMPONENT_INTS] = {
		"STRIPE_SIZE", "STRIPE_COUNT", "STRIPE_PATTERN", "FLAGS",
		"EXT_START",   "EXT_END",      "MIRROR_ID"};
	struct printer *p = context;

	(void)e;
	for (size_t k = 0; k < DARSHAN_COMPONENT_INTS; k++) {
		put_head(p, DARSHAN_LUSTRE, s->rank, s->id);
		buf_say(&p->out, "LUSTRE_COMP%" PRId64 "_%s\t", index + 1, name[k]);
		if (k == DARSHAN_STRIPE_PATTERN)
			buf_puts(&p->out, pattern_name(counter[k]));
		else if (k == DARSHAN_STRIPE_FLAGS)
			put_flags(&p->out, counter[k]);
		else
			buf_say(&p->out, "%" PRId64, counter[k]);
		put_place(p, DARSHAN_LUSTRE, s->id);
	}
	put_line(p, DARSHAN_LUSTRE, s->rank, s->id, "LUSTRE_COMP%" PRId64 "_POOL_NAME\t%s",
		 index + 1, *pool ? pool : "N/A");
	for (int64_t i = 0; i < counter[DARSHAN_STRIPE_COUNT]; i++)
		put_line(p, DARSHAN_LUSTRE, s->rank, s->id,
			 "LUSTRE_COMP%" PRId64 "_OST_ID_%" PRId64 "\t%" PRId64, index + 1, i,
			 ost[i]);
	return 0;
}

static void put_job(struct printer *p)
{
	static const char *const method[] = {"ZLIB", "BZIP2", "NONE"};
	const struct darshan_log *log = &p->log;

	buf_say(&p->out, "# log: %s\n# darshan log version: 3.%02u\n# compression method: %s\n",
		log->path, log->minor, method[log->compression]);
	if (!log->has_job)
		return;
	buf_say(&p->out,
		"# exe: %s\n# uid: %" PRId64 "\n# jobid: %" PRId64 "\n# start_time: %" PRId64
		"\n# end_time: %" PRId64 "\n# nprocs: %" PRId64 "\n# run time: %.4f\n",
		log->command, log->uid, log->job_id, log->start_s, log->end_s, log->ranks,
		darshan_run_s(log));
	for (const char *m = log->metadata; *m;) {
		size_t n = strcspn(m, "\n"), key = strcspn(m, "=");

		if (key < n)
			buf_say(&p->out, "# metadata: %.*s = %.*s\n", (int)key, m,
				(int)(n - key - 1), m + key + 1);
		m += n + (m[n] == '\n');
	}
	for (size_t i = 0; i < log->mounts; i++)
		buf_say(&p->out, "# mount entry:\t%s\t%s\n", log->mount[i].path,
			log->mount[i].type);
}

static int put_module(struct printer *p, unsigned module, struct err *e)
{
	const struct darshan_walk walk = {
		.context = p,
		.record = put_record,
		.segment = put_segment,
		.heat = put_heat,
		.stripes = put_stripes,
		.component = put_component,
	};
	int rc;

	p->summed = module == DARSHAN_POSIX || module == DARSHAN_MPIIO || module == DARSHAN_STDIO ||
		    module == DARSHAN_DFS || module == DARSHAN_DAOS;
	p->any = false;
	memset(&p->total, 0, sizeof(p->total));
	p->ranks = 0;
	map_release(&p->by_rank);
	p->shared_s = 0;
	p->bytes = 0;
	rc = darshan_walk(&p->log, module, &walk, e);
	if (rc >= 0 && p->any)
		put_totals(p);
	return rc;
}

int darshan_print(const char *path, darshan_put *put, void *context, struct err *e)
{
	struct printer p = {.put = put, .context = context};
	int rc = darshan_open(&p.log, path, e);

	if (rc < 0)
		return rc;
	put_job(&p);
	for (unsigned module = 0; rc >= 0 && module < DARSHAN_MODULES; module++)
		rc = put_module(&p, module, e);
	for (size_t i = 0; i < p.log.notes.n; i++)
		buf_say(&p.out, "# note: %s\n", p.log.notes.v[i]);
	flush(&p, 0);
	buf_release(&p.out);
	buf_release(&p.place);
	free(p.rank);
	map_release(&p.by_rank);
	darshan_close(&p.log);
	return rc;
}
