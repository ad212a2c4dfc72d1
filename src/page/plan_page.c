#include "page/plan_page.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/alloc.h"
#include "base/say.h"
#include "page/frame.h"
#include "page/page.h"
#include "result/json_out.h"

/* A page of a plan has no runs, which base.js looks for. */
static void put_data(const void *plan, struct buf *out)
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

static void put_title(const void *plan, struct buf *out)
{
	const char *workload = json_string_value(json_object_get(plan, "workload"));

	buf_puts(out, "Storage for ");
	buf_put_markup(out, workload ? workload : "accelerators");
}

static void put_script(const void *plan, struct buf *out)
{
	(void)plan;
	buf_puts(out, base_js);
	buf_puts(out, chart_js);
	buf_puts(out, plan_js);
}

void plan_page_render(const json_t *plan, struct buf *out)
{
	const struct page_parts parts = {.body = plan_html,
					 .title = put_title,
					 .data = put_data,
					 .script = put_script,
					 .arg = plan};

	page_put_frame(&parts, out);
}
