/* Names: which are excluded, and their hashes. */
#include <string.h>

#include "recorder/recorder.h"

static struct {
	bool all, hashed;
	uint64_t key[2];
	bool cwd_excluded; /* of the process; a race of two chdir is the program's own */
} self;

void names_begin(bool all, const uint64_t *key)
{
	self.all = all;
	self.hashed = key != NULL;
	if (key)
		memcpy(self.key, key, sizeof(self.key));
}

bool names_all(void)
{
	return self.all;
}

bool names_hashed(void)
{
	return self.hashed;
}

static bool ends(const char *s, size_t n, const char *with)
{
	size_t m = strlen(with);

	return n >= m && memcmp(s + n - m, with, m) == 0;
}

static bool excluded_text(const char *path)
{
	static const char *const folders[] = {"/usr/", "/lib/", "/lib64/", "/lib32/", "/proc/",
					      "/sys/", "/bin/", "/sbin/",  NULL};
	static const char *const whole[] = {
		"/usr", "/lib", "/lib64", "/proc", "/sys", "/etc/ld.so.cache", NULL};
	size_t n = strlen(path);

	if (*path == '/') {
		for (size_t i = 0; folders[i]; i++)
			if (strncmp(path, folders[i], strlen(folders[i])) == 0)
				return true;
		for (size_t i = 0; whole[i]; i++)
			if (strcmp(path, whole[i]) == 0)
				return true;
	}
	return ends(path, n, ".py") || ends(path, n, ".pyc") || strstr(path, "/site-packages") ||
	       strstr(path, "/dist-packages") || strstr(path, "/__pycache__");
}

bool name_excluded(const char *path, uint64_t base)
{
	if (self.all || !path)
		return false;
	if (*path != '/' && (base ? FD_KIND(base) == RING_EXCLUDED : self.cwd_excluded))
		return true;
	return excluded_text(path);
}

void names_cwd(char *path)
{
	size_t n = strlen(path);

	memcpy(path + n, "/", 2);
	self.cwd_excluded = !self.all && excluded_text(path);
	path[n] = '\0';
}

/* ---- SipHash-2-4 (Aumasson, Bernstein) ---- */

#define ROTATE(x, b) (((x) << (b)) | ((x) >> (64 - (b))))

static void sip_round(uint64_t v[4])
{
	v[0] += v[1];
	v[1] = ROTATE(v[1], 13) ^ v[0];
	v[0] = ROTATE(v[0], 32);
	v[2] += v[3];
	v[3] = ROTATE(v[3], 16) ^ v[2];
	v[0] += v[3];
	v[3] = ROTATE(v[3], 21) ^ v[0];
	v[2] += v[1];
	v[1] = ROTATE(v[1], 17) ^ v[2];
	v[2] = ROTATE(v[2], 32);
}

static void sip_word(uint64_t v[4], uint64_t m)
{
	v[3] ^= m;
	sip_round(v);
	sip_round(v);
	v[0] ^= m;
}

static uint64_t sip(const char *s, size_t n)
{
	uint64_t k0 = self.key[0], k1 = self.key[1], last = (uint64_t)n << 56;
	uint64_t v[4] = {k0 ^ 0x736f6d6570736575u, k1 ^ 0x646f72616e646f6du,
			 k0 ^ 0x6c7967656e657261u, k1 ^ 0x7465646279746573u};
	size_t i = 0;

	for (; i + 8 <= n; i += 8) {
		uint64_t m;

		memcpy(&m, s + i, 8);
		sip_word(v, m);
	}
	for (size_t k = 0; i + k < n; k++)
		last |= (uint64_t)(unsigned char)s[i + k] << (8 * k);
	sip_word(v, last);
	v[2] ^= 0xff;
	for (int r = 0; r < 4; r++)
		sip_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

#define HASHED 11 /* characters of 5 bits: of 10^6 names two are equal once in 70,000 jobs */

/* An extension that says what a file is, and nothing of whose it is. */
static size_t known_extension(const char *s, size_t n)
{
	static const char *const known[] = {
		".npz",    ".npy",         ".png",       ".jpg",     ".jpeg", ".hdf5",
		".h5",     ".tfrecord",    ".tar",       ".pt",      ".pth",  ".ckpt",
		".csv",    ".safetensors", ".bin",       ".idx",     ".json", ".jsonl",
		".txt",    ".zip",         ".gz",        ".bz2",     ".zst",  ".xz",
		".lz4",    ".tmp",         ".rec",       ".mdb",     ".pkl",  ".pickle",
		".tif",    ".tiff",        ".webp",      ".bmp",     ".gif",  ".flac",
		".wav",    ".mp3",         ".mp4",       ".avi",     ".mkv",  ".nc",
		".zarr",   ".parquet",     ".arrow",     ".feather", ".orc",  ".db",
		".log",    ".yaml",        ".yml",       ".index",   ".data", ".so",
		".cfg",    ".raw",         ".nii",       ".dcm",     ".mat",  ".mds",
		".distcp", ".metadata",    ".tfrecords", ".lock",
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (n > strlen(known[i]) && ends(s, n, known[i]))
			return strlen(known[i]);
	return 0;
}

size_t name_hash(const char *path, size_t n, char *out, size_t size)
{
	size_t to = 0, at = 0;

	while (at < n) {
		size_t m = 0, extension;
		uint64_t h;

		if (path[at] == '/') {
			if (to == size)
				break;
			out[to++] = path[at++];
			continue;
		}
		while (at + m < n && path[at + m] != '/')
			m++;
		/* a name that would grow beyond the buffer: all that is left is one part */
		if (to + 2 * (HASHED + 12) > size)
			m = n - at;
		if (to + HASHED + 12 > size)
			break;
		if ((m == 1 && path[at] == '.') ||
		    (m == 2 && path[at] == '.' && path[at + 1] == '.')) {
			memcpy(out + to, path + at, m);
			to += m;
			at += m;
			continue;
		}
		extension = known_extension(path + at, m);
		h = sip(path + at, m);
		for (int i = 0; i < HASHED; i++, h >>= 5)
			out[to++] = "abcdefghijklmnopqrstuvwxyz234567"[h & 31];
		memcpy(out + to, path + at + m - extension, extension);
		to += extension;
		at += m;
	}
	return to;
}
