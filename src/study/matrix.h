#pragma once
/* The design as a matrix: a line for each model and set of overrides, a column for each number of
 * processes, a state in each cell. */
#include "study/state.h"

/* For a terminal of `width` columns, with colours or plain letters; texts and columns that do not
 * fit go on below. */
void study_matrix_text(const struct study_plan *p, const struct run_status *status, bool color,
		       int width, struct buf *out);
/* As a picture (SVG). */
void study_matrix_svg(const struct study_plan *p, const struct run_status *status, struct buf *out);
