#include "result/level_look.h"

const struct level_look level_looks[LEVEL_LOOKS] = {
	{VERDICT_FAIL, "FAIL", "\033[1;31m"},
	{VERDICT_WARN, "WARN", "\033[33m"},
	{VERDICT_UNKNOWN, "?", "\033[33m"},
	{VERDICT_PASS, "ok", "\033[32m"},
};
