/* measures.bin: what the other files are made of; and of the workload what only a file says. */
#include "base/file.h"
#include "result/measures.h"
#include "result/sink.h"
#include "workload/recorded_file.h"

/* Without the copy the run is judged again only where the original still is. */
static int render_recorded(const struct result *r, struct sink_out *out, struct err *e)
{
	struct err ignored = {0};
	struct buf b = {0};
	int rc = 0;

	if (r->workload->recorded &&
	    file_read(r->workload->dataset.recorded_file, RECORDED_COPY_MOST, &b, &ignored) == 0)
		rc = sink_put(out, r->folder, RECORDED_COPY, b.data, b.len, e);
	buf_release(&b);
	return rc;
}

static int render_measures(const struct result *r, const struct run_metrics *m,
			   struct sink_out *out, struct err *e)
{
	struct buf b = {0};
	int rc;

	(void)m;
	measures_put(r, &b);
	rc = sink_put(out, r->folder, MEASURES_FILE, b.data, b.len, e);
	buf_release(&b);
	return rc == 0 ? render_recorded(r, out, e) : rc;
}

extern const struct sink_ops sink_measures;
const struct sink_ops sink_measures = {
	.name = "measures",
	.help = "measures.bin: all that was measured, as it was measured, to be judged again; of "
		"a recorded job also job.recorded, a copy of dataset.recorded_file",
	.render = render_measures,
};
