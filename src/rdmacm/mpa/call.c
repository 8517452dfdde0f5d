/* SPDX-License-Identifier: BSD-2-Clause */
/* A TCP connection while both ends agree on the terms of MPA. What comes behind the peer's frame stays
 * in the socket, for the queue pair. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "rdmacm/base/addr.h"
#include "rdmacm/base/base.h"
#include "rdmacm/mpa/mpa.h"
#include "util/clock.h"
#include "util/container_of.h"

/* As Linux's siw. */
#define REPLY_NS (10 * UINT64_C(1000000000))
#define REQUEST_NS (5 * UINT64_C(1000000000))
/* A call where nobody listens is repeated, as long as a request over RoCE waits there
 * (transport/roce/dispatch.h): programs that call twice rely on it. */
#define PATIENCE_NS UINT64_C(500000000)
#define AGAIN_NS UINT64_C(10000000)

void mpa_params(struct iwarp_setup_params *p, bool initiator)
{
	*p = (struct iwarp_setup_params){
		.initiator = initiator,
		.revision = (uint8_t)cma_settings.mpa_revision,
		.markers = cma_settings.mpa_markers,
		.sends_markers = true,
		.crc = cma_settings.mpa_crc,
		.peer_to_peer = initiator && cma_settings.mpa_revision == 2 &&
				cma_settings.mpa_rtr != CMA_RTR_NONE,
		.rtr = cma_settings.mpa_rtr == CMA_RTR_WRITE ? IWARP_RTR_WRITE :
		       cma_settings.mpa_rtr == CMA_RTR_READ  ? IWARP_RTR_READ :
							       IWARP_RTR_WRITE | IWARP_RTR_READ,
		.ird = MPA_READS_MAX, .ord = MPA_READS_MAX,
		.ird_max = MPA_READS_MAX, .ord_max = MPA_READS_MAX,
		.wait_ns = initiator ? REPLY_NS : REQUEST_NS,
	};
	/* A responder takes each first message that there is. */
	if (!initiator)
		p->rtr = IWARP_RTR_WRITE | IWARP_RTR_READ | IWARP_RTR_SEND;
}

static bool fail(struct mpa_call *c, int result)
{
	c->result = result;
	return true;
}

/* TCP has no connection, for this reason. */
static void fail_to_connect(struct mpa_call *c, int error)
{
	const uint64_t now = clock_monotonic_ns_slow();

	if (error == ECONNREFUSED && now < c->patient_until_ns)
		c->again_ns = now + AGAIN_NS;
	else
		fail(c, -error);
}

/* 0 or a negative errno. A failure of TCP is reported as what comes later is. */
static int dial(struct mpa_call *c)
{
	const struct sockaddr *from = (struct sockaddr *)&c->from, *to = (struct sockaddr *)&c->to;
	int ret, on = 1;

	c->again_ns = 0;
	c->fd = socket(to->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (c->fd < 0)
		return -errno;
	setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	/* The port of a caller must not keep a listener from it. */
	setsockopt(c->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	setsockopt(c->fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
	if (bind(c->fd, from, cma_addr_len(from))) {
		ret = -errno;
		mpa_call_close(c);
		return ret;
	}
	if (connect(c->fd, to, cma_addr_len(to)) && errno != EINPROGRESS)
		fail_to_connect(c, errno);
	return 0;
}

int mpa_call_open(struct mpa_call *c, const struct sockaddr *from, const struct sockaddr *to,
		  const struct iwarp_setup_params *p, uint64_t timeout_ns)
{
	const uint64_t now = clock_monotonic_ns_slow();
	int ret = iwarp_setup_open(&c->setup, p, now);

	c->result = 0;
	c->fd = -1;
	if (ret)
		return ret;
	cma_addr_copy(&c->from, from);
	cma_addr_set_port((struct sockaddr *)&c->from, 0);
	cma_addr_copy(&c->to, to);
	c->connecting = true;
	c->deadline_ns = now + timeout_ns;
	c->patient_until_ns = now + MIN(timeout_ns, PATIENCE_NS);
	return dial(c);
}

int mpa_call_take(struct mpa_call *c, int fd)
{
	struct iwarp_setup_params p;
	int ret, on = 1;

	memset(c, 0, sizeof(*c));
	mpa_params(&p, false);
	c->fd = fd;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	ret = iwarp_setup_open(&c->setup, &p, clock_monotonic_ns_slow());
	if (ret)
		mpa_call_close(c);
	return ret;
}

/* ---- steps ---- */

/* True: there is a connection. */
static bool finish_connecting(struct mpa_call *c)
{
	int error = 0;
	socklen_t length = sizeof(error);
	struct sockaddr_storage peer;

	if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &length) || error) {
		fail_to_connect(c, error ? error : EIO);
		return false;
	}
	length = sizeof(peer);
	if (getpeername(c->fd, (struct sockaddr *)&peer, &length))
		return false;
	c->connecting = false;
	c->setup.deadline_ns = clock_monotonic_ns_slow() + REPLY_NS;
	return true;
}

static bool send_output(struct mpa_call *c)
{
	size_t bytes;
	const uint8_t *out = iwarp_setup_output(&c->setup, &bytes);
	ssize_t sent;

	if (!bytes)
		return true;
	sent = send(c->fd, out, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (sent > 0)
		iwarp_setup_sent(&c->setup, (size_t)sent);
	else if (sent < 0 && errno != EAGAIN && errno != EINTR)
		iwarp_setup_ended(&c->setup);
	return sent > 0;
}

/* Looks at what has come, and takes the peer's frame from the socket, no byte behind it. */
static bool take_input(struct mpa_call *c)
{
	uint8_t bytes[IWARP_MPA_FRAME_MAX + 1];
	const uint8_t *at = bytes;
	ssize_t there = recv(c->fd, bytes, sizeof(bytes), MSG_PEEK | MSG_DONTWAIT);
	size_t left, taken;

	if (there < 0)
		return errno == EAGAIN || errno == EINTR ? false :
							   (iwarp_setup_ended(&c->setup), true);
	if (there == 0) {
		iwarp_setup_ended(&c->setup);
		return true;
	}
	left = (size_t)there;
	iwarp_setup_take(&c->setup, &at, &left);
	taken = (size_t)there - left;
	if (taken && recv(c->fd, bytes, taken, MSG_DONTWAIT) != (ssize_t)taken)
		iwarp_setup_ended(&c->setup);
	return taken > 0;
}

static bool waits_for_input(const struct mpa_call *c)
{
	return c->setup.state == IWARP_SETUP_REQUESTING ||
	       c->setup.state == IWARP_SETUP_LISTENING;
}

bool mpa_call_step(struct mpa_call *c)
{
	const uint8_t before = c->setup.state;

	if (c->result)
		return true;
	if (c->again_ns)
		return false;
	if (c->connecting && !finish_connecting(c))
		return c->result != 0;
	send_output(c);
	while (waits_for_input(c) && take_input(c))
		;
	/* A request may be refused at once. */
	send_output(c);
	if (c->setup.state == IWARP_SETUP_FAILED)
		c->result = c->setup.result;
	return c->setup.state != before;
}

bool mpa_call_expire(struct mpa_call *c)
{
	const uint64_t now = clock_monotonic_ns_slow();
	int ret;

	if (c->connecting && now >= c->deadline_ns)
		return fail(c, -ETIMEDOUT);
	if (c->again_ns) {
		if (now < c->again_ns)
			return false;
		mpa_call_close(c);
		ret = dial(c);
		return ret ? fail(c, ret) : c->result != 0;
	}
	if (!c->connecting && c->setup.deadline_ns && now >= c->setup.deadline_ns) {
		iwarp_setup_timer(&c->setup, now);
		if (c->setup.state == IWARP_SETUP_FAILED)
			return fail(c, c->setup.result);
	}
	return false;
}

uint32_t mpa_call_events(const struct mpa_call *c)
{
	size_t bytes;

	if (c->fd < 0 || c->result || c->again_ns)
		return 0;
	iwarp_setup_output(&c->setup, &bytes);
	if (c->connecting || (bytes && c->setup.state != IWARP_SETUP_DONE))
		return EPOLLOUT;
	return waits_for_input(c) ? EPOLLIN : 0;
}

uint64_t mpa_call_deadline(const struct mpa_call *c)
{
	if (c->fd < 0 || c->result)
		return 0;
	if (c->again_ns)
		return c->again_ns;
	return c->connecting ? c->deadline_ns : c->setup.deadline_ns;
}

void mpa_call_close(struct mpa_call *c)
{
	const int fd = c->fd;

	/* First: a child that is forked now closes what it finds here. */
	c->fd = -1;
	if (fd >= 0)
		close(fd);
}
