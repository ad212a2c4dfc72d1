#pragma once
/* Names of spans, ours and DFTracer's, as the kinds of a legend. */
#include <stdbool.h>

/* As a legend has them. */
enum view_kind {
	VIEW_COMPUTE,
	VIEW_WAIT,
	VIEW_BARRIER,
	VIEW_CHECKPOINT,
	VIEW_STEP,
	VIEW_BATCH,
	VIEW_ITEM,
	VIEW_SAMPLE,
	VIEW_DECODE, /* also what is left of a sample between its requests */
	VIEW_PREPROCESS,
	VIEW_FRAMEWORK,
	VIEW_TRANSPORT,
	VIEW_OPEN, /* and close */
	VIEW_METADATA,
	VIEW_READ,
	VIEW_WRITE,
	VIEW_OTHER,
	VIEW_KINDS,
	VIEW_NOT = VIEW_KINDS /* holds steps, and is not drawn */
};
extern const char *const view_kind_names[VIEW_KINDS];
enum view_kind view_kind_of(const char *cat, const char *name, bool metadata);
