/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections; see client.h. */
#define LOG_ROOM "fabric"
#include "fabric/serve/client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fabric/agent/agent.h"
#include "fabric/serve/control.h"
#include "fabric/serve/hello.h"
#include "fabric/serve/mads.h"
#include "fabric/serve/out.h"
#include "fabric/serve/owner.h"
#include "fabric/serve/packet.h"
#include "fabric/serve/pool.h"
#include "util/log.h"

#define READ_BATCH 16
#define DRAIN_MAX 1024
#define SOCKET_BYTES (1 << 20)
#define REFUSED_NS UINT64_C(1000000000)

/* ---- messages ---- */

static void on_qp_open(struct serve_client *c, struct serve_buffer *b)
{
	const struct plug_qp *q = (const void *)b->body;

	serve_out_done(c, serve_owner_open_qp(c, q->qpn), b->head.b);
}

static void on_qp_close(struct serve_client *c, struct serve_buffer *b)
{
	const struct plug_qp *q = (const void *)b->body;

	serve_out_done(c, serve_owner_close_qp(c, q->qpn), b->head.b);
}

static void on_join(struct serve_client *c, struct serve_buffer *b)
{
	serve_out_done(c, serve_owner_join(c, (const void *)b->body), b->head.b);
}

static void on_leave(struct serve_client *c, struct serve_buffer *b)
{
	serve_out_done(c, serve_owner_leave(c, (const void *)b->body), b->head.b);
}

static void on_find(struct serve_client *c, struct serve_buffer *b)
{
	const struct serve *s = c->serve;
	struct plug_peer wanted, found = { 0 };

	memcpy(&wanted, b->body, sizeof(wanted));
	/* By the number there is nothing to look for. */
	for (uint32_t i = wanted.host_number ? wanted.host_number - 1 : 0; i < s->host_count; i++) {
		const struct plug_port *p = &s->hosts[i].state;

		if (!wanted.host_number && (!wanted.port_guid || wanted.port_guid != p->guids[0]))
			continue;
		found = (struct plug_peer){ .port_guid = p->guids[0], .host_number = i + 1, .lid = p->lid };
		break;
	}
	serve_out_message(c, PLUG_PEER, 0, b->head.b, &found, sizeof(found));
}

static void on_agent_open(struct serve_client *c, struct serve_buffer *b)
{
	/* Where it is refused, the answer is a PLUG_AGENT, too. */
	if (serve_mads_open(c, b->head.a, (const void *)b->body))
		serve_out_message(c, PLUG_AGENT, b->head.a, 0, NULL, 0);
}

static void on_agent_close(struct serve_client *c, struct serve_buffer *b)
{
	serve_out_done(c, serve_mads_close(c, b->head.a), b->head.b);
}

static void on_mad(struct serve_client *c, struct serve_buffer *b)
{
	struct plug_mad to;
	int ret;

	memcpy(&to, b->body, sizeof(to));
	ret = serve_mads_send(c, &to, b->body + sizeof(to));
	if (ret)
		c->counts.refused[SERVE_BAD_MAD]++;
	else
		c->counts.taken++;
	serve_out_done(c, ret, b->head.b);
}

static void on_capability(struct serve_client *c, struct serve_buffer *b)
{
	int ret = fabric_agents_set_capability(c->serve->agents, c->host->node, c->host->port,
					       b->head.a, b->head.b, c->serve->now_ns);

	if (!ret)
		c->capability = (c->capability | b->head.a) & ~b->head.b;
}

static void (*const plugged[])(struct serve_client *c, struct serve_buffer *b) = {
	[PLUG_QP_OPEN] = on_qp_open,
	[PLUG_QP_CLOSE] = on_qp_close,
	[PLUG_GROUP_JOIN] = on_join,
	[PLUG_GROUP_LEAVE] = on_leave,
	[PLUG_AGENT_OPEN] = on_agent_open,
	[PLUG_AGENT_CLOSE] = on_agent_close,
	[PLUG_MAD] = on_mad,
	[PLUG_SET_CAPABILITY] = on_capability,
	[PLUG_FIND] = on_find,
};

void serve_client_message(struct serve_client *c, struct serve_buffer *b, size_t bytes)
{
	const size_t types = sizeof(plugged) / sizeof(plugged[0]);

	b->bytes = (uint16_t)bytes;
	if (!plug_check(&b->head, bytes)) {
		serve_out_refuse(c, -EPROTO, "this is no message of the protocol, version %d",
				 PLUG_VERSION);
	} else if (c->stage == SERVE_PLUGGED && b->head.type == PLUG_PACKET) {
		/* As those that are delivered have it. */
		b->head.a = b->head.b = 0;
		serve_packet_take(c, b);
		return;
	} else if (c->stage == SERVE_NEW && b->head.type == PLUG_HELLO) {
		serve_hello(c, (const struct plug_hello *)(const void *)b->body);
	} else if (c->stage == SERVE_ASKING && b->head.type == PLUG_ASK) {
		serve_control(c, (const char *)b->body, b->head.bytes, b->head.b);
	} else if (c->stage == SERVE_PLUGGED && b->head.type < types && plugged[b->head.type]) {
		plugged[b->head.type](c, b);
	} else if (c->stage != SERVE_ENDING) {
		serve_out_refuse(c, -EPROTO, c->stage == SERVE_NEW ?
				 "the first message has to be a hello" :
				 "this message is not for a client of this kind");
	}
	serve_pool_give(&c->serve->pool, b);
}

static bool may_read(const struct serve_client *c)
{
	return c->stage < SERVE_ENDING && c->waiting < SERVE_WAITING_MAX && !c->text;
}

/* Reads up to a batch at once; how many, 0: none now, negative: the connection has ended. */
static int receive(struct serve_client *c, struct serve_buffer **buffers, unsigned want,
		   unsigned *lengths, bool *cut)
{
	struct mmsghdr messages[READ_BATCH];
	struct iovec iov[READ_BATCH];
	int n;

	for (unsigned i = 0; i < want; i++) {
		iov[i] = (struct iovec){ &buffers[i]->head,
					 sizeof(buffers[i]->head) + sizeof(buffers[i]->body) };
		messages[i].msg_hdr = (struct msghdr){ .msg_iov = &iov[i], .msg_iovlen = 1 };
	}
	n = recvmmsg(c->fd, messages, want, MSG_DONTWAIT, NULL);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	for (int i = 0; i < n; i++) {
		lengths[i] = messages[i].msg_len;
		cut[i] = messages[i].msg_hdr.msg_flags & MSG_TRUNC;
		/* The other side has closed it; messages of no bytes are none of the protocol. */
		if (!lengths[i])
			return i ? i : -ECONNRESET;
	}
	return n ? n : -ECONNRESET;
}

void serve_client_read(struct serve_client *c)
{
	struct serve_buffer *buffers[READ_BATCH];
	unsigned lengths[READ_BATCH], count;
	bool cut[READ_BATCH];
	int n;

	serve_out_touch(c);
	/* Who cannot be answered for want of a buffer would be ended. */
	if (!may_read(c) || c->serve->pool.used >= SERVE_BUFFERS_MAX - SERVE_BUFFERS_SPARE)
		return;
	for (count = 0; count < READ_BATCH; count++) {
		buffers[count] = serve_pool_take(&c->serve->pool);
		if (!buffers[count])
			break;
	}
	if (!count)
		return;
	n = receive(c, buffers, count, lengths, cut);
	for (unsigned i = 0; i < count; i++)
		if ((int)i >= n || c->stage >= SERVE_ENDING)
			serve_pool_give(&c->serve->pool, buffers[i]);
		else if (cut[i])
			serve_client_message(c, buffers[i], sizeof(struct plug_head) - 1);
		else
			serve_client_message(c, buffers[i], lengths[i]);
	if (n < 0)
		serve_client_end(c);
}

/* ---- life ---- */

/* Is it one too many of a user who may plug in, and who shall not take the places of others? */
static bool is_too_many(const struct serve_client *c)
{
	unsigned apart = 0;

	if (c->may_change || !c->may_plug_in)
		return false;
	list_for_each (other, &c->serve->clients, struct serve_client, entry)
		apart += other->uid == c->uid && !other->host;
	return apart > SERVE_APART_MAX ||
	       c->serve->client_count > SERVE_CLIENTS_MAX - SERVE_CLIENTS_OWN;
}

static void welcome_socket(struct serve *s, int fd)
{
	const int bytes = SOCKET_BYTES;
	struct serve_client *c = calloc(1, sizeof(*c));
	struct epoll_event e = { .events = EPOLLIN, .data.ptr = c };

	if (!c || epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, fd, &e)) {
		log_error("no place for a client: %s", strerror(errno));
		close(fd);
		free(c);
		return;
	}
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	c->serve = s;
	c->fd = fd;
	c->polled = EPOLLIN;
	c->number = ++s->next_client;
	c->rest.client = c;
	c->rest.last = &c->rest.first;
	list_init(&c->rest.in_waiting);
	list_init(&c->in_host);
	list_init(&c->in_dirty);
	list_init(&c->qps);
	list_init(&c->groups);
	list_init(&c->flows);
	list_init(&c->pending);
	wheel_timer_init(&c->timer);
	wheel_arm(&s->hellos, &c->timer, s->now_ns + SERVE_HELLO_NS);
	list_push(&s->clients, &c->entry);
	s->client_count++;
	serve_hello_peer(c);
	/* Other users can connect, and shall not take the places of those who may plug in. */
	if ((!c->may_plug_in && ++s->stranger_count > SERVE_STRANGERS_MAX) || is_too_many(c))
		serve_client_end(c);
}

void serve_client_accept(struct serve *s)
{
	int fd;

	/* Anybody can connect faster than connections are taken: the rest has to wait for the next turn. */
	for (unsigned i = 0; i < SERVE_ACCEPT_BATCH; i++) {
		fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd < 0)
			break;
		if (s->client_count < SERVE_CLIENTS_MAX)
			welcome_socket(s, fd);
		else
			close(fd);
	}
	if (fd >= 0)
		return;
	/* Without descriptors: the listener is not asked again before one is closed or a second is over. */
	if (errno == EMFILE || errno == ENFILE) {
		log_error("no client can be taken: %s", strerror(errno));
		s->listener_rests_ns = s->now_ns + REFUSED_NS;
	}
}

/* The kernel takes the refusal from a client whose own messages nobody has read. */
static void drain(struct serve_client *c)
{
	char byte;

	for (unsigned i = 0; i < DRAIN_MAX && recv(c->fd, &byte, 1, MSG_DONTWAIT) > 0; i++)
		;
}

void serve_client_end(struct serve_client *c)
{
	struct serve *s = c->serve;

	if (c->stage == SERVE_GONE)
		return;
	if (c->host) {
		log_debug("client %u (%s, process %d) leaves %s", c->number, c->program, (int)c->pid,
			  s->topology->nodes[c->host->node].id);
		serve_mads_end(c);
		serve_owner_end(c);
		list_remove(&c->in_host);
		s->used_hosts -= !--c->host->client_count;
		if (c->capability)
			fabric_agents_set_capability(s->agents, c->host->node, c->host->port, 0,
						     c->capability, s->now_ns);
	}
	s->gone_counts.taken += c->counts.taken;
	s->gone_counts.delivered += c->counts.delivered;
	s->gone_counts.slow += c->counts.slow;
	for (unsigned i = 0; i < SERVE_REFUSED_KINDS; i++)
		s->gone_counts.refused[i] += c->counts.refused[i];
	if (c->stage == SERVE_ENDING)
		drain(c);
	c->stage = SERVE_GONE;
	serve_out_free(c);
	wheel_cancel(&s->hellos, &c->timer);
	close(c->fd);
	list_remove(&c->entry);
	list_push(&s->gone, &c->entry);
	s->client_count--;
	s->stranger_count -= !c->may_plug_in;
}

void serve_client_free_gone(struct serve *s)
{
	struct list *l;

	while ((l = list_pop(&s->gone)))
		free(list_entry(l, struct serve_client, entry));
}

void serve_client_settle(struct serve_client *c)
{
	uint32_t want;
	struct epoll_event e;

	if (c->stage == SERVE_GONE)
		return;
	if (!serve_out_flush(c) || (c->stage == SERVE_ENDING && !serve_out_waits(c))) {
		serve_client_end(c);
		return;
	}
	if (c->stage == SERVE_ENDING && !wheel_is_armed(&c->timer))
		wheel_arm(&c->serve->hellos, &c->timer, c->serve->now_ns + REFUSED_NS);
	want = (may_read(c) ? EPOLLIN : 0) | (serve_out_waits(c) ? EPOLLOUT : 0);
	if (want == c->polled)
		return;
	e = (struct epoll_event){ .events = want, .data.ptr = c };
	if (epoll_ctl(c->serve->epoll_fd, EPOLL_CTL_MOD, c->fd, &e))
		serve_client_end(c);
	else
		c->polled = (uint8_t)want;
}

void serve_client_expire(struct serve_client *c)
{
	serve_client_end(c);
}
