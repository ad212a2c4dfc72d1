/* The statement of a result about itself, read back. */
#include "readback/claim.h"

#include <string.h>

static const json_t *measured(const struct run_record *r)
{
	return json_object_get(r->result, "measured");
}

const char *claim_storage(const struct run_record *r)
{
	return json_string_value(json_object_get(measured(r), "storage"));
}

const char *claim_text(const struct run_record *r)
{
	return json_string_value(json_object_get(measured(r), "text"));
}

bool claim_taken(const struct run_record *r, const char *kind)
{
	const json_t *list = json_object_get(measured(r), "taken");

	for (size_t i = 0; i < json_array_size(list); i++) {
		const char *one = json_string_value(json_array_get(list, i));

		if (one && strcmp(one, kind) == 0)
			return true;
	}
	return false;
}

bool claim_from_memory(const struct run_record *r)
{
	return claim_taken(r, "storage") || claim_taken(r, "part");
}

/* "not the storage: memory (cache, bytes); ...": up to the names of verdicts. */
static size_t source_length(const char *text)
{
	const char *names = strstr(text, " (");
	size_t n = strcspn(text, ";.");

	return names && (size_t)(names - text) < n ? (size_t)(names - text) : n;
}

bool claim_same_source(const struct run_record *a, const struct run_record *b)
{
	const char *x = claim_storage(a), *y = claim_storage(b);
	const char *s = claim_text(a), *t = claim_text(b);

	if (!x || !y || !s || !t)
		return true;
	if (strcmp(x, y) != 0)
		return false;
	/* the name of an emulated store is one of the keys */
	if (strcmp(x, "no") != 0)
		return true;
	return source_length(s) == source_length(t) && strncmp(s, t, source_length(s)) == 0;
}
