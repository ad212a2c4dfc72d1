#pragma once
/* The storage of a workload that does what a job did: a server of objects, where its data are
 * there. */
#include "base/buf.h"
#include "trace/profile/profile.h"

/* Appends the section `storage`, where the job's dataset are objects; of one that can only be
 * assumed (the bucket, of a log with hashed names), a comment says so. */
void workload_put_storage(const struct profile *a, struct buf *out);
