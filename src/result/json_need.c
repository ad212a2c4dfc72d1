/* "need": what one accelerator needs, and what the run gave. */
#include <math.h>

#include "result/json_out.h"
#include "result/json_result.h"
#include "result/supply.h"

static const char *const sizes_names[] = {
	[SIZES_UNKNOWN] = NULL,
	[SIZES_EXACT] = "layout",
	[SIZES_SEEN] = "files",
	[SIZES_LIKELY] = "estimate",
};

static json_t *json_supply(const struct supply *s)
{
	json_t *o = json_object();
	char text[256];

	json_put_text(o, "of", supply_names[s->source]);
	if (s->source == SUPPLY_CACHE)
		json_put_text(o, "instead", s->instead);
	json_put_int(o, "accelerators", s->accelerators);
	json_put_real(o, "samples_per_s", s->samples);
	json_put_real(o, "returned_bytes_per_s", s->bytes);
	json_put_real(o, "accelerators_fed", s->fed);
	json_put_real(o, "accelerators_fed_at_target", s->fed_at_target);
	json_put_text(o, "text", supply_fed_text(s, text, sizeof(text)));
	return o;
}

json_t *json_need(const struct result *r, const struct run_metrics *m)
{
	json_t *o = json_object();
	struct supply s;
	char text[256];

	supply_find(r, m, &s);
	json_put_text(o, "of", r->only_evaluated ? "evaluation" : "training");
	json_put_real(o, "sample_file_bytes", s.sample_file_bytes);
	json_put_real(o, "sample_decoded_bytes", s.sample_decoded_bytes);
	if (sizes_names[s.sizes])
		json_put_text(o, "sample_file_bytes_from", sizes_names[s.sizes]);
	json_put_real(o, "computation_s", s.need.step_s);
	json_put(o, "batch_size", json_integer(s.need.batch));
	if (s.need.known) {
		json_put_real(o, "samples_per_s", s.need.samples);
		json_put_real(o, "bytes_per_s", s.need.bytes);
	} else {
		json_put_text(o, "missing_because", s.need.why);
	}
	if (s.need.known && s.need.target > 0) {
		json_put_real(o, "target_percent", 100 * s.need.target);
		json_put_real(o, "samples_per_s_at_target", s.need.samples_at_target);
		json_put_real(o, "bytes_per_s_at_target", s.need.bytes_at_target);
	}
	json_put_text(o, "text", supply_text(&s, text, sizeof(text)));
	if (s.source != SUPPLY_NONE)
		json_put(o, "supply", json_supply(&s));
	return o;
}
