#pragma once
/* The configuration of a result that is read back. For record.c. */
#include "readback/record.h"

/* Fills config, overrides, dlio and workload; what is missing is a note, what is damaged is damage.
 */
void record_read_config(struct run_record *r);
/* What is there and cannot be read, or not understood: `e` becomes damage. */
void record_note_fault(struct run_record *r, const struct err *e);
