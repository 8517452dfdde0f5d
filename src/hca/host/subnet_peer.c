/* SPDX-License-Identifier: BSD-2-Clause */
/* Other hosts of the simulated subnet; see subnet_peer.h. */
#include "hca/host/subnet_peer.h"

#include <endian.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "hca/host/subnet.h"
#include "util/clock.h"

#define NETWORK 10 /* the first byte of addresses */
#define PLACES 256u
#define KEPT_NS NSEC_PER_SEC

struct known {
	struct plug_peer peer; /* host_number 0: not known; lid 0: the place is empty */
	uint64_t at_ns;
};

static struct {
	pthread_mutex_t lock; /* a leaf */
	struct known at[PLACES];
	unsigned next;
	const struct hca_subnet_ops *_Atomic ops;
} peers = { .lock = PTHREAD_MUTEX_INITIALIZER };

void hca_subnet_set_ops(const struct hca_subnet_ops *ops)
{
	atomic_store(&peers.ops, ops);
}

int hca_subnet_path_to(const union ibv_gid *to, struct hca_subnet_path *path)
{
	const struct hca_subnet_ops *ops = atomic_load(&peers.ops);

	return ops ? ops->path(to, path) : -ENETDOWN;
}

int hca_subnet_join(const union ibv_gid *mgid, bool sends_only, struct hca_subnet_path *path)
{
	const struct hca_subnet_ops *ops = atomic_load(&peers.ops);

	return ops ? ops->join(mgid, sends_only, path) : -ENETDOWN;
}

/* ---- what is known; the lock is held ---- */

static struct known *look_up(const struct plug_peer *wanted)
{
	for (unsigned i = 0; i < PLACES; i++) {
		const struct plug_peer *p = &peers.at[i].peer;

		if (p->lid && (wanted->host_number ? p->host_number == wanted->host_number :
						     p->port_guid == wanted->port_guid))
			return &peers.at[i];
	}
	return NULL;
}

static void keep(const struct plug_peer *peer)
{
	struct known *k = look_up(peer);

	if (!k)
		k = &peers.at[peers.next++ % PLACES];
	k->peer = *peer;
	k->at_ns = clock_monotonic_ns_slow();
}

/* ---- questions ---- */

static int find(struct plug_peer *peer)
{
	const struct hca_subnet_ops *ops = atomic_load(&peers.ops);
	const struct known *k;
	bool fresh;
	int ret;

	pthread_mutex_lock(&peers.lock);
	k = look_up(peer);
	fresh = k && clock_monotonic_ns_slow() - k->at_ns < KEPT_NS;
	if (fresh)
		*peer = k->peer;
	pthread_mutex_unlock(&peers.lock);
	if (fresh)
		return 0;
	ret = ops ? ops->find(peer) : -ENETDOWN;
	if (ret)
		return ret;
	pthread_mutex_lock(&peers.lock);
	keep(peer);
	pthread_mutex_unlock(&peers.lock);
	return 0;
}

void hca_subnet_own_ipv4(uint8_t ip[4])
{
	struct plug_welcome host;
	uint32_t address;

	hca_subnet_host(&host);
	address = htobe32((uint32_t)NETWORK << 24 | (host.host_number & 0xffffff));
	memcpy(ip, &address, sizeof(address));
}

int hca_subnet_gid_of_ipv4(const uint8_t ip[4], union ibv_gid *gid)
{
	struct plug_peer peer = { .host_number = (uint32_t)(ip[1] << 16 | ip[2] << 8 | ip[3]) };
	struct plug_port own;
	int ret;

	if (ip[0] != NETWORK || !peer.host_number)
		return -ENOENT;
	ret = find(&peer);
	if (ret)
		return ret;
	hca_subnet_port(&own);
	gid->global.subnet_prefix = htobe64(own.subnet_prefix);
	gid->global.interface_id = htobe64(peer.port_guid);
	return 0;
}

int hca_subnet_lid_of_gid(const union ibv_gid *gid, uint16_t *lid)
{
	struct plug_peer peer = { .port_guid = be64toh(gid->global.interface_id) };
	int ret = peer.port_guid ? find(&peer) : -ENOENT;

	if (!ret && !peer.lid)
		ret = -ENETDOWN;
	if (!ret)
		*lid = peer.lid;
	return ret;
}

void hca_subnet_learn_lid(const union ibv_gid *gid, uint16_t lid)
{
	const struct plug_peer wanted = { .port_guid = be64toh(gid->global.interface_id) };
	struct known *k;

	pthread_mutex_lock(&peers.lock);
	k = look_up(&wanted);
	if (k) {
		k->peer.lid = lid;
		k->at_ns = clock_monotonic_ns_slow();
	} else if (wanted.port_guid) {
		keep(&(struct plug_peer){ .port_guid = wanted.port_guid, .lid = lid });
	}
	pthread_mutex_unlock(&peers.lock);
}

void hca_subnet_peer_forked(void)
{
	pthread_mutex_init(&peers.lock, NULL);
	atomic_store(&peers.ops, NULL);
}
