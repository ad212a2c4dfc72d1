#pragma once
/* The files of a job below a folder: same names, same sizes, bytes of ours. A job is replayed over
 * them instead of over its own data.
 *
 * A name becomes a path below the folder, whatever it is: the parts of "/data/a.npz" follow the
 * folder; ".." becomes "%2e%2e"; names that are not absolute lie below "%relative"; parts and paths
 * that no file system takes are cut and end with a number made of the whole; the name of the file
 * that marks the folder as ours begins with "%2e". Nothing outside of the folder is touched, and a
 * folder that holds other things is refused.
 *
 * Memory: a path for each file of the job. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/folder_lock.h"
#include "base/map.h"
#include "base/thread.h"
#include "trace/job_log.h"

/* ---- names ---- */

/* Which files of a job have one name, and which folders above them the job itself changes.
 *
 * A log may have a name as several files: as a folder where it was listed, as a file where it was
 * only asked about. For the storage they are one. What lies below a folder that the job makes,
 * renames or removes depends on that.
 *
 * Memory: the names of the files once more, and 8 bytes a file. */
struct replay_names {
	uint32_t *of;    /* of each file of the job: the first one with its name */
	uint32_t *above; /* of each: the nearest such folder above it, by the number of `of`;
			  * JOB_NONE */
	uint32_t *first; /* of each text */
	struct texts texts;
};

/* Release in any case. Files that are neither regular nor folders stand for themselves. */
int replay_names_make(struct replay_names *n, const struct job *job, struct err *e);
void replay_names_release(struct replay_names *n);

/* ---- the files ---- */

enum image_place {
	IMAGE_NONE,    /* a pipe, a terminal, shared memory, ... */
	IMAGE_PRESENT, /* is there before the job */
	IMAGE_MADE,    /* the job makes it: absent before */
	IMAGE_ABSENT,  /* the job looks for it in vain */
	IMAGE_UNSEEN,  /* absent before, and there when the job uses it: below a folder that the job
			* makes, by means that the log lacks (sockets, links) */
};

struct replay_image {
	const struct replay_names *names;
	char *folder;
	struct file_lock lock;           /* from making it to release: one replay at a time */
	char **path;                     /* of each file of the job; NULL: IMAGE_NONE */
	uint8_t *place;                  /* enum image_place of each */
	bool *is_folder;                 /* whatever the log calls it: other names lie below it */
	int64_t *size;                   /* before the job: what it appends, the replay does */
	size_t files;                    /* of the job */
	uint64_t present, bytes;         /* regular files before the job, and their bytes */
	uint64_t written, written_bytes; /* of these, not there from before */
};

/* Decides names and places; touches nothing. `names` must outlive it. Release in any case. */
int replay_image_init(struct replay_image *m, const struct job *job,
		      const struct replay_names *names, const char *folder, struct err *e);
/* Takes the folder: -EBUSY, with a sentence, while another replay has it. Makes the files that are
 * to be there before the job, unless they are there with their size, and removes those that the job
 * makes. `sparse`: files without blocks, which take no space and whose reading costs the storage
 * nothing; else bytes that cannot be compressed, the same for every image of the job. `cold`: the
 * files leave the page cache afterwards. ERR_CANCELED soon after `stop`. */
int replay_image_make(struct replay_image *m, bool sparse, bool cold, const struct stop_flag *stop,
		      struct err *e);
void replay_image_release(struct replay_image *m);
/* Makes a file or folder that is missing, with its size before the job and no blocks, and the
 * folders above it. What is there stays. -1 with errno. Any thread. */
int replay_image_restore(const struct replay_image *m, uint32_t file);
/* `n` bytes that cannot be compressed, of the stream `key`. Pure. */
void replay_image_fill(uint64_t key, uint64_t offset, void *out, size_t n);
