/* MPI serves to introduce the processes to each other, and is over before the run begins. */
#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "comm/mpi_library.h"

static struct {
	const struct meet_job *job;
	struct mpi_library mpi;
	_Atomic int found;
} self;

const char *meet_mpi_name(void)
{
	return atomic_load_explicit(&self.found, memory_order_acquire) ? self.mpi.name : "";
}

const struct mpi_library *meet_mpi_library(void)
{
	return &self.mpi;
}

static int failed(int code, const char *function, struct err *e)
{
	char text[MPI_TEXT_MAX] = "";
	int length = 0;

	if (self.mpi.error_string)
		self.mpi.error_string(code, text, &length);
	text[sizeof(text) - 1] = '\0';
	return err_set(e, -EPROTO, "%s failed under %s with code %d%s%.*s (library '%s', %s)",
		       function, self.job->launcher, code, text[0] ? ": " : "",
		       (int)strnlen(text, 200), text, self.mpi.name, self.mpi.version);
}

/* Each process would be a run of its own when the library does not see the others. */
static int check_match(int process, int processes, struct err *e)
{
	const struct meet_job *j = self.job;

	if (processes < 1 || process < 0 || process >= processes)
		return err_set(e, -EPROTO,
			       "the MPI library '%s' says that this is process %d of %d",
			       self.mpi.name, process, processes);
	if (j->processes == processes || (j->processes == 0 && processes > 1))
		return 0;
	return err_set(e, ERR_USAGE,
		       "%s started %lld processes, but the MPI library '%s' (%s) found %d: the "
		       "launcher and the library do not match. Use the library's own launcher, or "
		       "set STOKER_MPI to openmpi, mpich, or the path of the launcher's library",
		       j->launcher, (long long)j->processes, self.mpi.name, self.mpi.version,
		       processes);
}

static int begin(const struct meet_job *job, struct meet_place *place, struct err *e)
{
	int process = 0, processes = 0, provided = 0, wanted, code, rc;
	const char *function = "MPI_Init_thread";

	self.job = job;
	rc = mpi_library_find(job, &self.mpi, e);
	if (rc < 0)
		return rc;
	atomic_store_explicit(&self.found, 1, memory_order_release);
	wanted = job->keeps ? self.mpi.serialized : self.mpi.funneled;
	code = self.mpi.init_thread(NULL, NULL, wanted, &provided);
	if (code == 0) {
		function = "MPI_Comm_rank";
		code = self.mpi.comm_rank(self.mpi.comm_world, &process);
	}
	if (code == 0) {
		function = "MPI_Comm_size";
		code = self.mpi.comm_size(self.mpi.comm_world, &processes);
	}
	if (code != 0)
		return failed(code, function, e);
	self.mpi.serves = job->keeps && provided >= wanted && self.mpi.ibarrier &&
			  self.mpi.ibcast && self.mpi.test;
	rc = check_match(process, processes, e);
	if (rc < 0) {
		self.mpi.finalize();
		return rc;
	}
	*place = (struct meet_place){(uint32_t)process, (uint32_t)processes};
	return 0;
}

static int broadcast(void *p, size_t n, struct err *e)
{
	int code = self.mpi.bcast(p, (int)n, self.mpi.byte, 0, self.mpi.comm_world);

	return code == 0 ? 0 : failed(code, "MPI_Bcast", e);
}

static void end(void)
{
	self.mpi.finalize();
}

static void give_up(void)
{
	self.mpi.abort_all(self.mpi.comm_world, 1);
}

const struct meet_way meet_over_mpi = {begin, broadcast, end, give_up};
