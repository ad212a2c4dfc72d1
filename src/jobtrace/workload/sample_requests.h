#pragma once
/* Which requests read a sample of a job, and which followed the opening of its file: as lists of
 * the recorded file (workload/recorded_file.h). */
#include "jobtrace/account/account.h"
#include "workload/recorded_file.h"

struct sample_requests {
	struct recorded_requests *sample;  /* of each sample of the account */
	struct recorded_requests *opening; /* of each file of the job; where files stay open */
	unsigned char *bytes;              /* all lists lie in it */
};

/* Why the log does not show them: a clause without a full stop; NULL: it does. */
const char *sample_requests_unknown(const struct account *a);
/* Memory: 12 bytes a request to the dataset, beside 32 a visit. -ENOMEM; release in any case. */
int sample_requests_make(const struct account *a, struct sample_requests *out, struct err *e);
void sample_requests_release(struct sample_requests *s);
