/* What the rules of MLPerf Storage ask of one result of its harness: docs/audit.md. */
#include "readback/audit_checks.h"

#include <math.h>

#include "base/str.h"

static const double STEPS = 500;           /* of an epoch, at least */
static const double CHECKPOINT_MEMORY = 3; /* checkpoint over memory, at least */
static const uint32_t HOST_LEAST = 4;      /* accelerators of a host */

/* Its tool rounds the number of files down, which can leave one step too few. */
static bool rounded_down(const struct run_record *r)
{
	double samples = STEPS * r->ranks * (double)r->facts.batch;

	return r->files >= floor(samples / r->samples_per_file);
}

static void check_steps(struct audit *a, size_t i)
{
	const struct run_record *r = &a->record[i];
	bool rounded;
	struct finding *f;

	if (r->facts.steps == 0 || (double)r->facts.steps >= STEPS)
		return;
	rounded = rounded_down(r);
	f = audit_add(a, i, "steps", rounded ? AUDIT_NOTE : AUDIT_WARN);
	finding_say(f, "An epoch has %llu step%s; MLPerf Storage asks for %.0f%s.",
		    (unsigned long long)r->facts.steps, r->facts.steps == 1 ? "" : "s", STEPS,
		    rounded ? ", and its tool rounds the number of files down" : "");
	finding_advise(f, "Use at least %.0f files.",
		       ceil(STEPS * r->ranks * (double)r->facts.batch / r->samples_per_file));
}

static void check_target(struct audit *a, size_t i)
{
	const struct run_record *r = &a->record[i];
	struct finding *f;

	if (!(r->au.mean < r->facts.target))
		return;
	f = audit_add(a, i, "target", AUDIT_WARN);
	finding_say(f, "AU is %.1f %%, below the target of %.0f %% (metric.au).", r->au.mean,
		    r->facts.target);
	finding_advise(f, "Use fewer accelerators: the result does not count at this number.");
}

static void check_hosts(struct audit *a, size_t i)
{
	const struct run_record *r = &a->record[i];
	double each = (double)r->ranks / r->hosts;
	struct finding *f;

	if (r->trained && r->dlio == DLIO_NEWER && r->hosts == 1 && r->ranks < HOST_LEAST) {
		f = audit_add(a, i, "hosts", AUDIT_NOTE);
		finding_say(f,
			    "One host emulates %u accelerator%s: MLPerf Storage v3 warns below %u "
			    "(rule 3.3.3).",
			    r->ranks, r->ranks == 1 ? "" : "s", HOST_LEAST);
		finding_advise(f, "Emulate as many accelerators as the host carries.");
	} else if (!r->trained && each <= HOST_LEAST) {
		f = audit_add(a, i, "hosts", each < HOST_LEAST ? AUDIT_WARN : AUDIT_NOTE);
		finding_say(f,
			    "%u accelerators on %u hosts are %.3g a host: rule 4.6.2 of MLPerf "
			    "Storage asks for more than %u in its text, for at least %u in its "
			    "table.",
			    r->ranks, r->hosts, each, HOST_LEAST, HOST_LEAST);
		finding_advise(f, "Use fewer hosts for the same number of accelerators.");
	}
}

/* What was written may be in memory still when it is read; holds for any result of checkpoints. */
static void check_checkpoint_memory(struct audit *a, size_t i)
{
	const struct run_record *r = &a->record[i];
	double size = r->checkpoint_gib * 0x1p30;
	char b1[32], b2[32];
	struct finding *f;

	bool reads = isfinite(r->load_gib_per_s), writes = isfinite(r->save_gib_per_s);

	if (!(size > 0) || !(r->memory_bytes > 0) || size >= CHECKPOINT_MEMORY * r->memory_bytes)
		return;
	/* of a call that only writes, it is what the call that reads has to know */
	f = audit_add(a, i, "cache", reads ? AUDIT_WARN : AUDIT_NOTE);
	f->about_cache = reads;
	finding_say(f, "The checkpoint (%s) is %.2g times the memory of the %s (%s)",
		    str_bytes(size, b1, sizeof(b1)), size / r->memory_bytes,
		    r->hosts == 1 ? "host" : "hosts", str_bytes(r->memory_bytes, b2, sizeof(b2)));
	if (reads)
		finding_say(f, ": it may have been read back from the page cache.");
	else
		finding_say(f,
			    ", and this call only writes: what it wrote may be in the page cache "
			    "when another call reads it.");
	finding_say(f, " MLPerf Storage asks for %.0f times, or a cleared cache (rule 4.3.1).",
		    CHECKPOINT_MEMORY);
	if (reads && !writes)
		finding_advise(f, "Show that the page cache of every host was dropped between the "
				  "call that wrote it and this one, or read it again after "
				  "dropping it.");
	else
		finding_advise(f, "Drop the page cache of every host %s.",
			       reads ? "between writing and reading"
				     : "before the call that reads");
}

void audit_mlperf(struct audit *a, size_t i)
{
	const struct run_record *r = &a->record[i];

	if (r->ours)
		return;
	if (!r->trained && r->checkpointed)
		check_checkpoint_memory(a, i);
	if (!r->mlperf)
		return;
	if (r->trained) {
		check_steps(a, i);
		check_target(a, i);
	}
	if (r->trained || r->checkpointed)
		check_hosts(a, i);
}
