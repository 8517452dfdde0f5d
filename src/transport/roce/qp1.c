/* SPDX-License-Identifier: BSD-2-Clause */
/* See qp1.h. */
#include "transport/roce/qp1.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "hca/host/allowed.h"
#include "hca/host/gid.h"
#include "hca/run/progress.h"
#include "hca/share/counters.h"
#include "hca/share/process.h"
#include "transport/carrier/udp.h"
#include "transport/packet/base/train.h"
#include "transport/packet/packet.h"
#include "transport/roce/packets.h"
#include "util/clock_source.h"

#define UNITS_PER_EVENT 32
#define HOPS 64
/* A datagram of the connection manager has 280 bytes. */
#define PACKET_BYTES 1024

static struct {
	struct carrier *udp;               /* over the socket of slot 0, for receiving */
	struct carrier *carrier;           /* `udp`, or a filter over it */
	struct packet_port *_Atomic port;  /* for sending; NULL: closed */
} qp1;

/* Is it a packet of this host that came over two interfaces of one segment, and not by the
 * loopback interface, where the filter of the sockets sees it (slots.c)? */
static bool is_strangers(const uint8_t source[16], uint16_t port)
{
	union ibv_gid gid;

	if (likely(port == roce_udp_port))
		return false;
	memcpy(gid.raw, source, sizeof(gid.raw));
	return hca_gid_is_local(&gid);
}

static void deliver(void *arg, const struct carrier_unit *unit)
{
	const uint8_t *bytes = unit->iov[0].iov_base;
	struct hca_gsi_address from = { .interface = unit->interface };
	enum packet_fault fault = PACKET_MALFORMED;
	struct icrc_series series = { 0 };
	struct packet_frame f;
	uint16_t port, own_port;
	size_t header;

	(void)arg;
	/* Other packets do not come to this queue pair in trains or in pieces. */
	if (unit->count != 1 || carrier_unit_packets(unit, unit->iov[0].iov_len) != 1)
		return;
	header = roce_medium.decode(unit, &series, 0, bytes, unit->iov[0].iov_len, &f, &fault);
	if (!header || f.rc.bytes > unit->iov[0].iov_len - header) {
		packet_count_fault(fault);
		return;
	}
	if (f.service != PACKET_UD || f.dst_qpn != HCA_GSI_QPN) {
		HCA_COUNT_PROCESS(UNKNOWN_QP, 1);
		return;
	}
	if (f.qkey != HCA_GSI_QKEY) {
		HCA_COUNT_PROCESS(WRONG_QKEYS, 1);
		return;
	}
	if (!carrier_udp_addr_ip(&unit->from, from.source, &port) ||
	    !carrier_udp_addr_ip(&unit->to, from.destination, &own_port))
		return;
	if (is_strangers(from.source, port)) {
		HCA_COUNT_PROCESS(STRANGERS, 1);
		return;
	}
	/* Only link-local addresses need an interface. */
	if (from.source[0] != 0xfe || (from.source[1] & 0xc0) != 0x80)
		from.interface = 0;
	roce_gsi_arrived(&from, bytes + header, f.rc.bytes);
}

static void readable(void *arg, uint32_t events)
{
	(void)arg;
	(void)events;
	carrier_poll(qp1.carrier, UNITS_PER_EVENT);
}

int roce_qp1_open(int fd, struct packet_port *port)
{
	const struct carrier_udp_params params = { .fd = fd, .clock = clock_source_host(),
						   .no_trains = true,
						   .packet_bytes = PACKET_BYTES };
	const struct carrier_upper upper = { .deliver = deliver };
	int ret = carrier_udp_open(&params, &qp1.udp);

	if (ret)
		return ret;
	qp1.carrier = qp1.udp;
	ret = packet_show_udp(port, &qp1.carrier);
	carrier_set_upper(qp1.carrier, &upper);
	if (!ret)
		ret = progress_watch(fd, EPOLLIN, readable, NULL);
	if (ret) {
		carrier_close(qp1.carrier);
		qp1.carrier = NULL;
		return ret;
	}
	atomic_store(&qp1.port, port);
	return 0;
}

void roce_qp1_close(void)
{
	if (!atomic_exchange(&qp1.port, NULL))
		return;
	progress_unwatch(carrier_udp_fd(qp1.udp));
	carrier_close(qp1.carrier);
	qp1.carrier = NULL;
}

void roce_qp1_forked(void)
{
	atomic_store(&qp1.port, NULL);
	carrier_close(qp1.carrier);
	qp1.carrier = NULL;
}

int roce_qp1_emit(const struct hca_gsi_address *to, const uint8_t mad[HCA_GSI_MAD_BYTES])
{
	struct packet_port *port = atomic_load(&qp1.port);
	const struct packet_frame f = {
		.rc = { .op = RC_SEND, .flags = RC_FIRST | RC_LAST,
			.bytes = HCA_GSI_MAD_BYTES },
		.service = PACKET_UD,
		.dst_qpn = HCA_GSI_QPN,
		.src_qpn = HCA_GSI_QPN,
		.qkey = HCA_GSI_QKEY,
	};
	struct packet_route route = {
		.to = carrier_udp_addr_of(to->destination, to->interface, roce_udp_port),
		.from = carrier_udp_addr_of(to->source, to->interface, 0),
		.known = CARRIER_FROM | CARRIER_TTL,
		.ttl = HOPS,
	};
	struct icrc_series series = { 0 };
	struct packet_train train;
	struct iovec *iov;

	if (!port)
		return -ENETDOWN;
	if (!hca_network_allows(to->source))
		return -EHOSTUNREACH;
	packet_train_open(&train, port, HCA_GSI_QPN, &route, &series);
	iov = packet_train_begin(&train, &f);
	*iov = (struct iovec){ (void *)(uintptr_t)mad, HCA_GSI_MAD_BYTES };
	packet_train_end(&train, 1);
	return packet_train_emit(&train);
}
