/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A transport in virtual time: the packets of transport/roce, with their checksums, over the
 * simulated network; see net.h. A host is a port of transport/packet.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hca/object/cq.h"
#include "hca/path/path.h"
#include "hca/run/elide.h"
#include "hca/share/process.h"
#include "transport/carrier/udp.h"
#include "transport/roce/packets.h"
#include "util/container_of.h"
#include "virtual/clock.h"
#include "virtual/fail.h"
#include "virtual/net.h"

#define PACKET_BYTES (PACKET_HEADER_BYTES + PACKET_MTU + PACKET_TRAILER_BYTES)
/* A run begins at a multiple of this, so that the timing wheels, which depend on the bits of
 * the time, play each run alike. */
#define ALIGN_NS (UINT64_C(1) << 42)

struct virtual_host virtual_hosts[VIRTUAL_HOSTS];
struct carrier_sim *virtual_sim;
struct ibv_context *virtual_ctx;
struct ibv_pd *virtual_pd;
bool (*virtual_judge)(const struct packet_seen *p);
const struct virtual_watcher *virtual_watcher;
unsigned virtual_train = 1;
uint32_t virtual_buffer_bytes;
static unsigned open_hosts;

/* ---- addresses: 10.77.0.1 is virtual_hosts[0] ---- */

void virtual_gid(unsigned host, union ibv_gid *gid)
{
	static const uint8_t network[16] = { [10] = 0xff, 0xff, 10, 77, 0, 1 };

	memcpy(gid->raw, network, sizeof(network));
	gid->raw[15] = (uint8_t)(gid->raw[15] + host);
}

static struct carrier_addr address_of(unsigned host)
{
	union ibv_gid gid;

	virtual_gid(host, &gid);
	return carrier_udp_addr_of(gid.raw, 0, roce_udp_port);
}

static unsigned number_of(const struct carrier_addr *address)
{
	uint8_t ip[16];
	uint16_t port;

	expect(carrier_udp_addr_ip(address, ip, &port));
	return ip[15] - 1u;
}

/* ---- between a port and the network ---- */

static struct virtual_host *host_of_link(struct carrier *c)
{
	return container_of(c, struct virtual_host, link);
}

static bool is_judged_lost(const struct virtual_host *h, const struct carrier_unit *u,
			   const uint8_t *packet)
{
	const struct packet_seen seen = {
		.at_ns = virtual_now_ns(), .from = h->number, .to = number_of(&u->to),
		.opcode = packet[0] & IB_OPERATION_MASK,
		.unreliable = packet[0] >> 5 == 1,
		.lost = u->known & CARRIER_LOST,
		.qpn = (uint32_t)(packet[5] << 16 | packet[6] << 8 | packet[7]),
		.psn = (uint32_t)(packet[9] << 16 | packet[10] << 8 | packet[11]),
		.syndrome = packet[12],
	};

	return virtual_judge && virtual_judge(&seen);
}

static void watch(const struct virtual_host *h, enum carrier_direction direction,
		  const struct carrier_unit *u, const uint8_t *bytes, size_t length)
{
	const struct virtual_watcher *w = virtual_watcher;

	if (w)
		w->saw(w->arg, h, direction, u, bytes, length);
}

static int emit_packet(struct virtual_host *h, const struct carrier_unit *u, size_t at,
		       size_t bytes, unsigned k)
{
	uint8_t packet[PACKET_BYTES];
	struct iovec iov = { packet, bytes };
	struct carrier_unit one = *u;
	int ret;

	expect(bytes <= sizeof(packet));
	carrier_unit_gather(u, at, bytes, packet);
	watch(h, CARRIER_OUT, u, packet, bytes);
	if (is_judged_lost(h, u, packet) || u->known & CARRIER_LOST)
		return 0;
	one.iov = &iov;
	one.count = 1;
	one.segment = 0;
	one.ip_id = (uint16_t)k;
	one.to = carrier_addr_of(number_of(&u->to));
	ret = carrier_emit(h->end, &one, 1);
	return ret == 1 ? 0 : ret;
}

static int link_emit(struct carrier *c, const struct carrier_unit *units, unsigned n)
{
	struct virtual_host *h = host_of_link(c);

	for (unsigned i = 0; i < n; i++) {
		size_t bytes = carrier_unit_bytes(&units[i]), at = 0;
		unsigned packets = carrier_unit_packets(&units[i], bytes);

		for (unsigned k = 0; k < packets; k++) {
			size_t length = carrier_packet_bytes(&units[i], bytes, k);
			int ret = emit_packet(h, &units[i], at, length, k);

			/* Of a train that has begun the rest is lost. */
			if (ret && !k)
				return i ? (int)i : ret;
			at += length;
		}
	}
	return (int)n;
}

/* What is merged arrives. */
static void flush(struct virtual_host *h)
{
	struct iovec iov = { h->bytes, h->filled };
	struct carrier_unit u = h->unit;

	if (!h->merged)
		return;
	u.iov = &iov;
	u.segment = h->merged > 1 ? u.segment : 0;
	h->merged = 0;
	carrier_deliver(&h->link, &u);
}

static unsigned link_poll(struct carrier *c, unsigned budget)
{
	struct virtual_host *h = host_of_link(c);
	unsigned used = carrier_poll(h->end, budget);

	flush(h);
	return used;
}

static uint64_t link_next_ns(struct carrier *c)
{
	return carrier_next_ns(host_of_link(c)->end);
}

/* The network is closed behind all of them. */
static void link_close(struct carrier *c)
{
	(void)c;
}

static const struct carrier_ops link_ops = {
	.emit = link_emit, .poll = link_poll, .next_ns = link_next_ns, .close = link_close,
};

/* May the packet be merged with those before it? One that is shorter is the last one. */
static bool merges(const struct virtual_host *h, const struct carrier_unit *u, size_t bytes)
{
	return h->merged && h->merged < virtual_train && h->unit.tos == u->tos &&
	       h->unit.known == u->known && carrier_addr_equal(&h->unit.from, &u->from) &&
	       h->filled == (size_t)h->merged * h->unit.segment && bytes <= h->unit.segment &&
	       h->filled + bytes <= sizeof(h->bytes);
}

static void link_deliver(void *arg, const struct carrier_unit *unit)
{
	size_t bytes = carrier_unit_bytes(unit);
	struct virtual_host *h = arg;
	struct carrier_unit u = *unit;

	u.from = address_of(carrier_addr_number(&unit->from));
	u.to = address_of(h->number);
	if (!merges(h, &u, bytes)) {
		flush(h);
		h->unit = u;
		h->unit.count = 1;
		h->unit.segment = (uint32_t)bytes;
		h->filled = 0;
	}
	carrier_unit_gather(unit, 0, bytes, h->bytes + h->filled);
	watch(h, CARRIER_IN, &u, h->bytes + h->filled, bytes);
	h->filled += bytes;
	h->merged++;
	if (virtual_train == 1)
		flush(h);
}

static void link_writable(void *arg)
{
	carrier_writable(&((struct virtual_host *)arg)->link);
}

/* ---- the medium: that of roce, but for what asks the kernel ---- */

static const struct virtual_host *connecting;

static int address(const struct ibv_ah_attr *to, const union ibv_gid *from,
		   struct packet_route *route)
{
	(void)from;
	*route = (struct packet_route){
		.to = carrier_udp_addr_of(to->grh.dgid.raw, 0, roce_udp_port),
		.from = address_of(connecting->number),
		.known = CARRIER_FROM | CARRIER_TOS | CARRIER_TTL,
		.ttl = 64,
	};
	return 0;
}

static unsigned train(void)
{
	return virtual_train;
}

static struct packet_medium medium;

/* ---- the transport ---- */

static int start(void)
{
	return 0;
}

static void stop(void)
{
}

static int reach(const struct hca_destination *to)
{
	(void)to;
	return 1;
}

static struct virtual_host *host_of(const struct hca_qp *qp)
{
	return qp->ibv.qp_context;
}

static int open_qp(struct hca_qp *qp)
{
	return packet_open(&host_of(qp)->port, qp);
}

static int connect_qp(struct hca_qp *qp)
{
	connecting = host_of(qp);
	return packet_connect(qp);
}

static void close_qp(struct hca_qp *qp)
{
	packet_close(&host_of(qp)->port, qp);
}

static void posted(struct hca_qp *qp)
{
	packet_posted(&host_of(qp)->port, qp);
}

static bool poll_all(bool wait)
{
	bool moved = false;

	for (unsigned i = 0; i < open_hosts; i++) {
		if (wait)
			packet_leave(&virtual_hosts[i].port);
		moved |= packet_poll(&virtual_hosts[i].port, wait);
	}
	return moved;
}

static bool poll_one(struct hca_cq *cq, bool wait)
{
	struct packet_port *port;
	bool moved;

	if (!cq)
		return poll_all(wait);
	port = &((struct virtual_host *)cq->ex.cq_context)->port;
	packet_polled(port);
	moved = packet_poll(port, wait);
	if (moved)
		packet_moved(port);
	return moved;
}

static bool pending(void)
{
	bool any = false;

	for (unsigned i = 0; i < open_hosts; i++)
		any |= packet_pending(&virtual_hosts[i].port);
	return any;
}

static void fence_qp(const struct hca_qp *qp)
{
	packet_qp_fence(&host_of(qp)->port);
}

static void fence_key(uint32_t key)
{
	(void)key;
	for (unsigned i = 0; i < open_hosts; i++)
		hca_copies_wait(&virtual_hosts[i].port.copies);
}

static bool key_busy(uint32_t key)
{
	bool busy = false;

	(void)key;
	for (unsigned i = 0; i < open_hosts; i++)
		busy |= hca_copies_any(&virtual_hosts[i].port.copies);
	return busy;
}

static const struct hca_transport_ops virtual_ops = {
	.name = "virtual",
	.start = start,
	.stop = stop,
	.reach = reach,
	.open = open_qp,
	.connect = connect_qp,
	.ready = packet_ready,
	.close = close_qp,
	.failed = packet_failed,
	.transmit = packet_transmit,
	.posted = posted,
	.expired = packet_expired,
	.poll = poll_one,
	.pending = pending,
	.fence = { .qp = fence_qp, .key = fence_key, .key_busy = key_busy },
};

void virtual_device(void)
{
	static const struct hca_transport_ops *const list[] = { &virtual_ops, NULL };
	struct ibv_device **devices;

	setenv("BUSBAR_TRANSPORTS", "virtual", 1);
	setenv("BUSBAR_DEVICES", "soft", 1);
	hca_transports_register(list);
	devices = ibv_get_device_list(NULL);
	expect(devices && devices[0]);
	virtual_ctx = ibv_open_device(devices[0]);
	expect(virtual_ctx);
	ibv_free_device_list(devices);
	virtual_pd = ibv_alloc_pd(virtual_ctx);
	expect(virtual_pd);
}

/* ---- a run ---- */

static void open_host(unsigned i)
{
	struct virtual_host *h = &virtual_hosts[i];
	const struct carrier_upper upper = { link_deliver, link_writable, h };

	h->number = i;
	h->end = carrier_sim_end(virtual_sim, i);
	h->link.ops = &link_ops;
	carrier_set_upper(h->end, &upper);
	h->port.ops = &virtual_ops;
	h->port.medium = &medium;
	h->port.train = train;
	h->port.buffer_bytes = virtual_buffer_bytes;
	h->merged = 0;
	expect_eq(packet_port_open(&h->port, &h->link), 0);
}

/* Runs the progress thread until the adapter sees that the program of an earlier run polls no
 * longer. */
static void settle(void)
{
	uint64_t end = (virtual_now_ns() / ALIGN_NS + 1) * ALIGN_NS, next;

	while (virtual_now_ns() < end) {
		next = virtual_progress();
		if (next > virtual_now_ns())
			virtual_set_ns(MIN(next, end));
	}
	hca_self.since_move = hca_self.polls = 0;
	hca_self.polls_found = hca_self.yielded = false;
	hca_process.streak = 0;
	hca_process.kicked = false;
}

void virtual_open(const struct carrier_sim_params *params)
{
	struct carrier_sim_params p = *params;

	medium = roce_medium;
	medium.address = address;
	medium.too_long = NULL;
	settle();
	p.start_ns = virtual_now_ns();
	expect_eq(carrier_sim_open(&p, &virtual_sim), 0);
	for (unsigned i = 0; i < p.ends; i++)
		open_host(i);
	open_hosts = p.ends;
}

void virtual_close(void)
{
	for (unsigned i = 0; i < open_hosts; i++)
		packet_port_close(&virtual_hosts[i].port);
	open_hosts = 0;
	carrier_sim_close(virtual_sim);
	virtual_sim = NULL;
	virtual_judge = NULL;
	virtual_watcher = NULL;
	virtual_train = 1;
	virtual_buffer_bytes = 0;
}

void virtual_advance(uint64_t until_ns)
{
	int end = carrier_sim_next(virtual_sim, until_ns);
	struct clock_source clock = carrier_sim_clock(virtual_sim);

	virtual_set_ns(clock_source_now_ns(&clock));
	if (end >= 0)
		packet_port_wake(&virtual_hosts[end].port);
}
