#include "readback/figures.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "judge/verdict.h"
#include "readback/record.h"
#include "result/json_limit.h"

static double number(const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);

	return json_is_number(v) ? json_number_value(v) : NAN;
}

static const json_t *part(const json_t *o, const char *outer, const char *inner)
{
	return json_object_get(json_object_get(o, outer), inner);
}

static void take_text(const json_t *o, const char *key, char *out, size_t size)
{
	const char *s = json_string_value(json_object_get(o, key));

	snprintf(out, size, "%s", s ? s : "");
}

/* A share of which the largest is wanted. */
static void raise(double *to, double share)
{
	if (isfinite(share) && !(share < *to))
		*to = fmin(1, share);
}

static void take_epochs(struct run_figures *f, const json_t *training, double hosts)
{
	const json_t *epochs = json_object_get(training, "epochs"), *epoch;
	const json_t *cache = json_object_get(json_array_get(epochs, 0), "page_cache");
	size_t i;

	f->cached_first = number(cache, "cached_at_start_bytes") / number(cache, "bytes_looked_at");
	f->samples = f->epochs_s = 0;
	json_array_foreach(epochs, i, epoch)
	{
		const json_t *p = json_object_get(epoch, "processors");
		double all = number(p, "allowed") * number(epoch, "wall_s");

		f->samples += number(epoch, "samples");
		f->epochs_s += number(epoch, "wall_s");
		raise(&f->client_busy, number(p, "busy_s") / all);
		raise(&f->run_busy, number(epoch, "cpu_s") / all / hosts);
	}
}

static double ledger_bytes(const json_t *result, const char *key)
{
	const json_t *line;
	size_t i;

	json_array_foreach(json_object_get(result, "ledger"), i, line)
	{
		const char *name = json_string_value(json_object_get(line, "key"));

		if (name && strcmp(name, key) == 0)
			return number(line, "bytes");
	}
	return NAN;
}

static void take_training(struct run_figures *f, const json_t *training)
{
	const json_t *read = json_object_get(training, "reading");
	const json_t *io = json_object_get(training, "io");

	f->whole_au = number(training, "whole_run_au_percent");
	f->whole_rate = number(training, "whole_run_samples_per_s");
	f->returned_bytes = number(training, "returned_bytes");
	f->opens = number(json_object_get(io, "open"), "requests");
	f->requests = number(json_object_get(io, "metadata"), "requests") +
		      number(json_object_get(io, "data"), "requests");
	f->busy_s = number(read, "busy_s");
	f->batches = number(read, "batches");
	f->later_busy_s = number(read, "later_busy_s");
	f->later_batches = number(read, "later_batches");
	f->no_processor =
		number(part(training, "decomposition", "critical_path_percent"), "no_processor");
}

static void take_verdicts(struct run_figures *f, const json_t *result)
{
	const json_t *v;
	size_t i;

	json_array_foreach(json_object_get(result, "verdicts"), i, v)
	{
		const char *check = json_string_value(json_object_get(v, "check"));
		const char *level = json_string_value(json_object_get(v, "level"));
		const struct verdict_ops *row = check ? verdict_find(check) : NULL;

		if (!row || !level || strcmp(level, "fail") != 0 || row->about == ABOUT_LENGTH)
			continue;
		f->machine_failed = f->machine_failed || row->about == ABOUT_MACHINE;
		f->failed = f->failed ? f->failed : row;
	}
}

static double read_from_cache(const json_t *load)
{
	const json_t *one;
	double asked = 0, fetched = 0;
	size_t i;

	json_array_foreach(json_object_get(load, "each"), i, one)
	{
		asked += number(one, "tensor_bytes");
		fetched += number(one, "process_read_bytes");
	}
	return asked > 0 && isfinite(fetched) ? fmax(0, 1 - fetched / asked) : NAN;
}

static void take_checkpoints(struct run_figures *f, const json_t *result)
{
	const json_t *save = part(result, "checkpoint", "save");
	const json_t *load = part(result, "checkpoint", "load");

	f->checkpoint_bytes = number(json_object_get(result, "checkpoint"), "total_bytes");
	f->write_s = number(save, "duration_mean_s");
	f->write_rate = number(save, "throughput_mean_bytes_per_s");
	f->read_s = number(load, "duration_mean_s");
	f->read_rate = number(load, "throughput_mean_bytes_per_s");
	f->read_cached = read_from_cache(load);
}

static void take_words(const json_t *limit, struct run_figures *f)
{
	AUTO_FREE char *text = limit_told(limit, WORDS_LONG);

	snprintf(f->limit, sizeof(f->limit), "%s", text ? text : "");
}

void figures_find(struct run_figures *f, const struct run_record *r)
{
	const json_t *training = json_object_get(r->result, "training");
	const json_t *limit = json_object_get(r->result, "limit");

	*f = (struct run_figures){.wall_s = number(r->result, "wall_s"),
				  .client_busy = NAN,
				  .run_busy = NAN,
				  .fetched_bytes = ledger_bytes(r->result, "process_fetched"),
				  .device_bytes = ledger_bytes(r->result, "device")};
	take_training(f, training);
	take_epochs(f, training, r->hosts ? r->hosts : 1);
	take_verdicts(f, r->result);
	take_checkpoints(f, r->result);
	take_text(json_object_get(r->result, "measured"), "storage", f->storage,
		  sizeof(f->storage));
	f->emulated = strcmp(f->storage, "emulated") == 0;
	f->cause = cause_of(json_string_value(json_object_get(limit, "cause")));
	take_words(limit, f);
}
