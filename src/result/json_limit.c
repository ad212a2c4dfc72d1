/* Limits and predictions of a file. */
#include "result/json_limit.h"

#include <math.h>
#include <stdio.h>

#include "base/alloc.h"
#include "result/json_facts.h"
#include "result/json_out.h"

static double number(const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);

	return json_is_number(v) ? json_number_value(v) : NAN;
}

static void put_facts(struct buf *out, const json_t *list, enum words_form form)
{
	struct fact_list facts;

	json_read_facts(list, &facts);
	if (out->len && facts.count)
		buf_putc(out, ' ');
	words_put_all(out, &facts, 0, facts.count, form);
}

static char *told(struct buf *text, const json_t *o, const char *key)
{
	const char *as_written = json_string_value(json_object_get(o, key));

	if (text->len)
		return buf_take(text);
	buf_release(text);
	return as_written && as_written[0] ? xstrdup(as_written) : NULL;
}

char *limit_told(const json_t *limit, enum words_form form)
{
	struct buf text = {0};

	put_facts(&text, json_object_get(limit, "facts"), form);
	if (form == WORDS_LONG)
		put_facts(&text, json_object_get(limit, "effects"), form);
	return told(&text, limit, "text");
}

char *remedy_told(const json_t *limit, enum words_form form)
{
	struct buf text = {0};

	put_facts(&text, json_object_get(limit, "remedy_facts"), form);
	return told(&text, limit, "remedy");
}

bool costs_effect_read(const json_t *costs, struct costs_effect *out)
{
	const char *profile = json_string_value(json_object_get(costs, "profile"));

	*out = (struct costs_effect){.said = json_is_object(costs),
				     .spent = json_is_true(json_object_get(costs, "spent")),
				     .au = number(costs, "whole_au_percent"),
				     .low = number(costs, "low_percent"),
				     .high = number(costs, "high_percent"),
				     .dlio_au = number(costs, "dlio_au_percent"),
				     .loop_au = number(costs, "loop_au_percent")};
	snprintf(out->profile, sizeof(out->profile), "%s", profile ? profile : "?");
	return out->said;
}

static void retell(json_t *o, const char *fact, const char *key)
{
	struct fact f;
	struct buf text = {0};

	if (!json_read_fact(json_object_get(o, fact), &f))
		return;
	words_put(&text, &f, WORDS_SHORT);
	json_put_text(o, key, text.data);
	buf_release(&text);
}

json_t *what_if_told(const json_t *change)
{
	json_t *o = json_deep_copy(change);

	retell(o, "change_fact", json_object_get(o, "words") ? "words" : "change");
	retell(o, "why_fact", "why");
	json_object_del(o, "change_fact");
	json_object_del(o, "why_fact");
	return o;
}
