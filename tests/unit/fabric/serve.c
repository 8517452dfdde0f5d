/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The process that runs a fabric, inside of this one, turn by turn: a full port holds its senders up and loses
 * nothing, a congested one is answered by notifications, and processes that end leave nothing behind.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fabric/serve/serve.h"
#include "fabric/serve/state.h"
#include "fabric/topology/generate.h"
#include "plug/plug.h"
#include "util/abstract.h"
#include "util/clock.h"
#include "wire/ib/native.h"

#define TURNS_MAX 2000000
#define DEADLOCK_NS UINT64_C(3000000000)
#define PAYLOAD 2048

struct net {
	struct topology *t;
	struct serve *s;
	char name[64];
	uint32_t buffer_bytes; /* of a lane; 0: 16 KiB */
};

static void turns(struct net *n, unsigned count)
{
	while (count--)
		assert_int_equal(serve_turn(n->s, false), 0);
}

static void start(struct net *n, const char *topology)
{
	struct serve_settings set = { .name = n->name, .seed = 1, .switch_latency_ns = 200, .lanes = 2,
				      .buffer_bytes = n->buffer_bytes ? n->buffer_bytes : 16384,
				      .manager = true };
	char why[256];

	snprintf(n->name, sizeof(n->name), "unit-%d", (int)getpid());
	assert_int_equal(topology_generate(topology, &n->t, why, sizeof(why)), 0);
	set.topology = n->t;
	assert_int_equal(serve_open(&set, &n->s), 0);
	for (unsigned i = 0; i < TURNS_MAX && !n->s->ready; i++)
		turns(n, 1);
	assert_true(n->s->ready);
}

static void end(struct net *n)
{
	serve_close(n->s);
	topology_free(n->t);
}

static int plug_in(struct net *n, unsigned host, uint32_t qpn)
{
	struct plug_hello hello = { .version = PLUG_VERSION };
	struct plug_qp qp = { .qpn = qpn };
	struct abstract_name name;
	int fd;

	snprintf(hello.host, sizeof(hello.host), "host-%u", host + 1);
	assert_int_equal(abstract_name(&name, PLUG_NAME, n->name), 0);
	fd = abstract_connect(&name);
	assert_true(fd >= 0);
	assert_int_equal(plug_send(fd, PLUG_HELLO, 0, 0, &hello, sizeof(hello)), 0);
	assert_int_equal(plug_send(fd, PLUG_QP_OPEN, 0, 0, &qp, sizeof(qp)), 0);
	turns(n, 10);
	return fd;
}

static size_t make_packet(struct net *n, unsigned from, unsigned to, uint32_t qpn, uint32_t number, uint8_t *p)
{
	const struct ib_native native = {
		.lrh = { .slid = n->s->hosts[from].state.lid, .dlid = n->s->hosts[to].state.lid },
		.has_bth = true,
		.packet = { .opcode = IB_SERVICE_UC | IB_SEND_ONLY, .pkey = IB_PKEY_DEFAULT, .dest_qpn = qpn,
			    .psn = number, .bytes = PAYLOAD },
	};
	size_t headers = ib_native_encode(&native, p);

	memset(p + headers, (int)from, PAYLOAD);
	return ib_native_finish(&native, headers, p) - IB_VCRC_BYTES;
}

struct stream {
	int fd;
	unsigned host;
	uint32_t sent, received;
};

/* One more packet, if the socket takes it; true: it did. */
static bool send_next(struct net *n, struct stream *from, unsigned to, uint32_t qpn)
{
	uint8_t p[PLUG_PACKET_BYTES + IB_VCRC_BYTES];
	size_t bytes = make_packet(n, from->host, to, qpn, from->sent, p);
	int ret = plug_send(from->fd, PLUG_PACKET, 0, 0, p, bytes);

	assert_true(!ret || ret == -EAGAIN);
	from->sent += !ret;
	return !ret;
}

/* What has come to the sink: of each stream in order, and whole. Returns how many were marked. */
static unsigned take(struct net *n, int sink, struct stream *streams, unsigned count)
{
	uint8_t m[PLUG_MESSAGE_BYTES];
	unsigned marked = 0;
	ssize_t bytes;

	while ((bytes = recv(sink, m, sizeof(m), MSG_DONTWAIT)) > 0) {
		const struct plug_head *head = (const void *)m;
		struct ib_native native;

		if (head->type != PLUG_PACKET)
			continue;
		/* The VCRC is not there and not looked at; marks do not change the ICRC. */
		assert_int_equal(ib_native_decode(m + sizeof(*head), head->bytes + (size_t)IB_VCRC_BYTES,
						  IB_CHECK_ICRC, &native), IB_NATIVE_GOOD);
		assert_int_not_equal(native.packet.opcode, IB_OPCODE_CNP);
		marked += native.packet.fecn;
		for (unsigned i = 0; i < count; i++)
			if (n->s->hosts[streams[i].host].state.lid == native.lrh.slid)
				assert_int_equal(native.packet.psn, streams[i].received++);
	}
	return marked;
}

/* `count` packets of each of two hosts to a third one, over links of 2 Gbit/s; how many were marked. */
static unsigned incast(struct net *n, uint32_t count, unsigned *held)
{
	struct stream streams[2] = { { .host = 0 }, { .host = 1 } };
	const uint32_t qpn = 0x20;
	int sink = plug_in(n, 2, qpn);
	unsigned marked = 0;

	*held = 0;
	for (unsigned i = 0; i < 2; i++)
		streams[i].fd = plug_in(n, streams[i].host, 0x10);
	for (unsigned turn = 0; turn < TURNS_MAX; turn++) {
		if (streams[0].received == count && streams[1].received == count)
			break;
		for (unsigned i = 0; i < 2; i++)
			while (streams[i].sent < count && send_next(n, &streams[i], 2, qpn))
				;
		*held += streams[0].sent < count;
		turns(n, 1);
		marked += take(n, sink, streams, 2);
	}
	assert_int_equal(streams[0].received, count);
	assert_int_equal(streams[1].received, count);
	for (unsigned i = 0; i < 2; i++)
		close(streams[i].fd);
	close(sink);
	for (unsigned i = 0; i < TURNS_MAX && n->s->client_count; i++)
		turns(n, 1);
	assert_int_equal(n->s->client_count, 0);
	return marked;
}

static void nothing_is_left(struct net *n)
{
	for (unsigned i = 0; i < TURNS_MAX && fabric_packets_inside(n->s->fabric); i++)
		turns(n, 1);
	assert_int_equal(fabric_packets_inside(n->s->fabric), 0);
	assert_int_equal(n->s->pool.used, 0);
}

static void a_full_port_holds_its_senders_up_and_loses_nothing(void **state)
{
	struct net n = { 0 };
	unsigned held;

	start(&n, "single:3,width=1x,speed=SDR");
	assert_int_equal(incast(&n, 1500, &held), 0);
	/* More than fits into flows, buffers and sockets. */
	assert_true(held > 0);
	for (unsigned i = 0; i <= FABRIC_DROP_MANAGEMENT; i++)
		assert_int_equal(n.s->drops[i], 0);
	assert_int_equal(n.s->gone_counts.slow, 0);
	nothing_is_left(&n);
	end(&n);
}

static void marked_packets_are_answered_by_notifications(void **state)
{
	const struct fabric_congestion_switch mark = { .threshold = 15 };
	const struct fabric_congestion_host slow = { .timer = 100, .increase = 1, .limit = 15 };
	uint16_t table[16];
	struct net n = { 0 };
	unsigned held;

	start(&n, "single:3,width=1x,speed=SDR");
	for (unsigned i = 0; i < 16; i++)
		table[i] = (uint16_t)i;
	for (uint32_t node = 0; node < n.t->node_count; node++)
		if (n.t->nodes[node].kind == TOPOLOGY_SWITCH)
			assert_int_equal(fabric_set_congestion_switch(n.s->fabric, node, 0, &mark), 0);
	for (unsigned h = 0; h < 2; h++) {
		struct serve_host *host = &n.s->hosts[h];

		assert_int_equal(fabric_set_congestion_table(n.s->fabric, host->node, host->port, 0, table, 16), 0);
		assert_int_equal(fabric_set_congestion_host(n.s->fabric, host->node, host->port, 0, &slow), 0);
	}
	assert_true(incast(&n, 1000, &held) > 0);
	assert_true(n.s->hosts[2].notified > 0);
	assert_int_equal(n.s->gone_counts.slow, 0);
	nothing_is_left(&n);
	end(&n);
}

static void a_process_that_ends_takes_its_packets_along(void **state)
{
	struct net n = { 0 };
	struct stream from = { .host = 0 };

	start(&n, "single:3,width=1x,speed=SDR");
	from.fd = plug_in(&n, 0, 0x10);
	while (from.sent < 400)
		if (!send_next(&n, &from, 1, 0x20))
			turns(&n, 1);
	turns(&n, 1);
	assert_true(fabric_packets_inside(n.s->fabric) > 0);
	close(from.fd);
	for (unsigned i = 0; i < TURNS_MAX && n.s->client_count; i++)
		turns(&n, 1);
	assert_int_equal(n.s->client_count, 0);
	nothing_is_left(&n);
	end(&n);
}

/* Each flow of the host may send a packet in 137 ms, or at any time. */
static void hold_back(struct net *n, unsigned host, bool held)
{
	const struct fabric_congestion_host slow = { .minimum = 1, .limit = 1 };
	const struct serve_host *h = &n->s->hosts[host];
	const uint16_t table[] = { 0, 16383 };

	assert_int_equal(fabric_set_congestion_table(n->s->fabric, h->node, h->port, 0, table, 2), 0);
	assert_int_equal(fabric_set_congestion_host(n->s->fabric, h->node, h->port, 0, held ? &slow : NULL), 0);
}

static void a_host_takes_no_more_buffers_than_its_part(void **state)
{
	struct net n = { 0 };
	struct stream from = { .host = 0 };
	struct serve_host *host;
	int other;

	start(&n, "single:3,width=1x,speed=SDR");
	host = &n.s->hosts[0];
	from.fd = plug_in(&n, 0, 0x10);
	other = plug_in(&n, 2, 0x30);
	hold_back(&n, 0, true);
	/* As many flows as it may have, each of which would take packets for itself. */
	for (uint32_t i = 0; i < 60000 && host->inside < SERVE_INSIDE_MAX; i++)
		if (!send_next(&n, &from, 1, 0x100 + i % SERVE_FLOWS_MAX) || i % 8 == 0)
			turns(&n, 1);
	assert_int_equal(host->inside, SERVE_INSIDE_MAX);
	for (unsigned i = 0; i < 200; i++)
		if (!send_next(&n, &from, 1, 0x100 + i))
			turns(&n, 1);
	assert_true(host->inside <= SERVE_INSIDE_MAX);
	assert_true(n.s->pool.used <= SERVE_INSIDE_MAX + SERVE_WAITING_MAX + 2 * 16);
	/* It goes on when there is room. */
	hold_back(&n, 0, false);
	from.sent = 0;
	for (unsigned turn = 0; turn < TURNS_MAX && from.sent < 100; turn++) {
		send_next(&n, &from, 1, 0x100);
		turns(&n, 1);
	}
	assert_int_equal(from.sent, 100);
	close(from.fd);
	close(other);
	for (unsigned i = 0; i < TURNS_MAX && n.s->client_count; i++)
		turns(&n, 1);
	nothing_is_left(&n);
	assert_int_equal(host->inside, 0);
	end(&n);
}

/* Is the host at the switch? */
static bool is_at(const struct net *n, uint32_t node, uint32_t host)
{
	struct topology_end peer;

	return topology_peer(n->t, n->s->hosts[host].node, n->s->hosts[host].port, &peer) && peer.node == node;
}

/* Each switch of the ring forwards to the next one what is not for its own host. */
static void forward_around(struct net *n)
{
	for (uint32_t i = 0; i < n->t->node_count; i++) {
		struct fabric_port_setting set;
		struct topology_end peer;
		uint32_t next;
		char id[32];

		if (n->t->nodes[i].kind != TOPOLOGY_SWITCH)
			continue;
		snprintf(id, sizeof(id), "switch-%u", (unsigned)atoi(n->t->nodes[i].id + 7) % 4 + 1);
		next = topology_find_id(n->t, id);
		for (uint8_t p = 1; p <= n->t->nodes[i].port_count; p++) {
			assert_true(topology_peer(n->t, i, p, &peer));
			assert_int_equal(fabric_get_port(n->s->fabric, i, p, &set), 0);
			set.hoq_life = 20; /* for ever */
			assert_int_equal(fabric_set_port(n->s->fabric, i, p, &set), 0);
			for (uint32_t h = 0; h < n->s->host_count; h++)
				if (peer.node == next || peer.node == n->s->hosts[h].node)
					fabric_set_forwarding(n->s->fabric, i, n->s->hosts[h].state.lid, &p,
							      peer.node == n->s->hosts[h].node ||
							      !is_at(n, i, h));
		}
	}
}

static void tables_that_lead_around_a_ring_deadlock_and_that_is_told(void **state)
{
	struct net n = { .buffer_bytes = 4608 };
	struct stream from[4];
	uint64_t end_ns, told;

	start(&n, "ring:4,width=1x,speed=SDR");
	forward_around(&n);
	for (unsigned i = 0; i < 4; i++)
		from[i] = (struct stream){ .host = i, .fd = plug_in(&n, i, 0x10) };
	/* It takes full buffers at all switches at once, and so senders that are fast enough. */
	for (end_ns = clock_monotonic_ns_slow() + DEADLOCK_NS; !n.s->deadlocks && clock_monotonic_ns_slow() < end_ns;) {
		for (unsigned i = 0; i < 4; i++)
			send_next(&n, &from[i], (i + 3) % 4, 0x10);
		turns(&n, 1);
	}
	told = n.s->deadlocks;
	for (unsigned i = 0; i < 4; i++)
		close(from[i].fd);
	end(&n);
	if (!told) {
		print_message("no deadlock came about: this machine sends too slowly\n");
		skip();
	}
}

static void a_fabric_may_end_while_packets_are_in_it(void **state)
{
	struct net n = { 0 };
	struct stream from = { .host = 0 };

	start(&n, "single:3,width=1x,speed=SDR");
	from.fd = plug_in(&n, 0, 0x10);
	while (from.sent < 50 && send_next(&n, &from, 1, 0x20))
		;
	turns(&n, 1);
	end(&n);
	/* The other side is closed: nothing is waited for. */
	while (recv(from.fd, &(char){ 0 }, 1, 0) > 0)
		;
	close(from.fd);
}

static void a_process_is_not_ended_because_others_have_all_buffers(void **state)
{
	struct net n = { 0 };
	const struct plug_qp qp = { .qpn = 0x11 };
	struct plug_head answer = { 0 };
	struct serve_pool *p;
	struct serve_buffer *free;
	uint32_t made, used;
	int fd;

	start(&n, "single:3");
	fd = plug_in(&n, 0, 0x10);
	while (recv(fd, &answer, sizeof(answer), MSG_DONTWAIT) > 0)
		;
	/* One buffer is left, enough for a message but not for its answer. */
	p = &n.s->pool;
	made = p->made;
	used = p->used;
	free = p->free->next;
	p->free->next = NULL;
	p->made = SERVE_BUFFERS_MAX;
	p->used = SERVE_BUFFERS_MAX - 1;
	assert_int_equal(plug_send(fd, PLUG_QP_OPEN, 0, 7, &qp, sizeof(qp)), 0);
	turns(&n, 10);
	assert_int_equal(recv(fd, &answer, sizeof(answer), MSG_DONTWAIT), -1);
	assert_int_equal(errno, EAGAIN);
	p->free->next = free;
	p->made = made;
	p->used = used;
	turns(&n, 10);
	assert_int_equal(recv(fd, &answer, sizeof(answer), MSG_DONTWAIT), (int)sizeof(answer));
	assert_int_equal(answer.type, PLUG_DONE);
	assert_int_equal(answer.a, 0);
	close(fd);
	end(&n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_full_port_holds_its_senders_up_and_loses_nothing),
		cmocka_unit_test(marked_packets_are_answered_by_notifications),
		cmocka_unit_test(a_process_that_ends_takes_its_packets_along),
		cmocka_unit_test(a_host_takes_no_more_buffers_than_its_part),
		cmocka_unit_test(tables_that_lead_around_a_ring_deadlock_and_that_is_told),
		cmocka_unit_test(a_fabric_may_end_while_packets_are_in_it),
		cmocka_unit_test(a_process_is_not_ended_because_others_have_all_buffers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
