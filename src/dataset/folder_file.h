#pragma once
/* The file that lists the files of a kind's folder, of formats that have one (is.folder_file):
 * written once all of them are there. Nothing where the format has none. */
#include <stdint.h>

#include "dataset/dataset.h"

/* The largest that is read. */
#define FOLDER_FILE_MAX (256u << 20)

/* Writes it for each kind; never one that is not whole under its name. */
int folder_file_write(const struct dataset *d, struct store *store, struct err *e);
/* Compares it with what would be written: ERR_DATA names the file and the first byte. *bytes grows
 * by what was compared. */
int folder_file_verify(const struct dataset *d, struct store *store, uint64_t *bytes,
		       struct err *e);
/* Whether it lists the files of the first `kinds` kinds, whoever wrote it: ERR_DATA with a
 * sentence.
 */
int folder_file_check(const struct dataset *d, struct store *store, int kinds, struct err *e);
/* None is no error. */
int folder_file_remove(const struct dataset *d, struct store *store, struct err *e);
