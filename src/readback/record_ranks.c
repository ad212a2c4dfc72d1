/* The two files that each rank leaves: times of steps, and spans of epochs. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "readback/record_parts.h"

#define EPOCHS_MAX 1000000
#define PARTS_MAX 100000 /* blocks or checkpoints of an epoch */

double record_time(const char *text)
{
	struct tm tm = {.tm_isdst = -1};
	const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
	double fraction = 0;
	time_t t;

	if (!rest)
		return NAN;
	if (*rest == '.')
		fraction = strtod(rest, NULL);
	t = mktime(&tm);
	return t == (time_t)-1 ? NAN : (double)t + fraction;
}

static double time_of(const json_t *object, const char *key)
{
	char text[64];

	record_text(object, key, text, sizeof(text));
	return text[0] ? record_time(text) : NAN;
}

static double *take_list(const json_t *v, size_t *n)
{
	size_t count = json_array_size(v);
	double *out = count ? xcalloc(count, sizeof(*out)) : NULL;

	for (size_t i = 0; i < count; i++) {
		const json_t *one = json_array_get(v, i);

		out[i] = json_is_number(one) ? json_number_value(one) : 0;
	}
	*n = count;
	return out;
}

static void take_phase(struct record_phase *p, const json_t *epoch, const json_t *spans,
		       const char *name, double origin_s)
{
	const json_t *span = json_object_get(spans, name);

	p->load = take_list(json_object_get(json_object_get(epoch, "load"), name), &p->loads);
	p->compute =
		take_list(json_object_get(json_object_get(epoch, "compute"), name), &p->computes);
	p->au = record_number(json_object_get(epoch, "au"), name);
	p->throughput = record_number(json_object_get(epoch, "throughput"), name);
	p->begin_s = time_of(span, "start") - origin_s;
	p->wall_s = time_of(span, "end") - time_of(span, "start");
}

static void take_checkpoint(struct record_epoch *ep, const char *name, const json_t *span,
			    double origin_s)
{
	struct record_checkpoint *c;

	if (ep->checkpoints == PARTS_MAX)
		return;
	ep->checkpoint = xrealloc(ep->checkpoint, (ep->checkpoints + 1) * sizeof(*ep->checkpoint));
	c = &ep->checkpoint[ep->checkpoints++];
	*c = (struct record_checkpoint){
		.load = strncmp(name, "load", 4) == 0,
		.begin_s = time_of(span, "start") - origin_s,
		.seconds = record_number(span, "duration"),
		.gib_per_s = record_number(span, "throughput"),
	};
	snprintf(c->name, sizeof(c->name), "%s", name);
}

static double cached_bytes(const json_t *epoch)
{
	const char *s = json_string_value(
		json_object_get(json_object_get(epoch, "host_meminfo"), "Cached"));

	return s ? strtod(s, NULL) * 1024 : NAN;
}

static void take_epoch(struct record_epoch *ep, uint32_t number, const json_t *epoch, json_t *spans,
		       double origin_s)
{
	json_t *span;
	const char *name;
	double first = NAN, last = NAN, saved = NAN;

	*ep = (struct record_epoch){.number = number, .cached_bytes = cached_bytes(epoch)};
	ep->eval.au = ep->eval.throughput = ep->eval.wall_s = ep->eval_begin_s = NAN;
	ep->begin_s = time_of(spans, "start") - origin_s;
	ep->end_s = time_of(spans, "end") - origin_s;
	json_object_foreach(spans, name, span)
	{
		if (!json_is_object(span))
			continue;
		if (strcmp(name, "eval") == 0) {
			ep->has_eval = true;
			ep->eval_begin_s = time_of(span, "start") - origin_s;
			take_phase(&ep->eval, epoch, spans, name, origin_s);
		} else if (strncmp(name, "block", 5) == 0 && ep->blocks < PARTS_MAX) {
			ep->block = xrealloc(ep->block, (ep->blocks + 1) * sizeof(*ep->block));
			take_phase(&ep->block[ep->blocks++], epoch, spans, name, origin_s);
			if (!(first <= time_of(span, "start")))
				first = time_of(span, "start");
			if (!(last >= time_of(span, "end")))
				last = time_of(span, "end");
		} else if (strstr(name, "_ckpt")) {
			take_checkpoint(ep, name, span, origin_s);
			if (strncmp(name, "save", 4) == 0 && !(saved >= time_of(span, "end")))
				saved = time_of(span, "end");
		}
	}
	/* one that goes on in the background ends where it likes */
	if (isfinite(saved) && ep->has_eval)
		saved = fmin(saved, ep->eval_begin_s + origin_s);
	if (isfinite(saved) && saved > last && saved <= ep->end_s + origin_s)
		last = saved;
	ep->train_wall_s = last - first;
}

static void take_rank(struct run_record *r, uint32_t k, const json_t *output, json_t *stats)
{
	struct record_rank *rank = &r->rank[k];
	char name[32];

	record_text(output, "hostname", rank->hostname, sizeof(rank->hostname));
	for (uint32_t number = 1; number <= EPOCHS_MAX; number++) {
		json_t *spans;

		snprintf(name, sizeof(name), "%u", number);
		spans = json_object_get(stats, name);
		if (!json_is_object(spans))
			break;
		rank->epoch = xrealloc(rank->epoch, (rank->epochs + 1) * sizeof(*rank->epoch));
		take_epoch(&rank->epoch[rank->epochs++], number, json_object_get(output, name),
			   spans, r->begin_s);
	}
}

int record_ranks(struct run_record *r, struct err *e)
{
	struct err first = {0};
	char name[64];

	r->rank = try_calloc(r->ranks, sizeof(*r->rank), "ranks of a result", e);
	if (!r->rank)
		return -ENOMEM;
	for (uint32_t k = 0; k < r->ranks; k++) {
		json_t *output, *stats;
		struct err why = {0};

		snprintf(name, sizeof(name), "%u_output.json", k);
		output = record_json(r->folder, name, &why);
		snprintf(name, sizeof(name), "%u_per_epoch_stats.json", k);
		stats = record_json(r->folder, name, &why);
		if (output && stats) {
			take_rank(r, k, output, stats);
			r->ranks_found++;
		} else if (first.code == 0) {
			first = why;
		}
		json_decref(output);
		json_decref(stats);
	}
	if (r->ranks_found < r->ranks)
		record_note(r, "the files of %u of %u ranks are missing or cannot be read (%s)",
			    r->ranks - r->ranks_found, r->ranks, first.text);
	return 0;
}
