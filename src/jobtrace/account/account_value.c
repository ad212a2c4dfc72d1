/* Values of an account for people. */
#include <math.h>

#include "base/say.h"
#include "base/str.h"
#include "jobtrace/account/account.h"

static void put_count(struct buf *out, double v)
{
	if (v == floor(v) && fabs(v) < 1e15)
		buf_printf(out, "%.0f", v);
	else
		buf_printf(out, "%.4g", v);
}

static void put_number(struct buf *out, enum fact_unit unit, double v)
{
	char text[64];

	switch (unit) {
	case FACT_BYTES:
		buf_puts(out, str_bytes(v, text, sizeof(text)));
		break;
	case FACT_SECONDS:
		if (v < 10)
			buf_printf(out, "%.3g ms", v * 1e3);
		else
			buf_puts(out, str_seconds(v, text, sizeof(text)));
		break;
	case FACT_SHARE:
		buf_printf(out, "%.0f %%", v * 100);
		break;
	case FACT_FLAG:
		buf_puts(out, v != 0 ? "yes" : "no");
		break;
	case FACT_COUNT:
		put_count(out, v);
		break;
	case FACT_WORD:
		break;
	}
}

void account_put_value(const struct account *a, enum account_fact f, struct buf *out)
{
	const struct fact *v = &a->fact[f];
	const struct fact_row *row = &fact_rows[f];

	if (v->how == FACT_UNKNOWN) {
		buf_puts(out, "not identifiable");
		return;
	}
	if (v->at_least)
		buf_puts(out, "at least ");
	if (v->at_most)
		buf_puts(out, "at most ");
	put_number(out, row->unit, v->number);
	if (v->stdev > 0) {
		buf_puts(out, " (stdev ");
		put_number(out, row->unit, v->stdev);
		buf_putc(out, ')');
	}
	if (v->text) {
		if (row->unit != FACT_WORD)
			buf_puts(out, ", ");
		buf_say(out, "%s", v->text);
	}
}
