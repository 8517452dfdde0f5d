/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Transport fabric: soft0 as the InfiniBand port of a host of a simulated fabric (`busbar fabric run`,
 * BUSBAR_FABRIC). All packets go through that fabric: those to queue pairs of this process and of
 * this host as well, as it is the fabric that shows and impairs them. No other transport is used
 * beside it.
 *
 * The connection is open as long as the device is. When it ends, the port is down: contexts get
 * IBV_EVENT_PORT_ERR, what is sent gets lost, and reliable connections end with
 * IBV_WC_RETRY_EXC_ERR. A device that is opened later connects anew.
 */
#define LOG_ROOM "fabric"
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "hca/event/port.h"
#include "hca/host/subnet.h"
#include "hca/host/subnet_peer.h"
#include "hca/object/cq.h"
#include "hca/object/qp.h"
#include "hca/path/path.h"
#include "hca/queue/datagram.h"
#include "hca/run/progress.h"
#include "hca/share/arrival.h"
#include "hca/share/process.h"
#include "transport/fabric/gsi.h"
#include "transport/fabric/packets.h"
#include "transport/fabric/plugged.h"
#include "transport/fabric/qp1.h"
#include "transport/fabric/sa.h"
#include "transport/list.h"
#include "transport/packet/packet.h"
#include "transport/packet/frame/show.h"
#include "util/cancel.h"
#include "util/clock.h"
#include "util/log.h"

#define COST 10
/* How long the fabric may take to answer a request. */
#define ANSWER_NS NSEC_PER_SEC
#define POLLS_PER_EVENT 64

static unsigned train(void);
static void rely(bool on);

static struct packet_port port = { .ops = &fabric_ops, .medium = &fabric_medium, .train = train,
				   .rely = rely, .presence.lock = PTHREAD_MUTEX_INITIALIZER };

static struct {
	int fd;
	struct carrier *plug;  /* the carrier below the filters */
	atomic_bool open;
	pthread_mutex_t asking; /* one request at a time is answered; of `asked` */
	uint32_t asked;        /* the number of the last request */
	_Atomic uint32_t answered;
	_Atomic uint32_t result; /* 0 or errno */
	struct plug_peer peer; /* of the answer to PLUG_FIND; before `answered` */
} fabric = { .fd = -1, .asking = PTHREAD_MUTEX_INITIALIZER };

/* A filter may treat packets one by one. */
static unsigned train(void)
{
	return atomic_load_explicit(&port.holds_back, memory_order_relaxed) ?
		       1 : PLUGGED_TRAIN_PACKETS;
}

/* ---- what the fabric says; from within polls ---- */

static void take_message(const struct plug_head *head, const void *body)
{
	struct plug_port now;

	switch (head->type) {
	case PLUG_PORT:
		memcpy(&now, body, sizeof(now));
		hca_port_is_now(&now);
		break;
	case PLUG_EVENT:
		hca_port_event((enum ibv_event_type)head->a);
		break;
	case PLUG_DONE:
		atomic_store(&fabric.result, head->a);
		atomic_store(&fabric.answered, head->b);
		break;
	case PLUG_PEER:
		memcpy(&fabric.peer, body, sizeof(fabric.peer));
		atomic_store(&fabric.result, 0);
		atomic_store(&fabric.answered, head->b);
		break;
	default:
		break;
	}
}

static void take_end(void)
{
	struct plug_port now;

	hca_subnet_port(&now);
	log_warn("the connection to the fabric has ended: the port is down");
	now.state = IBV_PORT_DOWN;
	now.physical_state = 3; /* disabled */
	now.client_reregister = 0;
	hca_port_is_now(&now);
	/* What has ended stays readable. */
	hca_arrival_rewatch(fabric.fd, false);
}

/* ---- requests to the fabric ---- */

static bool wait_for_answer(uint32_t number)
{
	const uint64_t until_ns = clock_monotonic_ns_slow() + ANSWER_NS;
	struct pollfd p = { .fd = fabric.fd, .events = POLLIN };

	while (atomic_load(&fabric.answered) != number) {
		hca_enter();
		packet_poll(&port, true);
		hca_leave();
		if (atomic_load(&fabric.answered) == number)
			break;
		if (clock_monotonic_ns_slow() > until_ns)
			return false;
		/* Another thread may read the answer: not for long. */
		poll(&p, 1, 1);
	}
	return true;
}

/* `asking` is held. */
static int ask_locked(enum plug_type type, const void *body, size_t bytes)
{
	int ret;

	if (!++fabric.asked)
		fabric.asked++;
	ret = plugged_send(fabric.plug, type, 0, fabric.asked, body, bytes);
	if (!ret)
		ret = wait_for_answer(fabric.asked) ? -(int)atomic_load(&fabric.result) :
						      -ETIMEDOUT;
	return ret;
}

/* Sends it and waits until the fabric has carried it out. 0 or a negative errno. No lock is held. */
static int ask(enum plug_type type, const void *body, size_t bytes)
{
	int ret;

	CANCEL_OFF;
	pthread_mutex_lock(&fabric.asking);
	ret = ask_locked(type, body, bytes);
	pthread_mutex_unlock(&fabric.asking);
	return ret;
}

/* See struct hca_subnet_ops. */
static int find_peer(struct plug_peer *peer)
{
	int ret;

	if (!atomic_load(&fabric.open))
		return -ENETDOWN;
	CANCEL_OFF;
	pthread_mutex_lock(&fabric.asking);
	ret = ask_locked(PLUG_FIND, peer, sizeof(*peer));
	if (!ret && !fabric.peer.host_number)
		ret = -ENOENT;
	if (!ret)
		*peer = fabric.peer;
	pthread_mutex_unlock(&fabric.asking);
	return ret;
}

static int find_path(const union ibv_gid *to, struct hca_subnet_path *path)
{
	return fabric_sa_path(&port, to, path);
}

static int join_group(const union ibv_gid *mgid, bool sends_only, struct hca_subnet_path *path)
{
	return fabric_sa_join(&port, mgid, sends_only, path);
}

static const struct hca_subnet_ops subnet_ops = {
	.find = find_peer,
	.path = find_path,
	.join = join_group,
};

/* ---- who looks at the socket; as in transport roce ---- */

/* See packet_port.rely. */
static void rely(bool on)
{
	int ret = atomic_load(&fabric.open) ? hca_arrival_rewatch(fabric.fd, !on) : 0;

	if (unlikely(!on && ret && !atomic_exchange(&port.blind, true))) {
		log_error("the connection to the fabric cannot be watched (%s): it is looked at all the time",
			  strerror(-ret));
		packet_look_now(&port);
	}
}

static bool leave_to_polls(void)
{
	return packet_leave_to_polls(&port);
}

/* On the progress thread, or on one of the program that slept. */
static void readable(uint32_t events)
{
	bool moved = true;

	(void)events;
	if (packet_arrives(&port))
		return;
	if (!progress_is_self()) {
		packet_poll(&port, true);
		return;
	}
	for (unsigned i = 0; moved && i < POLLS_PER_EVENT; i++)
		moved = packet_poll(&port, true);
	if (moved)
		packet_look_now(&port);
}

static bool fabric_poll(struct hca_cq *cq, bool wait)
{
	bool moved;

	if (likely(cq))
		packet_polled(&port);
	else if (wait)
		packet_leave(&port);
	moved = packet_poll(&port, wait);
	if (moved && cq)
		packet_moved(&port);
	return moved;
}

static bool fabric_announces(void)
{
	/* While polls were relied on, the progress thread did not look for it. */
	if (packet_leave(&port) &&
	    (atomic_load(&port.backlog) || atomic_load(&port.holds_back)))
		packet_look_later(&port);
	return !atomic_load(&port.blind);
}

static void fabric_settle(void)
{
	if (unlikely(atomic_load_explicit(&port.backlog, memory_order_relaxed)))
		packet_answer(&port);
}

static bool fabric_pending(void)
{
	return packet_pending(&port);
}

/* ---- the connection ---- */

static int connect_plug(void)
{
	struct plugged_params params = { .message = take_message, .management = fabric_gsi_arrived,
					 .ended = take_end };
	struct plug_welcome welcome;
	struct plug_place place;
	struct plug_port now;
	int ret = plug_place(&place);

	if (ret != 1) {
		if (!ret)
			log_error("transport fabric needs BUSBAR_FABRIC=NAME/HOST");
		return -EINVAL;
	}
	params.fd = plug_connect(&place, PLUG_VERBS, &welcome, &now);
	if (params.fd < 0)
		return params.fd;
	ret = plugged_open(&params, &fabric.plug);
	if (ret) {
		close(params.fd);
		return ret;
	}
	fabric.fd = params.fd;
	hca_subnet_set_host(&welcome);
	hca_subnet_set_port(&now);
	return 0;
}

static int open_port(void)
{
	struct carrier *carrier;
	int ret = connect_plug();

	if (ret)
		return ret;
	carrier = fabric.plug;
	ret = packet_faults(&port, &carrier);
	if (!ret)
		ret = packet_show_port(&port, &carrier);
	if (!ret)
		ret = packet_port_open(&port, carrier);
	if (ret)
		carrier_close(carrier);
	return ret;
}

static int fabric_start(void)
{
	int ret = progress_hold(); /* it watches the connection */

	if (ret)
		return ret;
	ret = open_port();
	if (ret)
		goto err_progress;
	atomic_store(&fabric.open, true);
	ret = hca_arrival_watch(fabric.fd, readable);
	if (ret)
		goto err_port;
	hca_arrival_set_leave(fabric.fd, leave_to_polls);
	hca_subnet_set_ops(&subnet_ops);
	fabric_qp1_start(&port);
	packet_show_start();
	return 0;

err_port:
	atomic_store(&fabric.open, false);
	packet_port_close(&port);
err_progress:
	progress_release();
	return ret;
}

static void fabric_stop(void)
{
	fabric_qp1_start(NULL);
	hca_subnet_set_ops(NULL);
	/* rely() must not run at the same time. */
	pthread_mutex_lock(&port.presence.lock);
	atomic_store(&fabric.open, false);
	pthread_mutex_unlock(&port.presence.lock);
	hca_arrival_unwatch(fabric.fd);
	packet_port_close(&port);
	packet_show_stop();
	atomic_store(&port.blind, false);
	fabric.fd = -1;
	progress_release();
}

/* Called when a program ends without destroying its queue pairs: its peers would repeat messages
 * that it has received and not yet acknowledged. */
__attribute__((destructor)) static void fabric_end(void)
{
	if (atomic_load(&fabric.open))
		packet_port_end(&port);
}

static void fabric_forked(void)
{
	packet_port_forked(&port);
	packet_show_forked();
	pthread_mutex_init(&fabric.asking, NULL);
	atomic_store(&port.blind, false);
	atomic_store(&fabric.open, false);
	fabric.fd = -1;
}

/* ---- the table ---- */

static int fabric_reach(const struct hca_destination *to)
{
	return !to->ah || !hca_subnet_check_address(to->ah) ? COST : -EHOSTUNREACH;
}

static int fabric_group(const union ibv_gid *gid, uint16_t lid, bool joined)
{
	struct plug_group group = { .mlid = lid };
	int ret;

	if (lid < HCA_LID_GROUPS || lid == HCA_LID_PERMISSIVE) {
		log_warn("a group has a LID from 0x%x to 0x%x, which ibv_attach_mcast(3) is to be given; this one is 0x%x",
			 HCA_LID_GROUPS, HCA_LID_PERMISSIVE - 1, lid);
		return -EINVAL;
	}
	memcpy(group.mgid, gid->raw, sizeof(group.mgid));
	ret = ask(joined ? PLUG_GROUP_JOIN : PLUG_GROUP_LEAVE, &group, sizeof(group));
	if (ret && joined)
		log_warn("the fabric does not deliver multicast to LID 0x%x here: %s", lid,
			 strerror(-ret));
	return ret;
}

static int fabric_open(struct hca_qp *qp)
{
	const struct plug_qp body = { .qpn = qp->ibv.qp_num };
	int ret = packet_open(&port, qp);

	if (ret)
		return ret;
	/* From then on packets of the peer come here, which may be sent as soon as it knows the
	 * number. Without the fabric packets get lost, as on an unplugged cable. */
	ret = ask(PLUG_QP_OPEN, &body, sizeof(body));
	if (!ret || ret == -EPIPE || ret == -ECONNRESET)
		return 0;
	log_warn("the fabric does not deliver to queue pair 0x%x: %s", body.qpn, strerror(-ret));
	packet_close(&port, qp);
	return ret;
}

static void fabric_close(struct hca_qp *qp)
{
	const struct plug_qp body = { .qpn = qp->ibv.qp_num };

	packet_close(&port, qp);
	if (atomic_load(&fabric.open))
		plugged_send(fabric.plug, PLUG_QP_CLOSE, 0, 0, &body, sizeof(body));
}

static int fabric_datagram(struct hca_qp *qp, const struct hca_swqe *e)
{
	return packet_datagram(&port, qp, e);
}

static int fabric_faults(const char *text, char *note, size_t note_bytes)
{
	return packet_faults_set(&port, text, note, note_bytes);
}

static unsigned fabric_fault_event(unsigned index, char *line, size_t line_bytes)
{
	return packet_faults_event(&port, index, line, line_bytes);
}

static void fabric_posted(struct hca_qp *qp)
{
	packet_posted(&port, qp);
}

static void qp_fence(const struct hca_qp *qp)
{
	(void)qp;
	packet_qp_fence(&port);
}

static void key_fence(uint32_t key)
{
	(void)key;
	hca_copies_wait(&port.copies);
}

static bool key_busy(uint32_t key)
{
	(void)key;
	return hca_copies_any(&port.copies);
}

static void srq_fence(struct hca_srq *srq)
{
	packet_srq_forget(&port, srq);
}

const struct hca_transport_ops fabric_ops = {
	.name = "fabric",
	.start = fabric_start,
	.stop = fabric_stop,
	.forked = fabric_forked,
	.group = fabric_group,
	.reach = fabric_reach,
	.open = fabric_open,
	.connect = packet_connect,
	.ready = packet_ready,
	.failed = packet_failed,
	.close = fabric_close,
	.transmit = packet_transmit,
	.datagram = fabric_datagram,
	.posted = fabric_posted,
	.expired = packet_expired,
	.poll = fabric_poll,
	.announces = fabric_announces,
	.settle = fabric_settle,
	.pending = fabric_pending,
	.faults = fabric_faults,
	.fault_event = fabric_fault_event,
	.gsi = &fabric_gsi_ops,
	.fence = {
		.qp = qp_fence,
		.key = key_fence,
		.key_busy = key_busy,
		.srq = srq_fence,
	},
};
