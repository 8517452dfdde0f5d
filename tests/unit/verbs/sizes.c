/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions whose structures have another size in the program than in the library (older
 * and newer programs); and conversions that need no adapter.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <infiniband/sa.h>
#include <infiniband/verbs.h>
#include <rdma/ib_user_sa.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake_hca.h"

#undef ibv_query_port

#define CTX (&fake_hca.context)

void ibv_copy_path_rec_from_kern(struct ibv_sa_path_rec *to,
				 struct ib_user_path_rec *from);
void ibv_copy_path_rec_to_kern(struct ib_user_path_rec *to,
			       struct ibv_sa_path_rec *from);
int ibv_read_sysfs_file(const char *dir, const char *file, char *buf,
			size_t size);
const char *ibv_get_sysfs_path(void);

static int fake_answers(void **state)
{
	fake_hca.answer = 0;
	fake_hca.calls = 0;
	fake_hca.gid_count = 3;
	return 0;
}

static int all_are(const void *p, int byte, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (((const uint8_t *)p)[i] != byte)
			return 0;
	return 1;
}

/* The old layout has 48 bytes: up to `flags`, without port_cap_flags2. */
static void query_port_writes_the_old_layout_and_no_more(void **state)
{
	uint8_t attr[sizeof(struct ibv_port_attr) + 16];

	memset(attr, 0xaa, sizeof(attr));
	assert_int_equal(ibv_query_port(CTX, 1, (void *)attr), 0);
	assert_int_equal(fake_hca.port_attr_size, 48);
	assert_true(all_are(attr, 0x55, 48));
	assert_true(all_are(attr + 48, 0xaa, sizeof(attr) - 48));
}

static void gid_entry_of_an_older_program_is_cut(void **state)
{
	uint8_t entry[sizeof(struct ibv_gid_entry)];
	size_t size = offsetof(struct ibv_gid_entry, gid_type);

	memset(entry, 0xaa, sizeof(entry));
	assert_int_equal(_ibv_query_gid_ex(CTX, 1, 2, (void *)entry, 0, size),
			 0);
	assert_true(all_are(entry, 0x42, 16));
	assert_true(all_are(entry + size, 0xaa, sizeof(entry) - size));
}

static void gid_entry_of_a_newer_program_is_cleared(void **state)
{
	uint8_t entry[sizeof(struct ibv_gid_entry) + 24];
	struct ibv_gid_entry ours;

	memset(entry, 0xaa, sizeof(entry));
	assert_int_equal(_ibv_query_gid_ex(CTX, 1, 0, (void *)entry, 0,
					   sizeof(entry) - 8), 0);
	memcpy(&ours, entry, sizeof(ours));
	assert_int_equal(ours.gid_type, IBV_GID_TYPE_ROCE_V2);
	assert_int_equal(ours.ndev_ifindex, 9);
	assert_true(all_are(entry + sizeof(ours), 0, 16));
	assert_true(all_are(entry + sizeof(ours) + 16, 0xaa, 8));
}

static void gid_table_steps_by_the_callers_entry_size(void **state)
{
	enum { SIZE = sizeof(struct ibv_gid_entry) + 8 };
	uint8_t table[4 * SIZE];

	memset(table, 0xaa, sizeof(table));
	assert_int_equal(_ibv_query_gid_table(CTX, (void *)table, 4, 0, SIZE),
			 3);
	assert_true(all_are(table, 0x40, 16));
	assert_true(all_are(table + SIZE, 0x41, 16));
	assert_true(all_are(table + 2 * SIZE, 0x42, 16));
	assert_true(all_are(table + 2 * SIZE + sizeof(struct ibv_gid_entry), 0, 8));
	assert_true(all_are(table + 3 * SIZE, 0xaa, SIZE));
}

static void gid_table_that_does_not_fit_is_refused(void **state)
{
	struct ibv_gid_entry table[3];

	assert_int_equal(ibv_query_gid_table(CTX, table, 3, 0), 3);
	assert_int_equal(ibv_query_gid_table(CTX, table, 2, 0), -EINVAL);
	assert_int_equal(ibv_query_gid_table(CTX, table, 0, 0), -EINVAL);
	assert_int_equal(ibv_query_gid_table(CTX, table, 3, 1), -EOPNOTSUPP);
	fake_hca.answer = -EIO;
	assert_int_equal(ibv_query_gid_table(CTX, table, 3, 0), -EIO);
}

static void empty_gid_reads_as_zero(void **state)
{
	union ibv_gid gid;
	struct ibv_gid_entry entry;

	memset(&gid, 0xaa, sizeof(gid));
	fake_hca.answer = -ENODATA;
	assert_int_equal(ibv_query_gid(CTX, 1, 1, &gid), 0);
	assert_true(all_are(&gid, 0, sizeof(gid)));
	assert_int_equal(ibv_query_gid_ex(CTX, 1, 1, &entry, 0), ENODATA);
	fake_hca.answer = -EINVAL;
	assert_int_equal(ibv_query_gid(CTX, 1, 1, &gid), -1);
}

static void path_record_survives_the_kernels_layout(void **state)
{
	struct ibv_sa_path_rec from, back;
	struct ib_user_path_rec kernel;

	for (size_t i = 0; i < sizeof(from); i++)
		((uint8_t *)&from)[i] = (uint8_t)(i * 7 + 1);
	memset(&kernel, 0, sizeof(kernel));
	ibv_copy_path_rec_to_kern(&kernel, &from);
	memcpy(&back, &from, sizeof(back)); /* the padding must be equal, too */
	memset(&back.dgid, 0, sizeof(back.dgid));
	back.preference = back.mtu = back.sl = 0;
	ibv_copy_path_rec_from_kern(&back, &kernel);
	assert_memory_equal(&back, &from, sizeof(from));
	assert_int_equal(kernel.mtu, from.mtu);
	assert_int_equal(kernel.pkey, from.pkey);
}

static void ethernet_address_follows_from_the_gid(void **state)
{
	static const struct {
		uint8_t gid[16];
		uint8_t mac[6];
	} rows[] = {
		/* 239.129.2.3, ff0e::1:2:3, fe80 with an EUI-64 */
		{ { [10] = 0xff, 0xff, 239, 129, 2, 3 },
		  { 0x01, 0x00, 0x5e, 0x01, 0x02, 0x03 } },
		{ { 0xff, 0x0e, [12] = 0x00, 0x02, 0x00, 0x03 },
		  { 0x33, 0x33, 0x00, 0x02, 0x00, 0x03 } },
		{ { 0xfe, 0x80, [8] = 0x02, 0x11, 0x22, 0xff, 0xfe, 0x33, 0x44,
		    0x55 },
		  { 0x00, 0x11, 0x22, 0x33, 0x44, 0x55 } },
	};
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1 };
	uint8_t mac[6];
	uint16_t vid;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		memcpy(attr.grh.dgid.raw, rows[i].gid, 16);
		vid = 0;
		assert_int_equal(
			ibv_resolve_eth_l2_from_gid(CTX, &attr, mac, &vid), 0);
		assert_memory_equal(mac, rows[i].mac, 6);
		assert_int_equal(vid, 0xffff);
	}
	/* TEST-NET-1: neither ours nor a neighbour */
	memcpy(attr.grh.dgid.raw,
	       (uint8_t[16]){ [10] = 0xff, 0xff, 192, 0, 2, 77 }, 16);
	assert_int_equal(ibv_resolve_eth_l2_from_gid(CTX, &attr, mac, &vid),
			 -EHOSTUNREACH);
	attr.is_global = 0;
	assert_int_equal(ibv_resolve_eth_l2_from_gid(CTX, &attr, mac, &vid),
			 -EINVAL);
}

static void sysfs_file_is_read_without_its_line_end(void **state)
{
	char dir[] = "/tmp/busbar-sysfs-XXXXXX", path[64], text[8];
	FILE *f;

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/file", dir);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs("0123\n", f);
	fclose(f);
	assert_int_equal(ibv_read_sysfs_file(dir, "file", text, sizeof(text)),
			 4);
	assert_string_equal(text, "0123");
	assert_int_equal(ibv_read_sysfs_file(dir, "file", text, 3), 2);
	assert_string_equal(text, "01");
	assert_int_equal(ibv_read_sysfs_file(dir, "none", text, 8), -1);
	assert_int_equal(errno, ENOENT);
	unlink(path);
	rmdir(dir);
	assert_non_null(ibv_get_sysfs_path());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup(f, fake_answers)
		TEST(query_port_writes_the_old_layout_and_no_more),
		TEST(gid_entry_of_an_older_program_is_cut),
		TEST(gid_entry_of_a_newer_program_is_cleared),
		TEST(gid_table_steps_by_the_callers_entry_size),
		TEST(gid_table_that_does_not_fit_is_refused),
		TEST(empty_gid_reads_as_zero),
		TEST(path_record_survives_the_kernels_layout),
		TEST(ethernet_address_follows_from_the_gid),
		TEST(sysfs_file_is_read_without_its_line_end),
	};

	return cmocka_run_group_tests_name("verbs sizes", tests, NULL, NULL);
}
