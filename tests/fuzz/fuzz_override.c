/* Any text as an override, applied to a small tree: no crash, and a value that is printed reads
 * back. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "conf/node.h"
#include "conf/override.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int comparable(const struct node *n)
{
	if ((n->kind == NODE_FLOAT && n->f != n->f) || (n->kind == NODE_STR && strstr(n->s, "${")))
		return 0;
	for (size_t i = 0; i < n->n; i++) {
		if (!comparable(n->child[i]))
			return 0;
	}
	return 1;
}

static void check_round_trip(const struct node *v)
{
	struct buf text = {0};
	struct node *again;
	struct err e;

	node_emit_flow(v, &text);
	again = override_parse_value(text.data, &e);
	if (comparable(v) && (!again || !node_equal(v, again)))
		abort();
	node_free(again);
	buf_release(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char base[] =
		"workload: {reader: {batch_size: 4, dims: [1, {k: 2}]}, name: x}\n";
	struct buf text = {0}, out = {0};
	struct override o;
	struct err e = {0};

	buf_append(&text, data, size);
	if (override_parse(text.data, &o, &e) == 0) {
		struct node *root = yaml_parse(base, sizeof(base) - 1, "base.yaml", &e);

		if (o.value)
			check_round_trip(o.value);
		if (override_apply(root, &o, &e) != 0 && e.code != ERR_USAGE)
			abort();
		yaml_emit(root, &out);
		node_interpolate(root, 1764527699000000000, &e);
		node_free(root);
		override_release(&o);
	} else if (e.code != ERR_USAGE || !e.text[0]) {
		abort();
	}
	buf_release(&text);
	buf_release(&out);
	return 0;
}
