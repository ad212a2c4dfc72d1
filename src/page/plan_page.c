#include "page/plan_page.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/alloc.h"
#include "base/say.h"
#include "page/page.h"
#include "result/json_out.h"

/* A page of a plan has no runs, which base.js looks for. */
static void put_data(struct buf *out, const json_t *plan)
{
	json_t *data = json_copy((json_t *)(uintptr_t)plan);
	size_t had = out->len;

	json_put(data, "runs", json_array());
	json_put(data, "groups", json_array());
	json_put_dump(out, data, JSON_COMPACT | JSON_REAL_PRECISION(7), JSON_SHOWN);
	json_decref(data);
	if (out->len == had)
		out_of_memory();
}

static void put_part(struct buf *out, const char *name, size_t n, const json_t *plan)
{
	const char *workload = json_string_value(json_object_get(plan, "workload"));

	if (n == 5 && memcmp(name, "TITLE", n) == 0) {
		buf_puts(out, "Storage for ");
		buf_put_markup(out, workload ? workload : "accelerators");
	} else if (n == 5 && memcmp(name, "STYLE", n) == 0) {
		buf_puts(out, page_css);
	} else if (n == 7 && memcmp(name, "PALETTE", n) == 0) {
		page_put_palette(out);
	} else if (n == 4 && memcmp(name, "DATA", n) == 0) {
		put_data(out, plan);
	} else if (n == 6 && memcmp(name, "SCRIPT", n) == 0) {
		buf_puts(out, base_js);
		buf_puts(out, chart_js);
		buf_puts(out, plan_js);
	}
}

void plan_page_render(const json_t *plan, struct buf *out)
{
	const char *at = plan_html, *mark;

	/* every @ of plan.html begins or ends the name of a part */
	while ((mark = strchr(at, '@'))) {
		const char *end = strchr(mark + 1, '@');

		assert(end);
		buf_append(out, at, (size_t)(mark - at));
		put_part(out, mark + 1, (size_t)(end - mark - 1), plan);
		at = end + 1;
	}
	buf_puts(out, at);
}
