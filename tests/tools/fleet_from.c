/* What a run's result says of larger fleets: fleet_from RESULT_FOLDER STEPS RANKS[xHOSTS]...; one
 * JSON object a line. With -v, the models of the run first. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "predict/fleet.h"
#include "readback/audit.h"
#include "readback/record.h"

static void show_models(const struct basis *b)
{
	printf("AU %.2f %%, by rate %.2f %%; %u models, %u of them explanations; %.0f in "
	       "flight%s%s; "
	       "shape %.2f (%.2f to %.2f)\n",
	       b->au, b->au_rate, b->count, b->explanations, b->most_in_flight,
	       b->probed ? ", probed" : "", b->untold ? ", ceiling untold" : "", b->shape,
	       b->shape_low, b->shape_high);
	for (uint32_t i = 0; i < b->explanations; i++) {
		const struct fleet *f = &b->one[i];

		printf("  modeled %.2f %%: %g requests of %.4g s (%.2f of them from %.4g s, scale "
		       "%.4g, shape %.2f); servers %u, %.4g requests/s, %.4g bytes/s, stream %.4g; "
		       "%g opens of %.4g s, servers %u; delay %.4g, cpu %.3g + %.3g + %.3g, step "
		       "%.3g, hand %.3g, start %.3g s\n",
		       b->modeled[i], f->requests, drawn_mean(&f->request), f->request.tail,
		       f->request.at[DRAWN_POINTS - 1], f->request.scale, f->request.shape,
		       f->servers, f->store.requests_per_s, f->store.bytes_per_s, f->stream,
		       f->opens, drawn_mean(&f->open), f->open_servers, f->delay_s, f->cpu_s,
		       f->take_s, f->end_s, f->step_s, f->hand_s, f->start_s);
	}
}

static void put(json_t *o, const char *key, double v)
{
	json_object_set_new(o, key, json_real(isfinite(v) ? v : -1));
}

static void predict(const struct basis *b, const char *which, uint64_t steps)
{
	const char *x = strchr(which, 'x');
	struct fleet_prediction p =
		fleet_predict(b, (uint32_t)strtoul(which, NULL, 10),
			      x ? (uint32_t)strtoul(x + 1, NULL, 10) : 1, steps, 1);
	json_t *o = json_object();

	json_object_set_new(o, "known", json_boolean(p.known));
	json_object_set_new(o, "why", json_string(p.why));
	put(o, "au", p.best.au);
	put(o, "au_low", p.au_low);
	put(o, "au_high", p.au_high);
	put(o, "whole_au", p.best.au_rate);
	put(o, "whole_low", p.au_rate_low);
	put(o, "whole_high", p.au_rate_high);
	put(o, "whole_dev", p.dev_rate);
	put(o, "linear", p.linear_au);
	put(o, "cap", p.cap_au);
	put(o, "processors", p.best.used[FLEET_CPU]);
	json_object_set_new(o, "limit", json_string(fleet_limit_names[p.best.limit]));
	json_object_set_new(o, "assumption", json_string(p.assumption));
	json_dumpf(o, stdout, 0);
	puts("");
	json_decref(o);
}

int main(int argc, char **argv)
{
	static struct basis b;
	bool verbose = argc > 1 && strcmp(argv[1], "-v") == 0;
	struct run_record r;

	argv += verbose;
	argc -= verbose;
	if (argc < 3)
		return 2;
	record_load(&r, argv[1]);
	if (r.broken) {
		fprintf(stderr, "fleet_from: %s\n", r.broken);
		return 1;
	}
	audit_basis(&r, &b);
	record_release(&r);
	if (!b.known) {
		fprintf(stderr, "fleet_from: %s\n", b.why);
		return 1;
	}
	if (verbose)
		show_models(&b);
	for (int i = 3; i < argc; i++)
		predict(&b, argv[i], strtoull(argv[2], NULL, 10));
	return 0;
}
