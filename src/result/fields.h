#pragma once
/* The figures of result.json: each is one row of fields_table.h, by which it is written, read back
 * and described. Nothing else names a key of that file. */
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* F_TRAINING_WHOLE_AU and so on. */
#define FIGURE(S, ID, ...) F_##S##_##ID,
#define ONE(S, ID, ...) F_##S##_##ID,
#define MANY(S, ID, ...) F_##S##_##ID,
#define NAMED(S, ID, ...) F_##S##_##ID,
#define PARTS(S, ID, ...) F_##S##_##ID,
enum field {
#include "result/fields_table.h"
	FIELDS
};

/* How many SHOWN rows there are: for sizes of arrays. */
#define SHOWN(...) +1
enum {
	SHOWN_FIGURES = 0
#include "result/fields_table.h"
};

/* ---- read back ---- */

/* A part of a result that was read: the whole file, or an object or list of it. What is absent is
 * NULL, and so is all that is below it. Figures that are absent, null or of another type are NaN,
 * false and NULL. */
struct part;
const struct part *part_whole(const json_t *result);
/* An object or list (F_TRAINING_EPOCHS), an entry of a list, an entry of one with names. */
const struct part *part(const struct part *of, enum field id);
size_t part_count(const struct part *list);
const struct part *part_at(const struct part *list, size_t i);
/* By the number of the name; and of a PARTS row the number itself. */
const struct part *part_named(const struct part *of, enum field id, size_t i);
double figure_named(const struct part *of, enum field id, size_t i);

double figure(const struct part *of, enum field id);
bool figure_flag(const struct part *of, enum field id);
const char *figure_text(const struct part *of, enum field id);
/* What is no figure (verdicts, models, configuration): borrowed; NULL. */
const json_t *figure_json(const struct part *of, enum field id);

/* SHOWN_FIGURES, for loops: compilers warn of those that cannot run. */
size_t shown_count(void);
/* SHOWN row `i` of them: its figure, its unit ("": none), its keys from the top of the
 * file, "training.whole_run_au_percent". */
double shown_figure(const struct part *whole, size_t i);
const char *shown_unit(size_t i);
#define SHOWN_NAME_MAX 200
void shown_name(size_t i, char out[SHOWN_NAME_MAX]);

/* The key of a figure. */
const char *field_key(enum field id);

/* docs/result.md. */
void fields_markdown(struct buf *out);
