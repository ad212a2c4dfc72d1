/* The probe in result.json. */
#include "result/json_out.h"
#include "result/json_result.h"

static json_t *json_point(const struct probe_point *p)
{
	json_t *o = json_object();
	double s = p->seconds > 0 ? p->seconds : 1;

	json_put_int(o, "readers", p->readers);
	json_put_real(o, "seconds", p->seconds);
	json_put_int(o, "samples", p->samples);
	json_put_int(o, "opens", p->opens);
	json_put_int(o, "requests", p->requests);
	json_put_int(o, "bytes", p->bytes);
	json_put_real(o, "samples_per_s", (double)p->samples / s);
	json_put_real(o, "opens_per_s", (double)p->opens / s);
	json_put_real(o, "requests_per_s", (double)p->requests / s);
	json_put_real(o, "bytes_per_s", (double)p->bytes / s);
	json_put_real(o, "open_s", p->open_s);
	json_put_real(o, "read_s", p->read_s);
	json_put_real(o, "longest_request_s", p->longest_s);
	json_put_real(o, "cpu_s", p->cpu_s);
	return o;
}

json_t *json_probe(const struct probe *p)
{
	json_t *o = json_object(), *points = json_array(), *sized = json_array();

	json_put_bool(o, "done", p->done);
	json_put_text(o, "why", p->why[0] ? p->why : NULL);
	json_put_bool(o, "cold", p->cold);
	json_put_int(o, "run_readers", p->run_readers);
	json_put_real(o, "evict_s", p->evict_s);
	for (uint32_t i = 0; i < p->count; i++)
		json_array_append_new(points, json_point(&p->point[i]));
	json_put(o, "points", points);
	for (uint32_t i = 0; i < p->sized_count; i++)
		json_array_append_new(sized, json_point(&p->sized[i]));
	json_put(o, "sized", sized);
	return o;
}
