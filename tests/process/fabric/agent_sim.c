/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * agent_sim TOPOLOGY: a subnet of management agents to which opensm and infiniband-diags connect as to
 * ibsim, under its preloaded library (ibsim-run). TOPOLOGY: as for topology_generate(), or a file with a
 * '/' in its name. There is no traffic but MADs, and those take no time.
 *
 * The library's protocol: datagrams at abstract names NAME:ctl (requests about the port) and NAME:out0 to
 * NAME:out9 (MADs); NAME is of IBSIM_SOCKNAME, else "sim".
 *
 * Commands of its input, a line each, which it answers by one: `cut NODE PORT`, `join NODE PORT`, `counts`.
 * The end of the input ends it.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "agent_net.h"
#include "wire/mad/port.h"

#define CLIENTS 10
#define MAGIC 0xdeadbeefu
#define TIDS 4096 /* of the last requests of a client */

enum control {
	CONTROL_ERROR,
	CONTROL_CONNECT,
	CONTROL_DISCONNECT,
	CONTROL_GET_PORT,
	CONTROL_GET_VENDOR,
	CONTROL_GET_GID,
	CONTROL_GET_GUID,
	CONTROL_GET_NODE_INFO,
	CONTROL_GET_PORT_INFO,
	CONTROL_SET_IS_SM,
	CONTROL_GET_PKEYS,
};

struct control_message {
	uint32_t magic, client, type, bytes;
	char data[64];
};

struct control_connect {
	uint32_t id; /* process, in the answer the client's number */
	uint32_t qp, is_sm;
	char node[32];
};

/* LIDs as 16 bits in network order, queue pairs as 32. */
struct mad_message {
	uint32_t dlid, slid, dqp, sqp, status;
	uint64_t length;
	uint8_t mad[MAD_BYTES];
};

struct client {
	bool used, is_sm;
	int fd;
	uint32_t node;
	struct sockaddr_un to;
	socklen_t to_bytes;
	uint64_t tids[TIDS];
	unsigned tid_count;
};

static struct net net;
static struct client clients[CLIENTS];
static const char *base;

static uint64_t clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static socklen_t make_name(struct sockaddr_un *name, const char *what, unsigned number, bool numbered)
{
	int bytes;

	*name = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (numbered)
		bytes = snprintf(name->sun_path + 1, sizeof(name->sun_path) - 1, "%s:%s%u", base, what, number);
	else
		bytes = snprintf(name->sun_path + 1, sizeof(name->sun_path) - 1, "%s:%s", base, what);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 2 + (size_t)bytes);
}

static int listen_at(const char *what, unsigned number, bool numbered)
{
	struct sockaddr_un name;
	const socklen_t bytes = make_name(&name, what, number, numbered);
	const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&name, bytes)) {
		perror(name.sun_path + 1);
		exit(1);
	}
	return fd;
}

/* ---- MADs to clients ---- */

static bool asked(const struct client *c, uint64_t tid)
{
	for (unsigned i = 0; i < TIDS && i < c->tid_count; i++)
		if (c->tids[i] == tid)
			return true;
	return false;
}

static void to_client(void *arg, const struct net_mad *m)
{
	struct mad_message out = {
		.slid = htons(m->address.slid), .dlid = htons(m->address.dlid),
		.sqp = htonl(m->address.src_qp), .dqp = htonl(m->address.dest_qp),
		.length = htobe64(MAD_BYTES),
	};
	uint64_t tid;

	(void)arg;
	memcpy(out.mad, m->mad, sizeof(out.mad));
	memcpy(&tid, m->mad + 8, sizeof(tid));
	for (int i = 0; i < CLIENTS; i++) {
		struct client *c = &clients[i];

		if (!c->used || c->node != m->node)
			continue;
		/* Answers to its own requests; a manager gets requests. The library knows no messages of more
		 * than one MAD. */
		if (m->mad[3] & MAD_RESPONSE ? !asked(c, tid) : !c->is_sm)
			continue;
		sendto(c->fd, &out, sizeof(out), 0, (struct sockaddr *)&c->to, c->to_bytes);
	}
}

static void from_client(struct client *c)
{
	struct mad_message in;
	struct agent_address to = {.pkey = 0xffff};
	struct mad_header h;

	while (recv(c->fd, &in, sizeof(in), 0) == (ssize_t)sizeof(in)) {
		if (!c->used || !mad_header_read(in.mad, sizeof(in.mad), &h))
			continue;
		to.dlid = ntohs((uint16_t)in.dlid);
		to.dest_qp = ntohl(in.dqp);
		to.src_qp = ntohl(in.sqp);
		to.qkey = to.dest_qp ? 0x80010000u : 0;
		if (!(in.mad[3] & MAD_RESPONSE))
			memcpy(&c->tids[c->tid_count++ % TIDS], in.mad + 8, 8);
		fabric_agents_submit(net.agents, c->node, 1, in.mad, &to, net.now_ns);
		net_run(&net);
	}
}

/* ---- requests about the port ---- */

/* An attribute of the port itself, as its agent answers. */
static void own_attribute(const struct client *c, uint16_t attribute, char *data)
{
	struct mad_smp smp = {.method = MAD_GET, .attr_id = attribute, .tid = 1};

	net.delivered = NULL;
	if (net_directed(&net, c->node, (const uint8_t[]){0}, &smp))
		memcpy(data, smp.data, sizeof(smp.data));
	net.delivered = to_client;
}

static void connect_client(struct control_message *m)
{
	struct control_connect info;
	unsigned number = 0;
	struct client *c;
	uint32_t node;

	memcpy(&info, m->data, sizeof(info));
	info.node[sizeof(info.node) - 1] = '\0';
	while (number < CLIENTS && clients[number].used)
		number++;
	node = info.node[0] ? topology_find_name(net.topology, info.node) : 0;
	for (uint32_t i = 0; !info.node[0] && i < net.topology->node_count; i++)
		if (net.topology->nodes[i].kind == TOPOLOGY_HCA) {
			node = i;
			break;
		}
	if (number == CLIENTS || node == TOPOLOGY_NONE || net.topology->nodes[node].kind != TOPOLOGY_HCA) {
		m->type = CONTROL_ERROR;
		return;
	}
	c = &clients[number];
	*c = (struct client){.used = true, .fd = c->fd, .node = node};
	c->to_bytes = make_name(&c->to, "in", info.id, true);
	info.id = number;
	snprintf(info.node, sizeof(info.node), "%.31s", net.topology->nodes[node].id);
	memcpy(m->data, &info, sizeof(info));
}

static void set_is_sm(struct client *c, bool is_sm)
{
	c->is_sm = is_sm;
	fabric_agents_set_capability(net.agents, c->node, 1, is_sm ? MAD_CAP_SM : 0, is_sm ? 0 : MAD_CAP_SM,
				     net.now_ns);
}

static void answer_control(struct control_message *m)
{
	struct client *c = &clients[m->client < CLIENTS ? m->client : 0];
	const struct topology_node *what = &net.topology->nodes[c->node];
	struct plug_port port;
	uint32_t words[4] = {0};

	switch (m->type) {
	case CONTROL_CONNECT:
		connect_client(m);
		break;
	case CONTROL_DISCONNECT:
		if (c->is_sm)
			set_is_sm(c, false);
		c->used = false;
		break;
	case CONTROL_GET_VENDOR:
		words[0] = what->vendor_id;
		words[1] = what->device_id;
		memcpy(m->data, words, sizeof(words));
		break;
	case CONTROL_GET_NODE_INFO:
		own_attribute(c, MAD_ATTR_NODE_INFO, m->data);
		break;
	case CONTROL_GET_PORT_INFO:
		own_attribute(c, MAD_ATTR_PORT_INFO, m->data);
		break;
	case CONTROL_GET_PKEYS:
		fabric_agents_get_port(net.agents, c->node, 1, &port);
		for (int i = 0; i < 32; i++)
			((uint16_t *)(void *)m->data)[i] = htons(port.pkeys[i]);
		break;
	case CONTROL_SET_IS_SM:
		set_is_sm(c, m->data[0]);
		break;
	default:
		m->type = CONTROL_ERROR;
	}
}

static void from_control(int fd)
{
	struct control_message m;
	struct sockaddr_un from;
	socklen_t bytes = sizeof(from);

	while (recvfrom(fd, &m, sizeof(m), 0, (struct sockaddr *)&from, &bytes) == (ssize_t)sizeof(m)) {
		if (m.magic == MAGIC) {
			answer_control(&m);
			sendto(fd, &m, sizeof(m), 0, (struct sockaddr *)&from, bytes);
		}
		bytes = sizeof(from);
	}
}

/* ---- commands ---- */

static void command(char *line)
{
	struct fabric_agents_counts c;
	char word[8], name[65];
	unsigned port;

	if (sscanf(line, "%7s %64s %u", word, name, &port) == 3 &&
	    (!strcmp(word, "cut") || !strcmp(word, "join"))) {
		if (fabric_agents_cable(net.agents, net_node(&net, name), (uint8_t)port, word[0] == 'j',
					net.now_ns))
			printf("no such cable\n");
		else
			printf("done\n");
		net_run(&net);
	} else if (!strncmp(line, "counts", 6)) {
		fabric_agents_get_counts(net.agents, &c);
		printf("received %" PRIu64 " answered %" PRIu64 " forwarded %" PRIu64 " bad_mad %" PRIu64
		       " bad_route %" PRIu64 " bad_lid %" PRIu64 " bad_key %" PRIu64 " traps %" PRIu64
		       " repeated %" PRIu64 " repressed %" PRIu64 " lost %u\n", c.received, c.answered,
		       c.forwarded, c.bad_mad, c.bad_route, c.bad_lid, c.bad_key, c.traps, c.traps_repeated,
		       c.traps_repressed, net.lost);
	} else {
		printf("no such command\n");
	}
	fflush(stdout);
}

/* -1: for ever. */
static int wait_ms(void)
{
	const uint64_t next = fabric_agents_next_ns(net.agents);

	if (next == UINT64_MAX)
		return -1;
	return next <= net.now_ns ? 0 : (int)((next - net.now_ns) / 1000000 % 1000000 + 1);
}

int main(int argc, char **argv)
{
	struct pollfd fds[CLIENTS + 2];
	char line[128];

	if (argc != 2) {
		fprintf(stderr, "usage: agent_sim TOPOLOGY\n");
		return 1;
	}
	base = getenv("IBSIM_SOCKNAME") ? getenv("IBSIM_SOCKNAME") : "sim";
	net_open(&net, argv[1], NULL);
	net.delivered = to_client;
	fds[CLIENTS] = (struct pollfd){.fd = listen_at("ctl", 0, false), .events = POLLIN};
	fds[CLIENTS + 1] = (struct pollfd){.fd = STDIN_FILENO, .events = POLLIN};
	for (unsigned i = 0; i < CLIENTS; i++) {
		clients[i].fd = listen_at("out", i, true);
		fds[i] = (struct pollfd){.fd = clients[i].fd, .events = POLLIN};
	}
	printf("ready\n");
	fflush(stdout);
	setvbuf(stdin, NULL, _IONBF, 0);
	for (;;) {
		net.now_ns = clock_ns();
		fabric_agents_tick(net.agents, net.now_ns);
		net_run(&net);
		if (poll(fds, CLIENTS + 2, wait_ms()) < 0)
			continue;
		net.now_ns = clock_ns();
		if (fds[CLIENTS].revents)
			from_control(fds[CLIENTS].fd);
		for (int i = 0; i < CLIENTS; i++)
			if (fds[i].revents)
				from_client(&clients[i]);
		if (!fds[CLIENTS + 1].revents)
			continue;
		if (!fgets(line, sizeof(line), stdin))
			break;
		command(line);
	}
	net_close(&net);
	return 0;
}
