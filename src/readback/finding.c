/* The list of findings: summed up and printed. */
#include "readback/finding.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "result/json_out.h"

#define COLUMNS 100
#define INDENT 10

static const char *level_name(enum audit_level level)
{
	static const char *const names[] = {"note", "warning", "FAIL"};

	assert(level <= AUDIT_FAIL);
	return names[level];
}

void audit_release(struct audit *a)
{
	free(a->finding);
	*a = (struct audit){0};
}

int audit_worst(const struct audit *a)
{
	int worst = -1;

	for (size_t i = 0; i < a->findings; i++)
		if ((int)a->finding[i].level > worst)
			worst = (int)a->finding[i].level;
	return worst;
}

/* ---- renderings ---- */

static const char *nothing(const struct run_record *r)
{
	return r->trained ? "no findings" : "no training was run, so there is nothing to check";
}

void audit_text(const struct audit *a, bool color, struct buf *out)
{
	static const char *const colors[] = {"\033[36m", "\033[33m", "\033[31;1m"};
	size_t at = 0;

	for (size_t i = 0; i < a->records; i++) {
		const struct run_record *r = &a->record[i];
		size_t first = at;

		buf_printf(out, "%s%s  (%s, %u rank%s%s)\n", i ? "\n" : "", r->folder,
			   r->ours ? "Stoker" : "DLIO", r->ranks, r->ranks == 1 ? "" : "s",
			   r->trained ? "" : ", no training");
		for (; at < a->findings && a->finding[at].record == i; at++) {
			const struct finding *f = &a->finding[at];

			buf_printf(out, "  %s%-8s%s%s:", color ? colors[f->level] : "",
				   level_name(f->level), color ? "\033[0m" : "", f->check);
			buf_wrap(out, f->text, INDENT + strlen(f->check) + 1, INDENT, COLUMNS);
			if (!f->advice[0])
				continue;
			buf_printf(out, "%*s-> ", INDENT, "");
			buf_wrap(out, f->advice, INDENT + 3, INDENT + 3, COLUMNS);
		}
		if (at == first)
			buf_printf(out, "  %s\n", nothing(r));
	}
}

json_t *finding_json(const struct finding *f)
{
	json_t *o = json_object();

	json_put_text(o, "check", f->check);
	json_put_text(o, "level", f->level == AUDIT_FAIL ? "fail" : level_name(f->level));
	json_put_text(o, "text", f->text);
	json_put_text(o, "advice", f->advice);
	return o;
}

json_t *audit_json(const struct audit *a)
{
	json_t *root = json_object(), *results = json_array();
	size_t at = 0;

	for (size_t i = 0; i < a->records; i++) {
		const struct run_record *r = &a->record[i];
		json_t *one = json_object(), *findings = json_array();

		json_put_text(one, "folder", r->folder);
		json_put_text(one, "name", r->name);
		json_put_text(one, "tool", r->ours ? "stoker" : "dlio");
		json_put_bool(one, "trained", r->trained);
		for (; at < a->findings && a->finding[at].record == i; at++)
			json_array_append_new(findings, finding_json(&a->finding[at]));
		json_put(one, "findings", findings);
		json_array_append_new(results, one);
	}
	json_put(root, "results", results);
	return root;
}
