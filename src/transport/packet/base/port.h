/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A port: the place where packets leave and arrive; see packet.h. Here are its structures, and
 * what needs no queue pair: faults, presence, fences, captures.
 */
#ifndef TRANSPORT_PACKET_BASE_PORT_H
#define TRANSPORT_PACKET_BASE_PORT_H

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "hca/memory/demand.h"
#include "hca/object/qp.h"
#include "hca/run/copies.h"
#include "hca/run/progress.h"
#include "transport/carrier/carrier.h"
#include "transport/carrier/impair.h"
#include "transport/carrier/tap.h"
#include "transport/packet/frame/frame.h"
#include "util/list.h"
#include "util/spin.h"
#include "wire/ib/icrc.h"

struct packet_event_rules;
struct packet_events;

#define PACKET_TRAIN_MAX 64
#define PACKET_TRAIN_BYTES 65000 /* of all packets of an emission */
#define PACKET_TRAILER_BYTES 8

/* Where packets of a queue pair, or a datagram, go; as the fields of struct carrier_unit. */
struct packet_route {
	struct carrier_addr to, from;
	uint16_t known; /* enum carrier_known */
	uint8_t tos, ttl;
	uint32_t interface;
	bool any_here; /* the peer is known by no GID: it has any address of this host */
	/* A packet was longer than the network takes. Since then all packets leave with
	 * CARRIER_FRAGMENTS, also shorter ones, so that they keep their order. */
	atomic_bool fragments;
};

/* What the transport on top knows of its packets. Pure functions, except too_long. */
struct packet_medium {
	uint32_t mtu;    /* the longest payload that the medium takes, up to PACKET_MTU */
	uint32_t window; /* unacknowledged request packets of a queue pair, at least */
	/* UC has SEND with invalidate, as in ibv_post_send(3); InfiniBand packets of UC have
	 * no opcode for it. */
	bool uc_invalidates;
	uint64_t line_bps; /* bits a second of the port; 0: unknown (engine/rc/pace.h) */
	/* How long an acknowledgement may wait if the program usually replies before its next poll: the
	 * reply takes it along. 0, or otherwise: it leaves with the poll that brought the request. */
	uint64_t ack_delay_ns;
	/* Writes the header; returns its length. */
	size_t (*encode)(const struct packet_frame *f, uint8_t to[PACKET_HEADER_BYTES]);
	/* Changes the header of a packet without flags to that of the same packet with another PSN. */
	void (*renumber)(uint8_t *header, uint32_t psn);
	/* Writes what follows the payload, which is in `n` pieces, of packet `k` of a train; returns
	 * how many bytes: a multiple of 4 together with those of the payload, and at least 4.
	 * `series`: that of the route, zeros before its first packet. `fragments`: it leaves with
	 * CARRIER_FRAGMENTS. NULL: nothing follows. */
	size_t (*seal)(const struct packet_route *route, struct icrc_series *series, unsigned k,
		       bool fragments, const uint8_t *header, size_t header_bytes,
		       const struct iovec *iov, unsigned n, uint8_t to[PACKET_TRAILER_BYTES]);
	/* The carrier refused a packet of `bytes` (-EMSGSIZE). True: it takes it with
	 * CARRIER_FRAGMENTS. Any thread, with locks of queue pairs held. NULL: it never
	 * does. */
	bool (*too_long)(const struct packet_route *route, size_t bytes);
	/* Packet `k` of `unit`, which lies at `from`: how many bytes precede its payload. 0: the
	 * bytes are no packet, because of *fault (which is MALFORMED before). The caller checks
	 * rc.bytes. `series`: that of the addresses of the unit, zeros before their first packet. */
	size_t (*decode)(const struct carrier_unit *unit, struct icrc_series *series, unsigned k,
			 const uint8_t *from, size_t bytes, struct packet_frame *f,
			 enum packet_fault *fault);
	/* Reads the header of a packet of this medium, without a look at what follows the payload and
	 * at addresses: of one that leaves as well as of one that comes. 0: it is no packet. */
	size_t (*peek)(const uint8_t *from, size_t bytes, struct packet_frame *f);
	/* Would decode() find in packet `k` the same frame as in the packet before it, of the same
	 * length, whose `header_bytes` are at `before`, except for a PSN that is higher by 1? */
	bool (*follows)(const struct carrier_unit *unit, struct icrc_series *series, unsigned k,
			const uint8_t *before, size_t header_bytes, const uint8_t *from,
			size_t bytes);
	/* The route from the address `from` to that of the address vector, which is complete
	 * (hca_address_complete()): 0 or -EHOSTUNREACH. */
	int (*address)(const struct ibv_ah_attr *to, const union ibv_gid *from,
		       struct packet_route *route);
	/* Does the unit come from the other end of the route? NULL: packets name the
	 * queue pair that sent them. Otherwise those of connections do not. */
	bool (*is_from)(const struct packet_route *route, const struct carrier_unit *unit);
};

/* Does the program poll without a gap? See presence.c. */
struct packet_presence {
	atomic_bool present;  /* the program polls without a gap */
	atomic_bool relied;   /* its polls move the packets; changes under `lock` */
	atomic_bool left;     /* the program stopped to poll while packets waited */
	atomic_bool displaced; /* while it is present, `work` is to poll once in its place */
	/* While not present: when the last poll was, and when the last gap ended. */
	_Atomic uint64_t polled_ns, since_ns;
	_Atomic uint64_t patience_ns; /* time without a gap until it counts as present */
	/* While not present: how often in succession polls have taken in what the progress thread
	 * had left to them. */
	atomic_uint seen;
	/* The next four by the progress thread alone: how often in succession it has left packets to
	 * polls, and when it did so last. */
	unsigned leaves;
	uint64_t left_ns;
	unsigned put_off;      /* how often in succession `look` was put off */
	uint64_t polls_before; /* number of polls at the last look */
	_Atomic uint64_t present_ns;  /* when it became present */
	pthread_mutex_t lock; /* guards the members below */
	bool ran;             /* the thread had the processor when the program stopped to poll */
	uint64_t looked_ns;   /* when `glance` last saw that it polls */
	uint64_t busy_until_ns; /* fewer looks until then: the thread has lost its processor */
	uint64_t polls, cpu_ns; /* number of polls and time of the processor then */
	clockid_t cpu_clock;  /* of the thread that polls */
	pid_t tid;            /* of that thread */
	long sleeps;          /* how often that thread had slept when it became present */
	struct progress_timer glance; /* looks whether the program still polls */
	struct progress_timer look;   /* sees to it that somebody polls for what raises no event */
	struct progress_timer work;   /* polls for it; for `look` to arm */
	atomic_bool closed; /* no timer is armed any more */
	atomic_bool wanted; /* it is to poll whatever is due */
	/* The time until `look` is doubled so often, because it came in vain so often. */
	_Atomic uint8_t delay;
};

struct packet_port {
	const struct hca_transport_ops *ops; /* of the transport on top */
	const struct packet_medium *medium;
	/* How many packets one emission may have now, 1 to PACKET_TRAIN_MAX. */
	unsigned (*train)(void);
	/* NULL: closed. Changes under receive_lock; threads that emit read it without. */
	struct carrier *_Atomic carrier;
	struct carrier_watcher watcher;      /* packet_show_port() */
	struct packet_presence presence;
	/* Called when the port begins (true) or ceases (false) to rely on polls; NULL: the
	 * transport need not know. presence.lock is held. */
	void (*rely)(bool on);
	atomic_bool blind;     /* the sockets cannot be watched: packets raise no event */
	/* The carrier below may hold packets back; their release raises no event. */
	atomic_bool holds_back;
	/* The filter of faults; NULL: no faults were wanted so far. receive_lock, also for the four
	 * members that follow. */
	struct carrier *fault;
	struct impair_settings faults;
	struct packet_event_rules *event_rules; /* of `faults`; NULL: no events are wanted */
	struct packet_events *events; /* NULL: none were wanted so far; else it stays */
	bool faults_known; /* `faults` holds the faults that are wanted */
	uint16_t fragment_port; /* from which packets leave in fragments, for captures; 0: none */
	/* How many bytes of arrived packets the carrier keeps, and probably that of a peer: a bound
	 * for windows; 0: no more than medium->window packets. Set before the first queue pair. */
	uint32_t buffer_bytes;
	unsigned generation;                 /* grows with each opening and fork */
	struct spin receive_lock;
	struct list answering; /* responders that owe; receive_lock */
	_Atomic uint64_t owes_ns; /* since when one of them has; changes under receive_lock */
	bool no_waiting;       /* acknowledgements that may wait leave, too; receive_lock */
	uint32_t unanswered_bytes; /* that came since the responders' last turns; receive_lock */
	atomic_uint turn;      /* polls of the program; changes under receive_lock */
	atomic_bool streams;   /* a long unit came */
	/* Of the progress thread alone: it has carried out a request; how many times it will not
	 * linger (poll.c); how often in succession it did so in vain. */
	bool serves;
	uint8_t linger_skips, linger_vain;
	struct list targets;   /* of XRC; receive_lock */
	uint64_t now_ns;       /* when the unit that is delivered came, or of this poll in vain;
				* receive_lock */
	/* Of units with these addresses, those of the last one; receive_lock. */
	struct icrc_series series;
	struct carrier_addr from, to;
	uint8_t *packet;       /* for one that came in pieces; receive_lock */
	uint8_t *answers;      /* payloads of a train of responses; receive_lock */
	struct spin wait_lock; /* a leaf */
	struct list waiting;   /* requesters that found the carrier full, or wait for a poll */
	atomic_uint backlog;   /* entries of both lists */
	/* Until then all of the backlog are acknowledgements that wait for a reply; 0: not all. */
	_Atomic uint64_t reply_until_ns;
	struct hca_copies copies; /* threads that look at keys and copy by them */
	/* Regions on demand as an adapter of BUSBAR_PAGING has them; NULL: their pages are there at
	 * once. Set while the port is open. */
	struct hca_demand *demand;
};

/* ---- faults.c ---- */
/* Puts the filter of faults over *carrier if faults are wanted, by BUSBAR_FAULTS or since then
 * by packet_faults_set(); also if packets are shown, as it belongs below the filter that shows
 * them, and where packets may have CARRIER_LOST. Before packet_port_open(). 0 or -ENOMEM. A setting that cannot be used is logged and
 * has no effect; corruption is for media that seal their packets. */
int packet_faults(struct packet_port *port, struct carrier **carrier);
/* As the entry of hca_transport_ops; the port may be open or not. A port gets the filter when
 * the first faults are wanted, and costs nothing before. */
int packet_faults_set(struct packet_port *port, const char *text, char *note, size_t note_bytes);
/* The faults that are wanted begin; the port has its carrier. 0 or -ENOMEM. receive_lock is
 * held. */
int packet_faults_apply(struct packet_port *port);
/* Of hca_transport_ops.fault_event. receive_lock is not held. */
unsigned packet_faults_event(struct packet_port *port, unsigned index, char *line, size_t bytes);
/* Logs the events that took place. receive_lock is not held. */
void packet_faults_tell(struct packet_port *port);
/* The same, and forgets them: the port closes. */
void packet_faults_end(struct packet_port *port);
/* The queue pair has a new connection. receive_lock is held. */
void packet_faults_connected(struct packet_port *port, uint32_t qpn);
/* In a forked child. */
void packet_faults_forked(struct packet_port *port);
/* Checks whether the filter, which is to let all packets pass, still holds some back.
 * receive_lock is held. */
void packet_faults_settle(struct packet_port *port);

/* ---- presence.c: which thread moves packets. receive_lock is not held, unless a comment
 * allows it. ---- */
/* For the carrier to call when packets have come and nobody may be polling; locks of
 * queue pairs may be held. `arg` is the port. */
void packet_port_wake(void *arg);
/* Called by each poll of the program. */
void packet_polled(struct packet_port *port);
/* Called by a poll of the program that has moved packets. */
void packet_moved(struct packet_port *port);
/* Called by the progress thread for an event that says that packets have come; takes no lock. True: the
 * program has polled a short time ago and will probably take them in. The transport then has each poll
 * look for packets. */
bool packet_leave_to_polls(struct packet_port *port);
/* Called when an event says that packets have come; locks of queue pairs may be held. True:
 * polls of the program will move them. */
bool packet_arrives(struct packet_port *port);
/* The program is about to sleep, or does not poll. True: its polls were relied on until now. */
bool packet_leave(struct packet_port *port);
/* Begins to rely on polls, if the program is present; or ceases to. */
void packet_rely(struct packet_port *port, bool on);
/* Any lock may be held. */
bool packet_is_relied_on(const struct packet_port *port);
/* Unless polls are relied on, the progress thread will poll when work is due that raises no
 * event. Any lock may be held. */
void packet_look_later(struct packet_port *port);
/* Called by `work`: is there nothing to do yet, because the program answers soon after it is asked?
 * Then it looks again later. */
bool packet_look_in_vain(struct packet_port *port);
/* The progress thread polls at once. Any lock may be held. */
void packet_look_now(struct packet_port *port);
/* The timer `work` polls in place of the program (poll.c). */
void packet_presence_open(struct packet_port *port, void (*work)(struct progress_timer *t));
/* No lock is held. */
void packet_presence_close(struct packet_port *port);
/* In a forked child. */
void packet_presence_forked(struct packet_port *port, void (*work)(struct progress_timer *t));
/* Polls without a gap have to last twice as long before they are relied on. */
void packet_presence_doubt(struct packet_presence *p);

/* ---- fence.c ---- */
/* A queue pair was taken out of service, or out of the table of numbers: waits until no thread
 * looks at it on behalf of a packet. */
void packet_qp_fence(struct packet_port *port);

/* ---- show_port.c ---- */
/* Stacks a filter over *carrier that shows the packets of the port, if a capture is
 * wanted. For media whose frames have both numbers of queue pairs. 0 or -ENOMEM. */
int packet_show_port(struct packet_port *port, struct carrier **carrier);
/* The same for a carrier over UDP, whose bytes are those of RoCE v2 already: shown with its
 * addresses, and with the IPv4 identification that their ICRC is for. */
int packet_show_udp(struct packet_port *port, struct carrier **carrier);

#endif
