/* An account for people: what the job did in a paragraph, each value with how it is known, then
 * files and processes. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/say.h"
#include "base/str.h"
#include "jobtrace/account/account.h"

#define COLUMNS 100
#define ANSWER_COLUMNS 80
#define GROUPS_MAX 12 /* printed without -v */
#define PROCESSES_MAX 8
#define FOLDER_MAX 200 /* bytes of a name */
#define NAME_WIDE 33
#define KNOWN_WIDE 20
#define VALUE_AT (2 + NAME_WIDE + 1 + KNOWN_WIDE + 1)
#define RULE_AT 6

static void put_known(const struct fact *v, struct buf *out)
{
	buf_puts(out, fact_how_names[v->how]);
	if (v->of)
		buf_printf(out, ", %llu of %llu", (unsigned long long)v->agree,
			   (unsigned long long)v->of);
}

static void put_fact(const struct account *a, enum account_fact f, bool verbose, struct buf *out)
{
	const struct fact *v = &a->fact[f];
	struct buf value = {0}, known = {0};

	account_put_value(a, f, &value);
	put_known(v, &known);
	buf_printf(out, "  %-*s %-*s ", NAME_WIDE, fact_rows[f].people, KNOWN_WIDE, known.data);
	buf_wrap(out, value.data ? value.data : "", VALUE_AT, VALUE_AT, COLUMNS);
	if (verbose && v->rule) {
		buf_printf(out, "%*s", RULE_AT, "");
		buf_wrap(out, v->rule, RULE_AT, RULE_AT, COLUMNS);
	}
	buf_release(&value);
	buf_release(&known);
}

static void put_facts(const struct account *a, bool verbose, struct buf *out)
{
	bool any = false;

	for (int f = 0; f < ACCOUNT_FACTS; f++) {
		if (!account_has(a, (enum account_fact)f) || (fact_rows[f].detail && !verbose))
			continue;
		if (!any)
			buf_printf(out, "\n  %-*s %-*s value\n", NAME_WIDE, "what", KNOWN_WIDE,
				   "how it is known");
		put_fact(a, (enum account_fact)f, verbose, out);
		any = true;
	}
}

static bool same_reason(const struct fact *a, const struct fact *b)
{
	return a->how == FACT_UNKNOWN && b->how == FACT_UNKNOWN &&
	       strcmp(a->rule ? a->rule : "", b->rule ? b->rule : "") == 0;
}

/* Several values often have one reason: it is printed once. */
static void put_unknown(const struct account *a, struct buf *out)
{
	bool put[ACCOUNT_FACTS] = {false}, any = false;

	for (int f = 0; f < ACCOUNT_FACTS; f++) {
		struct buf names = {0};

		if (a->fact[f].how != FACT_UNKNOWN || put[f])
			continue;
		for (int g = f; g < ACCOUNT_FACTS; g++) {
			if (!same_reason(&a->fact[f], &a->fact[g]))
				continue;
			put[g] = true;
			buf_printf(&names, "%s%s", names.len ? ", " : "", fact_rows[g].people);
		}
		buf_puts(out, any ? "  " : "\nnot identifiable\n  ");
		buf_wrap(out, names.data, 2, 2, COLUMNS);
		if (a->fact[f].rule) {
			buf_printf(out, "%*s", RULE_AT, "");
			buf_wrap(out, a->fact[f].rule, RULE_AT, RULE_AT, COLUMNS);
		}
		buf_release(&names);
		any = true;
	}
}

/* Pipes and shared memory, programs, and files of which only the name was asked, are details. */
static bool is_detail(const struct file_group *g)
{
	return !g->regular || g->role == FILE_CODE ||
	       (g->reads <= 0 && g->writes <= 0 && g->maps <= 0);
}

static void put_groups(const struct account *a, bool verbose, struct buf *out)
{
	size_t shown = 0;
	char bytes[64];

	buf_puts(out, "\nfiles      role        requests   bytes read     written  where\n");
	for (size_t g = 0; g < a->groups && (verbose || shown < GROUPS_MAX); g++) {
		const struct file_group *v = &a->group[g];
		double requests = (v->reads > 0 ? (double)v->reads : 0) +
				  (v->writes > 0 ? (double)v->writes : 0);

		if (!verbose && is_detail(v))
			continue;
		shown++;
		buf_printf(out, "%5zu      %-10s ", v->files, file_role_names[v->role]);
		if (v->reads < 0 && v->writes < 0)
			buf_printf(out, "%9s", "-");
		else
			buf_printf(out, "%9.0f", requests);
		buf_printf(out, "  %11s",
			   v->bytes_read < 0
				   ? "-"
				   : str_bytes((double)v->bytes_read, bytes, sizeof(bytes)));
		buf_printf(out, " %11s  ",
			   v->bytes_written < 0
				   ? "-"
				   : str_bytes((double)v->bytes_written, bytes, sizeof(bytes)));
		if (verbose || strlen(v->folder) <= FOLDER_MAX)
			buf_say(out, "%s", v->folder);
		else
			buf_say(out, "%.*s...", FOLDER_MAX, v->folder);
		buf_say(out, "%s%s%s\n", v->folder[0] && strcmp(v->folder, "/") != 0 ? "/" : "",
			v->extension[0] ? "*." : "*", v->extension);
	}
	if (shown < a->groups)
		buf_printf(out, "%5zu more groups of files (-v lists them)\n", a->groups - shown);
}

static void put_processes(const struct account *a, bool verbose, struct buf *out)
{
	const struct job *job = a->job;
	size_t shown = verbose || job->processes <= PROCESSES_MAX ? job->processes : PROCESSES_MAX;

	buf_printf(out, "\n%zu process%s, %zu thread%s\n", job->processes,
		   job->processes == 1 ? "" : "es", job->threads, job->threads == 1 ? "" : "s");
	for (size_t i = 0; i < shown; i++) {
		const struct job_process *p = &job->process[i];

		buf_printf(out, "  %lld", (long long)p->pid);
		if (p->parent != JOB_NONE)
			buf_printf(out, ", child of %lld", (long long)job->process[p->parent].pid);
		if (p->rank >= 0)
			buf_printf(out, ", rank %lld", (long long)p->rank);
		if (p->begin_ns != JOB_UNKNOWN && p->end_ns != JOB_UNKNOWN)
			buf_printf(out, ", %.2f to %.2f s", (double)p->begin_ns / 1e9,
				   (double)p->end_ns / 1e9);
		if (p->command[0] && p->parent != JOB_NONE &&
		    strcmp(p->command, job->process[p->parent].command) == 0)
			buf_puts(out, ": the same command");
		else if (p->command[0])
			buf_say(out, ": %.100s", p->command);
		buf_putc(out, '\n');
	}
	if (shown < job->processes)
		buf_printf(out, "  %zu more (-v lists them)\n", job->processes - shown);
}

static void put_source(const struct account *a, struct buf *out)
{
	const struct job *job = a->job;
	uint64_t reads = 0, writes = 0;
	double read_bytes = 0, written = 0;
	char text[2][64];

	for (size_t i = 0; i < job->files; i++) {
		const struct job_counts *c = &job->file[i].counts;

		if (job->file[i].kind != JOB_FILE_REGULAR)
			continue;
		reads += c->reads > 0 ? (uint64_t)c->reads : 0;
		writes += c->writes > 0 ? (uint64_t)c->writes : 0;
		read_bytes += c->bytes_read > 0 ? (double)c->bytes_read : 0;
		written += c->bytes_written > 0 ? (double)c->bytes_written : 0;
	}
	buf_say(out, "%s", job->source);
	if (job->wall_ns != JOB_UNKNOWN)
		buf_printf(out, ", %.2f s", (double)job->wall_ns / 1e9);
	buf_printf(out, ": %llu read%s of %s, %llu write%s of %s\n", (unsigned long long)reads,
		   reads == 1 ? "" : "s", str_bytes(read_bytes, text[0], sizeof(text[0])),
		   (unsigned long long)writes, writes == 1 ? "" : "s",
		   str_bytes(written, text[1], sizeof(text[1])));
}

void account_print(const struct account *a, bool verbose, struct buf *out)
{
	struct buf answer = {0};

	account_answer(a, &answer);
	if (answer.len) {
		buf_wrap(out, answer.data, 0, 0, ANSWER_COLUMNS);
		buf_putc(out, '\n');
	}
	buf_release(&answer);
	put_source(a, out);
	put_facts(a, verbose, out);
	put_unknown(a, out);
	put_groups(a, verbose, out);
	put_processes(a, verbose, out);
	for (size_t i = 0; i < a->job->notes.n; i++) {
		if (i == 0)
			buf_putc(out, '\n');
		buf_puts(out, "note: ");
		buf_wrap(out, a->job->notes.v[i], 6, 6, COLUMNS);
	}
}
