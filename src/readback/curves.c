/* Curves of capacity. */
#include "readback/curves.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/say.h"
#include "base/map.h"
#include "readback/derivation.h"
#include "readback/result_folder.h"
#include "readback/sides.h"

/* What decides the length of a run, and nothing of its storage. */
static const char *const lengths[] = {"dataset.num_files_train", "train.total_training_steps",
				      "train.epochs"};

static bool is_length(const char *factor)
{
	size_t n = strcspn(factor, "=");

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
		if (strlen(lengths[i]) == n && strncmp(factor, lengths[i], n) == 0)
			return true;
	return false;
}

static char *factors_of(const struct run_group *x)
{
	struct buf text = {0};

	for (size_t i = 0; i < x->factor.n; i++)
		if (!is_length(x->factor.v[i]))
			buf_printf(&text, "%s%s", text.len ? ", " : "", x->factor.v[i]);
	return text.len ? buf_take(&text) : xstrdup("");
}

static bool counts(const struct run_groups *g, size_t i)
{
	const struct run_record *r = &g->record[i];

	if (!r->facts.steady.known || !(r->facts.target > 0))
		return false;
	return g->standing[i] == RUN_COUNTS ||
	       (g->standing[i] == RUN_FAILED && audit_failed_by_length(r));
}

/* ---- a curve ---- */

struct family {
	const char *model;
	char *factors;
	struct knee_run *run;
	size_t runs, emulated;
	double target;
	char *search; /* the folder above theirs; "": they have several */
};

/* The folder above "ACCELERATORS/REPEAT". Heap. */
static char *folder_of_search(const struct run_record *r)
{
	AUTO_FREE char *number = path_dirname(r->folder);

	return path_dirname(number);
}

static void add_run(struct family *f, const struct run_record *r, size_t i)
{
	const struct steady_au *s = &r->facts.steady;

	AUTO_FREE char *search = folder_of_search(r);

	if (f->runs == 0)
		f->search = xstrdup(search);
	else if (f->search && strcmp(f->search, search) != 0)
		f->search[0] = '\0';
	f->run = xrealloc(f->run, (f->runs + 1) * sizeof(*f->run));
	f->run[f->runs++] = (struct knee_run){.accelerators = r->ranks,
					      .au = s->au,
					      .error = s->error,
					      .blocks = s->blocks,
					      .index = i};
	f->target = r->facts.target;
	f->emulated += r->facts.claim_storage && strcmp(r->facts.claim_storage, "emulated") == 0;
}

static size_t numbers(const struct family *f)
{
	size_t n = 0;

	for (size_t i = 0; i < f->runs; i++) {
		size_t k = 0;

		while (f->run[k].accelerators != f->run[i].accelerators)
			k++;
		n += k == i;
	}
	return n;
}

void curve_put_answer(const struct knee *k, struct buf *out)
{
	const char *s = k->accelerators == 1 ? "" : "s";

	/* neither that one meets the target, nor that it misses it */
	if (k->accelerators == 0 && !k->falls_short && (k->at_least || k->high == UINT32_MAX)) {
		buf_puts(out, "not known (95 %: 0 accelerators or more)");
		return;
	}
	if (k->at_least) {
		buf_say(out, "at least %u accelerator%s", k->accelerators, s);
		return;
	}
	if (k->falls_short) {
		buf_say(out, "fewer than %u accelerators", k->point[0].accelerators);
		return;
	}
	if (k->accelerators)
		buf_say(out, "%u accelerator%s", k->accelerators, s);
	else
		buf_puts(out, "no accelerator");
	if (k->high == UINT32_MAX)
		buf_say(out, " (95 %%: at least %u)", k->low);
	else
		buf_say(out, " (95 %%: %u to %u)", k->low, k->high);
}

/* The knee as a search states it that has ended, and whose numbers are all there. */
static bool take_search(const struct family *f, struct curve *c)
{
	json_t *search = f->search && f->search[0]
				 ? result_folder_json(f->search, "capacity.json", NULL)
				 : NULL;
	const json_t *points = json_object_get(search, "points"), *one;
	struct knee *k = &c->knee;
	double high = derive_number(search, "high_95");
	size_t n = json_array_size(points), i;

	if (n == 0 || n > numbers(f) || !json_is_true(json_object_get(search, "complete")) ||
	    !derive_string(search, "answer")) {
		json_decref(search);
		return false;
	}
	c->search = search;
	*k = (struct knee){.point = xcalloc(n, sizeof(*k->point)),
			   .points = n,
			   .target = derive_number(search, "target_percent"),
			   .at_least = json_is_true(json_object_get(search, "at_least")),
			   .accelerators = (uint32_t)json_integer_value(
				   json_object_get(search, "accelerators")),
			   .low = (uint32_t)json_integer_value(json_object_get(search, "low_95")),
			   .high = isfinite(high) ? (uint32_t)high : UINT32_MAX};
	json_array_foreach(points, i, one) k->point[i] =
		(struct knee_point){.accelerators = (uint32_t)derive_number(one, "accelerators"),
				    .runs = (size_t)derive_number(one, "runs"),
				    .au = derive_number(one, "au_percent"),
				    .low = derive_number(one, "low_95"),
				    .high = derive_number(one, "high_95"),
				    .fit = derive_number(one, "fit_percent")};
	c->text = xasprintf("%s at AU %.4g %%", derive_string(search, "answer"), k->target);
	return true;
}

static void make_curve(struct curves *out, struct family *f)
{
	struct buf text = {0};
	struct curve *c;

	if (numbers(f) < 2)
		return;
	out->v = xrealloc(out->v, (out->n + 1) * sizeof(*out->v));
	c = &out->v[out->n++];
	*c = (struct curve){.model = f->model, .factors = f->factors, .emulated = f->emulated};
	f->factors = NULL;
	if (take_search(f, c))
		return;
	knee_find(f->run, f->runs, f->target, &c->knee);
	curve_put_answer(&c->knee, &text);
	buf_say(&text, " at AU %.4g %%", f->target);
	if (!c->knee.bracketed && !c->knee.at_least && !c->knee.falls_short && c->knee.accelerators)
		buf_puts(&text, "; not every number near the knee was measured");
	if (c->knee.reversed)
		buf_puts(&text, "; more accelerators had a higher AU at least once");
	c->text = buf_take(&text);
}

void curves_build(struct curves *out, const struct run_groups *g)
{
	struct texts names = {0};
	struct family *family = NULL;

	*out = (struct curves){0};
	for (size_t i = 0; i < g->groups; i++) {
		const struct run_group *x = &g->group[i];
		char *factors = factors_of(x);
		AUTO_FREE char *key = xasprintf("%s\n%s", x->model, factors);
		size_t known = names.n, at = texts_add(&names, key);

		if (at == known) {
			family = xrealloc(family, names.n * sizeof(*family));
			family[at] = (struct family){.model = x->model, .factors = factors};
		} else {
			free(factors);
		}
		for (size_t k = 0; k < x->records; k++)
			if (counts(g, x->record[k]))
				add_run(&family[at], &g->record[x->record[k]], x->record[k]);
	}
	for (size_t i = 0; i < names.n; i++) {
		make_curve(out, &family[i]);
		free(family[i].factors);
		free(family[i].run);
		free(family[i].search);
	}
	free(family);
	texts_release(&names);
}

void curves_release(struct curves *c)
{
	for (size_t i = 0; i < c->n; i++) {
		free(c->v[i].factors);
		free(c->v[i].text);
		json_decref(c->v[i].search);
		knee_release(&c->v[i].knee);
	}
	free(c->v);
	*c = (struct curves){0};
}
