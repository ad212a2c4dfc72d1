/* What the files of a job are to it, and the groups that they form.
 *
 * Files of one extension in one folder are one group; so are those of sibling folders (a folder a
 * class), unless the folders are named as parts of a dataset (train, val). A group that is read and
 * never written is a dataset when its extension is that of a format of datasets, when it has many
 * files, or when most bytes come from it; one that the job wrote itself, when nothing else is. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/compare.h"
#include "base/file.h"
#include "base/map.h"
#include "base/str.h"
#include "trace/profile/profile_parts.h"
#include "workload/backend.h"

#define FEW_WRITTEN 20             /* times as many bytes are read of a file: it is read */
#define CHECKPOINT_BYTES (1 << 20) /* a new file of so many is one */
#define DATASET_FILES 8            /* so many alike that are read are one */
#define MAPPED_BYTES (1 << 20)     /* a mapped file, of which reads are not seen */
#define MADE_OTHERS 10 /* times the bytes of others are read of a dataset made by the job */
#define MAIN_SHARE 0.5 /* of the bytes read, for a group of few files */
#define BESIDE_MAPPED 0.05

static const char *const system_folders[] = {"/usr/",  "/lib/", "/lib64/", "/etc/",
					     "/proc/", "/sys/", "/dev/",   "/bin/",
					     "/sbin/", "/run/", "/opt/",   NULL};
static const char *const code_parts[] = {"/site-packages/", "/dist-packages/", "/__pycache__/",
					 "/.git/",          "/conda/",         "/nltk_data/",
					 "/.cache/",        "/matplotlib/",    NULL};
static const char *const code_extensions[] = {"py",   "pyc",  "pyo",   "so",  "cfg", "ini", "sh",
					      "toml", "yaml", "yml",   "pyi", "mo",  "ttf", "pem",
					      "crt",  "whl",  "cubin", "ptx", NULL};
/* beside the names of the formats of checkpoints */
static const char *const checkpoint_extensions[] = {"pt",       "pth",  "ckpt",  "weights", "pkl",
						    "metadata", "gguf", "index", "onnx",    NULL};
static const char *const log_extensions[] = {"log",   "txt",  "out",      "err", "json",
					     "jsonl", "html", "tfevents", "pfw", NULL};
static const char *const evaluation_words[] = {"val",        "valid", "validation", "eval",
					       "evaluation", "test",  "dev",        NULL};
static const char *const training_words[] = {"train", "training", NULL};

/* of files that are renamed when they are whole */
static const char *const temporary_extensions[] = {"tmp",     "temp",       "part",
						   "partial", "incomplete", NULL};

static bool among(const char *word, const char *const *list)
{
	for (; *list; list++)
		if (strcasecmp(word, *list) == 0)
			return true;
	return false;
}

/* "npz" of "/a/b.npz", in lower case; "" when there is none. libx.so.6 has so. */
static void extension_of(const char *name, char *out, size_t size)
{
	const char *base = path_basename(name), *dot = strrchr(base, '.');
	const char *extension = strstr(base, ".so.")                           ? "so"
				: strstr(base, ".tfevents.")                   ? "tfevents"
				: dot && dot != base && strlen(dot + 1) < size ? dot + 1
									       : "";

	extension = profile_double_extension(base) ?: extension;
	snprintf(out, size, "%s", extension);
	for (char *c = out; *c; c++)
		*c = (char)(*c >= 'A' && *c <= 'Z' ? *c + 32 : *c);
}

/* That of the name which the file will have: "pt" of "/a/b.pt.tmp". */
static void lasting_extension_of(const char *name, const char *extension, char *out, size_t size)
{
	if (among(extension, temporary_extensions)) {
		/* without the dot, too */
		AUTO_FREE char *lasting = xstrndup(name, strlen(name) - strlen(extension) - 1);

		extension_of(lasting, out, size);
	} else {
		snprintf(out, size, "%s", extension);
	}
}

const struct format_facts *profile_format(const struct profile *a)
{
	const struct file_group *main = profile_main_group(a);

	return main && a->value[PROFILE_FORMAT].text ? main->format : NULL;
}

bool profile_is_image(const struct profile *a)
{
	const struct format_facts *f = profile_format(a);

	return f && f->flags & FORMAT_IMAGE;
}

bool profile_is_checkpoint_name(const char *extension)
{
	for (size_t i = 0; checkpoint_facts_table[i]; i++)
		if (strcasecmp(checkpoint_facts_table[i]->name, extension) == 0)
			return true;
	return among(extension, checkpoint_extensions);
}

static bool is_code(const char *name, const char *extension)
{
	for (size_t i = 0; system_folders[i]; i++)
		if (str_starts(name, system_folders[i]) && !str_starts(name, "/dev/shm/"))
			return true;
	for (size_t i = 0; code_parts[i]; i++)
		if (strstr(name, code_parts[i]))
			return true;
	return among(extension, code_extensions);
}

/* What a file is by itself; FILE_DATASET: it may be one. */
static enum file_role role_of(const struct job_file *f, const char *extension)
{
	const struct job_counts *c = &f->counts;
	bool read = c->bytes_read > 0 || c->reads > 0 || c->maps > 0;
	bool written = c->bytes_written > 0 || c->writes > 0;

	/* Darshan books messages of a pipe to a file whose descriptor had its number before */
	if (written && c->bytes_read / FEW_WRITTEN > c->bytes_written)
		written = false;
	if (!job_has_data(f))
		return FILE_OTHER;
	if (f->kind == JOB_FILE_REGULAR && is_code(f->name, extension))
		return FILE_CODE;
	if (written) {
		if (read && c->bytes_read > c->bytes_written / 2 &&
		    !profile_is_checkpoint_name(extension))
			return FILE_CACHE;
		if (among(extension, log_extensions))
			return FILE_LOG;
		if (profile_is_checkpoint_name(extension) || c->bytes_written >= CHECKPOINT_BYTES)
			return FILE_CHECKPOINT;
		return FILE_LOG;
	}
	return read ? FILE_DATASET : FILE_OTHER;
}

/* ---- groups ---- */

/* Files of one role in one folder with one extension. */
struct place {
	uint32_t folder, extension; /* texts of a->names */
	uint8_t role;
	uint32_t number; /* before they are sorted */
};

static uint32_t folder_of(struct profile *a, const char *name)
{
	AUTO_FREE char *folder = strchr(name, '/') ? path_dirname(name) : xstrdup("");

	return (uint32_t)texts_add(&a->names, folder);
}

static bool is_part(const char *folder)
{
	const char *base = path_basename(folder);

	return among(base, evaluation_words) || among(base, training_words);
}

static int by_place(const void *x, const void *y)
{
	const struct place *a = x, *b = y;

	return ORDER(a->role, b->role) ?: ORDER(a->extension, b->extension) ?:
	       ORDER(a->folder, b->folder);
}

/* Sibling folders with files of one extension become their parent, from the deepest on: the
 * folders of classes. `place` has one entry a folder, extension and role; it is sorted. */
static void merge_siblings(struct profile *a, struct place *place, size_t n)
{
	bool again = true;

	qsort(place, n, sizeof(*place), by_place);
	/* each pass shortens folders; as many as the deepest has parts, in practice one or two */
	for (int pass = 0; again && pass < 8; pass++) {
		AUTO_FREE uint32_t *parent = xcalloc(n + 1, sizeof(*parent)), *children = NULL;

		again = false;
		for (size_t i = 0; i < n; i++)
			parent[i] = folder_of(a, a->names.v[place[i].folder]);
		children = xcalloc(a->names.n, sizeof(*children));
		for (size_t i = 0, end; i < n; i = end) {
			for (end = i; end < n && place[end].role == place[i].role &&
				      place[end].extension == place[i].extension;
			     end++)
				if (end == i || place[end].folder != place[end - 1].folder)
					children[parent[end]]++;
			for (size_t k = i; k < end; k++) {
				const char *folder = a->names.v[place[k].folder];
				const char *up = a->names.v[parent[k]];

				if (children[parent[k]] >= 2 && strlen(up) > 1 &&
				    !is_part(folder)) {
					place[k].folder = parent[k];
					again = true;
				}
			}
			for (size_t k = i; k < end; k++)
				children[parent[k]] = 0;
		}
		qsort(place, n, sizeof(*place), by_place);
	}
}

static void add(int64_t *sum, int64_t v)
{
	if (v < 0)
		return;
	if (*sum < 0)
		*sum = 0;
	if (__builtin_add_overflow(*sum, v, sum))
		*sum = INT64_MAX;
}

static void count_file(struct file_group *g, const struct job_file *f)
{
	g->files++;
	g->regular = g->regular || job_has_data(f);
	g->objects = g->objects || f->kind == JOB_FILE_OBJECT;
	if (f->size >= 0) {
		g->sized++;
		add(&g->bytes, f->size);
	}
	add(&g->opens, f->counts.opens);
	add(&g->maps, f->counts.maps);
	add(&g->reads, f->counts.reads);
	add(&g->writes, f->counts.writes);
	add(&g->bytes_read, f->counts.bytes_read);
	add(&g->bytes_written, f->counts.bytes_written);
}

/* `number`: of the place of each file. */
static void make_groups(struct profile *a, struct place *place, size_t places,
			const uint32_t *number)
{
	AUTO_FREE uint32_t *group = xcalloc(places + 1, sizeof(*group)); /* of each number */

	merge_siblings(a, place, places);
	a->group = xcalloc(places + 1, sizeof(*a->group));
	for (size_t i = 0; i < places; i++) {
		if (i == 0 || by_place(&place[i], &place[i - 1]) != 0)
			a->group[a->groups++] = (struct file_group){
				.role = place[i].role,
				.folder = a->names.v[place[i].folder],
				.extension = a->names.v[place[i].extension],
				.format = profile_format_of(a->names.v[place[i].extension]),
				.opens = -1,
				.reads = -1,
				.writes = -1,
				.bytes_read = -1,
				.bytes_written = -1,
			};
		group[place[i].number] = (uint32_t)(a->groups - 1);
	}
	for (size_t i = 0; i < a->job->files; i++) {
		a->group_of[i] = group[number[i]];
		count_file(&a->group[a->group_of[i]], &a->job->file[i]);
	}
}

/* ---- which groups are datasets ---- */

/* Files that are mapped, and nothing else is a dataset: the largest group. */
static void choose_mapped(struct profile *a)
{
	struct file_group *best = NULL;

	for (size_t g = 0; g < a->groups; g++) {
		struct file_group *v = &a->group[g];

		if (v->role == FILE_DATASET)
			return;
		if (v->role == FILE_OTHER && v->regular && v->maps > 0 &&
		    v->bytes >= MAPPED_BYTES && (!best || v->bytes > best->bytes))
			best = v;
	}
	if (best)
		best->role = FILE_DATASET;
}

/* Files that the job made itself, as a script does that generates or unpacks its dataset when it is
 * not there: where hardly anything else was read, those from which most bytes came. */
static void choose_made(struct profile *a)
{
	struct file_group *best = NULL;
	int64_t others = 0;

	for (size_t g = 0; g < a->groups; g++) {
		struct file_group *v = &a->group[g];

		if (v->role == FILE_DATASET)
			add(&others, v->bytes_read);
		if (v->role == FILE_CACHE && (v->format || v->files >= DATASET_FILES) &&
		    (!best || v->bytes_read > best->bytes_read))
			best = v;
	}
	if (!best || others > best->bytes_read / MADE_OTHERS)
		return;
	for (size_t g = 0; g < a->groups; g++)
		if (a->group[g].role == FILE_DATASET)
			a->group[g].role = FILE_OTHER;
	best->role = FILE_DATASET;
}

/* What was read of a group, or may have been: of mapped files that is in no log. */
static int64_t explained(const struct file_group *v)
{
	return v->maps > 0 && v->bytes > v->bytes_read ? v->bytes : v->bytes_read;
}

static void choose_datasets(struct profile *a)
{
	const struct file_group *most = NULL;
	int64_t all = 0;

	for (size_t g = 0; g < a->groups; g++) {
		const struct file_group *v = &a->group[g];

		if (v->role != FILE_DATASET)
			continue;
		add(&all, explained(v));
		if (!most || explained(v) > explained(most))
			most = v;
	}
	for (size_t g = 0; g < a->groups; g++) {
		struct file_group *v = &a->group[g];
		double share = all > 0 ? (double)explained(v) / (double)all : 0;
		/* beside mapped data: its index, a vocabulary, a description */
		bool beside = most && most->maps > 0 && explained(most) > most->bytes_read &&
			      share < BESIDE_MAPPED;

		if (v->role != FILE_DATASET)
			continue;
		if (v->format && !among(v->extension, log_extensions) && !beside)
			continue;
		if (beside || (v->files < DATASET_FILES && share < MAIN_SHARE))
			v->role = FILE_OTHER;
		else if (share < 0.01 && all > 0)
			v->role = FILE_OTHER;
		else if (profile_is_checkpoint_name(v->extension) && share < MAIN_SHARE)
			v->role = FILE_CHECKPOINT;
	}
	choose_made(a);
	choose_mapped(a);
}

static int by_importance(const void *x, const void *y)
{
	const struct file_group *a = *(const struct file_group *const *)x;
	const struct file_group *b = *(const struct file_group *const *)y;
	double p = (double)a->bytes_read + (double)a->bytes_written;
	double q = (double)b->bytes_read + (double)b->bytes_written;
	/* as they are printed */
	static const int rank[FILE_ROLES] = {
		[FILE_DATASET] = 0, [FILE_EVALUATION] = 1, [FILE_CHECKPOINT] = 2, [FILE_CACHE] = 3,
		[FILE_LOG] = 4,     [FILE_OTHER] = 5,      [FILE_CODE] = 6};

	return ORDER(rank[a->role], rank[b->role]) ?: ORDER(q, p) ?:
	       strcmp(a->folder, b->folder) ?: strcmp(a->extension, b->extension);
}

void profile_sort_groups(struct profile *a)
{
	AUTO_FREE struct file_group **at = xcalloc(a->groups + 1, sizeof(*at));
	struct file_group *sorted = xcalloc(a->groups + 1, sizeof(*sorted));
	AUTO_FREE uint32_t *now = xcalloc(a->groups + 1, sizeof(*now));

	for (size_t g = 0; g < a->groups; g++)
		at[g] = &a->group[g];
	qsort(at, a->groups, sizeof(struct file_group *), by_importance);
	for (size_t g = 0; g < a->groups; g++) {
		sorted[g] = *at[g];
		now[at[g] - a->group] = (uint32_t)g;
	}
	for (size_t i = 0; i < a->job->files; i++) {
		a->group_of[i] = now[a->group_of[i]];
		a->role[i] = (uint8_t)sorted[a->group_of[i]].role;
	}
	free(a->group);
	a->group = sorted;
}

bool profile_is_evaluation_name(const char *name)
{
	const char *p = name;

	while (*p) {
		size_t n = strcspn(p, "/_-.0123456789");

		for (const char *const *w = evaluation_words; *w; w++)
			if (strlen(*w) == n && strncasecmp(p, *w, n) == 0)
				return true;
		p += n + (p[n] != '\0');
	}
	return false;
}

void profile_roles(struct profile *a)
{
	const struct job *job = a->job;
	AUTO_FREE struct place *place = xcalloc(job->files + 1, sizeof(*place));
	size_t places = 0;
	AUTO_FREE uint32_t *number = xcalloc(job->files + 1, sizeof(*number));
	struct map known = {0};

	a->role = xcalloc(job->files + 1, sizeof(*a->role));
	a->group_of = xcalloc(job->files + 1, sizeof(*a->group_of));
	for (size_t i = 0; i < job->files; i++) {
		const struct job_file *f = &job->file[i];
		char extension[32] = "", lasting[32] = "";
		struct place p = {.number = (uint32_t)places};

		if (job_has_data(f)) {
			extension_of(f->name, extension, sizeof(extension));
			lasting_extension_of(f->name, extension, lasting, sizeof(lasting));
		}
		p.role = (uint8_t)role_of(f, lasting);
		p.folder = folder_of(a, job_has_data(f) ? f->name : "");
		p.extension = (uint32_t)texts_add(&a->names, extension);
		number[i] = map_get2(&known, p.folder, (int64_t)p.extension << 8 | p.role);
		if (number[i] != MAP_NONE)
			continue;
		number[i] = p.number;
		map_put2(&known, p.folder, (int64_t)p.extension << 8 | p.role, p.number);
		place[places++] = p;
	}
	make_groups(a, place, places, number);
	profile_shard_formats(a);
	map_release(&known);
	choose_datasets(a);
	profile_sort_groups(a);
}
