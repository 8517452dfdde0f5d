/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which thread moves packets: one of the program that polls, or the progress thread.
 *
 * A peer waits for answers whatever the program does: it may compute, sleep, or wait for a
 * byte of its memory. So the progress thread is woken for each packet, except while the
 * program is *present*: it has polled for a while (`patience`) without a gap. Then the port
 * may *rely* on polls: nothing wakes the progress thread for packets, which costs a message
 * as much as all else does.
 *
 * On a processor that other threads use, too, polls have gaps: the progress thread itself, interrupts
 * and calls of the kernel make them. And a program that waits for its peer in its memory does not
 * poll meanwhile. If the progress thread came in between each time, it would take the processor from
 * the program, whose peer then waits in its memory, and so on. So while the program has polled a short
 * time ago, the progress thread leaves packets to it for some microseconds, and later looks at what
 * it has left; and a program that takes such packets in each time is present as well.
 *
 * No event says that a program that is relied on stops to poll. So a timer looks at the number
 * of polls now and then: if there was none since the last look, the program has left, and the
 * progress thread does what there is to do. The timer runs outside of hca_enter(), as a program that
 * polls must not have to take locks for it. Each look takes the processor away from a program that
 * shares it with the progress thread. The longer the program has been present, the longer it
 * probably will, and the fewer looks there are.
 *
 * A program that polls may lose its processor for a time slice. It has not left then: it would poll
 * if it could.
 *
 * A program that leaves while packets wait for it, though it has the processor, probably does
 * so again. Then the polls without a gap have to last twice as long before it is relied on.
 */
#include <sys/resource.h>

#include "hca/host/thread.h"
#include "transport/packet/base/state.h"

#define GAP_NS 20000
#define SLICE_NS UINT64_C(500000) /* the kernel's shortest slice for a thread that computes */
#define PATIENCE_NS UINT64_C(500000)
#define PATIENCE_MOST_NS UINT64_C(32000000)
#define PATIENCE_FADES_NS NSEC_PER_SEC
/* So many times polls take in what the progress thread has left, by PATIENCE_NS of patience. */
#define SEEN_LEAST 8u
/* The time between two looks: this part of the time of presence, within these limits. One call of
 * the kernel may take half of the shortest. */
#define PAUSE_PART 16
#define PAUSE_NS UINT64_C(100000)
#define PAUSE_MOST_NS UINT64_C(4000000)
/* A program that has left, and not only waits for a processor, ran for so long without a poll. */
#define RAN_NS 15000
/* Time between two looks while the program has no processor. */
#define DISPLACED_NS UINT64_C(1000000)
/* A program without a processor for so long has its work done in its place. */
#define STAND_IN_NS UINT64_C(4000000)
/* Time between two polls of the progress thread for work that raises no event. */
#define LOOK_NS UINT64_C(100000)
/* The same after such a poll: it may have left an acknowledgement to a reply of the program. */
#define LOOK_AGAIN_NS UINT64_C(60000)
#define DELAY_MOST 4u
/* So many times in succession the progress thread leaves packets to a program that polls; once, if
 * its last poll is not longer ago than RECENT_NS. */
#define LEAVES_MOST 3u
#define RECENT_NS 1000000
/* So many times a look is put off because the program has polled. */
#define PUT_OFF_MOST 3u

bool packet_is_relied_on(const struct packet_port *port)
{
	return atomic_load(&port->presence.relied);
}

/* How many times this thread has gone to sleep. */
static long sleeps(void)
{
	struct rusage r = { 0 };

	getrusage(RUSAGE_THREAD, &r);
	return r.ru_nvcsw;
}

static uint64_t polls(void)
{
	return atomic_load_explicit(&hca_process.polls, memory_order_relaxed);
}

/* ---- called by threads that poll ---- */

/* After a gap between two polls of this thread: did it only lose its processor? Then the kernel
 * has taken the processor away since the last gap, and the thread has not slept. A gap that is
 * shorter than a time slice is no sign of that: for so long the progress thread displaces a
 * program that spins on memory. */
static bool was_displaced(uint64_t gap_ns)
{
	static _Thread_local struct {
		long slept, displaced;
	} before __attribute__((tls_model("initial-exec")));
	struct rusage r = { 0 };
	bool displaced;

	if (gap_ns < SLICE_NS)
		return false;
	getrusage(RUSAGE_THREAD, &r);
	displaced = r.ru_nvcsw == before.slept && r.ru_nivcsw != before.displaced;
	before.slept = r.ru_nvcsw;
	before.displaced = r.ru_nivcsw;
	return displaced;
}

static void set_patience(struct packet_presence *p, uint64_t ns)
{
	atomic_store_explicit(&p->patience_ns, MIN(ns, PATIENCE_MOST_NS),
			      memory_order_relaxed);
}

static uint64_t patience(const struct packet_presence *p)
{
	return atomic_load_explicit(&p->patience_ns, memory_order_relaxed);
}

void packet_presence_doubt(struct packet_presence *p)
{
	set_patience(p, 2 * patience(p));
}

/* The first poll after a gap. If the thread slept, the program had left; if not, the thread had
 * only lost its processor. */
static __attribute__((noinline)) void come_back(struct packet_presence *p)
{
	if (!atomic_exchange(&p->left, false))
		return;
	pthread_mutex_lock(&p->lock);
	if (sleeps() != p->sleeps)
		packet_presence_doubt(p);
	pthread_mutex_unlock(&p->lock);
}

static __attribute__((noinline)) void become_present(struct packet_port *port,
						     uint64_t now_ns)
{
	struct packet_presence *p = &port->presence;

	if (atomic_exchange(&p->present, true))
		return;
	/* A program that has armed a queue may sleep without another poll. If it arms one after
	 * this check, that call ends its presence. */
	if (atomic_load(&hca_process.armed)) {
		atomic_store(&p->present, false);
		return;
	}
	pthread_mutex_lock(&p->lock);
	p->sleeps = sleeps();
	p->tid = hca_thread_number();
	if (pthread_getcpuclockid(pthread_self(), &p->cpu_clock))
		p->cpu_clock = CLOCK_MONOTONIC;
	pthread_mutex_unlock(&p->lock);
	atomic_store_explicit(&p->present_ns, now_ns, memory_order_relaxed);
	atomic_store_explicit(&p->seen, 0, memory_order_relaxed);
	packet_rely(port, true);
}

static bool is_seen_often(const struct packet_presence *p)
{
	return atomic_load_explicit(&p->seen, memory_order_relaxed) >=
	       SEEN_LEAST * patience(p) / PATIENCE_NS;
}

void packet_polled(struct packet_port *port)
{
	struct packet_presence *p = &port->presence;
	uint64_t now_ns, before_ns, since_ns;

	if (likely(atomic_load_explicit(&p->present, memory_order_relaxed)))
		return;
	since_ns = atomic_load_explicit(&p->since_ns, memory_order_relaxed);
	now_ns = packet_now_ns();
	before_ns = atomic_load_explicit(&p->polled_ns, memory_order_relaxed);
	atomic_store_explicit(&p->polled_ns, now_ns, memory_order_relaxed);
	if (unlikely(atomic_load_explicit(&p->left, memory_order_relaxed)))
		come_back(p);
	/* A program that yields its processor in a poll makes no gap. Times of other threads may
	 * be later. */
	if (unlikely(is_seen_often(p))) {
		become_present(port, now_ns);
	} else if ((int64_t)(now_ns - before_ns) <= GAP_NS || hca_self.yielded) {
		if ((int64_t)(now_ns - since_ns) > (int64_t)patience(p))
			become_present(port, now_ns);
	} else {
		/* Time without a processor does not count as a gap. */
		since_ns = was_displaced(now_ns - before_ns) ? since_ns + (now_ns - before_ns) :
							       now_ns;
		atomic_store_explicit(&p->since_ns, since_ns, memory_order_relaxed);
	}
	hca_self.yielded = false;
}

void packet_moved(struct packet_port *port)
{
	struct packet_presence *p = &port->presence;

	if (unlikely(!atomic_load_explicit(&p->present, memory_order_relaxed)))
		atomic_store_explicit(&p->polled_ns, packet_now_ns(), memory_order_relaxed);
}

/* ---- called by the progress thread ---- */

bool packet_leave_to_polls(struct packet_port *port)
{
	struct packet_presence *p = &port->presence;
	uint64_t now_ns = packet_now_ns();
	uint64_t polled_ns = atomic_load_explicit(&p->polled_ns, memory_order_relaxed);
	int64_t silent_ns = (int64_t)(now_ns - polled_ns);
	unsigned most = silent_ns <= GAP_NS ? LEAVES_MOST : silent_ns <= RECENT_NS ? 1 : 0;

	/* If it is present, packet_arrives() does what there is to do. A program that has armed a queue
	 * may sleep without another poll. */
	if (atomic_load(&p->present) || atomic_load(&hca_process.armed))
		return false;
	/* A poll has followed, and it looked for packets (port.h). */
	if (p->leaves && (int64_t)(polled_ns - p->left_ns) > 0) {
		atomic_fetch_add_explicit(&p->seen, 1, memory_order_relaxed);
		p->leaves = 0;
	}
	if (p->leaves < most) {
		p->leaves++;
		p->left_ns = now_ns;
		return true;
	}
	atomic_store_explicit(&p->seen, 0, memory_order_relaxed);
	p->leaves = 0;
	return false;
}

/* ---- does the program still poll? ---- */

static uint64_t cpu_ns(const struct packet_presence *p)
{
	struct timespec t = { 0 };

	clock_gettime(p->cpu_clock, &t);
	return timespec_to_ns(t);
}

static uint64_t next_glance_ns(struct packet_presence *p)
{
	uint64_t now_ns = packet_now_ns(), present_ns;

	present_ns = now_ns - atomic_load_explicit(&p->present_ns, memory_order_relaxed);
	if (present_ns > PATIENCE_FADES_NS)
		set_patience(p, PATIENCE_NS);
	/* Each look may cost the program the processor that it has again. */
	if (now_ns < p->busy_until_ns)
		return PAUSE_MOST_NS;
	return MIN(MAX(present_ns / PAUSE_PART, PAUSE_NS), PAUSE_MOST_NS);
}

static void take_look(struct packet_presence *p)
{
	p->looked_ns = packet_now_ns();
	p->polls = polls();
	p->cpu_ns = cpu_ns(p);
	progress_timer_arm(&p->glance, progress_now_ns() + next_glance_ns(p));
}

/* The program would poll, but has no processor. If each packet woke this thread, that would
 * displace the program more often still. */
static void stand_in(struct packet_port *port)
{
	struct packet_presence *p = &port->presence;

	/* Peers can wait for a time slice. A poll would wait until the program has a processor. */
	if (packet_now_ns() - p->looked_ns < STAND_IN_NS || hca_owner_inside())
		return;
	atomic_store(&p->displaced, true);
	packet_look_now(port);
}

static void on_glance(struct progress_timer *t)
{
	struct packet_port *port = container_of(t, struct packet_port, presence.glance);
	struct packet_presence *p = &port->presence;

	pthread_mutex_lock(&p->lock);
	if (!atomic_load(&p->relied)) {
		/* The next packet that comes starts the timer again. */
	} else if (p->polls != polls()) {
		take_look(p);
	} else {
		/* The processor time of a thread that has ended is 0. */
		p->ran = (int64_t)(cpu_ns(p) - p->cpu_ns) > RAN_NS;
		if (!p->ran && hca_thread_is_ready(p->tid)) {
			p->busy_until_ns = packet_now_ns() + NSEC_PER_SEC;
			stand_in(port);
			progress_timer_arm(t, progress_now_ns() + DISPLACED_NS);
		} else {
			atomic_store(&p->present, false);
			packet_look_now(port);
		}
	}
	pthread_mutex_unlock(&p->lock);
}

void packet_rely(struct packet_port *port, bool on)
{
	struct packet_presence *p = &port->presence;

	if (on && packet_is_relied_on(port))
		return;
	pthread_mutex_lock(&p->lock);
	/* packet_leave() clears `present` before it calls this. */
	on = on && atomic_load(&p->present);
	if (atomic_load(&port->carrier) && atomic_exchange(&p->relied, on) != on) {
		if (port->rely)
			port->rely(on);
		if (on)
			take_look(p);
	}
	pthread_mutex_unlock(&p->lock);
}

bool packet_arrives(struct packet_port *port)
{
	if (!atomic_load(&port->presence.present))
		return false;
	packet_rely(port, true);
	/* The program may have left meanwhile. */
	return packet_is_relied_on(port);
}

void packet_port_wake(void *arg)
{
	struct packet_port *port = arg;

	if (!packet_arrives(port))
		packet_look_now(port);
}

bool packet_leave(struct packet_port *port)
{
	struct packet_presence *p = &port->presence;
	bool relied = packet_is_relied_on(port);

	atomic_store_explicit(&p->since_ns, packet_now_ns(), memory_order_relaxed);
	/* A thread that becomes present after this check finds the queue armed. */
	if (!atomic_load(&p->present) && !relied)
		return false;
	atomic_store(&p->present, false);
	packet_rely(port, false);
	return relied;
}

/* ---- work that raises no event ---- */

/* When work is due; UINT64_MAX: only after an event. A look comes after its usual time, doubled
 * `delay` times. */
static uint64_t next_ns(struct packet_port *port, unsigned delay)
{
	uint64_t now_ns = progress_now_ns();
	struct carrier *carrier = atomic_load(&port->carrier);
	uint64_t due_ns, ns;

	if (!carrier)
		return UINT64_MAX;
	due_ns = carrier_next_ns(carrier);
	ns = packet_now_ns();
	if (due_ns != UINT64_MAX) {
		due_ns = now_ns + (due_ns > ns ? due_ns - ns : 0);
		atomic_store(&port->presence.wanted, true);
	}
	if (atomic_load(&port->backlog) || atomic_load(&port->blind))
		due_ns = MIN(due_ns, now_ns + ((progress_is_self() ? LOOK_AGAIN_NS : LOOK_NS)
					       << delay));
	return due_ns;
}

static void look_in(struct packet_port *port, unsigned delay)
{
	uint64_t due_ns;

	if (packet_is_relied_on(port) || atomic_load(&port->presence.closed))
		return;
	due_ns = next_ns(port, delay);
	if (due_ns != UINT64_MAX)
		progress_timer_hasten(&port->presence.look, due_ns);
}

/* Does a requester wait, or has an acknowledgement waited for a reply for long? */
static bool is_backlog_old(struct packet_port *port)
{
	bool waits;

	if (!atomic_load(&port->backlog))
		return false;
	spin_lock(&port->wait_lock);
	waits = !list_empty(&port->waiting);
	spin_unlock(&port->wait_lock);
	return waits || packet_now_ns() - atomic_load(&port->owes_ns) >= LOOK_AGAIN_NS;
}

bool packet_look_in_vain(struct packet_port *port)
{
	struct packet_presence *p = &port->presence;
	struct carrier *carrier = atomic_load(&port->carrier);

	if (atomic_exchange(&p->wanted, false) || !carrier || packet_is_relied_on(port) ||
	    atomic_load(&port->blind) || carrier_next_ns(carrier) != UINT64_MAX ||
	    is_backlog_old(port)) {
		atomic_store(&p->delay, 0);
		return false;
	}
	atomic_store(&p->delay, (uint8_t)MIN(atomic_load(&p->delay) + 1u, DELAY_MOST));
	look_in(port, atomic_load(&p->delay));
	return true;
}

/* What the progress thread leaves does not wait longer because looks at what the program left
 * were in vain. */
void packet_look_later(struct packet_port *port)
{
	look_in(port, progress_is_self() ? 0 : atomic_load(&port->presence.delay));
}

void packet_look_now(struct packet_port *port)
{
	if (atomic_load(&port->presence.closed))
		return;
	atomic_store(&port->presence.wanted, true);
	progress_timer_hasten(&port->presence.look, progress_now_ns());
}

/* A program that has polled since the last look, and not long ago, sends by itself the acknowledgements
 * that it has left behind; unless it may be about to sleep. */
static void on_look(struct progress_timer *t)
{
	struct packet_port *port = container_of(t, struct packet_port, presence.look);
	struct packet_presence *p = &port->presence;
	uint64_t polled_ns = atomic_load_explicit(&p->polled_ns, memory_order_relaxed);
	uint64_t count = polls();
	bool polled = count != p->polls_before &&
		      (int64_t)(packet_now_ns() - polled_ns) <= RECENT_NS;

	p->polls_before = count;
	if (atomic_load(&p->closed))
		return;
	if (polled && p->put_off < PUT_OFF_MOST && !atomic_load(&p->wanted) &&
	    !atomic_load(&port->blind) && !atomic_load(&hca_process.armed)) {
		p->put_off++;
		progress_timer_hasten(t, progress_now_ns() + (LOOK_NS << p->put_off));
		return;
	}
	p->put_off = 0;
	progress_timer_arm(&p->work, progress_now_ns());
}

void packet_presence_open(struct packet_port *port, void (*work)(struct progress_timer *t))
{
	struct packet_presence *p = &port->presence;

	atomic_store(&p->present, false);
	atomic_store(&p->relied, false);
	atomic_store(&p->left, false);
	atomic_store(&p->since_ns, packet_now_ns());
	atomic_store(&p->seen, 0);
	atomic_store(&p->closed, false);
	p->leaves = p->put_off = 0;
	p->polls_before = polls();
	atomic_store(&p->wanted, false);
	atomic_store(&p->delay, 0);
	set_patience(p, PATIENCE_NS);
	progress_timer_init(&p->glance, on_glance);
	p->glance.light = true;
	progress_timer_init(&p->look, on_look);
	p->look.light = true;
	progress_timer_init(&p->work, work);
}

void packet_presence_close(struct packet_port *port)
{
	atomic_store(&port->presence.closed, true);
	progress_timer_cancel(&port->presence.glance);
	progress_timer_cancel(&port->presence.look);
	progress_timer_cancel(&port->presence.work);
	/* `work` may have armed it again. */
	progress_timer_cancel(&port->presence.look);
}

void packet_presence_forked(struct packet_port *port, void (*work)(struct progress_timer *t))
{
	pthread_mutex_init(&port->presence.lock, NULL);
	packet_presence_open(port, work);
}
