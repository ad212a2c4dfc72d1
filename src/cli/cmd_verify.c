/* stoker verify: every byte of a dataset, compared with what generation would write. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/str.h"
#include "base/sysinfo.h"
#include "cli/args.h"
#include "cli/cli.h"
#include "cli/job.h"
#include "cli/signals.h"
#include "conf/override.h"
#include "dataset/manifest.h"
#include "dataset/verify.h"
#include "store/store.h"

extern const struct command command_verify;

static const char help[] =
	"  FOLDER          of a dataset with its manifest (stoker_manifest.json), which\n"
	"                  says what should be there\n"
	"  WORKLOAD        or a built-in workload (stoker show workloads) or a YAML file,\n"
	"                  whose dataset is compared where dataset.data_folder says\n"
	"  key=value       any key of the workload; with a folder it changes what the\n"
	"                  manifest says\n"
	"  --config-dir DIR\n"
	"                  look for workloads here first\n"
	"  --strict        an unknown key is an error, not a warning\n"
	"  -q, --quiet     no warnings on the terminal\n";

static struct stop_flag stop;

static int verify_dataset(const struct workload *w, struct err *e)
{
	int64_t begin = clock_now_ns();
	struct verify_result v = {0};
	struct presence_options look = {.threads = host_threads(), .stop = &stop};
	struct presence_result presence = {0};
	struct dataset d = {0};
	struct store *s = NULL;
	char bytes[32], rate[32];
	double seconds;
	int rc;

	rc = store_create(&s, w->storage.store, node_path(w->tree, "workload.storage"), e);
	if (rc == 0)
		rc = dataset_init(&d, w, e);
	if (rc == 0)
		rc = dataset_check(&d, s, true, &look, &presence, e);
	if (rc == 0)
		rc = dataset_verify(&d, s, host_threads(), &stop, NULL, &v, e);
	seconds = (double)(clock_now_ns() - begin) / 1e9;
	if (v.files)
		printf("%llu files, %s compared, %s/s: %s\n", (unsigned long long)v.files,
		       str_bytes((double)v.bytes, bytes, sizeof(bytes)),
		       str_bytes(seconds > 0 ? (double)v.bytes / seconds : 0, rate, sizeof(rate)),
		       v.bad_files ? "DIFFERENT"
		       : rc < 0    ? "not finished"
				   : "every byte as generated");
	if (v.bad_files)
		printf("%llu files differ\n", (unsigned long long)v.bad_files);
	dataset_release(&d);
	store_destroy(s);
	return rc;
}

/* A folder with a manifest says itself what it should hold: its keys come before those typed. */
static int take_folder(struct cli_args *a, struct str_list *keys, struct err *e)
{
	struct store *s = NULL;
	struct io io = {0};
	const char **all;
	int rc;

	if (a->workload && strchr(a->workload, '/') && !file_exists(a->workload) &&
	    !file_is_dir(a->workload))
		return err_set(e, ERR_USAGE,
			       "'%s' does not exist: give the dataset's folder, or a workload",
			       a->workload);
	if (!a->workload || !file_is_dir(a->workload))
		return 0;
	rc = store_create(&s, "posix", NULL, e);
	io.store = s;
	if (rc == 0)
		rc = manifest_keys(&io, a->workload, keys, e);
	store_destroy(s);
	if (rc < 0)
		return rc;
	AUTO_FREE char *absolute = path_absolute(a->workload);
	AUTO_FREE char *quoted = override_quote(absolute);

	keys->v = xrealloc(keys->v, (keys->n + 1) * sizeof(*keys->v));
	keys->v[keys->n++] = xasprintf("++workload.dataset.data_folder=%s", quoted);
	all = xcalloc(keys->n + a->overrides + 1, sizeof(*all));
	for (size_t i = 0; i < keys->n; i++)
		all[i] = keys->v[i];
	for (size_t i = 0; i < a->overrides; i++)
		all[keys->n + i] = a->override[i];
	free(a->override);
	a->override = all;
	a->overrides += keys->n;
	a->workload = "default";
	a->quiet = true;
	return 0;
}

static int verify(struct cli_args *a, struct err *e)
{
	struct str_list keys = {0};
	struct workload w = {0};
	int rc = take_folder(a, &keys, e);

	if (rc == 0)
		rc = cli_load_workload(a, clock_wall_ns(), &w, e);
	if (rc == 0)
		rc = verify_dataset(&w, e);
	workload_release(&w);
	str_list_release(&keys);
	return rc;
}

static int verify_main(int argc, char **argv)
{
	struct cli_args a;
	struct err e = {0};
	struct job j = {.speaks = true};
	int status = 0, rc = cli_args_parse(&a, argc, argv, &e);

	if (rc == 0 && a.help) {
		printf("usage: stoker %s\n\n%s\n%s", command_verify.usage, command_verify.help,
		       help);
	} else {
		if (rc == 0)
			rc = job_begin(&j, &a, &stop, &status, &e);
		if (rc == 0)
			rc = signals_start(&stop, &e);
		/* of several processes one compares, and the others wait for its outcome */
		if (rc == 0 && job_leads(&j))
			rc = verify(&a, &e);
		if (rc <= 0)
			rc = job_agree(&j, rc, &e);
		if (rc < 0)
			status = job_fail(&j, &e);
		job_end(&j);
	}
	cli_args_release(&a);
	return status;
}

const struct command command_verify = {
	.name = "verify",
	.usage = "verify FOLDER|WORKLOAD [key=value ...]",
	.help = "Compare every byte of a dataset with what generation writes.",
	.main = verify_main,
};
