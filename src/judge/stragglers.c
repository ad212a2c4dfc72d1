/* Stragglers by name. */
#include "judge/stragglers.h"

#include <stdio.h>

#include "result/json_out.h"

/* a sample that took this many times the mean stands out */
#define STANDS_OUT 5

static void insert(struct stragglers *s, uint32_t rank, const struct slow_sample *one)
{
	uint32_t at = s->samples;

	while (at > 0 && s->sample[at - 1].of.ns < one->ns)
		at--;
	if (at == STRAGGLING_SAMPLES)
		return;
	if (s->samples < STRAGGLING_SAMPLES)
		s->samples++;
	for (uint32_t i = s->samples - 1; i > at; i--)
		s->sample[i] = s->sample[i - 1];
	s->sample[at] = (struct straggling_sample){rank, *one};
}

void stragglers_find(const struct result *r, struct stragglers *out)
{
	double sum = 0;
	uint32_t n = 0;

	*out = (struct stragglers){0};
	for (uint32_t k = 0; k < r->ranks_here; k++) {
		const struct rank_result *rank = &r->rank[k];

		if (rank->sample_ns > 0) {
			sum += (double)rank->sample_ns;
			n++;
		}
		for (uint32_t i = 0; i < rank->slow.n; i++)
			insert(out, r->first_rank + k, &rank->slow.kept[i]);
	}
	out->mean_s = n ? sum / n / 1e9 : 0;
}

/* The path of a sample's file; "" when it has none. */
static const char *file_of(const struct result *r, uint64_t sample, char *path, size_t size)
{
	struct err e;

	if (!r->dataset || dataset_path(r->dataset, DATASET_TRAIN,
					sample / r->dataset->samples_per_file, path, size, &e) < 0)
		path[0] = 0;
	return path;
}

static json_t *sample_json(const struct result *r, const struct stragglers *s, uint32_t i)
{
	const struct straggling_sample *one = &s->sample[i];
	json_t *o = json_object();
	char path[4096];

	json_put_int(o, "rank", one->rank);
	json_put_text(o, "host", result_rank_host(r, one->rank)->hostname);
	json_put_int(o, "sample", one->of.sample);
	json_put_text(o, "file", file_of(r, one->of.sample, path, sizeof(path)));
	json_put_real(o, "begin_s", (double)(one->of.begin_ns - r->begin_ns) / 1e9);
	json_put_real(o, "seconds", (double)one->of.ns / 1e9);
	if (s->mean_s > 0)
		json_put_real(o, "times_mean", (double)one->of.ns / 1e9 / s->mean_s);
	return o;
}

json_t *json_stragglers(const struct result *r, const struct decomposition *d)
{
	json_t *o = json_object(), *list = json_array();
	struct stragglers s;

	if (r->ranks > 1 && d->last_share > 0) {
		json_t *last = json_object();

		json_put_int(last, "rank", d->last_rank);
		json_put_text(last, "host", result_rank_host(r, d->last_rank)->hostname);
		json_put_real(last, "last_in_percent_of_steps", 100 * d->last_share);
		json_put_real(last, "behind_the_others_s", d->last_behind_s);
		json_put_text(last, "spends_more_on", time_part_names[d->last_part]);
		json_put(o, "slowest_rank", last);
	}
	if (r->nodes > 1 && d->last_node_share > 0) {
		const struct host_facts *h = result_node_host(r, d->last_node);
		json_t *last = json_object();

		json_put_text(last, "host", h ? h->hostname : NULL);
		json_put_real(last, "last_in_percent_of_steps", 100 * d->last_node_share);
		json_put(o, "slowest_host", last);
	}
	stragglers_find(r, &s);
	for (uint32_t i = 0; i < s.samples; i++)
		json_array_append_new(list, sample_json(r, &s, i));
	json_put(o, "slowest_samples", list);
	return o;
}

void stragglers_text(const struct result *r, struct buf *out)
{
	struct stragglers s;
	char path[4096];

	stragglers_find(r, &s);
	if (s.samples == 0 || s.mean_s <= 0 ||
	    (double)s.sample[0].of.ns < STANDS_OUT * s.mean_s * 1e9)
		return;
	buf_printf(out, "%.3g ms, %.3g times the mean: rank %u, %s",
		   (double)s.sample[0].of.ns / 1e6, (double)s.sample[0].of.ns / 1e9 / s.mean_s,
		   s.sample[0].rank, file_of(r, s.sample[0].of.sample, path, sizeof(path)));
}
