/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets of the carrier over UDP as they are on the wire: in a network namespace with a
 * TAP interface, whose frames the test reads. Needs the rights for that (root, or user
 * namespaces), else it is skipped.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "check.h"
#include "transport/carrier/udp.h"

enum { ETHERNET = 14, FRAME_MAX = 2048, WAIT_MS = 10000, MTU = 1500 };

static int tap, control;
static struct carrier *carrier;
static unsigned writable;

static void on_deliver(void *arg, const struct carrier_unit *unit)
{
	check(!"nothing comes in these tests");
}

static void on_writable(void *arg)
{
	writable++;
}

static struct ifreq request(void)
{
	struct ifreq r;

	memset(&r, 0, sizeof(r));
	strcpy(r.ifr_name, "wire");
	return r;
}

static void set_address(unsigned long what, const char *text)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	struct ifreq r = request();

	inet_pton(AF_INET, text, &a.sin_addr);
	memcpy(&r.ifr_addr, &a, sizeof(a));
	check(!ioctl(control, what, &r));
}

/* The other end's hardware address, without which packets to it wait in the kernel. */
static void set_neighbour(const char *text)
{
	struct arpreq r = { .arp_flags = ATF_COM | ATF_PERM,
			    .arp_ha = { .sa_family = ARPHRD_ETHER,
					.sa_data = { 2, 0, 0, 0, 0, 9 } } };
	struct sockaddr_in a = { .sin_family = AF_INET };

	inet_pton(AF_INET, text, &a.sin_addr);
	memcpy(&r.arp_pa, &a, sizeof(a));
	strcpy(r.arp_dev, "wire");
	check(!ioctl(control, SIOCSARP, &r));
}

/* False: no rights. */
static bool make_wire(void)
{
	struct ifreq r = request();

	if (unshare(CLONE_NEWNET) && unshare(CLONE_NEWUSER | CLONE_NEWNET))
		return false;
	control = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	tap = open("/dev/net/tun", O_RDWR | O_CLOEXEC | O_NONBLOCK);
	r.ifr_flags = IFF_TAP | IFF_NO_PI;
	if (tap < 0 || ioctl(tap, TUNSETIFF, &r))
		return false;
	set_address(SIOCSIFADDR, "10.77.0.1");
	set_address(SIOCSIFNETMASK, "255.255.255.0");
	r = request();
	r.ifr_mtu = MTU;
	check(!ioctl(control, SIOCSIFMTU, &r));
	r = request();
	check(!ioctl(control, SIOCGIFFLAGS, &r));
	r.ifr_flags |= IFF_UP | IFF_RUNNING;
	check(!ioctl(control, SIOCSIFFLAGS, &r));
	set_address(SIOCSIFADDR, "10.77.0.1");
	set_neighbour("10.77.0.2");
	return true;
}

static struct carrier_addr addr(const char *text, uint16_t port)
{
	uint8_t ip[16] = { [10] = 0xff, [11] = 0xff };

	check(inet_pton(AF_INET, text, ip + 12) == 1);
	return carrier_udp_addr_of(ip, 0, port);
}

/* The next IPv4 frame with UDP to `to`; others pass. What follows the IP header is left in
 * `udp`; its length, without 8 bytes for the header of UDP. */
static uint8_t udp[FRAME_MAX];

static size_t frame_read(struct iphdr *ip, const char *to)
{
	uint8_t frame[FRAME_MAX];
	struct pollfd p = { .fd = tap, .events = POLLIN };

	for (;;) {
		ssize_t n;
		char text[INET_ADDRSTRLEN];

		check(poll(&p, 1, WAIT_MS) == 1);
		n = read(tap, frame, sizeof(frame));
		check(n > 0);
		if (n < ETHERNET + 28 || frame[12] != 0x08 || frame[13] != 0x00)
			continue;
		memcpy(ip, frame + ETHERNET, sizeof(*ip));
		inet_ntop(AF_INET, &ip->daddr, text, sizeof(text));
		if (ip->protocol != IPPROTO_UDP || strcmp(text, to) != 0)
			continue;
		check(ip->ihl == 5 && ntohs(ip->tot_len) == n - ETHERNET);
		memcpy(udp, frame + ETHERNET + 20, (size_t)n - ETHERNET - 20);
		return (size_t)n - ETHERNET - 28;
	}
}

static uint8_t bytes[70000];

static int emit_to(const char *to, size_t length, uint32_t segment)
{
	struct iovec iov = { bytes, length };
	struct carrier_unit u = { .iov = &iov, .count = 1, .segment = segment,
				  .to = addr(to, 4791) };

	return carrier_emit(carrier, &u, 1);
}

static void a_packet_has_no_identification(void)
{
	struct iphdr ip;

	for (unsigned i = 0; i < 5; i++) {
		check(emit_to("10.77.0.2", 100 + i, 0) == 1);
		check(frame_read(&ip, "10.77.0.2") == 100 + i);
		check(ip.id == 0 && ip.frag_off == htons(IP_DF));
	}
}

static void packets_of_a_train_count_from_0(void)
{
	struct iphdr ip;

	for (unsigned i = 0; i < 3; i++) {
		check(emit_to("10.77.0.2", 9 * 1000 + 7, 1000) == 1);
		for (unsigned k = 0; k < 10; k++) {
			check(frame_read(&ip, "10.77.0.2") == (k < 9 ? 1000 : 7));
			check(ntohs(ip.id) == k && ip.frag_off == htons(IP_DF));
		}
	}
	check(carrier_udp_train_packets(carrier) > 1);
	/* In parts each part counts for itself. */
	check(emit_to("10.77.0.2", 100 * 10, 10) == 1);
	for (unsigned k = 0; k < 100; k++) {
		check(frame_read(&ip, "10.77.0.2") == 10);
		check(ntohs(ip.id) == k % CARRIER_UDP_TRAIN_PACKETS);
	}
}

static void what_the_interface_does_not_take_is_too_long(void)
{
	struct carrier_udp_counters n;
	struct iphdr ip;

	check(emit_to("10.77.0.2", MTU - 28, 0) == 1);
	check(frame_read(&ip, "10.77.0.2") == MTU - 28);
	check(emit_to("10.77.0.2", MTU - 27, 0) == -EMSGSIZE);
	check(emit_to("10.77.0.2", 5 * (MTU - 27), MTU - 27) == -EMSGSIZE);
	check(carrier_udp_train_packets(carrier) > 1);
	check(emit_to("10.77.0.2", 3 * (MTU - 28), MTU - 28) == 1);
	for (unsigned k = 0; k < 3; k++)
		check(frame_read(&ip, "10.77.0.2") == MTU - 28);
	carrier_udp_count(carrier, &n);
	check(n.too_long == 2);
	check(emit_to("192.0.2.1", 10, 0) == -EHOSTUNREACH); /* no route */
}

static uint16_t source_port(void)
{
	return (uint16_t)(udp[0] << 8 | udp[1]);
}

/* A packet of MTU + 500 bytes with its headers, in two pieces of one identification. */
static void expect_cut(uint16_t port)
{
	struct iphdr first, second;

	check(frame_read(&first, "10.77.0.2") == 1480 - 8);
	check(source_port() == port && first.frag_off == htons(IP_MF));
	check(frame_read(&second, "10.77.0.2") == 500 - 8);
	check(second.frag_off == htons(1480 / 8) && second.id == first.id);
}

static void what_may_leave_in_fragments_has_a_socket_of_its_own(void)
{
	const size_t length = MTU + 500 - 28;
	struct iovec iov = { bytes, length };
	struct carrier_unit u = { .iov = &iov, .count = 1, .to = addr("10.77.0.2", 4791),
				  .known = CARRIER_FRAGMENTS };
	struct carrier_unit several[2];
	struct carrier_udp_counters before, after;
	struct carrier_udp_facts facts;
	struct iphdr ip;

	carrier_udp_facts(carrier, &facts);
	check(facts.port == 4791 && facts.fragment_port && facts.fragment_port != 4791);
	carrier_udp_count(carrier, &before);
	check(carrier_emit(carrier, &u, 1) == 1);
	expect_cut(facts.fragment_port);
	/* Several units, and trains, whose packets are sent one by one. */
	several[0] = several[1] = u;
	check(carrier_emit(carrier, several, 2) == 2);
	expect_cut(facts.fragment_port);
	expect_cut(facts.fragment_port);
	iov.iov_len = 2 * length + 100;
	u.segment = (uint32_t)length;
	check(carrier_emit(carrier, &u, 1) == 1);
	expect_cut(facts.fragment_port);
	expect_cut(facts.fragment_port);
	/* What needs no fragments leaves from there, too, and may be cut on its way. */
	check(frame_read(&ip, "10.77.0.2") == 100);
	check(source_port() == facts.fragment_port && ip.frag_off == 0);
	carrier_udp_count(carrier, &after);
	check(after.too_long == before.too_long && after.sent == before.sent + 6);
	check(carrier_udp_train_packets(carrier) > 1);
	/* All others leave as before. */
	check(emit_to("10.77.0.2", length, 0) == -EMSGSIZE);
	check(emit_to("10.77.0.2", 10, 0) == 1);
	check(frame_read(&ip, "10.77.0.2") == 10);
	check(source_port() == 4791 && ip.id == 0 && ip.frag_off == htons(IP_DF));
}

static void the_fields_of_a_unit_are_obeyed(void)
{
	struct iovec iov = { bytes, 3000 };
	struct carrier_unit u = {
		.iov = &iov, .count = 1, .segment = 1000, .to = addr("10.77.0.2", 4791),
		.known = CARRIER_TOS | CARRIER_TTL | CARRIER_FROM, .tos = 0x6a, .ttl = 3,
		.from = addr("10.77.0.1", 0),
	};
	struct iphdr ip;

	check(carrier_emit(carrier, &u, 1) == 1);
	for (unsigned k = 0; k < 3; k++) {
		check(frame_read(&ip, "10.77.0.2") == 1000);
		check(ip.tos == 0x6a && ip.ttl == 3 && ntohs(ip.id) == k);
		check(ip.saddr == inet_addr("10.77.0.1"));
	}
}

/* Packets to a neighbour of unknown address wait, and take the room of the socket. */
static void behind_no_room_the_owner_is_told_of_room(void)
{
	struct carrier_udp_counters n;
	struct iphdr ip;
	unsigned sent = 0;
	int ret;

	check(!setsockopt(carrier_udp_fd(carrier), SOL_SOCKET, SO_SNDBUF, &(int){ 8192 },
			  sizeof(int)));
	check(carrier_next_ns(carrier) == UINT64_MAX);
	while ((ret = emit_to("10.77.0.3", 1000, 0)) == 1)
		check(++sent < 100);
	check(ret == -EAGAIN && sent);
	/* A train in parts of which the first one has no room did not leave. */
	check(emit_to("10.77.0.3", 200 * 10, 10) == -EAGAIN);
	carrier_udp_count(carrier, &n);
	check(n.would_block == 2 && !n.lost_parts);
	check(carrier_next_ns(carrier) != UINT64_MAX);
	while (clock_now_ns() < carrier_next_ns(carrier))
		check(carrier_poll(carrier, 1) == 0 || true);
	carrier_poll(carrier, 1);
	check(!writable); /* there is none yet */
	set_neighbour("10.77.0.3");
	for (unsigned i = 0; i < sent; i++)
		check(frame_read(&ip, "10.77.0.3") == 1000);
	while (!writable) {
		uint64_t next = carrier_next_ns(carrier);

		check(next != UINT64_MAX && next < clock_now_ns() + NSEC_PER_SEC);
		carrier_poll(carrier, 1);
	}
	check(writable == 1 && carrier_next_ns(carrier) == UINT64_MAX);
	check(emit_to("10.77.0.3", 1000, 0) == 1);
	check(frame_read(&ip, "10.77.0.3") == 1000);
}

int main(void)
{
	struct carrier_udp_params p = { .clock = clock_source_host(), .fragments = true };
	struct carrier_upper upper = { on_deliver, on_writable, NULL };

	clock_init();
	if (!make_wire()) {
		printf("no rights for a TAP interface: %s\n", strerror(errno));
		return 77;
	}
	p.fd = carrier_udp_socket(4791);
	check(p.fd >= 0 && !carrier_udp_open(&p, &carrier));
	carrier_set_upper(carrier, &upper);
	run_test(a_packet_has_no_identification);
	run_test(packets_of_a_train_count_from_0);
	run_test(what_the_interface_does_not_take_is_too_long);
	run_test(what_may_leave_in_fragments_has_a_socket_of_its_own);
	run_test(the_fields_of_a_unit_are_obeyed);
	run_test(behind_no_room_the_owner_is_told_of_room);
	carrier_close(carrier);
	close(p.fd);
	return 0;
}
