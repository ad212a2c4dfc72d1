#pragma once
/* What all pages have in common: one self-contained file with a title, the style, data as JSON and
 * scripts. Private to page/. */
#include "base/buf.h"

extern const char frame_html[];

/* What a page puts into the frame. */
struct page_parts {
	const char *body; /* HTML inside of <main> */
	/* Each appends its part; title as HTML. style: beside page.css; NULL: none. */
	void (*title)(const void *arg, struct buf *out);
	void (*style)(const void *arg, struct buf *out);
	void (*data)(const void *arg, struct buf *out);
	void (*script)(const void *arg, struct buf *out);
	const void *arg;
};

/* Appends the whole page. */
void page_put_frame(const struct page_parts *p, struct buf *out);
