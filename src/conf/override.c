/* Values of overrides: YAML's flow style for now, which agrees for numbers, lists and maps. */
#include "conf/override.h"

#include <string.h>

struct node *override_parse_value(const char *text, struct err *e)
{
	return yaml_parse(text, strlen(text), NODE_COMMAND_LINE, e);
}
