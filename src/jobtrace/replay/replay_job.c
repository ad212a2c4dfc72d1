/* The operations of a plan that were made, as a job. */
#include "jobtrace/replay/replay_job.h"

/* The same numbers come out because names were told apart in the same way. */
static void copy_tables(const struct job *from, struct job *out)
{
	out->sees = from->sees & ~(unsigned)JOB_SEES_COUNTS;
	out->source = from->source;
	for (size_t i = 0; i < from->files; i++) {
		uint32_t k = job_file(out, from->file[i].name, from->file[i].kind);

		out->file[k].size = from->file[i].size;
		out->file[k].deleted = from->file[i].deleted;
	}
	for (size_t i = 0; i < from->processes; i++) {
		const struct job_process *p = &from->process[i];
		uint32_t k = job_process(out, p->pid, p->host, JOB_NONE);

		out->process[k].parent = p->parent;
		out->process[k].rank = p->rank;
		out->process[k].complete = p->complete;
		out->process[k].command = job_text(out, p->command);
	}
	for (size_t i = 0; i < from->threads; i++)
		job_thread(out, from->thread[i].process, from->thread[i].tid);
}

/* A process lives from its first operation to its last. */
static void extend_life(struct job *out, const struct job_event *v)
{
	struct job_process *p = &out->process[out->thread[v->thread].process];

	if (p->begin_ns == JOB_UNKNOWN || v->begin_ns < p->begin_ns)
		p->begin_ns = v->begin_ns;
	if (v->end_ns > p->end_ns)
		p->end_ns = v->end_ns;
}

int replay_job(const struct replay_plan *p, struct job *out, struct err *e)
{
	int rc = 0;

	job_init(out);
	copy_tables(p->job, out);
	for (uint32_t i = 0; i < p->ops && rc == 0; i++) {
		const struct plan_op *o = &p->op[i];
		struct job_event v = p->job->event[o->event];
		/* the threads have ended */
		int64_t end = atomic_load_explicit(&o->end_ns, memory_order_relaxed);

		if (end == JOB_UNKNOWN)
			continue;
		v.begin_ns = o->begin_ns;
		v.end_ns = end;
		if (!o->only)
			v.result = o->result;
		extend_life(out, &v);
		rc = job_add(out, &v, e);
	}
	return rc < 0 ? rc : job_finish(out, e);
}
