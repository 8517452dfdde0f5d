/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Decides whether an address is soft0's or a real device's; makes and ends shadows.
 *
 * To decide, a temporary identifier of the system's library is bound to the address:
 * the kernel knows bonds, VLANs, IPoIB and iWARP.
 */
#define LOG_ROOM "rdmacm"
#include <errno.h>
#include <string.h>

#include "rdmacm/base/addr.h"
#include "rdmacm/device/device.h"
#include "rdmacm/forward/forward.h"
#include "rdmacm/id/port.h"
#include "rdmacm/resolve/resolve.h"
#include "util/log.h"
#include "verbs/private.h"

/* A port that is free here may be taken at the system's library: number of tries. */
#define PORT_TRIES 8

static void addr_copy_port(struct sockaddr_storage *to, const struct sockaddr *from,
			   uint16_t port)
{
	cma_addr_copy(to, from);
	cma_addr_set_port((struct sockaddr *)to, port);
}

static bool port_is_active(struct ibv_context *verbs, uint8_t port_num)
{
	struct ibv_port_attr attr;

	return verbs && !busbar_owns_device(verbs->device) &&
	       !ibv_query_port(verbs, port_num, &attr) &&
	       attr.state == IBV_PORT_ACTIVE;
}

/* Does the local address belong to a real device with an active port? */
static bool addr_is_real(const struct sockaddr *addr)
{
	struct sockaddr_storage probe_addr;
	struct rdma_cm_id *probe;
	bool real;

	if (!cma_devices_present())
		return true; /* there is only the system's library to report errors */
	if (FORWARD_CALL(rdma_create_id, NULL, &probe, NULL, RDMA_PS_TCP)) {
		log_info("the system's librdmacm.so.1 makes no identifier: %s; soft0 is taken",
			 strerror(errno));
		return false;
	}
	addr_copy_port(&probe_addr, addr, 0);
	real = !FORWARD_CALL(rdma_bind_addr, probe, (struct sockaddr *)&probe_addr) &&
	       port_is_active(probe->verbs, probe->port_num);
	FORWARD_CALL(rdma_destroy_id, probe);
	return real;
}

/* ---- shadows ---- */

void forward_push(struct cma_id *id)
{
	id->shadow->qp = id->pub.qp;
	id->shadow->srq = id->pub.srq;
	id->shadow->pd = id->pub.pd;
}

void forward_pull(struct cma_id *id)
{
	const struct rdma_cm_id *s = id->shadow;

	/* The thread that made a call and the one that takes its event may be here at
	 * the same time. */
	pthread_mutex_lock(&id->lock);
	id->pub.verbs = s->verbs;
	id->pub.port_num = s->port_num;
	id->pub.route = s->route;
	if (!id->pub.pd)
		id->pub.pd = s->pd;
	pthread_mutex_unlock(&id->lock);
}

static void option_replay(struct cma_id *id, int name, void *value, size_t len)
{
	if (FORWARD_CALL(rdma_set_option, id->shadow, RDMA_OPTION_ID, name, value,
			 len))
		log_warn("option %d of an identifier has no effect on a real device: %s",
			 name, strerror(errno));
}

/* Sets the options that were set before there was a shadow; defaults are not set. */
static void options_replay(struct cma_id *id, bool bound)
{
	uint8_t ack_timeout = (uint8_t)id->ack_timeout;
	int on = 1;

	if (bound && (id->reuse_addr || id->v6_only))
		log_warn("a UC or XRC identifier on a real device is bound before its options are set: REUSEADDR and AFONLY have no effect");
	if (id->reuse_addr && !bound)
		option_replay(id, RDMA_OPTION_ID_REUSEADDR, &on, sizeof(on));
	if (id->v6_only && !bound)
		option_replay(id, RDMA_OPTION_ID_AFONLY, &on, sizeof(on));
	if (id->tos)
		option_replay(id, RDMA_OPTION_ID_TOS, &id->tos, sizeof(id->tos));
	if (id->ack_timeout >= 0)
		option_replay(id, RDMA_OPTION_ID_ACK_TIMEOUT, &ack_timeout,
			      sizeof(ack_timeout));
	if ((id->local_ece.vendor_id || id->local_ece.options) &&
	    FORWARD_SYSTEM(rdma_set_local_ece))
		FORWARD_CALL(rdma_set_local_ece, id->shadow, &id->local_ece);
}

/* Does the QP type follow from the port space? */
static bool type_is_usual(const struct cma_id *id)
{
	return id->pub.qp_type == (id->pub.ps == RDMA_PS_UDP ||
				   id->pub.ps == RDMA_PS_IPOIB ?
					   IBV_QPT_UD : IBV_QPT_RC);
}

/*
 * A shadow of type UC or XRC. Only rdma_create_ep() has a parameter for the QP type,
 * and the kernel accepts it in RDMA_PS_IB alone. It binds the identifier at once and
 * makes a channel, from which the identifier is moved to `channel`.
 */
static int shadow_create_typed(struct cma_id *id,
			       struct rdma_event_channel *channel,
			       const struct sockaddr *addr)
{
	struct sockaddr_storage from;
	struct rdma_addrinfo info = {
		.ai_flags = RAI_PASSIVE,
		.ai_family = addr->sa_family,
		.ai_qp_type = id->pub.qp_type,
		.ai_port_space = RDMA_PS_IB,
		.ai_src_addr = (struct sockaddr *)&from,
		.ai_src_len = cma_addr_len(addr),
	};
	struct rdma_cm_id *made;
	int ret;

	memcpy(&from, addr, info.ai_src_len);
	if (FORWARD_CALL(rdma_create_ep, &made, &info, NULL, NULL))
		return -errno;
	if (FORWARD_CALL(rdma_migrate_id, made, channel)) {
		ret = -errno;
		log_error("identifier of a type of its own: the system's library does not move it: %s",
			  strerror(-ret));
		FORWARD_CALL(rdma_destroy_id, made);
		return ret;
	}
	made->context = id;
	id->shadow = made;
	return 0;
}

/* Makes the shadow, bound to `addr` unless that is NULL. `family`: an address of the
 * family to be used. */
static int shadow_create(struct cma_id *id, const struct sockaddr *addr,
			 const struct sockaddr *family)
{
	struct sockaddr_storage any = { .ss_family = family->sa_family };
	struct rdma_event_channel *channel;
	int ret = cma_channel_system(cma_channel_of(id->pub.channel), &channel);

	if (ret)
		return ret;
	if (!type_is_usual(id)) {
		ret = shadow_create_typed(id, channel, addr ? addr :
					  (struct sockaddr *)&any);
		if (!ret)
			options_replay(id, true);
		return ret;
	}
	if (FORWARD_CALL(rdma_create_id, channel, &id->shadow, id, id->pub.ps)) {
		id->shadow = NULL;
		return -errno;
	}
	options_replay(id, false);
	if (addr && FORWARD_CALL(rdma_bind_addr, id->shadow,
				 (struct sockaddr *)(uintptr_t)addr)) {
		ret = -errno;
		forward_drop(id);
	}
	return ret;
}

int forward_drop(struct cma_id *id)
{
	if (!id->shadow)
		return 0;
	if (FORWARD_CALL(rdma_destroy_id, id->shadow)) {
		int ret = -errno;

		log_error("identifier on a real device: not destroyed: %s",
			  strerror(-ret));
		return ret;
	}
	if (!id->shadow_beside) {
		/* They pointed into the shadow. */
		id->pub.route.path_rec = NULL;
		id->pub.route.num_paths = 0;
	}
	id->shadow = NULL;
	id->shadow_beside = false;
	return 0;
}

/* ---- calls that decide for one of the two libraries ---- */

static int bind_ours(struct cma_id *id, const struct sockaddr *addr)
{
	int ret;

	pthread_mutex_lock(&id->lock);
	ret = cma_bind(id, addr);
	pthread_mutex_unlock(&id->lock);
	return ret;
}

static void unbind_ours(struct cma_id *id)
{
	pthread_mutex_lock(&id->lock);
	cma_port_release(id);
	memset(&id->pub.route.addr.src_storage, 0,
	       sizeof(id->pub.route.addr.src_storage));
	id->phase = CMA_UNBOUND;
	pthread_mutex_unlock(&id->lock);
}

/* A port in use fails the call; after other errors soft0 is used alone. */
static bool is_fatal(int ret, const char *what)
{
	if (ret == -EADDRINUSE)
		return true;
	log_warn("%s, real adapters: %s; soft0 alone goes on", what, strerror(-ret));
	return false;
}

static int bind_both(struct cma_id *id, const struct sockaddr *addr)
{
	for (int tries = 1;; tries++) {
		struct sockaddr_storage same;
		int ret = bind_ours(id, addr);

		if (ret)
			return ret;
		addr_copy_port(&same, addr,
			       cma_addr_port(&id->pub.route.addr.src_addr));
		ret = shadow_create(id, (struct sockaddr *)&same, addr);
		if (!ret) {
			id->shadow_beside = true;
			return 0;
		}
		if (!is_fatal(ret, "bind to the wildcard address"))
			return 0;
		unbind_ours(id);
		if (cma_addr_port(addr) || tries == PORT_TRIES)
			return ret;
	}
}

int forward_bind(struct cma_id *id, const struct sockaddr *addr)
{
	struct sockaddr_storage to;
	char text[CMA_ADDR_TEXT];
	int ret;

	if (!cma_channel_is_merged(cma_channel_of(id->pub.channel)))
		return FORWARD_OURS;
	if (id->shadow || id->phase != CMA_UNBOUND)
		return -EINVAL;
	if (cma_addr_is_any(addr) && cma_devices_present())
		return bind_both(id, addr);
	if (!cma_addr_is_any(addr) && !addr_is_real(addr))
		return FORWARD_OURS;
	cma_addr_copy(&to, addr);
	ret = shadow_create(id, (struct sockaddr *)&to, addr);
	if (ret) {
		log_info("bind to %s on a real device: %s",
			 cma_addr_text(addr, text), strerror(-ret));
		return ret;
	}
	forward_pull(id);
	return 0;
}

/* Does a connection to `dst` leave by a real device? Its source is `src` or, if that
 * is a wildcard or NULL, the address that the routing table gives. */
static bool route_is_real(const struct cma_id *id, const struct sockaddr *src,
			  const struct sockaddr *dst)
{
	struct sockaddr_storage from;

	if (!cma_devices_present())
		return true;
	if (id->phase == CMA_BOUND && !cma_addr_is_any(&id->pub.route.addr.src_addr))
		return false; /* bound to an address of soft0 */
	if (src && !cma_addr_is_any(src))
		return addr_is_real(src);
	if (cma_addr_is_any(dst) || cma_addr_source(dst, &from))
		return false;
	return addr_is_real((struct sockaddr *)&from);
}

int forward_resolve(struct cma_id *id, struct sockaddr *src, struct sockaddr *dst,
		    int timeout_ms)
{
	bool made = false;
	int ret = 0;

	if (!cma_channel_is_merged(cma_channel_of(id->pub.channel)))
		return FORWARD_OURS;
	if (!forward_owns(id)) {
		if (id->phase > CMA_BOUND)
			return FORWARD_OURS;
		if (!route_is_real(id, src, dst)) {
			ret = forward_drop(id);
			return ret ? ret : FORWARD_OURS;
		}
		made = !id->shadow;
		if (made)
			ret = shadow_create(id, NULL, dst);
		if (ret)
			return ret;
		/* From here on only the shadow holds the wildcard's port. */
		id->shadow_beside = false;
		unbind_ours(id);
	}
	if (FORWARD_CALL(rdma_resolve_addr, id->shadow, src, dst, timeout_ms)) {
		ret = -errno;
		if (made)
			forward_drop(id);
		return ret;
	}
	forward_pull(id);
	return cma_id_complete(id);
}

int forward_listen(struct cma_id *id, int backlog)
{
	static const struct sockaddr_in any = { .sin_family = AF_INET };
	int ret = 0;

	if (!id->shadow && id->phase == CMA_UNBOUND)
		ret = forward_bind(id, (const struct sockaddr *)&any);
	if (ret)
		return ret;
	if (!id->shadow)
		return FORWARD_OURS;
	if (FORWARD_CALL(rdma_listen, id->shadow, backlog)) {
		ret = -errno;
		if (!id->shadow_beside || is_fatal(ret, "listen"))
			return ret;
		ret = forward_drop(id);
		return ret ? ret : FORWARD_OURS;
	}
	if (id->shadow_beside)
		return FORWARD_OURS;
	forward_pull(id);
	return 0;
}
