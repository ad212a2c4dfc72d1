#include "page/job_page.h"

#include <jansson.h>

#include "base/alloc.h"
#include "base/say.h"
#include "page/job_curves.h"
#include "page/job_lanes.h"
#include "page/page.h"
#include "result/json_out.h"

static json_t *value_json(const struct profile *a, enum profile_key f)
{
	const struct profile_value *v = &a->value[f];
	json_t *o = json_object();
	struct buf text = {0};

	profile_put_value(a, f, &text);
	json_put_text(o, "key", profile_rows[f].key);
	json_put_text(o, "name", profile_rows[f].people);
	json_put_text(o, "value", text.data ? text.data : "");
	json_put_text(o, "how", profile_how_names[v->how]);
	if (v->rule.reason) {
		buf_reset(&text);
		words_put(&text, &v->rule, WORDS_SHORT);
		json_put_text(o, "rule", text.data);
	}
	if (v->of) {
		json_put_int(o, "agree", v->agree);
		json_put_int(o, "of", v->of);
	}
	buf_release(&text);
	return o;
}

/* Commands and folders may be as long as the system allows. */
static void shorten(json_t *row, const char *key)
{
	const json_t *text = json_object_get(row, key);
	struct buf cut = {0};

	if (json_string_length(text) <= JOB_PAGE_TEXT)
		return;
	buf_say_middle(&cut, json_string_value(text), JOB_PAGE_TEXT);
	json_put_text(row, key, cut.data);
	buf_release(&cut);
}

/* Lists that grow with the job are cut, and say so. */
static json_t *first_rows(const json_t *list, json_t *data, const char *left_out)
{
	json_t *out = json_array();
	size_t n = json_array_size(list);

	for (size_t i = 0; i < n && i < JOB_PAGE_ROWS; i++) {
		json_t *row = json_array_get(list, i);

		shorten(row, "command");
		shorten(row, "folder");
		json_array_append(out, row);
	}
	if (n > JOB_PAGE_ROWS)
		json_put_int(data, left_out, n - JOB_PAGE_ROWS);
	return out;
}

static json_t *job_data(const struct profile *a)
{
	json_t *data = json_object(), *values = json_array(), *said;
	struct buf text = {0};

	json_put(data, "runs", json_array());
	json_put(data, "groups", json_array());
	profile_json(a, &text);
	said = json_loads(text.data, 0, NULL);
	buf_release(&text);
	if (!said)
		out_of_memory();
	json_put(data, "answer", json_incref(json_object_get(said, "answer")));
	json_put(data, "source", json_incref(json_object_get(said, "source")));
	json_put(data, "notes", json_incref(json_object_get(said, "notes")));
	if (json_object_get(said, "wall_s"))
		json_put(data, "wall", json_incref(json_object_get(said, "wall_s")));
	json_put(data, "files", first_rows(json_object_get(said, "files"), data, "files_left_out"));
	json_put(data, "processes",
		 first_rows(json_object_get(said, "processes"), data, "processes_left_out"));
	if (json_object_get(said, "servers"))
		json_put(data, "servers", json_incref(json_object_get(said, "servers")));
	json_put_int(data, "threads", a->job->threads);
	json_decref(said);
	for (int f = 0; f < PROFILE_VALUES; f++)
		if (a->value[f].how != HOW_ABSENT)
			json_array_append_new(values, value_json(a, (enum profile_key)f));
	json_put(data, "values", values);
	json_put(data, "lanes", job_lanes(a));
	json_put(data, "bytes", job_bytes(a));
	json_put(data, "sizes", job_sizes(a));
	if (a->job->start_s != JOB_UNKNOWN)
		json_put(data, "start", json_integer(a->job->start_s));
	return data;
}

void job_page_render(const struct profile *a, struct buf *out)
{
	static const char *const scripts[] = {base_js, chart_js, job_js, NULL};
	struct buf data = {0};
	const struct page_parts parts = {.title = "What the job did",
					 .body = job_html,
					 .style = job_css,
					 .data = &data,
					 .scripts = scripts};

	page_put_data(job_data(a), 9, &data);
	page_put_frame(&parts, out);
	buf_release(&data);
}
