/* What the kernel counted of recorded processes, and `stoker record` saw of their ends. */
#include "trace/recording/recording.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/str.h"
#include "base/map.h"

#define UNSEEN_SMALL 65536

const char *recording_image_why(uint64_t image)
{
	static const char *const why[RING_IMAGES] = {
		[RING_IMAGE_STATIC] = "statically linked",
		[RING_IMAGE_SETUID] = "set-user-ID",
		[RING_IMAGE_OTHER_CLASS] = "for another processor or 32 bits",
		[RING_IMAGE_FILTERED] = "behind a filter of calls (seccomp(2))",
	};

	return image < RING_IMAGES ? why[image] : NULL;
}

/* Adds to a sum that may be unknown; hostile counts wrap around. */
static void plus(int64_t *sum, uint64_t v)
{
	if (*sum != JOB_UNKNOWN)
		*sum = (int64_t)((uint64_t)*sum + v);
}

static uint64_t less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* Processes that `stoker record` reaped: the kernel's count of the command has them. The first end
 * of each, or the first with a status. */
static struct map reaped(const struct ring_files *files)
{
	struct map ends = {0};

	for (size_t i = 0; i < files->ends; i++) {
		const struct ring_end *end = &files->end[i];
		uint32_t before = map_get(&ends, end->pid);

		if (end->pid > 0 &&
		    (before == MAP_NONE || files->end[before].status == JOB_UNKNOWN))
			map_put(&ends, end->pid, (uint32_t)i);
	}
	return ends;
}

/* What the kernel counted of each process, less what it adds of the children that were reaped, and
 * what was recorded. */
static void compare_counts(struct job *job, const struct ring_files *files, const uint32_t *process,
			   struct recording_facts *facts)
{
	size_t n = job->processes;
	int64_t *read = xcalloc(n + 1, sizeof(*read)), *written = xcalloc(n + 1, sizeof(*written));
	uint64_t *total_read = xcalloc(n + 1, sizeof(*total_read));
	uint64_t *total_written = xcalloc(n + 1, sizeof(*total_written));
	int64_t *fetched = xcalloc(n + 1, sizeof(*fetched));
	uint64_t *total_fetched = xcalloc(n + 1, sizeof(*total_fetched));
	uint64_t own_read = 0, own_written = 0;
	struct map ends = reaped(files);

	for (size_t i = 0; i < n; i++)
		job->process[i].logged_read_bytes = job->process[i].logged_write_bytes = 0;
	for (size_t i = 0; i < files->rings; i++) {
		const struct ring_info *f = &files->ring[i];
		const struct ring_head *h = &f->head;
		size_t p = process[i];
		struct job_process *to = &job->process[p];

		plus(&to->logged_read_bytes, f->counts.rchar + h->lost_rchar);
		plus(&to->logged_write_bytes, f->counts.wchar + h->lost_wchar);
		facts->bytes_read += f->counts.rchar;
		facts->bytes_written += f->counts.wchar;
		facts->excluded_calls += f->counts.excluded_calls;
		facts->excluded_read += f->counts.excluded_read;
		facts->excluded_written += f->counts.excluded_written;
		own_read += h->own_rchar + h->own_last + h->lost_rchar;
		own_written += h->own_wchar + h->lost_wchar;
		facts->loader_read += less(h->start.rchar, total_read[p]) * !h->parent;
		if (h->last.known) {
			plus(&read[p], less(h->last.rchar, h->start.rchar) - h->own_rchar);
			plus(&written[p], less(h->last.wchar, h->start.wchar) - h->own_wchar);
			plus(&fetched[p], less(h->last.read_bytes, h->start.read_bytes));
			total_read[p] = h->last.rchar + h->own_last;
			total_fetched[p] = h->last.read_bytes;
			total_written[p] = h->last.wchar;
			facts->major_faults += less((uint64_t)h->major_faults_end,
						    (uint64_t)h->major_faults_start);
		} else {
			read[p] = written[p] = fetched[p] = JOB_UNKNOWN;
		}
	}
	for (size_t i = 0; i < n; i++) {
		struct job_process *p = &job->process[i];
		uint32_t above = p->parent;

		facts->killed += !p->complete;
		if (above == JOB_NONE || read[above] == JOB_UNKNOWN)
			continue;
		/* a child that went on after its parent was reaped by somebody else */
		if (p->complete && p->end_ns > job->process[above].end_ns)
			continue;
		if (!p->complete || read[i] == JOB_UNKNOWN) {
			read[above] = written[above] = fetched[above] = JOB_UNKNOWN;
			continue;
		}
		plus(&read[above], -total_read[i]);
		plus(&written[above], -total_written[i]);
		plus(&fetched[above], -total_fetched[i]);
	}
	for (size_t i = 0; i < n; i++) {
		job->process[i].kernel_read_bytes = read[i] < 0 ? JOB_UNKNOWN : read[i];
		job->process[i].kernel_write_bytes = written[i] < 0 ? JOB_UNKNOWN : written[i];
		job->process[i].storage_read_bytes = fetched[i] < 0 ? JOB_UNKNOWN : fetched[i];
	}
	for (size_t i = 0; i < n; i++) {
		facts->ranked += job->process[i].rank >= 0;
		if (job->process[i].parent != JOB_NONE ||
		    map_get(&ends, job->process[i].pid) != MAP_NONE)
			continue;
		/* a rank that a daemon started; of a killed one, what it recorded makes no
		 * difference */
		facts->elsewhere++;
		facts->kernel_read +=
			total_read[i] ? total_read[i] : (uint64_t)job->process[i].logged_read_bytes;
		facts->kernel_written += total_read[i]
						 ? total_written[i]
						 : (uint64_t)job->process[i].logged_write_bytes;
	}
	for (size_t i = 0; i < files->ends; i++) {
		const struct ring_end *end = &files->end[i];

		facts->ended |= end->pid == 0;
		if (end->pid == 0 && recording_image_why(end->image)) {
			char text[128];

			snprintf(text, sizeof(text), "the command is %s",
				 recording_image_why(end->image));
			texts_add(&facts->unrecorded, text);
		}
		if (end->pid != 0 || !end->io.known)
			continue;
		facts->kernel_known = true;
		facts->kernel_read += end->io.rchar;
		facts->kernel_written += end->io.wchar;
		facts->kernel_storage_read += end->io.read_bytes;
	}
	if (facts->kernel_known) {
		facts->unseen_read = (int64_t)less(
			facts->kernel_read, facts->bytes_read + own_read + facts->loader_read);
		facts->unseen_written =
			(int64_t)less(facts->kernel_written, facts->bytes_written + own_written);
	}
	free(read);
	free(written);
	free(total_read);
	free(total_written);
	free(fetched);
	free(total_fetched);
	map_release(&ends);
}

/* Exit statuses that only the one who reaped the process knows. */
static void take_ends(struct job *job, const struct ring_files *files)
{
	struct map ends = reaped(files);

	for (size_t k = 0; k < job->processes; k++) {
		struct job_process *p = &job->process[k];
		uint32_t i = map_get(&ends, p->pid);

		if (p->exit == JOB_UNKNOWN && i != MAP_NONE && files->end[i].status != JOB_UNKNOWN)
			p->exit = files->end[i].status;
	}
	map_release(&ends);
}

static void notes(struct job *job, const struct recording_facts *f)
{
	char bytes[32], other[32];

	job->lacks = f->damaged || f->cut || f->missing || f->filtered || f->lost || f->cut_off ||
		     !f->ended;
	if (!f->ended)
		job_note(
			job,
			"the recording has no end: 'stoker record' is still at work, or was ended "
			"itself (killed, or the power was lost): the last requests may be missing");
	if (f->damaged)
		job_note(job,
			 "%llu part%s of the recording %s cut or damaged: the requests there are "
			 "missing",
			 (unsigned long long)f->damaged, f->damaged == 1 ? "" : "s",
			 f->damaged == 1 ? "is" : "are");
	for (size_t i = 0; i < f->harmed.n; i++)
		job_note(job, "damaged: %s", f->harmed.v[i]);
	if (f->cut)
		job_note(job,
			 "the files of %llu process%s were cut while they were written, by another "
			 "program or because their file system had no room: what was done then is "
			 "missing",
			 (unsigned long long)f->cut, f->cut == 1 ? "" : "es");
	if (f->missing)
		job_note(job,
			 "the files of %llu process%s were removed: all that they did is missing",
			 (unsigned long long)f->missing, f->missing == 1 ? "" : "es");
	if (f->filtered)
		job_note(job,
			 "%llu process%s had a filter of calls (seccomp): since then only what "
			 "needs no call of the recorder is recorded, and %llu that they forked "
			 "not at all",
			 (unsigned long long)f->filtered, f->filtered == 1 ? "" : "es",
			 (unsigned long long)f->filtered_children);
	if (f->lost)
		job_note(job,
			 "%llu request%s missing: the recording reached its limit of %s, or "
			 "there was no room on the disk",
			 (unsigned long long)f->lost, f->lost == 1 ? " is" : "s are",
			 str_bytes((double)f->limit, bytes, sizeof(bytes)));
	if (f->cut_off)
		job_note(job,
			 "%llu request%s missing: a signal handler jumped away while %s recorded",
			 (unsigned long long)f->cut_off, f->cut_off == 1 ? " is" : "s are",
			 f->cut_off == 1 ? "it was" : "they were");
	if (f->uring)
		job_note(job,
			 "%llu process%s used io_uring, whose requests no recording from inside a "
			 "process can see",
			 (unsigned long long)f->uring, f->uring == 1 ? "" : "es");
	for (size_t i = 0; i < f->unrecorded.n; i++)
		job_note(job, "%s: nothing of it was recorded", f->unrecorded.v[i]);
	if (f->mapped_files)
		job_note(job,
			 "%llu mapping%s of files, %s: what was read through page faults is not "
			 "seen; %s came into memory during that time",
			 (unsigned long long)f->mapped_files, f->mapped_files == 1 ? "" : "s",
			 str_bytes((double)f->mapped_bytes, bytes, sizeof(bytes)),
			 str_bytes((double)f->mapped_came, other, sizeof(other)));
	if (f->unseen_read > UNSEEN_SMALL)
		job_note(job,
			 "%s that the kernel counts as read were not seen: calls that libraries "
			 "and programs make without libc, and programs that were not recorded",
			 str_bytes((double)f->unseen_read, bytes, sizeof(bytes)));
}

void recording_ends(struct job *job, const struct ring_files *files, const uint32_t *process,
		    struct recording_facts *facts)
{
	take_ends(job, files);
	compare_counts(job, files, process, facts);
	notes(job, facts);
}
