/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Processes that share a UDP port (transport/roce/slots.h): they come and go in any order,
 * and each packet arrives at the process that has its slot.
 *
 * A member is a forked process. It opens the sockets, claims a slot and does what it is
 * told over a pipe: say how many packets it got, and whether one was not its own.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/filter.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../../threads_rest.h"
#include "hca/run/progress.h"
#include "transport/roce/slots.h"
#include "util/abstract.h"
#include "util/clock.h"
#include "util/log.h"

#define check(what)                                                             \
	do {                                                                    \
		if (!(what)) {                                                  \
			printf("%s:%d: failed: %s (errno %s)\n", __FILE__, __LINE__, \
			       #what, strerror(errno));                         \
			fflush(stdout);                                         \
			_exit(1);                                               \
		}                                                               \
	} while (0)

#define run_test(name)                                                          \
	do {                                                                    \
		uint64_t start_ = progress_now_ns();                            \
		name();                                                         \
		printf("ok %s, %llu ms\n", #name,                               \
		       (unsigned long long)(progress_now_ns() - start_) / 1000000); \
		fflush(stdout);                                                 \
	} while (0)

enum { MARKER_BYTES = 8, PACKET_BYTES = 24, ANSWER_MS = 20000 };

static uint16_t port;

/* What a member is told, and what it answers. */
enum word { OPEN = 'o', CLAIM = 'c', COUNT = 'n', CLOSE = 'x', RELEASE = 'r',
	    USER = 'u', FILES = 'f', FORK = 'k', END = 'e' };

struct order {
	enum word word;
	uint32_t value;
};

struct reply {
	int ret;
	uint32_t got;     /* packets since the last time */
	uint32_t foreign; /* of them for another slot */
	uint64_t sum;     /* of their markers */
	uint64_t took_ns;
};

struct member {
	pid_t pid;
	int fd; /* a socket pair */
	unsigned slot;
};

/* ---- in a member ---- */

static struct roce_sockets sockets;
static unsigned own_slot;

static void count_packets(struct reply *r)
{
	uint8_t bytes[256];
	uint64_t marker;
	ssize_t n;

	while ((n = recv(roce_slot_fd(&sockets, own_slot), bytes, sizeof(bytes),
			 MSG_DONTWAIT)) >= 0) {
		uint32_t qpn = 0;

		if (n >= 8)
			qpn = (uint32_t)bytes[5] << 16 | (uint32_t)bytes[6] << 8 | bytes[7];
		r->got++;
		r->foreign += roce_slot_of(qpn) != own_slot;
		if (n == PACKET_BYTES) {
			memcpy(&marker, bytes + 12, sizeof(marker));
			r->sum += marker;
		}
	}
	check(errno == EAGAIN);
}

static void fork_child(void)
{
	pid_t child;
	int status;

	threads_rest();
	child = fork();
	check(child >= 0);
	if (!child) {
		progress_forked();
		roce_sockets_forked(&sockets);
		/* Open again, as a process of its own. */
		check(progress_hold() == 0);
		check(roce_sockets_open(&sockets, port) == 0);
		check(roce_slot_claim(&sockets, own_slot) == -EADDRINUSE);
		roce_sockets_close(&sockets);
		progress_release();
		_exit(0);
	}
	check(waitpid(child, &status, 0) == child && status == 0);
}

static void obey(const struct order *o, struct reply *r)
{
	struct rlimit files = { .rlim_cur = o->value, .rlim_max = o->value };
	uint64_t start = progress_now_ns();

	switch (o->word) {
	case OPEN:
		r->ret = roce_sockets_open(&sockets, port);
		break;
	case CLAIM:
		r->ret = roce_slot_claim(&sockets, o->value);
		if (!r->ret)
			own_slot = o->value;
		break;
	case RELEASE:
		roce_slot_release(&sockets, own_slot);
		break;
	case COUNT:
		count_packets(r);
		break;
	case CLOSE:
		roce_sockets_close(&sockets);
		break;
	case USER:
		r->ret = setgroups(0, NULL) || setresgid(o->value, o->value, o->value) ||
			 setresuid(o->value, o->value, o->value) ? -errno : 0;
		break;
	case FILES:
		r->ret = setrlimit(RLIMIT_NOFILE, &files) ? -errno : 0;
		break;
	case FORK:
		fork_child();
		break;
	case END:
		roce_sockets_close(&sockets);
		progress_release();
		exit(0);
	}
	r->took_ns = progress_now_ns() - start;
}

static void member_main(int fd)
{
	struct order o;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* What was never opened has no descriptors. */
	roce_sockets_forked(&sockets);
	roce_sockets_close(&sockets);
	check(fcntl(0, F_GETFD) >= 0);
	check(progress_hold() == 0);
	while (recv(fd, &o, sizeof(o), 0) == sizeof(o)) {
		struct reply r = { 0 };

		obey(&o, &r);
		check(send(fd, &r, sizeof(r), 0) == sizeof(r));
	}
	_exit(0);
}

/* ---- in the test ---- */

static struct member member_start(void)
{
	struct member m = { 0 };
	int fds[2];

	check(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds));
	m.pid = fork();
	check(m.pid >= 0);
	if (!m.pid) {
		close(fds[0]);
		member_main(fds[1]);
	}
	close(fds[1]);
	m.fd = fds[0];
	return m;
}

static void tell(const struct member *m, enum word word, uint32_t value)
{
	struct order o = { word, value };

	check(send(m->fd, &o, sizeof(o), MSG_NOSIGNAL) == sizeof(o));
}

static struct reply hear(const struct member *m)
{
	struct pollfd p = { .fd = m->fd, .events = POLLIN };
	struct reply r;

	check(poll(&p, 1, ANSWER_MS) == 1);
	check(recv(m->fd, &r, sizeof(r), 0) == sizeof(r));
	return r;
}

static struct reply order(const struct member *m, enum word word, uint32_t value)
{
	tell(m, word, value);
	return hear(m);
}

static void reap(struct member *m, int signal)
{
	int status;

	check(waitpid(m->pid, &status, 0) == m->pid);
	check(signal ? WIFSIGNALED(status) && WTERMSIG(status) == signal :
		       WIFEXITED(status) && WEXITSTATUS(status) == 0);
	close(m->fd);
	m->pid = 0;
}

static void member_end(struct member *m, bool kill_it)
{
	if (kill_it)
		check(!kill(m->pid, SIGKILL));
	else
		tell(m, END, 0);
	reap(m, kill_it ? SIGKILL : 0);
}

/* `r` is the answer to OPEN. A process gives up when no other one has answered for a second, or held
 * the port for 0.3 s while it ended. Where these get no processor for so long it opens again; it must
 * not give up earlier. */
static void expect_open(const struct member *m, struct reply r)
{
	const uint64_t end = progress_now_ns() + ANSWER_MS * (NSEC_PER_SEC / 1000);

	while (((r.ret == -ETIMEDOUT && r.took_ns >= NSEC_PER_SEC) ||
		(r.ret == -EADDRINUSE && r.took_ns >= NSEC_PER_SEC * 3 / 10)) &&
	       progress_now_ns() < end)
		r = order(m, OPEN, 0);
	errno = -r.ret;
	check(r.ret == 0);
}

static struct member member_open(unsigned slot)
{
	struct member m = member_start();

	expect_open(&m, order(&m, OPEN, 0));
	check(order(&m, CLAIM, slot).ret == 0);
	m.slot = slot;
	return m;
}

static int sender(int family)
{
	int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	check(fd >= 0);
	return fd;
}

/* By a socket that has `from`, 0: any port. */
static void send_from(uint16_t from, const void *bytes, size_t length, bool v6)
{
	struct sockaddr_in6 to = { .sin6_family = AF_INET6, .sin6_port = htons(port),
				   .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	struct sockaddr_in6 own = { .sin6_family = AF_INET6, .sin6_port = htons(from) };
	struct sock_filter nothing = BPF_STMT(BPF_RET | BPF_K, 0);
	struct sock_fprog program = { 1, &nothing };
	int fd = sender(AF_INET6);

	if (!v6)
		inet_pton(AF_INET6, "::ffff:127.0.0.1", &to.sin6_addr);
	check(!setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)));
	check(!setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &(int){ 1 }, sizeof(int)));
	check(!bind(fd, (struct sockaddr *)&own, sizeof(own)));
	check(sendto(fd, bytes, length, 0, (struct sockaddr *)&to, sizeof(to)) ==
	      (ssize_t)length);
	close(fd);
}

/* As the sockets that share the port do. */
static void send_bytes(const void *bytes, size_t length, bool v6)
{
	send_from(port, bytes, length, v6);
}

static void send_to_qpn(uint32_t qpn, uint64_t marker, bool v6)
{
	uint8_t bytes[PACKET_BYTES] = { 4, 0, 0xff, 0xff, 0x80, (uint8_t)(qpn >> 16),
					(uint8_t)(qpn >> 8), (uint8_t)qpn };

	memcpy(bytes + 12, &marker, sizeof(marker));
	send_bytes(bytes, sizeof(bytes), v6);
}

/* A QPN of the slot: any block of it, any number in the block. */
static uint32_t qpn_of(unsigned slot, unsigned r)
{
	uint32_t qpn = (((r % 256) * ROCE_SLOTS + slot) << ROCE_SLOT_SHIFT | r / 256 % 1024) &
		       0xffffff;

	return roce_slot_of(qpn) == slot ? qpn : slot << ROCE_SLOT_SHIFT;
}

/* A port that nobody uses now; the next one for each test. */
static void port_choose(void)
{
	struct sockaddr_in6 any = { .sin6_family = AF_INET6 };
	socklen_t len = sizeof(any);
	int fd = socket(AF_INET6, SOCK_DGRAM, 0);

	check(fd >= 0 && !bind(fd, (struct sockaddr *)&any, sizeof(any)));
	check(!getsockname(fd, (struct sockaddr *)&any, &len));
	port = ntohs(any.sin6_port);
	close(fd);
}

/* Anybody holds the port no more? */
static void port_is_free(void)
{
	struct sockaddr_in6 any = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	int fd = socket(AF_INET6, SOCK_DGRAM, 0);

	check(fd >= 0 && !bind(fd, (struct sockaddr *)&any, sizeof(any)));
	close(fd);
}

static unsigned next_random(void)
{
	static uint64_t state = 88172645463325252u;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (unsigned)(state >> 16);
}

/* ---- the tests ---- */

static void a_packet_goes_to_the_slot_of_its_queue_pair(void)
{
	struct member all[ROCE_SLOTS];
	uint64_t sums[ROCE_SLOTS] = { 0 };
	uint32_t counts[ROCE_SLOTS] = { 0 };

	port_choose();
	for (unsigned i = 0; i < ROCE_SLOTS; i++)
		all[i] = member_open(i);
	for (unsigned i = 0; i < 4000; i++) {
		unsigned r = next_random(), slot = r % ROCE_SLOTS;

		send_to_qpn(qpn_of(slot, r / ROCE_SLOTS), r, i % 2);
		counts[slot]++;
		sums[slot] += r;
		/* Nobody drains while we send, and idle buffers are small. */
		if (counts[slot] % 4 == 0) {
			struct reply got = order(&all[slot], COUNT, 0);

			check(got.got == 4 && !got.foreign);
			check(got.sum == sums[slot]);
			sums[slot] = 0;
		}
	}
	for (unsigned i = 0; i < ROCE_SLOTS; i++) {
		struct reply got = order(&all[i], COUNT, 0);

		check(got.got == counts[i] % 4 && !got.foreign && got.sum == sums[i]);
	}
	/* What goes to slot 0 by rule. */
	send_to_qpn(0, 1, false);
	send_to_qpn(1, 2, true);
	check(order(&all[0], COUNT, 0).sum == 3);
	send_to_qpn(0xffffff, 4, false);
	send_bytes("abcdefg", 7, false);
	send_bytes("", 0, true);
	check(order(&all[0], COUNT, 0).got == 3);
	for (unsigned i = 1; i < ROCE_SLOTS; i++)
		check(order(&all[i], COUNT, 0).got == 0);
	for (unsigned i = 0; i < ROCE_SLOTS; i++)
		member_end(&all[i], i % 2);
	port_is_free();
}

/* Whoever is not bound to the port itself, which another user cannot be. */
static void packets_of_this_host_come_from_the_port_alone(void)
{
	uint8_t packet[PACKET_BYTES] = { 4, 0, 0xff, 0xff, 0x80, 0, 5 << 2, 1 };
	uint8_t to_slot_0[PACKET_BYTES] = { 0x64, 0, 0xff, 0xff, 0x80, 0, 0, 1 };
	struct member a, b;

	port_choose();
	a = member_open(5);
	b = member_open(0);
	for (unsigned i = 0; i < 4; i++) {
		bool from_port = i / 2, v6 = i % 2;

		send_from(from_port ? port : 0, packet, sizeof(packet), v6);
		send_from(from_port ? port : 0, to_slot_0, sizeof(to_slot_0), v6);
		check(order(&a, COUNT, 0).got == from_port);
		check(order(&b, COUNT, 0).got == from_port);
	}
	/* Also when another process has the slot, and when it was given the sockets. */
	member_end(&a, true);
	a = member_open(5);
	send_from(0, packet, sizeof(packet), false);
	send_from(0, to_slot_0, sizeof(to_slot_0), false);
	check(order(&a, COUNT, 0).got == 0);
	check(order(&b, COUNT, 0).got == 0);
	member_end(&a, true);
	member_end(&b, true);
	port_is_free();
}

static void a_slot_is_claimed_once(void)
{
	struct member a, b;

	port_choose();
	a = member_open(5);
	b = member_open(6);
	check(order(&b, CLAIM, 5).ret == -EADDRINUSE);
	check(order(&a, CLAIM, 5).ret == -EADDRINUSE);
	check(order(&a, RELEASE, 0).ret == 0);
	check(order(&b, CLAIM, 5).ret == 0);
	member_end(&b, true);
	check(order(&a, CLAIM, 5).ret == 0);
	check(order(&a, CLAIM, 6).ret == 0);
	member_end(&a, false);
	port_is_free();
}

static void what_came_for_the_one_before_is_dropped(void)
{
	struct member a, b;

	port_choose();
	a = member_open(1);
	b = member_open(2);
	send_to_qpn(qpn_of(2, 3), 7, false);
	send_to_qpn(qpn_of(3, 3), 7, false);
	member_end(&b, true);
	send_to_qpn(qpn_of(2, 4), 8, false);
	b = member_open(2);
	check(order(&b, COUNT, 0).got == 0);
	check(order(&a, CLAIM, 3).ret == 0);
	check(order(&a, COUNT, 0).got == 0);
	send_to_qpn(qpn_of(2, 5), 9, false);
	check(order(&b, COUNT, 0).sum == 9);
	member_end(&a, false);
	member_end(&b, false);
}

static void processes_come_and_go_in_any_order(void)
{
	struct member members[8] = { { 0 } };
	unsigned alive = 0, starts = 0;

	port_choose();
	for (unsigned i = 0; i < 1500; i++) {
		unsigned r = next_random(), k = r % 8;
		struct member *m = &members[k];

		if (r / 8 % 16) {
			if (!m->pid)
				continue;
			send_to_qpn(qpn_of(m->slot, r / 128), r, true);
			check(order(m, COUNT, 0).sum == r);
		} else if (m->pid) {
			member_end(m, r / 128 % 2);
			alive--;
		} else {
			*m = member_open(k * 7 + 1);
			alive++;
			starts++;
			/* Packets to slots of nobody disturb nobody. */
			send_to_qpn(qpn_of(r / 128 % 7 * 7 + 2, r / 512), r, true);
		}
		if (!alive)
			port_is_free();
	}
	check(starts > 20);
	for (unsigned k = 0; k < 8; k++)
		if (members[k].pid)
			member_end(&members[k], k % 2);
	port_is_free();
}

static void many_first_ones_at_a_time_are_one_group(void)
{
	enum { MANY = 12 };
	struct member all[MANY];

	for (unsigned round = 0; round < 4; round++) {
		port_choose();
		for (unsigned i = 0; i < MANY; i++)
			all[i] = member_start();
		for (unsigned i = 0; i < MANY; i++)
			tell(&all[i], OPEN, 0);
		for (unsigned i = 0; i < MANY; i++)
			expect_open(&all[i], hear(&all[i]));
		for (unsigned i = 0; i < MANY; i++)
			check(order(&all[i], CLAIM, i + 10).ret == 0);
		for (unsigned i = 0; i < MANY; i++)
			send_to_qpn(qpn_of(i + 10, next_random()), i + 1, false);
		for (unsigned i = 0; i < MANY; i++)
			check(order(&all[i], COUNT, 0).sum == i + 1);
		for (unsigned i = 0; i < MANY; i++)
			check(!kill(all[i].pid, SIGKILL));
		for (unsigned i = 0; i < MANY; i++)
			reap(&all[i], SIGKILL);
		port_is_free();
	}
}

/* The end of the last process and the start of another one at a time: the old group is
 * not joined. */
static void a_group_that_ends_is_not_joined(void)
{

	port_choose();
	for (unsigned i = 0; i < 40; i++) {
		struct member a = member_open(1 + i % 60), b = member_start();

		check(!kill(a.pid, SIGKILL));
		expect_open(&b, order(&b, OPEN, 0));
		reap(&a, SIGKILL);
		check(order(&b, CLAIM, 2 + i % 60).ret == 0);
		for (unsigned k = 0; k < 3; k++)
			send_to_qpn(qpn_of(2 + i % 60, next_random()), 5, false);
		check(order(&b, COUNT, 0).sum == 15);
		member_end(&b, true);
	}
}

static void another_process_answers_for_one_that_is_stopped(void)
{
	struct member a, b, c;
	struct reply r;
	int status;

	port_choose();
	a = member_open(1);
	b = member_open(2);
	c = member_start();
	check(!kill(a.pid, SIGSTOP));
	check(waitpid(a.pid, &status, WUNTRACED) == a.pid && WIFSTOPPED(status));
	expect_open(&c, order(&c, OPEN, 0));
	check(order(&c, CLAIM, 3).ret == 0);
	member_end(&c, false);
	/* Nobody answers: an error within ANSWER_MS. */
	check(!kill(b.pid, SIGSTOP));
	check(waitpid(b.pid, &status, WUNTRACED) == b.pid && WIFSTOPPED(status));
	c = member_start();
	r = order(&c, OPEN, 0);
	check(r.ret == -ETIMEDOUT);
	/* And then somebody does. */
	tell(&c, OPEN, 0);
	check(!kill(b.pid, SIGCONT));
	expect_open(&c, hear(&c));
	check(!kill(a.pid, SIGCONT));
	member_end(&a, false);
	member_end(&b, false);
	member_end(&c, false);
	port_is_free();
}

static void a_forked_child_has_its_own(void)
{
	struct member a;

	port_choose();
	a = member_open(4);
	check(order(&a, FORK, 0).ret == 0);
	send_to_qpn(qpn_of(4, 77), 6, false);
	check(order(&a, COUNT, 0).sum == 6);
	member_end(&a, false);
	port_is_free();
}

static void a_port_that_is_taken_is_an_error(void)
{
	struct sockaddr_in taken = { .sin_family = AF_INET };
	struct member a;
	int fd;

	port_choose();
	a = member_start(); /* without a copy of the descriptor */
	fd = sender(AF_INET);
	taken.sin_port = htons(port);
	check(!bind(fd, (struct sockaddr *)&taken, sizeof(taken)));
	check(order(&a, OPEN, 0).ret == -EADDRINUSE);
	close(fd);
	check(order(&a, OPEN, 0).ret == 0);
	member_end(&a, false);
}

static void too_few_descriptors_are_an_error(void)
{
	struct member a, b;

	port_choose();
	a = member_start();
	check(order(&a, FILES, 60).ret == 0);
	check(order(&a, OPEN, 0).ret == -EMFILE);
	b = member_open(3);
	check(order(&a, OPEN, 0).ret == -EMFILE);
	member_end(&a, true);
	member_end(&b, false);
	port_is_free();
}

static void another_user_does_not_get_them(void)
{
	struct member a, b;

	if (geteuid()) {
		printf("not root: left out\n");
		return;
	}
	port_choose();
	a = member_start();
	b = member_start();
	check(order(&a, USER, 65533).ret == 0);
	check(order(&b, USER, 65532).ret == 0);
	check(order(&a, OPEN, 0).ret == 0);
	check(order(&b, OPEN, 0).ret == -EACCES);
	member_end(&a, true);
	check(order(&b, OPEN, 0).ret == 0);
	member_end(&b, true);
}

/* ---- what a process of our user answers that is none of ours ---- */

static void give_wrong(int to, const void *bytes, size_t length, const int *fds, unsigned n)
{
	union {
		struct cmsghdr header;
		uint8_t bytes[CMSG_SPACE(128 * sizeof(int))];
	} control = { .bytes = { 0 } };
	struct iovec iov = { (void *)(uintptr_t)bytes, length };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (n) {
		m.msg_control = &control;
		m.msg_controllen = CMSG_SPACE(n * sizeof(int));
		control.header = (struct cmsghdr){ .cmsg_len = CMSG_LEN(n * sizeof(int)),
						   .cmsg_level = SOL_SOCKET,
						   .cmsg_type = SCM_RIGHTS };
		memcpy(CMSG_DATA(&control.header), fds, n * sizeof(int));
	}
	check(sendmsg(to, &m, MSG_NOSIGNAL) == (ssize_t)length);
}

static unsigned open_descriptors(pid_t pid)
{
	unsigned n = 0;

	for (int fd = 0; fd < 1024; fd++) {
		char path[64], to[8];

		snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, fd);
		n += readlink(path, to, sizeof(to)) >= 0;
	}
	return n;
}

static void wrong_answers_are_refused(void)
{
	struct { char magic[8]; uint32_t version, port, slots, shift; } g;
	struct abstract_name name;
	struct member a;
	unsigned before;
	int fds[128], listener;

	port_choose();
	a = member_start();
	check(order(&a, CLOSE, 0).ret == 0); /* it has started */
	before = open_descriptors(a.pid);
	check(!abstract_name(&name, "busbar.roce.%u", port));
	listener = abstract_open(&name, SOCK_SEQPACKET, 8);
	check(listener >= 0);
	for (unsigned i = 0; i < 128; i++)
		fds[i] = i < 64 ? sender(AF_INET) : listener;
	for (unsigned kind = 0; kind < 7; kind++) {
		struct pollfd p = { .fd = listener, .events = POLLIN };
		unsigned count = kind == 0 ? 0 : kind == 1 ? 64 : kind == 2 ? 128 : 65;
		size_t length = kind == 3 ? 1 : sizeof(g);
		int conn;

		memcpy(g.magic, "busbarRo", 8);
		g.version = kind == 4 ? 2 : 1;
		g.port = kind == 5 ? port + 1u : port;
		g.slots = ROCE_SLOTS;
		g.shift = ROCE_SLOT_SHIFT;
		tell(&a, OPEN, 0);
		check(poll(&p, 1, ANSWER_MS) == 1);
		conn = accept(listener, NULL, NULL);
		check(conn >= 0);
		/* Kind 6: all is right, but the sockets are not bound to the port. */
		give_wrong(conn, &g, length, fds, count);
		check(hear(&a).ret == -EPROTO);
		close(conn);
		check(open_descriptors(a.pid) == before);
	}
	for (unsigned i = 0; i < 64; i++)
		close(fds[i]);
	close(listener);
	check(order(&a, OPEN, 0).ret == 0);
	member_end(&a, false);
}

/* Prints what opening costs; no limit, as machines differ. */
static void opening_is_measured(void)
{
	enum { TIMES = 20 };
	uint64_t first = UINT64_MAX, other = UINT64_MAX;

	port_choose();
	for (unsigned i = 0; i < TIMES; i++) {
		struct member a = member_start(), b = member_start();
		uint64_t took = order(&a, OPEN, 0).took_ns;

		first = took < first ? took : first;
		took = order(&b, OPEN, 0).took_ns;
		other = took < other ? took : other;
		member_end(&a, false);
		member_end(&b, false);
	}
	printf("opening: first %llu us, another %llu us (best of %d)\n",
	       (unsigned long long)first / 1000, (unsigned long long)other / 1000, TIMES);
}

int main(void)
{
	log_init(LOG_OFF);
	run_test(a_packet_goes_to_the_slot_of_its_queue_pair);
	run_test(packets_of_this_host_come_from_the_port_alone);
	run_test(a_slot_is_claimed_once);
	run_test(what_came_for_the_one_before_is_dropped);
	run_test(processes_come_and_go_in_any_order);
	run_test(many_first_ones_at_a_time_are_one_group);
	run_test(a_group_that_ends_is_not_joined);
	run_test(another_process_answers_for_one_that_is_stopped);
#ifndef __SANITIZE_THREAD__ /* it wants no new threads in a child of several */
	run_test(a_forked_child_has_its_own);
#else
	(void)a_forked_child_has_its_own;
#endif
	run_test(a_port_that_is_taken_is_an_error);
	run_test(too_few_descriptors_are_an_error);
	run_test(another_user_does_not_get_them);
	run_test(wrong_answers_are_refused);
	run_test(opening_is_measured);
	return 0;
}
