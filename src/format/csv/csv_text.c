/* Makes the text of a csv file. */
#include "format/csv/csv_text.h"

#include <assert.h>
#include <string.h>

void csv_text_start(struct csv_text *t, const struct file_spec *f,
		    const struct content_source *content, unsigned char *elements)
{
	*t = (struct csv_text){.f = f,
			       .content = content,
			       .put = csv_put_of(f->elem),
			       .elements = elements,
			       .columns = file_spec_elements(f),
			       .rows_left = f->samples};
	assert(t->put);
	t->bytes = strcmp(f->elem->name, "uint8") == 0;
	for (unsigned v = 0; t->bytes && v < 256; v++) {
		unsigned char byte = (unsigned char)v;
		char text[CSV_NUMBER_MAX] = {0}, *end = t->put(text, &byte);

		*end++ = ',';
		memcpy(t->byte_texts[v], text, 4);
		t->byte_chars[v] = (unsigned char)(end - text);
	}
}

static void make_elements(struct csv_text *t)
{
	uint64_t left = (t->columns * t->rows_left - t->column) * t->f->elem->bytes;

	t->end = left < CSV_ELEMENTS ? (size_t)left : CSV_ELEMENTS;
	t->at = 0;
	t->content->fill(t->content, t->f->file_index, t->offset, t->elements, t->end);
	t->offset += t->end;
}

/* n elements of one row, each with a comma. */
static char *put_run(const struct csv_text *t, char *out, size_t n)
{
	const unsigned char *p = t->elements + t->at;
	size_t bytes = t->f->elem->bytes;

	for (size_t i = 0; i < n; i++) {
		out = t->put(out, p + i * bytes);
		*out++ = ',';
	}
	return out;
}

/* The same for bytes, the usual case: four characters are stored and as many kept as count. */
static char *put_bytes(const struct csv_text *t, char *out, size_t n)
{
	const unsigned char *p = t->elements + t->at;

	for (size_t i = 0; i < n; i++) {
		memcpy(out, t->byte_texts[p[i]], 4);
		out += t->byte_chars[p[i]];
	}
	return out;
}

size_t csv_text_next(struct csv_text *t, char *out, size_t room)
{
	const char *end = out + room;
	char *p = out;

	assert(room >= CSV_NUMBER_MAX);
	while (t->rows_left && (size_t)(end - p) >= CSV_NUMBER_MAX) {
		size_t n = (size_t)(end - p) / CSV_NUMBER_MAX, bytes = t->f->elem->bytes;

		if (t->columns == 0) {
			*p++ = '\n';
			t->rows_left--;
			continue;
		}
		if (t->at == t->end)
			make_elements(t);
		if (n > (t->end - t->at) / bytes)
			n = (t->end - t->at) / bytes;
		if (n > t->columns - t->column)
			n = (size_t)(t->columns - t->column);
		p = t->bytes ? put_bytes(t, p, n) : put_run(t, p, n);
		t->at += n * bytes;
		t->column += n;
		if (t->column == t->columns) {
			p[-1] = '\n';
			t->column = 0;
			t->rows_left--;
		}
	}
	return (size_t)(p - out);
}
