/* An account as JSON. */
#include <jansson.h>
#include <math.h>

#include "jobtrace/account/account.h"
#include "result/json_out.h"

static json_t *number(double v, enum fact_unit unit)
{
	if (unit == FACT_FLAG)
		return json_boolean(v != 0);
	if (unit != FACT_SHARE && unit != FACT_SECONDS && v == floor(v) && fabs(v) < 9e15)
		return json_integer((json_int_t)v);
	return json_number(v);
}

static json_t *fact_json(const struct fact *v, enum fact_unit unit)
{
	json_t *o = json_object();

	json_put_text(o, "how", fact_how_names[v->how]);
	if (v->how == FACT_UNKNOWN) {
		json_put_text(o, "why", v->rule);
		return o;
	}
	if (unit == FACT_WORD)
		json_put_text(o, "value", v->text);
	else
		json_put(o, "value", number(v->number, unit));
	if (unit != FACT_WORD && v->text)
		json_put_text(o, "remark", v->text);
	if (v->stdev >= 0)
		json_put_real(o, "stdev", v->stdev);
	if (v->at_most)
		json_put_bool(o, "at_most", true);
	if (v->at_least)
		json_put_bool(o, "at_least", true);
	if (v->of) {
		json_put_int(o, "agree", v->agree);
		json_put_int(o, "of", v->of);
	}
	if (v->rule)
		json_put_text(o, "rule", v->rule);
	return o;
}

static void put_signed(json_t *o, const char *key, int64_t v)
{
	if (v >= 0)
		json_put(o, key, json_integer(v));
}

static json_t *group_json(const struct file_group *g)
{
	json_t *o = json_object();

	json_put_text(o, "role", file_role_names[g->role]);
	json_put_text(o, "folder", g->folder);
	json_put_text(o, "extension", g->extension);
	json_put_int(o, "files", g->files);
	if (g->sized)
		put_signed(o, "bytes", g->bytes);
	put_signed(o, "opens", g->opens);
	put_signed(o, "reads", g->reads);
	put_signed(o, "writes", g->writes);
	put_signed(o, "bytes_read", g->bytes_read);
	put_signed(o, "bytes_written", g->bytes_written);
	return o;
}

static json_t *process_json(const struct job *job, const struct job_process *p)
{
	json_t *o = json_object();

	json_put(o, "pid", json_integer(p->pid));
	if (p->parent != JOB_NONE)
		json_put(o, "parent", json_integer(job->process[p->parent].pid));
	if (p->host[0])
		json_put_text(o, "host", p->host);
	if (p->command[0])
		json_put_text(o, "command", p->command);
	put_signed(o, "rank", p->rank);
	if (p->begin_ns != JOB_UNKNOWN)
		json_put_real(o, "begin_s", (double)p->begin_ns / 1e9);
	if (p->end_ns != JOB_UNKNOWN)
		json_put_real(o, "end_s", (double)p->end_ns / 1e9);
	return o;
}

void account_json(const struct account *a, struct buf *out)
{
	const struct job *job = a->job;
	json_t *root = json_object(), *list, *facts = json_object();
	struct buf answer = {0};

	json_put_mark(root);
	json_put_text(root, "source", job->source);
	account_answer(a, &answer);
	json_put_text(root, "answer", answer.data);
	buf_release(&answer);
	if (job->wall_ns != JOB_UNKNOWN)
		json_put_real(root, "wall_s", (double)job->wall_ns / 1e9);
	json_put_int(root, "threads", job->threads);
	list = json_array();
	for (size_t i = 0; i < job->processes; i++)
		json_array_append_new(list, process_json(job, &job->process[i]));
	json_put(root, "processes", list);
	list = json_array();
	for (size_t i = 0; i < a->groups; i++)
		json_array_append_new(list, group_json(&a->group[i]));
	json_put(root, "files", list);
	for (int f = 0; f < ACCOUNT_FACTS; f++)
		if (a->fact[f].how != FACT_ABSENT)
			json_put(facts, fact_rows[f].key,
				 fact_json(&a->fact[f], fact_rows[f].unit));
	json_put(root, "values", facts);
	list = json_array();
	for (size_t i = 0; i < job->notes.n; i++)
		json_array_append_new(list, json_text(job->notes.v[i]));
	json_put(root, "notes", list);
	json_put_dump(out, root, JSON_INDENT(4) | JSON_REAL_PRECISION(12), JSON_EXACT);
	buf_putc(out, '\n');
	json_decref(root);
}
