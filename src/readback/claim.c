/* The statement of a result about itself, read back. */
#include "readback/claim.h"

#include <string.h>

const char *claim_storage(const struct run_record *r)
{
	return r->facts.claim_storage;
}

const char *claim_text(const struct run_record *r)
{
	return r->facts.claim_text;
}

bool claim_taken(const struct run_record *r, const char *kind)
{
	const struct str_list *list = &r->facts.taken;

	for (size_t i = 0; i < list->n; i++)
		if (strcmp(list->v[i], kind) == 0)
			return true;
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
