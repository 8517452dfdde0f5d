/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Transport roce: RoCE v2 over an ordinary UDP socket, to other hosts and other processes of this
 * one. The port is opened when the first queue pair needs it, so programs that stay inside of the
 * host pay nothing for it.
 *
 * Which thread looks at the socket: while packets come (the socket is `hot`), the polls of the
 * program. If the program polls without a gap, only its polls do (packet/base/presence.c);
 * otherwise the progress thread watches the descriptor, too, and moves the packets. After some
 * milliseconds in which polls have found nothing, polls do not touch the socket. When it becomes
 * readable then, the progress thread makes it hot again.
 */
#define LOG_ROOM "roce"
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "hca/host/allowed.h"
#include "hca/host/gid.h"
#include "hca/host/settings.h"
#include "hca/object/ah.h"
#include "hca/object/cq.h"
#include "hca/object/qp.h"
#include "hca/object/sq.h"
#include "hca/path/path.h"
#include "hca/queue/datagram.h"
#include "hca/run/elide.h"
#include "hca/run/progress.h"
#include "hca/share/arrival.h"
#include "hca/share/peers.h"
#include "hca/share/process.h"
#include "transport/carrier/udp.h"
#include "transport/list.h"
#include "transport/packet/packet.h"
#include "transport/packet/frame/show.h"
#include "transport/roce/group.h"
#include "transport/roce/gsi.h"
#include "transport/roce/packets.h"
#include "transport/roce/qp1.h"
#include "transport/roce/slots.h"
#include "transport/roce/too_long.h"
#include "util/clock.h"
#include "util/log.h"

/* Transport shm has 10. */
#define COST 20
#define COST_UD 200

/* Polls in vain after which the clock is read, and the time of them after which `hot` ends. */
#define POLLS_PER_LOOK 1024u
#define COOL_NS 10000000
#define POLLS_PER_EVENT 64
/* A poll that makes a system call takes as long as so many other polls. */
#define SYSTEM_CALL_POLLS 16

static unsigned train(void);
static void rely(bool on);

static struct packet_port port = { .ops = &roce_ops, .medium = &roce_medium, .train = train,
				   .rely = rely, .presence.lock = PTHREAD_MUTEX_INITIALIZER };

static struct {
	pthread_mutex_t lock;    /* held while the port opens */
	atomic_bool open;
	unsigned slot;           /* 0: none */
	int slot_name;           /* descriptor of its name, until `sockets` has it */
	struct roce_sockets sockets;
	struct carrier *udp;     /* the carrier below the filters */
	bool qp1;                /* queue pair 1 (qp1.h) is open; `lock` */

	atomic_bool hot;         /* polls look at the socket */
	atomic_uint misses;      /* polls since packets were moved */
	_Atomic uint64_t quiet_ns; /* when `misses` reached POLLS_PER_LOOK */
} roce = { .lock = PTHREAD_MUTEX_INITIALIZER, .slot_name = -1 };

/* The seal of a packet names its place in a train. So there are trains only as long as they
 * leave as one: no filter splits them, and the kernel takes them. See packet_port.train. */
static unsigned train(void)
{
	if (atomic_load_explicit(&port.holds_back, memory_order_relaxed))
		return 1;
	return MIN(carrier_udp_train_packets(roce.udp), PACKET_TRAIN_MAX);
}

/* ---- who looks at the socket ---- */

/* 0 or a negative errno. */
static int rewatch(bool on)
{
	return hca_arrival_rewatch(carrier_udp_fd(roce.udp), on);
}

static void poll_hot(void)
{
	atomic_store_explicit(&roce.misses, 0, memory_order_relaxed);
	if (!atomic_load(&roce.hot))
		atomic_store(&roce.hot, true);
}

/* See packet_port.rely. The caller's lock keeps the calls in order, so that the last one decides
 * what the kernel watches. */
static void rely(bool on)
{
	int ret = atomic_load(&roce.open) ? rewatch(!on) : 0;

	if (on) {
		poll_hot();
	} else if (unlikely(ret && !atomic_exchange(&port.blind, true))) {
		log_error("the sockets cannot be watched (%s): they are looked at all the time",
			  strerror(-ret));
		packet_look_now(&port);
	}
}

static bool leave_to_polls(void)
{
	bool leave = packet_leave_to_polls(&port);

	if (leave)
		poll_hot();
	return leave;
}

/* On the progress thread, or on one of the program that slept (hca/share/arrival.h). */
static void readable(uint32_t events)
{
	bool moved = true;

	(void)events;
	if (packet_arrives(&port))
		return;
	/* If more has come, the kernel wakes this thread again, or the progress thread. */
	if (!progress_is_self()) {
		packet_poll(&port, true);
		return;
	}
	for (unsigned i = 0; moved && i < POLLS_PER_EVENT; i++)
		moved = packet_poll(&port, true);
	if (moved)
		packet_look_now(&port);
}

/* After a poll in vain: have all polls been in vain for COOL_NS? The clock is only read now and
 * then. */
static bool has_been_quiet(void)
{
	unsigned misses =
		atomic_fetch_add_explicit(&roce.misses, 1, memory_order_relaxed) + 1;
	uint64_t now;

	if (misses % POLLS_PER_LOOK)
		return false;
	now = clock_now_ns();
	if (misses == POLLS_PER_LOOK) {
		atomic_store_explicit(&roce.quiet_ns, now, memory_order_relaxed);
		return false;
	}
	return now - atomic_load_explicit(&roce.quiet_ns, memory_order_relaxed) > COOL_NS;
}

static bool roce_poll(struct hca_cq *cq, bool wait)
{
	bool moved;

	if (likely(cq))
		packet_polled(&port);
	if (!wait && !atomic_load_explicit(&roce.hot, memory_order_relaxed) &&
	    !atomic_load_explicit(&port.blind, memory_order_relaxed) &&
	    (!atomic_load_explicit(&port.backlog, memory_order_relaxed) ||
	     packet_waits_for_reply(&port)) &&
	    !atomic_load_explicit(&port.holds_back, memory_order_relaxed))
		return false;
	/* A program that sleeps for events usually polls once more in vain before it sleeps. If
	 * it does sleep, the kernel wakes it for packets, so nothing is late. */
	if (!wait && hca_arrival_aside() &&
	    !atomic_load_explicit(&roce.misses, memory_order_relaxed)) {
		atomic_store_explicit(&roce.misses, 1, memory_order_relaxed);
		return false;
	}
	moved = packet_poll(&port, wait);
	if (moved) {
		poll_hot();
		if (likely(cq))
			packet_moved(&port);
		return true;
	}
	hca_self.polls += cq ? SYSTEM_CALL_POLLS - 1 : 0;
	if (!wait && !has_been_quiet())
		return false;
	atomic_store(&roce.hot, false);
	if (!wait)
		packet_rely(&port, false);
	else if (!packet_leave(&port))
		return false;
	return packet_poll(&port, wait);
}

static bool roce_announces(void)
{
	if (!atomic_load_explicit(&roce.open, memory_order_acquire))
		return true;
	/* While polls were relied on, the progress thread did not look for it. */
	if (packet_leave(&port) &&
	    (atomic_load(&port.backlog) || atomic_load(&port.holds_back)))
		packet_look_later(&port);
	return !atomic_load(&port.blind);
}

static void roce_settle(void)
{
	if (unlikely(atomic_load_explicit(&port.backlog, memory_order_relaxed)))
		packet_answer(&port);
}

static bool roce_peer_ran_on(unsigned cpu)
{
	return atomic_load(&roce.open) && carrier_udp_came_on(roce.udp) == (int)cpu;
}

static bool roce_pending(void)
{
	return atomic_load(&roce.open) && packet_pending(&port);
}

/* ---- opening ---- */

static int open_carrier(void)
{
	struct carrier_udp_params params = { .clock = clock_source_host(),
					     .fragments = true };
	struct carrier_udp_facts facts;
	struct carrier *carrier;
	int ret;

	params.fd = roce_slot_fd(&roce.sockets, roce.slot);
	ret = carrier_udp_open(&params, &roce.udp);
	if (ret)
		return ret;
	carrier_udp_facts(roce.udp, &facts);
	roce_fragment_port = port.fragment_port = facts.fragment_port;
	/* The kernel also counts its overhead, which is about as much as the packets. */
	port.buffer_bytes = facts.receive_bytes / 2;
	carrier = roce.udp;
	ret = carrier_udp_loop(roce.udp, !hca_local_has_groups());
	if (!ret)
		ret = packet_faults(&port, &carrier);
	if (!ret)
		ret = packet_show_udp(&port, &carrier);
	if (!ret)
		ret = packet_port_open(&port, carrier);
	if (ret)
		carrier_close(carrier);
	return ret;
}

/* roce.lock is held. */
static bool take_slot(unsigned slot)
{
	if (roce.slot)
		return roce.slot == slot;
	roce.slot_name = roce_slot_reserve(roce_udp_port, slot);
	if (roce.slot_name < 0)
		return false;
	roce.slot = slot;
	return true;
}

/* roce.lock is held. */
static int open_port(void)
{
	int ret;

	/* A process without queue pairs has no slot yet. */
	for (unsigned i = 1; !roce.slot && i < ROCE_SLOTS; i++)
		take_slot(i);
	if (!roce.slot) {
		log_error("no share of UDP port %u is free: %u processes of this host use it, or others hold their names",
			  roce_udp_port, ROCE_SLOTS - 1);
		return -EADDRINUSE;
	}
	if (roce.slot_name < 0)
		roce.slot_name = roce_slot_reserve(roce_udp_port, roce.slot);
	if (roce.slot_name < 0)
		return roce.slot_name;
	ret = roce_sockets_open(&roce.sockets, roce_udp_port);
	if (ret)
		return ret;
	roce_slot_take(&roce.sockets, roce.slot, roce.slot_name);
	roce.slot_name = -1;
	ret = open_carrier();
	if (ret)
		goto err_sockets;
	ret = hca_arrival_watch(carrier_udp_fd(roce.udp), readable);
	if (ret)
		goto err_port;
	hca_arrival_set_leave(carrier_udp_fd(roce.udp), leave_to_polls);
	atomic_store(&roce.open, true);
	hca_transport_polled(&roce_ops);
	return 0;

err_port:
	packet_port_close(&port);
err_sockets:
	/* Releases the slot, which the process needs again: it has QP numbers of it. */
	roce_sockets_close(&roce.sockets);
	return ret;
}

static void drop_slot(void)
{
	if (roce.slot && roce.slot_name >= 0)
		close(roce.slot_name);
	roce.slot_name = -1;
	roce.slot = 0;
}

static int need_port(void)
{
	int ret = 0;

	if (atomic_load_explicit(&roce.open, memory_order_acquire))
		return 0;
	pthread_mutex_lock(&roce.lock);
	if (!atomic_load(&roce.open))
		ret = open_port();
	pthread_mutex_unlock(&roce.lock);
	return ret;
}

/* ---- the table ---- */

static int open_qp1(void)
{
	int ret = need_port();

	pthread_mutex_lock(&roce.lock);
	if (!ret && !roce.qp1) {
		ret = roce_qp1_open(roce_slot_fd(&roce.sockets, 0), &port);
		roce.qp1 = !ret;
	}
	pthread_mutex_unlock(&roce.lock);
	return ret;
}

static const struct roce_gsi_port gsi_port = { .open = open_qp1, .emit = roce_qp1_emit };

static int roce_start(void)
{
	roce_udp_port = (uint16_t)hca_settings.udp_port;
	packet_show_start();
	roce_gsi_start(&gsi_port);
	return 0;
}

static void roce_stop(void)
{
	bool open;

	if (atomic_load(&roce.open))
		roce_qp1_close();
	roce.qp1 = false;
	roce_gsi_stop();
	/* rely() must not run at the same time. */
	pthread_mutex_lock(&port.presence.lock);
	open = atomic_exchange(&roce.open, false);
	pthread_mutex_unlock(&port.presence.lock);
	if (open) {
		hca_arrival_unwatch(carrier_udp_fd(roce.udp));
		packet_port_close(&port);
		roce_sockets_close(&roce.sockets);
	}
	drop_slot();
	atomic_store(&roce.hot, false);
	atomic_store(&port.blind, false);
	packet_show_stop();
}

/* Called when a program ends without destroying its queue pairs: its peers would repeat messages
 * that it has received and not yet acknowledged. */
__attribute__((destructor)) static void roce_end(void)
{
	if (atomic_load(&roce.open))
		packet_port_end(&port);
}

static void roce_forked(void)
{
	pthread_mutex_init(&roce.lock, NULL);
	roce_qp1_forked();
	roce.qp1 = false;
	roce_gsi_forked();
	packet_port_forked(&port);
	atomic_store(&port.blind, false);
	packet_show_forked();
	atomic_store(&roce.open, false);
	/* Also those of a port that another thread of the parent was opening. */
	roce_sockets_forked(&roce.sockets);
	drop_slot();
	atomic_store(&roce.hot, false);
}

static bool roce_offer_block(uint32_t block)
{
	unsigned slot = block % ROCE_SLOTS;
	bool taken;

	if (!slot)
		return false;
	pthread_mutex_lock(&roce.lock);
	taken = take_slot(slot);
	pthread_mutex_unlock(&roce.lock);
	return taken;
}

static int roce_reach(const struct hca_destination *to)
{
	if (!to->ah)
		return COST_UD;
	/* Packets to the group would come back by the loopback interface. */
	if (to->multicast && hca_local_has_groups() && roce_group_stays_here(to->ah))
		return -EHOSTUNREACH;
	return roce_is_address(to->ah) ? COST : -EHOSTUNREACH;
}

static int roce_group(const union ibv_gid *gid, uint16_t lid, bool joined)
{
	int ret = joined ? need_port() : 0;

	/* Without the port the group still exists inside of the host. */
	if (ret || !atomic_load(&roce.open))
		return hca_local_has_groups() ? 0 : ret;
	return roce_group_member(roce.udp, gid, joined);
}

static void roce_expect(struct hca_qp *qp)
{
	(void)qp;
	need_port();
}

static int roce_open(struct hca_qp *qp)
{
	int ret = need_port();

	return ret ? ret : packet_open(&port, qp);
}

static void roce_close(struct hca_qp *qp)
{
	packet_close(&port, qp);
}

static void roce_transmit(struct hca_qp *qp)
{
	poll_hot();
	packet_transmit(qp);
}

static int roce_datagram(struct hca_qp *qp, const struct hca_swqe *e)
{
	if (!atomic_load_explicit(&roce.open, memory_order_acquire))
		return hca_datagram_lose(qp, e);
	poll_hot();
	return packet_datagram(&port, qp, e);
}

static int roce_faults(const char *text, char *note, size_t note_bytes)
{
	return packet_faults_set(&port, text, note, note_bytes);
}

static unsigned roce_fault_event(unsigned index, char *line, size_t line_bytes)
{
	return packet_faults_event(&port, index, line, line_bytes);
}

static void roce_posted(struct hca_qp *qp)
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
	if (atomic_load(&roce.open))
		packet_srq_forget(&port, srq);
}

const struct hca_transport_ops roce_ops = {
	.name = "roce",
	.start = roce_start,
	.stop = roce_stop,
	.forked = roce_forked,
	.offer_block = roce_offer_block,
	.expect = roce_expect,
	.group = roce_group,
	.reach = roce_reach,
	.open = roce_open,
	.connect = packet_connect,
	.ready = packet_ready,
	.failed = packet_failed,
	.close = roce_close,
	.transmit = roce_transmit,
	.datagram = roce_datagram,
	.posted = roce_posted,
	.expired = packet_expired,
	.poll = roce_poll,
	.polled_later = true,
	.announces = roce_announces,
	.settle = roce_settle,
	.peer_ran_on = roce_peer_ran_on,
	.pending = roce_pending,
	.faults = roce_faults,
	.fault_event = roce_fault_event,
	.gsi = &roce_gsi_ops,
	.fence = {
		.qp = qp_fence,
		.key = key_fence,
		.key_busy = key_busy,
		.srq = srq_fence,
	},
};
