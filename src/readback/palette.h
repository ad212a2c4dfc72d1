#pragma once
/* Colors and marks of models, the same on the page and in the figures of one report. */
#include "readback/groups.h"

#define PALETTE_COLORS 8
#define PALETTE_MARKS 6

enum palette_mark {
	MARK_CIRCLE,
	MARK_SQUARE,
	MARK_TRIANGLE,
	MARK_TRIANGLE_DOWN,
	MARK_DIAMOND,
	MARK_PENTAGON
};

struct palette_color {
	const char *light, *dark; /* "#rrggbb", on a light and on a dark background */
};
/* Each has a contrast of at least 3 to 1 with its background, and neighbors differ in brightness as
 * well as in hue. */
extern const struct palette_color palette[PALETTE_COLORS];

/* Place of a model in the order of all models of the report; 0 for one that it does not have. */
size_t palette_place(const struct run_groups *g, const char *model);
/* Of a place: beyond the last color they begin again, with other marks. */
const struct palette_color *palette_color_of(size_t place);
enum palette_mark palette_mark_of(size_t place);
