/* Counters below a folder, from a made-up /proc and /sys: which devices a file system lies on, and
 * that none of their bytes counts twice; interfaces; clients of NFS and Lustre. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/file.h"
#include "os/file_system.h"
#include "metric/host_io.h"

static char root[64];
static unsigned own_major, own_minor; /* of the folder that the devices are said to hold */

__attribute__((format(printf, 1, 2))) static char *below(const char *fmt, ...)
{
	char rest[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(rest, sizeof(rest), fmt, ap);
	va_end(ap);
	return xasprintf("%s%s", root, rest);
}

static void put(const char *path, const char *text)
{
	AUTO_FREE char *full = below("%s", path);
	AUTO_FREE char *folder = path_dirname(full);
	struct err e = {0};

	assert_int_equal(file_mkdirs(folder, &e), 0);
	assert_int_equal(file_write(full, text, strlen(text), &e), 0);
}

static void point(const char *from, const char *to)
{
	AUTO_FREE char *link = below("%s", from), *target = below("%s", to);
	AUTO_FREE char *folder = path_dirname(link);
	struct err e = {0};

	assert_int_equal(file_mkdirs(folder, &e), 0);
	unlink(link);
	assert_int_equal(symlink(target, link), 0);
}

/* A device in /sys/devices; `at` is its folder there, such as "vda/vda1". */
static void device(const char *at, unsigned long long reads, unsigned long long sectors)
{
	AUTO_FREE char *file = xasprintf("/sys/devices/%s/stat", at);
	AUTO_FREE char *class = xasprintf("/sys/class/block/%s", path_basename(at));
	AUTO_FREE char *folder = xasprintf("/sys/devices/%s", at);
	AUTO_FREE char *text =
		xasprintf("%8llu 3 %llu 7 11 13 40 19 2 23 29 0 0 0 0 0 0\n", reads, sectors);

	put(file, text);
	point(class, folder);
	if (strchr(at, '/')) {
		AUTO_FREE char *mark = xasprintf("%s/partition", folder);

		put(mark, "1\n");
	}
}

/* The file system of the test's folder is said to lie on that device. */
static void lies_on(const char *at)
{
	AUTO_FREE char *link = xasprintf("/sys/dev/block/%u:%u", own_major, own_minor);
	AUTO_FREE char *folder = xasprintf("/sys/devices/%s", at);

	point(link, folder);
}

static void member(const char *of, const char *at)
{
	AUTO_FREE char *link = xasprintf("/sys/devices/%s/slaves/%s", of, path_basename(at));
	AUTO_FREE char *folder = xasprintf("/sys/devices/%s", at);

	point(link, folder);
}

static void mounted(const char *type, const char *source, const char *place)
{
	AUTO_FREE char *text = xasprintf(
		"21 1 0:4711 / /proc rw - proc proc rw\n"
		"36 35 %u:%u / %s rw,noatime shared:1 master:2 - %s %s rw,errors=continue\n",
		own_major, own_minor, place, type, source);

	put("/proc/self/mountinfo", text);
}

static int make(void **state)
{
	struct stat st;

	(void)state;
	snprintf(root, sizeof(root), "/tmp/test_host_io_%d", (int)getpid());
	assert_true(mkdir(root, 0755) == 0);
	assert_int_equal(stat(root, &st), 0);
	own_major = major(st.st_dev);
	own_minor = minor(st.st_dev);
	return 0;
}

static int clean(void **state)
{
	struct err e = {0};

	(void)state;
	return remove_tree(root, &e);
}

static void expect(const struct block_list *l, const char *want)
{
	char names[512];

	assert_string_equal(block_list_names(l, names, sizeof(names)), want);
}

static void test_disk(void **state)
{
	struct block_tree t;
	struct block_counters c, later;

	(void)state;
	device("vda", 100, 2000);
	lies_on("vda");
	block_tree_of(&t, root, root);
	expect(&t.whole, "vda");
	expect(&t.part, "");
	expect(&t.lower, "");
	block_list_sample(&t.whole, &c);
	assert_true(c.known);
	assert_int_equal(c.reads, 100);
	assert_int_equal(c.read_bytes, 2000 * 512);
	assert_int_equal(c.writes, 11);
	assert_int_equal(c.written_bytes, 40 * 512);
	assert_int_equal(c.under_way, 2);
	assert_int_equal(c.busy_ms, 23);
	assert_int_equal(c.queued_ms, 29);
	device("vda", 101, 2008);
	block_list_sample(&t.whole, &later);
	block_counters_sub(&later, &c);
	assert_int_equal(later.reads, 1);
	assert_int_equal(later.read_bytes, 4096);
	/* the kernel's 32 bits of ms come round; a device that came anew has counted less */
	block_list_sample(&t.whole, &later);
	c.queued_ms = UINT32_MAX - 20;
	block_counters_sub(&later, &c);
	assert_true(later.known);
	assert_int_equal(later.queued_ms, 29 + 21);
	device("vda", 7, 16);
	block_list_sample(&t.whole, &later);
	block_counters_sub(&later, &c);
	assert_false(later.known);
	assert_int_equal(later.read_bytes, 0);
	block_list_sample(&t.lower, &c);
	assert_false(c.known);
}

static void test_partition(void **state)
{
	struct block_tree t;
	struct block_counters c;

	(void)state;
	device("vda", 100, 2000);
	device("vda/vda1", 60, 1200);
	lies_on("vda/vda1");
	block_tree_of(&t, root, root);
	expect(&t.whole, "vda");
	expect(&t.part, "vda1");
	expect(&t.lower, "");
	block_list_sample(&t.part, &c);
	assert_int_equal(c.read_bytes, 1200 * 512);
	/* a folder that is not there yet lies where its parent does */
	AUTO_FREE char *later = below("/not/yet");

	block_tree_of(&t, root, later);
	expect(&t.whole, "vda");
}

/* A volume over two partitions of one disk and an array of two others, one of which is the same
 * disk's again. */
static void test_volume(void **state)
{
	struct block_tree t;
	struct block_counters c;

	(void)state;
	device("sda", 10, 1000);
	device("sda/sda1", 1, 100);
	device("sda/sda2", 1, 100);
	device("sda/sda3", 1, 100);
	device("sdb", 10, 500);
	device("sdb/sdb1", 1, 100);
	device("md0", 5, 300);
	device("dm-3", 7, 900);
	member("md0", "sda/sda3");
	member("md0", "sdb/sdb1");
	member("dm-3", "sda/sda1");
	member("dm-3", "sda/sda2");
	member("dm-3", "md0");
	lies_on("dm-3");
	block_tree_of(&t, root, root);
	expect(&t.whole, "dm-3");
	expect(&t.part, "");
	assert_int_equal(t.lower.n, 2);
	block_list_sample(&t.lower, &c);
	assert_true(c.known);
	assert_int_equal(c.read_bytes, 1500 * 512);
	assert_false(t.loop);
}

static void test_loop(void **state)
{
	AUTO_FREE char *link = xasprintf("/sys/dev/block/%u:%u", own_major, own_minor);
	struct block_tree t;

	(void)state;
	device("loop4", 1, 8);
	device("loop4/loop4p1", 1, 8);
	/* in memory: nothing is below it */
	put("/sys/devices/loop4/loop/backing_file", "/gone/image (deleted)\n");
	lies_on("loop4/loop4p1");
	block_tree_of(&t, root, root);
	expect(&t.whole, "loop4");
	expect(&t.part, "loop4p1");
	expect(&t.lower, "");
	assert_true(t.loop);
	/* one that holds its own backing file ends too */
	put("/image", "x");
	put("/sys/devices/loop4/loop/backing_file", "/image\n");
	block_tree_of(&t, root, root);
	expect(&t.whole, "loop4");
	assert_true(t.loop);
	(void)link;
}

static void test_btrfs(void **state)
{
	AUTO_FREE char *link = below("/sys/dev/block/%u:%u", own_major, own_minor);
	struct block_tree t;

	(void)state;
	unlink(link);
	device("sdc", 1, 8);
	device("sdd", 1, 8);
	device("sdd/sdd1", 1, 8);
	point("/sys/fs/btrfs/1234/devices/sdc", "/sys/devices/sdc");
	point("/sys/fs/btrfs/1234/devices/sdd1", "/sys/devices/sdd/sdd1");
	put("/sys/fs/btrfs/features/x", "0");
	mounted("btrfs", "/dev/sdd1", "/data");
	block_tree_of(&t, root, root);
	assert_int_equal(t.whole.n, 2);
	expect(&t.part, "sdd1");
	expect(&t.lower, "");
	/* others that have a number of their own and name no device */
	mounted("overlay", "overlay", "/");
	block_tree_of(&t, root, root);
	assert_int_equal(t.whole.n, 0);
}

static void test_many(void **state)
{
	struct block_tree t;
	struct block_counters c;

	(void)state;
	device("dm-9", 1, 8);
	for (int i = 0; i < BLOCK_DEVICES_MAX + 2; i++) {
		AUTO_FREE char *name = xasprintf("sx%d", i);

		device(name, 1, 8);
		member("dm-9", name);
	}
	lies_on("dm-9");
	block_tree_of(&t, root, root);
	expect(&t.whole, "dm-9");
	/* a part of the disks would be a wrong sum */
	assert_int_equal(t.lower.n, 0);
	block_list_sample(&t.lower, &c);
	assert_false(c.known);
}

static void test_network(void **state)
{
	struct net_io a, b;
	char names[128];

	(void)state;
	put("/sys/class/net/lo/statistics/rx_bytes", "77\n");
	put("/sys/class/net/lo/statistics/tx_bytes", "77\n");
	put("/sys/class/net/veth1/statistics/rx_bytes", "1000\n");
	put("/sys/class/net/veth1/statistics/tx_bytes", "10\n");
	put("/sys/class/net/br0/statistics/rx_bytes", "1000\n");
	put("/sys/class/net/br0/statistics/tx_bytes", "10\n");
	put("/sys/class/net/br0/lower_veth1/x", "");
	/* in a container: no hardware, and a bridge is its members */
	net_io_sample(&a, root, names, sizeof(names));
	assert_true(a.known);
	assert_false(a.rdma_known);
	assert_int_equal(a.received_bytes, 1000);
	assert_int_equal(a.loopback_bytes, 77);
	assert_string_equal(names, "veth1");
	/* on a host: the hardware only */
	put("/sys/class/net/eth0/statistics/rx_bytes", "5000\n");
	put("/sys/class/net/eth0/statistics/tx_bytes", "50\n");
	put("/sys/class/net/eth0/device/vendor", "x");
	put("/sys/class/infiniband/mlx5_0/ports/1/counters/port_rcv_data", "250\n");
	put("/sys/class/infiniband/mlx5_0/ports/1/counters/port_xmit_data", "25\n");
	net_io_sample(&a, root, names, sizeof(names));
	assert_int_equal(a.received_bytes, 5000);
	assert_int_equal(a.sent_bytes, 50);
	assert_true(a.rdma_known);
	assert_int_equal(a.rdma_received_bytes, 1000);
	assert_string_equal(names, "eth0, mlx5_0/1");
	put("/sys/class/net/eth0/statistics/rx_bytes", "5100\n");
	net_io_sample(&b, root, NULL, 0);
	net_io_sub(&b, &a);
	assert_true(b.known && b.rdma_known);
	assert_int_equal(b.received_bytes, 100);
	assert_int_equal(b.rdma_received_bytes, 0);
	/* what an interface counted goes with it: less than before is no number of bytes */
	put("/sys/class/net/eth0/statistics/rx_bytes", "4000\n");
	net_io_sample(&b, root, NULL, 0);
	net_io_sub(&b, &a);
	assert_false(b.known);
	assert_true(b.rdma_known);
	assert_int_equal(b.received_bytes, 0);
}

static void test_nfs(void **state)
{
	struct fs_client c;
	struct fs_client_io io, later;

	(void)state;
	mounted("nfs4", "server:/export", "/mnt/my\\040data");
	put("/proc/self/mountstats",
	    "device /dev/vda1 mounted on / with fstype ext4\n"
	    "device server:/other mounted on /mnt/my with fstype nfs4 statvers=1.1\n"
	    "\tbytes:\t9 9 9 9 9 9 9 9\n"
	    "device server:/export mounted on /mnt/my\\040data with fstype nfs4 statvers=1.1\n"
	    "\topts:\trw,vers=4.2\n\tage:\t10\n"
	    "\tevents:\t1 2 3 4\n"
	    "\tbytes:\t1000 20 300 4 1200 24 5 6\n"
	    "\txprt:\ttcp 0\n");
	fs_client_of(&c, root, root);
	assert_int_equal(c.kind, FS_CLIENT_NFS);
	assert_string_equal(c.type, "nfs4");
	fs_client_sample(&c, root, &io);
	assert_true(io.known && io.fetched_known);
	assert_int_equal(io.returned_bytes, 1300);
	assert_int_equal(io.fetched_bytes, 1200);
	assert_int_equal(io.sent_bytes, 24);
	later = io;
	later.fetched_bytes += 5;
	fs_client_sub(&later, &io);
	assert_int_equal(later.fetched_bytes, 5);
	later = io;
	later.fetched_bytes -= 5;
	fs_client_sub(&later, &io);
	assert_true(later.known && !later.fetched_known);
	put("/proc/self/mountstats", "device server:/export mounted on /mnt with fstype nfs4\n");
	fs_client_sample(&c, root, &io);
	assert_false(io.known);
}

static void test_lustre(void **state)
{
	struct fs_client c;
	struct fs_client_io io;

	(void)state;
	mounted("lustre", "10.0.0.1@tcp:10.0.0.2@tcp:/scratch/sub", "/scratch");
	put("/proc/fs/lustre/llite/scratch-ffff8800a1b2c3d4/stats",
	    "snapshot_time             1490375021.231423 secs.usecs\n"
	    "read_bytes                1021 samples [bytes] 4096 1048576 1070596096\n"
	    "write_bytes               7 samples [bytes] 1 10 60\n"
	    "open                      40 samples [regs]\n");
	put("/proc/fs/lustre/llite/scratch2-ffff8800a1b2c3d4/stats",
	    "read_bytes                1 samples [bytes] 5 5 5\n");
	put("/sys/kernel/debug/lustre/osc/scratch-OST0000-osc-ffff8800a1b2c3d4/stats",
	    "req_waittime              300 samples [usec] 10 20 3000 50000\n"
	    "read_bytes                20 samples [bytes] 4096 1048576 600 99999\n");
	put("/sys/kernel/debug/lustre/osc/scratch-OST0001-osc-ffff8800a1b2c3d4/stats",
	    "read_bytes                20 samples [bytes] 4096 1048576 400 99999\n"
	    "write_bytes               20 samples [bytes] 1 2 30 99999\n");
	put("/sys/kernel/debug/lustre/osc/num_refs", "3\n");
	fs_client_of(&c, root, root);
	assert_int_equal(c.kind, FS_CLIENT_LUSTRE);
	assert_string_equal(c.name, "scratch");
	fs_client_sample(&c, root, &io);
	assert_true(io.known && io.fetched_known);
	assert_int_equal(io.returned_bytes, 1070596096);
	assert_int_equal(io.fetched_bytes, 1000);
	assert_int_equal(io.sent_bytes, 30);
}

/* What is no storage is said, wherever on the way down it lies. */
static void test_memory_below(void **state)
{
	struct block_tree t;

	(void)state;
	device("zram3", 1, 8);
	device("ram1", 1, 8);
	device("nbd0", 1, 8);
	device("dm-7", 1, 8);
	lies_on("zram3");
	block_tree_of(&t, root, root);
	assert_string_equal(t.memory, "zram3 is compressed memory");
	assert_string_equal(t.cached, "");
	/* a volume over a disk in memory and a network device */
	member("dm-7", "ram1");
	member("dm-7", "nbd0");
	lies_on("dm-7");
	block_tree_of(&t, root, root);
	assert_string_equal(t.memory, "ram1 is a disk in memory");
	assert_non_null(strstr(t.unseen, "nbd0 is a network block device"));
	/* names that only begin alike */
	device("rbdisk", 1, 8);
	lies_on("rbdisk");
	block_tree_of(&t, root, root);
	assert_string_equal(t.unseen, "");
	assert_string_equal(t.memory, "");
}

/* A loop device that reads its file past the page cache, and one that does not. */
static void test_loop_cached(void **state)
{
	struct block_tree t;
	struct file_system fs;

	(void)state;
	assert_true(file_system_of_path(root, &fs));
	device("loop6", 1, 8);
	put("/image6", "x");
	put("/sys/devices/loop6/loop/backing_file", "/image6\n");
	put("/sys/devices/loop6/loop/dio", "0\n");
	lies_on("loop6");
	block_tree_of(&t, root, root);
	if (fs.memory) {
		assert_non_null(strstr(t.memory, "loop6 is a file in memory (/image6 on "));
		return;
	}
	assert_string_equal(t.cached, "loop6 is the file /image6");
	put("/sys/devices/loop6/loop/dio", "1\n");
	block_tree_of(&t, root, root);
	assert_string_equal(t.cached, "");
	assert_string_equal(t.memory, "");
}

static void expect_layer(const char *path, const char *want)
{
	AUTO_FREE char *full = below("%s", path);
	AUTO_FREE char *wanted = want ? below("%s", want) : NULL;
	AUTO_FREE char *found = mount_layer_path(root, full);

	if (!want)
		assert_null(found);
	else if (!found)
		fail_msg("%s: no layer", path);
	else
		assert_string_equal(found, wanted);
}

static void test_layers(void **state)
{
	AUTO_FREE char *text =
		xasprintf("36 35 %u:%u / / rw - overlay overlay "
			  "rw,lowerdir=/l1:/l\\134:2:/l3,upperdir=/up\\040per,workdir=/w,uuid=on\n",
			  own_major, own_minor);
	AUTO_FREE char *newer = xasprintf("36 35 %u:%u /sub / rw - overlay overlay "
					  "rw,lowerdir+=/n1,lowerdir+=/n:2,datadir+=/n3\n",
					  own_major, own_minor);

	(void)state;
	put("/a/f", "merged");
	put("/b/c/f", "merged");
	put("/d/f", "merged");
	put("/e/f", "merged");
	put("/up per/a/f", "upper");
	put("/l1/a/f", "hidden");
	put("/l:2/b/c/f", "second");
	put("/l3/d/f", "third");
	put("/proc/self/mountinfo", text);
	expect_layer("/a/f", "/up per/a/f");
	expect_layer("/b/c/f", "/l:2/b/c/f");
	expect_layer("/d/f", "/l3/d/f");
	/* of folders, the layer with a file in them; of what is not there yet, its parent's */
	AUTO_FREE char *empty = below("/l1/d");

	assert_int_equal(mkdir(empty, 0755), 0);
	expect_layer("/d", "/l3/d");
	expect_layer("/d/later/f", "/l3/d");
	/* in no layer that can be reached */
	expect_layer("/e/f", NULL);
	put("/proc/self/mountinfo", newer);
	put("/n:2/sub/e/f", "below a part of the overlay");
	expect_layer("/e/f", "/n:2/sub/e/f");
	mounted("ext4", "/dev/vda1", "/");
	expect_layer("/e/f", NULL);
}

/* Which file systems are on a network, and which count nothing. */
static void test_clients(void **state)
{
	static const struct {
		const char *type;
		bool network, uncounted;
	} want[] = {
		{"ext4", false, false},     {"btrfs", false, false},  {"overlay", false, false},
		{"nfs4", true, false},      {"cifs", true, false},    {"ceph", true, true},
		{"fuse.ceph", true, true},  {"fuse", false, true},    {"fuse.own", false, true},
		{"fuse.sshfs", true, true}, {"fuseblk", false, true}, {"virtiofs", false, true},
		{"fusectl", false, false},
	};
	struct fs_client c;

	(void)state;
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		mounted(want[i].type, "somewhere", "/data");
		fs_client_of(&c, root, root);
		assert_string_equal(c.type, want[i].type);
		if (c.network != want[i].network || c.uncounted != want[i].uncounted)
			fail_msg("%s: network %d, uncounted %d", c.type, c.network, c.uncounted);
		/* of the others a server elsewhere, or the kernel, has the data */
		assert_int_equal(c.local_server, strcmp(want[i].type, "fuse") == 0 ||
							 strcmp(want[i].type, "fuse.own") == 0);
	}
}

static void test_source(void **state)
{
	struct host_io_source s;
	struct host_io io, sum;

	(void)state;
	device("vda", 100, 2000);
	device("vda/vda1", 60, 1200);
	lies_on("vda/vda1");
	mounted("ext4", "/dev/vda1", "/data");
	host_io_source_init(&s, root, root);
	assert_string_equal(s.file_system, "ext4");
	assert_int_equal(s.client.kind, FS_CLIENT_NONE);
	host_io_sample(&s, root, &io);
	assert_true(io.whole.known && io.part.known && !io.lower.known && !io.client.known);
	sum = io;
	host_io_add(&sum, &io);
	assert_int_equal(sum.whole.read_bytes, 2 * 2000 * 512);
	host_io_sub(&sum, &io);
	assert_int_equal(sum.whole.read_bytes, 2000 * 512);
	/* nothing of it is there */
	host_io_source_init(&s, "/nowhere", root);
	host_io_sample(&s, "/nowhere", &io);
	assert_false(io.whole.known || io.net.known || io.client.known);
	assert_string_equal(s.file_system, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_disk),         cmocka_unit_test(test_partition),
		cmocka_unit_test(test_volume),       cmocka_unit_test(test_loop),
		cmocka_unit_test(test_btrfs),        cmocka_unit_test(test_many),
		cmocka_unit_test(test_network),      cmocka_unit_test(test_nfs),
		cmocka_unit_test(test_lustre),       cmocka_unit_test(test_source),
		cmocka_unit_test(test_memory_below), cmocka_unit_test(test_loop_cached),
		cmocka_unit_test(test_layers),       cmocka_unit_test(test_clients),
	};

	return cmocka_run_group_tests(tests, make, clean);
}
