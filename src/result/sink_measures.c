/* measures.bin: what the other files are made of. */
#include "result/measures.h"
#include "result/sink.h"

static int render_measures(const struct result *r, const struct run_metrics *m,
			   struct sink_out *out, struct err *e)
{
	struct buf b = {0};
	int rc;

	(void)m;
	measures_put(r, &b);
	rc = sink_put(out, r->folder, MEASURES_FILE, b.data, b.len, e);
	buf_release(&b);
	return rc;
}

extern const struct sink_ops sink_measures;
const struct sink_ops sink_measures = {
	.name = "measures",
	.help = "measures.bin: all that was measured, as it was measured, to be judged again",
	.render = render_measures,
};
