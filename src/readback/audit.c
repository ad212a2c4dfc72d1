/* The run over all checks; one result at a time. */
#include "readback/audit.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "judge/verdict.h"
#include "readback/audit_checks.h"
#include "readback/derivation.h"
#include "result/json_room.h"

static int by_record(const void *a, const void *b)
{
	const struct finding *x = a, *y = b;

	if (x->record != y->record)
		return x->record < y->record ? -1 : 1;
	if (x->level != y->level)
		return x->level > y->level ? -1 : 1;
	return strcmp(x->check, y->check);
}

/* ---- the run over all checks ---- */

/* What its measures show by today's rules; of a result without them, what the run said of itself.
 */
static void copy_verdicts(struct audit *a, size_t i, const struct part *list)
{
	for (size_t k = 0; k < part_count(list); k++) {
		const struct part *v = part_at(list, k);
		const char *check = figure_text(v, F_VERDICT_CHECK);
		const char *level = figure_text(v, F_VERDICT_LEVEL);
		const char *text = figure_text(v, F_VERDICT_SAID);
		const struct verdict_ops *row;
		struct finding *f;

		if (!check || !level || !text)
			continue;
		if (strcmp(level, "fail") != 0 && strcmp(level, "warn") != 0)
			continue;
		f = audit_add(a, i, check, level[0] == 'f' ? AUDIT_FAIL : AUDIT_WARN);
		row = verdict_find(check);
		f->about_cache = row && row->about_cache;
		finding_say(f, "%s", text);
	}
}

static void report_missing_files(struct audit *a, size_t i)
{
	const struct run_record *r = &a->record[i];

	for (size_t k = 0; k < r->notes.n; k++) {
		/* DLIO's are published in part: what cannot be checked is no fault of theirs */
		struct finding *f = audit_add(a, i, "complete", r->ours ? AUDIT_WARN : AUDIT_NOTE);

		finding_say(f, "%s.", r->notes.v[k]);
		finding_advise(f, "Keep all files of a result folder; checks that need the missing "
				  "files were skipped.");
	}
}

/* Nothing else is said of it: the figures that are left cannot be checked. */
static void report_broken(struct audit *a, size_t i)
{
	struct finding *f = audit_add(a, i, "complete", AUDIT_FAIL);
	struct derive d;

	f->damage = true;
	finding_say(f, "%s.", a->record[i].broken);
	finding_advise(f, "Restore the file as the run left it, or repeat the run.");
	d = derive_begin(a, i, "complete", "everything", "all figures of the result");
	derive_unchecked(&d, "the result cannot be read in full");
}

static void report_damage(struct audit *a, size_t i)
{
	const struct run_record *r = &a->record[i];

	for (size_t k = 0; k < r->damage.n; k++) {
		struct finding *f = audit_add(a, i, "complete", AUDIT_FAIL);

		f->damage = true;
		finding_say(f, "%s.", r->damage.v[k]);
		finding_advise(f, "Restore the file as the run left it, or repeat the run.");
	}
}

/* A check looks at one record of the audit; those that compare look at the others too. */
typedef void (*audit_check)(struct audit *a, size_t i);

static const audit_check checks[] = {
	audit_steady,       audit_window,       audit_rank_spread, audit_possible,
	audit_rate_formula, audit_compute_time, audit_few_epochs,  audit_evaluation,
	audit_page_cache,   audit_memory,       audit_mlperf,      audit_nominal_bytes,
	audit_checkpoints,  audit_complete,     audit_keys,        audit_profiler,
	audit_shuffle,      derive_digests,     derive_origin,     derive_steps,
	derive_summary,     derive_log,
};

static void check_record(struct audit *a, size_t i)
{
	json_t *again;

	if (a->record[i].broken) {
		report_broken(a, i);
		return;
	}
	report_damage(a, i);
	report_missing_files(a, i);
	again = derive_again(a, i);
	if (a->record[i].ours)
		copy_verdicts(
			a, i,
			part(part_whole(again ? again : a->record[i].result), F_RUN_VERDICTS));
	json_decref(again);
	for (size_t k = 0; k < sizeof(checks) / sizeof(checks[0]); k++)
		checks[k](a, i);
}

void audit_close(struct audit *a)
{
	if (a->findings)
		qsort(a->finding, a->findings, sizeof(*a->finding), by_record);
	a->first = xcalloc(a->records + 1, sizeof(*a->first));
	a->first_topic = xcalloc(a->records + 1, sizeof(*a->first_topic));
	for (size_t k = 0; k < a->findings; k++)
		a->first[a->finding[k].record + 1]++;
	for (size_t k = 0; k < a->topics; k++)
		a->first_topic[a->topic[k].record + 1]++;
	for (size_t i = 0; i < a->records; i++) {
		a->first[i + 1] += a->first[i];
		a->first_topic[i + 1] += a->first_topic[i];
	}
}

/* The checks of results that belong together; then the list is complete. */
static void compare_and_sort(struct audit *a)
{
	audit_datasets(a);
	audit_copies(a);
	audit_close(a);
}

void audit_run(struct audit *a, const struct run_record *record, size_t n)
{
	*a = (struct audit){.record = record, .records = n, .quick = n > AUDIT_PREDICTED_MOST};
	for (size_t i = 0; i < n; i++)
		check_record(a, i);
	compare_and_sort(a);
}

void audit_alone(struct run_record *r)
{
	struct audit a = {.record = r, .records = 1, .quick = true};

	check_record(&a, 0);
	compare_and_sort(&a);
	for (size_t i = 0; i < a.findings; i++) {
		const struct finding *f = &a.finding[i];
		struct buf text = {0};

		if (f->damage || strcmp(f->check, "digest") == 0) {
			finding_sentence(&a, f, &text);
			buf_putc(&text, '.');
			str_list_add(f->damage ? &r->alone.damage : &r->alone.changed,
				     buf_take(&text));
		}
		if (f->level == AUDIT_FAIL)
			str_list_add(&r->alone.failed, xstrdup(f->check));
	}
	audit_release(&a);
}

/* ---- one result at a time ---- */

/* Each result has an audit of its own, until it is its turn. */
struct reading {
	struct audit *all, *one;
	const struct record_visit *also;
	bool quick;
};

static void begin_reading(void *arg, size_t n)
{
	struct reading *d = arg;

	d->one = xcalloc(n + 1, sizeof(*d->one));
	d->all->records = n;
	d->quick = d->quick || n > AUDIT_PREDICTED_MOST;
	if (d->also && d->also->begin)
		d->also->begin(d->also->arg, n);
}

static void look(void *arg, size_t i, struct run_record *r)
{
	struct reading *d = arg;
	struct audit *a = &d->one[i];

	*a = (struct audit){.record = r, .records = 1, .quick = d->quick};
	json_room_use(true);
	check_record(a, 0);
	json_room_use(false);
	if (d->also && d->also->look)
		d->also->look(d->also->arg, i, r);
}

static void take(void *arg, size_t i, struct run_record *r)
{
	struct reading *d = arg;
	struct audit *one = &d->one[i];

	audit_append(d->all, one, i);
	if (d->also && d->also->take)
		d->also->take(d->also->arg, i, r);
}

int audit_read(struct audit *a, struct records *out, const char *const *path, size_t n,
	       bool predict, const struct record_visit *also, struct err *e)
{
	struct reading d = {.all = a, .also = also, .quick = !predict};
	const struct record_visit v = {.arg = &d,
				       .texts = also ? also->texts : NULL,
				       .begin = begin_reading,
				       .look = look,
				       .take = take};
	int rc;

	*a = (struct audit){0};
	rc = records_visit(out, path, n, &v, e);
	free(d.one);
	a->record = out->v;
	if (rc == 0)
		compare_and_sort(a);
	return rc;
}

bool audit_failed_by_length(const struct run_record *r)
{
	for (size_t i = 0; i < r->alone.failed.n; i++) {
		const struct verdict_ops *row = verdict_find(r->alone.failed.v[i]);

		if (!row || row->about != ABOUT_LENGTH)
			return false;
	}
	return r->alone.failed.n > 0;
}
