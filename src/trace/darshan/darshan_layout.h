#pragma once
/* Layouts of Darshan's records: a row for each module and version, with the names of the counters.
 * From darshan-*-log-format.h of Darshan 3.5.0 and the conversions of its utilities. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Module ids as log version 3.41 numbers them. */
enum darshan_module {
	DARSHAN_POSIX = 1,
	DARSHAN_MPIIO,
	DARSHAN_H5F,
	DARSHAN_H5D,
	DARSHAN_PNETCDF_FILE,
	DARSHAN_PNETCDF_VAR,
	DARSHAN_BGQ,
	DARSHAN_LUSTRE,
	DARSHAN_STDIO,
	DARSHAN_DXT_POSIX,
	DARSHAN_DXT_MPIIO,
	DARSHAN_MDHIM,
	DARSHAN_APXC,
	DARSHAN_APMPI,
	DARSHAN_HEATMAP,
	DARSHAN_DFS,
	DARSHAN_DAOS,
	DARSHAN_KNOWN, /* one more than the last */
	DARSHAN_MODULES = 64
};

#define DARSHAN_INTS 120   /* most integers of a record */
#define DARSHAN_DOUBLES 17 /* most doubles */
#define DARSHAN_RECORD_MAX 1136

/* What a record is made of. `absent` tells which counters of the newest version this one lacks, as
 * indices with a negative end (NULL: none); they read as -1 (`absent_zero`, where it is not 0: as
 * 0). */
struct darshan_layout {
	enum darshan_module module;
	uint32_t version;
	uint16_t ints, doubles; /* of the newest version: indices of struct darshan_record */
	uint16_t before;        /* bytes between id, rank and the integers that are skipped */
	uint16_t after;         /* bytes after the doubles that are skipped */
	bool has_file_id;       /* the id of the file that the record is part of comes first */
	/* `dropped` integers after the first `keep` are of no later version; a record in which
	 * the first of them is above 0 is left out, as Darshan's tools do */
	uint16_t keep, dropped;
	/* the record has `merged` integers in all, whose sum is the integer `merged_into` */
	uint16_t merged, merged_into;
	const int8_t *absent_int, *absent_double;
	int8_t absent_zero;
	const char *const *int_name, *const *double_name;
	const char *file_id_name; /* of the newest version; NULL: its records have none */
};

/* The layout of fixed-size records; NULL for other modules and versions. */
const struct darshan_layout *darshan_layout(unsigned module, uint32_t version);
/* Bytes of one record. */
size_t darshan_record_bytes(const struct darshan_layout *l);
/* As Darshan's tools call the module: "MPI-IO"; "module 40" of one that is not known here. */
const char *darshan_module_name(unsigned module);
/* The newest version of the module that is known here; 0: none is read. */
uint32_t darshan_newest(unsigned module);

/* Indices that have a meaning here. */
enum darshan_posix {
	POSIX_OPENS,
	POSIX_FILENOS,
	POSIX_DUPS,
	POSIX_READS,
	POSIX_WRITES,
	POSIX_SEEKS,
	POSIX_STATS,
	POSIX_MMAPS,
	POSIX_FSYNCS,
	POSIX_FDSYNCS,
	POSIX_RENAMED_FROM = 12,
	POSIX_BYTES_READ = 14,
	POSIX_BYTES_WRITTEN,
	POSIX_MAX_BYTE_READ,
	POSIX_MAX_BYTE_WRITTEN,
	POSIX_CONSEC_READS,
	POSIX_SEQ_READS = 20,
	POSIX_SIZE_READ = 29,
	POSIX_SIZE_WRITE = 39,
	POSIX_ACCESS = 57,
	POSIX_ACCESS_COUNT = 61,
};
enum darshan_posix_f {
	POSIX_F_OPEN_START,
	POSIX_F_READ_START,
	POSIX_F_WRITE_START,
	POSIX_F_CLOSE_START,
	POSIX_F_OPEN_END,
	POSIX_F_READ_END,
	POSIX_F_WRITE_END,
	POSIX_F_CLOSE_END,
	POSIX_F_READ_TIME,
	POSIX_F_WRITE_TIME,
	POSIX_F_META_TIME,
};
enum darshan_stdio {
	STDIO_OPENS,
	STDIO_FDOPENS,
	STDIO_READS,
	STDIO_WRITES,
	STDIO_SEEKS,
	STDIO_FLUSHES,
	STDIO_BYTES_WRITTEN,
	STDIO_BYTES_READ,
	STDIO_MAX_BYTE_READ,
	STDIO_MAX_BYTE_WRITTEN,
};
enum darshan_stdio_f {
	STDIO_F_META_TIME,
	STDIO_F_WRITE_TIME,
	STDIO_F_READ_TIME,
	STDIO_F_OPEN_START,
	STDIO_F_CLOSE_START,
	STDIO_F_WRITE_START,
	STDIO_F_READ_START,
	STDIO_F_OPEN_END,
	STDIO_F_CLOSE_END,
	STDIO_F_WRITE_END,
	STDIO_F_READ_END,
};
