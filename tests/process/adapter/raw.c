/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Short packets of transport roce within a host, which are raw frames on the loopback
 * interface (transport/carrier/raw.h). Skipped without CAP_NET_RAW.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/if_packet.h>
#include <string.h>
#include <time.h>
#include <sys/socket.h>
#include <unistd.h>

#include "pair.h"

enum { DESCRIPTORS = 1024, ROUNDS = 100, QKEY = 0x1234 };

/* The packet socket of the process, which is the adapter's; -1: it has none. */
static int packet_socket(void)
{
	for (int fd = 3; fd < DESCRIPTORS; fd++) {
		socklen_t len = sizeof(int);
		int domain = 0;

		if (!getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) &&
		    domain == AF_PACKET)
			return fd;
	}
	return -1;
}

/* How many frames came since the last call. */
static int count_frames(struct end *e, void *arg)
{
	struct tpacket_stats stats;
	socklen_t len = sizeof(stats);

	if (getsockopt(packet_socket(), SOL_PACKET, PACKET_STATISTICS, &stats, &len))
		return -errno;
	*(unsigned *)arg = stats.tp_packets;
	return 0;
}

/* From now on no frame comes. */
static int deafen(struct end *e, void *arg)
{
	struct sock_filter nothing = BPF_STMT(BPF_RET | BPF_K, 0);
	struct sock_fprog program = { 1, &nothing };

	return setsockopt(packet_socket(), SOL_SOCKET, SO_ATTACH_FILTER, &program,
			  sizeof(program)) ? -errno : 0;
}

static unsigned frames(struct side *s)
{
	unsigned n = 0;
	int ret = side_run(s, count_frames, &n, sizeof(n));

	expect_eq(ret, 0);
	return n;
}

static void there_and_back(struct pair *p, uint64_t id, uint32_t length)
{
	side_fill(&p->a, 0, length, id);
	side_recv(&p->b, id, 0, length);
	side_send(&p->a, id, 0, length);
	side_wait_ok(&p->b, RECV_CQ, id);
	side_wait_ok(&p->a, SEND_CQ, id);
	side_check(&p->b, 0, length, id);
	side_fill(&p->b, 0, length, id + 1);
	side_recv(&p->a, id, 0, length);
	side_send(&p->b, id, 0, length);
	side_wait_ok(&p->a, RECV_CQ, id);
	side_wait_ok(&p->b, SEND_CQ, id);
	side_check(&p->a, 0, length, id + 1);
}

/* Who was connected first learns that the other one takes frames by the first that comes. */
static void short_messages_are_raw_frames_in_both_directions(struct pair *p)
{
	/* A timeout would end the frames for a while. */
	p->conn.timeout = 20;
	pair_start(p, NULL);
	there_and_back(p, 1, 64);
	there_and_back(p, 2, 64);
	frames(&p->a);
	frames(&p->b);
	for (uint64_t i = 0; i < ROUNDS; i++)
		there_and_back(p, 10 + i, 64);
	/* Each message, and its acknowledgement or that of the other direction. */
	expect(frames(&p->b) >= ROUNDS);
	if (p->two_processes)
		expect(frames(&p->a) >= ROUNDS);
}

static void long_messages_are_not(struct pair *p)
{
	unsigned n;

	pair_start(p, NULL);
	for (uint64_t i = 0; i < 10; i++)
		there_and_back(p, i, 3000);
	frames(&p->b);
	/* Nor are acknowledgements of the time in which such messages leave. */
	for (uint64_t i = 0; i < ROUNDS; i++)
		there_and_back(p, 10 + i, 3000);
	n = frames(&p->b);
	expect(n < ROUNDS);
}

static void lengths_in_turns_arrive_in_order(struct pair *p)
{
	static const uint32_t lengths[] = { 0, 1, 64, 800, 900, 4096, 5000, 30000 };
	const unsigned kinds = sizeof(lengths) / sizeof(lengths[0]);
	const struct side_options opt = { .bytes = 1 << 18 };

	pair_start(p, &opt);
	for (uint64_t i = 0; i < 20 * kinds; i++)
		there_and_back(p, i, lengths[(i * 5 + i / kinds) % kinds]);
	/* Several on their way at a time. */
	for (unsigned round = 0; round < 50; round++) {
		for (uint64_t i = 0; i < kinds; i++)
			side_recv(&p->b, i, i * 30000, 30000);
		for (uint64_t i = 0; i < kinds; i++)
			side_send(&p->a, i, 0, lengths[(i * 3 + round) % kinds]);
		for (uint64_t i = 0; i < kinds; i++) {
			expect_eq(side_wait_ok(&p->b, RECV_CQ, i).byte_len,
				  lengths[(i * 3 + round) % kinds]);
			side_wait_ok(&p->a, SEND_CQ, i);
		}
	}
}

/* Whatever keeps them from arriving: messages go by UDP behind a timeout. */
static void messages_arrive_where_frames_do_not(struct pair *p)
{
	pair_start(p, NULL);
	there_and_back(p, 1, 64);
	there_and_back(p, 2, 64);
	expect(frames(&p->b) > 0);
	expect_eq(side_run(&p->b, deafen, NULL, 0), 0);
	for (uint64_t i = 0; i < 30; i++)
		there_and_back(p, 10 + i, 64);
	expect_eq(side_state(&p->a, 0), IBV_QPS_RTS);
	expect_eq(side_state(&p->b, 0), IBV_QPS_RTS);
}

/* The acknowledgement of what was sent while a response was unread does not overtake it: with no
 * retry left that would be the end. */
static void an_acknowledgement_does_not_overtake_a_response(struct pair *p)
{
	const struct side_options opt = { .bytes = 1 << 20, .send_wr = 8 };
	const struct timespec pause = { .tv_nsec = 20000000 };
	struct send_req r;

	p->conn.timeout = 20;
	p->conn.retry_cnt = 0;
	pair_start(p, &opt);
	side_recv(&p->b, 1, 0, 64);
	side_send(&p->a, 1, 0, 64);
	side_wait_ok(&p->b, RECV_CQ, 1);
	side_wait_ok(&p->a, SEND_CQ, 1);
	for (uint64_t i = 0; i < 10; i++) {
		side_recv(&p->b, i, 0, 64);
		r = rdma_req(&p->a, &p->b, IBV_WR_RDMA_READ, 100 + i, 0, 4096,
			     i % 2 ? 200 : 400000);
		expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
		nanosleep(&pause, NULL);
		side_send(&p->a, 200 + i, 0, 64);
		side_wait_ok(&p->a, SEND_CQ, 100 + i);
		side_wait_ok(&p->a, SEND_CQ, 200 + i);
		side_wait_ok(&p->b, RECV_CQ, i);
	}
}

static void datagrams_are_raw_frames(struct pair *p)
{
	const struct side_options opt = { .type = IBV_QPT_UD };
	struct send_req r;
	int ah;

	p->conn.access_a = p->conn.access_b = QKEY;
	pair_start(p, &opt);
	ah = side_ah_to(&p->a, &p->b.gid);
	frames(&p->b);
	for (uint64_t i = 0; i < ROUNDS; i++) {
		r = send_req(&p->a, IBV_WR_SEND, i, 0, 64);
		r.ah = ah;
		r.remote_qpn = p->b.qpn[0];
		r.qkey = QKEY;
		side_fill(&p->a, 0, 64, i);
		side_recv(&p->b, i, 0, 104);
		expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
		side_wait_ok(&p->a, SEND_CQ, i);
		side_wait_ok(&p->b, RECV_CQ, i);
		side_check(&p->b, 40, 64, i);
	}
	expect(frames(&p->b) >= ROUNDS / 2);
	side_ah_destroy(&p->a, ah);
}

static const struct test_case cases[] = {
	CASE(short_messages_are_raw_frames_in_both_directions),
	CASE(long_messages_are_not),
	CASE(lengths_in_turns_arrive_in_order),
	CASE(messages_arrive_where_frames_do_not),
	CASE(an_acknowledgement_does_not_overtake_a_response),
	CASE(datagrams_are_raw_frames),
};

int main(int argc, char **argv)
{
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);

	if (fd < 0) {
		printf("no CAP_NET_RAW: skipped\n");
		return 77;
	}
	close(fd);
	return RUN_CASES(argc, argv, cases);
}
