/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What processes that are plugged into a fabric may send: any messages, in any order, by several connections. Nothing
 * may crash the fabric's process, no packet reaches a queue pair but from its own partition, and afterwards a
 * witness still reaches another one, and no buffer is lost.
 *
 * usage: fuzz_fabric_serve [RUNS [SEED]]
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "drive.h"
#include "fabric/serve/serve.h"
#include "fabric/serve/state.h"
#include "fabric/topology/generate.h"
#include "plug/plug.h"
#include "util/abstract.h"
#include "util/log.h"
#include "wire/ib/native.h"
#include "wire/mad/mad.h"

#define CLIENTS 4
#define HOSTS 3
#define MANAGER 3 /* the client for MADs */
#define WITNESS_QP 0x77
#define TURNS_MAX 100000

static struct serve *s;
static struct topology *t;
static char name[64];
static int clients[CLIENTS];

static unsigned host_of(unsigned client)
{
	return client % HOSTS;
}

static bool silent(enum log_level level, const char *line)
{
	return true;
}

static void need(bool condition, const char *what)
{
	if (condition)
		return;
	fprintf(stderr, "failed: %s\n", what);
	abort();
}

static void turns(unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		need(!serve_turn(s, false), "the loop runs");
}

static void begin(void)
{
	struct serve_settings set = { .name = name, .seed = 1, .switch_latency_ns = 100, .lanes = 2,
				      .buffer_bytes = 16384, .manager = true };
	char why[256];

	if (s)
		return;
	log_set_sink(silent);
	snprintf(name, sizeof(name), "fuzz-%d", (int)getpid());
	need(!topology_generate("single:3", &t, why, sizeof(why)), why);
	set.topology = t;
	need(!serve_open(&set, &s), "the fabric is opened");
	for (unsigned i = 0; i < TURNS_MAX && !s->ready; i++)
		turns(1);
	need(s->ready, "the manager makes the ports active");
	for (unsigned i = 0; i < CLIENTS; i++)
		clients[i] = -1;
}

static int connect_to(unsigned host, uint8_t purpose)
{
	struct plug_hello hello = { .version = PLUG_VERSION, .purpose = purpose, .program = "fuzz" };
	struct abstract_name socket_name;
	int fd;

	snprintf(hello.host, sizeof(hello.host), "host-%u", host + 1);
	need(!abstract_name(&socket_name, PLUG_NAME, name), "the name");
	fd = abstract_connect(&socket_name);
	need(fd >= 0, "a connection");
	need(!plug_send(fd, PLUG_HELLO, 0, 0, &hello, sizeof(hello)), "a hello");
	turns(3);
	return fd;
}

/* Takes what has come; false: the connection has ended. *packet: the last packet, 0 bytes: none. */
static bool take(int fd, uint8_t *packet, size_t *bytes)
{
	uint8_t m[PLUG_MESSAGE_BYTES];
	struct plug_head head;
	ssize_t n;

	while ((n = recv(fd, m, sizeof(m), MSG_DONTWAIT)) > 0) {
		memcpy(&head, m, sizeof(head));
		need(plug_check(&head, (size_t)n), "the fabric says what the protocol permits");
		if (head.type == PLUG_PACKET && packet) {
			memcpy(packet, m + sizeof(head), head.bytes);
			*bytes = head.bytes;
		}
	}
	return n < 0 && errno == EAGAIN;
}

static void drop(unsigned i)
{
	close(clients[i]);
	clients[i] = -1;
	turns(3);
}

/* The upper half of the identifiers of an agent, which the fuzzer cannot guess. */
static uint32_t find_tid(uint32_t agent)
{
	list_for_each (c, &s->clients, struct serve_client, entry)
		if (c->purpose == PLUG_MANAGEMENT && agent < SERVE_AGENTS_MAX && c->agents[agent].open)
			return c->agents[agent].tid;
	return 0;
}

static void send_message(unsigned i, const uint8_t *m, size_t bytes)
{
	uint8_t body[DRIVE_BYTES_MAX];
	uint32_t agent, tid;

	memcpy(body, m + 8, bytes);
	if (m[1] == PLUG_MAD && m[7] && bytes == sizeof(struct plug_mad) + MAD_BYTES) {
		memcpy(&agent, body, sizeof(agent));
		tid = htobe32(find_tid(agent));
		memcpy(body + sizeof(struct plug_mad) + 8, &tid, sizeof(tid));
	}
	plug_send(clients[i], (enum plug_type)m[1], m[4], m[5], body, bytes);
	turns(2);
}

/* Messages: client, type, length, arguments, body. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	begin();
	while (size >= 8) {
		const unsigned i = data[0] % CLIENTS;
		const size_t want = data[2] | (size_t)data[3] << 8;
		const size_t bytes = want < size - 8 ? want : size - 8;

		if (clients[i] < 0)
			clients[i] = connect_to(host_of(i), i == MANAGER ? PLUG_MANAGEMENT : PLUG_VERBS);
		send_message(i, data, bytes);
		if (!take(clients[i], NULL, NULL) || data[6] > 253)
			drop(i);
		data += 8 + bytes;
		size -= 8 + bytes;
	}
	return 0;
}

/* ---- inputs ---- */

static void put16(uint8_t *to, unsigned value)
{
	to[0] = (uint8_t)(value >> 8);
	to[1] = (uint8_t)value;
}

/* A packet that is nearly right. */
static size_t make_packet(uint8_t *to, unsigned slid, unsigned dlid)
{
	const bool datagram = random_below(2);
	const size_t payload = 4 * random_below(random_below(8) ? 70 : 1024);
	const size_t bytes = 8 + 12 + (datagram ? 8 : 0) + payload + 4;

	memset(to, 0, bytes);
	to[1] = 2;
	put16(to + 2, dlid);
	put16(to + 4, (unsigned)bytes / 4);
	put16(to + 6, slid);
	to[8] = datagram ? 0x64 : (uint8_t)(random_below(4) ? 4 : random_below(256));
	put16(to + 10, 0xffff);
	to[15] = (uint8_t)(1 + random_below(3));
	if (datagram)
		to[27] = (uint8_t)(1 + random_below(3));
	if (payload == MAD_BYTES) {
		to[28] = 1;
		to[29] = (uint8_t)(random_below(3) ? 4 : random_below(256));
		to[30] = 1;
		to[31] = (uint8_t)(1 + random_below(2));
	}
	return bytes;
}

static unsigned lid_of(unsigned host)
{
	begin();
	return s->hosts[host].state.lid;
}

static size_t make_body(unsigned client, unsigned type, uint8_t *to)
{
	struct plug_mad head = { .agent = (uint32_t)random_below(3), .qpn = (uint32_t)random_below(2),
				 .lid = (uint16_t)(random_below(2) ? 0xffff : random_below(6)),
				 .timeout_ms = (uint32_t)random_below(3), .retries = 1, .qkey = 0x80010000,
				 .path_bits = random_below(8) == 0, .grh = random_below(8) == 0,
				 .gid_index = (uint8_t)random_below(10) };

	switch (type) {
	case PLUG_QP_OPEN:
	case PLUG_QP_CLOSE:
		memset(to, 0, 4);
		to[0] = (uint8_t)(1 + random_below(4));
		return 4;
	case PLUG_GROUP_JOIN:
	case PLUG_GROUP_LEAVE:
		memset(to, 0xff, 20);
		to[16] = (uint8_t)random_below(4);
		to[17] = 0xc0;
		return 20;
	case PLUG_PACKET:
		return make_packet(to, lid_of(random_below(8) ? host_of(client) : random_below(HOSTS)),
				   random_below(8) ? lid_of(random_below(HOSTS)) :
						     (unsigned)random_below(65536));
	case PLUG_AGENT_OPEN:
		memset(to, 0, sizeof(struct plug_agent));
		to[0] = (uint8_t)random_below(256);
		to[16] = (uint8_t)(random_below(2) ? 0x81 : random_below(256));
		to[17] = 1;
		to[18] = (uint8_t)(to[16] != 0x81 && to[16] != 1);
		return sizeof(struct plug_agent);
	case PLUG_MAD:
		memcpy(to, &head, sizeof(head));
		memset(to + sizeof(head), 0, MAD_BYTES);
		to[sizeof(head)] = 1;
		to[sizeof(head) + 1] = (uint8_t)(random_below(2) ? 0x81 : random_below(256));
		to[sizeof(head) + 2] = 1;
		to[sizeof(head) + 3] = (uint8_t)(1 + random_below(3));
		to[sizeof(head) + 7] = (uint8_t)random_below(3);
		to[sizeof(head) + 11] = (uint8_t)random_below(8);
		to[sizeof(head) + 17] = (uint8_t)(0x10 + random_below(12));
		to[sizeof(head) + 129] = (uint8_t)random_below(4);
		return sizeof(head) + MAD_BYTES;
	case PLUG_HELLO:
	default:
		return random_below(64);
	}
}

static size_t make(uint8_t *bytes, size_t capacity)
{
	size_t at = 0;

	for (unsigned messages = 1 + (unsigned)random_below(16); messages > 0 && at + 5000 < capacity; messages--) {
		static const uint8_t common[] = { PLUG_QP_OPEN, PLUG_PACKET, PLUG_PACKET, PLUG_PACKET };
		static const uint8_t managers[] = { PLUG_AGENT_OPEN, PLUG_MAD, PLUG_MAD, PLUG_MAD };
		const unsigned client = (unsigned)random_below(CLIENTS);
		const unsigned usual = (client == MANAGER ? managers : common)[random_below(4)];
		const unsigned type = random_below(4) ? usual : random_below(8) ? 2 + (unsigned)random_below(9) :
									 (unsigned)random_below(256);
		uint8_t *m = bytes + at;
		size_t body = make_body(client, type, m + 8);

		m[0] = (uint8_t)client;
		m[1] = (uint8_t)type;
		m[4] = (uint8_t)random_below(3);
		m[5] = (uint8_t)random_below(2);
		m[6] = (uint8_t)random_below(256);
		m[7] = random_below(8) != 0;
		for (unsigned changes = random_below(4) ? 0 : 1 + (unsigned)random_below(3); changes && body; changes--)
			m[8 + random_below(body)] = (uint8_t)random_below(256);
		if (!random_below(60))
			body = random_below(body + 1);
		m[2] = (uint8_t)body;
		m[3] = (uint8_t)(body >> 8);
		at += 8 + body;
	}
	return at;
}

/* ---- the witness ---- */

static void witness(void)
{
	const struct plug_qp qp = { .qpn = WITNESS_QP };
	uint8_t packet[PLUG_MESSAGE_BYTES], got[PLUG_MESSAGE_BYTES];
	size_t bytes, received = 0;
	int a, b;

	for (unsigned i = 0; i < CLIENTS; i++)
		if (clients[i] >= 0)
			drop(i);
	a = connect_to(0, PLUG_VERBS);
	b = connect_to(1, PLUG_VERBS);
	need(!plug_send(b, PLUG_QP_OPEN, 0, 0, &qp, sizeof(qp)), "a queue pair is opened");
	bytes = make_packet(packet, s->hosts[0].state.lid, s->hosts[1].state.lid);
	packet[8] = 4;
	packet[15] = WITNESS_QP;
	turns(3);
	need(!plug_send(a, PLUG_PACKET, 0, 0, packet, bytes), "a packet is sent");
	/* The fuzzer's processes may have changed tables: the manager sets them again in time. */
	for (unsigned i = 0; i < TURNS_MAX && !received; i++) {
		turns(1);
		need(take(b, got, &received), "the witness stays");
	}
	if (received)
		need(received == bytes && !memcmp(got, packet, bytes), "the packet arrives as it was");
	close(a);
	close(b);
	for (unsigned i = 0; i < TURNS_MAX && (s->client_count || fabric_packets_inside(s->fabric)); i++)
		turns(1);
	need(!s->client_count, "all connections end");
	need(s->pool.used == fabric_packets_inside(s->fabric), "no buffer is lost");
}

#ifndef FUZZ_ENGINE
int main(int argc, char **argv)
{
	int ret = drive(argc, argv, 10000, DRIVE_BYTES_MAX, make);

	begin();
	witness();
	printf("taken %" PRIu64 ", delivered %" PRIu64 ", refused", s->gone_counts.taken,
	       s->gone_counts.delivered);
	for (unsigned i = 0; i < SERVE_REFUSED_KINDS; i++)
		printf(" %" PRIu64, s->gone_counts.refused[i]);
	printf("\n");
	serve_close(s);
	topology_free(t);
	return ret;
}
#endif
