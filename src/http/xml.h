#pragma once
/* A small reader of the XML that servers answer with: elements and their texts. No DTD (refused),
 * so no entities but the five and characters by number; depth and sizes are bounded. */
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

#define XML_DEPTH_MAX 12
#define XML_NAME_MAX 64
#define XML_TEXT_MAX (1u << 20) /* of one element, and what lies between its children */

struct xml {
	const char *at, *end;
	int depth;
	char name[XML_DEPTH_MAX][XML_NAME_MAX]; /* of the open elements, without prefixes */
	struct buf text; /* since the last tag: at XML_CLOSE of a leaf all its text */
	bool empty;      /* "<a/>": its end comes next */
	bool pop;        /* the innermost element has ended */
	bool begun;
};

enum xml_event { XML_END, XML_OPEN, XML_CLOSE };

void xml_begin(struct xml *x, const char *text, size_t n);
/* The next event, or ERR_DATA with the end of a sentence ("malformed XML: ..."). At XML_CLOSE the
 * element is still the innermost one. */
int xml_next(struct xml *x, struct err *e);
/* Whether the open elements are exactly these: "Root/Child/Leaf"; "*" is any name. */
bool xml_is(const struct xml *x, const char *path);
/* The text of the element that closes; never NULL. */
const char *xml_text(const struct xml *x);
void xml_end(struct xml *x);
