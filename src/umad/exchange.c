/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages are sent and received (umad_send(3), umad_recv(3), umad_poll(3)). */
#define LOG_ROOM "umad"
#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "umad/plain.h"
#include "umad/rmpp.h"
#include "umad/system.h"
#include "umad/umad.h"
#include "util/clock.h"
#include "util/container_of.h"
#include "util/log.h"

/* ---- receiving ---- */

static void address_out(const struct plug_mad *from, struct ib_mad_addr *to)
{
	*to = (struct ib_mad_addr){
		.qpn = htobe32(from->qpn),
		.qkey = htobe32(from->qkey),
		.lid = htobe16(from->lid),
		.sl = from->sl,
		.path_bits = from->path_bits,
		.grh_present = from->grh,
		.gid_index = from->gid_index,
		.hop_limit = from->hop_limit,
		.traffic_class = from->traffic_class,
		.flow_label = htobe32(from->flow_label),
		.pkey_index = from->pkey_index,
	};
	memcpy(to->gid, from->gid, sizeof(to->gid));
}

/* The first message of the queue to the program; lock is held. */
static int hand_over(struct umad_port_open *p, struct ib_user_mad *to, int *length)
{
	struct umad_message *m = list_entry(p->queue.next, struct umad_message, entry);
	size_t room = (size_t)*length;
	uint64_t count;

	to->agent_id = m->head.agent;
	to->status = m->head.status;
	to->timeout_ms = m->head.timeout_ms;
	to->retries = m->head.retries;
	to->length = (uint32_t)(m->bytes + sizeof(*to));
	address_out(&m->head, &to->addr);
	memcpy(to->data, m->mad, MIN(m->bytes, room));
	*length = (int)m->bytes;
	if (m->bytes > room) {
		errno = ENOSPC;
		return -ENOSPC; /* it stays */
	}
	list_remove(&m->entry);
	free(m);
	if (!--p->queued && read(p->wake, &count, sizeof(count)) < 0)
		log_debug("the eventfd of a port was empty");
	return (int)to->agent_id;
}

/* Until a message is there: 1; 0: none; or a negative errno. lock is held. */
static int gather(struct umad_port_open *p)
{
	int ret;

	umad_rmpp_turn(p);
	umad_plain_turn(p);
	while (list_empty(&p->queue)) {
		ret = umad_port_pump(p);
		if (ret <= 0)
			return ret;
	}
	return 1;
}

/* Waits until the port is readable or RMPP is due, up to `until_ns` (UINT64_MAX: for ever). lock is
 * not held. */
static void wait_readable(struct umad_port_open *p, uint64_t due_ns, uint64_t until_ns)
{
	struct pollfd f = { .fd = p->fd, .events = POLLIN };
	uint64_t at_ns = MIN(due_ns, until_ns), now_ns = clock_monotonic_ns_slow();
	int ms = -1;

	if (at_ns != UINT64_MAX)
		ms = at_ns > now_ns ? (int)MIN((at_ns - now_ns) / 1000000 + 1, 1000000u) : 0;
	poll(&f, 1, ms);
}

static uint64_t limit_of(int timeout_ms)
{
	return timeout_ms < 0 ? UINT64_MAX :
				clock_monotonic_ns_slow() + (uint64_t)timeout_ms * 1000000;
}

/* Waits for a message. With the lock held: 1, or 0 when the time is over, or a negative errno. */
static int await_message(struct umad_port_open *p, int timeout_ms)
{
	const uint64_t until_ns = limit_of(timeout_ms);
	int ret;

	pthread_mutex_lock(&p->lock);
	while (!(ret = gather(p))) {
		uint64_t due_ns = MIN(umad_rmpp_due_ns(p), umad_plain_due_ns(p));

		if (!timeout_ms || clock_monotonic_ns_slow() >= until_ns || p->closing)
			break;
		pthread_mutex_unlock(&p->lock);
		wait_readable(p, due_ns, until_ns);
		pthread_mutex_lock(&p->lock);
	}
	return ret;
}

UMAD_EXPORT int umad_recv(int portid, void *umad, int *length, int timeout_ms)
{
	struct umad_port_open *p = umad_port_get(portid);
	int ret;

	errno = 0;
	if (!p)
		return UMAD_SYSTEM(-EINVAL, umad_recv, portid, umad, length, timeout_ms);
	if (!umad || !length || *length < MAD_BYTES) {
		umad_port_put(p);
		errno = EINVAL;
		return -EINVAL;
	}
	ret = await_message(p, timeout_ms);
	if (ret > 0)
		ret = hand_over(p, umad, length);
	else if (!ret)
		ret = timeout_ms ? -ETIMEDOUT : -EWOULDBLOCK;
	pthread_mutex_unlock(&p->lock);
	/* opensm logs this error and calls again at once, until a disk is full. */
	if (ret == -EIO && timeout_ms)
		poll(NULL, 0, 100);
	umad_port_put(p);
	if (ret < 0 && !errno)
		errno = -ret;
	return ret;
}

UMAD_EXPORT int umad_poll(int portid, int timeout_ms)
{
	struct umad_port_open *p = umad_port_get(portid);
	int ret;

	if (!p)
		return UMAD_SYSTEM(-EINVAL, umad_poll, portid, timeout_ms);
	ret = await_message(p, timeout_ms);
	pthread_mutex_unlock(&p->lock);
	umad_port_put(p);
	if (ret > 0)
		return 0;
	return ret ? -EIO : -ETIMEDOUT;
}

/* ---- sending ---- */

static void address_in(const struct ib_mad_addr *from, struct plug_mad *to)
{
	to->qpn = be32toh(from->qpn);
	to->qkey = be32toh(from->qkey);
	to->lid = be16toh(from->lid);
	to->pkey_index = from->pkey_index;
	to->sl = from->sl;
	to->path_bits = from->path_bits;
	to->grh = from->grh_present;
	to->hop_limit = from->hop_limit;
	to->traffic_class = from->traffic_class;
	to->gid_index = from->gid_index;
	to->flow_label = be32toh(from->flow_label);
	memcpy(to->gid, from->gid, sizeof(to->gid));
}

/* Sends a MAD of the program; waits while the socket has no room. */
static int send_one(struct umad_port_open *p, const struct plug_mad *head, const uint8_t *mad,
		    size_t bytes)
{
	uint8_t whole[PLUG_MAD_BYTES] = { 0 };
	int ret;

	memcpy(whole, mad, MIN(bytes, PLUG_MAD_BYTES));
	umad_stamp(&p->agents[head->agent], whole);
	while ((ret = umad_port_put_mad(p, head, whole)) == -EAGAIN) {
		struct pollfd f = { .fd = p->plug, .events = POLLOUT };

		pthread_mutex_unlock(&p->lock);
		poll(&f, 1, 100);
		pthread_mutex_lock(&p->lock);
	}
	return ret;
}

UMAD_EXPORT int umad_send(int portid, int agentid, void *umad, int length, int timeout_ms,
			  int retries)
{
	struct umad_port_open *p = umad_port_get(portid);
	struct ib_user_mad *m = umad;
	struct plug_mad head = { .agent = (uint32_t)agentid };
	int ret = -EINVAL;

	errno = 0;
	if (!p)
		return UMAD_SYSTEM(-EINVAL, umad_send, portid, agentid, umad, length, timeout_ms,
				   retries);
	if (!umad || length < MAD_HEADER_BYTES || agentid < 0 || agentid >= UMAD_AGENTS)
		goto out;
	m->agent_id = (uint32_t)agentid;
	m->timeout_ms = (uint32_t)timeout_ms;
	m->retries = (uint32_t)retries;
	address_in(&m->addr, &head);
	head.timeout_ms = timeout_ms > 0 ? (uint32_t)timeout_ms : 0;
	head.retries = retries > 0 ? (uint32_t)retries : 0;
	pthread_mutex_lock(&p->lock);
	if (p->agents[agentid].used) {
		const bool is_long = p->agents[agentid].rmpp && umad_rmpp_is(m->data);

		if (is_long)
			ret = umad_rmpp_send(p, &head, m->data, (size_t)length);
		else if (length > MAD_BYTES)
			ret = -EINVAL;
		else
			ret = send_one(p, &head, m->data, (size_t)length);
	}
	pthread_mutex_unlock(&p->lock);
out:
	umad_port_put(p);
	if (ret)
		errno = -ret;
	return ret == -EINVAL ? ret : ret ? -EIO : 0;
}
