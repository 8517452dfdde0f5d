/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Frames of Ethernet between the two ends of a cable, in a network namespace of the test's own.
 * Needs the rights for that (root, or user namespaces), else it is skipped.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gateway/part/ethernet.h"

#define TYPE 0x88b8
#define WAIT_MS 10000

static const uint8_t group[ETHERNET_MAC] = { 0x01, 0x0c, 0xcd, 0x01, 0, 5 };

static size_t make_frame(const struct ethernet *e, uint8_t *frame,
			 const struct ethernet_vlan *vlan, const char *text)
{
	size_t head = ethernet_header(e, frame, group, vlan);

	/* Behind it zeros up to the shortest frame. */
	memset(frame + head, 0, 46);
	memcpy(frame + head, text, strlen(text));
	return head + 46;
}

static int wait_for(const struct ethernet *e, uint8_t *buffer, size_t size,
		    struct ethernet_frame *f)
{
	struct pollfd p = { .fd = e->fd, .events = POLLIN };

	assert_int_equal(poll(&p, 1, WAIT_MS), 1);
	return ethernet_receive(e, buffer, size, f);
}

static void open_both(struct ethernet *a, struct ethernet *b)
{
	char why[ETHERNET_WHY_MAX];

	assert_int_equal(ethernet_open(a, "end0", TYPE, false, why), 0);
	assert_int_equal(ethernet_open(b, "end1", TYPE, true, why), 0);
	assert_int_equal(ethernet_join(b, group), 0);
}

static void frames_arrive_with_and_without_a_tag(void **state)
{
	static const struct ethernet_vlan tags[] = {
		{ false, 0, 0 }, { true, 0, 4 }, { true, 5, 7 }, { true, 4094, 0 },
	};
	uint8_t frame[100], buffer[1600];
	struct ethernet_frame f;
	struct ethernet a, b;

	open_both(&a, &b);
	assert_int_equal(ethernet_receive(&b, buffer, sizeof(buffer), &f), -EAGAIN);
	for (size_t i = 0; i < sizeof(tags) / sizeof(*tags); i++) {
		size_t len = make_frame(&a, frame, &tags[i], "event");

		assert_int_equal(ethernet_send(&a, frame, len), 0);
		assert_int_equal(wait_for(&b, buffer, sizeof(buffer), &f), 0);
		assert_memory_equal(f.destination, group, ETHERNET_MAC);
		assert_memory_equal(f.source, a.own, ETHERNET_MAC);
		assert_int_equal(f.vlan.enabled, tags[i].enabled);
		assert_int_equal(f.vlan.id, tags[i].id);
		assert_int_equal(f.vlan.priority, tags[i].priority);
		assert_true(f.len >= 46 && !f.truncated && f.received.tv_sec > 0);
		assert_string_equal((const char *)f.payload, "event");
	}
	ethernet_close(&a);
	ethernet_close(&b);
	ethernet_close(&b);
}

static void other_frames_do_not_arrive(void **state)
{
	uint8_t frame[100], buffer[1600];
	struct ethernet_frame f;
	struct ethernet a, b;
	size_t len;

	open_both(&a, &b);
	a.type = TYPE + 2;
	len = make_frame(&a, frame, NULL, "other");
	assert_int_equal(ethernet_send(&a, frame, len), 0);
	a.type = TYPE;
	len = make_frame(&a, frame, NULL, "mine");
	assert_int_equal(ethernet_send(&a, frame, len), 0);
	assert_int_equal(wait_for(&b, buffer, sizeof(buffer), &f), 0);
	assert_string_equal((const char *)f.payload, "mine");
	/* Nor what this end sends. */
	len = make_frame(&b, frame, NULL, "own");
	assert_int_equal(ethernet_send(&b, frame, len), 0);
	assert_int_equal(ethernet_receive(&b, buffer, sizeof(buffer), &f), -EAGAIN);
	ethernet_close(&a);
	ethernet_close(&b);
}

static void a_long_frame_is_cut_or_refused(void **state)
{
	uint8_t frame[2000] = { 0 }, buffer[60];
	struct ethernet_frame f;
	struct ethernet a, b;

	open_both(&a, &b);
	make_frame(&a, frame, NULL, "long");
	assert_int_equal(ethernet_send(&a, frame, 1514), 0);
	assert_int_equal(wait_for(&b, buffer, sizeof(buffer), &f), 0);
	assert_true(f.truncated);
	assert_int_equal(f.len, sizeof(buffer) - 14);
	assert_int_equal(ethernet_send(&a, frame, sizeof(frame)), -EMSGSIZE);
	ethernet_close(&a);
	ethernet_close(&b);
}

static void frames_without_room_are_counted(void **state)
{
	uint8_t frame[1514] = { 0 }, buffer[1600];
	unsigned sent = 0, received = 0;
	struct ethernet_frame f;
	struct ethernet a, b;

	open_both(&a, &b);
	make_frame(&a, frame, NULL, "many");
	for (; sent < 20000; sent++)
		while (ethernet_send(&a, frame, sizeof(frame)))
			;
	while (!ethernet_receive(&b, buffer, sizeof(buffer), &f))
		received++;
	assert_true(received && received < sent);
	assert_int_equal(received + ethernet_overruns(&b), sent);
	assert_int_equal(ethernet_overruns(&b), 0);
	ethernet_close(&a);
	ethernet_close(&b);
}

static void a_loopback_gives_each_frame_once(void **state)
{
	uint8_t frame[100], buffer[1600];
	char why[ETHERNET_WHY_MAX];
	struct ethernet_frame f;
	struct ethernet e;
	size_t len;

	assert_int_equal(ethernet_open(&e, "lo", TYPE, true, why), 0);
	len = make_frame(&e, frame, NULL, "self");
	assert_int_equal(ethernet_send(&e, frame, len), 0);
	assert_int_equal(wait_for(&e, buffer, sizeof(buffer), &f), 0);
	assert_string_equal((const char *)f.payload, "self");
	assert_int_equal(ethernet_receive(&e, buffer, sizeof(buffer), &f), -EAGAIN);
	ethernet_close(&e);
}

static void what_cannot_be_opened_is_named(void **state)
{
	char why[ETHERNET_WHY_MAX];
	struct ethernet e;

	assert_int_equal(ethernet_open(&e, "nowhere", TYPE, true, why), -ENODEV);
	assert_string_equal(why, "nowhere: No such device");
	assert_int_equal(e.fd, -1);
	assert_int_equal(ethernet_open(&e, "a-name-that-is-too-long", TYPE, true, why), -ENODEV);
	assert_int_equal(ethernet_open(&e, "tun9", TYPE, true, why), -EINVAL);
	assert_string_equal(why, "tun9 carries no frames of Ethernet");
}

static void addresses_are_read_in_both_forms(void **state)
{
	static const char *const wrong[] = { "", "01-0c-cd-01-00", "01-0c-cd-01-00-00-00",
					     "01-0c-cd-01-00-0g", "01.0c.cd.01.00.00",
					     "01-0c-cd-01-00-000" };
	uint8_t mac[ETHERNET_MAC];

	assert_true(ethernet_parse("01-0c-cd-01-00-05", mac));
	assert_memory_equal(mac, group, ETHERNET_MAC);
	assert_true(ethernet_parse("1:c:CD:1:0:5", mac));
	assert_memory_equal(mac, group, ETHERNET_MAC);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		assert_false(ethernet_parse(wrong[i], mac));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_arrive_with_and_without_a_tag),
		cmocka_unit_test(other_frames_do_not_arrive),
		cmocka_unit_test(a_long_frame_is_cut_or_refused),
		cmocka_unit_test(frames_without_room_are_counted),
		cmocka_unit_test(a_loopback_gives_each_frame_once),
		cmocka_unit_test(what_cannot_be_opened_is_named),
		cmocka_unit_test(addresses_are_read_in_both_forms),
	};

	if (unshare(CLONE_NEWNET) && unshare(CLONE_NEWUSER | CLONE_NEWNET)) {
		printf("skipped: no network namespace: %s\n", strerror(errno));
		return 77;
	}
	if (system("ip link set lo up && ip link add end0 type veth peer name end1 && "
		   "ip link set end0 up && ip link set end1 up && ip tuntap add tun9 mode tun")) {
		printf("skipped: no pair of interfaces\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
