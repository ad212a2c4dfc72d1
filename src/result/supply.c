/* Need beside supply. */
#include "result/supply.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

/* Computation takes this share of the time: the storage was not asked for more. */
#define KEPT_UP_PERCENT 95

const char *const supply_names[SUPPLY_SOURCES] = {
	[SUPPLY_NONE] = "none",       [SUPPLY_STORAGE] = "storage", [SUPPLY_AT_LEAST] = "at_least",
	[SUPPLY_RUN] = "run",         [SUPPLY_CACHE] = "cache",     [SUPPLY_EMULATED] = "emulated",
	[SUPPLY_UNKNOWN] = "unknown",
};

/* Causes (docs/metrics.md) that are the storage's own. */
/* Bytes/s that requests returned: of all epochs, over the time of their samples. */
static double returned_rate(const struct result *r, const struct run_metrics *m)
{
	double sum = 0, time = 0;

	for (uint32_t i = 0; i < m->epochs && i < r->judged.epochs; i++) {
		const struct epoch_metrics *e = &m->epoch[i];
		const struct epoch_judgement *j = &r->judged.epoch[i];
		double seconds, bytes;

		if (r->only_evaluated) {
			seconds = e->eval_wall_s;
			bytes = j->eval_bytes[LEDGER_RETURNED];
		} else {
			seconds = e->whole_throughput > 0 ? (double)e->samples / e->whole_throughput
							  : 0;
			bytes = j->train_bytes[LEDGER_RETURNED];
		}
		if (!(seconds > 0))
			continue;
		sum += bytes; /* NAN where requests were not counted, and so is the rate */
		time += seconds;
	}
	return time > 0 ? sum / time : NAN;
}

static enum supply_source source_of(const struct result *r, const struct supply *s, double whole_au)
{
	const struct measured *of = &r->judged.measured;

	if (!isfinite(s->fed))
		return SUPPLY_NONE;
	switch (of->storage) {
	case MEASURED_NOT:
	case MEASURED_PART:
		return SUPPLY_CACHE;
	case MEASURED_EMULATED:
		return SUPPLY_EMULATED;
	case MEASURED_UNKNOWN:
		return SUPPLY_UNKNOWN;
	case MEASURED_STORAGE:
	case MEASURED_KINDS:
		break;
	}
	if (whole_au >= KEPT_UP_PERCENT)
		return SUPPLY_AT_LEAST;
	return cause_is_of(r->judged.limit.cause) & CAUSE_OF_STORAGE ? SUPPLY_STORAGE : SUPPLY_RUN;
}

static double at_most(double v, double max)
{
	return v < max ? v : isnan(v) ? v : max;
}

void supply_find(const struct result *r, const struct run_metrics *m, struct supply *out)
{
	enum dataset_kind kind = r->only_evaluated ? DATASET_EVAL : DATASET_TRAIN;
	enum need_phase phase = r->only_evaluated ? NEED_EVALUATION : NEED_TRAINING;
	double rate = r->only_evaluated ? (m->eval_throughput.count ? m->eval_throughput.mean : NAN)
					: m->whole.throughput;
	double whole_au = r->only_evaluated ? r->judged.eval_steady.whole_au : m->whole.au;

	*out = (struct supply){.sample_file_bytes = NAN,
			       .sample_decoded_bytes = NAN,
			       .samples = NAN,
			       .bytes = NAN,
			       .fed = NAN,
			       .fed_at_target = NAN,
			       .accelerators = r->ranks};
	need_find(r->workload, phase, NAN, &out->need);
	if (!r->dataset || !(r->trained || r->only_evaluated))
		return;
	out->sample_file_bytes = dataset_sample_file_bytes(r->dataset, kind, &out->sizes);
	out->sample_decoded_bytes = dataset_mean_sample_bytes(r->dataset, kind);
	/* what reading such files takes of a storage is nothing */
	if (r->dataset->format->is.flags & FORMAT_NO_IO)
		out->sample_file_bytes = 0;
	need_find(r->workload, phase, out->sample_file_bytes, &out->need);
	if (!isfinite(rate))
		return;
	out->samples = rate;
	out->bytes = returned_rate(r, m);
	out->fed = at_most(need_fed(&out->need, out->samples), out->accelerators);
	out->fed_at_target =
		at_most(need_fed_at_target(&out->need, out->samples), out->accelerators);
	out->source = source_of(r, out, whole_au);
	out->all = out->need.target > 0 && whole_au >= 100 * out->need.target;
	out->part = r->judged.measured.storage == MEASURED_PART;
	out->loader = cause_is_of(r->judged.limit.cause) & CAUSE_OF_SAMPLES;
	if (out->source == SUPPLY_CACHE)
		measured_instead(&r->judged.measured, out->instead, sizeof(out->instead));
}

/* "3.0 of 8", "at least 8", "all 8 at 90 %". */
static void put_fed(const struct supply *s, char *out, size_t out_size)
{
	if (s->source == SUPPLY_AT_LEAST)
		str_append(out, out_size, "at least %u", s->accelerators);
	else if (s->all)
		str_append(out, out_size, "%u of %u at %.4g %%", s->accelerators, s->accelerators,
			   100 * s->need.target);
	else
		str_append(out, out_size, s->fed < 0.095 ? "%.2f of %u" : "%.1f of %u", s->fed,
			   s->accelerators);
}

char *supply_fed_text(const struct supply *s, char *out, size_t out_size)
{
	snprintf(out, out_size, "%s", "");
	switch (s->source) {
	case SUPPLY_NONE:
	case SUPPLY_SOURCES:
		return out;
	case SUPPLY_STORAGE:
	case SUPPLY_AT_LEAST:
		str_append(out, out_size, "this storage fed ");
		break;
	case SUPPLY_EMULATED:
		str_append(out, out_size, "the emulated store fed ");
		break;
	case SUPPLY_CACHE:
		if (s->loader) {
			str_append(out, out_size, "this run fed ");
			break;
		}
		str_append(out, out_size, s->part ? "the storage and %s fed " : "%s fed ",
			   s->instead);
		break;
	case SUPPLY_RUN:
	case SUPPLY_UNKNOWN:
		str_append(out, out_size, "this run fed ");
	}
	put_fed(s, out, out_size);
	return out;
}

char *supply_text(const struct supply *s, char *out, size_t out_size)
{
	char fed[128];

	need_text(&s->need, out, out_size);
	supply_fed_text(s, fed, sizeof(fed));
	if (fed[0])
		str_append(out, out_size, ": %s", fed);
	return out;
}

char *supply_text_within(const struct supply *s, size_t width, char *out, size_t out_size)
{
	const struct need *n = &s->need;
	char fed[128], rate[32], part[32];

	supply_text(s, out, out_size);
	if (strlen(out) <= width || !n->known || !(n->bytes > 0))
		return out;
	supply_fed_text(s, fed, sizeof(fed));
	need_rate_text(n->bytes, rate, sizeof(rate));
	snprintf(out, out_size, "%s at 100 %%", rate);
	if (n->target > 0 && n->target != 1)
		str_append(out, out_size, ", %s at %.4g %%",
			   need_part_text(n->bytes_at_target, n->bytes, part, sizeof(part)),
			   100 * n->target);
	str_append(out, out_size, "%s%s", fed[0] ? ": " : "", fed);
	if (strlen(out) > width)
		snprintf(out, out_size, "%s at 100 %%%s%s", rate, fed[0] ? ": " : "", fed);
	return out;
}
