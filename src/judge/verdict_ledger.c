/* Whether the counts of bytes agree, from the samples down to the storage. */
#include <ctype.h>
#include <string.h>

#include "base/str.h"
#include "judge/verdict.h"

static void judge_ledger(const struct result *r, const struct run_metrics *m, struct verdict *v)
{
	const struct ledger *l = &r->judged.ledger;
	uint32_t compared = 0, flagged = 0, explained = 0;

	(void)m;
	for (int k = 0; k < LEDGER_LINES; k++) {
		const struct ledger_line *line = &l->line[k];

		compared += line->known && line->against >= 0;
		flagged += line->known && line->state == LEDGER_FLAGGED;
		explained += line->known && line->state == LEDGER_EXPLAINED;
	}
	if (compared == 0)
		return;
	if (flagged == 0) {
		verdict_say(v,
			    "Every byte count, from the samples down to the storage, agrees with "
			    "the one before it within 1 %% or 64 KiB%s.",
			    explained ? ", or the difference is explained" : "");
		return;
	}
	v->level = VERDICT_WARN;
	for (int k = 0; k < LEDGER_LINES; k++) {
		const struct ledger_line *line = &l->line[k];
		char a[32], b[32];

		size_t at = strlen(v->text);

		if (!line->known || line->state != LEDGER_FLAGGED)
			continue;
		at += at > 0;
		verdict_say(v, "%s%s: %s, but %s: %s (%s).", v->text[0] ? " " : "",
			    ledger_titles[k], str_bytes(line->bytes, a, sizeof(a)),
			    ledger_titles[line->against],
			    str_bytes(l->line[line->against].bytes, b, sizeof(b)), line->why);
		if (at < sizeof(v->text))
			v->text[at] = (char)toupper((unsigned char)v->text[at]);
	}
}

extern const struct verdict_ops verdict_ledger;
const struct verdict_ops verdict_ledger = {
	.name = "ledger",
	.help = "Do all byte counts agree, from the samples down to the storage?",
	.about = ABOUT_ORIGIN,
	.needs = VERDICT_OF_TRAINING | VERDICT_OF_EPOCHS,
	.judge = judge_ledger,
};
