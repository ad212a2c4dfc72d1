/* Checks of what was read: the page cache, the dataset on disk, checkpoints, and the rate in bytes.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/str.h"
#include "readback/audit_parts.h"

static const double HELD_SHARE = 0.95;   /* of the dataset in the page cache: all of it */
static const double GROWTH_SHARE = 0.05; /* of the dataset that the cache grew by: nothing read */
static const double EXCESS = 2;          /* times the dataset in the page cache: it holds more */
static const double SAME_RATE = 0.03;    /* samples/s that are equal */
static const double OTHER_SIZE = 1.2;    /* factor between records that are not equal */
static const double CHECKPOINT_SHARE = 0.5;

static double dataset_bytes(const struct run_record *r)
{
	if (!r->has_workload)
		return NAN;
	return (double)r->workload.dataset.num_files_train *
	       (double)r->workload.dataset.num_samples_per_file * record_sample_bytes(r);
}

static const char *gb(double v, char out[32])
{
	return str_bytes(v, out, 32);
}

static void page_cache(struct audit *a, size_t i)
{
	const struct run_record *r = &a->record[i];
	const struct record_rank *k = r->ranks ? &r->rank[0] : NULL;
	double data = dataset_bytes(r), cached, growth;
	char b1[32], b2[32], b3[32];
	struct finding *f;

	if (r->ours || !r->trained || !(data > 0) || !(r->host_memory_bytes > 0))
		return;
	/* every host sees its share of an epoch, another one each time it is shuffled */
	if (data / r->hosts > r->host_memory_bytes)
		return;
	f = audit_add(a, i, "cache", AUDIT_WARN);
	audit_say(f, "The dataset (%s) fits into the memory of the host (%s)", gb(data, b1),
		  gb(r->host_memory_bytes, b2));
	cached = k && k->epochs ? k->epoch[0].cached_bytes : NAN;
	growth = k && k->epochs > 1 ? k->epoch[k->epochs - 1].cached_bytes - cached : NAN;
	if (cached >= HELD_SHARE * data && !(growth > GROWTH_SHARE * data)) {
		f->level = AUDIT_FAIL;
		audit_say(
			f, ", and the page cache held %s before the first epoch%s", gb(cached, b3),
			isfinite(growth) ? " and did not grow over the epochs: the data came from "
					   "memory, the storage was hardly touched"
					 : ", enough for all of it");
		if (cached > EXCESS * data)
			audit_say(
				f,
				". That is %.1f times the dataset as configured: the files may be "
				"larger than the configuration says, or the cache holds others too",
				cached / data);
	} else if (isfinite(cached)) {
		audit_say(f,
			  "; the page cache held %s before the first epoch and may have served "
			  "the later ones",
			  gb(cached, b3));
	}
	audit_say(f, ".");
	audit_advise(f, "Use a dataset of several times the memory, empty the page cache before "
			"each epoch, or read with O_DIRECT; compare with the bytes the device "
			"delivered.");
}

/* ---- another dataset than the configured one ---- */

static const char *data_folder(const struct run_record *r)
{
	return r->has_workload && r->workload.dataset.data_folder ? r->workload.dataset.data_folder
								  : "";
}

static bool generated_only(const struct run_record *r)
{
	return r->has_workload && r->workload.workflow.generate_data && !r->trained;
}

static bool same_place(const struct run_record *x, const struct run_record *y)
{
	return strcmp(data_folder(x), data_folder(y)) == 0 && data_folder(x)[0] &&
	       strcmp(x->hostname, y->hostname) == 0;
}

static bool other_size(double x, double y)
{
	return x > 0 && y > 0 && (x / y > OTHER_SIZE || y / x > OTHER_SIZE);
}

static void time_text(double s, char *out, size_t out_size)
{
	time_t t = (time_t)s;
	struct tm tm;

	if (!isfinite(s) || !localtime_r(&t, &tm) ||
	    strftime(out, out_size, "%Y-%m-%d %H:%M:%S", &tm) == 0)
		snprintf(out, out_size, "an unknown time");
}

/* The last result before this one that wrote the folder's dataset. */
static const struct run_record *last_generation(const struct audit *a, const struct run_record *r)
{
	const struct run_record *last = NULL;

	for (size_t k = 0; k < a->records; k++) {
		const struct run_record *g = &a->record[k];

		if (g == r || !g->has_workload || !g->workload.workflow.generate_data ||
		    !same_place(g, r) || !(g->begin_s < r->begin_s))
			continue;
		if (!last || g->begin_s > last->begin_s)
			last = g;
	}
	return last;
}

/* A run of the same shape whose records have another size and that was as fast in samples. */
static const struct run_record *equally_fast(const struct audit *a, const struct run_record *r)
{
	for (size_t k = 0; k < a->records; k++) {
		const struct run_record *o = &a->record[k];

		if (o == r || !o->trained || !o->has_workload || !same_place(o, r) ||
		    o->ranks != r->ranks ||
		    o->workload.reader.batch_size != r->workload.reader.batch_size)
			continue;
		if (other_size(record_sample_bytes(o), record_sample_bytes(r)) &&
		    fabs(o->throughput.mean / r->throughput.mean - 1) < SAME_RATE)
			return o;
	}
	return NULL;
}

static void other_dataset(struct audit *a, size_t i)
{
	const struct run_record *r = &a->record[i], *g, *o;
	char when[40], b1[32], b2[32];
	struct finding *f;

	/* ours compares the files with the manifest before it reads */
	if (r->ours || !r->trained || !r->has_workload || r->workload.workflow.generate_data)
		return;
	g = last_generation(a, r);
	o = equally_fast(a, r);
	if (g && !other_size(record_sample_bytes(g), record_sample_bytes(r)) &&
	    g->workload.dataset.num_files_train >= r->workload.dataset.num_files_train)
		return;
	if (!g && !o)
		return;
	f = audit_add(a, i, "dataset", g ? AUDIT_FAIL : AUDIT_WARN);
	audit_say(f, "The files in '%s' are probably not those of this configuration.",
		  data_folder(r));
	if (g) {
		time_text(g->begin_s, when, sizeof(when));
		audit_say(f,
			  " The last generation there among these results, at %s ('%s'), wrote "
			  "%lld files of %s a record; this run, configured for %lld of %s, "
			  "generated nothing.",
			  when, g->name, (long long)g->workload.dataset.num_files_train,
			  gb(record_sample_bytes(g), b1),
			  (long long)r->workload.dataset.num_files_train,
			  gb(record_sample_bytes(r), b2));
	}
	if (o)
		audit_say(f,
			  " '%s' has records of %s instead of %s, and yet both took %.1f and %.1f "
			  "samples/s: equal rates of records that differ %.2f times in size are "
			  "rates of the same files. MB/s is off by that factor.",
			  o->name, gb(record_sample_bytes(o), b1), gb(record_sample_bytes(r), b2),
			  o->throughput.mean, r->throughput.mean,
			  fmax(record_sample_bytes(o) / record_sample_bytes(r),
			       record_sample_bytes(r) / record_sample_bytes(o)));
	audit_advise(f, "Generate again before each change of format, size or count, into a folder "
			"of its own; check with stoker verify.");
}

/* ---- bytes and checkpoints ---- */

static void nominal_bytes(struct audit *a, size_t i)
{
	const struct run_record *r = &a->record[i];
	double off, rate;
	char b1[32];
	struct finding *f;

	if (r->ours || !r->trained || !r->has_workload || !isfinite(r->io.mean))
		return;
	rate = r->throughput.mean * record_sample_bytes(r) / 0x1p20;
	if (!(rate > 0))
		return;
	off = r->io.mean / rate;
	f = audit_add(a, i, "bytes", AUDIT_NOTE);
	if (fabs(off - 1) < 0.01) {
		audit_say(
			f,
			"%.0f MB/s is samples/s times the configured record (%s), in MiB; no byte "
			"was counted%s.",
			r->io.mean, gb(record_sample_bytes(r), b1),
			r->workload.dataset.record_length_bytes_stdev > 0
				? ", and the files differ in size"
				: "");
	} else {
		f->level = AUDIT_FAIL;
		audit_say(f,
			  "%.4g MB/s is not samples/s times the configured record (%.4g): the tool "
			  "used another record length.",
			  r->io.mean, rate);
	}
	audit_advise(f, "Take the rate of the device from its own counters.");
}

static void checkpoints(struct audit *a, size_t i)
{
	const struct run_record *r = &a->record[i];
	double want, got = r->checkpoint_gib * 0x1p30;
	char b1[32], b2[32];
	struct finding *f;

	if (r->ours || !r->has_workload || !isfinite(got) || !r->trained)
		return;
	want = (double)r->workload.model.model_size_bytes;
	if (!(want > 0) || got >= CHECKPOINT_SHARE * want)
		return;
	f = audit_add(a, i, "checkpoint", AUDIT_FAIL);
	audit_say(f, "Checkpoints held %s where the workload says %s", gb(got, b1), gb(want, b2));
	for (uint32_t k = 0; r->rank && k < 1; k++)
		for (size_t e = 0; e < r->rank[k].epochs; e++)
			for (size_t c = 0; c < r->rank[k].epoch[e].checkpoints; c++) {
				const struct record_checkpoint *one =
					&r->rank[k].epoch[e].checkpoint[c];

				audit_say(f, "; %s took %.3f s (%.4f GiB/s)", one->name,
					  one->seconds, one->gib_per_s);
				goto said;
			}
said:
	audit_say(f, ". Neither time nor rate says anything about writing a real one.");
	audit_advise(f, "Set model.model_size_bytes, which DLIO reads.");
}

static void only_generated(struct audit *a, size_t i)
{
	const struct run_record *r = &a->record[i];

	if (generated_only(r) || r->trained || r->ours)
		return;
	struct finding *f = audit_add(a, i, "complete", AUDIT_WARN);

	audit_say(f, "The result has no training figures, and the configuration did not ask only "
		     "for a dataset: the run failed or was killed.");
	audit_advise(f, "Look into its log, and run it again.");
}

const audit_check audit_data_checks[] = {page_cache,  other_dataset,  nominal_bytes,
					 checkpoints, only_generated, NULL};
