/* stoker verify: every byte of a dataset, compared with what generation would write. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/say.h"
#include "base/str.h"
#include "base/thread.h"
#include "cli/args.h"
#include "cli/cli.h"
#include "cli/job.h"
#include "conf/override.h"
#include "dataset/manifest.h"
#include "dataset/presence.h"
#include "launch/launcher.h"
#include "os/signals.h"
#include "os/sysinfo.h"
#include "result/json_out.h"
#include "screen/progress.h"
#include "store/store.h"

static struct stop_flag stop;

static struct progress_view view;

/* The threads that read count; one of its own tells. */
struct watch {
	pthread_t thread;
	_Atomic uint32_t quit;
	_Atomic int phase; /* enum progress_phase */
	_Atomic uint64_t looked, read;
	_Atomic uint64_t files, bytes; /* in all */
	int64_t begin_ns;
};

static void tell_progress(struct watch *h)
{
	struct run_progress p = {
		.phase = (enum progress_phase)atomic_load_explicit(&h->phase, memory_order_acquire),
		.elapsed_ns = clock_now_ns() - h->begin_ns};

	p.done = atomic_load_explicit(p.phase == PROGRESS_CHECK ? &h->looked : &h->read,
				      memory_order_relaxed);
	p.total = atomic_load_explicit(p.phase == PROGRESS_CHECK ? &h->files : &h->bytes,
				       memory_order_relaxed);
	p.bytes = p.phase == PROGRESS_CHECK ? 0 : p.done;
	p.total = p.done > p.total ? p.done : p.total;
	progress_show(&view, &p);
}

static void *watch_main(void *arg)
{
	struct watch *h = arg;

	while (!atomic_load_explicit(&h->quit, memory_order_acquire)) {
		tell_progress(h);
		thread_wait(&h->quit, 0, NS_PER_S / 10);
	}
	tell_progress(h);
	return NULL;
}

static uint64_t files_looked_at(const struct dataset *d)
{
	uint64_t n = 0;

	for (int kind = 0; kind < DATASET_KINDS; kind++)
		n += presence_looks(d->workload, d->files[kind]);
	return n;
}

static int watched(const struct workload *w, struct watch *h, struct verify_result *v,
		   struct err *e)
{
	struct presence_options look = {
		.threads = host_threads(), .stop = &stop, .done = &h->looked};
	struct presence_result presence = {0};
	struct dataset d = {0};
	struct store *s = NULL;
	int rc = store_create(&s, w->storage.store, node_path(w->tree, "workload.storage"), e);

	if (rc == 0 && w->dataset.names == NAMES_LISTED)
		rc = err_set(e, ERR_USAGE,
			     "what the files in '%.200s' should hold is not known, because others "
			     "wrote them (dataset.names=listed): only a generated dataset can be "
			     "verified",
			     w->dataset.data_folder);
	if (rc == 0)
		rc = dataset_init(&d, w, e);
	if (rc == 0) {
		atomic_store_explicit(&h->files, files_looked_at(&d), memory_order_relaxed);
		rc = dataset_check(&d, s, true, &look, &presence, e);
	}
	if (rc == 0) {
		atomic_store_explicit(&h->bytes, d.likely_bytes, memory_order_relaxed);
		/* after the total that belongs to it */
		atomic_store_explicit(&h->phase, PROGRESS_VERIFY, memory_order_release);
		rc = dataset_verify(&d, s, host_threads(), &stop, &h->read, v, e);
	}
	dataset_release(&d);
	store_destroy(s);
	return rc;
}

static void print_found(const struct verify_result *v, double seconds, const char *outcome)
{
	char bytes[32], rate[32];

	if (v->files)
		say(stdout, "%llu files, %s compared, %s/s: %s\n", (unsigned long long)v->files,
		    str_bytes((double)v->bytes, bytes, sizeof(bytes)),
		    str_bytes(seconds > 0 ? (double)v->bytes / seconds : 0, rate, sizeof(rate)),
		    outcome);
	if (v->bad_files)
		say(stdout,
		    "%llu file%s or cannot be read; 'stoker generate' writes a "
		    "file again after it was removed\n",
		    (unsigned long long)v->bad_files, v->bad_files == 1 ? " differs" : "s differ");
}

static void put_found(const struct verify_result *v, double seconds, const char *outcome,
		      const char *folder)
{
	json_t *o = json_object();

	json_put_text(o, "schema", "stoker-verify/1");
	json_put_text(o, "folder", folder);
	json_put_text(o, "outcome", outcome);
	json_put_int(o, "files_compared", v->files);
	json_put_int(o, "bytes_compared", v->bytes);
	json_put_int(o, "bad_files", v->bad_files);
	if (v->bad_files)
		json_put_text(o, "first_difference", v->first.text);
	json_put_real(o, "seconds", seconds);
	cli_put_json(o);
}

static int verify_dataset(const struct cli_args *a, const struct workload *w, struct err *e)
{
	struct verify_result v = {0};
	struct watch h = {.phase = PROGRESS_CHECK, .begin_ns = clock_now_ns()};
	const struct progress_request request = cli_progress(a);
	const char *outcome;
	double seconds;
	/* from here on somebody looks at the stop flag; until then a signal ends the program */
	int rc = signals_start(&(struct signal_work){.stop = &stop}, e);

	if (rc == 0)
		rc = progress_begin(&view, &request, true, 0, e);
	if (rc < 0)
		return rc;
	rc = thread_start(&h.thread, watch_main, &h, 0, "watch", e);
	if (rc == 0) {
		rc = watched(w, &h, &v, e);
		atomic_store_explicit(&h.quit, 1, memory_order_release);
		thread_wake(&h.quit, 1);
		pthread_join(h.thread, NULL);
	}
	progress_done(&view, rc);
	seconds = (double)(clock_now_ns() - h.begin_ns) / 1e9;
	outcome = v.bad_files ? "different" : rc < 0 ? "not finished" : "every byte as generated";
	if (a->json && v.files)
		put_found(&v, seconds, outcome, w->dataset.data_folder);
	else if (!a->json)
		print_found(&v, seconds, outcome);
	return rc;
}

/* A folder with a manifest says itself what it should hold: its keys come before those typed. */
static int take_folder(struct cli_args *a, struct str_list *keys, struct err *e)
{
	struct store *s = NULL;
	struct io io = {0};
	int rc, kind = a->workload ? path_look(a->workload, e) : PATH_ABSENT;

	if (kind < 0)
		return kind;
	if (a->workload && strchr(a->workload, '/') && kind == PATH_ABSENT)
		return err_set(e, ERR_USAGE,
			       "'%s' does not exist: name the dataset's folder, or a workload",
			       a->workload);
	if (kind != PATH_FOLDER)
		return 0;
	rc = store_create(&s, "posix", NULL, e);
	io.store = s;
	if (rc == 0)
		rc = manifest_keys(&io, a->workload, keys, e);
	store_destroy(s);
	if (rc < 0)
		return rc;
	AUTO_FREE char *absolute = path_absolute(a->workload);

	override_put_text(keys, "dataset.data_folder", absolute);
	str_list_put_first(&a->override, keys, 0);
	a->workload = "default";
	a->quiet = true;
	return 0;
}

static int verify(struct cli_args *a, struct err *e)
{
	struct str_list keys = {0};
	struct workload w = {0};
	bool quiet = a->quiet;
	int rc = take_folder(a, &keys, e);

	if (rc == 0)
		rc = cli_load_workload(a, clock_wall_ns(), &w, e);
	a->quiet = quiet; /* what a folder says of itself is nothing to warn of */
	if (rc == 0)
		rc = verify_dataset(a, &w, e);
	workload_release(&w);
	str_list_release(&keys);
	return rc;
}

static int verify_main(const struct command *c, int argc, char **argv)
{
	struct cli_args a;
	struct err e = {0};
	struct job j = {.speaks = launcher_leads()};
	int status = 0, rc = cli_args_parse(c, &a, argc, argv, &e);

	if (rc == 0)
		rc = job_begin(&j, &a, &stop, &status, &e);
	if (rc == 0)
		rc = signals_start(&(struct signal_work){0}, &e);
	if (rc == 0 && a.json)
		cli_only_json();
	/* of several processes one compares, and the others wait for its outcome */
	if (rc == 0 && job_leads(&j))
		rc = verify(&a, &e);
	if (rc <= 0)
		rc = job_agree(&j, rc, &e);
	if (rc < 0)
		status = job_fail(&j, &e);
	job_end(&j);
	cli_args_release(&a);
	return status;
}

/* clang-format off */
static const struct flag *const flags[] = {
	F(OPERAND, "FOLDER",
	  "the folder of a dataset; its manifest (stoker_manifest.json) says what it should hold"),
	F(OPERAND, "WORKLOAD",
	  "or a built-in workload ('stoker show workloads' lists them) or a YAML file: the "
	  "dataset in its dataset.data_folder is compared"),
	F(OPERAND, "key=value",
	  "any key of the workload; with a folder, it replaces what the manifest says"),
	&flag_config_dir, &flag_strict, &flag_print_json, &flag_quiet, &flag_progress,
	&flag_progress_file, &flag_progress_interval, NULL};
/* clang-format on */

const struct command command_verify = {
	.name = "verify",
	.operands = "FOLDER|WORKLOAD [key=value ...]",
	.help = "Compare every byte of a dataset with what generation writes.",
	.flags = flags,
	.examples = {"stoker verify data/cosmoflow",
		     "stoker verify cosmoflow_h100 dataset.num_files_train=64"},
	.carry_out = verify_main,
};
