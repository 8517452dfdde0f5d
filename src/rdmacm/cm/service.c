/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Services: for which requests of other hosts this process is asked. A listener holds its
 * service, and each request that came for it until it is settled.
 */
#define LOG_ROOM "rdmacm"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rdmacm/base/addr.h"
#include "rdmacm/cm/cm.h"
#include "util/log.h"
#include "verbs/private.h"

/* A service of this process. Its listener holds it, and each request that came for it until
 * it is settled: the caller may repeat the request though the listener is closed. */
struct cma_service {
	struct list entry;
	struct hca_gsi_service at;
	unsigned holders;
};

static pthread_mutex_t services_lock = PTHREAD_MUTEX_INITIALIZER;
static struct list services = { &services, &services };

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

/* services_lock is held. */
static struct cma_service *service_find(const struct hca_gsi_service *at)
{
	list_for_each(s, &services, struct cma_service, entry)
		if (s->at.service_id == at->service_id && s->at.scope == at->scope &&
		    !memcmp(s->at.address, at->address, sizeof(at->address)))
			return s;
	return NULL;
}

/* services_lock is held. *out: held once more. */
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
		list_push(&services, &s->entry);
	}
	s->holders++;
	*out = s;
	return 0;
}

void cma_service_give(struct cma_side *side)
{
	struct cma_service *s = side->service;

	side->service = NULL;
	if (!s)
		return;
	pthread_mutex_lock(&services_lock);
	if (!--s->holders) {
		busbar_gsi_unserve(&s->at);
		list_remove(&s->entry);
		free(s);
	}
	pthread_mutex_unlock(&services_lock);
}

int cma_service_listen(struct cma_side *s)
{
	struct hca_gsi_service at = service_of(s->id);
	int ret;

	if (!busbar_gsi_exists())
		return 0;
	ret = link_network_open();
	/* Callers of this host reach the listener nevertheless. */
	if (ret)
		return busbar_local_exists() ? 0 : ret;
	pthread_mutex_lock(&services_lock);
	ret = service_take(&at, &s->service);
	pthread_mutex_unlock(&services_lock);
	if (ret)
		log_warn("port %u: requests of other hosts cannot be received: %s",
			 cma_addr_port(&s->id->pub.route.addr.src_addr), strerror(-ret));
	return ret;
}

void cma_service_share(struct cma_side *child, const struct cma_side *listener)
{
	pthread_mutex_lock(&services_lock);
	child->service = listener->service;
	if (child->service)
		child->service->holders++;
	pthread_mutex_unlock(&services_lock);
}

void cma_service_update(struct cma_side *s)
{
	switch (s->cm.state) {
	case CM_IDLE:
	case CM_LISTEN:
	case CM_REQ_RCVD:
	case CM_REP_SENT:
	case CM_SIDR_REQ_RCVD:
		return;
	case CM_ANSWERED:
		if (cma_id_is_datagram(s->id))
			return;
		break;
	default:
		break;
	}
	cma_service_give(s);
}

static void services_forked(void)
{
	pthread_mutex_init(&services_lock, NULL);
	list_init(&services);
}

__attribute__((constructor)) static void services_load(void)
{
	pthread_atfork(NULL, NULL, services_forked);
}
