#include "capacity/duty.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/path.h"
#include "base/str.h"
#include "dataset/dataset.h"
#include "format/format.h"
#include "workload/need.h"

double duty_need(const struct duty *d)
{
	return d->batch / d->step_s;
}

/* "unet3d_h100" is of an h100: what stands behind the last underscore, where it has a digit and is
 * no size of a model. */
static void split_name(struct duty *d, const struct workload *w)
{
	const char *last = strrchr(d->name, '_');

	snprintf(d->model, sizeof(d->model), "%s", w->model.name ? w->model.name : "");
	if (last && strlen(last) > 2 && strlen(last) < sizeof(d->accelerator) &&
	    isalpha((unsigned char)last[1]) && strpbrk(last, "0123456789"))
		snprintf(d->accelerator, sizeof(d->accelerator), "%s", last + 1);
}

static double file_bytes_of_sample(const struct workload *w)
{
	enum dataset_sizes how = SIZES_LIKELY;
	double bytes = w->dataset.record_length_bytes;
	struct err why = {0};
	struct dataset d;
	int rc = dataset_init_typical(&d, w, &why);

	if (rc == -ENOMEM)
		out_of_memory();
	if (rc == 0) {
		bytes = dataset_sample_file_bytes(&d, DATASET_TRAIN, &how);
		if (d.format->is.flags & FORMAT_NO_IO)
			bytes = 0;
		dataset_release(&d);
	}
	return bytes;
}

int duty_of_workload(struct duty *d, const struct workload *w, const char *name, struct err *e)
{
	struct need n;

	*d = (struct duty){.sample_bytes = file_bytes_of_sample(w),
			   .file_samples = (double)w->dataset.num_samples_per_file};
	snprintf(d->name, sizeof(d->name), "%s", name);
	need_find(w, NEED_TRAINING, d->sample_bytes, &n);
	if (!w->workflow.train || !n.known)
		return err_set(e, ERR_USAGE,
			       "the workload '%s' has no fixed need (%s): there is nothing to plan",
			       name, w->workflow.train ? n.why : "it does not train");
	d->batch = (double)n.batch;
	d->step_s = n.step_s;
	d->target = n.target;
	split_name(d, w);
	return 0;
}

int duty_load(struct duty *d, const char *name, const char *accelerator, struct err *e)
{
	AUTO_FREE char *full = accelerator ? xasprintf("%s_%s", name, accelerator) : xstrdup(name);
	const struct workload_request request = {.workload = full, .ranks = 1, .inspect = true};
	struct workload w = {0};
	int rc;

	for (char *c = full; accelerator && *c; c++)
		*c = (char)tolower((unsigned char)*c);
	rc = workload_load(&w, &request, e);
	if (rc == -ENOMEM)
		out_of_memory();
	if (rc == 0)
		rc = duty_of_workload(d, &w, str_ends(full, ".yaml") ? path_basename(full) : full,
				      e);
	workload_release(&w);
	return rc;
}

static bool near(double a, double b)
{
	return fabs(a - b) <= 0.01 * fmax(fabs(a), fabs(b));
}

bool duty_same(const struct duty *a, const struct duty *b)
{
	return near(a->batch, b->batch) && near(a->step_s, b->step_s) &&
	       near(a->sample_bytes, b->sample_bytes);
}
