/* SPDX-License-Identifier: BSD-2-Clause */
/* The filter that sends short packets as raw frames, on the loopback interface. Needs
 * CAP_NET_RAW, else it is skipped. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "transport/carrier/raw.h"
#include "transport/carrier/raw_frame.h"
#include "transport/carrier/udp.h"
#include "util/clock.h"
#include "util/prng.h"

/* Numbers of ends stand where a number of a queue pair would. */
enum { WAIT_MS = 10000, BYTES = 1 << 16, SHIFT = 10, ENDS = 64, RING = 512 };

struct end {
	struct carrier *udp, *c;
	int fd;
	uint16_t port;
	unsigned number;
	unsigned units, packets;
	struct carrier_unit last;
	uint8_t bytes[BYTES]; /* of the last one */
	size_t length;
	void (*saw)(struct end *e);
};

static struct end one, two;
/* Of the frames. That of the UDP socket of an end, so that no other process has it. */
static uint16_t frame_port;
static uint64_t now_ns = 1; /* of the clock of all ends */
static uint8_t pattern[BYTES];

static uint64_t read_clock(void *arg)
{
	return now_ns;
}

static void on_deliver(void *arg, const struct carrier_unit *unit)
{
	struct end *e = arg;

	e->length = carrier_unit_bytes(unit);
	check(e->length && e->length <= BYTES);
	carrier_unit_gather(unit, 0, e->length, e->bytes);
	e->packets += carrier_unit_packets(unit, e->length);
	e->last = *unit;
	e->units++;
	if (e->saw)
		e->saw(e);
}

static void end_open(struct end *e, unsigned number)
{
	const struct clock_source clock = { read_clock, NULL };
	const struct carrier_upper upper = { on_deliver, NULL, e };
	struct carrier_udp_params udp = { .clock = clock };
	struct carrier_raw_params raw = { .mask = (ENDS - 1) << SHIFT,
					  .value = number << SHIFT, .clock = clock };
	struct carrier_udp_facts facts;

	memset(e, 0, sizeof(*e));
	e->number = number;
	udp.fd = e->fd = carrier_udp_socket(0);
	check(e->fd >= 0 && !carrier_udp_open(&udp, &e->udp));
	carrier_udp_facts(e->udp, &facts);
	e->port = facts.port;
	if (!frame_port)
		frame_port = e->port;
	raw.port = frame_port;
	check(!carrier_raw_open(e->udp, &raw, &e->c));
	carrier_set_upper(e->c, &upper);
}

static void end_close(struct end *e)
{
	carrier_close(e->c);
	close(e->fd);
	frame_port = 0;
}

static struct carrier_addr addr(const char *text, uint16_t port)
{
	uint8_t ip[16] = { [10] = 0xff, [11] = 0xff };

	check(inet_pton(AF_INET, text, ip + 12) == 1 || inet_pton(AF_INET6, text, ip) == 1);
	return carrier_udp_addr_of(ip, 0, port);
}

static bool have_v6(void)
{
	struct sockaddr_in6 a = { .sin6_family = AF_INET6,
				  .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool ret = fd >= 0 && !bind(fd, (struct sockaddr *)&a, sizeof(a));

	close(fd);
	return ret;
}

/* Bytes for the end, whose second four are its number. */
static struct carrier_unit unit_for(const struct end *e, const char *to, struct iovec *iov,
				    size_t bytes)
{
	uint32_t word = htonl(e->number << SHIFT);

	memcpy(pattern + 4, &word, sizeof(word));
	*iov = (struct iovec){ pattern, bytes };
	return (struct carrier_unit){
		.iov = iov, .count = 1, .to = addr(to, e->port), .from = addr(to, 0),
		.known = CARRIER_FROM | CARRIER_RAW,
	};
}

static void counters(const struct end *e, struct carrier_raw_counters *n)
{
	carrier_raw_count(e->c, n);
}

/* Polls until so many units have come, and no more. */
static void await(struct end *e, unsigned units)
{
	while (e->units < units) {
		struct pollfd p[2] = { { .fd = e->fd, .events = POLLIN },
				       { .fd = carrier_raw_fd(e->c), .events = POLLIN } };

		now_ns += CARRIER_RAW_LOOK_NS;
		if (!carrier_poll(e->c, 64))
			check(poll(p, 2, WAIT_MS) >= 1);
	}
	check(e->units == units);
	now_ns += CARRIER_RAW_LOOK_NS;
	check(carrier_poll(e->c, 64) == 0);
}

static void send_one(struct end *from, struct end *to, const struct carrier_unit *u,
		     unsigned units, bool raw)
{
	struct carrier_raw_counters before, after;

	to->units = to->packets = 0;
	counters(from, &before);
	check(carrier_emit(from->c, u, 1) == 1);
	await(to, units);
	counters(from, &after);
	check((after.sent > before.sent) == raw);
	check(!(to->last.known & CARRIER_RAW) == !raw);
}

static void both_open(void)
{
	end_open(&one, 5);
	end_open(&two, 6);
}

static void both_close(void)
{
	end_close(&one);
	end_close(&two);
}

/* ---- the tests ---- */

static void there_and_back(const char *from, const char *to, bool v4)
{
	struct carrier_addr source = addr(from, frame_port), dest = addr(to, frame_port);
	uint32_t word = htonl(two.number << SHIFT);
	struct iovec iov[3] = { { pattern, 3 }, { NULL, 0 }, { pattern + 3, 61 } };
	struct carrier_unit u = {
		.iov = iov, .count = 3, .to = addr(to, two.port), .from = addr(from, 1),
		.known = CARRIER_FROM | CARRIER_TOS | CARRIER_TTL | CARRIER_RAW,
		.tos = 0x6a, .ttl = 17,
	};

	memcpy(pattern + 4, &word, sizeof(word));
	send_one(&one, &two, &u, 1, true);
	check(two.length == 64 && !memcmp(two.bytes, pattern, 64));
	check(two.last.known == (CARRIER_FROM | CARRIER_TOS | CARRIER_TTL | CARRIER_RAW |
				 CARRIER_INTERFACE | (v4 ? CARRIER_IP_ID : 0)));
	check(carrier_addr_equal(&two.last.from, &source));
	check(carrier_addr_equal(&two.last.to, &dest));
	check(two.last.tos == 0x6a && two.last.ttl == 17 && !two.last.ip_id);
	check(two.last.interface == if_nametoindex("lo") && !two.last.segment);
	/* And back; what is not said of it is as usual. */
	word = htonl(one.number << SHIFT);
	memcpy(pattern + 4, &word, sizeof(word));
	u.to = addr(from, one.port);
	u.from = addr(to, 1);
	u.known = CARRIER_FROM | CARRIER_RAW;
	send_one(&two, &one, &u, 1, true);
	check(one.length == 64 && !memcmp(one.bytes, pattern, 64));
	check(one.last.tos == 0 && one.last.ttl == 64);
}

static void a_short_packet_leaves_as_a_frame(void)
{
	both_open();
	there_and_back("127.0.0.3", "127.0.0.2", true);
	if (have_v6())
		there_and_back("::1", "::1", false);
	both_close();
}

static void lengths_and_kinds_decide_how_a_unit_leaves(const char *to)
{
	static const struct {
		size_t bytes;
		uint32_t segment;
		unsigned with, without;
		bool raw;
	} cases[] = {
		{ 8, 0, 0, 0, true },
		{ CARRIER_RAW_BYTES, 0, 0, 0, true },
		{ CARRIER_RAW_BYTES + 1, 0, 0, 0, false },
		{ CARRIER_RAW_BYTES, CARRIER_RAW_BYTES, 0, 0, true },
		{ CARRIER_RAW_BYTES, CARRIER_RAW_BYTES + 1, 0, 0, true },
		{ CARRIER_RAW_BYTES, CARRIER_RAW_BYTES - 1, 0, 0, true },
		{ CARRIER_RAW_BYTES + 1, 100, 0, 0, false },
		{ 100, 30, 0, 0, true }, /* four packets */
		{ 100, 1, 0, 0, true },
		{ 60, 0, 0, CARRIER_RAW, false },
		{ 60, 0, 0, CARRIER_FROM, false },
		{ 60, 0, CARRIER_INTERFACE, 0, false },
		{ 60, 0, CARRIER_FRAGMENTS, 0, false },
		{ 60, 0, CARRIER_TOS | CARRIER_TTL, 0, true },
	};
	struct iovec iov;

	both_open();
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct carrier_unit u = unit_for(&two, to, &iov, cases[i].bytes);

		u.segment = cases[i].segment;
		u.known = (uint16_t)((u.known | cases[i].with) & ~cases[i].without);
		u.interface = if_nametoindex("lo");
		send_one(&one, &two, &u, 1, cases[i].raw);
		check(two.length == cases[i].bytes);
		check(!memcmp(two.bytes, pattern, two.length));
		check(two.last.segment ==
		      (cases[i].segment < cases[i].bytes ? cases[i].segment : 0));
		check(two.packets == carrier_unit_packets(&u, cases[i].bytes));
	}
	both_close();
}

static void lengths_and_kinds_decide(void)
{
	lengths_and_kinds_decide_how_a_unit_leaves("127.0.0.1");
	if (have_v6())
		lengths_and_kinds_decide_how_a_unit_leaves("::1");
}

static uint32_t expected;

static void in_order(struct end *e)
{
	uint32_t n;

	memcpy(&n, e->bytes, sizeof(n));
	check(n == expected++);
}

/* Long and short ones in turns, from a seed, read now and then: in their order, if a short one is
 * no frame before all that left otherwise has been received. */
static void units_keep_their_order(void)
{
	struct carrier_raw_counters n;
	struct prng seed = prng_from(0x5eed);
	unsigned otherwise = 0;

	both_open();
	expected = 0;
	two.saw = in_order;
	for (uint32_t i = 0; i < 20000; i++) {
		bool is_long = prng_next(&seed) % 16 == 0;
		struct iovec iov;
		struct carrier_unit u = unit_for(&two, "127.0.0.1", &iov,
						 is_long ? 2000 : 40);

		memcpy(pattern, &i, sizeof(i));
		if (two.units < otherwise)
			u.known &= (uint16_t)~CARRIER_RAW;
		if (is_long || !(u.known & CARRIER_RAW))
			otherwise = i + 1;
		check(carrier_emit(one.c, &u, 1) == 1);
		/* A poll may leave out the carrier below until some time has passed. */
		if (i - two.units > 100 || prng_next(&seed) % 8 == 0) {
			now_ns += CARRIER_RAW_LOOK_NS;
			carrier_poll(two.c, 1 + prng_next(&seed) % 32);
		}
	}
	await(&two, 20000);
	counters(&one, &n);
	check(n.sent > 1000 && n.sent < 19000);
	two.saw = NULL;
	both_close();
}

/* However many frames come, the other way is looked at. */
static void frames_do_not_keep_others_waiting(void)
{
	struct iovec iov;
	struct carrier_unit frame, other;
	unsigned i;

	both_open();
	frame = unit_for(&two, "127.0.0.1", &iov, 40);
	other = frame;
	other.known &= (uint16_t)~CARRIER_RAW;
	check(carrier_emit(one.c, &frame, 1) == 1);
	await(&two, 1);
	check(carrier_emit(one.c, &other, 1) == 1);
	for (i = 0; i < 100 && (two.last.known & CARRIER_RAW); i++) {
		check(carrier_emit(one.c, &frame, 1) == 1);
		check(carrier_emit(one.c, &frame, 1) == 1);
		now_ns += CARRIER_RAW_LOOK_NS / 10;
		check(carrier_poll(two.c, 1) == 1);
	}
	check(i < 100);
	both_close();
}

/* While frames come it is looked at now and then, and when that is asked for. */
static void the_other_way_is_looked_at_when_asked(void)
{
	struct iovec iov;
	struct carrier_unit u;

	both_open();
	u = unit_for(&two, "127.0.0.1", &iov, 40);
	send_one(&one, &two, &u, 1, true);
	u.known &= (uint16_t)~CARRIER_RAW;
	check(carrier_emit(one.c, &u, 1) == 1);
	check(carrier_poll(two.c, 8) == 0);
	carrier_raw_look_below(two.c);
	check(carrier_poll(two.c, 8) == 1 && two.units == 2);
	both_close();
}

static void an_end_takes_only_its_own(void)
{
	struct carrier_raw_counters n;
	struct iovec iov;
	struct carrier_unit u;

	both_open();
	u = unit_for(&two, "127.0.0.1", &iov, 100);
	for (unsigned i = 0; i < 10; i++)
		check(carrier_emit(one.c, &u, 1) == 1);
	await(&two, 10);
	await(&one, 0);
	/* Bits beside the mask do not matter. */
	pattern[4] = 0x80;
	pattern[7] = 0x11;
	check(carrier_emit(one.c, &u, 1) == 1);
	await(&two, 11);
	counters(&one, &n);
	check(n.sent == 11 && n.received == 0 && n.malformed == 0);
	counters(&two, &n);
	check(n.sent == 0 && n.received == 11 && n.malformed == 0);
	both_close();
}

static void what_has_no_room_is_lost_and_counted(void)
{
	struct carrier_raw_counters n;
	struct iovec iov;
	struct carrier_unit u;

	both_open();
	u = unit_for(&two, "127.0.0.1", &iov, 100);
	for (unsigned i = 0; i < RING + 76; i++)
		check(carrier_emit(one.c, &u, 1) == 1);
	await(&two, RING);
	counters(&two, &n);
	check(n.received == RING && n.overrun == 76);
	/* There is room again. */
	send_one(&one, &two, &u, 1, true);
	counters(&two, &n);
	check(n.received == RING + 1 && n.overrun == 0);
	both_close();
}

static int inject_fd;

static void inject(const uint8_t *frame, size_t bytes)
{
	struct sockaddr_ll a = { .sll_family = AF_PACKET,
				 .sll_protocol = htons(RAW_ETHERTYPE),
				 .sll_ifindex = (int)if_nametoindex("lo"),
				 .sll_halen = 6 };

	check(sendto(inject_fd, frame, bytes, 0, (struct sockaddr *)&a, sizeof(a)) ==
	      (ssize_t)bytes);
}

/* A byte of a good frame is another one: it comes, is refused, or is for nobody. */
static void frames_with_wrong_headers_are_refused(const char *to, size_t headers)
{
	struct carrier_raw_counters n;
	uint8_t frame[RAW_FRAME_BYTES + 100];
	unsigned came = 0, refused = 0;
	struct carrier_unit u;
	struct iovec iov;
	size_t bytes;

	both_open();
	inject_fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	check(inject_fd >= 0);
	u = unit_for(&two, to, &iov, 100);
	for (size_t at = 10; at < headers; at++)
		for (unsigned bit = 0; bit < 8; bit++) {
			bytes = raw_frame_write(&u, 100, frame_port, frame);
			check(bytes == headers + 100);
			frame[at] ^= (uint8_t)(1u << bit);
			two.units = 0;
			inject(frame, bytes);
			while (carrier_poll(two.c, 64))
				;
			came += two.units;
			if (two.units)
				check(two.length == 100 && !memcmp(two.bytes, pattern, 100));
		}
	counters(&two, &n);
	refused = (unsigned)n.malformed;
	/* Addresses, the class, TTL, the flow, ports of the source and the like may differ;
	 * lengths, fragments and a checksum of UDP may not. */
	check(came > 64 && refused >= 48 && n.received == came);
	/* Cut off, and longer than they say. */
	for (size_t cut = 0; cut < 100; cut += 7) {
		bytes = raw_frame_write(&u, 100, frame_port, frame);
		memset(frame + bytes, 0, 100);
		two.units = 0;
		inject(frame, cut ? bytes - cut : bytes + 4);
		while (carrier_poll(two.c, 64))
			;
		check(!two.units);
	}
	/* A good one at last. */
	two.units = 0;
	inject(frame, bytes);
	await(&two, 1);
	close(inject_fd);
	both_close();
}

static void wrong_headers_are_refused(void)
{
	frames_with_wrong_headers_are_refused("127.0.0.1", RAW_HEADERS_V4);
	frames_with_wrong_headers_are_refused("::1", RAW_HEADERS_V6);
}

/* As where the kernel takes no frame: then the unit goes the other way. */
static void what_is_refused_leaves_by_udp(void)
{
	struct carrier_raw_counters n;
	struct iovec iov;
	struct carrier_unit u;
	int fds[2];

	both_open();
	check(!pipe(fds));
	check(dup2(fds[0], carrier_raw_fd(one.c)) == carrier_raw_fd(one.c));
	u = unit_for(&two, "127.0.0.1", &iov, 100);
	send_one(&one, &two, &u, 1, false);
	counters(&one, &n);
	check(n.sent == 0 && n.refused == 1);
	/* Addresses of two versions of IP are none. */
	u.from = addr("::1", 0);
	check(carrier_emit(two.c, &u, 1) == 1 || have_v6());
	close(fds[0]);
	close(fds[1]);
	both_close();
}

static void without_the_right_there_is_none(void)
{
	pid_t pid;
	int status;

	if (geteuid())
		return;
	pid = fork();
	if (!pid) {
		const struct clock_source clock = { read_clock, NULL };
		struct carrier_udp_params udp = { .clock = clock };
		struct carrier_raw_params raw = { .clock = clock };
		const struct carrier_upper upper = { on_deliver, NULL, &one };
		struct carrier_udp_facts facts;
		struct iovec iov;
		struct carrier_unit u;

		if (setresuid(65534, 65534, 65534)) /* a user namespace without it */
			_exit(0);
		udp.fd = one.fd = carrier_udp_socket(0);
		check(!carrier_udp_open(&udp, &one.udp));
		carrier_udp_facts(one.udp, &facts);
		one.port = facts.port;
		check(carrier_raw_open(one.udp, &raw, &one.c) == -EPERM);
		/* The carrier below is as it was. */
		carrier_set_upper(one.udp, &upper);
		u = unit_for(&one, "127.0.0.1", &iov, 100);
		check(carrier_emit(one.udp, &u, 1) == 1);
		while (!one.units)
			carrier_poll(one.udp, 1);
		carrier_close(one.udp);
		_exit(0);
	}
	check(waitpid(pid, &status, 0) == pid && !status);
}

static void a_frame_that_waits_makes_the_descriptor_readable(void)
{
	struct pollfd p;
	struct iovec iov;
	struct carrier_unit u;

	both_open();
	p = (struct pollfd){ .fd = carrier_raw_fd(two.c), .events = POLLIN };
	u = unit_for(&two, "127.0.0.1", &iov, 100);
	for (unsigned i = 0; i < 6000; i++) {
		check(poll(&p, 1, 0) == 0);
		check(carrier_emit(one.c, &u, 1) == 1);
		check(poll(&p, 1, WAIT_MS) == 1);
		check(carrier_poll(two.c, 1) == 1);
		check(poll(&p, 1, 0) == 0);
	}
	check(two.units == 6000);
	both_close();
}

/* Some emit at a time; one of two that poll delivers. */
enum { EMITTERS = 3, EACH = 3000, WINDOW = 64 };
static atomic_uint emitted, delivered;

static void count_it(struct end *e)
{
	atomic_fetch_add(&delivered, 1);
}

static void *emitter(void *arg)
{
	uint8_t bytes[100] = "";
	uint32_t word = htonl(two.number << SHIFT);
	struct iovec iov = { bytes, sizeof(bytes) };
	struct carrier_unit u = { .iov = &iov, .count = 1,
				  .to = addr("127.0.0.1", two.port),
				  .from = addr("127.0.0.1", 0),
				  .known = CARRIER_FROM | CARRIER_RAW };

	memcpy(bytes + 4, &word, sizeof(word));
	for (unsigned i = 0; i < EACH; i++) {
		while (atomic_load(&emitted) > atomic_load(&delivered) + WINDOW)
			sched_yield();
		atomic_fetch_add(&emitted, 1);
		check(carrier_emit(one.c, &u, 1) == 1);
	}
	return NULL;
}

static void *poller(void *arg)
{
	while (atomic_load(&delivered) < EMITTERS * EACH)
		if (!carrier_poll(two.c, 16))
			sched_yield();
	return NULL;
}

static void several_threads_emit_and_poll(void)
{
	pthread_t threads[EMITTERS + 2];

	both_open();
	two.saw = count_it;
	for (unsigned i = 0; i < EMITTERS + 2; i++)
		check(!pthread_create(&threads[i], NULL, i < 2 ? poller : emitter, NULL));
	for (unsigned i = 0; i < EMITTERS + 2; i++)
		check(!pthread_join(threads[i], NULL));
	check(two.units == EMITTERS * EACH);
	both_close();
}

static bool is_up(const char *interface)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq r;
	bool up;

	memset(&r, 0, sizeof(r));
	strcpy(r.ifr_name, interface);
	up = fd >= 0 && !ioctl(fd, SIOCGIFFLAGS, &r) && r.ifr_flags & IFF_UP;
	close(fd);
	return up;
}

/* In a namespace whose loopback interface is down, and then is not. */
static void an_interface_that_is_down_is_told(void)
{
	struct carrier_udp_params udp = { .clock = { read_clock, NULL } };
	const struct carrier_raw_params raw = { .port = 4791, .clock = udp.clock };
	struct pollfd p = { .events = POLLIN };
	struct ifreq r;
	pid_t pid = fork();
	int fd, status;

	if (!pid) {
		if (unshare(CLONE_NEWNET) && unshare(CLONE_NEWUSER | CLONE_NEWNET))
			_exit(77);
		udp.fd = carrier_udp_socket(0);
		check(!carrier_udp_open(&udp, &one.udp));
		check(carrier_raw_open(one.udp, &raw, &one.c) == -ENETDOWN);
		fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		memset(&r, 0, sizeof(r));
		strcpy(r.ifr_name, "lo");
		r.ifr_flags = IFF_UP;
		check(!ioctl(fd, SIOCSIFFLAGS, &r));
		check(!carrier_raw_open(one.udp, &raw, &one.c));
		/* It goes down: the descriptor says so until it has been forgiven. */
		p.fd = carrier_raw_fd(one.c);
		check(poll(&p, 1, 0) == 0);
		r.ifr_flags = 0;
		check(!ioctl(fd, SIOCSIFFLAGS, &r));
		check(poll(&p, 1, WAIT_MS) == 1 && p.revents & POLLERR);
		carrier_raw_forgive(one.c);
		check(poll(&p, 1, 0) == 0);
		carrier_close(one.c);
		_exit(0);
	}
	check(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	check(!WEXITSTATUS(status) || WEXITSTATUS(status) == 77);
}

int main(void)
{
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	cpu_set_t one_cpu;

	if (fd < 0) {
		printf("no CAP_NET_RAW: skipped\n");
		return 77;
	}
	close(fd);
	/* What is sent on the processor that receives has come when the call returns. */
	CPU_ZERO(&one_cpu);
	CPU_SET(sched_getcpu(), &one_cpu);
	sched_setaffinity(0, sizeof(one_cpu), &one_cpu);
	if (!is_up("lo")) {
		printf("the loopback interface is down: skipped\n");
		return 77;
	}
	for (size_t i = 0; i < BYTES; i++)
		pattern[i] = (uint8_t)(i * 7);
	run_test(a_short_packet_leaves_as_a_frame);
	run_test(lengths_and_kinds_decide);
	run_test(units_keep_their_order);
	run_test(frames_do_not_keep_others_waiting);
	run_test(the_other_way_is_looked_at_when_asked);
	run_test(an_end_takes_only_its_own);
	run_test(what_has_no_room_is_lost_and_counted);
	run_test(wrong_headers_are_refused);
	run_test(what_is_refused_leaves_by_udp);
	run_test(without_the_right_there_is_none);
	run_test(an_interface_that_is_down_is_told);
	run_test(a_frame_that_waits_makes_the_descriptor_readable);
	run_test(several_threads_emit_and_poll);
	return 0;
}
