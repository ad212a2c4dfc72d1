/* The framework of a job, by what only it leaves in a log: libraries that were opened, its shared
 * memory, the names of its threads, the command. */
#include <string.h>

#include "jobtrace/account/account_parts.h"

struct signs {
	const char *name;
	const char *libraries[5]; /* parts of names of files */
	const char *memory;       /* of shared memory, at its begin; NULL */
	const char *threads[3];   /* at the begin of their names */
	const char *commands[4];  /* parts */
};

static const struct signs table[] = {
	{"PyTorch",
	 {"/libtorch.so", "/libtorch_cpu.so", "/libtorch_python.so", "/torch/lib/"},
	 "/torch_",
	 {"pt_data", "pt_main"},
	 {"torchrun", "torch.distributed", "torch/distributed"}},
	{"TensorFlow",
	 {"/libtensorflow", "/tensorflow/python/", "/_pywrap_tensorflow"},
	 NULL,
	 {"tf_data", "tf_Compute"},
	 {"-m tensorflow", "/tensorflow/"}},
	{"JAX", {"/jaxlib/", "/xla_extension.so"}, NULL, {NULL}, {NULL}},
	{"DALI", {"/nvidia/dali/", "/libdali.so"}, NULL, {"DALI"}, {NULL}},
	{"MXNet", {"/libmxnet.so"}, NULL, {NULL}, {NULL}},
	{"Stoker", {NULL}, NULL, {NULL}, {"stoker run", "/stoker run"}},
};

#define FRAMEWORKS (sizeof(table) / sizeof(table[0]))

enum { BY_LIBRARY = 1, BY_MEMORY = 2, BY_THREAD = 4, BY_COMMAND = 8 };

static bool has_part(const char *text, const char *const *part, size_t n)
{
	for (size_t i = 0; i < n && part[i]; i++)
		if (strstr(text, part[i]))
			return true;
	return false;
}

static bool begins(const char *text, const char *const *part, size_t n)
{
	for (size_t i = 0; i < n && part[i]; i++)
		if (strncmp(text, part[i], strlen(part[i])) == 0)
			return true;
	return false;
}

/* `/dev/shm/torch_12_34`, or `/torch_12_34`. */
static bool is_memory(const struct job_file *f, const char *sign)
{
	const char *base = strrchr(f->name, '/');

	return sign && base && f->kind == JOB_FILE_MEMORY && strncmp(base, sign, strlen(sign)) == 0;
}

static unsigned find(const struct job *job, const struct signs *s)
{
	unsigned by = 0;

	for (size_t i = 0; i < job->files; i++) {
		const struct job_file *f = &job->file[i];

		/* programs look for libraries in many places where they are not */
		if (f->kind == JOB_FILE_REGULAR && (f->counts.reads > 0 || f->counts.maps > 0) &&
		    has_part(f->name, s->libraries, 5))
			by |= BY_LIBRARY;
		if (is_memory(f, s->memory))
			by |= BY_MEMORY;
	}
	for (size_t i = 0; i < job->threads; i++)
		if (job->thread[i].name && begins(job->thread[i].name, s->threads, 3))
			by |= BY_THREAD;
	for (size_t i = 0; i < job->processes; i++)
		if (has_part(job->process[i].command, s->commands, 4))
			by |= BY_COMMAND;
	return by;
}

void account_framework(struct account *a)
{
	const char *text = NULL, *how = "";
	unsigned by = 0;

	for (size_t i = 0; i < FRAMEWORKS; i++) {
		unsigned found = find(a->job, &table[i]);

		if (!found)
			continue;
		by |= found;
		text = text ? account_text(a, "%s, %s", text, table[i].name) : table[i].name;
	}
	if (!text)
		return;
	how = by & BY_MEMORY    ? "names of shared memory"
	      : by & BY_LIBRARY ? "libraries that were opened"
	      : by & BY_THREAD  ? "names of threads"
				: "the command";
	account_inferred(a, ACCOUNT_FRAMEWORK, 0, how, 0, 0)->text = text;
}
