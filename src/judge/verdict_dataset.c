/* Whether the files are those of the workload. */
#include <ctype.h>

#include "judge/verdict.h"

static void judge_dataset(const struct result *r, const struct run_metrics *m, struct verdict *v)
{
	(void)m;

	if (!r->presence.note[0]) {
		v->level = VERDICT_UNKNOWN;
		verdict_say(v, "The dataset was not checked against the workload.");
		return;
	}
	verdict_say(v, "%c%s", toupper((unsigned char)r->presence.note[0]), r->presence.note + 1);
	verdict_close(v);
	if (r->presence.how == PRESENCE_SIZES && r->presence.sizes_checked == 0)
		v->level = VERDICT_WARN;
}

extern const struct verdict_ops verdict_dataset;
const struct verdict_ops verdict_dataset = {
	.name = "dataset",
	.help = "Are the files on the store those of the workload?",
	.needs = VERDICT_OF_TRAINING,
	.judge = judge_dataset,
};
