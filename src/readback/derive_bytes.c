/* Bytes and requests of result.json: sums over kinds and epochs, histograms, the ledger. */
#include <math.h>
#include <string.h>

#include "readback/derivation.h"
#include "result/judgement.h"

static const double LEDGER_SHARE = 0.01; /* of judge/ledger.c: what agrees */
static const double LEDGER_BYTES = 65536;

static double count_of(const json_t *pair, size_t i)
{
	const json_t *v = json_array_get(pair, i);

	return json_is_number(v) ? json_number_value(v) : NAN;
}

/* The buckets hold every request; quantiles rise within the extremes. */
static void check_latency(struct derive *d, const json_t *l, double requests, const char *where,
			  const char *kind)
{
	static const char *const rising[] = {"min_ns",   "p50_ns",    "p90_ns", "p99_ns",
					     "p99_9_ns", "p99_99_ns", "max_ns"};
	const json_t *buckets = json_object_get(l, "buckets");
	double sum = 0, last = NAN, from = NAN, low = 0, count = derive_number(l, "count");

	derive_equal(d, count, requests, "its requests", "result.json %s.%s latency.count", where,
		     kind);
	if (!buckets)
		return;
	for (size_t i = 0; i < json_array_size(buckets); i++) {
		const json_t *pair = json_array_get(buckets, i);

		sum += count_of(pair, 1);
		low += count_of(pair, 0) * count_of(pair, 1);
		derive_holds(d, !(count_of(pair, 0) <= from),
			     "The buckets of result.json %s.%s latency do not rise.", where, kind);
		from = count_of(pair, 0);
	}
	derive_equal(d, count, sum, "the sum of its buckets", "result.json %s.%s latency.count",
		     where, kind);
	for (size_t i = 0; i < sizeof(rising) / sizeof(rising[0]); i++) {
		double v = derive_number(l, rising[i]);

		if (isnan(v))
			continue;
		derive_holds(d, !(v < last),
			     "result.json %s.%s latency.%s is %.10g, less than the smaller "
			     "quantile's %.10g.",
			     where, kind, rising[i], v, last);
		last = v;
	}
	/* a bucket is at most 1/8 wide: times lie from its begin to there */
	if (count > 0)
		derive_holds(d,
			     !(derive_number(l, "mean_ns") < 0.999 * low / count - 1) &&
				     !(derive_number(l, "mean_ns") > 1.13 * low / count + 64),
			     "result.json %s.%s latency.mean_ns is %.10g, but its buckets begin at "
			     "%.10g on average.",
			     where, kind, derive_number(l, "mean_ns"), low / count);
}

static void check_io(struct derive *d, const json_t *part, const char *where)
{
	json_t *io = json_object_get(part, "io"), *one;
	double asked = 0, returned = 0;
	const char *kind;

	json_object_foreach(io, kind, one)
	{
		const json_t *l = json_object_get(one, "latency");
		double requests = derive_number(one, "requests");

		if (strcmp(kind, "data") == 0 || strcmp(kind, "metadata") == 0) {
			asked += derive_number(one, "asked_bytes");
			returned += derive_number(one, "returned_bytes");
		}
		check_latency(d, l, requests, where, kind);
		if (derive_number(l, "mean_ns") > 0)
			derive_near(d, derive_number(one, "busy_s"),
				    derive_number(l, "mean_ns") * requests / 1e9,
				    1e-6 + 1e-6 * derive_number(one, "busy_s"),
				    "its requests and their mean latency",
				    "result.json %s.io.%s.busy_s", where, kind);
	}
	if (!io || isnan(derive_number(part, "asked_bytes")))
		return;
	derive_equal(d, derive_number(part, "asked_bytes"), asked, "its kinds of requests",
		     "result.json %s.asked_bytes", where);
	derive_equal(d, derive_number(part, "returned_bytes"), returned, "its kinds of requests",
		     "result.json %s.returned_bytes", where);
}

static const json_t *line_of(const json_t *ledger, const char *key)
{
	for (size_t i = 0; i < json_array_size(ledger); i++) {
		const json_t *line = json_array_get(ledger, i);
		const char *is = derive_string(line, "key");

		if (is && strcmp(is, key) == 0)
			return line;
	}
	return NULL;
}

/* The figure of an epoch that a line's epoch_bytes repeat. */
static double epoch_figure(const json_t *epoch, const char *key)
{
	static const struct {
		enum ledger_key line;
		const char *part, *key; /* part: NULL, of the epoch itself */
	} same[] = {
		{LEDGER_WANTED, NULL, "payload_bytes"},
		{LEDGER_ASKED, NULL, "asked_bytes"},
		{LEDGER_RETURNED, NULL, "returned_bytes"},
		{LEDGER_CALLS, "process_io", "returned_bytes"},
		{LEDGER_CHARGED, "process_io", "device_read_bytes"},
		{LEDGER_DEVICE, "host_io", "device_read_bytes"},
	};

	for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++)
		if (strcmp(key, ledger_keys[same[i].line]) == 0)
			return derive_number(same[i].part ? json_object_get(epoch, same[i].part)
							  : epoch,
					     same[i].key);
	return NAN;
}

static void check_line(struct derive *d, const struct run_record *r, const json_t *ledger,
		       const json_t *line)
{
	const json_t *epochs = json_object_get(json_object_get(r->result, "training"), "epochs");
	const json_t *list = json_object_get(line, "epoch_bytes"), *before;
	const char *key = derive_string(line, "key"), *other = derive_string(line, "compared_with");
	const char *state = derive_string(line, "state");
	double bytes = derive_number(line, "bytes"), sum = 0, from;

	if (!key)
		return;
	for (size_t e = 0; e < json_array_size(list); e++) {
		double v = count_of(list, e);

		sum += v;
		if (e < json_array_size(epochs))
			derive_equal(d, v, epoch_figure(json_array_get(epochs, e), key),
				     "that epoch of training",
				     "result.json ledger '%.20s', epoch %zu,", key, e + 1);
	}
	if (json_array_size(list))
		derive_near(d, bytes, sum, (double)json_array_size(list) + 1, "its epochs",
			    "result.json ledger '%.20s' (bytes)", key);
	before = other ? line_of(ledger, other) : NULL;
	if (!before)
		return;
	from = derive_number(before, "bytes");
	if (from > 0)
		derive_near(d, derive_number(line, "percent"), 100 * bytes / from,
			    1e-6 + 1e-6 * bytes / from + 100 / from, "its bytes",
			    "result.json ledger '%.20s' (percent)", key);
	if (state && strcmp(state, "agrees") == 0)
		derive_holds(d,
			     fabs(bytes - from) <= LEDGER_BYTES + 2 ||
				     fabs(bytes - from) <=
					     1.0001 * LEDGER_SHARE * fmax(bytes, from),
			     "result.json ledger says that '%.20s' (%.10g bytes) agrees with "
			     "'%.20s' (%.10g bytes).",
			     key, bytes, other, from);
}

/* Bytes of a sample are the same in all epochs where files do not differ in size. */
static void check_samples(struct derive *d, const struct run_record *r)
{
	const json_t *epochs = json_object_get(json_object_get(r->result, "training"), "epochs");
	double first = NAN, length;

	/* of a recorded order not every epoch has the same samples */
	if (!r->has_workload || r->workload.dataset.record_length_bytes_stdev > 0 ||
	    r->workload.dataset.sizes == SIZES_RECORDED ||
	    r->workload.reader.read_type == READ_MEMORY)
		return;
	for (size_t e = 0; e < json_array_size(epochs); e++) {
		const json_t *epoch = json_array_get(epochs, e);
		double each =
			derive_number(epoch, "payload_bytes") / derive_number(epoch, "samples");

		/* a loader or format without a store reads nothing */
		if (!(each > 0))
			continue;
		if (isnan(first))
			first = each;
		derive_near(d, each, first, 1e-6 * first, "the first epoch",
			    "result.json, the bytes of a sample in epoch %zu", e + 1);
		/* an image of a given file size is as large as its content makes it */
		if (r->workload.dataset.file_bytes > 0 &&
		    workload_format(&r->workload)->flags & FORMAT_IMAGE)
			continue;
		/* the nearest square, or what the dimensions come to */
		length = r->workload.dataset.record_length_bytes;
		derive_near(d, each, length, 2 * sqrt(fmax(length, 0)) + 16,
			    "dataset.record_length_bytes",
			    "result.json, the bytes of a sample in epoch %zu", e + 1);
	}
}

void derive_bytes(struct audit *a, size_t i)
{
	const struct run_record *r = &a->record[i];
	const json_t *ledger = json_object_get(r->result, "ledger");
	const json_t *training = json_object_get(r->result, "training");
	const json_t *checkpoint = json_object_get(r->result, "checkpoint");
	struct derive d;

	if (!r->ours)
		return;
	d = derive_begin(a, i, "figures", "bytes",
			 "bytes and requests in result.json: sums over kinds, epochs and ranks, "
			 "histograms, the ledger");
	check_io(&d, training, "training");
	check_io(&d, json_object_get(r->result, "evaluation"), "evaluation");
	check_io(&d, json_object_get(checkpoint, "save"), "checkpoint.save");
	check_io(&d, json_object_get(checkpoint, "load"), "checkpoint.load");
	for (size_t k = 0; k < json_array_size(ledger); k++)
		check_line(&d, r, ledger, json_array_get(ledger, k));
	check_samples(&d, r);
	if (a->topic[d.topic].compared == 0)
		derive_unchecked(&d, "no bytes are recorded");
}
