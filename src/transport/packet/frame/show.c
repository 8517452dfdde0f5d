/* SPDX-License-Identifier: BSD-2-Clause */
/* The capture of the process; see show.h. */
#define LOG_ROOM "capture"
#include "transport/packet/frame/show.h"

#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hca/host/settings.h"
#include "hca/path/path.h"
#include "hca/qp/address.h"
#include "transport/carrier/capture.h"
#include "util/container_of.h"
#include "util/list.h"
#include "util/log.h"
#include "util/spin.h"

#define BUCKETS 1024u
#define MTU_UNKNOWN 1024
#define NAME_BYTES 32

/* What the capture knows of a connected queue pair. */
struct known {
	struct list entry;
	uint32_t qpn, mtu;
	struct packet_ends out; /* from here to the peer */
};

static struct {
	unsigned users; /* transports that have started; process.lock */
	struct capture *capture;
	atomic_bool on;
	atomic_uint inside; /* calls that use `capture` */
	struct spin lock;   /* of the table */
	struct list table[BUCKETS];
} show;

bool packet_show_wanted(void)
{
	return hca_settings.capture[0];
}

/* ---- the table; the lock is held ---- */

static struct known *find(uint32_t qpn)
{
	struct list *bucket = &show.table[qpn % BUCKETS];

	if (!bucket->next)
		return NULL;
	list_for_each(k, bucket, struct known, entry)
		if (k->qpn == qpn)
			return k;
	return NULL;
}

static void forget_all(void)
{
	struct list *entry;

	for (unsigned i = 0; i < BUCKETS; i++)
		while (show.table[i].next && (entry = list_pop(&show.table[i])))
			free(list_entry(entry, struct known, entry));
}

void packet_show_connected(const struct hca_qp *qp)
{
	struct known *k = calloc(1, sizeof(*k)), *old;
	struct ibv_ah_attr to;
	union ibv_gid source;

	if (!k)
		return;
	k->qpn = qp->ibv.qp_num;
	k->mtu = qp->attr.path_mtu ? 128u << qp->attr.path_mtu : MTU_UNKNOWN;
	hca_address_complete(&qp->attr.ah_attr, &to, &source);
	memcpy(k->out.src, source.raw, sizeof(k->out.src));
	memcpy(k->out.dst, to.grh.dgid.raw, sizeof(k->out.dst));
	k->out.tos = to.grh.traffic_class;
	k->out.ttl = to.grh.hop_limit;
	spin_lock(&show.lock);
	old = find(k->qpn);
	if (old)
		list_remove(&old->entry);
	if (!show.table[k->qpn % BUCKETS].next)
		list_init(&show.table[k->qpn % BUCKETS]);
	list_push(&show.table[k->qpn % BUCKETS], &k->entry);
	spin_unlock(&show.lock);
	free(old);
}

void packet_show_closed(const struct hca_qp *qp)
{
	struct known *k;

	spin_lock(&show.lock);
	k = find(qp->ibv.qp_num);
	if (k)
		list_remove(&k->entry);
	spin_unlock(&show.lock);
	free(k);
}

uint32_t packet_show_mtu(uint32_t qpn)
{
	const struct known *k;
	uint32_t mtu;

	spin_lock(&show.lock);
	k = find(qpn);
	mtu = k ? k->mtu : MTU_UNKNOWN;
	spin_unlock(&show.lock);
	return mtu;
}

/* ---- packets ---- */

static void gid_of_ipv4(uint8_t gid[16], const void *ip)
{
	memset(gid, 0, 10);
	memset(gid + 10, 0xff, 2);
	memcpy(gid + 12, ip, 4);
}

static void ends_of_grh(const struct packet_frame *f, struct packet_ends *ends)
{
	struct ip6_hdr ip6;
	struct iphdr ip;

	if (f->ipv4) {
		memcpy(&ip, f->grh + HCA_GRH_BYTES - sizeof(ip), sizeof(ip));
		gid_of_ipv4(ends->src, &ip.saddr);
		gid_of_ipv4(ends->dst, &ip.daddr);
		ends->tos = ip.tos;
		ends->ttl = ip.ttl;
	} else {
		memcpy(&ip6, f->grh, sizeof(ip6));
		memcpy(ends->src, &ip6.ip6_src, sizeof(ends->src));
		memcpy(ends->dst, &ip6.ip6_dst, sizeof(ends->dst));
		ends->tos = (uint8_t)(ntohl(ip6.ip6_flow) >> 20);
		ends->ttl = ip6.ip6_hlim;
	}
}

static void ends_of(const struct packet_frame *f, enum carrier_direction direction,
		    struct packet_ends *ends)
{
	static const uint8_t host[4] = { 127, 0, 0, 1 };
	uint32_t own = direction == CARRIER_OUT ? f->src_qpn : f->dst_qpn;
	const struct known *k;

	memset(ends, 0, sizeof(*ends));
	if (f->service == PACKET_UD) {
		ends_of_grh(f, ends);
		return;
	}
	gid_of_ipv4(ends->src, host);
	gid_of_ipv4(ends->dst, host);
	spin_lock(&show.lock);
	k = find(own);
	if (k)
		*ends = k->out;
	spin_unlock(&show.lock);
	if (k && direction == CARRIER_IN) {
		uint8_t src[16];

		memcpy(src, ends->src, sizeof(src));
		memcpy(ends->src, ends->dst, sizeof(src));
		memcpy(ends->dst, src, sizeof(src));
	}
}

void packet_show(const struct hca_transport_ops *ops, enum carrier_direction direction,
		 const struct packet_frame *f, const struct iovec *payload, unsigned n,
		 const char *comment)
{
	uint8_t bytes[PACKET_SHOW_BYTES];
	struct packet_ends ends;
	struct capture_packet p = {
		.direction = direction,
		.data = bytes,
		.interface = hca_path_number(ops),
		.comment = comment,
	};

	/* packet_show_stop() changes `on` and then looks at `inside`. */
	atomic_fetch_add(&show.inside, 1);
	if (atomic_load(&show.on)) {
		ends_of(f, direction, &ends);
		p.bytes = (uint32_t)packet_show_encode(&ends, f, payload, n, bytes);
		capture_packet(show.capture, &p);
	}
	atomic_fetch_sub(&show.inside, 1);
}

void packet_show_bytes(const struct hca_transport_ops *ops,
		       enum carrier_direction direction, const struct packet_ends *ends,
		       const void *ib, size_t bytes)
{
	uint8_t frame[PACKET_SHOW_BYTES];
	struct capture_packet p = {
		.direction = direction,
		.data = frame,
		.interface = hca_path_number(ops),
	};

	atomic_fetch_add(&show.inside, 1);
	if (atomic_load(&show.on)) {
		p.bytes = (uint32_t)packet_show_wrap(ends, ib, bytes, frame);
		capture_packet(show.capture, &p);
	}
	atomic_fetch_sub(&show.inside, 1);
}

void packet_show_tcp(const struct hca_transport_ops *ops, enum carrier_direction direction,
		     const struct packet_ends *ends, const struct packet_tcp *tcp,
		     const void *data, size_t bytes)
{
	uint8_t frame[PACKET_SHOW_BYTES];
	struct capture_packet p = {
		.direction = direction,
		.data = frame,
		.interface = hca_path_number(ops),
	};

	atomic_fetch_add(&show.inside, 1);
	if (atomic_load(&show.on)) {
		p.bytes = (uint32_t)packet_show_segment(ends, tcp, data, bytes, frame);
		capture_packet(show.capture, &p);
	}
	atomic_fetch_sub(&show.inside, 1);
}

/* ---- life ---- */

static void open_capture(void)
{
	char names[CAPTURE_INTERFACES][NAME_BYTES];
	struct capture_params p = {
		.path = hca_settings.capture,
		.file_bytes = hca_settings.capture_bytes,
		.files = (unsigned)hca_settings.capture_files,
		.snap = (uint32_t)hca_settings.capture_snap,
		.link = PCAPNG_ETHERNET,
		.application = "busbar",
	};

	for (unsigned i = 0; i < hca_transports.count && i < CAPTURE_INTERFACES; i++) {
		snprintf(names[i], sizeof(names[i]), "soft%d-%s", hca_transports.at[i]->stream ? 1 : 0,
			 hca_transports.at[i]->name);
		p.interfaces[i] = names[i];
	}
	if (capture_open(&p, &show.capture))
		show.capture = NULL;
	atomic_store(&show.on, show.capture);
}

static void close_capture(void)
{
	unsigned tries = 0;

	atomic_store(&show.on, false);
	while (atomic_load(&show.inside))
		spin_wait(++tries);
	capture_close(show.capture);
	show.capture = NULL;
}

void packet_show_start(void)
{
	if (packet_show_wanted() && !show.users++)
		open_capture();
}

void packet_show_stop(void)
{
	if (!packet_show_wanted() || !show.users || --show.users)
		return;
	close_capture();
	spin_lock(&show.lock);
	forget_all();
	spin_unlock(&show.lock);
}

void packet_show_forked(void)
{
	show.users = 0;
	atomic_store(&show.on, false);
	atomic_store(&show.inside, 0);
	show.lock = (struct spin){ 0 };
	capture_forked(show.capture);
	show.capture = NULL;
	forget_all();
}

/* The program ends without closing its devices. */
__attribute__((destructor)) static void at_exit(void)
{
	if (show.users)
		close_capture();
}
