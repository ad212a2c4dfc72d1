#pragma once
/* Bounded queue of pointers: any number of producers and consumers, first in first out, no
 * allocation after init. The only lock of the timed path. */
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct queue {
	pthread_mutex_t lock;
	pthread_cond_t not_empty, not_full;
	void **slot;
	size_t cap, head, count;
	bool closed;
};

int queue_init(struct queue *q, size_t capacity, struct err *e);
void queue_release(struct queue *q);
/* Adds an item, waiting while the queue is full. 0, or ERR_CANCELED once the queue is closed. */
int queue_put(struct queue *q, void *item);
/* Takes the oldest item. 1 with *item set; 0 when closed and empty. Waits while empty and open. */
int queue_get(struct queue *q, void **item);
/* As queue_get but returns -ETIMEDOUT after timeout_ns without an item; at once when it is <= 0. */
int queue_get_timeout(struct queue *q, void **item, int64_t timeout_ns);
/* Wakes everyone; puts fail from now on, gets drain what is left. May be called more than once. */
void queue_close(struct queue *q);
/* Empties and opens it again. No thread may be inside. */
void queue_reopen(struct queue *q);
