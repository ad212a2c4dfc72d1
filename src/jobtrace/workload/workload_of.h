#pragma once
/* A workload that does what a job did, of an account of it. */
#include "base/buf.h"
#include "base/err.h"
#include "jobtrace/account/account.h"

/* Appends the workload as YAML. What is assumed is marked by comments; what is not identifiable is
 * left out, and a comment says how it is given on the command line. `recorded`: the name of the
 * file beside it that has sizes and orders; NULL: none. */
void workload_of(const struct account *a, const char *recorded, struct buf *out);
/* Writes it to `path`, and sizes and orders to a file of this name and ".recorded" behind it, where
 * the log has them. `asked`: sentences, one a line, for what the user has to give. ERR_DATA where
 * the log shows no dataset. */
int workload_of_write(const struct account *a, const char *path, struct buf *asked, struct err *e);
