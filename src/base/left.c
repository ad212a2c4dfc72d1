#include "base/left.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"

#define MOST 64

static struct {
	pthread_mutex_t lock;
	struct {
		int folder;
		char *name; /* NULL: free */
	} file[MOST];
} left = {.lock = PTHREAD_MUTEX_INITIALIZER};

int left_note(int folder, const char *name)
{
	int found = LEFT_NONE;

	pthread_mutex_lock(&left.lock);
	for (int i = 0; i < MOST && found == LEFT_NONE; i++)
		if (!left.file[i].name)
			found = i;
	if (found != LEFT_NONE) {
		left.file[found].folder = folder;
		left.file[found].name = xstrdup(name);
	}
	pthread_mutex_unlock(&left.lock);
	return found;
}

void left_forget(int number)
{
	if (number == LEFT_NONE)
		return;
	pthread_mutex_lock(&left.lock);
	free(left.file[number].name);
	left.file[number].name = NULL;
	pthread_mutex_unlock(&left.lock);
}

static _Atomic bool begun;

bool left_removes(void)
{
	return atomic_load_explicit(&begun, memory_order_seq_cst);
}

void left_remove(void)
{
	/* before the first file is looked for, so that none is made behind it unseen */
	atomic_store_explicit(&begun, true, memory_order_seq_cst);
	/* for good: who would give a file its name waits for the end */
	pthread_mutex_lock(&left.lock);
	for (int i = 0; i < MOST; i++)
		if (left.file[i].name)
			unlinkat(left.file[i].folder, left.file[i].name, 0);
}
