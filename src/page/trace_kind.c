#include "page/trace_kind.h"

#include <string.h>

#include "base/str.h"

const char *const view_kind_names[VIEW_KINDS] = {
	[VIEW_COMPUTE] = "compute",     [VIEW_WAIT] = "wait",
	[VIEW_BARRIER] = "barrier",     [VIEW_CHECKPOINT] = "checkpoint",
	[VIEW_STEP] = "step",           [VIEW_BATCH] = "batch",
	[VIEW_ITEM] = "item",           [VIEW_SAMPLE] = "sample",
	[VIEW_DECODE] = "decode",       [VIEW_PREPROCESS] = "preprocess",
	[VIEW_FRAMEWORK] = "framework", [VIEW_TRANSPORT] = "transport",
	[VIEW_OPEN] = "open, close",    [VIEW_METADATA] = "metadata",
	[VIEW_READ] = "read",           [VIEW_WRITE] = "write",
	[VIEW_OTHER] = "other",
};

static const struct {
	const char *cat, *name;
	enum view_kind kind;
} kinds[] = {
	{"rank", "run", VIEW_NOT},
	{"rank", "epoch", VIEW_NOT},
	{"rank", "train", VIEW_NOT},
	{"rank", "evaluate", VIEW_NOT},
	{"rank", "wait", VIEW_WAIT},
	{"rank", "step", VIEW_STEP},
	{"rank", "compute", VIEW_COMPUTE},
	{"rank", "barrier", VIEW_BARRIER},
	{"rank", "checkpoint", VIEW_CHECKPOINT},
	{"rank", "restore", VIEW_CHECKPOINT},
	{"reader", "sample", VIEW_SAMPLE},
	{"reader", "decode", VIEW_DECODE},
	{"reader", "preprocess", VIEW_PREPROCESS},
	{"reader", "item", VIEW_ITEM},
	{"reader", "batch", VIEW_BATCH},
	{"reader", "framework", VIEW_FRAMEWORK},
	{"reader", "transport", VIEW_TRANSPORT},
	{"reader", "unpack", VIEW_TRANSPORT},
	{"reader", "pin", VIEW_TRANSPORT},
	{"mapped", "touch", VIEW_READ},
	/* DFTracer's */
	{"ai_root", NULL, VIEW_NOT},
	{"pipeline", NULL, VIEW_NOT},
	{"dftracer", NULL, VIEW_NOT},
	{"dataloader", "fetch.iter", VIEW_WAIT},
	{"dataloader", "fetch.block", VIEW_STEP},
	{"compute", NULL, VIEW_COMPUTE},
	{"comm", NULL, VIEW_BARRIER},
	{"checkpoint", NULL, VIEW_CHECKPOINT},
	{"data", "preprocess", VIEW_PREPROCESS},
	{"data", "item", VIEW_ITEM},
	{"stoker", "batch", VIEW_BATCH},
	{"stoker", "decode", VIEW_DECODE},
	{"stoker", "framework", VIEW_FRAMEWORK},
	{"stoker", "transport", VIEW_TRANSPORT},
	{"stoker", "unpack", VIEW_TRANSPORT},
	{"stoker", "pin", VIEW_TRANSPORT},
};

static enum view_kind request_kind(const char *name, bool metadata)
{
	static const struct {
		const char *prefix;
		enum view_kind kind;
	} requests[] = {
		{"open", VIEW_OPEN},   {"creat", VIEW_OPEN},   {"close", VIEW_OPEN},
		{"fopen", VIEW_OPEN},  {"fclose", VIEW_OPEN},  {"read", VIEW_READ},
		{"pread", VIEW_READ},  {"fread", VIEW_READ},   {"touch", VIEW_READ},
		{"write", VIEW_WRITE}, {"pwrite", VIEW_WRITE}, {"fwrite", VIEW_WRITE},
	};

	if (metadata && !str_starts(name, "open") && !str_starts(name, "close"))
		return VIEW_METADATA;
	for (size_t i = 0; i < sizeof(requests) / sizeof(*requests); i++)
		if (str_starts(name, requests[i].prefix))
			return requests[i].kind;
	return VIEW_METADATA;
}

enum view_kind view_kind_of(const char *cat, const char *name, bool metadata)
{
	if (strcmp(cat, "POSIX") == 0 || strcmp(cat, "STDIO") == 0 || strcmp(cat, "store") == 0)
		return request_kind(name, metadata);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (strcmp(cat, kinds[i].cat) == 0 &&
		    (!kinds[i].name || strcmp(name, kinds[i].name) == 0))
			return kinds[i].kind;
	if (strcmp(cat, "reader") == 0 && str_ends(name, ".read_index"))
		return VIEW_SAMPLE;
	return VIEW_OTHER;
}
