/* Any bytes as a document: no crash, and what is written reads back as the same tree. */
#include <stdint.h>
#include <stdlib.h>

#include "conf/node.h"
#include "conf/override.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int has_nan(const struct node *n)
{
	if (n->kind == NODE_FLOAT && n->f != n->f)
		return 1;
	for (size_t i = 0; i < n->n; i++) {
		if (has_nan(n->child[i]))
			return 1;
	}
	return 0;
}

static void check_round_trip(const struct node *n)
{
	struct buf text = {0};
	struct node *again;
	struct err e;

	yaml_emit(n, &text);
	again = yaml_parse(text.data, text.len, "fuzz.yaml", &e);
	if (!again || (!has_nan(n) && !node_equal(n, again)))
		abort();
	node_free(again);
	buf_reset(&text);
	node_emit_flow(n, &text);
	node_free(override_parse_value(text.data, &e));
	buf_release(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err e = {0};
	struct node *n = yaml_parse((const char *)data, size, "fuzz.yaml", &e);

	if (!n) {
		if (e.code != ERR_USAGE || !e.text[0])
			abort();
		return 0;
	}
	/* a document that is only null, empty list or scalar has no block form to compare */
	if (n->kind == NODE_MAP || n->kind == NODE_LIST)
		check_round_trip(n);
	if (node_interpolate(n, 1764527699000000000, &e) == 0 && node_count(n) > 2 * NODE_COUNT_MAX)
		abort();
	node_free(n);
	return 0;
}
