/* stoker replay: the requests of a real job, made again. */
#include <math.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/file_out.h"
#include "base/say.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/flags.h"
#include "os/signals.h"
#include "trace/replay/fidelity.h"
#include "trace/replay/replay.h"
#include "trace/trace_reader.h"

static struct stop_flag stop;

struct replay_args {
	struct str_list log; /* first: the operands */
	const char *data, *output;
	bool sparse, cold, no_think, only_files, json;
	double think_scale;
};

/* What a log must have for its requests to be made again. */
static int check_log(const struct job *job, struct err *e)
{
	if (!(job->sees & JOB_SEES_REQUESTS))
		return err_set(e, ERR_USAGE,
			       "the log (%s) counts requests but does not list them: 'stoker "
			       "explain LOG -o job.yaml' makes a workload of what it has",
			       job->source);
	return 0;
}

static void say_left_out(const struct replay_plan *p)
{
	static const struct {
		enum job_event_kind kind;
		const char *what;
	} kinds[] = {{JOB_MAP, "mappings of files"},
		     {JOB_ADVISE, "hints to the kernel (fadvise)"},
		     {JOB_READ, "reads"},
		     {JOB_WRITE, "writes"}};
	struct buf list = {0};

	if (p->of_objects)
		buf_printf(&list, "%llu request%s of objects", (unsigned long long)p->of_objects,
			   p->of_objects == 1 ? "" : "s");
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (p->left_out[kinds[i].kind])
			buf_printf(&list, "%s%llu %s%s", list.len ? ", " : "",
				   (unsigned long long)p->left_out[kinds[i].kind], kinds[i].what,
				   kinds[i].kind == JOB_READ || kinds[i].kind == JOB_WRITE
					   ? " of shared memory, sockets and devices, or that "
					     "failed"
					   : "");
	if (list.len)
		say(stdout, "Not replayed: %s. Their time counts as thinking.\n", list.data);
	buf_release(&list);
}

/* What the log is known to lack, the replay lacks, too. */
static void say_notes(const struct job *job, FILE *to)
{
	for (size_t i = 0; i < job->notes.n; i++)
		say(to, "Of the log: %s.\n", job->notes.v[i]);
}

static void say_plan(const struct replay_plan *p, const struct replay_image *m)
{
	uint64_t requests = 0, threads = 0;
	char bytes[32], made[32];

	for (uint32_t i = 0; i < p->ops; i++)
		requests += !p->op[i].only;
	for (size_t i = 0; i < p->job->threads; i++)
		threads += p->thread[i].ops > 0;
	say(stdout,
	    "%llu request%s of %llu thread%s in %zu process%s; %llu file%s of %s below '%s' (%llu "
	    "made now, %s)\n",
	    (unsigned long long)requests, requests == 1 ? "" : "s", (unsigned long long)threads,
	    threads == 1 ? "" : "s", p->job->processes, p->job->processes == 1 ? "" : "es",
	    (unsigned long long)m->present, m->present == 1 ? "" : "s",
	    str_bytes((double)m->bytes, bytes, sizeof(bytes)), m->folder,
	    (unsigned long long)m->written,
	    str_bytes((double)m->written_bytes, made, sizeof(made)));
	if (p->unmatched)
		say(stdout,
		    "%llu of %llu reads of pipes have no writer in the log: their time counts as "
		    "thinking.\n",
		    (unsigned long long)p->unmatched,
		    (unsigned long long)(p->matched + p->unmatched));
	say_left_out(p);
}

/* Which requests had other results, and the first of them. */
static void say_differing(const struct replay_plan *p, const struct replay_image *m,
			  const struct replay_done *done)
{
	const struct plan_op *o = &p->op[done->differs - 1];
	const struct job_event *v = &p->job->event[o->event];
	const char *path = v->file != JOB_NONE ? m->path[v->file] : NULL;

	say(stdout,
	    "%llu request%s had another result than in the job: fewer bytes, or a file that "
	    "exists in only one of the two. The first: %s of '%s'.\n",
	    (unsigned long long)done->differing, done->differing == 1 ? "" : "s",
	    job_kind_name(v->kind), path ? path : "");
}

static int report(const struct replay_args *x, const struct replay_plan *p,
		  const struct replay_image *m, const struct replay_done *done, struct err *e)
{
	struct job here;
	struct buf text = {0}, json = {0}, said = {0};
	struct fidelity f;
	int rc = replay_job(p, &here, e);

	if (rc == 0) {
		fidelity_of(p->job, &here, true, false, &f);
		fidelity_json(&f, &json);
		fidelity_say_time(&f, !x->no_think && x->think_scale == 1, &said);
		if (x->json)
			buf_append(&text, json.data, json.len);
		else
			fidelity_print(&f, &text);
		say_text(stdout, &text);
		if (done->differing && !x->json)
			say_differing(p, m, done);
		if (!x->json)
			say_text(stdout, &said);
		fflush(stdout);
		if (x->output)
			rc = file_write(x->output, json.data, json.len, e);
	}
	buf_release(&text);
	buf_release(&json);
	buf_release(&said);
	job_release(&here);
	return rc;
}

static int perform(const struct replay_args *x, const struct job *job, struct replay_names *names,
		   struct replay_plan *p, struct replay_image *m, struct err *e)
{
	struct replay_options o = {.think_scale = x->no_think ? 0 : x->think_scale, .stop = &stop};
	struct replay_done done;
	int rc = replay_names_make(names, job, e);

	if (rc == 0)
		rc = replay_image_init(m, job, names, x->data ? x->data : "replay-data", e);
	if (rc == 0)
		rc = replay_plan_make(p, job, names, e);
	if (rc == 0 && p->ops == 0)
		rc = err_set(e, ERR_DATA, "the log has no requests to files");
	if (rc == 0)
		rc = signals_start(&(struct signal_work){.stop = &stop}, e);
	if (rc == 0)
		rc = replay_image_make(m, x->sparse, x->cold, &stop, e);
	if (rc < 0)
		return rc;
	say_notes(job, x->json ? stderr : stdout);
	if (!x->json)
		say_plan(p, m);
	if (x->only_files)
		return 0;
	rc = replay_run(p, m, &o, &done, e);
	if (rc == 0 && done.stopped)
		return err_set(e, ERR_CANCELED, "stopped after %llu operations",
			       (unsigned long long)done.ops);
	return rc < 0 ? rc : report(x, p, m, &done, e);
}

static int replay(void *args, struct err *e)
{
	const struct replay_args *x = args;
	struct replay_names names = {0};
	struct replay_image m = {0};
	struct replay_plan p = {0};
	struct job job;
	int rc = x->log.n ? 0 : err_set(e, ERR_USAGE, "'replay' needs the log of a job");

	if (rc == 0 && x->output)
		rc = named_output_add(x->output, e);
	job_init(&job);
	if (rc == 0)
		rc = job_read(&job, (const char *const *)x->log.v, x->log.n, e);
	if (rc == 0)
		rc = check_log(&job, e);
	if (rc == 0)
		rc = perform(x, &job, &names, &p, &m, e);
	replay_plan_release(&p);
	replay_image_release(&m);
	replay_names_release(&names);
	job_release(&job);
	return rc;
}

static int replay_main(const struct command *c, int argc, char **argv)
{
	struct replay_args x = {.think_scale = 1};

	return flags_carry_out(c, &x, argc, argv, flags_list_operand, replay);
}

#define FLAG_ARGS struct replay_args

/* clang-format off */
static const struct flag *const flags[] = {
	F(OPERAND, "LOG",
	  "a log with every request, as 'stoker explain' reads them; several of one kind are "
	  "one job"),
	F(TEXT, "--data", "FOLDER", data,
	  "where the files of the job are made, with their names and sizes; replay-data without "
	  "it. What is there already is used again"),
	F(TEXT, "--output", "FILE", output,
	  "write the comparison to a file, as JSON", .letter = "-o"),
	F(SET, "--no-think", no_think, "make requests as fast as they are answered"),
	F(REAL, "--think-scale", "X", think_scale, 0, 1000000,
	  "think X times as long as the job between requests"),
	F(SET, "--cold", cold, "take the files out of the page cache before"),
	F(SET, "--sparse", sparse,
	  "make files without bytes, which take no space; reading them costs the storage little"),
	F(SET, "--only-files", only_files, "make the files and end"),
	F(SET, "--json", json, "print the comparison as JSON"),
	NULL};
/* clang-format on */

const struct command command_replay = {
	.name = "replay",
	.operands = "LOG...",
	.help = "Make the requests of a real job again, and compare.",
	.about =
		"Every request of every process of the log is made again, in its order, over files "
		"with the same names and sizes: a closed loop. A request waits for what it waited "
		"for in the job: the fork of its process, a pipe, a file that another one writes. "
		"Between requests a thread thinks as long as it did, without the time in which it "
		"waited. The times of the log are not followed: faster storage makes it faster.",
	.flags = flags,
	.alone = true,
	.examples = {"stoker replay examples/job.strace.gz --data replay-data",
		     "stoker replay examples/job.strace.gz --no-think"},
	.carry_out = replay_main,
};
