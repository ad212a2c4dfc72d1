#include "comm/mpi_library.h"

#include <dlfcn.h>
#include <elf.h>
#include <glob.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/str.h"
#include "base/transfer.h"
#include "os/child.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* ---- what a library is ---- */

/* A binary interface: how its handles of MPI_COMM_WORLD and MPI_BYTE come about, and its levels of
 * threads. Functions have the same names and, but for the width of handles, the same parameters in
 * all. */
struct abi {
	const char *name;
	const char *world_symbol, *byte_symbol; /* the handles are their addresses, or */
	uintptr_t world, byte;                  /* these */
	int funneled, serialized;               /* MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED */
	int standard;                           /* major version that MPI_Abi_get_version says */
	const char *texts[8];                   /* in what MPI_Get_library_version says */
};

/* In this order: a library with the standard's interface may be linked with one that has the
 * symbols of its own. Values:
 * - the standard's: MPI 5.0, appendix A, as in mpi.h of github.com/mpi-forum/mpi-abi-stubs. Open
 *   MPI (ompi/mpi/c/abi_get_version.c.in) and MPICH say -1 in their own interface;
 * - Open MPI: ompi/include/mpi.h.in (OMPI_PREDEFINED_GLOBAL), the same since 1.3;
 * - MPICH: src/include/mpi.h.in, and MPICH's ABI Compatibility Initiative, of which all with these
 *   texts are members. */
static const struct abi abis[] = {
	{.name = "the MPI standard's",
	 .world = 0x101,
	 .byte = 0x247,
	 .funneled = 1024,
	 .serialized = 2048,
	 .standard = 1},
	{.name = "Open MPI's",
	 .funneled = 1,
	 .serialized = 2,
	 .world_symbol = "ompi_mpi_comm_world",
	 .byte_symbol = "ompi_mpi_byte"},
	{.name = "MPICH's",
	 .funneled = 1,
	 .serialized = 2,
	 .world = 0x44000000,
	 .byte = 0x4c00010d,
	 .texts = {"MPICH", "Intel(R) MPI", "MVAPICH", "ParaStation MPI", "RIKEN MPI"}},
};

/* Whose launchers a library understands. */
struct family {
	const char *name, *shown;
	const char *texts[8];
};
static const struct family families[] = {
	{"openmpi", "Open MPI", {"Open MPI", "Spectrum MPI"}},
	{"mpich", "MPICH", {"MPICH", "Intel(R) MPI", "MVAPICH", "ParaStation MPI", "RIKEN MPI"}},
};

static bool has_text(const char *const *texts, const char *version)
{
	for (; *texts; texts++)
		if (strstr(version, *texts))
			return true;
	return false;
}

static const struct family *family_named(const char *name)
{
	for (size_t i = 0; name && i < COUNT(families); i++)
		if (strcmp(families[i].name, name) == 0)
			return &families[i];
	return NULL;
}

static bool is_abi(const struct abi *a, void *handle, const char *version)
{
	int (*abi_version)(int *, int *) = NULL;
	int major = 0, minor = 0;

	if (a->standard) {
		*(void **)&abi_version = dlsym(handle, "MPI_Abi_get_version");
		return abi_version && abi_version(&major, &minor) == 0 && major == a->standard;
	}
	if (a->world_symbol)
		return dlsym(handle, a->world_symbol) && dlsym(handle, a->byte_symbol);
	return has_text(a->texts, version);
}

/* Fills `out`; NULL, or what is wrong, as the end of a sentence that begins with its name. */
static const char *look_at(void *handle, const struct meet_job *job, struct mpi_library *out,
			   struct buf *why)
{
	struct {
		const char *name;
		void **to;
		bool may_lack;
	} functions[] = {
		{"MPI_Init_thread", (void **)&out->init_thread, false},
		{"MPI_Comm_rank", (void **)&out->comm_rank, false},
		{"MPI_Comm_size", (void **)&out->comm_size, false},
		{"MPI_Bcast", (void **)&out->bcast, false},
		{"MPI_Ibarrier", (void **)&out->ibarrier, true},
		{"MPI_Ibcast", (void **)&out->ibcast, true},
		{"MPI_Test", (void **)&out->test, true},
		{"MPI_Finalize", (void **)&out->finalize, false},
		{"MPI_Abort", (void **)&out->abort_all, false},
		{"MPI_Error_string", (void **)&out->error_string, true},
	};
	int (*library_version)(char *, int *) = NULL;
	const struct family *family = family_named(job->library);
	const struct abi *abi = NULL;
	char text[MPI_TEXT_MAX] = "";
	int length = 0;

	for (size_t i = 0; i < COUNT(functions); i++) {
		*functions[i].to = dlsym(handle, functions[i].name);
		if (!*functions[i].to && !functions[i].may_lack) {
			buf_printf(why, "lacks %s", functions[i].name);
			return why->data;
		}
	}
	*(void **)&library_version = dlsym(handle, "MPI_Get_library_version");
	if (!library_version) {
		buf_puts(why, "lacks MPI_Get_library_version (MPI 3.0)");
		return why->data;
	}
	library_version(text, &length);
	text[sizeof(text) - 1] = '\0';
	snprintf(out->version, sizeof(out->version), "%.*s", (int)strcspn(text, "\n,"), text);
	for (char *p = out->version; *p; p++)
		*p = *p == '\t' ? ' ' : *p;
	for (size_t i = 0; !abi && i < COUNT(abis); i++)
		if (is_abi(&abis[i], handle, text))
			abi = &abis[i];
	if (!abi) {
		buf_printf(why,
			   "(%s) has an unknown binary interface: known are Open MPI's, MPICH's "
			   "and the MPI standard's",
			   out->version[0] ? out->version : "no version");
		return why->data;
	}
	if (job->library && strcmp(job->library, "standard") == 0 && !abi->standard) {
		buf_printf(why, "(%s) has %s own binary interface", out->version, abi->name);
		return why->data;
	}
	if (family && !has_text(family->texts, text)) {
		buf_printf(why, "is %s, not %s", out->version, family->shown);
		return why->data;
	}
	out->abi = abi->name;
	out->funneled = abi->funneled;
	out->serialized = abi->serialized;
	out->comm_world = abi->world_symbol ? dlsym(handle, abi->world_symbol) : (void *)abi->world;
	out->byte = abi->byte_symbol ? dlsym(handle, abi->byte_symbol) : (void *)abi->byte;
	return NULL;
}

/* ---- where one is looked for ---- */

struct search {
	const struct meet_job *job;
	struct mpi_library *out;
	struct buf absent;   /* folders in which there is none */
	struct buf rejected; /* libraries that will not do, and why */
	unsigned folders;
};

/* The likelier ones of a family first; a name without a number is often there for compilers only.
 */
static const struct {
	const char *file, *family;
} names[] = {
	{"libmpi.so.40", "openmpi"},    {"libmpi.so.12", "mpich"},
	{"libmpich.so.12", "mpich"},    {"libmpi_cray.so.12", "mpich"},
	{"libmpi_abi.so.0", NULL},      {"libmpi_abi.so.1", NULL},
	{"libmpi_ibm.so.3", "openmpi"}, {"libmpi.so.20", "openmpi"},
	{"libmpich.so.10", "mpich"},    {"libmpi.so", NULL},
	{"libmpich.so", "mpich"},
};

static void reject(struct search *s, const char *name, const char *why)
{
	name = name ? name : "the one that is loaded already";
	if (s->rejected.len < 500 && !(s->rejected.data && strstr(s->rejected.data, why)))
		buf_printf(&s->rejected, "%s'%s' %.200s", s->rejected.len ? "; " : "", name, why);
}

/* Whether a file ends before what its program headers map. Of other kinds of files, and of those
 * that cannot be read: no. */
static bool elf_is_cut(const char *path)
{
	struct stat st;
	int fd = file_open(path, &st, NULL);
	Elf64_Ehdr head;
	Elf64_Phdr part;
	bool cut = false;

	if (fd < 0)
		return false;
	if (pread_fully(fd, &head, sizeof(head), 0) == (ssize_t)sizeof(head) &&
	    memcmp(head.e_ident, ELFMAG, SELFMAG) == 0 && head.e_ident[EI_CLASS] == ELFCLASS64 &&
	    head.e_phentsize == sizeof(part))
		for (uint64_t i = 0; !cut && i < head.e_phnum; i++) {
			off_t at = (off_t)(head.e_phoff + i * sizeof(part));

			if (pread_fully(fd, &part, sizeof(part), at) != (ssize_t)sizeof(part))
				cut = true;
			else if (part.p_type == PT_LOAD)
				cut = part.p_offset > (uint64_t)st.st_size ||
				      part.p_filesz > (uint64_t)st.st_size - part.p_offset;
		}
	close(fd);
	return cut;
}

/* Whether it is the one; with its reasons noted if it is there and is not. */
static bool try(struct search *s, const char *name)
{
	struct buf why = {0};
	const char *wrong, *error;
	void *handle = NULL;

	/* the loader maps what the headers say, and dies of a page behind the end */
	if (name && strchr(name, '/') && elf_is_cut(name)) {
		reject(s, name, "is cut short: its headers name more than the file has");
		return false;
	}
	handle = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
	if (!handle) {
		error = dlerror();
		/* a missing library is only the next one to try; an error about another file, which
		 * this one needs, is reported */
		if (error && (strchr(name, '/') || !strstr(error, "No such file") ||
			      !str_starts(error, name))) {
			buf_printf(&why, "cannot be loaded: %s", error);
			reject(s, name, why.data);
		}
		buf_release(&why);
		return false;
	}
	wrong = look_at(handle, s->job, s->out, &why);
	if (wrong) {
		reject(s, name, wrong);
		dlclose(handle);
	} else {
		snprintf(s->out->name, sizeof(s->out->name), "%s", name ? name : "loaded already");
		/* its own plugins look for its symbols */
		dlopen(name, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD);
	}
	buf_release(&why);
	return !wrong;
}

/* All names in a folder; NULL: where the loader looks. */
static bool try_folder(struct search *s, const char *folder)
{
	const char *wanted = family_named(s->job->library) ? s->job->library : NULL;
	unsigned there = 0;

	if (folder && !file_is_dir(folder))
		return false;
	for (int likely = 1; likely >= 0; likely--)
		for (size_t i = 0; i < COUNT(names); i++) {
			bool first =
				!wanted || !names[i].family || strcmp(names[i].family, wanted) == 0;
			AUTO_FREE char *path =
				folder ? path_join(folder, names[i].file) : xstrdup(names[i].file);

			if (first != (likely == 1) || (folder && access(path, F_OK) != 0))
				continue;
			there++;
			if (try(s, path))
				return true;
		}
	if (folder && !there && s->folders++ < 4)
		buf_printf(&s->absent, ", in '%.100s'", folder);
	return false;
}

static bool try_prefix(struct search *s, const char *prefix)
{
	static const char *const below[] = {"lib", "lib64", "lib/release"};

	if (!prefix || prefix[0] != '/')
		return false;
	for (size_t i = 0; i < COUNT(below); i++) {
		AUTO_FREE char *folder = path_join(prefix, below[i]);

		if (try_folder(s, folder))
			return true;
	}
	return false;
}

/* The launcher's own installation, as far as it says, and as its program lies in <prefix>/bin. */
static bool try_launcher(struct search *s)
{
	static const char *const variables[] = {"OPAL_PREFIX",   "I_MPI_ROOT",  "CRAY_MPICH_DIR",
						"MPI_HOME",      "MPI_ROOT",    "MPICH_DIR",
						"EBROOTOPENMPI", "EBROOTMPICH", "EBROOTIMPI"};
	struct ancestor above[ANCESTORS_MAX];
	size_t n = s->job->rank ? ancestors_to_launcher(s->job->rank, above) : 0;
	bool found = false;

	for (size_t i = 0; !found && i < COUNT(variables); i++)
		found = try_prefix(s, getenv(variables[i]));
	while (!found && n > 0) {
		char link[64], path[PATH_MAX];
		ssize_t length;

		snprintf(link, sizeof(link), "/proc/%d/exe", (int)above[--n].pid);
		length = readlink(link, path, sizeof(path) - 1);
		if (length > 0) {
			AUTO_FREE char *folder = NULL, *prefix = NULL;

			path[length] = '\0';
			folder = path_dirname(path);
			prefix = path_dirname(folder);
			found = try_prefix(s, prefix);
		}
	}
	return found;
}

static bool try_usual(struct search *s)
{
	static const char *const patterns[] = {
		"/usr/lib*/openmpi/lib",
		"/usr/lib*/mpich*/lib",
		"/usr/lib*/mvapich*/lib",
		"/usr/lib/*/openmpi/lib",
		"/usr/mpi/*/*/lib*",
		"/usr/local/lib",
		"/usr/local/*mpi*/lib*",
		"/opt/*mpi*/lib*",
		"/opt/*mpi*/*/lib*",
		"/opt/amazon/openmpi*/lib*",
		"/opt/cray/pe/lib64",
		"/opt/intel/oneapi/mpi/latest/lib*",
		"/opt/intel/oneapi/mpi/latest/lib/release",
	};
	bool found = false;

	for (size_t i = 0; !found && i < COUNT(patterns); i++) {
		glob_t g;

		if (glob(patterns[i], 0, NULL, &g) != 0)
			continue;
		for (size_t k = 0; !found && k < g.gl_pathc; k++)
			found = try_folder(s, g.gl_pathv[k]);
		globfree(&g);
	}
	return found;
}

/* One that the loader was told to load before all others. */
static bool try_loaded(struct search *s)
{
	return dlsym(RTLD_DEFAULT, "MPI_Init_thread") && try(s, NULL);
}

static int say_tried(struct search *s, struct err *e)
{
	const struct family *family = family_named(s->job->library);
	struct buf tried = {0};
	unsigned more = s->folders > 4 ? s->folders - 4 : 0;

	for (size_t i = 0; i < COUNT(names); i++)
		buf_printf(&tried, "%s%s", i ? ", " : "", names[i].file);
	if (more)
		buf_printf(&s->absent, ", in %u more folders", more);
	err_set(e, ERR_ABSENT,
		"%s%s no usable MPI library%s%s was found%s. Looked for: %s; "
		"with LD_LIBRARY_PATH%s, and in the usual folders%s%s. Set STOKER_MPI to the path "
		"of the launcher's library",
		s->job->launcher,
		s->job->keeps ? " started the processes, and"
			      : " started processes on several hosts, or does not say on how many, "
				"and",
		family ? " of the kind " : "", family ? family->shown : "",
		s->job->keeps ? " for the barriers (comm.barrier)"
			      : " through which they could find each other",
		tried.data, s->absent.data ? s->absent.data : "",
		s->rejected.len ? "; found: " : "", s->rejected.data ? s->rejected.data : "");
	buf_release(&tried);
	return ERR_ABSENT;
}

int mpi_library_find(const struct meet_job *job, struct mpi_library *out, struct err *e)
{
	struct search s = {.job = job, .out = out};
	const char *named = job->library && strchr(job->library, '/') ? job->library : NULL;
	int rc = 0;

	if (named) {
		if (!try(&s, named))
			rc = err_set(e, ERR_ABSENT, "STOKER_MPI: the MPI library %s",
				     s.rejected.data);
	} else if (!try_loaded(&s) && !try_launcher(&s) && !try_folder(&s, NULL) &&
		   !try_usual(&s)) {
		rc = say_tried(&s, e);
	}
	buf_release(&s.absent);
	buf_release(&s.rejected);
	return rc;
}
