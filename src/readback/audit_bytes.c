/* What was read and written: the page cache, the rate in bytes, checkpoints. */
#include "readback/audit_checks.h"

#include <math.h>

#include "base/str.h"
#include "readback/record_measures.h"

static const double CHECKPOINT_SHARE = 0.5;

static bool generated_only(const struct run_record *r)
{
	return r->has_workload && r->workload.workflow.generate_data && !r->trained;
}

static const double HELD_SHARE = 0.95;   /* of the dataset in the page cache: all of it */
static const double GROWTH_SHARE = 0.05; /* of the dataset that the cache grew by: nothing read */
static const double ENOUGH = 5;          /* times the memory: MLPerf Storage's rule */
static const double JUST = 0.95;         /* of it: memory in whole GiB, files rounded down */
static const double EXCESS = 2;          /* times the dataset in the page cache: it holds more */

static double dataset_bytes(const struct run_record *r)
{
	if (!r->has_workload)
		return r->data_bytes;
	return (double)workload_samples(&r->workload, false) * r->facts.sample_bytes;
}

/* Hosts for which DLIO says that the cache may serve reads. */
static size_t flagged_hosts(const struct run_record *r)
{
	const json_t *list = json_object_get(r->summary, "potential_caching");
	size_t n = 0;

	for (size_t i = 0; i < json_array_size(list); i++)
		n += json_number_value(json_array_get(list, i)) > 0;
	return n;
}

static void say_flagged(struct finding *f, const struct run_record *r, double data)
{
	size_t n = flagged_hosts(r);

	if (n == 0)
		return;
	finding_say(f, " DLIO itself flags %zu of %u host%s (potential_caching).", n,
		    r->memory_slots, r->memory_slots == 1 ? "" : "s");
	if (data >= ENOUGH * r->memory_bytes)
		finding_say(f, " It compares with memory in the wrong slots of its list: by their "
			       "sum, the dataset is large enough.");
}

/* A dataset larger than memory, of which a part may stay. */
static void audit_partly_cached(struct audit *a, size_t i, double data)
{
	const struct run_record *r = &a->record[i];
	double times = data / r->memory_bytes;
	char b1[32], b2[32];
	bool small;
	struct finding *f;

	if (!(r->memory_bytes > 0) || (times >= ENOUGH && flagged_hosts(r) == 0))
		return;
	small = times < JUST * ENOUGH;
	f = audit_add(a, i, "cache", small ? AUDIT_WARN : AUDIT_NOTE);
	f->about_cache = small;
	finding_say(f, "The dataset (%s) is %.3g times the memory of the %s (%s)%s.",
		    str_bytes(data, b1, sizeof(b1)), times, r->hosts == 1 ? "host" : "hosts",
		    str_bytes(r->memory_bytes, b2, sizeof(b2)),
		    small            ? ": the page cache may have served a part of every epoch but "
				       "the first"
		    : times < ENOUGH ? ", just below the 5 times that MLPerf Storage asks for"
				     : "");
	say_flagged(f, r, data);
	if (times >= ENOUGH)
		finding_advise(f, "Nothing is to be done, if the sum is right.");
	else
		finding_advise(f,
			       "Use a dataset of at least %.0f times the memory, drop the page "
			       "cache before each epoch, or read with O_DIRECT.",
			       ENOUGH);
}

/* DLIO writes the memory of each host, into wrong slots where ranks are spread over the hosts. */
void audit_memory(struct audit *a, size_t i)
{
	const struct run_record *r = &a->record[i];
	char b1[32], b2[32];
	struct finding *f;

	if (r->ours || r->memory_empty == 0)
		return;
	f = audit_add(a, i, "memory", AUDIT_NOTE);
	finding_say(f, "host_memory_GB is 0 for %u of %u hosts", r->memory_empty, r->memory_slots);
	if (r->memory_bytes > 0)
		finding_say(f,
			    ": DLIO adds up the memory of several hosts in one place of the list. "
			    "Their sum is used here: %s, %s a host",
			    str_bytes(r->memory_bytes, b1, sizeof(b1)),
			    str_bytes(r->host_memory_bytes, b2, sizeof(b2)));
	finding_say(f, ".");
	finding_advise(f, "Compare the sum with what the hosts have.");
}

void audit_page_cache(struct audit *a, size_t i)
{
	const struct run_record *r = &a->record[i];
	const struct record_rank *k = r->ranks ? &r->rank[0] : NULL;
	double data = dataset_bytes(r), cached, growth;
	char b1[32], b2[32], b3[32];
	struct finding *f;

	if (r->ours || !r->trained || !(data > 0) || !(r->host_memory_bytes > 0))
		return;
	/* every host sees its share of an epoch, another one each time it is shuffled */
	if (data > r->memory_bytes) {
		audit_partly_cached(a, i, data);
		return;
	}
	f = audit_add(a, i, "cache", AUDIT_WARN);
	f->about_cache = true;
	finding_say(f, "The dataset (%s) fits in the host's memory (%s)",
		    str_bytes(data, b1, sizeof(b1)),
		    str_bytes(r->host_memory_bytes, b2, sizeof(b2)));
	cached = k && k->epochs ? k->epoch[0].cached_bytes : NAN;
	growth = k && k->epochs > 1 ? k->epoch[k->epochs - 1].cached_bytes - cached : NAN;
	if (cached >= HELD_SHARE * data && !(growth > GROWTH_SHARE * data)) {
		f->level = AUDIT_FAIL;
		finding_say(f, ", and the page cache held %s before the first epoch%s",
			    str_bytes(cached, b3, sizeof(b3)),
			    isfinite(growth) ? " and did not grow over the epochs: the data came "
					       "from memory, and the storage was hardly used"
					     : ", enough for the whole dataset");
		if (cached > EXCESS * data)
			finding_say(
				f,
				". That is %.1f times the configured dataset size: the files may "
				"be larger than configured, or the cache also holds other files",
				cached / data);
	} else if (isfinite(cached)) {
		finding_say(f,
			    "; the page cache held %s before the first epoch and may have served "
			    "later epochs",
			    str_bytes(cached, b3, sizeof(b3)));
	}
	finding_say(f, ".");
	say_flagged(f, r, data);
	finding_advise(
		f,
		"Use a dataset several times larger than memory, drop the page cache before each "
		"epoch, or read with O_DIRECT; compare with the bytes that the device delivered.");
}

void audit_nominal_bytes(struct audit *a, size_t i)
{
	const struct run_record *r = &a->record[i];
	double off, rate;
	char b1[32];
	struct finding *f;

	if (r->ours || !r->trained || !r->has_workload || !isfinite(r->io.mean))
		return;
	rate = r->throughput.mean * r->facts.sample_bytes / 0x1p20;
	if (!(rate > 0))
		return;
	off = r->io.mean / rate;
	f = audit_add(a, i, "bytes", AUDIT_NOTE);
	if (fabs(off - 1) < 0.01) {
		finding_say(f,
			    "%.0f MB/s is samples/s times the configured record size (%s), in MiB; "
			    "no bytes were counted%s.",
			    r->io.mean, str_bytes(r->facts.sample_bytes, b1, sizeof(b1)),
			    r->workload.dataset.record_length_bytes_stdev > 0
				    ? ", and the files differ in size"
				    : "");
	} else {
		f->level = AUDIT_FAIL;
		finding_say(f,
			    "%s MB/s is not samples/s times the configured record size (%s): the "
			    "tool used a different record length.",
			    NUMBER(r->io.mean, 4), NUMBER(rate, 4));
	}
	finding_advise(f, "Use the device's own counters for its data rate.");
}

void audit_checkpoints(struct audit *a, size_t i)
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
	finding_say(f, "Checkpoints held %s, but the workload specifies %s",
		    str_bytes(got, b1, sizeof(b1)), str_bytes(want, b2, sizeof(b2)));
	for (uint32_t k = 0; r->rank && k < 1; k++)
		for (size_t e = 0; e < r->rank[k].epochs; e++)
			for (size_t c = 0; c < r->rank[k].epoch[e].checkpoints; c++) {
				const struct record_checkpoint *one =
					&r->rank[k].epoch[e].checkpoint[c];

				finding_say(f, "; %s took %.3f s (%.4f GiB/s)", one->name,
					    one->seconds, one->gib_per_s);
				goto said;
			}
said:
	finding_say(f, ". Neither the time nor the rate represents a real checkpoint.");
	finding_advise(f, "Set model.model_size_bytes, the key that DLIO reads.");
}

void audit_complete(struct audit *a, size_t i)
{
	const struct run_record *r = &a->record[i];

	if (generated_only(r) || r->trained || r->checkpointed || r->ours)
		return;
	struct finding *f = audit_add(a, i, "complete", AUDIT_WARN);

	finding_say(f, "The result has no training figures although the configuration is not for "
		       "data generation only: the run failed or was killed.");
	finding_advise(f, "Check its log, and repeat the run.");
}
