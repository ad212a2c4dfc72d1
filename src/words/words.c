/* Facts, and how their sentences are made from the rows. */
#include "words/words.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/say.h"
#include "base/str.h"

static const struct row {
	const char *name, *figures, *texts, *brief, *full;
} rows[REASONS] = {
#define WORDS(id, name, figures, texts, brief, full)                                               \
	[REASON_##id] = {name, figures, texts, brief, full},
#include "words/words.def"
#undef WORDS
};

static unsigned words_in(const char *list)
{
	unsigned n = 0;

	for (const char *s = list; *s; n++) {
		s += strcspn(s, " ");
		s += strspn(s, " ");
	}
	return n;
}

static const char *word_at(const char *list, unsigned i, size_t *length)
{
	while (i--) {
		list += strcspn(list, " ");
		list += strspn(list, " ");
	}
	*length = strcspn(list, " ");
	return list;
}

static const char *copy_word(const char *list, unsigned i, char *out, unsigned size)
{
	size_t n;
	const char *s = word_at(list, i, &n);

	snprintf(out, size, "%.*s", (int)n, s);
	return out;
}

/* The place of a word in a list; UINT32_MAX: it is not there. */
static unsigned place_of(const char *list, const char *word, size_t length)
{
	unsigned n = words_in(list);

	for (unsigned i = 0; i < n; i++) {
		size_t has;
		const char *s = word_at(list, i, &has);

		if (has == length && memcmp(s, word, length) == 0)
			return i;
	}
	return UINT32_MAX;
}

/* ---- facts ---- */

struct fact fact_of(enum reason reason, unsigned figures, const double *figure)
{
	struct fact f = {.reason = reason};

	assert(reason > REASON_NONE && reason < REASONS);
	assert(figures == words_in(rows[reason].figures) && figures <= FACT_FIGURES);
	for (unsigned i = 0; i < FACT_FIGURES; i++)
		f.figure[i] = i < figures ? figure[i] : NAN;
	return f;
}

struct fact fact_with(struct fact f, unsigned i, const char *text)
{
	assert(i < FACT_TEXTS && i < words_in(rows[f.reason].texts));
	/* escaped here, once: whatever prints it finds the same text */
	say_escape(f.text[i], sizeof(f.text[i]), text ? text : "", text ? strlen(text) : 0,
		   SAY_LINE);
	return f;
}

struct fact fact_with_clause(struct fact f, unsigned i, const char *sentence)
{
	size_t n;

	f = fact_with(f, i, sentence);
	n = strlen(f.text[i]);
	if (n && f.text[i][n - 1] == '.')
		f.text[i][n - 1] = '\0';
	return f;
}

struct fact *fact_add(struct fact_list *list, struct fact f)
{
	static struct fact unused;

	if (list->count == FACTS_MOST)
		return &unused;
	list->fact[list->count] = f;
	return &list->fact[list->count++];
}

const struct fact *fact_first(const struct fact_list *list, enum reason reason)
{
	for (uint32_t i = 0; i < list->count; i++)
		if (list->fact[i].reason == reason)
			return &list->fact[i];
	return NULL;
}

const char *reason_name(enum reason reason)
{
	return reason > REASON_NONE && reason < REASONS ? rows[reason].name : "";
}

enum reason reason_of(const char *name)
{
	for (int i = REASON_NONE + 1; name && i < REASONS; i++)
		if (strcmp(rows[i].name, name) == 0)
			return (enum reason)i;
	return REASON_NONE;
}

unsigned reason_figures(enum reason reason)
{
	return words_in(rows[reason].figures);
}

unsigned reason_texts(enum reason reason)
{
	return words_in(rows[reason].texts);
}

const char *reason_figure_name(enum reason reason, unsigned i, char *out, unsigned size)
{
	return copy_word(rows[reason].figures, i, out, size);
}

const char *reason_text_name(enum reason reason, unsigned i, char *out, unsigned size)
{
	return copy_word(rows[reason].texts, i, out, size);
}

/* ---- sentences ---- */

static void cut(struct buf *b, size_t length)
{
	if (length < b->len) {
		b->len = length;
		b->data[length] = '\0';
	}
}

static void put_figure(struct buf *b, double v, const char *how, size_t length)
{
	char out[32];

#define IS(word) (length == sizeof(word) - 1 && memcmp(how, word, length) == 0)
	if (length == 0)
		buf_puts(b, NUMBER(v, 3));
	else if (IS("bytes"))
		buf_puts(b, str_bytes(v, out, sizeof(out)));
	else if (IS("rate"))
		buf_printf(b, "%s/s", str_bytes(v, out, sizeof(out)));
	else if (IS("time"))
		buf_puts(b, str_seconds(v, out, sizeof(out)));
	else if (IS("s"))
		buf_printf(b, "%s s", NUMBER(v, 3));
	else if (IS("ms"))
		buf_printf(b, "%s ms", NUMBER(1e3 * v, 3));
	else if (IS("us"))
		buf_printf(b, "%s us", NUMBER(1e6 * v, 3));
	else if (IS("percent"))
		buf_printf(b, "%.1f %%", v);
	else if (IS("share"))
		buf_printf(b, "%.0f %%", 100 * v);
	else if (length == 2 && how[1] == 'g')
		buf_puts(b, NUMBER(v, (unsigned)(how[0] - '0')));
	else if (length == 1 && how[0] >= '0' && how[0] <= '9')
		buf_printf(b, "%.*f", how[0] - '0', v);
	else
		assert(false && "a row of words.def has an unknown form");
#undef IS
}

/* What is between braces, at `s`. false: it is not known. */
static bool put_slot(struct buf *b, const struct fact *f, const char *s, size_t length)
{
	const struct row *row = &rows[f->reason];
	size_t name = strcspn(s, ":?}");
	unsigned i = place_of(row->figures, s, name);

	if (i == UINT32_MAX) {
		i = place_of(row->texts, s, name);
		assert(i < FACT_TEXTS);
		buf_puts(b, f->text[i]);
		return f->text[i][0] != '\0';
	}
	if (isnan(f->figure[i])) {
		buf_puts(b, "unknown");
		return false;
	}
	if (s[name] == '?') {
		const char *one = s + name + 1, *other = memchr(one, '|', length - name - 1);

		assert(other);
		if (f->figure[i] == 1)
			buf_append(b, one, (size_t)(other - one));
		else
			buf_append(b, other + 1, length - (size_t)(other + 1 - s));
	} else {
		put_figure(b, f->figure[i], s + name + (s[name] == ':'),
			   length - name - (s[name] == ':'));
	}
	return true;
}

static void put_form(struct buf *b, const struct fact *f, const char *s)
{
	size_t bracket = 0;
	bool inside = false, known = true;

	for (; *s; s++) {
		if (*s == '{') {
			const char *end = strchr(s, '}');

			assert(end);
			known = put_slot(b, f, s + 1, (size_t)(end - s - 1)) && known;
			s = end;
		} else if (*s == '[' && !inside) {
			inside = known = true;
			bracket = b->len;
		} else if (*s == ']' && inside) {
			inside = false;
			if (!known)
				cut(b, bracket);
		} else {
			buf_putc(b, *s);
		}
	}
}

void words_put(struct buf *b, const struct fact *f, enum words_form form)
{
	const struct row *row = &rows[f->reason];

	if (f->reason == REASON_NONE)
		return;
#ifdef STOKER_BARE_WORDS
	buf_puts(b, row->name);
	if (form == WORDS_LONG)
		buf_putc(b, '.');
	(void)put_form;
#else
	if (row->brief[0] && (form == WORDS_SHORT || !row->full[0])) {
		size_t begin = b->len;

		put_form(b, f, row->brief);
		if (form == WORDS_SHORT)
			return;
		if (b->len > begin && b->data[begin] >= 'a' && b->data[begin] <= 'z')
			b->data[begin] -= 'a' - 'A';
		buf_putc(b, '.');
		return;
	}
	put_form(b, f, row->full);
	if (form == WORDS_SHORT && b->len && b->data[b->len - 1] == '.')
		cut(b, b->len - 1);
#endif
}

void words_put_all(struct buf *b, const struct fact_list *list, uint32_t from, uint32_t to,
		   enum words_form form)
{
	size_t begin = b->len;

	for (uint32_t i = from; i < to && i < list->count; i++) {
		if (b->len > begin)
			buf_puts(b, form == WORDS_LONG ? " " : "; ");
		words_put(b, &list->fact[i], form);
	}
}

char *words_of(const struct fact *f, enum words_form form, char *out, unsigned size)
{
	struct buf b = {0};

	words_put(&b, f, form);
	snprintf(out, size, "%s", b.data ? b.data : "");
	out[utf8_whole(out, strlen(out))] = '\0';
	buf_release(&b);
	return out;
}
