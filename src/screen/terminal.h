#pragma once
/* A terminal that lines are drawn on in place: its size, what it can do, and a block of lines that
 * stays below everything else that is written.
 *
 * The cursor rests on the line below the block and is hidden only within one write, so that nothing
 * needs to be put back when the process ends, however it does. Lines must be shorter than the
 * terminal is wide. */
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

struct terminal {
	int fd;
	bool utf8, colour;
	bool reflows; /* it breaks lines anew when its width changes */
	/* the block on the screen */
	unsigned *length; /* columns of each of its lines */
	unsigned lines, capacity;
	/* Lines of earlier blocks that a lower screen pushed out at its top: they come back when it
	 * grows, right above the block. `joined`: the last one was cut in two, and the terminal
	 * takes the block's first line for the rest of it. */
	unsigned ghost[64], ghosts;
	bool joined;
	unsigned columns, rows; /* of the terminal when it was drawn */
	unsigned continued;     /* signals_continued() when it was drawn */
	bool line;              /* terminal_line has one */
	bool broken;            /* it is gone: nothing more is written */
};

/* Whether a block can be drawn: a terminal, and neither TERM=dumb nor none. */
bool terminal_can_draw(int fd);
/* Whether what is written there may have colours: NO_COLOR is not set, either. */
bool terminal_has_colour(int fd);
/* Reads the environment (locale, NO_COLOR, TERM). */
void terminal_init(struct terminal *t, int fd);
void terminal_release(struct terminal *t);
/* Its columns; 100 where there is none, or it does not say. */
unsigned terminal_width(int fd);
/* As it is now; where the terminal does not say, COLUMNS and LINES, or 80 by 24. */
void terminal_size(const struct terminal *t, unsigned *columns, unsigned *rows);
/* True when a write would not wait, and this process may write without being stopped. */
bool terminal_ready(const struct terminal *t);

/* Columns that a text takes without its colours (ESC [ ... m); each character beyond ASCII counts
 * as one. */
unsigned terminal_columns(const char *text, size_t n);
/* Puts `above` (NULL: nothing; any text that ends with a line break) where the block was and draws
 * `block`, lines that each end with a line break, below it. An empty block leaves nothing. One
 * write. */
void terminal_draw(struct terminal *t, const struct buf *above, const struct buf *block);
/* Rewrites one line, cut at the terminal's width; NULL: clears it, if there is one. For
 * commands that draw nothing else. */
void terminal_line(struct terminal *t, const struct buf *text);
