/* The configuration as result.json shows it, and the machine it ran on. */
#include <gnu/libc-version.h>
#include <string.h>

#include "base/alloc.h"
#include "result/json_out.h"
#include "result/json_parts.h"

static json_t *typed_value(const struct opt *row, const struct workload *w)
{
	const char *field = (const char *)w + row->offset;
	AUTO_FREE char *text = NULL;

	switch (row->type) {
	case OPT_BOOL:
		return json_boolean(*(const bool *)field);
	case OPT_I64:
		return json_integer(*(const int64_t *)field);
	case OPT_F64:
		return json_number(*(const double *)field);
	case OPT_STR:
		return json_text(*(char *const *)field);
	case OPT_MAP: {
		/* as written, so that a secret named by ${oc.env:...} stays out of the file */
		AUTO_FREE char *path = xasprintf("workload.%s", row->key);
		const struct node *n = w->composed ? node_path(w->composed, path) : NULL;
		struct buf b = {0};
		json_t *v;

		if (n)
			node_emit_flow(n, &b);
		v = json_text(b.data);
		buf_release(&b);
		return v;
	}
	default:
		text = opt_get_text(row, w);
		return json_text(text);
	}
}

static void put_origin(json_t *entry, const struct opt_origin *o)
{
	static const char *const names[] = {[ORIGIN_DEFAULT] = "default",
					    [ORIGIN_FILE] = "file",
					    [ORIGIN_OVERRIDE] = "override"};

	json_put_text(entry, "origin", names[o->source]);
	if (o->source != ORIGIN_FILE)
		return;
	if (o->mark.file)
		json_put_text(entry, "file", o->mark.file);
	if (o->mark.line > 0)
		json_put(entry, "line", json_integer(o->mark.line));
}

json_t *json_configuration(const struct workload *w)
{
	static const struct opt_origin unknown = {0};
	json_t *map = json_object();

	for (size_t i = 0; i < workload_row_count; i++) {
		const struct opt *row = &workload_rows[i];
		json_t *entry = json_object();

		json_put(entry, "value", typed_value(row, w));
		if (row->unit)
			json_put_text(entry, "unit", row->unit);
		put_origin(entry, w->origin ? &w->origin[i] : &unknown);
		json_put(map, row->key, entry);
	}
	return map;
}

json_t *json_environment(const struct host_facts *h)
{
	json_t *env = json_object(), *versions = json_object();

	json_put_text(env, "hostname", h->hostname);
	json_put_text(env, "kernel", h->kernel);
	json_put_text(env, "processor", h->processor);
	json_put(env, "cpu_count", json_integer(h->cpu_count));
	json_put_real(env, "usable_cpus", h->usable_cpus);
	json_put_real(env, "memory_bytes", h->memory_gib * 1073741824.0);
	json_put_text(versions, "stoker", STOKER_VERSION);
	json_put_text(versions, "compiler", __VERSION__);
	json_put_text(versions, "libc", gnu_get_libc_version());
	json_put_text(versions, "jansson", jansson_version_str());
	json_put(env, "versions", versions);
	json_put_pairs(env, "cpuinfo", h->cpuinfo, h->cpuinfo_count);
	json_put_pairs(env, "meminfo", h->meminfo, h->meminfo_count);
	return env;
}
