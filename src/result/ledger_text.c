/* The table of the ledger of bytes in the text report. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "judge/ledger.h"

#define COLUMNS 100
#define WHY_INDENT 6

/* In lines of at most COLUMNS. */
static void put_why(struct buf *out, const char *why)
{
	size_t room = COLUMNS - WHY_INDENT;

	while (*why) {
		size_t n = strlen(why);

		if (n > room)
			for (n = room; n > 1 && why[n] != ' '; n--)
				;
		buf_printf(out, "%*s%.*s\n", WHY_INDENT, "", (int)n, why);
		why += n + strspn(why + n, " ");
	}
}

struct ends {
	double first[LEDGER_LINES], last[LEDGER_LINES];
};

static void put_end(struct buf *out, double bytes)
{
	char text[32];

	buf_printf(out, " %11s", isnan(bytes) ? "" : str_bytes(bytes, text, sizeof(text)));
}

void ledger_text(const struct result *r, const char *bold, const char *plain, struct buf *out)
{
	struct ledger l;
	struct ends ends;
	char epoch[32];

	ledger_of(r, &l);
	if (!l.line[LEDGER_WANTED].known || r->epochs_begun == 0)
		return;
	ledger_of_epoch(r, 0, false, ends.first);
	ledger_of_epoch(r, r->epochs_begun - 1, false, ends.last);
	buf_printf(out, "%sWhere the bytes went%s%*s %12s %10s", bold, plain, 24,
		   "in training:", "bytes", "compared");
	if (r->epochs_begun > 1) {
		snprintf(epoch, sizeof(epoch), "epoch %u", r->epochs_begun);
		buf_printf(out, " %11s %11s", "epoch 1", epoch);
	}
	buf_putc(out, '\n');
	for (int k = 0; k < LEDGER_LINES; k++) {
		const struct ledger_line *line = &l.line[k];
		char bytes[32], place[128], title[96], share[32] = "";

		if (!line->known)
			continue;
		ledger_place(r, (enum ledger_key)k, place, sizeof(place));
		snprintf(title, sizeof(title), "%s%s%.40s%s", ledger_titles[k],
			 place[0] ? " (" : "", place, place[0] ? ")" : "");
		if (line->against >= 0 && l.line[line->against].bytes > 0)
			snprintf(share, sizeof(share), " %8.1f %%",
				 100 * line->bytes / l.line[line->against].bytes);
		buf_printf(out, "  %-42s %12s%11s", title,
			   str_bytes(line->bytes, bytes, sizeof(bytes)), share);
		if (r->epochs_begun > 1) {
			put_end(out, ends.first[k]);
			put_end(out, ends.last[k]);
		}
		while (out->data[out->len - 1] == ' ')
			out->len--;
		buf_puts(out, line->state == LEDGER_FLAGGED ? "  (!)\n" : "\n");
		put_why(out, line->why);
	}
	buf_putc(out, '\n');
}
