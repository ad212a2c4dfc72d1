#pragma once
/* A workload as the one file of a folder. Include after <cmocka.h>. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "workload/workload.h"

static char folder[] = "/tmp/stoker_test_workload_XXXXXX";

/* Loads `text` with the NULL-terminated overrides, and with what else the request says. */
static inline int load_request(const char *text, const char *const *overrides,
			       struct workload_request req, struct workload *w, struct err *e)
{
	AUTO_FREE char *path = path_join(folder, "w.yaml");

	req.workload = path;
	req.overrides = overrides;
	while (overrides && overrides[req.override_count])
		req.override_count++;
	assert_int_equal(file_write(path, text, strlen(text), e), 0);
	return workload_load(w, &req, e);
}

static inline int make_folder(void **state)
{
	(void)state;
	return mkdtemp(folder) ? 0 : -1;
}

static inline int drop_folder(void **state)
{
	AUTO_FREE char *path = path_join(folder, "w.yaml");

	(void)state;
	unlink(path);
	return rmdir(folder);
}
