#pragma once
/* Facts as data: {"reason", "figures": {name: number}, "texts": {name: text}}. A figure that is not
 * known and a text that is empty are left out, and so is an empty object of either. */
#include <jansson.h>
#include <stdbool.h>

#include "words/words.h"

json_t *json_fact(const struct fact *f);
json_t *json_facts(const struct fact_list *list);
/* Puts the short or long sentences of facts; nothing where there are none. */
void json_put_words(json_t *object, const char *key, const struct fact_list *list,
		    enum words_form form);
/* Back from a file. false, and *out is empty: this version does not know such a reason. */
bool json_read_fact(const json_t *value, struct fact *out);
/* Those that are known, in their order. */
void json_read_facts(const json_t *list, struct fact_list *out);
