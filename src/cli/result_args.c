#include "cli/result_args.h"

#include <stdio.h>

#include "base/say.h"
#include "readback/audit.h"

/* Results that are named one by one. */
#define TOLD_MAX 20

#define FLAG_ARGS struct result_args

/* clang-format off */
const struct flag flag_json = F_SET("--json", json, "print as JSON");
/* clang-format on */

void result_tell_running(const struct records *r)
{
	for (size_t i = 0; i < r->running.n && i < TOLD_MAX; i++)
		say(stderr, "stoker: %s; it is left out\n", r->running.v[i]);
	if (r->running.n > TOLD_MAX)
		say(stderr, "stoker: %zu more runs have left no result\n", r->running.n - TOLD_MAX);
}

static void tell_each(const struct records *r, const struct audit *a)
{
	size_t told = 0, last = SIZE_MAX;

	for (size_t i = 0; i < r->unread.n && told < TOLD_MAX; i++, told++)
		say(stderr, "stoker: %s\n", r->unread.v[i]);
	for (size_t i = 0; i < a->findings && told < TOLD_MAX; i++) {
		const struct finding *f = &a->finding[i];
		struct buf text = {0};

		if (!f->damage || f->record == last)
			continue;
		finding_sentence(a, f, &text);
		say(stderr, "stoker: %s\n", text.data);
		buf_release(&text);
		last = f->record;
		told++;
	}
}

int result_damage(const struct records *r, const struct audit *a, struct err *e)
{
	size_t results;
	const struct finding *first = audit_damage(a, &results);
	struct buf text = {0};
	int rc = 0;

	if (results + r->unread.n > 1) {
		tell_each(r, a);
		rc = err_set(e, ERR_DATA,
			     "%zu of %zu results are damaged or incomplete%s: restore their files, "
			     "or repeat the runs",
			     results, r->n,
			     r->unread.n ? ", and not all folders could be searched" : "");
	} else if (first) {
		finding_sentence(a, first, &text);
		rc = err_set(e, ERR_DATA, "%s", text.data);
	} else if (r->unread.n) {
		rc = err_set(e, ERR_DATA, "%s", r->unread.v[0]);
	}
	buf_release(&text);
	return rc;
}
