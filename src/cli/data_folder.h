#pragma once
/* --data FOLDER: what the folder says of the dataset in it, as keys of the workload. */
#include "cli/args.h"

/* Puts the keys before the overrides that were typed, so that those win. Of a folder without files
 * only dataset.data_folder is set, if data is to be generated (`generates`). ERR_USAGE when its
 * files cannot be read by this program: the error says how to get ones that can. */
int data_folder_apply(struct cli_args *a, bool generates, struct err *e);
/* After the workload is loaded: names what was typed and is not what the folder says, on the
 * terminal unless a->quiet, and in w->notes. */
void data_folder_conflicts(const struct cli_args *a, struct workload *w);
/* After the workload is loaded: ERR_USAGE where --small would generate among files of a format that
 * are somebody's own. */
int data_folder_refuse_mixing(const struct cli_args *a, const struct workload *w, struct err *e);
