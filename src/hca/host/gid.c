/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * GID table of the port: one RoCE v2 GID for every address of the host (of its
 * network namespace), loopback last. The interfaces are read again when the table is older
 * than REFRESH_NS, so that addresses added later are found. Indices remain the same as long
 * as the set of addresses does.
 *
 * The length of the table is constant, and unused entries are empty: a program that has
 * read the length once finds addresses that are added later.
 *
 * A port of a simulated InfiniBand subnet (subnet.h) has other GIDs: the prefix of its subnet with each
 * of its GUIDs. They are taken from there at each look.
 */
#define LOG_ROOM "hca"
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netpacket/packet.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hca/host/gid.h"
#include "hca/host/settings.h"
#include "hca/host/subnet.h"
#include "hca/limits.h"
#include "util/cancel.h"
#include "util/clock.h"
#include "util/container_of.h"
#include "util/list.h"
#include "util/log.h"

#define REFRESH_NS (200 * UINT64_C(1000000))

static struct {
	pthread_mutex_t lock;
	uint64_t read_at_ns;
	unsigned count;
	bool up; /* any interface is up and has its link */
	enum ibv_mtu mtu; /* hca_port_network_mtu() */
	union ibv_gid hardware; /* hca_gid_of_hardware() */
	uint32_t hardware_of;
	struct ibv_gid_entry entries[HCA_MAX_GIDS];
} table = { .lock = PTHREAD_MUTEX_INITIALIZER, .up = true, .mtu = IBV_MTU_4096 };

/* 0: IPv4, 1: IPv6, 2: link-local, 3: IPv4 loopback, 4: IPv6 loopback. */
static int rank_of(const struct ifaddrs *ifa)
{
	bool loopback = ifa->ifa_flags & IFF_LOOPBACK;

	if (ifa->ifa_addr->sa_family == AF_INET)
		return loopback ? 3 : 0;
	if (IN6_IS_ADDR_LINKLOCAL(
		    &((struct sockaddr_in6 *)(void *)ifa->ifa_addr)->sin6_addr))
		return 2;
	return loopback ? 4 : 1;
}

static void gid_of(const struct sockaddr *sa, union ibv_gid *gid)
{
	memset(gid, 0, sizeof(*gid));
	if (sa->sa_family == AF_INET6) {
		memcpy(gid->raw,
		       &((const struct sockaddr_in6 *)(const void *)sa)->sin6_addr,
		       16);
		return;
	}
	gid->raw[10] = gid->raw[11] = 0xff;
	memcpy(gid->raw + 12,
	       &((const struct sockaddr_in *)(const void *)sa)->sin_addr, 4);
}

static bool known(const union ibv_gid *gid)
{
	for (unsigned i = 0; i < table.count; i++)
		if (!memcmp(table.entries[i].gid.raw, gid->raw, 16))
			return true;
	return false;
}

static void add_rank(const struct ifaddrs *list, int rank)
{
	for (const struct ifaddrs *i = list; i; i = i->ifa_next) {
		struct ibv_gid_entry *e = &table.entries[table.count];
		union ibv_gid gid;

		if (!i->ifa_addr || !(i->ifa_flags & IFF_UP) ||
		    (i->ifa_addr->sa_family != AF_INET &&
		     i->ifa_addr->sa_family != AF_INET6) ||
		    rank_of(i) != rank || table.count == HCA_MAX_GIDS)
			continue;
		gid_of(i->ifa_addr, &gid);
		if (known(&gid))
			continue;
		*e = (struct ibv_gid_entry){
			.gid = gid,
			.gid_index = table.count,
			.port_num = 1,
			.gid_type = hca_settings.link_layer == HCA_LINK_INFINIBAND ?
					    IBV_GID_TYPE_IB : IBV_GID_TYPE_ROCE_V2,
			.ndev_ifindex = if_nametoindex(i->ifa_name),
		};
		table.count++;
	}
}

/* The longest path MTU whose packets the interface takes whole. */
static enum ibv_mtu mtu_of(int fd, const char *interface)
{
	struct ifreq request = { .ifr_mtu = 0 };
	enum ibv_mtu mtu = IBV_MTU_256;

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", interface);
	if (ioctl(fd, SIOCGIFMTU, &request))
		return IBV_MTU_4096;
	while (mtu < IBV_MTU_4096 && (256 << mtu) + HCA_PACKET_HEADERS <= request.ifr_mtu)
		mtu++;
	return mtu;
}

static bool is_way_out(const struct ifaddrs *i)
{
	const unsigned active = IFF_UP | IFF_RUNNING;

	return i->ifa_addr && (i->ifa_flags & (active | IFF_LOOPBACK)) == active &&
	       (i->ifa_addr->sa_family == AF_INET || i->ifa_addr->sa_family == AF_INET6);
}

static enum ibv_mtu network_mtu(const struct ifaddrs *list)
{
	enum ibv_mtu mtu = IBV_MTU_4096;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return mtu;
	for (const struct ifaddrs *i = list; i; i = i->ifa_next)
		if (is_way_out(i))
			mtu = MIN(mtu, mtu_of(fd, i->ifa_name));
	close(fd);
	return mtu;
}

static void read_hardware(const struct ifaddrs *list)
{
	memset(&table.hardware, 0, sizeof(table.hardware));
	table.hardware_of = 0;
	for (const struct ifaddrs *i = list; i; i = i->ifa_next) {
		const struct sockaddr_ll *at = (const void *)i->ifa_addr;

		if (!at || at->sll_family != AF_PACKET || i->ifa_flags & IFF_LOOPBACK ||
		    !(i->ifa_flags & IFF_UP) || at->sll_halen != 6)
			continue;
		memcpy(table.hardware.raw, at->sll_addr, 6);
		table.hardware_of = (uint32_t)at->sll_ifindex;
		return;
	}
}

/* table.lock is held. */
static void read_subnet(void)
{
	struct plug_port port;

	hca_subnet_port(&port);
	table.count = 0;
	/* No GID behind an empty one, so that each has its index in GUIDInfo. */
	while (table.count < port.guid_count && port.guids[table.count]) {
		struct ibv_gid_entry *e = &table.entries[table.count];

		*e = (struct ibv_gid_entry){ .gid_index = table.count, .port_num = 1,
					     .gid_type = IBV_GID_TYPE_IB };
		e->gid.global.subnet_prefix = htobe64(port.subnet_prefix);
		e->gid.global.interface_id = htobe64(port.guids[table.count]);
		table.count++;
	}
	table.up = port.state == IBV_PORT_ACTIVE;
	table.mtu = (enum ibv_mtu)port.mtu_active;
}

/* table.lock is held. 0 or a negative errno. */
static int read_interfaces(void)
{
	struct ifaddrs *list;

	if (hca_subnet_on()) {
		read_subnet();
		return 0;
	}

	if (getifaddrs(&list)) {
		int ret = -errno;

		log_warn("addresses of this host not readable: %m");
		return ret;
	}
	table.count = 0;
	for (int rank = 0; rank <= 4; rank++)
		add_rank(list, rank);
	table.up = false;
	for (const struct ifaddrs *i = list; i; i = i->ifa_next)
		table.up |= (i->ifa_flags & (IFF_UP | IFF_RUNNING)) ==
			    (IFF_UP | IFF_RUNNING);
	table.mtu = network_mtu(list);
	read_hardware(list);
	freeifaddrs(list);
	table.read_at_ns = clock_now_ns();
	return 0;
}

/* table.lock is held. */
static void refresh(void)
{
	if (!table.count || hca_subnet_on() || clock_now_ns() - table.read_at_ns >= REFRESH_NS)
		read_interfaces();
}

int hca_gid_digest(uint64_t *digest, bool *up)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);
	int ret;

	CANCEL_OFF; /* getifaddrs() and close() are cancellation points */
	pthread_mutex_lock(&table.lock);
	ret = read_interfaces();
	for (unsigned i = 0; i < table.count; i++)
		for (unsigned b = 0; b < sizeof(table.entries[i].gid.raw); b++)
			hash = (hash ^ table.entries[i].gid.raw[b]) *
			       UINT64_C(0x100000001b3);
	*digest = hash;
	*up = table.up;
	pthread_mutex_unlock(&table.lock);
	return ret;
}

void hca_gid_of_hardware(union ibv_gid *gid, uint32_t *interface)
{
	CANCEL_OFF;
	pthread_mutex_lock(&table.lock);
	refresh();
	*gid = table.hardware;
	*interface = table.hardware_of;
	pthread_mutex_unlock(&table.lock);
}

bool hca_port_is_up(void)
{
	bool up;

	CANCEL_OFF;
	pthread_mutex_lock(&table.lock);
	refresh();
	up = table.up;
	pthread_mutex_unlock(&table.lock);
	return up;
}

enum ibv_mtu hca_port_network_mtu(void)
{
	enum ibv_mtu mtu;

	CANCEL_OFF;
	pthread_mutex_lock(&table.lock);
	refresh();
	mtu = table.mtu;
	pthread_mutex_unlock(&table.lock);
	return mtu;
}

int hca_gid_by_index(uint32_t index, struct ibv_gid_entry *entry)
{
	int ret = index < HCA_MAX_GIDS ? -ENODATA : -EINVAL;

	CANCEL_OFF;
	pthread_mutex_lock(&table.lock);
	refresh();
	if (index < table.count) {
		*entry = table.entries[index];
		ret = 0;
	}
	pthread_mutex_unlock(&table.lock);
	return ret;
}

bool hca_gid_is_local(const union ibv_gid *gid)
{
	/* All of 127.0.0.0/8 is this host. */
	static const uint8_t v4_loopback[13] = { [10] = 0xff, [11] = 0xff,
						 [12] = 127 };
	bool found;

	if (!memcmp(gid->raw, v4_loopback, sizeof(v4_loopback)) && !hca_subnet_on())
		return true;
	CANCEL_OFF;
	pthread_mutex_lock(&table.lock);
	refresh();
	found = known(gid);
	pthread_mutex_unlock(&table.lock);
	return found;
}

void hca_gid_forked(void)
{
	/* Another thread of the parent may have been reading the addresses. */
	pthread_mutex_init(&table.lock, NULL);
	table.count = 0;
}
