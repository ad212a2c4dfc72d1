#pragma once
/* The folder of a search: of one search at a time, and of those with the same settings alone, so
 * that no other search's runs are taken or replaced. */
#include "base/folder_lock.h"
#include "capacity/capacity.h"
#include "codec/sha256.h"

struct search_folder {
	char key[SHA256_HEX]; /* of the settings; for capacity.json */
	struct file_lock lock;
};

/* Makes the folder and locks it. `of`: what is searched. ERR_USAGE when it has another search, one
 * that is running, or results of anything else. Close in any case. */
int search_folder_open(struct search_folder *f, const struct capacity_options *o, const char *of,
		       struct err *e);
void search_folder_close(struct search_folder *f);
