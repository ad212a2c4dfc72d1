#pragma once
/* The queue of stores that have none of their own: helper threads over pread and pwrite. */
#include "store/async.h"

extern const struct store_queue_ops store_queue_threads;
