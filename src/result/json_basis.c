#include "result/json_basis.h"

#include <math.h>
#include <stdio.h>

#include "result/json_out.h"

#define COUNT_MAX 1e6
#define TIME_MAX 1e9 /* s; rates and bytes are below 1e18 */

#define ROW(member, k, most, ...)                                                                  \
	{                                                                                          \
		.name = #member, .kind = k, .offset = offsetof(struct fleet, member), .max = most, \
		__VA_ARGS__                                                                        \
	}
#define NAMED(text, member, k, most, ...)                                                          \
	{                                                                                          \
		.name = text, .kind = k, .offset = offsetof(struct fleet, member), .max = most,    \
		__VA_ARGS__                                                                        \
	}

const struct fleet_field fleet_fields[] = {
	ROW(ranks, FIELD_COUNT, COUNT_MAX),
	ROW(hosts, FIELD_COUNT, COUNT_MAX),
	NAMED("steps_per_epoch", steps, FIELD_LONG, 1e15),
	ROW(epochs, FIELD_COUNT, COUNT_MAX),
	ROW(workers, FIELD_COUNT, COUNT_MAX),
	NAMED("window_batches", window, FIELD_LONG, COUNT_MAX),
	NAMED("runs_per_batch", runs, FIELD_COUNT, COUNT_MAX),
	ROW(in_order, FIELD_FLAG, 1),
	NAMED("samples_per_batch", samples, FIELD_REAL, TIME_MAX),
	NAMED("bytes_per_batch", bytes, FIELD_REAL, 1e18),
	NAMED("requests_per_batch", requests, FIELD_REAL, TIME_MAX, .varies = true),
	NAMED("opens_per_batch", opens, FIELD_REAL, TIME_MAX, .varies = true),
	NAMED("stream_bytes_per_s", stream, FIELD_REAL, 1e18, .varies = true),
	NAMED("request_s", request, FIELD_DRAWN, TIME_MAX, .varies = true),
	NAMED("open_s", open, FIELD_DRAWN, TIME_MAX, .varies = true),
	ROW(delay_s, FIELD_REAL, TIME_MAX, .varies = true),
	ROW(cpu_s, FIELD_REAL, TIME_MAX),
	ROW(servers, FIELD_COUNT, COUNT_MAX, .varies = true),
	ROW(open_servers, FIELD_COUNT, COUNT_MAX, .varies = true),
	NAMED("bytes_per_s", store.bytes_per_s, FIELD_REAL, 1e18, .varies = true),
	NAMED("requests_per_s", store.requests_per_s, FIELD_REAL, 1e18, .varies = true),
	NAMED("opens_per_s", store.opens_per_s, FIELD_REAL, 1e18, .varies = true),
	NAMED("processors_per_host", cpus, FIELD_REAL, COUNT_MAX),
	NAMED("compute_s", compute, FIELD_DRAWN, TIME_MAX),
	ROW(step_s, FIELD_REAL, TIME_MAX),
	ROW(hand_s, FIELD_REAL, TIME_MAX),
	ROW(start_s, FIELD_REAL, TIME_MAX),
	ROW(fork_s, FIELD_REAL, TIME_MAX),
	ROW(begin_s, FIELD_REAL, TIME_MAX),
	ROW(take_s, FIELD_REAL, TIME_MAX),
	ROW(end_s, FIELD_REAL, TIME_MAX),
};
const size_t fleet_field_count = sizeof(fleet_fields) / sizeof(fleet_fields[0]);

json_t *json_basis(const struct basis *b)
{
	json_t *o = json_object();

	json_put_bool(o, "known", b->known);
	if (!b->known) {
		json_put_text(o, "why", b->why);
		return o;
	}
	json_put_real(o, "au_percent", b->au);
	json_put_real(o, "whole_au_percent", b->au_rate);
	json_put_int(o, "explanations", b->explanations);
	json_put_real(o, "most_in_flight", b->most_in_flight);
	json_put_real(o, "processors_taken_points", b->taken);
	json_put_bool(o, "probed", b->probed);
	json_put_bool(o, "ceiling_untold", b->untold);
	if (b->shape_low <= b->shape_high) {
		json_put_real(o, "tail_shape", b->shape);
		json_put_real(o, "tail_shape_low", b->shape_low);
		json_put_real(o, "tail_shape_high", b->shape_high);
	}
	return o;
}

/* ---- the models of results of schema 1, which kept no measures to make them of ---- */

static bool refuse(struct basis *out, const char *what)
{
	*out = (struct basis){.known = false};
	snprintf(out->why, sizeof(out->why), "'%s' in key 'fleet' of its result.json is not valid",
		 what);
	return false;
}

static bool number_in(const json_t *v, double most, double *out)
{
	double x = json_number_value(v);

	if (!json_is_number(v) || !(x >= 0) || !(x <= most))
		return false;
	*out = x;
	return true;
}

static bool read_drawn(const json_t *v, double most, struct drawn *out)
{
	const json_t *list = json_object_get(v, "quantiles");
	size_t n = json_array_size(list);
	struct drawn d = {.tail = 0};

	if (n != 1 && n != DRAWN_POINTS)
		return false;
	for (size_t i = 0; i < DRAWN_POINTS; i++) {
		if (!number_in(json_array_get(list, n == 1 ? 0 : i), most, &d.at[i]) ||
		    (i > 0 && d.at[i] < d.at[i - 1]))
			return false;
	}
	if (json_object_get(v, "tail_part")) {
		const json_t *shape = json_object_get(v, "tail_shape");

		if (!number_in(json_object_get(v, "tail_part"), 0.5, &d.tail) ||
		    !number_in(json_object_get(v, "tail_scale"), most, &d.scale) ||
		    !json_is_number(shape))
			return false;
		d.shape = json_number_value(shape);
		if (!(d.shape <= DRAWN_SHAPE_MAX) || !(d.shape > -100))
			return false;
	}
	*out = d;
	return true;
}

static bool read_field(const json_t *o, const struct fleet_field *field, struct fleet *f)
{
	const json_t *v = json_object_get(o, field->name);
	char *at = (char *)f + field->offset;
	double x = 0;

	if (field->kind == FIELD_DRAWN) {
		*(struct drawn *)at = (struct drawn){.tail = 0};
		return !v || read_drawn(v, field->max, (struct drawn *)at);
	}
	if (field->kind == FIELD_FLAG) {
		*(bool *)at = json_is_true(v);
		return true;
	}
	if (v && !number_in(v, field->max, &x))
		return false;
	if (field->kind == FIELD_REAL)
		*(double *)at = x;
	else if (field->kind == FIELD_COUNT)
		*(uint32_t *)at = (uint32_t)x;
	else
		*(uint64_t *)at = (uint64_t)x;
	return true;
}

static bool read_model(const json_t *o, uint32_t i, struct basis *b)
{
	if (i > 0)
		b->one[i] = b->one[0];
	for (size_t k = 0; k < fleet_field_count; k++)
		if ((i == 0 || fleet_fields[k].varies) &&
		    !read_field(o, &fleet_fields[k], &b->one[i]))
			return refuse(b, fleet_fields[k].name);
	b->modeled[i] = NAN;
	if (i < b->explanations &&
	    !number_in(json_object_get(o, "modeled_whole_au_percent"), 100.5, &b->modeled[i]))
		return refuse(b, "modeled_whole_au_percent");
	return true;
}

void json_basis_of_schema_1(const json_t *result, struct basis *out)
{
	const json_t *o = json_object_get(result, "fleet"), *list = json_object_get(o, "models");
	const char *why = json_string_value(json_object_get(o, "why"));
	double explanations;

	*out = (struct basis){.known = json_is_true(json_object_get(o, "known"))};
	if (!out->known) {
		snprintf(out->why, sizeof(out->why), "%s",
			 why ? why
			     : "its result.json has no key 'fleet': an older version wrote it, or "
			       "it did not train");
		return;
	}
	out->count = (uint32_t)json_array_size(list);
	if (json_array_size(list) < 1 || json_array_size(list) > BASIS_MAX) {
		refuse(out, "models");
		return;
	}
	if (!number_in(json_object_get(o, "explanations"), out->count, &explanations) ||
	    explanations < 1) {
		refuse(out, "explanations");
		return;
	}
	out->explanations = (uint32_t)explanations;
	if (!number_in(json_object_get(o, "au_percent"), 100.5, &out->au) ||
	    !number_in(json_object_get(o, "whole_au_percent"), 100.5, &out->au_rate) ||
	    !number_in(json_object_get(o, "most_in_flight"), TIME_MAX, &out->most_in_flight) ||
	    !number_in(json_object_get(o, "processors_taken_points"), 100, &out->taken)) {
		refuse(out, "whole_au_percent");
		return;
	}
	out->probed = json_is_true(json_object_get(o, "probed"));
	out->untold = json_is_true(json_object_get(o, "ceiling_untold"));
	out->shape_low = 1;
	if (json_is_number(json_object_get(o, "tail_shape"))) {
		out->shape = json_number_value(json_object_get(o, "tail_shape"));
		out->shape_low = json_number_value(json_object_get(o, "tail_shape_low"));
		out->shape_high = json_number_value(json_object_get(o, "tail_shape_high"));
	}
	for (uint32_t i = 0; i < out->count; i++)
		if (!read_model(json_array_get(list, i), i, out))
			return;
}
