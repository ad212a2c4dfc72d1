/* The page: data as JSON, and the parts put together. */
#include "page/page.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <libdeflate.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/say.h"
#include "os/system.h"
#include "page/run_data.h"
#include "readback/groups.h"
#include "result/json_out.h"

/* ---- data that is unpacked when it is needed ---- */

#define LEVEL 6

static void put_base64(struct buf *out, const unsigned char *p, size_t n)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	char four[4];

	for (; n >= 3; n -= 3, p += 3) {
		uint32_t v = (uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2];

		for (int i = 0; i < 4; i++)
			four[i] = digits[v >> (18 - 6 * i) & 63];
		buf_append(out, four, sizeof(four));
	}
	if (n) {
		uint32_t v = (uint32_t)p[0] << 16 | (n > 1 ? (uint32_t)p[1] << 8 : 0);

		four[0] = digits[v >> 18 & 63];
		four[1] = digits[v >> 12 & 63];
		four[2] = n > 1 ? digits[v >> 6 & 63] : '=';
		four[3] = '=';
		buf_append(out, four, sizeof(four));
	}
}

/* Appends `n` bytes, packed as gzip does and in the 64 characters of base64. */
static void pack_put(struct buf *out, const char *bytes, size_t n)
{
	struct libdeflate_compressor *c = libdeflate_alloc_compressor(LEVEL);
	size_t room = c ? libdeflate_gzip_compress_bound(c, n) : 0;
	unsigned char *packed = xmalloc(room + 1);

	if (!c)
		out_of_memory();
	put_base64(out, packed, libdeflate_gzip_compress(c, bytes, n, packed, room));
	libdeflate_free_compressor(c);
	free(packed);
}

/* ---- */

/* Pages of more runs have no curves of the machine. */
#define CURVES_RUNS 60
/* Runs that a page unpacks together. */
#define BLOCK_RUNS 50

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
	static const char *const keys[] = {"model name", "Model", "cpu", NULL};
	const char *part = json_string_value(json_object_get(cpuinfo, "CPU part"));
	const char *name = arm_processor_name(
		json_string_value(json_object_get(cpuinfo, "CPU implementer")), part);

	for (size_t i = 0; keys[i]; i++) {
		const char *s = json_string_value(json_object_get(cpuinfo, keys[i]));

		if (s)
			return s;
	}
	return name ? name : part;
}

/* What a "system" object of a result holds, as lines: strings, numbers, lists of them. */
static void put_system(json_t *list, const json_t *system)
{
	const char *key;
	json_t *v;

	json_object_foreach((json_t *)(uintptr_t)system, key, v)
	{
		char *dump = json_is_string(v) ? NULL : json_dump_text(v, JSON_ENCODE_ANY);

		put_pair(list, key, dump ? dump : json_string_value(v));
		free(dump);
	}
}

static json_t *host_of(const struct run_record *r)
{
	const struct part *env = record_part(r, F_RUN_ENVIRONMENT);
	const json_t *cpuinfo = json_object_get(r->summary, "host_cpuinfo");
	const json_t *system = figure_json(part_whole(r->result), F_RUN_SYSTEM);
	const json_t *cpus = json_array_get(json_object_get(r->summary, "host_cpu_count"), 0);
	json_t *o = json_object(), *list = json_array();
	char text[64];

	json_put_text(o, "name", r->hostname);
	/* ours has these facts, too */
	if (json_is_object(system)) {
		put_system(list, system);
	} else {
		put_pair(list, "kernel", figure_text(env, F_ENVIRONMENT_KERNEL));
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

void page_runs_begin(void *arg, size_t n)
{
	struct page_runs *p = arg;

	*p = (struct page_runs){.n = n,
				.run = xcalloc(n + 1, sizeof(*p->run)),
				.host = xcalloc(n + 1, sizeof(*p->host)),
				.brief = n > CURVES_RUNS};
	if (n > PAGE_PLAIN_RUNS)
		p->rest = xcalloc(n + 1, sizeof(*p->rest));
}

void page_runs_look(void *arg, size_t i, struct run_record *r)
{
	struct page_runs *p = arg;
	json_t *run = run_data(r, p->brief);

	if (p->rest)
		p->rest[i] = compact(run_details(run));
	p->run[i] = compact(run);
	p->host[i] = compact(host_of(r));
}

void page_runs_take(void *arg, size_t i, struct run_record *r)
{
	struct page_runs *p = arg;
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
		if (p->rest)
			free(p->rest[i]);
	}
	free(p->run);
	free(p->rest);
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

/* Of many runs: the levels of findings, with the text of the first of each kind. */
static json_t *brief_findings(const struct audit *a, size_t i, struct texts *seen)
{
	json_t *out = json_array();
	size_t n;
	const struct finding *f = audit_of(a, i, &n);

	for (; n; n--, f++) {
		AUTO_FREE char *kind = xasprintf("%d %s", (int)f->level, f->check);
		size_t known = seen->n;
		json_t *one = finding_json(f);

		if (texts_add(seen, kind) < known) {
			json_object_del(one, "text");
			json_object_del(one, "advice");
		}
		json_array_append_new(out, one);
	}
	return out;
}

/* What was made of the record, and into it what came later. */
static void put_run(struct buf *out, const char *made, json_t *findings,
		    const struct page_trace *trace)
{
	size_t n = strlen(made) - 1;

	buf_append(out, made, n);
	put_compact(out, n > 1 ? ",\"findings\":" : "\"findings\":", findings);
	if (trace && trace->found)
		put_compact(out, ",\"trace\":", trace_data(trace));
	buf_putc(out, '}');
}

static void put_data(struct buf *out, const struct run_groups *g, const struct key_findings *k,
		     const struct page_runs *runs, const struct page_trace *trace,
		     const char *title)
{
	struct texts seen = {0};
	struct curves curves;
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
	curves_build(&curves, g);
	buf_puts(out, "],\"curves\":[");
	for (size_t i = 0; i < curves.n; i++)
		put_compact(out, i ? "," : "", curve_data(&curves.v[i]));
	curves_release(&curves);
	buf_puts(out, "],\"runs\":[");
	for (size_t i = 0; i < g->records; i++) {
		buf_puts(out, i ? "," : "");
		put_run(out, runs->run[i],
			runs->rest ? brief_findings(g->audit, i, &seen) : run_findings(g->audit, i),
			trace ? &trace[i] : NULL);
	}
	texts_release(&seen);
	buf_puts(out, "],\"hosts\":[");
	for (size_t i = 0; i < runs->n; i++)
		if (runs->host[i]) {
			buf_puts(out, sep);
			buf_puts(out, runs->host[i]);
			sep = ",";
		}
	buf_puts(out, "]}");
}

/* All that is shown without asking, and blocks of runs with the rest. */
static void put_packed(struct buf *out, const struct buf *data, const struct run_groups *g,
		       const struct page_runs *runs)
{
	struct buf block = {0};

	buf_printf(out, "{\"runs\":%zu,\"size\":%d,\"packed\":\"", runs->n, BLOCK_RUNS);
	pack_put(out, data->data, data->len);
	buf_puts(out, "\",\"blocks\":[");
	for (size_t i = 0; i < runs->n; i += BLOCK_RUNS) {
		buf_reset(&block);
		for (size_t k = i; k < runs->n && k < i + BLOCK_RUNS; k++) {
			buf_putc(&block, k > i ? ',' : '[');
			put_run(&block, runs->rest[k], run_findings(g->audit, k), NULL);
		}
		buf_putc(&block, ']');
		buf_puts(out, i ? ",\"" : "\"");
		pack_put(out, block.data, block.len);
		buf_putc(out, '"');
	}
	buf_puts(out, "]}");
	buf_release(&block);
}

static const char *const plain_scripts[] = {base_js, chart_js,    summary_js,
					    page_js, timeline_js, NULL};
static const char *const packed_scripts[] = {"function stokerPage() {\n",
					     base_js,
					     chart_js,
					     summary_js,
					     page_js,
					     timeline_js,
					     "}\n",
					     packed_js,
					     NULL};

void page_render(const struct run_groups *g, const struct key_findings *k,
		 const struct page_runs *runs, const struct page_trace *trace, const char *title,
		 struct buf *out)
{
	struct buf data = {0}, packed = {0};
	const struct page_parts parts = {.title = title ? title : "Storage for accelerators",
					 .body = page_html,
					 .data = &data,
					 .scripts = runs->rest ? packed_scripts : plain_scripts};

	put_data(&data, g, k, runs, trace, title);
	if (runs->rest) {
		put_packed(&packed, &data, g, runs);
		buf_release(&data);
		data = packed;
	}
	page_put_frame(&parts, out);
	buf_release(&data);
}

/* ---- what all pages have in common ---- */

static void put_text(const struct page_parts *p, const char *text, struct buf *out);

static bool is(const char *name, size_t n, const char *part)
{
	return n == strlen(part) && memcmp(name, part, n) == 0;
}

static void put_colors(struct buf *out, bool dark)
{
	for (size_t i = 0; i < PALETTE_COLORS; i++)
		buf_printf(out, " --m%zu: %s;", i, dark ? palette[i].dark : palette[i].light);
}

static void put_palette(struct buf *out)
{
	buf_puts(out, ":root {");
	put_colors(out, false);
	buf_puts(out, " }\n@media screen and (prefers-color-scheme: dark) { :root {");
	put_colors(out, true);
	buf_puts(out, " } }\n");
}

static void put_part(const struct page_parts *p, const char *name, size_t n, struct buf *out)
{
	if (is(name, n, "TITLE")) {
		buf_put_markup(out, p->title);
	} else if (is(name, n, "PALETTE")) {
		put_palette(out);
	} else if (is(name, n, "STYLE")) {
		buf_puts(out, page_css);
		buf_puts(out, p->style ? p->style : "");
	} else if (is(name, n, "BODY")) {
		put_text(p, p->body, out);
	} else if (is(name, n, "DATA")) {
		buf_append(out, p->data->data, p->data->len);
	} else if (is(name, n, "SCRIPT")) {
		for (const char *const *script = p->scripts; *script; script++)
			buf_puts(out, *script);
	}
}

/* Every @ begins or ends the name of a part. */
static void put_text(const struct page_parts *p, const char *text, struct buf *out)
{
	const char *mark;

	while ((mark = strchr(text, '@'))) {
		const char *end = strchr(mark + 1, '@');

		assert(end);
		buf_append(out, text, (size_t)(mark - text));
		put_part(p, mark + 1, (size_t)(end - mark - 1), out);
		text = end + 1;
	}
	buf_puts(out, text);
}

void page_put_frame(const struct page_parts *p, struct buf *out)
{
	put_text(p, frame_html, out);
}

void page_put_data(json_t *data, unsigned digits, struct buf *out)
{
	json_put_dump(out, data, JSON_COMPACT | JSON_REAL_PRECISION(digits), JSON_SHOWN);
	json_decref(data);
	if (out->len == 0)
		out_of_memory();
}

/* ---- pages of answers without runs ---- */

static void put_answer_page(const json_t *answer, const char *title, const char *body,
			    const char *script, struct buf *out)
{
	const char *const scripts[] = {base_js, chart_js, script, NULL};
	json_t *copy = json_copy((json_t *)(uintptr_t)answer);
	struct buf data = {0};
	const struct page_parts parts = {
		.title = title, .body = body, .data = &data, .scripts = scripts};

	json_put(copy, "runs", json_array());
	json_put(copy, "groups", json_array());
	page_put_data(copy, 7, &data);
	page_put_frame(&parts, out);
	buf_release(&data);
}

void plan_page_render(const json_t *plan, struct buf *out)
{
	const char *workload = json_string_value(json_object_get(plan, "workload"));
	AUTO_FREE char *title = xasprintf("Storage for %s", workload ? workload : "accelerators");

	put_answer_page(plan, title, plan_html, plan_js, out);
}

void survey_page_render(const json_t *survey, struct buf *out)
{
	const char *folder = json_string_value(json_object_get(survey, "folder"));
	AUTO_FREE char *title = xasprintf("Survey of %s", folder ? folder : "a storage");

	put_answer_page(survey, title, survey_html, survey_js, out);
}
