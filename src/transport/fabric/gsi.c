/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pair 1 through a fabric; see gsi.h. */
#define LOG_ROOM "fabric"
#include "transport/fabric/gsi.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "hca/host/subnet.h"
#include "hca/host/subnet_peer.h"
#include "hca/run/progress.h"
#include "transport/fabric/packets.h"
#include "transport/fabric/qp1.h"
#include "transport/fabric/sa.h"
#include "util/abstract.h"
#include "util/clock.h"
#include "util/log.h"
#include "wire/cm_answer.h"
#include "wire/mad/mad.h"

#define NAME_SLOT "busbar.fabric.cm.%016llx.%u"
#define NAME_SERVICE "busbar.fabric.service.%016llx.%llx.%s"
#define WAITING_MAX 256u
#define SERVICES_MAX 1024u
#define HOPS 1 /* there are no routers */
/* Requests that wait for a listener, how long, and how often it is looked for. */
#define HELD_MAX 16u
#define HOLD_NS (NSEC_PER_SEC / 2)
#define LOOK_NS (NSEC_PER_SEC / 50)

struct arrival {
	struct hca_gsi_address from;
	uint8_t mad[HCA_GSI_MAD_BYTES];
};

/* A request that no service of this process is for. */
struct held {
	struct arrival at;
	struct cm_mad mad;
	uint64_t until_ns; /* 0: the place is free */
};

/* A service of this process. */
struct service {
	struct hca_gsi_service at;
	int fd; /* of its name; -1: the place is free */
};

static void due(struct progress_timer *t);
static void look_at_held(struct progress_timer *t);

static struct {
	_Atomic unsigned slot;            /* 0: this process has none */
	int slot_fd;

	pthread_mutex_t lock; /* of what follows, but the timer */
	struct arrival waiting[WAITING_MAX]; /* a ring */
	unsigned first, count;
	struct service services[SERVICES_MAX];
	unsigned service_count; /* of places that were ever used */
	struct progress_timer timer, patience;
	struct held held[HELD_MAX]; /* of the progress thread */
} gsi = {
	.slot_fd = -1,
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.timer = PROGRESS_TIMER(gsi.timer, due),
	.patience = PROGRESS_TIMER(gsi.patience, look_at_held),
};

/* ---- sending ---- */

static int gsi_send(const struct hca_gsi_address *to, const uint8_t mad[HCA_GSI_MAD_BYTES])
{
	struct ibv_ah_attr ah = { .is_global = 1, .port_num = 1, .grh.hop_limit = HOPS };
	union ibv_gid source;

	memcpy(ah.grh.dgid.raw, to->destination, sizeof(ah.grh.dgid.raw));
	memcpy(source.raw, to->source, sizeof(source.raw));
	if (hca_subnet_lid_of_gid(&ah.grh.dgid, &ah.dlid))
		return -EHOSTUNREACH;
	return fabric_qp1_emit(&ah, &source, mad);
}

/* ---- arrival ---- */

void fabric_gsi_arrived(const struct carrier_unit *unit)
{
	const uint8_t *bytes = unit->iov[0].iov_base;
	enum packet_fault fault = PACKET_MALFORMED;
	struct icrc_series series = { 0 };
	struct packet_frame f;
	struct ib_grh grh;
	union ibv_gid source;
	struct arrival *at;
	size_t header = fabric_medium.decode(unit, &series, 0, bytes, unit->iov[0].iov_len, &f, &fault);

	if (!header || f.rc.bytes != HCA_GSI_MAD_BYTES || f.service != PACKET_UD ||
	    f.qkey != HCA_GSI_QKEY)
		return;
	if (bytes[header + 1] == MAD_CLASS_SUBN_ADM) {
		fabric_sa_arrived(bytes + header);
		return;
	}
	/* Those of connections have a GRH, from which the sender is known. */
	if (!f.global || !ib_grh_decode(f.grh, &grh))
		return;
	memcpy(source.raw, grh.sgid, sizeof(source.raw));
	hca_subnet_learn_lid(&source, f.slid);
	pthread_mutex_lock(&gsi.lock);
	/* Senders repeat what does not fit. */
	if (atomic_load(&gsi.slot) && gsi.count < WAITING_MAX) {
		at = &gsi.waiting[(gsi.first + gsi.count++) % WAITING_MAX];
		at->from = (struct hca_gsi_address){ 0 };
		memcpy(at->from.source, grh.sgid, sizeof(at->from.source));
		memcpy(at->from.destination, grh.dgid, sizeof(at->from.destination));
		memcpy(at->mad, bytes + header, sizeof(at->mad));
	}
	pthread_mutex_unlock(&gsi.lock);
	progress_timer_arm(&gsi.timer, progress_now_ns());
}

static bool take(struct arrival *out)
{
	bool any;

	pthread_mutex_lock(&gsi.lock);
	any = gsi.count;
	if (any) {
		*out = gsi.waiting[gsi.first];
		gsi.first = (gsi.first + 1) % WAITING_MAX;
		gsi.count--;
	}
	pthread_mutex_unlock(&gsi.lock);
	return any;
}

/* Does a listener of this process take the request? */
static bool serves(const struct hca_gsi_address *from, uint64_t service_id)
{
	bool found = false;

	pthread_mutex_lock(&gsi.lock);
	for (unsigned i = 0; i < gsi.service_count && !found; i++) {
		const struct service *s = &gsi.services[i];

		found = s->fd >= 0 && s->at.service_id == service_id &&
			(s->at.scope != HCA_GSI_ADDRESS ||
			 !memcmp(s->at.address, from->destination, sizeof(s->at.address)));
	}
	pthread_mutex_unlock(&gsi.lock);
	return found;
}

static bool is_ours(const struct hca_gsi_address *from, const struct cm_mad *mad)
{
	uint32_t to, of;

	if (mad->type == CM_REQ)
		return serves(from, mad->req.service_id);
	if (mad->type == CM_SIDR_REQ)
		return serves(from, mad->sidr_req.service_id);
	wire_cm_parties(mad, &to, &of);
	if (mad->type == CM_SIDR_REP)
		to = mad->sidr_rep.request_id;
	/* The REJ of a caller that gives up before it has an answer names nobody here. */
	return !to || to >> HCA_GSI_SLOT_SHIFT == atomic_load(&gsi.slot);
}

static void service_name(const struct hca_gsi_service *s, struct abstract_name *name)
{
	static const char *const scopes[] = { [HCA_GSI_ADDRESS] = "address", [HCA_GSI_IPV4] = "any4",
					      [HCA_GSI_IPV6] = "any6", [HCA_GSI_ANY] = "any" };

	/* A port has one address here. */
	abstract_name(name, NAME_SERVICE, (unsigned long long)hca_subnet_place(), (unsigned long long)s->service_id,
		      scopes[s->scope]);
}

/* ---- requests for services that nobody serves ---- */

/* Does any process of the host hold the name? */
static bool is_taken(const struct abstract_name *name)
{
	int fd = abstract_open(name, SOCK_SEQPACKET, 0);

	if (fd >= 0)
		close(fd);
	return fd == -EADDRINUSE;
}

static bool served_elsewhere(uint64_t service_id)
{
	struct hca_gsi_service s = { .service_id = service_id };
	struct abstract_name name;

	for (s.scope = HCA_GSI_ADDRESS; s.scope <= HCA_GSI_ANY; s.scope++) {
		service_name(&s, &name);
		if (is_taken(&name))
			return true;
	}
	return false;
}

static bool has_lowest_slot(void)
{
	struct abstract_name name;

	for (unsigned slot = 1; slot < atomic_load(&gsi.slot); slot++) {
		abstract_name(&name, NAME_SLOT, (unsigned long long)hca_subnet_place(), slot);
		if (is_taken(&name))
			return false;
	}
	return true;
}

static uint64_t service_of(const struct cm_mad *mad)
{
	return mad->type == CM_REQ ? mad->req.service_id : mad->sidr_req.service_id;
}

static void refuse(const struct held *h)
{
	struct hca_gsi_address back = { 0 };
	uint8_t bytes[CM_MAD_SIZE];
	struct cm_mad answer;

	if (served_elsewhere(service_of(&h->mad)) || !has_lowest_slot() ||
	    wire_cm_refusal(&h->mad, CM_REASON_INVALID_SERVICE_ID, &answer) ||
	    wire_cm_encode(&answer, bytes))
		return;
	memcpy(back.source, h->at.from.destination, sizeof(back.source));
	memcpy(back.destination, h->at.from.source, sizeof(back.destination));
	gsi_send(&back, bytes);
}

/* On the progress thread, as all that has to do with `held`. Callers repeat what does not fit. */
static void hold(const struct arrival *a, const struct cm_mad *mad)
{
	for (unsigned i = 0; i < HELD_MAX; i++) {
		struct held *h = &gsi.held[i];

		if (h->until_ns)
			continue;
		*h = (struct held){ .at = *a, .mad = *mad, .until_ns = progress_now_ns() + HOLD_NS };
		progress_timer_hasten(&gsi.patience, progress_now_ns() + LOOK_NS);
		return;
	}
}

static void look_at_held(struct progress_timer *t)
{
	const uint64_t now_ns = progress_now_ns();
	bool any = false;

	for (unsigned i = 0; i < HELD_MAX; i++) {
		struct held *h = &gsi.held[i];

		if (!h->until_ns)
			continue;
		if (serves(&h->at.from, service_of(&h->mad))) {
			hca_gsi_deliver(&h->at.from, h->at.mad);
			h->until_ns = 0;
		} else if (now_ns >= h->until_ns) {
			refuse(h);
			h->until_ns = 0;
		}
		any |= h->until_ns;
	}
	if (any)
		progress_timer_arm(&gsi.patience, now_ns + LOOK_NS);
}

/* On the progress thread. */
static void due(struct progress_timer *t)
{
	struct arrival a;
	struct cm_mad mad;

	while (take(&a)) {
		if (wire_cm_decode(a.mad, sizeof(a.mad), &mad))
			continue;
		if (is_ours(&a.from, &mad))
			hca_gsi_deliver(&a.from, a.mad);
		else if (mad.type == CM_REQ || mad.type == CM_SIDR_REQ)
			hold(&a, &mad);
	}
}

/* ---- slots and services ---- */

static int gsi_open(void)
{
	struct abstract_name name;
	int fd = -EADDRINUSE;
	unsigned slot = 0;

	if (!fabric_qp1_port())
		return -ENETDOWN;
	while (fd == -EADDRINUSE && ++slot < HCA_GSI_SLOTS) {
		abstract_name(&name, NAME_SLOT, (unsigned long long)hca_subnet_place(), slot);
		fd = abstract_open(&name, SOCK_SEQPACKET, 0);
	}
	if (fd == -EADDRINUSE)
		return -EUSERS;
	if (fd < 0)
		return fd;
	gsi.slot_fd = fd;
	atomic_store(&gsi.slot, slot);
	return (int)slot;
}

static void gsi_close(void)
{
	atomic_store(&gsi.slot, 0);
	progress_timer_cancel(&gsi.timer);
	progress_timer_cancel(&gsi.patience);
	memset(gsi.held, 0, sizeof(gsi.held));
	pthread_mutex_lock(&gsi.lock);
	gsi.count = 0;
	pthread_mutex_unlock(&gsi.lock);
	if (gsi.slot_fd >= 0)
		close(gsi.slot_fd);
	gsi.slot_fd = -1;
}

/* The lock is held. NULL: all places are taken. */
static struct service *free_place(void)
{
	for (unsigned i = 0; i < gsi.service_count; i++)
		if (gsi.services[i].fd < 0)
			return &gsi.services[i];
	return gsi.service_count < SERVICES_MAX ? &gsi.services[gsi.service_count++] : NULL;
}

static int gsi_serve(const struct hca_gsi_service *service)
{
	struct abstract_name name;
	struct service *place;
	int fd;

	service_name(service, &name);
	fd = abstract_open(&name, SOCK_SEQPACKET, 0);
	if (fd < 0)
		return fd;
	pthread_mutex_lock(&gsi.lock);
	place = free_place();
	if (place)
		*place = (struct service){ .at = *service, .fd = fd };
	pthread_mutex_unlock(&gsi.lock);
	if (place)
		return 0;
	close(fd);
	return -ENOSPC;
}

static void gsi_unserve(const struct hca_gsi_service *service)
{
	pthread_mutex_lock(&gsi.lock);
	for (unsigned i = 0; i < gsi.service_count; i++) {
		struct service *s = &gsi.services[i];

		if (s->fd < 0 || s->at.service_id != service->service_id ||
		    s->at.scope != service->scope)
			continue;
		close(s->fd);
		s->fd = -1;
	}
	pthread_mutex_unlock(&gsi.lock);
}

static void gsi_forked(void)
{
	pthread_mutex_init(&gsi.lock, NULL);
	progress_timer_init(&gsi.timer, due);
	progress_timer_init(&gsi.patience, look_at_held);
	memset(gsi.held, 0, sizeof(gsi.held));
	for (unsigned i = 0; i < gsi.service_count; i++)
		if (gsi.services[i].fd >= 0)
			close(gsi.services[i].fd);
	gsi.service_count = gsi.count = 0;
	if (gsi.slot_fd >= 0)
		close(gsi.slot_fd);
	gsi.slot_fd = -1;
	fabric_sa_forked();
	fabric_qp1_start(NULL);
	atomic_store(&gsi.slot, 0);
}

const struct hca_gsi_ops fabric_gsi_ops = {
	.open = gsi_open,
	.close = gsi_close,
	.send = gsi_send,
	.serve = gsi_serve,
	.unserve = gsi_unserve,
	.forked = gsi_forked,
};
