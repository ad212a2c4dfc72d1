/* The page: data as JSON, and the parts put together. */
#include "page/page.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/say.h"
#include "page/run_data.h"
#include "page/trace_data.h"
#include "readback/palette.h"
#include "result/json_out.h"

/* Pages of more runs have no curves of the machine. */
#define CURVES_RUNS 60

/* ---- machines ---- */

static void put_pair(json_t *list, const char *name, const char *value)
{
	json_t *o;

	if (!value || !value[0])
		return;
	o = json_array();
	json_array_append_new(o, json_text(name));
	json_array_append_new(o, json_text(value));
	json_array_append_new(list, o);
}

static const char *cpu_name(const json_t *cpuinfo)
{
	static const char *const keys[] = {"model name", "Model", "cpu", "CPU part", NULL};

	for (size_t i = 0; keys[i]; i++) {
		const char *s = json_string_value(json_object_get(cpuinfo, keys[i]));

		if (s)
			return s;
	}
	return NULL;
}

/* What a "system" object of a result holds, as lines: strings, numbers, lists of them. */
static void put_system(json_t *list, const json_t *system)
{
	const char *key;
	json_t *v;

	json_object_foreach((json_t *)(uintptr_t)system, key, v)
	{
		char *dump = json_is_string(v) ? NULL : json_dumps(v, JSON_ENCODE_ANY);

		put_pair(list, key, dump ? dump : json_string_value(v));
		free(dump);
	}
}

static json_t *host_of(const struct run_record *r)
{
	const json_t *env = json_object_get(r->result, "environment");
	const json_t *cpuinfo = json_object_get(r->summary, "host_cpuinfo");
	const json_t *system = json_object_get(r->result, "system");
	const json_t *cpus = json_array_get(json_object_get(r->summary, "host_cpu_count"), 0);
	json_t *o = json_object(), *list = json_array();
	char text[64];

	json_put_text(o, "name", r->hostname);
	/* ours has these facts, too */
	if (json_is_object(system)) {
		put_system(list, system);
	} else {
		put_pair(list, "kernel", json_string_value(json_object_get(env, "kernel")));
		put_pair(list, "CPU", cpu_name(cpuinfo));
		if (json_is_integer(cpus)) {
			snprintf(text, sizeof(text), "%lld", (long long)json_integer_value(cpus));
			put_pair(list, "processors", text);
		}
		if (r->host_memory_bytes > 0) {
			snprintf(text, sizeof(text), "%.1f GiB", r->host_memory_bytes / 0x1p30);
			put_pair(list, "memory", text);
		}
	}
	json_put(o, "facts", list);
	return o;
}

/* ---- runs, one at a time ---- */

static char *compact(json_t *data)
{
	struct buf text = {0};

	json_put_dump(&text, data, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(7),
		      JSON_SHOWN);
	json_decref(data);
	if (text.len == 0)
		out_of_memory();
	return buf_take(&text);
}

void page_runs_begin(struct page_runs *p, size_t n)
{
	*p = (struct page_runs){.n = n,
				.run = xcalloc(n + 1, sizeof(*p->run)),
				.host = xcalloc(n + 1, sizeof(*p->host)),
				.brief = n > CURVES_RUNS};
}

void page_runs_look(struct page_runs *p, size_t i, const struct run_record *r)
{
	p->run[i] = compact(run_data(r, p->brief));
	p->host[i] = compact(host_of(r));
}

void page_runs_take(struct page_runs *p, size_t i, const struct run_record *r)
{
	size_t known = p->hosts.n;

	if (texts_add(&p->hosts, r->hostname) == known)
		return;
	free(p->host[i]);
	p->host[i] = NULL;
}

void page_runs_release(struct page_runs *p)
{
	for (size_t i = 0; i < p->n; i++) {
		free(p->run[i]);
		free(p->host[i]);
	}
	free(p->run);
	free(p->host);
	texts_release(&p->hosts);
	*p = (struct page_runs){0};
}

/* ---- the whole ---- */

static void put_compact(struct buf *out, const char *before, json_t *data)
{
	char *dump = compact(data);

	buf_puts(out, before);
	buf_puts(out, dump);
	free(dump);
}

static void put_run(struct buf *out, const struct run_groups *g, const struct page_runs *runs,
		    const struct page_trace *trace, size_t i)
{
	/* what was made of the record, and into it what came later */
	buf_append(out, runs->run[i], strlen(runs->run[i]) - 1);
	put_compact(out, ",\"findings\":", run_findings(g->audit, i));
	if (trace && trace[i].found)
		put_compact(out, ",\"trace\":", trace_data(&trace[i]));
	buf_putc(out, '}');
}

static void put_data(struct buf *out, const struct run_groups *g, const struct key_findings *k,
		     const struct page_runs *runs, const struct page_trace *trace,
		     const char *title)
{
	const char *sep = "";

	put_compact(out, "{\"version\":", json_string(STOKER_VERSION));
	if (title)
		put_compact(out, ",\"title\":", json_text(title));
	buf_puts(out, ",\"findings\":[");
	for (size_t i = 0; i < k->n; i++) {
		json_t *o = json_object();

		json_put_text(o, "topic", k->v[i].topic);
		json_put_text(o, "text", k->v[i].text.data);
		put_compact(out, i ? "," : "", o);
	}
	buf_puts(out, "],\"groups\":[");
	for (size_t i = 0; i < g->groups; i++)
		put_compact(out, i ? "," : "", group_data(g, &g->group[i]));
	buf_puts(out, "],\"runs\":[");
	for (size_t i = 0; i < g->records; i++) {
		buf_puts(out, i ? "," : "");
		put_run(out, g, runs, trace, i);
	}
	buf_puts(out, "],\"hosts\":[");
	for (size_t i = 0; i < runs->n; i++)
		if (runs->host[i]) {
			buf_puts(out, sep);
			buf_puts(out, runs->host[i]);
			sep = ",";
		}
	buf_puts(out, "]}");
}

static void put_palette(struct buf *out, bool dark)
{
	for (size_t i = 0; i < PALETTE_COLORS; i++)
		buf_printf(out, " --m%zu: %s;", i, dark ? palette[i].dark : palette[i].light);
}

static void put_part(struct buf *out, const char *name, size_t n, const char *title,
		     const char *json)
{
	if (n == 5 && memcmp(name, "TITLE", n) == 0) {
		buf_put_markup(out, title ? title : "Storage for accelerators");
	} else if (n == 5 && memcmp(name, "STYLE", n) == 0) {
		buf_puts(out, page_css);
	} else if (n == 4 && memcmp(name, "DATA", n) == 0) {
		buf_puts(out, json);
	} else if (n == 6 && memcmp(name, "SCRIPT", n) == 0) {
		const char *const parts[] = {base_js, chart_js, summary_js, page_js, timeline_js};

		for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
			buf_puts(out, parts[i]);
	} else if (n == 7 && memcmp(name, "PALETTE", n) == 0) {
		buf_puts(out, ":root {");
		put_palette(out, false);
		buf_puts(out, " }\n@media screen and (prefers-color-scheme: dark) { :root {");
		put_palette(out, true);
		buf_puts(out, " } }\n");
	}
}

void page_render(const struct run_groups *g, const struct key_findings *k,
		 const struct page_runs *runs, const struct page_trace *trace, const char *title,
		 struct buf *out)
{
	const char *at = page_html, *mark;
	struct buf data = {0};

	put_data(&data, g, k, runs, trace, title);
	/* every @ of page.html begins or ends the name of a part */
	while ((mark = strchr(at, '@'))) {
		const char *end = strchr(mark + 1, '@');

		assert(end);
		buf_append(out, at, (size_t)(mark - at));
		put_part(out, mark + 1, (size_t)(end - mark - 1), title, data.data);
		at = end + 1;
	}
	buf_puts(out, at);
	buf_release(&data);
}
