/* The framework of a job, by what only it leaves in a log. */
#include <string.h>

#include "base/str.h"
#include "trace/profile/profile.h"
#include "trace/profile/profile_parts.h"

/* Lists end with NULL. */
struct signs {
	const char *name;
	const char *libraries[5]; /* parts of names of files */
	const char *looks_for;    /* the end of a name that it looks for, there or not; NULL */
	const char *memory;       /* of shared memory, at its begin; NULL */
	const char *threads[3];   /* at the begin of their names */
	const char *commands[4];  /* parts */
};

enum { TORCH, TENSORFLOW };

static const struct signs table[] = {
	[TORCH] = {"PyTorch",
		   {"/libtorch.so", "/libtorch_cpu.so", "/libtorch_python.so", "/torch/lib/"},
		   NULL,
		   "/torch_",
		   {"pt_data", "pt_main"},
		   {"torchrun", "torch.distributed", "torch/distributed"}},
	[TENSORFLOW] = {"TensorFlow",
			{"/libtensorflow", "/tensorflow/python/", "/_pywrap_tensorflow"},
			"/tensorflow-plugins",
			NULL,
			{"tf_data", "tf_Compute"},
			{"-m tensorflow", "/tensorflow/"}},
	{"JAX", {"/jaxlib/", "/xla_extension.so"}, NULL, NULL, {NULL}, {NULL}},
	{"DALI", {"/nvidia/dali/", "/libdali.so"}, NULL, NULL, {"DALI"}, {NULL}},
	{"MXNet", {"/libmxnet.so"}, NULL, NULL, {NULL}, {NULL}},
	{"Stoker", {NULL}, NULL, NULL, {NULL}, {"stoker run", "/stoker run"}},
	{"DLIO", {NULL}, NULL, NULL, {NULL}, {"dlio_benchmark"}},
};

#define FRAMEWORKS (sizeof(table) / sizeof(table[0]))

enum { BY_LIBRARY = 1, BY_MEMORY = 2, BY_THREAD = 4, BY_COMMAND = 8 };

static bool has_part(const char *text, const char *const *part)
{
	for (; *part; part++)
		if (strstr(text, *part))
			return true;
	return false;
}

static bool begins(const char *text, const char *const *with)
{
	for (; *with; with++)
		if (str_starts(text, *with))
			return true;
	return false;
}

/* `/dev/shm/torch_12_34`, or `/torch_12_34`. */
static bool is_memory(const struct job_file *f, const char *sign)
{
	const char *base = strrchr(f->name, '/');

	return sign && base && f->kind == JOB_FILE_MEMORY && str_starts(base, sign);
}

static unsigned find(const struct job *job, const struct signs *s)
{
	unsigned by = 0;

	for (size_t i = 0; i < job->files; i++) {
		const struct job_file *f = &job->file[i];

		/* programs look for libraries in many places where they are not */
		if (f->kind == JOB_FILE_REGULAR && (f->counts.reads > 0 || f->counts.maps > 0) &&
		    has_part(f->name, s->libraries))
			by |= BY_LIBRARY;
		if (s->looks_for && str_ends(f->name, s->looks_for))
			by |= BY_LIBRARY;
		if (is_memory(f, s->memory))
			by |= BY_MEMORY;
	}
	for (size_t i = 0; i < job->threads; i++)
		if (job->thread[i].name && begins(job->thread[i].name, s->threads))
			by |= BY_THREAD;
	for (size_t i = 0; i < job->processes; i++) {
		if (has_part(job->process[i].command, s->commands))
			by |= BY_COMMAND;
		if (has_part(job->process[i].libraries, s->libraries))
			by |= BY_LIBRARY;
	}
	return by;
}

void profile_framework(struct profile *a)
{
	const char *text = NULL;
	struct fact how;
	bool torch = false, tensorflow = false;
	unsigned by = 0;

	for (size_t i = 0; i < FRAMEWORKS; i++) {
		unsigned found = find(a->job, &table[i]);

		if (!found)
			continue;
		by |= found;
		torch |= i == TORCH;
		tensorflow |= i == TENSORFLOW;
		text = text ? profile_text(a, "%s, %s", text, table[i].name) : table[i].name;
	}
	if (!text)
		return;
	a->tensorflow = tensorflow && !torch;
	a->loaded = by == BY_LIBRARY;
	how = by & BY_MEMORY    ? FACT(JOB_BY_SHARED_MEMORY)
	      : by & BY_LIBRARY ? FACT(JOB_BY_LIBRARIES)
	      : by & BY_THREAD  ? FACT(JOB_BY_THREADS)
				: FACT(JOB_BY_COMMAND);
	profile_inferred(a, PROFILE_FRAMEWORK, 0, how, 0, 0)->text = text;
}
