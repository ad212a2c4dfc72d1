/* Whether the workload was understood, and used as it is. */
#include <string.h>

#include "judge/verdict.h"

static const double DROPPED_SHARE = 0.01;

static uint64_t train_samples(const struct workload *w)
{
	return (uint64_t)w->dataset.num_files_train * (uint64_t)w->dataset.num_samples_per_file;
}

#define SENTENCE_MAX 160

/* Cut at a blank, and said to be. False when it was cut: no full stop follows. */
static bool say_short(const char *sentence, struct verdict *v)
{
	size_t n = strlen(sentence);

	if (n <= SENTENCE_MAX) {
		verdict_say(v, "%s", sentence);
		return true;
	}
	for (n = SENTENCE_MAX; n > SENTENCE_MAX / 2 && sentence[n] != ' '; n--)
		;
	verdict_say(v, "%.*s ...", (int)n, sentence);
	return false;
}

/* "a; b; c; and 2 more." */
static void say_first(const struct str_list *sentences, struct verdict *v)
{
	bool whole = true;

	for (size_t i = 0; i < sentences->n && i < 3; i++) {
		verdict_say(v, "%s", i ? "; " : "");
		whole = say_short(sentences->v[i], v);
	}
	if (sentences->n > 3)
		verdict_say(v, "; and %zu more.", sentences->n - 3);
	else if (whole)
		verdict_say(v, ".");
}

static void judge_config(const struct result *r, const struct run_metrics *m, struct verdict *v)
{
	const struct str_list *warnings = &r->workload->warnings, *notes = &r->workload->notes;
	uint64_t samples = train_samples(r->workload);
	double share = samples ? (double)r->dropped_samples / (double)samples : 0;

	(void)m;
	/* before the sentence, which is the reason */
	if (share > DROPPED_SHARE)
		verdict_worsen(v, VERDICT_WARN);
	if (r->dropped_samples)
		verdict_say(v,
			    "%llu of %llu samples (%.2g %%) do not fill a whole step and are left "
			    "out of each epoch.",
			    (unsigned long long)r->dropped_samples, (unsigned long long)samples,
			    100 * share);
	if (warnings->n) {
		verdict_worsen(v, VERDICT_WARN);
		verdict_say(v, "%s%zu warning%s: ", v->text[0] ? " " : "", warnings->n,
			    warnings->n == 1 ? "" : "s");
		say_first(warnings, v);
	} else {
		verdict_say(v, "%sEvery key of the workload was recognized.",
			    v->text[0] ? " " : "");
	}
	if (notes->n) {
		verdict_say(v, " Note: ");
		say_first(notes, v);
	}
}

extern const struct verdict_ops verdict_config;
const struct verdict_ops verdict_config = {
	.name = "config",
	.help = "Was every key recognized, and every sample used?",
	.about = ABOUT_WORKLOAD,
	.judge = judge_config,
};
