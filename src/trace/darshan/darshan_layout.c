/* Darshan's records as a table. */
#include "trace/darshan/darshan_log.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"

/* Names that several modules have, each with a blank behind it. */
#define FOUR(p, s) p "1" s " " p "2" s " " p "3" s " " p "4" s " "
#define FIVE(p) p "_D1 " p "_D2 " p "_D3 " p "_D4 " p "_D5 "
#define BUCKETS(p)                                                                                 \
	p "_0_100 " p "_100_1K " p "_1K_10K " p "_10K_100K " p "_100K_1M " p "_1M_4M " p           \
	  "_4M_10M " p "_10M_100M " p "_100M_1G " p "_1G_PLUS "
#define SHAPE(p) p "_ACCESS " FIVE(p "_LENGTH") FIVE(p "_STRIDE")
#define VARS(p) p " " p "1 " p "A " p "S " p "M " p "N "
#define RANKS "FASTEST_RANK FASTEST_RANK_BYTES SLOWEST_RANK SLOWEST_RANK_BYTES "
#define SPAN(s)                                                                                    \
	"OPEN_" s "_TIMESTAMP READ_" s "_TIMESTAMP WRITE_" s "_TIMESTAMP CLOSE_" s "_TIMESTAMP "
#define TIMES                                                                                      \
	SPAN("START")                                                                              \
	SPAN("END")                                                                                \
	"READ_TIME WRITE_TIME META_TIME MAX_READ_TIME MAX_WRITE_TIME "                             \
	"FASTEST_RANK_TIME SLOWEST_RANK_TIME "
#define VARIANCES "VARIANCE_RANK_TIME VARIANCE_RANK_BYTES "

/* The counters of each module in its newest version, in the order of its records, without the
 * module's prefix: integers, then doubles, whose names have "F_" behind the prefix. */
/* clang-format off */
static const struct {
	const char *prefix, *ints, *doubles;
} counters[DARSHAN_KNOWN] = {
	[DARSHAN_POSIX] = {
		"POSIX_",
		"OPENS FILENOS DUPS READS WRITES SEEKS STATS MMAPS FSYNCS FDSYNCS RENAME_SOURCES "
		"RENAME_TARGETS RENAMED_FROM MODE BYTES_READ BYTES_WRITTEN MAX_BYTE_READ "
		"MAX_BYTE_WRITTEN CONSEC_READS CONSEC_WRITES SEQ_READS SEQ_WRITES RW_SWITCHES "
		"MEM_NOT_ALIGNED MEM_ALIGNMENT FILE_NOT_ALIGNED FILE_ALIGNMENT MAX_READ_TIME_SIZE "
		"MAX_WRITE_TIME_SIZE " BUCKETS("SIZE_READ") BUCKETS("SIZE_WRITE")
		FOUR("STRIDE", "_STRIDE") FOUR("STRIDE", "_COUNT") FOUR("ACCESS", "_ACCESS")
		FOUR("ACCESS", "_COUNT") RANKS,
		TIMES VARIANCES,
	},
	[DARSHAN_MPIIO] = {
		"MPIIO_",
		"INDEP_OPENS COLL_OPENS INDEP_READS INDEP_WRITES COLL_READS COLL_WRITES "
		"SPLIT_READS SPLIT_WRITES NB_READS NB_WRITES SYNCS HINTS VIEWS MODE BYTES_READ "
		"BYTES_WRITTEN RW_SWITCHES MAX_READ_TIME_SIZE MAX_WRITE_TIME_SIZE "
		BUCKETS("SIZE_READ_AGG") BUCKETS("SIZE_WRITE_AGG") FOUR("ACCESS", "_ACCESS")
		FOUR("ACCESS", "_COUNT") RANKS,
		TIMES VARIANCES,
	},
	[DARSHAN_STDIO] = {
		"STDIO_",
		"OPENS FDOPENS READS WRITES SEEKS FLUSHES BYTES_WRITTEN BYTES_READ MAX_BYTE_READ "
		"MAX_BYTE_WRITTEN " RANKS,
		"META_TIME WRITE_TIME READ_TIME OPEN_START_TIMESTAMP CLOSE_START_TIMESTAMP "
		"WRITE_START_TIMESTAMP READ_START_TIMESTAMP OPEN_END_TIMESTAMP CLOSE_END_TIMESTAMP "
		"WRITE_END_TIMESTAMP READ_END_TIMESTAMP FASTEST_RANK_TIME SLOWEST_RANK_TIME "
		"VARIANCE_RANK_TIME VARIANCE_RANK_BYTES ",
	},
	[DARSHAN_H5F] = {
		"H5F_",
		"OPENS FLUSHES USE_MPIIO ",
		"OPEN_START_TIMESTAMP CLOSE_START_TIMESTAMP OPEN_END_TIMESTAMP CLOSE_END_TIMESTAMP "
		"META_TIME ",
	},
	[DARSHAN_H5D] = {
		"H5D_",
		"OPENS READS WRITES FLUSHES BYTES_READ BYTES_WRITTEN RW_SWITCHES "
		"REGULAR_HYPERSLAB_SELECTS IRREGULAR_HYPERSLAB_SELECTS POINT_SELECTS "
		"MAX_READ_TIME_SIZE MAX_WRITE_TIME_SIZE " BUCKETS("SIZE_READ_AGG")
		BUCKETS("SIZE_WRITE_AGG") SHAPE("ACCESS1") SHAPE("ACCESS2") SHAPE("ACCESS3")
		SHAPE("ACCESS4") FOUR("ACCESS", "_COUNT") "DATASPACE_NDIMS DATASPACE_NPOINTS "
		"DATATYPE_SIZE " FIVE("CHUNK_SIZE") "USE_MPIIO_COLLECTIVE USE_DEPRECATED " RANKS,
		TIMES VARIANCES,
	},
	[DARSHAN_PNETCDF_FILE] = {
		"PNETCDF_FILE_",
		"CREATES OPENS REDEFS INDEP_WAITS COLL_WAITS SYNCS BYTES_READ BYTES_WRITTEN "
		"WAIT_FAILURES ",
		"OPEN_START_TIMESTAMP CLOSE_START_TIMESTAMP WAIT_START_TIMESTAMP "
		"OPEN_END_TIMESTAMP CLOSE_END_TIMESTAMP WAIT_END_TIMESTAMP META_TIME WAIT_TIME ",
	},
	[DARSHAN_PNETCDF_VAR] = {
		"PNETCDF_VAR_",
		"OPENS INDEP_READS INDEP_WRITES COLL_READS COLL_WRITES NB_READS NB_WRITES "
		"BYTES_READ BYTES_WRITTEN RW_SWITCHES " VARS("PUT_VAR") "PUT_VARD " VARS("GET_VAR")
		"GET_VARD " VARS("IPUT_VAR") VARS("IGET_VAR") VARS("BPUT_VAR") "MAX_READ_TIME_SIZE "
		"MAX_WRITE_TIME_SIZE " BUCKETS("SIZE_READ_AGG") BUCKETS("SIZE_WRITE_AGG")
		SHAPE("ACCESS1") SHAPE("ACCESS2") SHAPE("ACCESS3") SHAPE("ACCESS4")
		FOUR("ACCESS", "_COUNT") "NDIMS NPOINTS DATATYPE_SIZE IS_RECORD_VAR " RANKS,
		TIMES VARIANCES,
	},
	[DARSHAN_BGQ] = {
		"BGQ_",
		"CSJOBID NNODES RANKSPERNODE DDRPERNODE INODES ANODES BNODES CNODES DNODES ENODES "
		"TORUSENABLED ",
		"TIMESTAMP ",
	},
	[DARSHAN_DFS] = {
		"DFS_",
		"OPENS GLOBAL_OPENS LOOKUPS DUPS READS READXS WRITES WRITEXS NB_READS NB_WRITES "
		"GET_SIZES PUNCHES REMOVES STATS BYTES_READ BYTES_WRITTEN RW_SWITCHES "
		"MAX_READ_TIME_SIZE MAX_WRITE_TIME_SIZE " BUCKETS("SIZE_READ") BUCKETS("SIZE_WRITE")
		FOUR("ACCESS", "_ACCESS") FOUR("ACCESS", "_COUNT") "CHUNK_SIZE " RANKS,
		TIMES,
	},
	[DARSHAN_DAOS] = {
		"DAOS_",
		"OBJ_OPENS OBJ_FETCHES OBJ_UPDATES OBJ_PUNCHES OBJ_DKEY_PUNCHES OBJ_AKEY_PUNCHES "
		"OBJ_DKEY_LISTS OBJ_AKEY_LISTS OBJ_RECX_LISTS ARRAY_OPENS ARRAY_READS ARRAY_WRITES "
		"ARRAY_GET_SIZES ARRAY_SET_SIZES ARRAY_STATS ARRAY_PUNCHES ARRAY_DESTROYS KV_OPENS "
		"KV_GETS KV_PUTS KV_REMOVES KV_LISTS KV_DESTROYS NB_OPS BYTES_READ BYTES_WRITTEN "
		"RW_SWITCHES MAX_READ_TIME_SIZE MAX_WRITE_TIME_SIZE " BUCKETS("SIZE_READ")
		BUCKETS("SIZE_WRITE") FOUR("ACCESS", "_ACCESS") FOUR("ACCESS", "_COUNT")
		"OBJ_OTYPE ARRAY_CELL_SIZE ARRAY_CHUNK_SIZE " RANKS,
		TIMES,
	},
};

/* what older versions lack */
static const int8_t posix_before_4[] = {1, 2, 10, 11, 12, -1};
static const int8_t before_close_start[] = {3, 4, -1};
static const int8_t stdio_before_2[] = {1, -1};
static const int8_t h5f_before_3[] = {1, 2, -1}, h5f_f_2[] = {4, -1}, h5f_f_1[] = {1, 2, 4, -1};
static const int8_t pnetcdf_before_3[] = {0, 2, 3, 4, 5, 6, 7, 8, -1};
static const int8_t pnetcdf_f_2[] = {2, 5, 6, 7, -1}, pnetcdf_f_1[] = {1, 2, 3, 5, 6, 7, -1};

/* The names are filled in at first use. */
static struct darshan_layout layouts[] = {
	{.module = DARSHAN_POSIX, .version = 4},
	{.module = DARSHAN_POSIX, .version = 3, .absent_int = posix_before_4,
	 .absent_zero = POSIX_RENAMED_FROM},
	{.module = DARSHAN_POSIX, .version = 2, .absent_int = posix_before_4,
	 .absent_zero = POSIX_RENAMED_FROM, .absent_double = before_close_start},
	{.module = DARSHAN_POSIX, .version = 1, .keep = 6, .dropped = 4,
	 .absent_int = posix_before_4, .absent_zero = POSIX_RENAMED_FROM,
	 .absent_double = before_close_start},
	{.module = DARSHAN_MPIIO, .version = 3},
	{.module = DARSHAN_MPIIO, .version = 2, .absent_double = before_close_start},
	{.module = DARSHAN_MPIIO, .version = 1, .absent_double = before_close_start},
	{.module = DARSHAN_STDIO, .version = 2},
	{.module = DARSHAN_STDIO, .version = 1, .absent_int = stdio_before_2},
	{.module = DARSHAN_H5F, .version = 3},
	{.module = DARSHAN_H5F, .version = 2, .absent_int = h5f_before_3, .absent_double = h5f_f_2},
	{.module = DARSHAN_H5F, .version = 1, .absent_int = h5f_before_3, .absent_double = h5f_f_1},
	{.module = DARSHAN_H5D, .version = 2, .has_file_id = true,
	 .file_id_name = "H5D_FILE_REC_ID"},
	{.module = DARSHAN_H5D, .version = 1, .file_id_name = "H5D_FILE_REC_ID"},
	{.module = DARSHAN_PNETCDF_FILE, .version = 3},
	{.module = DARSHAN_PNETCDF_FILE, .version = 2, .merged = 2, .merged_into = 1,
	 .absent_int = pnetcdf_before_3, .absent_double = pnetcdf_f_2},
	{.module = DARSHAN_PNETCDF_FILE, .version = 1, .merged = 2, .merged_into = 1,
	 .absent_int = pnetcdf_before_3, .absent_double = pnetcdf_f_1},
	{.module = DARSHAN_PNETCDF_VAR, .version = 1, .has_file_id = true,
	 .file_id_name = "PNETCDF_VAR_FILE_REC_ID"},
	{.module = DARSHAN_BGQ, .version = 2},
	{.module = DARSHAN_BGQ, .version = 1, .before = 8},
	{.module = DARSHAN_DFS, .version = 1, .after = 32},
	{.module = DARSHAN_DAOS, .version = 1, .after = 48},
};
/* clang-format on */

/* The names of a list with their prefix: how many. They live as long as the program. */
static uint16_t split(const char *words, const char *prefix, const char *infix, const char ***out)
{
	const char **name = xcalloc(DARSHAN_INTS, sizeof(*name));
	uint16_t n = 0;

	for (size_t length; *words; words += length + 1) {
		length = strcspn(words, " ");
		assert(n < DARSHAN_INTS);
		name[n++] = xasprintf("%s%s%.*s", prefix, infix, (int)length, words);
	}
	*out = name;
	return n;
}

static void name_counters(void)
{
	for (unsigned m = 0; m < DARSHAN_KNOWN; m++) {
		struct darshan_layout of = {0};

		if (!counters[m].prefix)
			continue;
		of.ints = split(counters[m].ints, counters[m].prefix, "", &of.int_name);
		of.doubles = split(counters[m].doubles, counters[m].prefix, "F_", &of.double_name);
		assert(of.doubles <= DARSHAN_DOUBLES);
		for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++)
			if (layouts[i].module == m) {
				layouts[i].ints = of.ints;
				layouts[i].doubles = of.doubles;
				layouts[i].int_name = of.int_name;
				layouts[i].double_name = of.double_name;
			}
	}
}

const struct darshan_layout *darshan_layout(unsigned module, uint32_t version)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, name_counters);
	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++)
		if (layouts[i].module == module && layouts[i].version == version)
			return &layouts[i];
	return NULL;
}

static size_t listed(const int8_t *index)
{
	size_t n = 0;

	while (index && index[n] >= 0)
		n++;
	return n;
}

size_t darshan_record_bytes(const struct darshan_layout *l)
{
	size_t ints = l->merged ? l->merged : l->ints - listed(l->absent_int) + l->dropped;
	size_t bytes = 16 + l->before + (l->has_file_id ? 8u : 0u) + 8 * ints +
		       8 * (l->doubles - listed(l->absent_double)) + l->after;

	assert(bytes <= DARSHAN_RECORD_MAX);
	return bytes;
}

const char *darshan_module_name(unsigned module)
{
	static const char *const name[] = {
		"NULL",        "POSIX", "MPI-IO", "H5F",     "H5D",       "PNETCDF_FILE",
		"PNETCDF_VAR", "BG/Q",  "LUSTRE", "STDIO",   "DXT_POSIX", "DXT_MPIIO",
		"MDHIM",       "APXC",  "APMPI",  "HEATMAP", "DFS",       "DAOS",
	};
	static _Thread_local char other[24];

	if (module < sizeof(name) / sizeof(name[0]))
		return name[module];
	snprintf(other, sizeof(other), "module %u", module);
	return other;
}

uint32_t darshan_newest(unsigned module)
{
	static const uint8_t newest[DARSHAN_KNOWN] = {
		[DARSHAN_POSIX] = 4,     [DARSHAN_MPIIO] = 3,        [DARSHAN_H5F] = 3,
		[DARSHAN_H5D] = 2,       [DARSHAN_PNETCDF_FILE] = 3, [DARSHAN_PNETCDF_VAR] = 1,
		[DARSHAN_BGQ] = 2,       [DARSHAN_LUSTRE] = 2,       [DARSHAN_STDIO] = 2,
		[DARSHAN_DXT_POSIX] = 2, [DARSHAN_DXT_MPIIO] = 3,    [DARSHAN_HEATMAP] = 1,
		[DARSHAN_DFS] = 1,       [DARSHAN_DAOS] = 1,
	};

	return module < DARSHAN_KNOWN ? newest[module] : 0;
}
