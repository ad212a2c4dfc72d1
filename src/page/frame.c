#include "page/frame.h"

#include <assert.h>
#include <string.h>

#include "page/page.h"
#include "readback/palette.h"

static void put_text(const struct page_parts *p, const char *text, struct buf *out);

static bool is(const char *name, size_t n, const char *part)
{
	return n == strlen(part) && memcmp(name, part, n) == 0;
}

static void put_colors(struct buf *out, bool dark)
{
	for (size_t i = 0; i < PALETTE_COLORS; i++)
		buf_printf(out, " --m%zu: %s;", i, dark ? palette[i].dark : palette[i].light);
}

static void put_palette(struct buf *out)
{
	buf_puts(out, ":root {");
	put_colors(out, false);
	buf_puts(out, " }\n@media screen and (prefers-color-scheme: dark) { :root {");
	put_colors(out, true);
	buf_puts(out, " } }\n");
}

static void put_part(const struct page_parts *p, const char *name, size_t n, struct buf *out)
{
	if (is(name, n, "TITLE")) {
		p->title(p->arg, out);
	} else if (is(name, n, "PALETTE")) {
		put_palette(out);
	} else if (is(name, n, "STYLE")) {
		buf_puts(out, page_css);
		if (p->style)
			p->style(p->arg, out);
	} else if (is(name, n, "BODY")) {
		put_text(p, p->body, out);
	} else if (is(name, n, "DATA")) {
		p->data(p->arg, out);
	} else if (is(name, n, "SCRIPT")) {
		p->script(p->arg, out);
	}
}

/* Every @ begins or ends the name of a part. */
static void put_text(const struct page_parts *p, const char *text, struct buf *out)
{
	const char *mark;

	while ((mark = strchr(text, '@'))) {
		const char *end = strchr(mark + 1, '@');

		assert(end);
		buf_append(out, text, (size_t)(mark - text));
		put_part(p, mark + 1, (size_t)(end - mark - 1), out);
		text = end + 1;
	}
	buf_puts(out, text);
}

void page_put_frame(const struct page_parts *p, struct buf *out)
{
	put_text(p, frame_html, out);
}
