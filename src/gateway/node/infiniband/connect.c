/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections of an infiniband node: attempts, losses, and what each event of a
 * connection leads to. All in the management thread, see cm.c.
 *
 * A node with out.address is active: it tries to reach its peer, and goes on
 * trying every out.reconnect_interval, so that either end may start first and a
 * peer that comes back is connected again. With out.use_fallback it listens
 * from its first failure on, as a node without out.address does from the start.
 *
 * What happens is logged once for every change, not for every attempt.
 */
#define LOG_ROOM "gateway/infiniband"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "gateway/node/infiniband/infiniband.h"
#include "gateway/plugin/services.h"
#include "util/clock.h"
#include "util/log.h"

/* For the reader to fill the receive queue before the peer may send. */
#define FILL_NS (2 * NSEC_PER_SEC)

/* Of rejections: nobody listens, not for this service type, the other end refused. */
#define REJECT_NO_LISTENER 8
#define REJECT_SERVICE_TYPE 9
#define REJECT_BY_CONSUMER 28
/* The same of a datagram lookup. */
#define SIDR_UNSUPPORTED 1

struct ib_host_text ib_host_of(struct rdma_cm_id *id)
{
	struct ib_host_text host = { "a peer" };

	getnameinfo(rdma_get_peer_addr(id), sizeof(struct sockaddr_storage), host.text,
		    sizeof(host.text), NULL, 0, NI_NUMERICHOST);
	return host;
}

struct rdma_conn_param ib_conn_param(void)
{
	/* A receiver that is late is waited for, as long as it lives. */
	return (struct rdma_conn_param){
		.responder_resources = 1,
		.initiator_depth = 1,
		.retry_count = 7,
		.rnr_retry_count = 7,
	};
}

void ib_connection_drop(struct infiniband *ib)
{
	if (!ib->conn)
		return;
	ib_lookup_drop(ib);
	if (ib->mode != IB_UD &&
	    (ib->phase == IB_CONNECTED || ib->phase == IB_ACCEPTING))
		rdma_disconnect(ib->conn);
	ib_qp_destroy(ib);
	rdma_destroy_id(ib->conn);
	ib->conn = NULL;
	ib->probing = false;
	ib->phase = IB_IDLE;
	node_figure_set(ib->node, IB_COUNT_CONNECTIONS, 0);
}

void ib_listen_end(struct infiniband *ib)
{
	if (ib->listener)
		rdma_destroy_id(ib->listener);
	ib->listener = NULL;
}

int ib_listen(struct infiniband *ib)
{
	int err;

	if (ib->listener)
		return 0;
	if (!ib_id_create(ib, &ib->listener) &&
	    !rdma_bind_addr(ib->listener, &ib->local.sa) && !rdma_listen(ib->listener, 4))
		return 0;
	err = errno;
	log_error("%s: cannot listen on in.address %s: %s", ib->node->name,
		  ib->in.address, strerror(err));
	ib_listen_end(ib);
	return err ? -err : -EIO;
}

static void schedule(struct infiniband *ib)
{
	uint64_t interval = (uint64_t)ib->out.reconnect_interval_ms * MS;

	ib->retry.at_ns = 0;
	if (ib->remotes_found && interval)
		backoff_plan(&ib->retry, interval, clock_now_ns());
}

void ib_give_up(struct infiniband *ib)
{
	ib->phase = IB_FAILED;
	atomic_store(&ib->failed, true);
	ib_channel_interrupt(ib->channel);
	services_note_failure(ib->node->services);
	services_request_stop(ib->node->services);
}

/* A call of the peer has failed. True: another address of its name is called now. */
static bool call_next_address(struct infiniband *ib, const char *why)
{
	char text[SOCKET_ADDRESS_MAX];

	if (ib->remote_at + 1 >= ib->remotes_found) {
		ib->remote_at = 0;
		return false;
	}
	log_debug("%s: cannot reach %s: %s; trying the next address of %s", ib->node->name,
		  socket_address_print(&ib->remotes[ib->remote_at], text), why,
		  ib->out.address);
	ib_connection_drop(ib);
	ib->remote_at++;
	ib_connection_attempt(ib);
	return true;
}

void ib_note_unconfirmed(struct infiniband *ib)
{
	struct caller_ip ip;

	if (ib->phase != IB_ACCEPTING)
		return;
	ip = ib_peer_ip(ib->conn);
	callers_note_failure(&ib->callers, &ip, ib->accepted_ns, clock_now_ns());
}

/* Behind a failed attempt or a lost connection. */
static void fall_back(struct infiniband *ib, const char *why)
{
	bool calling = ib->phase == IB_RESOLVING || ib->phase == IB_CONNECTING;
	bool listening = false;

	if (calling && call_next_address(ib, why))
		return;
	node_figure_add(ib->node, IB_COUNT_UNREACHABLE, calling);
	ib_note_unconfirmed(ib);
	ib_connection_drop(ib);
	sem_post(&ib->first_attempt);
	schedule(ib);
	if (ib->has_local && (!ib->remotes_found || ib->out.use_fallback))
		listening = ib_listen(ib) == 0;
	if (!listening && !ib->retry.at_ns) {
		log_error("%s: cannot reach %s: %s; giving up, as out.reconnect_interval is 0 and there is no fallback to listening",
			  ib->node->name,
			  ib->remotes_found ? ib->out.address : "any peer", why);
		ib_give_up(ib);
		return;
	}
	if (!ib->remotes_found || ib->said_unreachable)
		return;
	ib->said_unreachable = true;
	if (!ib->retry.at_ns)
		log_info("%s: cannot reach %s: %s; listening on %s",
			 ib->node->name, ib->out.address, why, ib->in.address);
	else
		log_info("%s: cannot reach %s: %s; trying again every %lld ms%s%s",
			 ib->node->name, ib->out.address, why,
			 (long long)ib->out.reconnect_interval_ms,
			 listening ? ", meanwhile listening on " : "",
			 listening ? ib->in.address : "");
}

void ib_connection_attempt(struct infiniband *ib)
{
	int err;

	ib->retry.at_ns = 0;
	err = ib_call(ib, &ib->conn);
	if (ib->conn)
		ib->phase = IB_RESOLVING;
	if (err)
		fall_back(ib, strerror(errno));
}

void ib_wait_filled(struct infiniband *ib)
{
	uint64_t deadline = clock_now_ns() + FILL_NS;
	const struct timespec pause = { .tv_nsec = 500000 };

	if (!ib->node->is_source)
		return;
	while (!atomic_load(&ib->channel->filled) && !atomic_load(&ib->stop) &&
	       clock_now_ns() < deadline)
		nanosleep(&pause, NULL);
}

/* What follows an event of the present attempt. These return the reason if it fails, else NULL. */
static const char *on_addr_resolved(struct infiniband *ib)
{
	if (ib_qp_create(ib))
		return "no queue pair";
	return ib_resolve_route(ib, ib->conn);
}

static const char *on_route_resolved(struct infiniband *ib)
{
	struct rdma_conn_param param = ib_conn_param();

	ib_wait_filled(ib);
	if (rdma_connect(ib->conn, &param))
		return strerror(errno);
	ib->phase = IB_CONNECTING;
	return NULL;
}

void ib_connected(struct infiniband *ib)
{
	bool called = ib->phase == IB_ACCEPTING;
	struct caller_ip ip = ib_peer_ip(ib->conn);
	char again[64] = "";

	if (ib->lost_at_ns)
		snprintf(again, sizeof(again),
			 ", %.1f ms after the connection was lost",
			 (double)(clock_now_ns() - ib->lost_at_ns) / MS);
	ib->lost_at_ns = 0;
	log_info("%s: connected to %s%s over %s (%s, qp 0x%x)%s", ib->node->name,
		 called ? ib_host_of(ib->conn).text : ib->out.address,
		 called ? ", which called" : "",
		 ibv_get_device_name(ib->verbs->device),
		 ib_mode_name(ib->mode), ib->conn->qp->qp_num, again);
	callers_forget(&ib->callers, &ip);
	ib->phase = IB_CONNECTED;
	node_figure_set(ib->node, IB_COUNT_CONNECTIONS, 1);
	node_figure_add(ib->node, IB_COUNT_CONNECTED_TIMES, 1);
	ib->said_unreachable = false;
	backoff_reset(&ib->retry);
	ib->doubt_since_ns = 0;
	sem_post(&ib->first_attempt);
}

static const char *on_established(struct infiniband *ib, struct rdma_ud_param *ud)
{
	if (ib->mode == IB_UD) {
		ib->ah = ibv_create_ah(ib->registrar.pd, &ud->ah_attr);
		if (!ib->ah)
			return "no address handle for the peer";
		ib->remote_qpn = ud->qp_num;
		ib_lookup_schedule(ib);
	}
	ib_channel_open_tx(ib->channel, ib->ah, ud->qp_num, ud->qkey);
	ib_connected(ib);
	return NULL;
}

void ib_lost(struct infiniband *ib, const char *why)
{
	struct ib_counters *now = &ib->channel->counters;

	if (ib->phase != IB_CONNECTED) {
		fall_back(ib, why);
		return;
	}
	ib->lost_at_ns = clock_now_ns();
	node_figure_add(ib->node, IB_COUNT_LOST, 1);
	ib_connection_drop(ib);
	log_warn("%s: connection lost: %s; so far %llu samples received, %llu sent, %llu of these without success; %s",
		 ib->node->name, why,
		 (unsigned long long)atomic_load(&now->received),
		 (unsigned long long)atomic_load(&now->sent),
		 (unsigned long long)atomic_load(&now->faults[IB_COUNT_FAILED]),
		 !ib->remotes_found ? "listening again" :
		 ib->out.reconnect_interval_ms ? "trying to reconnect" :
						 "not trying again");
	ib->said_unreachable = true; /* that was the line */
	fall_back(ib, why);
}

/* Why the event ends a connection or an attempt; NULL: it does not. */
static const char *end_reason(const struct infiniband *ib, const struct rdma_cm_event *e)
{
	static const char *const nobody[] = {
		[IB_RC] = "nobody listens there for RC",
		[IB_UC] = "nobody listens there for UC",
		[IB_UD] = "nobody listens there for UD",
	};

	switch (e->event) {
	case RDMA_CM_EVENT_ADDR_ERROR:
		return "no adapter reaches this address";
	case RDMA_CM_EVENT_ROUTE_ERROR:
		return "no route";
	case RDMA_CM_EVENT_UNREACHABLE:
		return ib->mode == IB_UD && e->status == SIDR_UNSUPPORTED ?
			       nobody[IB_UD] : "no answer";
	case RDMA_CM_EVENT_CONNECT_ERROR:
		return "the connection could not be set up";
	case RDMA_CM_EVENT_REJECTED:
		if (e->status == REJECT_NO_LISTENER || e->status == -ECONNREFUSED)
			return nobody[ib->mode];
		if (e->status == REJECT_SERVICE_TYPE)
			return "it listens for another service type; rdma_transport_mode has to be the same on both ends";
		return e->status == REJECT_BY_CONSUMER ?
			       "it refused, perhaps it has another peer" : "it refused";
	case RDMA_CM_EVENT_DISCONNECTED:
		return "the peer disconnected or ended";
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		return "the adapter was removed";
	default:
		return NULL;
	}
}

void ib_conn_event(struct infiniband *ib, struct rdma_cm_event *e)
{
	const char *why = end_reason(ib, e);

	if (e->event == RDMA_CM_EVENT_ADDR_RESOLVED)
		why = on_addr_resolved(ib);
	else if (e->event == RDMA_CM_EVENT_ROUTE_RESOLVED)
		why = on_route_resolved(ib);
	else if (e->event == RDMA_CM_EVENT_ESTABLISHED)
		why = on_established(ib, &e->param.ud);
	else if (!why && e->event != RDMA_CM_EVENT_TIMEWAIT_EXIT &&
		 e->event != RDMA_CM_EVENT_ADDR_CHANGE)
		log_warn("%s: unexpected event %s", ib->node->name,
			 rdma_event_str(e->event));
	if (why)
		ib_lost(ib, why);
}

const char *ib_break_check(struct infiniband *ib)
{
	int error = atomic_load(&ib->channel->error);

	if (!error || !ib->conn)
		return NULL;
	if (error < 0)
		return strerror(-error);
	if (error == IBV_WC_LOC_LEN_ERR)
		return "the peer sent a sample with more values than in.signals has here";
	if (error == IBV_WC_REM_INV_REQ_ERR)
		return "the peer has no room for so many values, see its in.signals";
	if (error == IBV_WC_RETRY_EXC_ERR)
		return "the peer does not answer any more";
	return ibv_wc_status_str((enum ibv_wc_status)error);
}

const char *ib_probe_check(struct infiniband *ib)
{
	int answer = ib->probing ? ib_channel_probe(ib->channel) : 0;

	if (answer)
		ib->probing = false;
	return answer < 0 ? "the peer does not answer any more, and somebody calls" : NULL;
}
