/* A profile for people and for programs. */
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "base/say.h"
#include "base/str.h"
#include "result/json_out.h"
#include "trace/profile/job_advice.h"
#include "trace/profile/profile.h"

static void put_count(struct buf *out, double v)
{
	buf_puts(out, NUMBER(v, 4));
}

static void put_number(struct buf *out, enum profile_unit unit, double v)
{
	char text[64];

	switch (unit) {
	case UNIT_BYTES:
		buf_puts(out, str_bytes(v, text, sizeof(text)));
		break;
	case UNIT_SECONDS:
		if (v < 10)
			buf_printf(out, "%s ms", NUMBER(v * 1e3, 3));
		else
			buf_puts(out, str_seconds(v, text, sizeof(text)));
		break;
	case UNIT_SHARE:
		buf_printf(out, "%.0f %%", v * 100);
		break;
	case UNIT_FLAG:
		buf_puts(out, v != 0 ? "yes" : "no");
		break;
	case UNIT_COUNT:
		put_count(out, v);
		break;
	case UNIT_WORD:
		break;
	}
}

void profile_put_value(const struct profile *a, enum profile_key f, struct buf *out)
{
	const struct profile_value *v = &a->value[f];
	const struct profile_row *row = &profile_rows[f];

	if (v->how == HOW_UNKNOWN) {
		buf_puts(out, "not identifiable");
		return;
	}
	if (v->at_least)
		buf_puts(out, "at least ");
	if (v->at_most)
		buf_puts(out, "at most ");
	put_number(out, row->unit, v->number);
	if (v->stdev > 0) {
		buf_puts(out, " (stdev ");
		put_number(out, row->unit, v->stdev);
		buf_putc(out, ')');
	}
	if (v->text) {
		if (row->unit != UNIT_WORD)
			buf_puts(out, ", ");
		buf_say(out, "%s", v->text);
	}
}

/* ---- in a paragraph ---- */

/* Only what the log shows: a part that it does not show is left out here, and has its reason in the
 * table. */

static double number_of(const struct profile *a, enum profile_key f)
{
	return profile_has(a, f) && !a->value[f].at_least && !a->value[f].at_most
		       ? a->value[f].number
		       : NAN;
}

/* "64 npz files in /data". */
static void put_dataset(const struct profile *a, const struct file_group *main, struct buf *out)
{
	double files = number_of(a, PROFILE_FILES); /* without those of evaluation */
	char text[64];

	if (!(files >= 1))
		files = (double)main->files;
	buf_say(out, "%.0f %s %s%s in %s", files, main->extension[0] ? main->extension : "data",
		main->objects ? "object" : "file", files == 1 ? "" : "s",
		main->folder[0] ? main->folder : "its folder");
	if (profile_has(a, PROFILE_DATA_BYTES) && !a->value[PROFILE_DATA_BYTES].at_least)
		buf_printf(out, " (%s)",
			   str_bytes(a->value[PROFILE_DATA_BYTES].number, text, sizeof(text)));
}

static void put_training(const struct profile *a, const struct file_group *main, struct buf *out)
{
	double epochs = number_of(a, PROFILE_EPOCHS), steps = number_of(a, PROFILE_STEPS);
	double batch = number_of(a, PROFILE_BATCH), ranks = number_of(a, PROFILE_RANKS);

	buf_puts(out, "The job trained");
	if (a->trainings > 1)
		buf_printf(out, " %zu times, one after the other, each", a->trainings);
	if (epochs >= 1)
		buf_printf(out, " for %.0f epoch%s", epochs, epochs > 1 ? "s" : "");
	if (epochs >= 1 && steps >= epochs && fmod(steps, epochs) == 0)
		buf_printf(out, " of %.0f step%s", steps / epochs, steps > epochs ? "s" : "");
	if (ranks > 1)
		buf_printf(out, " on %.0f ranks", ranks);
	if (batch >= 1)
		buf_printf(out, " with batches of %.0f sample%s", batch, batch > 1 ? "s" : "");
	buf_puts(out, " from ");
	put_dataset(a, main, out);
	buf_puts(out, ".");
}

static void put_loader(const struct profile *a, struct buf *out)
{
	double workers = number_of(a, PROFILE_WORKERS);

	if (workers >= 1)
		buf_printf(out, " %.0f worker%s%s read%s the samples.", workers,
			   workers > 1 ? "s" : "",
			   number_of(a, PROFILE_RANKS) > 1 ? " of each rank" : "",
			   workers > 1 ? "" : "s");
	else if (workers >= 0)
		buf_puts(out, " The process that trains reads the samples itself.");
}

static void put_compute(const struct profile *a, struct buf *out)
{
	if (!profile_has(a, PROFILE_COMPUTE))
		return;
	buf_puts(out, " A step computes for ");
	profile_put_value(a, PROFILE_COMPUTE, out);
	buf_puts(out, ".");
}

static void put_evaluations(const struct profile *a, struct buf *out)
{
	double n = number_of(a, PROFILE_EVALUATIONS);

	if (n >= 1)
		buf_printf(out, " It evaluated %.0f time%s.", n, n > 1 ? "s" : "");
}

static void put_checkpoints(const struct profile *a, struct buf *out)
{
	double n = number_of(a, PROFILE_CHECKPOINTS);

	if (!(n >= 1))
		return;
	buf_printf(out, " It wrote %.0f checkpoint%s", n, n > 1 ? "s" : "");
	if (profile_has(a, PROFILE_CHECKPOINT_BYTES)) {
		buf_puts(out, " of ");
		profile_put_value(a, PROFILE_CHECKPOINT_BYTES, out);
	}
	buf_puts(out, ".");
}

/* ---- of a job that shows no training ---- */

/* Requests of one kind to the files of the job, without those of programs. */
struct activity {
	uint64_t files;
	double requests, bytes, in_sequence, of; /* `of`: the requests of which that is known */
	double by_size[JOB_SIZES];
	double most; /* bytes of `group` */
	const struct file_group *group;
};

static void count_activity(const struct profile *a, bool writes, struct activity *x)
{
	*x = (struct activity){0};
	for (size_t i = 0; i < a->job->files; i++) {
		const struct job_counts *c = &a->job->file[i].counts;
		int64_t requests = writes ? c->writes : c->reads;

		if (!job_has_data(&a->job->file[i]) || a->role[i] == FILE_CODE ||
		    requests <= 0)
			continue;
		x->files++;
		x->requests += (double)requests;
		x->bytes += (double)(writes ? c->bytes_written : c->bytes_read);
		for (int k = 0; k < JOB_SIZES; k++)
			x->by_size[k] += (double)(writes ? c->write_size[k] : c->read_size[k]);
		if (!writes && c->sequential_reads >= 0) {
			x->in_sequence += (double)c->sequential_reads;
			/* the first of a file follows none */
			x->of += (double)(requests - 1);
		}
	}
	for (size_t g = 0; g < a->groups; g++) {
		const struct file_group *v = &a->group[g];
		double bytes = (double)(writes ? v->bytes_written : v->bytes_read);

		if (v->regular && v->role != FILE_CODE && bytes > x->most) {
			x->most = bytes;
			x->group = v;
		}
	}
}

/* "1,024 requests, most of 64 KiB to 1 MiB". */
static void put_requests(const struct activity *x, struct buf *out)
{
	static const char *const sizes[JOB_SIZES] = {
		"up to 100 B",      "100 B to 1 KiB", "1 to 10 KiB", "10 to 100 KiB",
		"100 KiB to 1 MiB", "1 to 4 MiB",     "4 to 10 MiB", "10 to 100 MiB",
		"100 MiB to 1 GiB", "more than 1 GiB"};
	int most = 0;

	buf_printf(out, "%.0f request%s", x->requests, x->requests > 1 ? "s" : "");
	for (int k = 1; k < JOB_SIZES; k++)
		if (x->by_size[k] > x->by_size[most])
			most = k;
	if (x->by_size[most] > 0)
		buf_printf(out, ", %s of %s", x->by_size[most] < x->requests ? "most" : "all",
			   sizes[most]);
}

static void put_activity(const struct profile *a, bool writes, struct buf *out)
{
	struct activity x;
	char text[64];

	count_activity(a, writes, &x);
	if (x.requests <= 0) {
		buf_printf(out, "%s%s%s", writes ? " and wrote nothing" : "The job read no data",
			   a->servers.n && !writes ? " of files" : "",
			   a->job->lacks ? " that the log has" : "");
		return;
	}
	buf_printf(out, "%s %s%s %s %llu %s%s in ", writes ? " and wrote" : "The job read",
		   a->job->lacks ? "at least " : "", str_bytes(x.bytes, text, sizeof(text)),
		   writes ? "to" : "from", (unsigned long long)x.files,
		   x.group && x.group->objects ? "object" : "file", x.files > 1 ? "s" : "");
	put_requests(&x, out);
	if (x.of > 0)
		buf_printf(out, ", %.0f %% behind the one before", 100 * x.in_sequence / x.of);
	if (x.group && x.group->folder[0])
		buf_say(out, " (%s in %s)", x.files > 1 ? "most" : "it is", x.group->folder);
}

static void put_no_training(const struct profile *a, struct buf *out)
{
	struct buf why = {0};

	put_activity(a, false, out);
	put_activity(a, true, out);
	words_put(&why, &a->no_training, WORDS_SHORT);
	buf_say(out, ". A training was not seen: %s.", why.data);
	buf_release(&why);
}

/* What the job did, in a paragraph. */
static void profile_answer(const struct profile *a, struct buf *out)
{
	const struct file_group *main = profile_main_group(a);

	job_servers_answer(&a->servers, out);
	if (!a->trains) {
		put_no_training(a, out);
		return;
	}
	if (main)
		put_training(a, main, out);
	else
		buf_puts(out, "The job trained; the log shows no dataset that it read.");
	put_loader(a, out);
	put_compute(a, out);
	if (profile_has(a, PROFILE_LIMIT))
		buf_say(out, " It was limited by %s.", a->value[PROFILE_LIMIT].text);
	put_evaluations(a, out);
	put_checkpoints(a, out);
}

/* ---- as text ---- */

/* What the job did in a paragraph, each value with how it is known, then files and processes. */

#define COLUMNS 100
#define ANSWER_COLUMNS 80
#define GROUPS_MAX 12 /* printed without -v */
#define PROCESSES_MAX 8
#define FOLDER_MAX 200 /* bytes of a name */
#define NAME_WIDE 33
#define KNOWN_WIDE 20
#define VALUE_AT (2 + NAME_WIDE + 1 + KNOWN_WIDE + 1)
#define RULE_AT 6

static void put_known(const struct profile_value *v, struct buf *out)
{
	buf_puts(out, profile_how_names[v->how]);
	if (v->of)
		buf_printf(out, ", %llu of %llu", (unsigned long long)v->agree,
			   (unsigned long long)v->of);
}

static void put_rule(const struct profile_value *v, struct buf *out)
{
	struct buf text = {0};

	if (v->rule.reason == REASON_NONE)
		return;
	words_put(&text, &v->rule, WORDS_SHORT);
	buf_printf(out, "%*s", RULE_AT, "");
	buf_wrap(out, text.data, RULE_AT, RULE_AT, COLUMNS);
	buf_release(&text);
}

static void put_fact(const struct profile *a, enum profile_key f, bool verbose, struct buf *out)
{
	const struct profile_value *v = &a->value[f];
	struct buf value = {0}, known = {0};

	profile_put_value(a, f, &value);
	put_known(v, &known);
	buf_printf(out, "  %-*s %-*s ", NAME_WIDE, profile_rows[f].people, KNOWN_WIDE, known.data);
	buf_wrap(out, value.data ? value.data : "", VALUE_AT, VALUE_AT, COLUMNS);
	if (verbose)
		put_rule(v, out);
	buf_release(&value);
	buf_release(&known);
}

static void put_facts(const struct profile *a, bool verbose, struct buf *out)
{
	bool any = false;

	for (int f = 0; f < PROFILE_VALUES; f++) {
		if (!profile_has(a, (enum profile_key)f) || (profile_rows[f].detail && !verbose))
			continue;
		if (!any)
			buf_printf(out, "\n  %-*s %-*s value\n", NAME_WIDE, "what", KNOWN_WIDE,
				   "how it is known");
		put_fact(a, (enum profile_key)f, verbose, out);
		any = true;
	}
}

static bool same_reason(const struct profile_value *a, const struct profile_value *b)
{
	const double *x = a->rule.figure, *y = b->rule.figure;

	return a->how == HOW_UNKNOWN && b->how == HOW_UNKNOWN && a->rule.reason == b->rule.reason &&
	       memcmp(x, y, sizeof(a->rule.figure)) == 0;
}

/* Several values often have one reason: it is printed once. */
static void put_unknown(const struct profile *a, struct buf *out)
{
	bool put[PROFILE_VALUES] = {false}, any = false;

	for (int f = 0; f < PROFILE_VALUES; f++) {
		struct buf names = {0};

		if (a->value[f].how != HOW_UNKNOWN || put[f])
			continue;
		for (int g = f; g < PROFILE_VALUES; g++) {
			if (!same_reason(&a->value[f], &a->value[g]))
				continue;
			put[g] = true;
			buf_printf(&names, "%s%s", names.len ? ", " : "", profile_rows[g].people);
		}
		buf_puts(out, any ? "  " : "\nnot identifiable\n  ");
		buf_wrap(out, names.data, 2, 2, COLUMNS);
		put_rule(&a->value[f], out);
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

static void put_groups(const struct profile *a, bool verbose, struct buf *out)
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
		buf_printf(out, "%5zu      %-10s ", v->files, profile_role_name(a, v->role));
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
		if (verbose)
			buf_say(out, "%s", v->folder);
		else
			buf_say_middle(out, v->folder, FOLDER_MAX);
		buf_say(out, "%s%s%s\n", v->folder[0] && strcmp(v->folder, "/") != 0 ? "/" : "",
			v->extension[0] ? "*." : "*", v->extension);
	}
	if (shown < a->groups)
		buf_printf(out, "%5zu more groups of files (-v lists them)\n", a->groups - shown);
}

static void put_processes(const struct profile *a, bool verbose, struct buf *out)
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

static void put_source(const struct profile *a, struct buf *out)
{
	const struct job *job = a->job;
	uint64_t reads = 0, writes = 0;
	double read_bytes = 0, written = 0;
	char text[2][64];

	for (size_t i = 0; i < job->files; i++) {
		const struct job_counts *c = &job->file[i].counts;

		if (!job_has_data(&job->file[i]))
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

void profile_print(const struct profile *a, bool verbose, struct buf *out)
{
	struct buf answer = {0};

	profile_answer(a, &answer);
	if (answer.len) {
		buf_wrap(out, answer.data, 0, 0, ANSWER_COLUMNS);
		buf_putc(out, '\n');
	}
	buf_release(&answer);
	put_source(a, out);
	put_facts(a, verbose, out);
	put_unknown(a, out);
	job_servers_print(&a->servers, out);
	put_groups(a, verbose, out);
	put_processes(a, verbose, out);
	for (size_t i = 0; i < a->job->notes.n; i++) {
		if (i == 0)
			buf_putc(out, '\n');
		buf_puts(out, "note: ");
		buf_wrap(out, a->job->notes.v[i], 6, 6, COLUMNS);
	}
}

/* ---- as JSON ---- */

static json_t *number(double v, enum profile_unit unit)
{
	if (unit == UNIT_FLAG)
		return json_boolean(v != 0);
	if (unit != UNIT_SHARE && unit != UNIT_SECONDS && v == floor(v) && fabs(v) < 9e15)
		return json_integer((json_int_t)v);
	return json_number(v);
}

/* The sentence under `key`, and which one it is. */
static void put_rule_json(json_t *o, const char *key, const struct profile_value *v)
{
	struct buf text = {0};

	if (v->rule.reason == REASON_NONE)
		return;
	words_put(&text, &v->rule, WORDS_SHORT);
	json_put_text(o, key, text.data);
	json_put_text(o, "reason", reason_name(v->rule.reason));
	buf_release(&text);
}

static json_t *value_json(const struct profile_value *v, enum profile_unit unit)
{
	json_t *o = json_object();

	json_put_text(o, "how", profile_how_names[v->how]);
	if (v->how == HOW_UNKNOWN) {
		put_rule_json(o, "why", v);
		return o;
	}
	if (unit == UNIT_WORD)
		json_put_text(o, "value", v->text);
	else
		json_put(o, "value", number(v->number, unit));
	if (unit != UNIT_WORD && v->text)
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
	put_rule_json(o, "rule", v);
	return o;
}

static void put_signed(json_t *o, const char *key, int64_t v)
{
	if (v >= 0)
		json_put(o, key, json_integer(v));
}

static json_t *group_json(const struct profile *a, const struct file_group *g)
{
	json_t *o = json_object();

	json_put_text(o, "role", profile_role_name(a, g->role));
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

void profile_json(const struct profile *a, struct buf *out)
{
	const struct job *job = a->job;
	json_t *root = json_object(), *list, *values = json_object();
	struct buf answer = {0};

	json_put_mark(root);
	json_put_text(root, "source", job->source);
	profile_answer(a, &answer);
	json_put_text(root, "answer", answer.data);
	json_put_bool(root, "trains", a->trains);
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
		json_array_append_new(list, group_json(a, &a->group[i]));
	json_put(root, "files", list);
	for (int f = 0; f < PROFILE_VALUES; f++)
		if (a->value[f].how != HOW_ABSENT)
			json_put(values, profile_rows[f].key,
				 value_json(&a->value[f], profile_rows[f].unit));
	json_put(root, "values", values);
	if (a->servers.n)
		json_put(root, "servers", job_servers_json(&a->servers));
	list = job_advice_json(a);
	if (list)
		json_put(root, "advice", list);
	list = json_array();
	for (size_t i = 0; i < job->notes.n; i++)
		json_array_append_new(list, json_text(job->notes.v[i]));
	json_put(root, "notes", list);
	json_put_dump(out, root, JSON_INDENT(4) | JSON_REAL_PRECISION(12), JSON_EXACT);
	buf_putc(out, '\n');
	json_decref(root);
}
