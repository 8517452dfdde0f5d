/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Frames to samples and back, and the interface, which may be missing or down, and come again. There
 * is no thread: who reads or writes looks at the interface when that is due.
 */
#define LOG_ROOM "gateway/can"
#include <assert.h>
#include <errno.h>
#include <linux/can/raw.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gateway/node/can/can.h"
#include "util/clock.h"
#include "util/log.h"

/* One read() looks at this many frames at most, so that it ends on a busy bus. */
#define FRAMES_MAX 64
/* The queue of the interface has no descriptor that tells of room: so often a frame is tried. */
#define AGAIN_NS 250000
/* Interval at which a node that is only written looks for error frames. */
#define DRAIN_NS (NSEC_PER_SEC / 10)

/* ---- the interface ---- */

/* Tells the node's state. Only from read() and write(), where the node is started. */
static void show(struct can_node *c)
{
	int state = atomic_load(&c->up) && !atomic_load(&c->bus_off) ? NODE_CONNECTED :
									NODE_PENDING_CONNECT;

	if (likely(atomic_load_explicit(&c->shown, memory_order_relaxed) == state))
		return;
	pthread_mutex_lock(&c->lock);
	if (atomic_exchange(&c->shown, state) != state)
		node_set_state(c->node, (enum node_state)state);
	pthread_mutex_unlock(&c->lock);
}

/* With the lock. Tries to bind the socket to the interface; returns what attach() returns. */
static int try_attach(struct can_node *c, char why[CAN_WHY_MAX])
{
	uint64_t now = clock_now_ns();
	int ret = c->ops->attach(c->fd, &c->bus, &c->index, why);

	if (!ret) {
		backoff_reset(&c->retry);
		atomic_store(&c->bus_off, false);
		atomic_store(&c->up, true);
		return 0;
	}
	if (ret == -ENODEV)
		c->index = 0;
	backoff_plan(&c->retry, (uint64_t)c->reconnect_ms * 1000000, now);
	atomic_store(&c->retry_ns, c->retry.at_ns);
	return ret;
}

/* With the lock. Logs how an attempt ended, if the attempt before ended otherwise. */
static void say_attempt(struct can_node *c, int ret, const char *why)
{
	if (-ret == c->was)
		return;
	if (fault_may_log(&c->faults)) {
		if (ret)
			log_warn("%s: %s; the node waits for it", c->node->name, why);
		else
			log_info("%s: %s is up", c->node->name, c->bus.interface);
	}
	c->was = -ret;
}

/* Looks at the interface while it is down, if that is due. */
static void look(struct can_node *c)
{
	char why[CAN_WHY_MAX];
	int ret;

	if (likely(atomic_load_explicit(&c->up, memory_order_acquire)))
		return;
	if (clock_now_ns() < atomic_load(&c->retry_ns) || pthread_mutex_trylock(&c->lock))
		return;
	if (!atomic_load(&c->up)) {
		ret = try_attach(c, why);
		say_attempt(c, ret, why);
	}
	pthread_mutex_unlock(&c->lock);
}

static bool is_absence(int err)
{
	return err == ENETDOWN || err == ENODEV || err == ENXIO;
}

/* The socket says that the interface is down or gone. */
static void note_absence(struct can_node *c, int err)
{
	pthread_mutex_lock(&c->lock);
	if (err != ENETDOWN)
		c->index = 0; /* the socket is bound to nothing now */
	if (atomic_exchange(&c->up, false))
		node_figure_add(c->node, CAN_DOWNS, 1);
	pthread_mutex_unlock(&c->lock);
	socket_wait_kick(&c->wait); /* a reader that sleeps has to look now and then */
}

/* A frame has come or gone, so the interface is there. */
static void note_presence(struct can_node *c)
{
	if (unlikely(!atomic_load_explicit(&c->up, memory_order_relaxed)))
		atomic_store(&c->retry_ns, 0);
}

/* ---- reading ---- */

static void make_sample(struct can_node *c, struct sample *s)
{
	struct node *n = c->node;

	assert(s->capacity >= c->in.count);
	memcpy(s->data, c->values, c->in.count * sizeof(*c->values));
	s->length = c->in.count;
	s->signals = n->in.signals;
	s->sequence = n->sequence++;
	s->origin = s->received = c->arrival.received;
	s->flags = SAMPLE_HAS_SEQUENCE | SAMPLE_HAS_ORIGIN | SAMPLE_HAS_RECEIVED |
		   SAMPLE_HAS_DATA;
}

static void expect_all(struct can_node *c)
{
	memset(c->seen, 0, c->in.message_count * sizeof(*c->seen));
	c->unseen = c->in.message_count;
}

/* Does the message complete a sample? */
static bool completes(struct can_node *c, const struct can_message *m)
{
	bool *seen = &c->seen[m - c->in.messages];

	if (c->trigger != CAN_TRIGGER_ALL)
		return c->trigger == CAN_TRIGGER_ANY || m->id == c->trigger_message->id;
	/* What is always there comes with each value of a multiplexor. */
	if (*seen && !m->has_values)
		node_figure_add(c->node, CAN_OVERWRITTEN, 1);
	c->unseen -= !*seen;
	*seen = true;
	if (c->unseen)
		return false;
	expect_all(c);
	return true;
}

static bool is_too_short(struct can_node *c, const struct can_received *r,
			 const struct can_message *m)
{
	if (likely(r->len >= m->reach))
		return false;
	node_figure_add(c->node, CAN_SHORT_FRAMES, 1);
	fault_note(&c->faults, FAULT_MALFORMED, 1, "the frame 0x%x has %u bytes, its signals need %u",
		   r->id & CAN_EFF_MASK, r->len, m->reach);
	return true;
}

/* True: `s` is a sample now. */
static bool take_message(struct can_node *c, const struct can_received *r, struct sample *s)
{
	const struct can_message *m = can_message_find(c->in.messages, c->in.message_count, r->id);
	const struct can_message *end = c->in.messages + c->in.message_count;
	unsigned outside = 0;
	bool complete = false;

	/* If the identifiers are too many for filters, other frames come, too. */
	if (!m)
		return false;
	node_figure_add(c->node, CAN_FRAMES_RECEIVED, 1);
	for (; m < end && m->id == r->id; m++) {
		/* A multiplexor beyond the frame's end, or the signals of its value. */
		if (is_too_short(c, r, m))
			break;
		if (!can_message_is_there(m, r->data))
			continue;
		atomic_store_explicit(&c->bus_off, false, memory_order_relaxed);
		outside += can_message_read(m, c->in.maps, r, c->values);
		complete |= completes(c, m);
	}
	if (unlikely(outside))
		node_figure_add(c->node, CAN_OUT_OF_RANGE, outside);
	if (complete)
		make_sample(c, s);
	return complete;
}

static void note_overruns(struct can_node *c)
{
	uint32_t lost = c->arrival.overruns - c->overruns;

	if (likely(!lost))
		return;
	c->overruns = c->arrival.overruns;
	fault_note(&c->faults, FAULT_OVERRUN, lost, "frames for which the kernel had no room");
}

/* Handles c->arrival; with `s` NULL only error frames. True: `s` is a complete sample. */
static bool take_arrival(struct can_node *c, struct sample *s)
{
	struct can_received r;
	const char *why = can_frame_decode(c->arrival.bytes, c->arrival.size, &r);

	note_overruns(c);
	if (unlikely(why)) {
		fault_note(&c->faults, FAULT_MALFORMED, 1, "%s", why);
		return false;
	}
	if (unlikely(r.error)) {
		can_take_error(c, &r);
		return false;
	}
	note_presence(c);
	return s && !r.remote && take_message(c, &r, s);
}

/* Takes samples until there are `cnt`, or nothing is there. As socket_wait_read() asks. */
static int take(struct node *node, struct sample *smps[], unsigned cnt)
{
	struct can_node *c = node->private_data;
	unsigned n = 0;
	int ret = 0;

	look(c);
	for (unsigned frames = 0; n < cnt && frames < FRAMES_MAX; frames++) {
		ret = c->ops->receive(c->fd, &c->arrival);
		if (ret)
			break;
		n += take_arrival(c, smps[n]);
	}
	if (unlikely(is_absence(-ret))) {
		note_absence(c, -ret);
		ret = -EAGAIN;
	}
	show(c);
	return n ? (int)n : ret;
}

void can_node_sleep(struct node *n, uint64_t until_ns)
{
	struct can_node *c = n->private_data;

	if (!atomic_load(&c->up))
		until_ns = MIN(until_ns, atomic_load(&c->retry_ns));
	if (until_ns > clock_now_ns())
		socket_wait_sleep(&c->wait, c->fd, until_ns);
}

int can_node_read(struct node *n, struct sample *smps[], unsigned cnt, unsigned *release)
{
	struct can_node *c = n->private_data;

	if (unlikely(!can_reads(c)))
		return -ENODATA;
	return socket_wait_read(&c->wait, n, smps, cnt, take);
}

/* ---- writing ---- */

/* A node that nobody reads takes its error frames here. */
static void drain(struct can_node *c)
{
	int ret = 0;

	if (can_reads(c))
		return;
	c->drained_ns = clock_now_ns();
	for (unsigned i = 0; i < FRAMES_MAX && !ret; i++) {
		ret = c->ops->receive(c->fd, &c->arrival);
		if (!ret)
			take_arrival(c, NULL);
	}
	if (is_absence(-ret))
		note_absence(c, -ret);
}

static struct canfd_frame *frame_of(const struct can_node *c, unsigned message)
{
	return (struct canfd_frame *)(c->frames + (size_t)message * CANFD_MTU);
}

/* The values of maps[first] and those behind it into a frame. False: one is no number, and the sample is
 * refused. */
static bool fill_values(struct can_node *c, const struct sample *s, unsigned first, unsigned count,
			uint8_t data[], unsigned *clipped)
{
	const struct signal_list *l = s->signals ? s->signals : c->node->out.hooked;

	for (unsigned k = first; k < first + count; k++) {
		const struct can_map *map = &c->out.maps[k];
		enum signal_type type = l && map->signal < l->count ?
						l->signals[map->signal].type : SIGNAL_FLOAT;
		enum can_written w = can_value_write(map, type, &s->data[map->signal], data);

		*clipped += w == CAN_CLIPPED;
		if (likely(w != CAN_NO_NUMBER))
			continue;
		node_refuse(c->node, NODE_LOSS_FORMAT, 1, "value %u (from 0 on) is no number",
			    map->signal);
		return false;
	}
	return true;
}

/* False: the sample is refused. */
static bool fill(struct can_node *c, const struct sample *s)
{
	unsigned clipped = 0;

	for (unsigned i = 0; i < c->out.message_count; i++) {
		const struct can_message *m = &c->out.messages[i];
		struct canfd_frame *f = frame_of(c, i);

		/* The bits of no signal are 0, and stay so. */
		if (!fill_values(c, s, m->always_first, m->always_count, f->data, &clipped) ||
		    !fill_values(c, s, m->first, m->count, f->data, &clipped))
			return false;
		if (m->mux.length)
			can_bits_set(f->data, m->mux.start, m->mux.length, m->mux.big,
				     m->mux.value);
	}
	if (unlikely(clipped))
		node_figure_add(c->node, CAN_CLIPPED_VALUES, clipped);
	return true;
}

static bool has_no_room(int ret)
{
	return ret == -ENOBUFS || ret == -EAGAIN;
}

/* Sends a frame, and waits for room for a limited time, or until `interrupts` of the node change. */
static int send_patiently(struct can_node *c, const void *frame, size_t size, unsigned interrupts)
{
	int ret = c->ops->send(c->fd, frame, size);
	uint64_t until;

	if (likely(!has_no_room(ret)))
		return ret;
	until = clock_now_ns() + (c->stuck ? 0 : (uint64_t)(c->send_timeout_s * 1e9));
	node_figure_add(c->node, CAN_WAITS, 1);
	while (has_no_room(ret) && clock_now_ns() < until && !atomic_load(&c->bus_off) &&
	       atomic_load(&c->wait.interrupts) == interrupts) {
		nanosleep(&(struct timespec){ .tv_nsec = AGAIN_NS }, NULL);
		drain(c);
		ret = c->ops->send(c->fd, frame, size);
	}
	c->stuck = has_no_room(ret);
	return ret;
}

static enum node_loss cause_of(struct can_node *c, int err)
{
	if (has_no_room(-err))
		return atomic_load(&c->bus_off) ? NODE_LOSS_ABSENT : NODE_LOSS_STUCK;
	return is_absence(err) ? NODE_LOSS_ABSENT : err == EMSGSIZE ? NODE_LOSS_TOO_LONG :
								       NODE_LOSS_REFUSED;
}

static void refuse(struct can_node *c, int ret, unsigned message)
{
	enum node_loss cause = cause_of(c, -ret);
	const struct can_message *m = &c->out.messages[message];

	if (is_absence(-ret))
		note_absence(c, -ret);
	node_refuse(c->node, cause, 1, "%s: frame 0x%x: %s%s; %u of %u frames of the sample were sent",
		    c->bus.interface, m->id & CAN_EFF_MASK, strerror(-ret),
		    atomic_load(&c->bus_off) ? " (bus-off)" : "", message, c->out.message_count);
}

/* True: all its frames were sent. */
static bool write_sample(struct can_node *c, const struct sample *s, unsigned interrupts)
{
	size_t size = c->bus.fd ? CANFD_MTU : CAN_MTU;
	unsigned sent = 0;

	if (unlikely(s->length < c->out.count)) {
		node_refuse(c->node, NODE_LOSS_FORMAT, 1, "a sample has %u values, out.signals are %u",
			    s->length, c->out.count);
		return false;
	}
	if (!fill(c, s))
		return false;
	for (unsigned i = 0; i < c->out.message_count; i++) {
		int ret = c->out.messages[i].has_values ? 0 :
			  send_patiently(c, frame_of(c, i), size, interrupts);

		if (unlikely(ret)) {
			refuse(c, ret, i);
			return false;
		}
		sent += !c->out.messages[i].has_values;
	}
	node_figure_add(c->node, CAN_FRAMES_SENT, sent);
	note_presence(c);
	return true;
}

int can_node_write(struct node *n, struct sample *smps[], unsigned cnt, unsigned *release)
{
	struct can_node *c = n->private_data;
	unsigned interrupts = atomic_load(&c->wait.interrupts), accepted = 0;

	if (unlikely(!c->out.count))
		return -EBADF;
	look(c);
	if (clock_now_ns() - c->drained_ns > DRAIN_NS)
		drain(c);
	for (unsigned i = 0; i < cnt; i++)
		accepted += write_sample(c, smps[i], interrupts);
	show(c);
	return (int)accepted;
}

/* ---- from start to stop ---- */

/* Only frames with an identifier of in.signals are received, if the kernel takes so many filters. */
static int make_filters(struct can_node *c)
{
	unsigned messages = can_reads(c) ? c->in.message_count : 0, count = 0;

	c->filters = calloc(messages + 1, sizeof(*c->filters));
	if (!c->filters)
		return -ENOMEM;
	for (unsigned i = 0; i < messages; i++) {
		uint32_t id = c->in.messages[i].id;

		if (i && id == c->in.messages[i - 1].id)
			continue;
		c->filters[count++] = (struct can_filter){
			.can_id = id,
			.can_mask = CAN_EFF_FLAG | CAN_RTR_FLAG |
				    (id & CAN_EFF_FLAG ? CAN_EFF_MASK : CAN_SFF_MASK),
		};
	}
	c->bus.all = count > CAN_RAW_FILTER_MAX;
	c->bus.filters = c->filters;
	c->bus.filter_count = count;
	return 0;
}

static int make_reader(struct can_node *c)
{
	const struct signal_list *l = c->node->in.signals;

	c->values = calloc(c->in.count + 1, sizeof(*c->values));
	c->seen = calloc(c->in.message_count + 1, sizeof(*c->seen));
	if (!c->values || !c->seen)
		return -ENOMEM;
	for (unsigned i = 0; l && i < c->in.count; i++)
		c->values[i] = l->signals[i].init;
	expect_all(c);
	return 0;
}

static int make_frames(struct can_node *c)
{
	c->frames = calloc(c->out.message_count + 1, CANFD_MTU);
	if (!c->frames)
		return -ENOMEM;
	for (unsigned i = 0; i < c->out.message_count; i++)
		*frame_of(c, i) = (struct canfd_frame){
			.can_id = c->out.messages[i].id,
			.len = (uint8_t)c->out.messages[i].length,
			.flags = c->bus.fd && c->bitrate_switch ? CANFD_BRS : 0,
		};
	return 0;
}

static int open_bus(struct can_node *c)
{
	char why[CAN_WHY_MAX];
	int ret;

	c->fd = c->ops->open(&c->bus, why);
	if (c->fd < 0) {
		log_error("%s: %s", c->node->name, why);
		return c->fd;
	}
	ret = try_attach(c, why);
	if (ret == -EINVAL) {
		log_error("%s: %s", c->node->name, why);
		return ret;
	}
	say_attempt(c, ret, why);
	return 0;
}

int can_open(struct can_node *c)
{
	int ret = socket_wait_open(&c->wait);

	if (ret) {
		log_error("%s: no event descriptor: %s", c->node->name, strerror(-ret));
		return ret;
	}
	c->index = 0;
	c->was = 0;
	c->overruns = 0;
	c->arrival.overruns = 0;
	c->stuck = false;
	c->drained_ns = 0;
	atomic_store(&c->up, false);
	atomic_store(&c->bus_off, false);
	atomic_store(&c->shown, -1);
	backoff_reset(&c->retry);
	ret = make_filters(c) ?: make_reader(c) ?: make_frames(c);
	return ret ?: open_bus(c);
}

void can_close(struct can_node *c)
{
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
	socket_wait_close(&c->wait);
	fault_finish(&c->faults);
	free(c->filters);
	free(c->values);
	free(c->seen);
	free(c->frames);
	c->filters = NULL;
	c->values = NULL;
	c->seen = NULL;
	c->frames = NULL;
}
