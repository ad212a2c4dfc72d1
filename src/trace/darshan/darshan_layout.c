/* Darshan's records as a table. */
#include "trace/darshan/darshan_layout.h"

#include <assert.h>
#include <stdio.h>

/* Names that several modules have behind their own prefix. */
#define FOUR(p, s) p "1" s, p "2" s, p "3" s, p "4" s
#define FIVE(p) p "_D1", p "_D2", p "_D3", p "_D4", p "_D5"
#define BUCKETS(p)                                                                                 \
	p "_0_100", p "_100_1K", p "_1K_10K", p "_10K_100K", p "_100K_1M", p "_1M_4M",             \
		p "_4M_10M", p "_10M_100M", p "_100M_1G", p "_1G_PLUS"
#define SHAPE(p) p "_ACCESS", FIVE(p "_LENGTH"), FIVE(p "_STRIDE")
#define VARS(p) p, p "1", p "A", p "S", p "M", p "N"
#define RANKS(p) p "FASTEST_RANK", p "FASTEST_RANK_BYTES", p "SLOWEST_RANK", p "SLOWEST_RANK_BYTES"
#define SPAN(p, s)                                                                                 \
	p "OPEN_" s "_TIMESTAMP", p "READ_" s "_TIMESTAMP", p "WRITE_" s "_TIMESTAMP",             \
		p "CLOSE_" s "_TIMESTAMP"
#define TIMES(p)                                                                                   \
	SPAN(p, "START"), SPAN(p, "END"), p "READ_TIME", p "WRITE_TIME", p "META_TIME",            \
		p "MAX_READ_TIME", p "MAX_WRITE_TIME", p "FASTEST_RANK_TIME",                      \
		p "SLOWEST_RANK_TIME"
#define VARIANCES(p) p "VARIANCE_RANK_TIME", p "VARIANCE_RANK_BYTES"

static const char *const posix_int[] = {"POSIX_OPENS",
					"POSIX_FILENOS",
					"POSIX_DUPS",
					"POSIX_READS",
					"POSIX_WRITES",
					"POSIX_SEEKS",
					"POSIX_STATS",
					"POSIX_MMAPS",
					"POSIX_FSYNCS",
					"POSIX_FDSYNCS",
					"POSIX_RENAME_SOURCES",
					"POSIX_RENAME_TARGETS",
					"POSIX_RENAMED_FROM",
					"POSIX_MODE",
					"POSIX_BYTES_READ",
					"POSIX_BYTES_WRITTEN",
					"POSIX_MAX_BYTE_READ",
					"POSIX_MAX_BYTE_WRITTEN",
					"POSIX_CONSEC_READS",
					"POSIX_CONSEC_WRITES",
					"POSIX_SEQ_READS",
					"POSIX_SEQ_WRITES",
					"POSIX_RW_SWITCHES",
					"POSIX_MEM_NOT_ALIGNED",
					"POSIX_MEM_ALIGNMENT",
					"POSIX_FILE_NOT_ALIGNED",
					"POSIX_FILE_ALIGNMENT",
					"POSIX_MAX_READ_TIME_SIZE",
					"POSIX_MAX_WRITE_TIME_SIZE",
					BUCKETS("POSIX_SIZE_READ"),
					BUCKETS("POSIX_SIZE_WRITE"),
					FOUR("POSIX_STRIDE", "_STRIDE"),
					FOUR("POSIX_STRIDE", "_COUNT"),
					FOUR("POSIX_ACCESS", "_ACCESS"),
					FOUR("POSIX_ACCESS", "_COUNT"),
					RANKS("POSIX_")};

static const char *const posix_double[] = {TIMES("POSIX_F_"), VARIANCES("POSIX_F_")};

static const char *const mpiio_int[] = {"MPIIO_INDEP_OPENS",
					"MPIIO_COLL_OPENS",
					"MPIIO_INDEP_READS",
					"MPIIO_INDEP_WRITES",
					"MPIIO_COLL_READS",
					"MPIIO_COLL_WRITES",
					"MPIIO_SPLIT_READS",
					"MPIIO_SPLIT_WRITES",
					"MPIIO_NB_READS",
					"MPIIO_NB_WRITES",
					"MPIIO_SYNCS",
					"MPIIO_HINTS",
					"MPIIO_VIEWS",
					"MPIIO_MODE",
					"MPIIO_BYTES_READ",
					"MPIIO_BYTES_WRITTEN",
					"MPIIO_RW_SWITCHES",
					"MPIIO_MAX_READ_TIME_SIZE",
					"MPIIO_MAX_WRITE_TIME_SIZE",
					BUCKETS("MPIIO_SIZE_READ_AGG"),
					BUCKETS("MPIIO_SIZE_WRITE_AGG"),
					FOUR("MPIIO_ACCESS", "_ACCESS"),
					FOUR("MPIIO_ACCESS", "_COUNT"),
					RANKS("MPIIO_")};

static const char *const mpiio_double[] = {TIMES("MPIIO_F_"), VARIANCES("MPIIO_F_")};

static const char *const stdio_int[] = {
	"STDIO_OPENS",         "STDIO_FDOPENS",          "STDIO_READS",         "STDIO_WRITES",
	"STDIO_SEEKS",         "STDIO_FLUSHES",          "STDIO_BYTES_WRITTEN", "STDIO_BYTES_READ",
	"STDIO_MAX_BYTE_READ", "STDIO_MAX_BYTE_WRITTEN", RANKS("STDIO_")};

static const char *const stdio_double[] = {"STDIO_F_META_TIME",
					   "STDIO_F_WRITE_TIME",
					   "STDIO_F_READ_TIME",
					   "STDIO_F_OPEN_START_TIMESTAMP",
					   "STDIO_F_CLOSE_START_TIMESTAMP",
					   "STDIO_F_WRITE_START_TIMESTAMP",
					   "STDIO_F_READ_START_TIMESTAMP",
					   "STDIO_F_OPEN_END_TIMESTAMP",
					   "STDIO_F_CLOSE_END_TIMESTAMP",
					   "STDIO_F_WRITE_END_TIMESTAMP",
					   "STDIO_F_READ_END_TIMESTAMP",
					   "STDIO_F_FASTEST_RANK_TIME",
					   "STDIO_F_SLOWEST_RANK_TIME",
					   "STDIO_F_VARIANCE_RANK_TIME",
					   "STDIO_F_VARIANCE_RANK_BYTES"};

static const char *const h5f_int[] = {"H5F_OPENS", "H5F_FLUSHES", "H5F_USE_MPIIO"};

static const char *const h5f_double[] = {"H5F_F_OPEN_START_TIMESTAMP",
					 "H5F_F_CLOSE_START_TIMESTAMP", "H5F_F_OPEN_END_TIMESTAMP",
					 "H5F_F_CLOSE_END_TIMESTAMP", "H5F_F_META_TIME"};

static const char *const h5d_int[] = {"H5D_OPENS",
				      "H5D_READS",
				      "H5D_WRITES",
				      "H5D_FLUSHES",
				      "H5D_BYTES_READ",
				      "H5D_BYTES_WRITTEN",
				      "H5D_RW_SWITCHES",
				      "H5D_REGULAR_HYPERSLAB_SELECTS",
				      "H5D_IRREGULAR_HYPERSLAB_SELECTS",
				      "H5D_POINT_SELECTS",
				      "H5D_MAX_READ_TIME_SIZE",
				      "H5D_MAX_WRITE_TIME_SIZE",
				      BUCKETS("H5D_SIZE_READ_AGG"),
				      BUCKETS("H5D_SIZE_WRITE_AGG"),
				      SHAPE("H5D_ACCESS1"),
				      SHAPE("H5D_ACCESS2"),
				      SHAPE("H5D_ACCESS3"),
				      SHAPE("H5D_ACCESS4"),
				      FOUR("H5D_ACCESS", "_COUNT"),
				      "H5D_DATASPACE_NDIMS",
				      "H5D_DATASPACE_NPOINTS",
				      "H5D_DATATYPE_SIZE",
				      FIVE("H5D_CHUNK_SIZE"),
				      "H5D_USE_MPIIO_COLLECTIVE",
				      "H5D_USE_DEPRECATED",
				      RANKS("H5D_")};

static const char *const h5d_double[] = {TIMES("H5D_F_"), VARIANCES("H5D_F_")};

static const char *const pnetcdf_file_int[] = {
	"PNETCDF_FILE_CREATES",     "PNETCDF_FILE_OPENS",         "PNETCDF_FILE_REDEFS",
	"PNETCDF_FILE_INDEP_WAITS", "PNETCDF_FILE_COLL_WAITS",    "PNETCDF_FILE_SYNCS",
	"PNETCDF_FILE_BYTES_READ",  "PNETCDF_FILE_BYTES_WRITTEN", "PNETCDF_FILE_WAIT_FAILURES"};

static const char *const pnetcdf_file_double[] = {"PNETCDF_FILE_F_OPEN_START_TIMESTAMP",
						  "PNETCDF_FILE_F_CLOSE_START_TIMESTAMP",
						  "PNETCDF_FILE_F_WAIT_START_TIMESTAMP",
						  "PNETCDF_FILE_F_OPEN_END_TIMESTAMP",
						  "PNETCDF_FILE_F_CLOSE_END_TIMESTAMP",
						  "PNETCDF_FILE_F_WAIT_END_TIMESTAMP",
						  "PNETCDF_FILE_F_META_TIME",
						  "PNETCDF_FILE_F_WAIT_TIME"};

static const char *const pnetcdf_var_int[] = {"PNETCDF_VAR_OPENS",
					      "PNETCDF_VAR_INDEP_READS",
					      "PNETCDF_VAR_INDEP_WRITES",
					      "PNETCDF_VAR_COLL_READS",
					      "PNETCDF_VAR_COLL_WRITES",
					      "PNETCDF_VAR_NB_READS",
					      "PNETCDF_VAR_NB_WRITES",
					      "PNETCDF_VAR_BYTES_READ",
					      "PNETCDF_VAR_BYTES_WRITTEN",
					      "PNETCDF_VAR_RW_SWITCHES",
					      VARS("PNETCDF_VAR_PUT_VAR"),
					      "PNETCDF_VAR_PUT_VARD",
					      VARS("PNETCDF_VAR_GET_VAR"),
					      "PNETCDF_VAR_GET_VARD",
					      VARS("PNETCDF_VAR_IPUT_VAR"),
					      VARS("PNETCDF_VAR_IGET_VAR"),
					      VARS("PNETCDF_VAR_BPUT_VAR"),
					      "PNETCDF_VAR_MAX_READ_TIME_SIZE",
					      "PNETCDF_VAR_MAX_WRITE_TIME_SIZE",
					      BUCKETS("PNETCDF_VAR_SIZE_READ_AGG"),
					      BUCKETS("PNETCDF_VAR_SIZE_WRITE_AGG"),
					      SHAPE("PNETCDF_VAR_ACCESS1"),
					      SHAPE("PNETCDF_VAR_ACCESS2"),
					      SHAPE("PNETCDF_VAR_ACCESS3"),
					      SHAPE("PNETCDF_VAR_ACCESS4"),
					      FOUR("PNETCDF_VAR_ACCESS", "_COUNT"),
					      "PNETCDF_VAR_NDIMS",
					      "PNETCDF_VAR_NPOINTS",
					      "PNETCDF_VAR_DATATYPE_SIZE",
					      "PNETCDF_VAR_IS_RECORD_VAR",
					      RANKS("PNETCDF_VAR_")};

static const char *const pnetcdf_var_double[] = {TIMES("PNETCDF_VAR_F_"),
						 VARIANCES("PNETCDF_VAR_F_")};

static const char *const bgq_int[] = {"BGQ_CSJOBID",    "BGQ_NNODES",      "BGQ_RANKSPERNODE",
				      "BGQ_DDRPERNODE", "BGQ_INODES",      "BGQ_ANODES",
				      "BGQ_BNODES",     "BGQ_CNODES",      "BGQ_DNODES",
				      "BGQ_ENODES",     "BGQ_TORUSENABLED"};

static const char *const bgq_double[] = {"BGQ_F_TIMESTAMP"};

static const char *const dfs_int[] = {"DFS_OPENS",
				      "DFS_GLOBAL_OPENS",
				      "DFS_LOOKUPS",
				      "DFS_DUPS",
				      "DFS_READS",
				      "DFS_READXS",
				      "DFS_WRITES",
				      "DFS_WRITEXS",
				      "DFS_NB_READS",
				      "DFS_NB_WRITES",
				      "DFS_GET_SIZES",
				      "DFS_PUNCHES",
				      "DFS_REMOVES",
				      "DFS_STATS",
				      "DFS_BYTES_READ",
				      "DFS_BYTES_WRITTEN",
				      "DFS_RW_SWITCHES",
				      "DFS_MAX_READ_TIME_SIZE",
				      "DFS_MAX_WRITE_TIME_SIZE",
				      BUCKETS("DFS_SIZE_READ"),
				      BUCKETS("DFS_SIZE_WRITE"),
				      FOUR("DFS_ACCESS", "_ACCESS"),
				      FOUR("DFS_ACCESS", "_COUNT"),
				      "DFS_CHUNK_SIZE",
				      RANKS("DFS_")};

static const char *const dfs_double[] = {TIMES("DFS_F_")};

static const char *const daos_int[] = {"DAOS_OBJ_OPENS",
				       "DAOS_OBJ_FETCHES",
				       "DAOS_OBJ_UPDATES",
				       "DAOS_OBJ_PUNCHES",
				       "DAOS_OBJ_DKEY_PUNCHES",
				       "DAOS_OBJ_AKEY_PUNCHES",
				       "DAOS_OBJ_DKEY_LISTS",
				       "DAOS_OBJ_AKEY_LISTS",
				       "DAOS_OBJ_RECX_LISTS",
				       "DAOS_ARRAY_OPENS",
				       "DAOS_ARRAY_READS",
				       "DAOS_ARRAY_WRITES",
				       "DAOS_ARRAY_GET_SIZES",
				       "DAOS_ARRAY_SET_SIZES",
				       "DAOS_ARRAY_STATS",
				       "DAOS_ARRAY_PUNCHES",
				       "DAOS_ARRAY_DESTROYS",
				       "DAOS_KV_OPENS",
				       "DAOS_KV_GETS",
				       "DAOS_KV_PUTS",
				       "DAOS_KV_REMOVES",
				       "DAOS_KV_LISTS",
				       "DAOS_KV_DESTROYS",
				       "DAOS_NB_OPS",
				       "DAOS_BYTES_READ",
				       "DAOS_BYTES_WRITTEN",
				       "DAOS_RW_SWITCHES",
				       "DAOS_MAX_READ_TIME_SIZE",
				       "DAOS_MAX_WRITE_TIME_SIZE",
				       BUCKETS("DAOS_SIZE_READ"),
				       BUCKETS("DAOS_SIZE_WRITE"),
				       FOUR("DAOS_ACCESS", "_ACCESS"),
				       FOUR("DAOS_ACCESS", "_COUNT"),
				       "DAOS_OBJ_OTYPE",
				       "DAOS_ARRAY_CELL_SIZE",
				       "DAOS_ARRAY_CHUNK_SIZE",
				       RANKS("DAOS_")};

static const char *const daos_double[] = {TIMES("DAOS_F_")};

/* what older versions lack */
static const int8_t posix_before_4[] = {1, 2, 10, 11, 12, -1};
static const int8_t before_close_start[] = {3, 4, -1};
static const int8_t stdio_before_2[] = {1, -1};
static const int8_t h5f_before_3[] = {1, 2, -1}, h5f_f_2[] = {4, -1}, h5f_f_1[] = {1, 2, 4, -1};
static const int8_t pnetcdf_before_3[] = {0, 2, 3, 4, 5, 6, 7, 8, -1};
static const int8_t pnetcdf_f_2[] = {2, 5, 6, 7, -1}, pnetcdf_f_1[] = {1, 2, 3, 5, 6, 7, -1};

#define NAMES(x)                                                                                   \
	.ints = sizeof(x##_int) / sizeof(x##_int[0]),                                              \
	.doubles = sizeof(x##_double) / sizeof(x##_double[0]), .int_name = x##_int,                \
	.double_name = x##_double

static const struct darshan_layout layouts[] = {
	{NAMES(posix), .module = DARSHAN_POSIX, .version = 4},
	{NAMES(posix), .module = DARSHAN_POSIX, .version = 3, .absent_int = posix_before_4,
	 .absent_zero = POSIX_RENAMED_FROM},
	{NAMES(posix), .module = DARSHAN_POSIX, .version = 2, .absent_int = posix_before_4,
	 .absent_zero = POSIX_RENAMED_FROM, .absent_double = before_close_start},
	{NAMES(posix), .module = DARSHAN_POSIX, .version = 1, .keep = 6, .dropped = 4,
	 .absent_int = posix_before_4, .absent_zero = POSIX_RENAMED_FROM,
	 .absent_double = before_close_start},
	{NAMES(mpiio), .module = DARSHAN_MPIIO, .version = 3},
	{NAMES(mpiio), .module = DARSHAN_MPIIO, .version = 2, .absent_double = before_close_start},
	{NAMES(mpiio), .module = DARSHAN_MPIIO, .version = 1, .absent_double = before_close_start},
	{NAMES(stdio), .module = DARSHAN_STDIO, .version = 2},
	{NAMES(stdio), .module = DARSHAN_STDIO, .version = 1, .absent_int = stdio_before_2},
	{NAMES(h5f), .module = DARSHAN_H5F, .version = 3},
	{NAMES(h5f), .module = DARSHAN_H5F, .version = 2, .absent_int = h5f_before_3,
	 .absent_double = h5f_f_2},
	{NAMES(h5f), .module = DARSHAN_H5F, .version = 1, .absent_int = h5f_before_3,
	 .absent_double = h5f_f_1},
	{NAMES(h5d), .module = DARSHAN_H5D, .version = 2, .has_file_id = true,
	 .file_id_name = "H5D_FILE_REC_ID"},
	{NAMES(h5d), .module = DARSHAN_H5D, .version = 1, .file_id_name = "H5D_FILE_REC_ID"},
	{NAMES(pnetcdf_file), .module = DARSHAN_PNETCDF_FILE, .version = 3},
	{NAMES(pnetcdf_file), .module = DARSHAN_PNETCDF_FILE, .version = 2, .merged = 2,
	 .merged_into = 1, .absent_int = pnetcdf_before_3, .absent_double = pnetcdf_f_2},
	{NAMES(pnetcdf_file), .module = DARSHAN_PNETCDF_FILE, .version = 1, .merged = 2,
	 .merged_into = 1, .absent_int = pnetcdf_before_3, .absent_double = pnetcdf_f_1},
	{NAMES(pnetcdf_var), .module = DARSHAN_PNETCDF_VAR, .version = 1, .has_file_id = true,
	 .file_id_name = "PNETCDF_VAR_FILE_REC_ID"},
	{NAMES(bgq), .module = DARSHAN_BGQ, .version = 2},
	{NAMES(bgq), .module = DARSHAN_BGQ, .version = 1, .before = 8},
	{NAMES(dfs), .module = DARSHAN_DFS, .version = 1, .after = 32},
	{NAMES(daos), .module = DARSHAN_DAOS, .version = 1, .after = 48},
};

const struct darshan_layout *darshan_layout(unsigned module, uint32_t version)
{
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
