/* What figures are set beside: plain loops of read(2) and write(2), and decoding by the library
 * alone, of bytes that are in memory. Prints one line of numbers; times are of the loop only.
 *
 *   decode_tool read BUFFER          paths on standard input: bytes, wall s, CPU s
 *   decode_tool write BUFFER BYTES   paths on standard input, each made with so many bytes: the
 * same decode_tool decode               METHOD PATH [OFFSET BYTES RAW_BYTES]... on each line:
 * bytes, wall s and CPU s of reading the files whole, then of decoding
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <libdeflate.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* needs FILE */
#include <jpeglib.h>

#include "codec/crc.h"

struct times {
	double wall, cpu;
};

static void fail(const char *what, const char *name)
{
	fprintf(stderr, "decode_tool: %s '%s': %s\n", what, name, strerror(errno));
	exit(1);
}

static double clock_s(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static struct times now(void)
{
	return (struct times){clock_s(CLOCK_MONOTONIC), clock_s(CLOCK_PROCESS_CPUTIME_ID)};
}

static void add(struct times *to, struct times begin, struct times end)
{
	to->wall += end.wall - begin.wall;
	to->cpu += end.cpu - begin.cpu;
}

/* Touched, so that page faults are not part of any loop. */
static unsigned char *memory_of(size_t n)
{
	unsigned char *p = NULL;
	uint64_t word = 1;

	n = (n + 4095) & ~(size_t)4095;
	if (posix_memalign((void **)&p, 4096, n ? n : 4096) != 0)
		fail("no memory for", "a buffer");
	for (size_t i = 0; i + 8 <= n; i += 8) {
		word = word * 6364136223846793005u + 1442695040888963407u;
		memcpy(p + i, &word, 8);
	}
	return p;
}

struct lines {
	char **line;
	size_t n;
};

static struct lines read_lines(void)
{
	struct lines l = {0};
	size_t room = 0, size = 0;
	char *text = NULL;
	ssize_t got;

	while ((got = getline(&text, &size, stdin)) > 0) {
		if (text[got - 1] == '\n')
			text[got - 1] = '\0';
		if (l.n == room) {
			room = room ? room * 2 : 1024;
			l.line = realloc(l.line, room * sizeof(*l.line));
			if (!l.line)
				fail("no memory for", "names");
		}
		l.line[l.n++] = strdup(text);
	}
	free(text);
	return l;
}

static int do_read(size_t buffer_bytes)
{
	struct lines l = read_lines();
	unsigned char *buffer = memory_of(buffer_bytes);
	struct times total = {0}, begin = now();
	uint64_t bytes = 0;

	for (size_t i = 0; i < l.n; i++) {
		int fd = open(l.line[i], O_RDONLY);
		ssize_t got;

		if (fd < 0)
			fail("cannot open", l.line[i]);
		while ((got = read(fd, buffer, buffer_bytes)) > 0)
			bytes += (uint64_t)got;
		if (got < 0)
			fail("cannot read", l.line[i]);
		close(fd);
	}
	add(&total, begin, now());
	printf("%llu %.9f %.9f\n", (unsigned long long)bytes, total.wall, total.cpu);
	return 0;
}

static int do_write(size_t buffer_bytes, uint64_t file_bytes)
{
	struct lines l = read_lines();
	unsigned char *buffer = memory_of(buffer_bytes);
	struct times total = {0}, begin = now();

	for (size_t i = 0; i < l.n; i++) {
		int fd = open(l.line[i], O_WRONLY | O_CREAT | O_TRUNC, 0644);

		if (fd < 0)
			fail("cannot create", l.line[i]);
		for (uint64_t left = file_bytes; left > 0;) {
			size_t n = left < buffer_bytes ? (size_t)left : buffer_bytes;
			ssize_t done = write(fd, buffer, n);

			if (done < 0)
				fail("cannot write", l.line[i]);
			left -= (uint64_t)done;
		}
		close(fd);
	}
	add(&total, begin, now());
	printf("%llu %.9f %.9f\n", (unsigned long long)(l.n * file_bytes), total.wall, total.cpu);
	return 0;
}

/* ---- decoding ---- */

static unsigned char *raw; /* what is made */
static unsigned char *packed;
static struct libdeflate_decompressor *inflate;
static volatile uint32_t sink; /* so that nothing is left out */

static void decode_crc32(const unsigned char *p, size_t n, size_t raw_bytes)
{
	(void)raw_bytes;
	sink += libdeflate_crc32(0, p, n);
}

static void decode_crc32c(const unsigned char *p, size_t n, size_t raw_bytes)
{
	(void)raw_bytes;
	static uint32_t (*isal)(unsigned char *, int, uint32_t);
	static bool looked;

	/* the fastest there is, where it is installed */
	if (!looked) {
		void *library = dlopen("libisal.so.2", RTLD_NOW);

		*(void **)&isal = library ? dlsym(library, "crc32_iscsi") : NULL;
		looked = true;
	}
	sink += isal ? isal((unsigned char *)(uintptr_t)p, (int)n, 0) : crc32c_update(0, p, n);
}

static void check_inflated(enum libdeflate_result r)
{
	if (r != LIBDEFLATE_SUCCESS)
		fail("does not inflate:", "a range");
}

static void decode_member(const unsigned char *p, size_t n, size_t raw_bytes)
{
	check_inflated(libdeflate_deflate_decompress(inflate, p, n, raw, raw_bytes, NULL));
	sink += libdeflate_crc32(0, raw, raw_bytes);
}

static void decode_zlib(const unsigned char *p, size_t n, size_t raw_bytes)
{
	check_inflated(libdeflate_zlib_decompress(inflate, p, n, raw, raw_bytes, NULL));
}

static uint32_t be32(const unsigned char *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* A gray image with rows that are not filtered: checksums, inflating, rows put together. */
static void decode_png(const unsigned char *p, size_t n, size_t raw_bytes)
{
	uint32_t width = be32(p + 16), height = be32(p + 20);
	size_t used = 0;

	for (size_t at = 8; at + 12 <= n;) {
		uint32_t bytes = be32(p + at);

		sink += libdeflate_crc32(0, p + at + 4, bytes + 4);
		if (memcmp(p + at + 4, "IDAT", 4) == 0) {
			memcpy(packed + used, p + at + 8, bytes);
			used += bytes;
		}
		at += 12 + bytes;
	}
	decode_zlib(packed, used, raw_bytes);
	for (uint32_t y = 0; y < height; y++)
		memmove(raw + (size_t)y * width, raw + (size_t)y * (width + 1) + 1, width);
}

static void decode_jpeg(const unsigned char *p, size_t n, size_t raw_bytes)
{
	static struct jpeg_decompress_struct d;
	static struct jpeg_error_mgr manager;
	JSAMPROW row = raw;

	(void)raw_bytes;
	if (!d.err) {
		d.err = jpeg_std_error(&manager);
		jpeg_create_decompress(&d);
	}
	jpeg_mem_src(&d, p, n);
	jpeg_read_header(&d, TRUE);
	jpeg_start_decompress(&d);
	while (d.output_scanline < d.output_height)
		jpeg_read_scanlines(&d, &row, 1);
	jpeg_finish_decompress(&d);
}

static const struct {
	const char *name;
	void (*decode)(const unsigned char *p, size_t n, size_t raw_bytes);
} methods[] = {{"crc32", decode_crc32}, {"crc32c", decode_crc32c}, {"member", decode_member},
	       {"zlib", decode_zlib},   {"png", decode_png},       {"jpeg", decode_jpeg}};

static void decode_ranges(char *method, const unsigned char *file, char **rest)
{
	char *from, *n, *made;

	while ((from = strtok_r(NULL, " ", rest)) && (n = strtok_r(NULL, " ", rest)) &&
	       (made = strtok_r(NULL, " ", rest)))
		for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
			if (strcmp(methods[i].name, method) == 0)
				methods[i].decode(file + strtoull(from, NULL, 10),
						  strtoull(n, NULL, 10), strtoull(made, NULL, 10));
}

static size_t read_whole(const char *path, unsigned char *to, size_t room)
{
	int fd = open(path, O_RDONLY);
	size_t done = 0;
	ssize_t got;

	if (fd < 0)
		fail("cannot open", path);
	while ((got = read(fd, to + done, room - done)) > 0)
		done += (size_t)got;
	if (got < 0)
		fail("cannot read", path);
	close(fd);
	return done;
}

static int do_decode(void)
{
	struct lines l = read_lines();
	struct times reading = {0}, decoding = {0};
	size_t most = 0;
	uint64_t bytes = 0;
	unsigned char *file;

	for (size_t i = 0; i < l.n; i++) {
		char *path = strchr(l.line[i], ' ') + 1, *end = strchr(path, ' ');
		struct stat st;

		*end = '\0';
		if (stat(path, &st) != 0)
			fail("cannot find", path);
		*end = ' ';
		most = (size_t)st.st_size > most ? (size_t)st.st_size : most;
	}
	file = memory_of(most + 4096);
	packed = memory_of(most);
	/* what a compressed dataset holds may be larger than its file */
	raw = memory_of(most * 4 + (1 << 20));
	inflate = libdeflate_alloc_decompressor();
	for (size_t i = 0; i < l.n; i++) {
		char *rest, *method = strtok_r(l.line[i], " ", &rest);
		const char *path = strtok_r(NULL, " ", &rest);
		struct times begin = now(), middle;

		bytes += read_whole(path, file, most + 4096);
		middle = now();
		decode_ranges(method, file, &rest);
		add(&decoding, middle, now());
		add(&reading, begin, middle);
	}
	printf("%llu %.9f %.9f %.9f %.9f\n", (unsigned long long)bytes, reading.wall, reading.cpu,
	       decoding.wall, decoding.cpu);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "read") == 0)
		return do_read(strtoull(argv[2], NULL, 10));
	if (argc == 4 && strcmp(argv[1], "write") == 0)
		return do_write(strtoull(argv[2], NULL, 10), strtoull(argv[3], NULL, 10));
	if (argc == 2 && strcmp(argv[1], "decode") == 0)
		return do_decode();
	fprintf(stderr, "usage: decode_tool read BUFFER | write BUFFER BYTES | decode\n");
	return 2;
}
