/* Facts in result.json, and back. */
#include "result/json_facts.h"

#include <math.h>

#include "result/json_out.h"

#define NAME_MAX_BYTES 64

static void put_some(json_t *o, const char *key, json_t *of)
{
	if (json_object_size(of))
		json_put(o, key, of);
	else
		json_decref(of);
}

json_t *json_fact(const struct fact *f)
{
	json_t *o = json_object(), *figures = json_object(), *texts = json_object();
	char name[NAME_MAX_BYTES];

	json_put_text(o, "reason", reason_name(f->reason));
	for (unsigned i = 0; i < reason_figures(f->reason); i++)
		json_put_real(figures, reason_figure_name(f->reason, i, name, sizeof(name)),
			      f->figure[i]);
	for (unsigned i = 0; i < reason_texts(f->reason); i++)
		if (f->text[i][0])
			json_put_text(texts, reason_text_name(f->reason, i, name, sizeof(name)),
				      f->text[i]);
	put_some(o, "figures", figures);
	put_some(o, "texts", texts);
	return o;
}

json_t *json_facts(const struct fact_list *list)
{
	json_t *o = json_array();

	for (uint32_t i = 0; i < list->count; i++)
		json_array_append_new(o, json_fact(&list->fact[i]));
	return o;
}

void json_put_words(json_t *object, const char *key, const struct fact_list *list,
		    enum words_form form)
{
	struct buf text = {0};

	words_put_all(&text, list, 0, list->count, form);
	if (text.len)
		json_put_text(object, key, text.data);
	buf_release(&text);
}

bool json_read_fact(const json_t *value, struct fact *out)
{
	enum reason reason = reason_of(json_string_value(json_object_get(value, "reason")));
	const json_t *figures = json_object_get(value, "figures");
	const json_t *texts = json_object_get(value, "texts");
	double figure[FACT_FIGURES];
	char name[NAME_MAX_BYTES];

	*out = (struct fact){0};
	if (reason == REASON_NONE)
		return false;
	for (unsigned i = 0; i < reason_figures(reason); i++) {
		const json_t *v =
			json_object_get(figures, reason_figure_name(reason, i, name, sizeof(name)));

		figure[i] = json_is_number(v) ? json_number_value(v) : NAN;
	}
	*out = fact_of(reason, reason_figures(reason), figure);
	for (unsigned i = 0; i < reason_texts(reason); i++)
		*out = fact_with(*out, i,
				 json_string_value(json_object_get(
					 texts, reason_text_name(reason, i, name, sizeof(name)))));
	return true;
}

void json_read_facts(const json_t *list, struct fact_list *out)
{
	struct fact f;

	out->count = 0;
	for (size_t i = 0; i < json_array_size(list); i++)
		if (json_read_fact(json_array_get(list, i), &f))
			fact_add(out, f);
}
