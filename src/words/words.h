#pragma once
/* What the program says of a run: facts with their figures, and their sentences. Judging makes
 * facts; only this folder knows the sentences, and nothing reads a sentence back.
 *
 * A fact has a reason, a row of words.def and the files that it includes:
 *
 *     WORDS(CACHE_RESIDENT, "cache.resident", "cached dataset epoch", "",
 *           "{cached:bytes} of {dataset:bytes} were in the page cache",
 *           "{cached:bytes} of {dataset:bytes} of the dataset were in the page cache before epoch
 * {epoch}.")
 *
 * that is: the reason; its name in result.json; the names of its figures, in the order in which
 * they are given; the names of its texts, which come from outside (a file, a device, a key); the
 * short form, a clause without a full stop; the long form, whole sentences. An empty short form is
 * the long one without its full stop; an empty long form is the short one with a capital and a full
 * stop (WORDS_ONE).
 *
 * In a sentence {name} inserts a figure or a text. Figures: {name} three significant digits, a
 * whole number in full; {name:1} so many decimals; {name:4g} so many significant digits;
 * {name:bytes}; {name:rate} bytes/s; {name:s} seconds, {name:ms} and {name:us} seconds in these
 * units, three digits; {name:percent} one decimal and " %", {name:share} a part of 1 in whole
 * percent and " %"; {name:time} "3 min 05 s". {name?one|other}: by whether the figure is 1. A part
 * in brackets is left out where a figure in it is not known (NaN) or a text is empty; brackets do
 * not nest. */
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

enum reason {
	REASON_NONE,
#define WORDS(id, name, figures, texts, brief, full) REASON_##id,
#include "words/words.def"
#undef WORDS
	REASONS
};

#define FACT_FIGURES 12
#define FACT_TEXTS 2
struct fact {
	enum reason reason;
	double figure[FACT_FIGURES]; /* NAN: not known */
	char text[FACT_TEXTS][256];
};

#define FACTS_MOST 16
struct fact_list {
	uint32_t count;
	struct fact fact[FACTS_MOST]; /* in the order in which they are said */
};

/* FACT(CACHE_RESIDENT, bytes, dataset, epoch): the figures by the row's order, all of them. */
#define FACT(id, ...)                                                                              \
	fact_of(REASON_##id, sizeof((const double[]){0, ##__VA_ARGS__}) / sizeof(double) - 1,      \
		(const double[]){0, ##__VA_ARGS__} + 1)
struct fact fact_of(enum reason reason, unsigned figures, const double *figure);
/* The same with text `i` (by the row's order), cut at the end of a character where it is too long.
 * NULL is "". */
struct fact fact_with(struct fact f, unsigned i, const char *text);
/* The same with a sentence, as a clause: without its full stop. */
struct fact fact_with_clause(struct fact f, unsigned i, const char *sentence);
/* Appends; what has no room is left out. Returns its place, which stays. */
struct fact *fact_add(struct fact_list *list, struct fact f);
/* The first of that reason; NULL: there is none. */
const struct fact *fact_first(const struct fact_list *list, enum reason reason);

/* ---- as data ---- */

/* The name of a reason ("cache.resident"), and back; REASON_NONE: no row has it. */
const char *reason_name(enum reason reason);
enum reason reason_of(const char *name);
/* How many figures and texts a reason has, and their names. The name stays. */
unsigned reason_figures(enum reason reason);
unsigned reason_texts(enum reason reason);
const char *reason_figure_name(enum reason reason, unsigned i, char *out, unsigned size);
const char *reason_text_name(enum reason reason, unsigned i, char *out, unsigned size);

/* ---- as sentences ---- */

enum words_form {
	WORDS_SHORT, /* a clause without a full stop */
	WORDS_LONG,  /* whole sentences */
};
/* Appends the sentence of a fact. With -DSTOKER_BARE_WORDS=ON, the name of its reason. */
void words_put(struct buf *b, const struct fact *f, enum words_form form);
/* Appends those of facts [from, to): long ones with blanks between, short ones with "; ". */
void words_put_all(struct buf *b, const struct fact_list *list, uint32_t from, uint32_t to,
		   enum words_form form);
/* The same of one fact into an array of `size` bytes; returns it. */
char *words_of(const struct fact *f, enum words_form form, char *out, unsigned size);
