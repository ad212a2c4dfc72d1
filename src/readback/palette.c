#include "readback/palette.h"

#include <string.h>

const struct palette_color palette[PALETTE_COLORS] = {
	{"#0f62b4", "#6ab0f3"}, /* blue */
	{"#c2500a", "#f0955a"}, /* orange */
	{"#0b7a5c", "#5fd0a5"}, /* green */
	{"#7d3fb2", "#c79bf0"}, /* purple */
	{"#b3174f", "#f57fa8"}, /* crimson */
	{"#00829b", "#5bcbe0"}, /* cyan */
	{"#6b4a2b", "#c9a27e"}, /* brown */
	{"#5b6470", "#a2abb6"}, /* gray */
};

size_t palette_place(const struct run_groups *g, const char *model)
{
	const char *last = NULL;
	size_t place = 0;

	/* groups are sorted by model */
	for (size_t i = 0; i < g->groups; i++) {
		const char *one = g->group[i].model;

		if (last && strcmp(last, one) == 0)
			continue;
		if (strcmp(one, model) == 0)
			return place;
		last = one;
		place++;
	}
	return 0;
}

const struct palette_color *palette_color_of(size_t place)
{
	return &palette[place % PALETTE_COLORS];
}

enum palette_mark palette_mark_of(size_t place)
{
	return (enum palette_mark)((place + place / PALETTE_COLORS) % PALETTE_MARKS);
}
