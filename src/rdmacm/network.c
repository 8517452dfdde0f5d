/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Links between hosts: CM messages as datagrams from queue pair 1 to queue pair 1
 * (hca/path/gsi.h). They may be lost, doubled and reordered, which the machines expect, and
 * anybody may have sent them. Nothing tells the end of a peer: there are only timeouts,
 * and programs whose queue pairs fail.
 *
 * A link is only the way to an address. Each identifier has its own; in the table of route.c
 * a peer's number is made from its address.
 */
#define LOG_ROOM "rdmacm"
#include "rdmacm/network.h"

#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/log.h"
#include "verbs/private.h"

/* Headers of a packet of RoCE v2 at most, as Linux counts them: IPv6, UDP, BTH, XRC or DETH,
 * atomic, ICRC. */
#define HEADERS 96
/* Set in numbers of peers; addresses of local links do not have it. */
#define PEER_BIT (UINT64_C(1) << 63)

/* A service of this process. Its listener holds it, and each request that came for it until
 * it is settled: the caller may repeat the request though the listener is closed. */
struct cma_service {
	struct list entry;
	struct hca_gsi_service at;
	unsigned holders;
};

static struct {
	pthread_mutex_t lock;
	struct list services;
	_Atomic bool open;
} net = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.services = { &net.services, &net.services },
};

/* ---- links ---- */

/* Different for different addresses, but for an accident of 2^-63. */
static uint64_t peer_number(const uint8_t gid[16], uint32_t interface)
{
	static _Atomic uint64_t salt;
	uint64_t hash = atomic_load(&salt), none = 0;

	if (!hash) {
		hash = (uint64_t)cma_random(UINT32_MAX) << 32 |
		       cma_random(UINT32_MAX) | 1;
		if (!atomic_compare_exchange_strong(&salt, &none, hash))
			hash = none;
	}
	for (unsigned i = 0; i < 20; i++) {
		hash ^= i < 16 ? gid[i] : interface >> 8 * (i - 16) & 0xff;
		hash *= UINT64_C(0x9e3779b97f4a7c15);
		hash ^= hash >> 29;
	}
	return hash | PEER_BIT;
}

struct cma_link *network_link(const struct hca_gsi_address *way)
{
	struct cma_link *link = calloc(1, sizeof(*link));

	if (!link)
		return NULL;
	pthread_mutex_init(&link->lock, NULL);
	list_init(&link->entry);
	list_init(&link->ids);
	list_init(&link->waiting);
	link->fd = -1;
	link->is_network = true;
	link->way = *way;
	link->peer = peer_number(way->destination, way->interface);
	atomic_init(&link->refs, 1);
	return link;
}

const struct hca_gsi_address *cma_link_way(const struct cma_link *link)
{
	return link && link->is_network ? &link->way : NULL;
}

void network_send(struct cma_link *link, const uint8_t *bytes)
{
	int ret = busbar_gsi_send(&link->way, bytes);

	/* The machine repeats it. */
	if (ret)
		log_debug("message to another host not sent: %s", strerror(-ret));
}

/* On the progress thread. */
static void receive(const struct hca_gsi_address *from, const uint8_t *bytes)
{
	struct hca_gsi_address way = { .interface = from->interface };
	struct cma_link *link;
	struct cm_mad mad;

	if (wire_cm_decode(bytes, CM_MAD_SIZE, &mad))
		return;
	memcpy(way.source, from->destination, sizeof(way.source));
	memcpy(way.destination, from->source, sizeof(way.destination));
	link = network_link(&way);
	if (!link)
		return;
	route_message(link, &mad);
	link_put(link);
}

int cma_network_open(void)
{
	int ret = 0;

	if (atomic_load(&net.open))
		return 0;
	ret = busbar_gsi_open(receive);
	if (ret && ret != -EALREADY) {
		log_warn("no connections to other hosts: %s", strerror(-ret));
		return ret;
	}
	atomic_store(&net.open, true);
	return 0;
}

uint32_t network_comm_id(uint32_t number)
{
	return busbar_gsi_comm_id(number);
}

/* The interface of a link-local destination; 0: it is not link-local. */
static uint32_t scope_of(const struct cma_id *id)
{
	const struct rdma_addr *addr = &id->pub.route.addr;
	const uint8_t *gid = addr->addr.ibaddr.dgid.raw;

	if (gid[0] != 0xfe || (gid[1] & 0xc0) != 0x80)
		return 0;
	if (addr->dst_addr.sa_family == AF_INET6 && addr->dst_sin6.sin6_scope_id)
		return addr->dst_sin6.sin6_scope_id;
	return id->interface;
}

int cma_network_connect(struct cma_id *id)
{
	const struct rdma_ib_addr *ib = &id->pub.route.addr.addr.ibaddr;
	struct hca_gsi_address way = { .interface = scope_of(id) };
	struct cma_link *link;
	int ret;

	memcpy(way.source, ib->sgid.raw, sizeof(way.source));
	memcpy(way.destination, ib->dgid.raw, sizeof(way.destination));
	link = network_link(&way);
	if (!link)
		return -ENOMEM;
	ret = cma_link_attach(id, link);
	link_put(link);
	return ret;
}

/* ---- services ---- */

static struct hca_gsi_service service_of(const struct cma_id *id)
{
	const struct rdma_addr *addr = &id->pub.route.addr;
	const struct sockaddr *bound = &addr->src_addr;
	struct hca_gsi_service s = {
		.service_id = wire_cm_service_id(
			cma_addr_port_space(bound, id->pub.ps), cma_addr_port(bound)),
	};

	if (!cma_addr_is_any(bound)) {
		s.scope = HCA_GSI_ADDRESS;
		memcpy(s.address, addr->addr.ibaddr.sgid.raw, sizeof(s.address));
	} else if (bound->sa_family == AF_INET) {
		s.scope = HCA_GSI_IPV4;
	} else {
		s.scope = bound->sa_family == AF_INET6 && id->v6_only ?
				  HCA_GSI_IPV6 : HCA_GSI_ANY;
	}
	return s;
}

/* net.lock is held. */
static struct cma_service *service_find(const struct hca_gsi_service *at)
{
	list_for_each(s, &net.services, struct cma_service, entry)
		if (s->at.service_id == at->service_id && s->at.scope == at->scope &&
		    !memcmp(s->at.address, at->address, sizeof(at->address)))
			return s;
	return NULL;
}

/* net.lock is held. *out: held once more. */
static int service_take(const struct hca_gsi_service *at, struct cma_service **out)
{
	struct cma_service *s = service_find(at);
	int ret;

	if (!s) {
		ret = busbar_gsi_serve(at);
		if (ret)
			return ret;
		s = calloc(1, sizeof(*s));
		if (!s) {
			busbar_gsi_unserve(at);
			return -ENOMEM;
		}
		s->at = *at;
		list_init(&s->entry);
		list_push(&net.services, &s->entry);
	}
	s->holders++;
	*out = s;
	return 0;
}

static void service_give(struct cma_id *id)
{
	struct cma_service *s = id->service;

	id->service = NULL;
	if (!s)
		return;
	pthread_mutex_lock(&net.lock);
	if (!--s->holders) {
		busbar_gsi_unserve(&s->at);
		list_remove(&s->entry);
		free(s);
	}
	pthread_mutex_unlock(&net.lock);
}

int cma_network_listen(struct cma_id *id)
{
	struct hca_gsi_service at = service_of(id);
	int ret;

	if (!busbar_gsi_exists())
		return 0;
	ret = cma_network_open();
	/* Callers of this host reach the listener nevertheless. */
	if (ret)
		return busbar_local_exists() ? 0 : ret;
	pthread_mutex_lock(&net.lock);
	ret = service_take(&at, &id->service);
	pthread_mutex_unlock(&net.lock);
	if (ret)
		log_warn("port %u: requests of other hosts cannot be received: %s",
			 cma_addr_port(&id->pub.route.addr.src_addr), strerror(-ret));
	return ret;
}

void cma_network_unlisten(struct cma_id *id)
{
	service_give(id);
}

void cma_network_serve_child(struct cma_id *child, const struct cma_id *listener)
{
	pthread_mutex_lock(&net.lock);
	child->service = listener->service;
	if (child->service)
		child->service->holders++;
	pthread_mutex_unlock(&net.lock);
}

void network_update(struct cma_id *id)
{
	switch (id->cm.state) {
	case CM_IDLE:
	case CM_LISTEN:
	case CM_REQ_RCVD:
	case CM_REP_SENT:
	case CM_SIDR_REQ_RCVD:
		return;
	case CM_ANSWERED:
		if (cma_id_is_datagram(id))
			return;
		break;
	default:
		break;
	}
	service_give(id);
}

/* ---- limits of the way ---- */

uint8_t cma_network_mtu(uint32_t interface)
{
	struct ifreq request = { .ifr_mtu = 0 };
	uint8_t mtu = IBV_MTU_256;
	int fd, ret;

	if (!if_indextoname(interface, request.ifr_name))
		return IBV_MTU_1024;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return IBV_MTU_1024;
	ret = ioctl(fd, SIOCGIFMTU, &request);
	close(fd);
	if (ret)
		return IBV_MTU_1024;
	while (mtu < IBV_MTU_4096 && (256 << mtu) + HEADERS <= request.ifr_mtu)
		mtu++;
	return mtu;
}

/* ---- end of the process, fork ---- */

/*
 * At the exit of a program that has not called rdma_disconnect(), or called it just before, the
 * peers get a DREQ, which is repeated until they have confirmed it, for END_LOOKS * END_LOOK_NS
 * at most: no process is left afterwards that could repeat it.
 */
#define END_LOOKS 25
#define END_LOOK_NS 4000000
#define END_REPEAT_LOOKS 5

static struct {
	unsigned unconfirmed;
	bool repeats;
} ending;

static void tell_end(struct cma_id *id)
{
	struct cm_output out;
	uint8_t bytes[CM_MAD_SIZE];

	if (pthread_mutex_trylock(&id->lock))
		return;
	if (id->link && id->link->is_network &&
	    !cm_machine_ask(&id->cm, CM_DO_DESTROY, NULL, clock_monotonic_ns_slow(), &out) &&
	    out.send && !wire_cm_encode(&out.mad, bytes))
		network_send(id->link, bytes);
	pthread_mutex_unlock(&id->lock);
}

bool network_remind(struct cma_link *link, const struct cm_machine *m, bool repeats)
{
	uint8_t bytes[CM_MAD_SIZE];

	if (m->state != CM_DREQ_SENT)
		return false;
	if (repeats && !wire_cm_encode(&m->sent, bytes))
		network_send(link, bytes);
	return true;
}

static void remind(struct cma_id *id)
{
	if (pthread_mutex_trylock(&id->lock))
		return;
	if (id->link && id->link->is_network)
		ending.unconfirmed += network_remind(id->link, &id->cm, ending.repeats);
	pthread_mutex_unlock(&id->lock);
}

__attribute__((destructor)) static void network_end(void)
{
	const struct timespec look = { .tv_nsec = END_LOOK_NS };

	if (!atomic_load(&net.open))
		return;
	route_each(tell_end);
	for (unsigned i = 0; i < END_LOOKS; i++) {
		ending.repeats = i && i % END_REPEAT_LOOKS == 0;
		ending.unconfirmed = orphans_remind(ending.repeats);
		route_each(remind);
		if (!ending.unconfirmed)
			return;
		nanosleep(&look, NULL);
	}
}

static void network_forked(void)
{
	pthread_mutex_init(&net.lock, NULL);
	list_init(&net.services);
	atomic_store(&net.open, false);
	orphans_forked();
}

__attribute__((constructor)) static void network_load(void)
{
	pthread_atfork(NULL, NULL, network_forked);
}
