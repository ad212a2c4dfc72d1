/* result.json: the configuration, measures and judgement of a run, for programs. */
#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "result/fields.h"
#include "result/json_out.h"
#include "result/seal.h"
#include "result/sink.h"

static int write_sealed(json_t *o, const char *folder, struct sink_out *out, struct err *e)
{
	AUTO_FREE char *text = json_short_lines(o, field_key(F_CONFIGURED_PROFILE));

	json_decref(o);
	if (!text)
		return err_set(e, -ENOMEM, "there is no memory to write '%s/result.json'", folder);
	seal_text(&text, SEAL_SELF);
	return sink_put(out, folder, "result.json", text, strlen(text), e);
}

static int render_json(const struct result *r, const struct run_metrics *m, struct sink_out *out,
		       struct err *e)
{
	json_t *o = result_tree(r, m), *seal = sink_seal(out);

	json_put_text(seal, SEAL_SELF, "");
	json_put(o, field_key(F_RUN_INTEGRITY), seal);
	return write_sealed(o, r->folder, out, e);
}

extern const struct sink_ops sink_json;
const struct sink_ops sink_json = {
	.name = "json",
	.help = "result.json: configuration, environment, every measure with its unit, verdicts",
	.render = render_json,
	.seals = true,
};
