/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the process to which a CM message belongs; see dispatch.h. */
#define LOG_ROOM "roce"
#include "transport/roce/dispatch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hca/host/gid.h"
#include "hca/run/progress.h"
#include "hca/share/peers.h"
#include "util/abstract.h"
#include "util/clock.h"
#include "util/container_of.h"
#include "util/log.h"
#include "wire/cm_answer.h"

#define MAGIC UINT32_C(0x31726262)
#define NAME_SLOT "busbar.roce.cm."
#define NAME_SERVICE "busbar.roce.service."
/* Messages that wait for being taken by their owner; senders repeat what does not fit. */
#define BACKLOG 1024
/* Relaying processes that have connected and said nothing. They are permitted peers, and
 * send at once; a stopped one keeps its place. */
#define CALLERS_MAX 64
/* How long requests wait for a listener, how often it is looked for, and how many wait: each
 * costs a few system calls at a look, and anybody on the network can send one. */
#define HOLD_NS UINT64_C(500000000)
#define LOOK_NS UINT64_C(20000000)
#define HELD_MAX 16
#define HELD_OF_ONE 4 /* sender */
/*
 * Limits the sockets that are connected for the messages of a sender: EFFORT_MAX at once, then
 * one each EFFORT_NS. An early REJ takes one for each slot. Senders whose addresses have the
 * same hash share an allowance. A flood with forged addresses uses up all allowances, which
 * costs some percent of a processor.
 */
#define EFFORT_MAX 4096u
#define EFFORT_NS (NSEC_PER_SEC / 1000)
/* Callers taken at a time, before other work of the progress thread. */
#define BATCH 64

/* A socket with a name. */
struct listener {
	struct list entry;
	struct roce_dispatch *dispatch;
	struct hca_gsi_service service; /* of a service */
	bool is_slot;
	int fd;
};

/* A process that is about to relay a message. */
struct caller {
	struct list entry;
	struct roce_dispatch *dispatch;
	int fd;
};

/* A request that came when nobody served its service. */
struct held_request {
	struct list entry;
	struct hca_gsi_address from;
	uint64_t until_ns;
	bool may_relay;
	uint8_t mad[HCA_GSI_MAD_BYTES];
};

/* ---- the messages between processes ---- */

struct relay {
	uint32_t magic;
	uint32_t interface;
	uint8_t source[16], destination[16];
	uint8_t mad[HCA_GSI_MAD_BYTES];
};
_Static_assert(sizeof(struct relay) == ROCE_RELAY_BYTES, "no padding");

void roce_relay_encode(const struct hca_gsi_address *from,
		       const uint8_t mad[HCA_GSI_MAD_BYTES],
		       uint8_t out[ROCE_RELAY_BYTES])
{
	struct relay r = { .magic = MAGIC, .interface = from->interface };

	memcpy(r.source, from->source, sizeof(r.source));
	memcpy(r.destination, from->destination, sizeof(r.destination));
	memcpy(r.mad, mad, sizeof(r.mad));
	memcpy(out, &r, sizeof(r));
}

/* Can it be the address of one host? */
static bool is_unicast(const uint8_t gid[16])
{
	static const uint8_t none[16];

	if (hca_gid_is_ipv4(gid))
		return gid[12] && gid[12] < 224;
	return gid[0] != 0xff && memcmp(gid, none, sizeof(none)) != 0;
}

static bool address_valid(const struct hca_gsi_address *at)
{
	return is_unicast(at->source) && is_unicast(at->destination) &&
	       at->interface <= INT32_MAX;
}

int roce_relay_decode(const void *bytes, size_t len, struct hca_gsi_address *from,
		      uint8_t mad[HCA_GSI_MAD_BYTES])
{
	struct hca_gsi_address at;
	struct relay r;

	if (len != sizeof(r))
		return -EBADMSG;
	memcpy(&r, bytes, sizeof(r));
	at = (struct hca_gsi_address){ .interface = r.interface };
	memcpy(at.source, r.source, sizeof(at.source));
	memcpy(at.destination, r.destination, sizeof(at.destination));
	if (r.magic != MAGIC || !address_valid(&at))
		return -EBADMSG;
	*from = at;
	memcpy(mad, r.mad, sizeof(r.mad));
	return 0;
}

/* ---- names ---- */

static void slot_name(unsigned slot, struct abstract_name *name)
{
	abstract_name(name, NAME_SLOT "%u", slot);
}

static void service_name(const struct hca_gsi_service *s, struct abstract_name *name)
{
	static const char *const scopes[] = { [HCA_GSI_IPV4] = "any4",
					      [HCA_GSI_IPV6] = "any6",
					      [HCA_GSI_ANY] = "any" };
	unsigned long long id = s->service_id, high = 0, low = 0;

	if (s->scope != HCA_GSI_ADDRESS) {
		abstract_name(name, NAME_SERVICE "%llx.%s", id, scopes[s->scope]);
		return;
	}
	for (int i = 0; i < 8; i++) {
		high = high << 8 | s->address[i];
		low = low << 8 | s->address[8 + i];
	}
	abstract_name(name, NAME_SERVICE "%llx.%016llx%016llx", id, high, low);
}

static bool same_service(const struct hca_gsi_service *a, const struct hca_gsi_service *b)
{
	return a->service_id == b->service_id && a->scope == b->scope &&
	       (a->scope != HCA_GSI_ADDRESS ||
		!memcmp(a->address, b->address, sizeof(a->address)));
}

/* d->lock is held. */
static struct listener *find_service(struct roce_dispatch *d, const struct hca_gsi_service *s)
{
	list_for_each(listener, &d->listeners, struct listener, entry)
		if (!listener->is_slot && same_service(&listener->service, s))
			return listener;
	return NULL;
}

/* ---- the owner of a message ---- */

#define CANDIDATES 3

/* The services that a request may be for, the most precise one first. */
static void candidates_of(const struct hca_gsi_address *from, uint64_t service_id,
			  struct hca_gsi_service out[CANDIDATES])
{
	const uint8_t *to = from->destination;

	for (unsigned i = 0; i < CANDIDATES; i++)
		out[i] = (struct hca_gsi_service){ .service_id = service_id };
	out[0].scope = HCA_GSI_ADDRESS;
	memcpy(out[0].address, to, sizeof(out[0].address));
	out[1].scope = hca_gid_is_ipv4(to) ? HCA_GSI_IPV4 : HCA_GSI_IPV6;
	out[2].scope = HCA_GSI_ANY;
}

static void answer(struct roce_dispatch *d, const struct hca_gsi_address *from,
		   const struct cm_mad *mad)
{
	struct hca_gsi_address back = { .interface = from->interface };
	uint8_t bytes[CM_MAD_SIZE];
	struct cm_mad reply;

	if (wire_cm_refusal(mad, CM_REASON_INVALID_SERVICE_ID, &reply) &&
	    wire_cm_stray_answer(mad, &reply)) {
		log_debug("%s for nobody here dropped", wire_cm_name(mad->type));
		return;
	}
	memcpy(back.source, from->destination, sizeof(back.source));
	memcpy(back.destination, from->source, sizeof(back.destination));
	log_debug("%s for nobody here answered by %s", wire_cm_name(mad->type),
		  wire_cm_name(reply.type));
	if (!wire_cm_encode(&reply, bytes))
		d->ops->send(&back, bytes);
}

/* The lock is held. */
static bool effort_take_locked(struct roce_dispatch *d, const struct hca_gsi_address *from,
			       unsigned cost)
{
	struct roce_effort *e;
	uint64_t now_ns = clock_monotonic_ns_slow(), more;
	uint32_t hash = d->salt;

	for (unsigned i = 0; i < sizeof(from->source); i++)
		hash = (hash ^ from->source[i]) * 0x01000193u;
	e = &d->efforts[hash >> 16 & (ROCE_EFFORTS - 1)];
	more = (now_ns - e->at_ns) / EFFORT_NS;
	if (more >= EFFORT_MAX - e->left) {
		e->left = EFFORT_MAX;
		e->at_ns = now_ns;
	} else {
		e->left += (unsigned)more;
		e->at_ns += more * EFFORT_NS;
	}
	if (e->left < cost) {
		if (!e->said && hca_complaint_due())
			log_warn("so many messages of connection management come from one host that some are dropped");
		e->said = true;
		return false;
	}
	e->left -= cost;
	e->said &= e->left < EFFORT_MAX / 2;
	return true;
}

/* May `cost` sockets be connected for a message of this sender? */
static bool effort_take(struct roce_dispatch *d, const struct hca_gsi_address *from, unsigned cost)
{
	bool taken;

	pthread_mutex_lock(&d->lock);
	taken = effort_take_locked(d, from, cost);
	pthread_mutex_unlock(&d->lock);
	return taken;
}

/* Sends the message to the holder of the name. 0, or a negative errno. -ECONNREFUSED: no
 * process holds it. -EACCES: the holder may not talk to us. -EAGAIN: the holder, perhaps of
 * another user, takes no connection now. -ENOBUFS: the holder may talk to us, and takes no
 * message now. */
static int relay(const struct abstract_name *name, const struct hca_gsi_address *from,
		 const uint8_t *mad)
{
	uint8_t bytes[ROCE_RELAY_BYTES];
	int fd = abstract_connect(name), ret;
	pid_t pid;

	if (fd < 0)
		return fd;
	ret = hca_peer_check(fd, "owner of a connection or port,", &pid);
	if (!ret) {
		roce_relay_encode(from, mad, bytes);
		if (send(fd, bytes, sizeof(bytes), MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
			ret = errno == EAGAIN ? -ENOBUFS : -errno;
	}
	close(fd);
	return ret;
}

/* 0: it has its owner; -EAGAIN: that one is busy; another error: nobody here owns it. */
static int forward_request(struct roce_dispatch *d, const struct hca_gsi_address *from,
			uint64_t service_id, const uint8_t *mad, bool may_relay)
{
	struct hca_gsi_service at[CANDIDATES];
	struct abstract_name name;
	int ret = -ECONNREFUSED;
	bool busy = false;

	candidates_of(from, service_id, at);
	for (unsigned i = 0; i < CANDIDATES; i++) {
		bool ours;

		pthread_mutex_lock(&d->lock);
		ours = find_service(d, &at[i]);
		pthread_mutex_unlock(&d->lock);
		if (ours) {
			d->ops->deliver(from, mad);
			return 0;
		}
		if (!may_relay)
			continue;
		if (!effort_take(d, from, 1))
			return -EAGAIN;
		service_name(&at[i], &name);
		ret = relay(&name, from, mad);
		/* A busy holder may be of another user: the other names are tried all the same. */
		busy |= ret == -EAGAIN;
		if (ret != -ECONNREFUSED && ret != -EACCES && ret != -EAGAIN)
			return ret;
	}
	return busy ? -EAGAIN : ret;
}

static int forward_message(struct roce_dispatch *d, const struct hca_gsi_address *from,
			unsigned slot, const uint8_t *mad, bool may_relay)
{
	struct abstract_name name;

	if (!slot)
		return -ECONNREFUSED;
	if (slot == atomic_load(&d->slot)) {
		d->ops->deliver(from, mad);
		return 0;
	}
	if (!may_relay)
		return -ECONNREFUSED;
	if (!effort_take(d, from, 1))
		return -EAGAIN;
	slot_name(slot, &name);
	return relay(&name, from, mad);
}

static unsigned slot_of(const struct cm_mad *mad)
{
	uint32_t to, from;

	wire_cm_parties(mad, &to, &from);
	if (mad->type == CM_SIDR_REP)
		to = mad->sidr_rep.request_id;
	return to >> HCA_GSI_SLOT_SHIFT;
}

/*
 * The REJ of a caller that gives up before it has a REP names only the caller's identifier:
 * every process gets it, and the one with the connection knows it.
 */
static void forward_reject(struct roce_dispatch *d, const struct hca_gsi_address *from,
			 const uint8_t *mad, bool may_relay)
{
	unsigned own = atomic_load(&d->slot);
	struct abstract_name name;

	if (own)
		d->ops->deliver(from, mad);
	may_relay = may_relay && effort_take(d, from, HCA_GSI_SLOTS);
	for (unsigned slot = 1; may_relay && slot < HCA_GSI_SLOTS; slot++) {
		if (slot == own)
			continue;
		slot_name(slot, &name);
		relay(&name, from, mad);
	}
}

/* So many requests of the sender wait. d->lock is held. */
static unsigned held_from(const struct roce_dispatch *d, const struct hca_gsi_address *from)
{
	unsigned n = 0;

	list_for_each(h, &d->held, struct held_request, entry)
		n += !memcmp(h->from.source, from->source, sizeof(from->source));
	return n;
}

/* False: it cannot wait. */
static bool hold(struct roce_dispatch *d, const struct hca_gsi_address *from,
		 const uint8_t *mad, bool may_relay)
{
	struct held_request *h = NULL;

	pthread_mutex_lock(&d->lock);
	/* roce_dispatch_close() empties the list behind the slot. */
	if (atomic_load(&d->slot) && d->held_count < HELD_MAX &&
	    held_from(d, from) < HELD_OF_ONE)
		h = calloc(1, sizeof(*h));
	if (h) {
		uint64_t now_ns = clock_monotonic_ns_slow();

		h->from = *from;
		h->until_ns = now_ns + HOLD_NS;
		h->may_relay = may_relay;
		memcpy(h->mad, mad, sizeof(h->mad));
		/* Those that look_again() has in hand are counted and not in the list. */
		if (list_empty(&d->held))
			progress_timer_arm(&d->patience, now_ns + LOOK_NS);
		list_push(&d->held, &h->entry);
		d->held_count++;
	}
	pthread_mutex_unlock(&d->lock);
	return h;
}

static uint64_t service_of(const struct cm_mad *mad)
{
	return mad->type == CM_REQ ? mad->req.service_id : mad->sidr_req.service_id;
}

/* True: it goes on waiting. */
static bool held_again(struct roce_dispatch *d, const struct held_request *h, uint64_t now_ns)
{
	struct cm_mad mad;
	int ret;

	if (wire_cm_decode(h->mad, sizeof(h->mad), &mad))
		return false;
	ret = forward_request(d, &h->from, service_of(&mad), h->mad, h->may_relay);
	if ((ret == -ECONNREFUSED || ret == -EAGAIN) && now_ns < h->until_ns)
		return true;
	if (ret == -ECONNREFUSED || ret == -EACCES)
		answer(d, &h->from, &mad);
	return false;
}

/* On the progress thread. */
static void look_again(struct progress_timer *t)
{
	struct roce_dispatch *d = container_of(t, struct roce_dispatch, patience);
	uint64_t now_ns = clock_monotonic_ns_slow();
	struct list turn, *entry;

	list_init(&turn);
	pthread_mutex_lock(&d->lock);
	list_splice(&turn, &d->held);
	pthread_mutex_unlock(&d->lock);
	while ((entry = list_pop(&turn))) {
		struct held_request *h = list_entry(entry, struct held_request, entry);
		bool waits = held_again(d, h, now_ns);

		pthread_mutex_lock(&d->lock);
		/* roce_dispatch_close() may have cancelled the timer meanwhile. */
		waits = waits && atomic_load(&d->slot);
		if (waits) {
			list_push(&d->held, &h->entry);
			progress_timer_arm(t, now_ns + LOOK_NS);
		} else {
			d->held_count--;
		}
		pthread_mutex_unlock(&d->lock);
		if (!waits)
			free(h);
	}
}

/* No thread uses the list any more. */
static void held_forget(struct roce_dispatch *d)
{
	struct list *entry;

	while ((entry = list_pop(&d->held)))
		free(list_entry(entry, struct held_request, entry));
	d->held_count = 0;
}

static void forward(struct roce_dispatch *d, const struct hca_gsi_address *from,
		 const uint8_t *bytes, size_t len, bool may_relay)
{
	struct cm_mad mad;
	bool is_request;
	int ret;

	if (!address_valid(from) || wire_cm_decode(bytes, len, &mad)) {
		log_debug("%zu bytes for queue pair 1 are no cm message: dropped", len);
		return;
	}
	is_request = mad.type == CM_REQ || mad.type == CM_SIDR_REQ;
	if (is_request)
		ret = forward_request(d, from, service_of(&mad), bytes, may_relay);
	else if (mad.type == CM_REJ && !mad.rej.remote_comm_id &&
		 mad.rej.local_comm_id)
		return forward_reject(d, from, bytes, may_relay);
	else
		ret = forward_message(d, from, slot_of(&mad), bytes, may_relay);
	if (ret == -ECONNREFUSED && is_request && hold(d, from, bytes, may_relay))
		return;
	if (ret == -ECONNREFUSED || ret == -EACCES)
		answer(d, from, &mad);
	else if (ret)
		log_debug("%s not relayed: %s", wire_cm_name(mad.type), strerror(-ret));
}

void roce_dispatch_arrived(struct roce_dispatch *d, const struct hca_gsi_address *from,
			   const void *bytes, size_t len)
{
	forward(d, from, bytes, len, true);
}

void roce_dispatch_take(struct roce_dispatch *d, const struct hca_gsi_address *from,
			const uint8_t mad[HCA_GSI_MAD_BYTES])
{
	forward(d, from, mad, HCA_GSI_MAD_BYTES, false);
}

/* ---- messages that other processes relay; on the progress thread ---- */

static void caller_end(struct caller *c)
{
	struct roce_dispatch *d = c->dispatch;

	pthread_mutex_lock(&d->lock);
	list_remove(&c->entry);
	d->caller_count--;
	pthread_mutex_unlock(&d->lock);
	close(c->fd);
	free(c);
}

/* False: nothing has come yet. */
static bool caller_read(struct roce_dispatch *d, int fd)
{
	uint8_t bytes[ROCE_RELAY_BYTES + 1], mad[HCA_GSI_MAD_BYTES];
	ssize_t n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
	struct hca_gsi_address from;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n <= 0)
		return true;
	if (roce_relay_decode(bytes, (size_t)n, &from, mad)) {
		if (hca_complaint_due())
			log_warn("a process relayed %zd bytes that are no message; dropped", n);
	} else {
		roce_dispatch_take(d, &from, mad);
	}
	return true;
}

static void caller_ready(void *arg, uint32_t events)
{
	struct caller *c = arg;

	if (!caller_read(c->dispatch, c->fd))
		return;
	progress_unwatch(c->fd);
	caller_end(c);
}

/* Takes a message at once if it has come already, as it mostly has. */
static void caller_take(struct roce_dispatch *d, int fd)
{
	struct caller *c = NULL;
	bool room;
	pid_t pid;

	if (hca_peer_check(fd, "relaying process", &pid) || caller_read(d, fd))
		goto err_close;
	pthread_mutex_lock(&d->lock);
	room = d->caller_count < CALLERS_MAX;
	if (room)
		c = calloc(1, sizeof(*c));
	if (c) {
		c->dispatch = d;
		c->fd = fd;
		list_init(&c->entry);
		list_push(&d->callers, &c->entry);
		d->caller_count++;
	}
	pthread_mutex_unlock(&d->lock);
	if (!c)
		goto err_close;
	if (progress_watch(fd, EPOLLIN, caller_ready, c))
		caller_end(c);
	return;

err_close:
	close(fd);
}

/* The next caller of a listener, unless another thread has closed that meanwhile; or -1. */
static int listener_accept(struct listener *listener)
{
	struct roce_dispatch *d = listener->dispatch;
	int fd = -1;

	pthread_mutex_lock(&d->lock);
	if (listener->fd >= 0)
		fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	pthread_mutex_unlock(&d->lock);
	return fd;
}

static void listener_ready(void *arg, uint32_t events)
{
	struct listener *listener = arg;
	int fd;

	for (int i = 0; i < BATCH && (fd = listener_accept(listener)) >= 0; i++)
		caller_take(listener->dispatch, fd);
}

/* ---- slot and services ---- */

/* Watches the socket `fd`, which becomes the listener's. 0 or a negative errno. */
static int listener_open(struct roce_dispatch *d, int fd, const struct hca_gsi_service *service)
{
	struct listener *listener = calloc(1, sizeof(*listener));
	int ret;

	if (!listener)
		return -ENOMEM;
	listener->dispatch = d;
	listener->fd = fd;
	listener->is_slot = !service;
	if (service)
		listener->service = *service;
	list_init(&listener->entry);
	/* Callers are answered when the lock is free, so the list has the listener by then. */
	pthread_mutex_lock(&d->lock);
	ret = progress_watch(fd, EPOLLIN, listener_ready, listener);
	if (!ret)
		list_push(&d->listeners, &listener->entry);
	pthread_mutex_unlock(&d->lock);
	if (ret)
		free(listener);
	return ret;
}

/* The listener's memory remains until no callback uses it. d->lock is held. */
static void listener_close(struct listener *listener)
{
	struct roce_dispatch *d = listener->dispatch;

	progress_unwatch_async(listener->fd);
	close(listener->fd);
	listener->fd = -1;
	list_remove(&listener->entry);
	list_push(&d->closed, &listener->entry);
	progress_timer_arm(&d->sweeper, 0);
}

/* On the progress thread, where no callback of a listener runs now. */
static void sweep(struct progress_timer *t)
{
	struct roce_dispatch *d = container_of(t, struct roce_dispatch, sweeper);
	struct list *entry;

	pthread_mutex_lock(&d->lock);
	while ((entry = list_pop(&d->closed)))
		free(list_entry(entry, struct listener, entry));
	pthread_mutex_unlock(&d->lock);
}

void roce_dispatch_init(struct roce_dispatch *d, const struct roce_dispatch_ops *ops)
{
	*d = (struct roce_dispatch){ .ops = ops };
	/* Nobody else has to guess which senders share an allowance. */
	if (getrandom(&d->salt, sizeof(d->salt), GRND_NONBLOCK) != sizeof(d->salt))
		d->salt = (uint32_t)clock_monotonic_ns_slow();
	pthread_mutex_init(&d->lock, NULL);
	list_init(&d->listeners);
	list_init(&d->closed);
	list_init(&d->callers);
	list_init(&d->held);
	progress_timer_init(&d->sweeper, sweep);
	progress_timer_init(&d->patience, look_again);
}

/* All names are taken: logs whether processes that may not talk to this one hold some. */
static void say_full(void)
{
	struct abstract_name name;
	unsigned others = 0;
	pid_t pid;

	for (unsigned slot = 1; slot < HCA_GSI_SLOTS; slot++) {
		int fd;

		slot_name(slot, &name);
		fd = abstract_connect(&name);
		if (fd < 0)
			continue;
		others += hca_peer_check(fd, "holder of a place for connections,", &pid) ==
			  -EACCES;
		close(fd);
	}
	if (others)
		log_error("no connections to other hosts: processes that may not talk to this one hold %u of the %u places for them",
			  others, HCA_GSI_SLOTS - 1);
	else
		log_error("%u processes of this host make connections to other hosts: no more can",
			  HCA_GSI_SLOTS - 1);
}

/* A listening socket under the name of a free slot; or a negative errno. */
static int slot_take(unsigned *slot)
{
	struct abstract_name name;
	int fd = -EADDRINUSE;

	for (*slot = 1; *slot < HCA_GSI_SLOTS; ++*slot) {
		slot_name(*slot, &name);
		fd = abstract_open(&name, SOCK_SEQPACKET, BACKLOG);
		if (fd != -EADDRINUSE)
			return fd;
	}
	say_full();
	return -EUSERS;
}

int roce_dispatch_open(struct roce_dispatch *d)
{
	unsigned slot;
	int fd, ret;

	if (atomic_load(&d->slot))
		return -EALREADY;
	fd = slot_take(&slot);
	if (fd < 0)
		return fd;
	ret = listener_open(d, fd, NULL);
	if (ret) {
		close(fd);
		return ret;
	}
	atomic_store(&d->slot, slot);
	return (int)slot;
}

static struct caller *caller_next(struct roce_dispatch *d)
{
	struct caller *c = NULL;

	pthread_mutex_lock(&d->lock);
	if (!list_empty(&d->callers))
		c = list_entry(d->callers.next, struct caller, entry);
	pthread_mutex_unlock(&d->lock);
	return c;
}

static struct listener *listener_next(struct roce_dispatch *d)
{
	struct listener *listener = NULL;

	pthread_mutex_lock(&d->lock);
	if (!list_empty(&d->listeners))
		listener = list_entry(d->listeners.next, struct listener, entry);
	pthread_mutex_unlock(&d->lock);
	return listener;
}

void roce_dispatch_close(struct roce_dispatch *d)
{
	struct listener *listener;
	struct caller *c;

	atomic_store(&d->slot, 0);
	/* With waiting: afterwards no caller is accepted, and so on. */
	while ((listener = listener_next(d))) {
		progress_unwatch(listener->fd);
		pthread_mutex_lock(&d->lock);
		listener_close(listener);
		pthread_mutex_unlock(&d->lock);
	}
	while ((c = caller_next(d))) {
		progress_unwatch(c->fd);
		/* Its callback, if it was running, has ended it. */
		if (caller_next(d) == c)
			caller_end(c);
	}
	progress_timer_cancel(&d->sweeper);
	sweep(&d->sweeper);
	/* Callers repeat what waited. Behind the lock nobody arms the timer any more. */
	pthread_mutex_lock(&d->lock);
	pthread_mutex_unlock(&d->lock);
	progress_timer_cancel(&d->patience);
	pthread_mutex_lock(&d->lock);
	held_forget(d);
	pthread_mutex_unlock(&d->lock);
}

int roce_dispatch_serve(struct roce_dispatch *d, const struct hca_gsi_service *service)
{
	struct abstract_name name;
	int fd, ret;

	service_name(service, &name);
	fd = abstract_open(&name, SOCK_SEQPACKET, BACKLOG);
	if (fd < 0)
		return fd;
	ret = listener_open(d, fd, service);
	if (ret) {
		close(fd);
		return ret;
	}
	pthread_mutex_lock(&d->lock);
	if (d->held_count)
		progress_timer_arm(&d->patience, 0);
	pthread_mutex_unlock(&d->lock);
	return 0;
}

void roce_dispatch_unserve(struct roce_dispatch *d, const struct hca_gsi_service *service)
{
	struct listener *listener;

	pthread_mutex_lock(&d->lock);
	listener = find_service(d, service);
	if (listener)
		listener_close(listener);
	pthread_mutex_unlock(&d->lock);
}

static void listeners_forget(struct list *listeners)
{
	struct list *entry;

	while ((entry = list_pop(listeners))) {
		struct listener *listener = list_entry(entry, struct listener, entry);

		if (listener->fd >= 0)
			close(listener->fd);
		free(listener);
	}
}

void roce_dispatch_forked(struct roce_dispatch *d)
{
	struct list *entry;

	/* If another thread of the parent was changing the lists, they are left alone:
	 * their descriptors stay open in the child. */
	if (!pthread_mutex_trylock(&d->lock)) {
		listeners_forget(&d->listeners);
		listeners_forget(&d->closed);
		while ((entry = list_pop(&d->callers))) {
			struct caller *c = list_entry(entry, struct caller, entry);

			close(c->fd);
			free(c);
		}
		held_forget(d);
	}
	roce_dispatch_init(d, d->ops);
}
