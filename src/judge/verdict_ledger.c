/* Whether the counts of bytes agree, from the samples down to the storage. */
#include <ctype.h>
#include <stdio.h>

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
		verdict_found(v, VERDICT_PASS, FACT(LEDGER_AGREES, explained > 0));
		return;
	}
	for (int k = 0; k < LEDGER_LINES; k++) {
		const struct ledger_line *line = &l->line[k];
		struct fact f;
		char title[64], why[256];

		if (!line->known || line->state != LEDGER_FLAGGED)
			continue;
		snprintf(title, sizeof(title), "%s", ledger_titles[k]);
		title[0] = (char)toupper((unsigned char)title[0]);
		f = FACT(LEDGER_DIFFERS, line->bytes, l->line[line->against].bytes);
		words_of(&line->why, WORDS_SHORT, why, sizeof(why));
		verdict_found(v, VERDICT_WARN, fact_with(fact_with(f, 0, title), 1, why));
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
