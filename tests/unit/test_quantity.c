/* Numbers with units: what each text is in each kind of key, and the sentence where it is none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "conf/quantity.h"

static void test_values(void **state)
{
	static const struct {
		const char *text, *unit;
		long double value;
	} good[] = {
		{"40KB", "bytes", 40000},
		{"40kB", "bytes", 40000},
		{"40kb", "bytes", 40000},
		{"40 KB", "bytes", 40000},
		{"64KiB", "bytes", 65536},
		{"64Ki", "bytes", 65536},
		{"64kib", "bytes", 65536},
		{"1.5MB", "bytes", 1500000},
		{"1.1GB", "bytes", 1100000000},
		{"0.1KB", "bytes", 100},
		{"5GB", "bytes", 5e9L},
		{"2TiB", "bytes", 2199023255552.0L},
		{"8EiB", "bytes", 0x1p63L},
		{"1e3KB", "bytes", 1000000},
		{"5EB", "bytes", 5e18L},
		{"12B", "bytes", 12},
		{"12 bytes", "bytes", 12},
		{"-4KB", "bytes", -4000},
		{"100MB/s", "bytes/s", 1e8L},
		{"100MBps", "bytes/s", 1e8L},
		{"1GiB/s", "bytes/s", 1073741824},
		{"7 B/s", "bytes/s", 7},
		{"3MB/sec", "bytes/s", 3e6L},
		{"30ms", "s", 0.03L},
		{"2s", "s", 2},
		{"1.5 min", "s", 90},
		{"1h", "s", 3600},
		{"250us", "s", 250e-6L},
		{"250\xc2\xb5s", "s", 250e-6L},
		{"1e3ns", "s", 1e-6L},
		{"2s", "ms", 2000},
		{"5ms", "ms", 5},
		{"90%", QUANTITY_FRACTION, 0.9L},
	};
	char why[QUANTITY_WHY_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		long double v = -1;

		why[0] = '\0';
		if (quantity_read(good[i].text, good[i].unit, &v, why) != 1)
			fail_msg("%s (%s): %s", good[i].text, good[i].unit, why);
		if ((double)v != (double)good[i].value)
			fail_msg("%s (%s) is %.20Lg", good[i].text, good[i].unit, v);
	}
}

static void test_sentences(void **state)
{
	static const struct {
		const char *text, *unit, *begins;
	} bad[] = {
		{"40K", "bytes", "write 40KB (powers of 1000) or 40KiB (powers of 1024): '40K'"},
		{"1.5M", "bytes", "write 1.5MB (powers of 1000) or 1.5MiB"},
		{"40Kb", "bytes", "write 5KB if bits are meant"},
		{"100Mbit/s", "bytes/s", "write 12.5MB/s if bits are meant"},
		{"100Mb/s", "bytes/s", "write 12.5MB/s if bits are meant"},
		{"10Gbps", "bytes/s", "write 1.25GB/s if bits are meant"},
		{"100G", "bytes/s", "write 100GB/s (powers of 1000)"},
		{"100MB", "bytes/s", "write 100MB/s: this key is a rate"},
		{"100MB/s", "bytes", "write a size, such as 64KiB or 40KB: '100MB/s' is a rate"},
		{"30ms", "bytes", "write a size, such as 64KiB or 40KB: '30ms' is a time"},
		{"4KB", "s", "write a time, such as 0.03 or 30ms: '4KB' is a size"},
		{"5m", "s", "write 5min for minutes or 5ms for milliseconds"},
		{"5 fortnights", "s", "write it like 0.03 or 30ms: 'fortnights' in '5 fortnights'"},
		{"10k", "files", "write 10000: files are counted without a unit, not '10k'"},
		{"1.5M", "samples", "write 1500000: samples are counted"},
		{"10k", NULL, "write 10000: this key takes a number without a unit"},
		{"4KB", "samples", "write a plain number of samples: '4KB' is a size"},
		{"2s", "steps", "write a plain number of steps: '2s' is a time"},
		{"90%", "samples", "write a plain number of samples: '90%' is a share"},
		{"8 workers", "threads", "write a plain number, without 'workers'"},
		{"40,000", "bytes", "write the number without commas"},
		{"40XB", "bytes", "write it like 64KiB or 40KB: 'XB' in '40XB' is not a unit"},
		{"0x10KB", "bytes", "write it like 64KiB or 40KB"},
	};
	static const char *const none[] = {"",   "x", "nanKB", "inf", "KB",
					   "40", "-", "+KB",   ".",   ".KB"};
	char why[QUANTITY_WHY_MAX];
	long double v;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (quantity_read(bad[i].text, bad[i].unit, &v, why) != -1)
			fail_msg("%s was accepted", bad[i].text);
		print_message("%-14s %s\n", bad[i].text, why);
		if (strncmp(why, bad[i].begins, strlen(bad[i].begins)) != 0)
			fail_msg("%s: %s", bad[i].text, why);
	}
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		if (quantity_read(none[i], "bytes", &v, why) != 0)
			fail_msg("'%s' has a number", none[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_sentences),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
