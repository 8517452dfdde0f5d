/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reading GOOSE: messages of the control blocks that the configuration names become samples. What
 * others send in the same network is passed over; what must not be used is counted and said.
 */
#define LOG_ROOM "gateway/iec61850-8-1"
#include "gateway/node/iec61850-8-1/goose.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "gateway/sample/time.h"
#include "util/clock.h"
#include "util/log.h"
#include "wire/grid/session.h"

/* One read() looks at this many frames at most, so that it ends though others send. */
#define FRAMES_MAX 64
/* Room for what may stand behind a message (the trailer of redundant networks). */
#define TRAILER 64
/* A frame is taken to have waited in the kernel no longer than this. */
#define WAITED_MAX_NS (10 * (int64_t)NSEC_PER_SEC)

/* With what a message came. */
struct goose_carrier {
	const struct ethernet_frame *frame; /* NULL: it was routed, */
	const struct socket_address *from;  /* from there */
	struct timespec received;
};

struct goose_receiver {
	struct ethernet ethernet;
	struct routed socket;
	struct routed_datagram datagram; /* the last one, */
	struct ber payloads;      /* and what was not taken of it */
	uint64_t say_secured_ns;  /* when it may be said again */
	int timer_fd;             /* for a path that polls: when a time allowed to live ends */
	uint64_t armed_ns;        /* to what it is set; UINT64_MAX: it is not */
	uint8_t *buffer;
	size_t size;
	union signal_data *data;  /* the last value of each signal */
	struct goose_value *values; /* of a message */
	unsigned value_count;     /* room for so many */
	uint64_t sequence;        /* of the last sample */
	struct timespec received; /* the last frame or datagram, and */
	uint64_t taken_ns;        /* when it came; never goes back */
	bool down;                /* the interface is down, which was logged */
};

static int join(struct goose_node *g)
{
	struct ethernet *e = &g->receiver->ethernet;
	int ret = 0;

	for (unsigned i = 0; i < g->in.source_count && !ret; i++) {
		const struct goose_source *s = &g->in.sources[i];

		if (!s->dst_text)
			ret = ethernet_join_all(e);
		else if (s->dst[0] & 1)
			ret = ethernet_join(e, s->dst);
	}
	if (ret)
		log_error("%s: %s: cannot receive what is sent to groups: %s", g->node->name,
			  g->in.interface, strerror(-ret));
	return ret;
}

static int allocate(struct goose_node *g)
{
	struct goose_receiver *r = g->receiver;

	r->buffer = malloc(r->size);
	r->data = calloc(g->in.mapping_count, sizeof(*r->data));
	for (unsigned i = 0; i < g->in.source_count; i++) {
		struct goose_source *s = &g->in.sources[i];

		r->value_count = MAX(r->value_count, s->needed);
		s->machine = (struct goose_subscriber){ .simulation = g->in.simulation };
		memset(s->say_ns, 0, sizeof(s->say_ns));
	}
	r->values = calloc(MAX(r->value_count, 1u), sizeof(*r->values));
	if (!r->buffer || !r->data || !r->values)
		return -ENOMEM;
	/* Until a control block is heard. */
	for (unsigned i = 0; i < g->in.mapping_count; i++)
		r->data[i] = g->node->in.signals->signals[i].init;
	return 0;
}

static int open_link(struct goose_node *g)
{
	const char *interface = g->in.interface;
	struct goose_receiver *r = g->receiver;
	char why[MAX(ETHERNET_WHY_MAX, SOCKET_WHY_MAX)];
	int ret;

	if (g->in.routing.enabled) {
		if (!goose_is_given(g->node->in.cfg, "interface"))
			interface = NULL;
		ret = routing_open(&g->in.routing, interface, false, &r->socket, why);
		r->size = ROUTED_BYTES_MAX;
	} else {
		ret = ethernet_open(&r->ethernet, interface, ETHERTYPE_GOOSE, true, why);
		r->size = ETHERNET_HEADER_MAX + r->ethernet.mtu + TRAILER;
	}
	if (ret)
		log_error("%s: %s", g->node->name, why);
	return ret;
}

static int fd_of(const struct goose_node *g)
{
	return g->in.routing.enabled ? g->receiver->socket.fd : g->receiver->ethernet.fd;
}

int goose_receiver_open(struct goose_node *g)
{
	struct goose_receiver *r = calloc(1, sizeof(*r));
	int ret;

	g->receiver = r;
	if (!r)
		return -ENOMEM;
	r->armed_ns = UINT64_MAX;
	r->ethernet.fd = r->socket.fd = -1;
	r->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (r->timer_fd < 0) {
		ret = -errno;
		log_error("%s: no timer: %s", g->node->name, strerror(-ret));
		return ret;
	}
	ret = open_link(g) ?: allocate(g);
	return ret ?: g->in.routing.enabled ? 0 : join(g);
}

static void note_overruns(struct goose_node *g)
{
	struct goose_receiver *r = g->receiver;
	unsigned overruns = g->in.routing.enabled ? routed_overruns(&r->socket) :
						   ethernet_overruns(&r->ethernet);

	if (overruns)
		fault_note(&g->faults, FAULT_OVERRUN, overruns,
			   "messages for which the kernel had no room");
}

void goose_receiver_close(struct goose_node *g)
{
	struct goose_receiver *r = g->receiver;

	if (!r)
		return;
	if (fd_of(g) >= 0)
		note_overruns(g);
	ethernet_close(&r->ethernet);
	routed_close(&r->socket);
	if (r->timer_fd >= 0)
		close(r->timer_fd);
	free(r->buffer);
	free(r->data);
	free(r->values);
	free(r);
	g->receiver = NULL;
}

/* Warns of a control block, unless the same was said of it within a second. */
static void say(struct goose_node *g, struct goose_source *s, unsigned saying, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

static void say(struct goose_node *g, struct goose_source *s, unsigned saying, const char *fmt, ...)
{
	uint64_t now = clock_now_ns();
	char line[200];
	va_list ap;

	if (now < s->say_ns[saying])
		return;
	s->say_ns[saying] = now + NSEC_PER_SEC;
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	log_warn("%s: subscriber %s: %s", g->node->name, s->name, line);
}

/* ---- the time allowed to live ---- */

static void expire(struct goose_node *g, struct goose_source *s, uint64_t now)
{
	if (!goose_subscriber_expire(&s->machine, now))
		return;
	node_figure_add(g->node, GOOSE_FIGURE_EXPIRED, 1);
	say(g, s, GOOSE_SAY_EXPIRED,
	    "no message has come within the time allowed to live of the last one (stNum %u, sqNum %u)",
	    s->machine.state, s->machine.sequence);
}

static void expire_all(struct goose_node *g, uint64_t now)
{
	for (unsigned i = 0; i < g->in.source_count; i++)
		expire(g, &g->in.sources[i], now);
}

static uint64_t next_end_ns(const struct goose_node *g)
{
	uint64_t ns = UINT64_MAX;

	for (unsigned i = 0; i < g->in.source_count; i++)
		ns = MIN(ns, goose_subscriber_end_ns(&g->in.sources[i].machine));
	return ns;
}

/* ---- messages ---- */

static bool is_reference(const struct ber *b, const char *text)
{
	return strlen(text) == b->len && !memcmp(b->at, text, b->len);
}

static struct goose_source *find(struct goose_node *g, const struct goose_carrier *by,
				 const struct apdu *head, const struct goose *message)
{
	for (unsigned i = 0; i < g->in.source_count; i++) {
		struct goose_source *s = &g->in.sources[i];

		if (is_reference(&message->reference, s->reference) &&
		    (!s->app_id || s->app_id == head->appid) &&
		    (!s->dst_text || !by->frame ||
		     !memcmp(s->dst, by->frame->destination, ETHERNET_MAC)))
			return s;
	}
	return NULL;
}

static void note_unused(struct goose_node *g, struct goose_source *s, const struct goose *message,
			enum goose_verdict verdict)
{
	const struct goose_subscriber *m = &s->machine;

	switch (verdict) {
	case GOOSE_OLD:
		say(g, s, verdict,
		    "stNum %u, sqNum %u come behind %u and %u; messages are not used until the time of the last one ends, or for 10 s",
		    message->state, message->sequence, m->state, m->sequence);
		break;
	case GOOSE_INCOMPLETE:
		say(g, s, verdict,
		    "the publisher needs commissioning (ndsCom); its messages are not used");
		break;
	case GOOSE_SIMULATED:
		say(g, s, verdict,
		    "simulated messages are not used; in.simulation = true uses them");
		break;
	case GOOSE_LIFELESS:
		say(g, s, verdict, "messages whose time allowed to live is 0 are not used");
		break;
	default:
		break;
	}
}

static void note_used(struct goose_node *g, struct goose_source *s, const struct goose_arrival *a,
		      uint32_t revision)
{
	if (a->lost_messages)
		node_figure_add(g->node, GOOSE_FIGURE_LOST_MESSAGES, a->lost_messages);
	if (a->lost_changes) {
		node_figure_add(g->node, GOOSE_FIGURE_LOST_CHANGES, a->lost_changes);
		note_overruns(g);
		say(g, s, GOOSE_SAY_LOST, "%u changes did not arrive", a->lost_changes);
	}
	if (a->restarted) {
		node_figure_add(g->node, GOOSE_FIGURE_RESTARTED, 1);
		say(g, s, GOOSE_SAY_RESTARTED, "the publisher has begun its numbers again");
	}
	if (a->revised) {
		node_figure_add(g->node, GOOSE_FIGURE_REVISED, 1);
		say(g, s, GOOSE_SAY_REVISED,
		    "confRev was %u and is %u now: the data set may be another one",
		    revision, s->machine.revision);
	}
}

/* The member that was found last, and on each level what stands behind it. Signals are mostly in the
 * order of a message; if each looked from the start, an array would be read as often as it has
 * members. */
struct descent {
	const struct goose_mapping *last; /* NULL: none */
	struct ber rest[GOOSE_GROUPS_MAX];
};

/* The level on which `m` stands behind the last member; -1: it does not. */
static int level_to_go_on(const struct descent *d, const struct goose_mapping *m)
{
	unsigned level = 0, levels = d->last ? MIN(d->last->depth, m->depth) : 0;

	if (!levels || d->last->index != m->index)
		return -1;
	while (level < levels && d->last->member[level] == m->member[level])
		level++;
	return level < levels && d->last->member[level] < m->member[level] ? (int)level : -1;
}

/* The value of a signal, in the value of the data set that has it; false: there is none. */
static bool find_member(struct descent *d, const struct goose_mapping *m,
			const struct goose_value *top, struct goose_value *out)
{
	int from = level_to_go_on(d, m);
	unsigned k = from < 0 ? 0 : d->last->member[from] + 1;

	*out = *top;
	d->last = NULL;
	for (unsigned i = from < 0 ? 0 : (unsigned)from; i < m->depth; i++, k = 0) {
		if ((int)i != from) {
			if (out->type != GOOSE_STRUCTURE && out->type != GOOSE_ARRAY)
				return false;
			d->rest[i] = out->members;
		}
		for (; k <= m->member[i]; k++)
			if (goose_next(&d->rest[i], out) <= 0)
				return false;
	}
	d->last = m;
	return true;
}

/* Says which value of a message is not what a signal needs. */
static void say_mismatch(struct goose_node *g, struct goose_source *s, unsigned signal)
{
	const struct goose_mapping *m = &g->in.mappings[signal];
	char member[8 * GOOSE_GROUPS_MAX + 20] = "";
	int used = 0;

	for (unsigned i = 0; i < m->depth; i++)
		used += snprintf(member + used, sizeof(member) - (size_t)used, "%s%u",
				 i ? "." : ", member ", m->member[i]);
	say(g, s, GOOSE_SAY_MISMATCHED,
	    "value %u%s is not of type %s, which mms_type of the signal '%s' says",
	    m->index, member, m->type->name, g->node->in.signals->signals[signal].name);
}

/* Takes the values of a message. False: they are not those of the signals. */
static bool take_values(struct goose_node *g, struct goose_source *s, const struct goose *message)
{
	struct goose_receiver *r = g->receiver;
	unsigned which = (unsigned)(s - g->in.sources);
	struct ber rest = message->values;
	union signal_data data;

	if (message->count < s->needed) {
		say(g, s, GOOSE_SAY_MISMATCHED, "a message has %u values, the signals need %u",
		    message->count, s->needed);
		return false;
	}
	for (unsigned i = 0; i < s->needed; i++)
		if (goose_next(&rest, &r->values[i]) <= 0)
			return false;
	/* First look, then take: of a message all signals change, or none. */
	for (unsigned take = 0; take < 2; take++) {
		struct descent descent = { .last = NULL };

		for (unsigned i = 0; i < g->in.mapping_count; i++) {
			const struct goose_mapping *m = &g->in.mappings[i];
			struct goose_value value;

			if (m->source != which)
				continue;
			if (!find_member(&descent, m, &r->values[m->index], &value) ||
			    !mms_to_signal(m->type, &value, &data)) {
				say_mismatch(g, s, i);
				return false;
			}
			if (take)
				r->data[i] = data;
		}
	}
	return true;
}

static void fill(struct goose_node *g, const struct goose *message, const struct goose_carrier *by,
		 uint32_t lost_changes, struct sample *s)
{
	struct goose_receiver *r = g->receiver;

	assert(s->capacity >= g->in.mapping_count);
	memcpy(s->data, r->data, g->in.mapping_count * sizeof(*r->data));
	s->length = g->in.mapping_count;
	/* A gap for states that are missing, so that they count as lost. */
	r->sequence += 1u + lost_changes;
	s->sequence = r->sequence;
	s->received = by->received;
	s->flags |= SAMPLE_HAS_SEQUENCE | SAMPLE_HAS_DATA | SAMPLE_HAS_RECEIVED;
	if (g->in.with_timestamp) {
		s->origin = (struct timespec){ .tv_sec = message->time.seconds,
					       .tv_nsec = message->time.nanoseconds };
		s->flags |= SAMPLE_HAS_ORIGIN;
	}
}

/* When the kernel took the frame, by the monotonic clock. */
static uint64_t arrival_ns(struct goose_receiver *r, struct timespec received)
{
	uint64_t now = clock_now_ns();
	int64_t waited = sample_time_since_ns(clock_realtime(), received);

	if (waited > 0 && waited < WAITED_MAX_NS)
		now -= MIN(now, (uint64_t)waited);
	r->taken_ns = MAX(r->taken_ns, now);
	return r->taken_ns;
}

/* A message of a control block that is read. True: `smp` is a sample now. */
static bool take_message(struct goose_node *g, struct goose_source *s, const struct apdu *head,
			 const struct goose *message, const struct goose_carrier *by,
			 struct sample *smp)
{
	uint64_t now = arrival_ns(g->receiver, by->received);
	uint32_t revision = s->machine.revision;
	struct goose_arrival a;

	node_figure_add(g->node, GOOSE_FIGURE_RECEIVED, 1);
	expire(g, s, now);
	if (s->has_revision && message->revision != s->revision) {
		node_figure_add(g->node, GOOSE_FIGURE_WRONG_REVISION, 1);
		say(g, s, GOOSE_SAY_WRONG_REVISION,
		    "messages with confRev %u are not used; conf_rev says %jd",
		    message->revision, (intmax_t)s->revision);
		return false;
	}
	a = goose_subscriber_take(&s->machine, message, head->simulation, now);
	node_figure_add(g->node, GOOSE_FIGURE_VERDICT + a.verdict, 1);
	if (a.verdict != GOOSE_CHANGE && a.verdict != GOOSE_REPETITION) {
		note_unused(g, s, message, a.verdict);
		return false;
	}
	note_used(g, s, &a, revision);
	if (!take_values(g, s, message)) {
		node_figure_add(g->node, GOOSE_FIGURE_MISMATCHED, 1);
		return false;
	}
	if (a.verdict == GOOSE_REPETITION && s->trigger == GOOSE_ON_CHANGE)
		return false;
	fill(g, message, by, a.lost_changes, smp);
	return true;
}

static void note_malformed(struct goose_node *g, const struct goose_carrier *by, const char *why)
{
	char text[SOCKET_ADDRESS_MAX];

	if (by->frame) {
		const uint8_t *m = by->frame->source;

		snprintf(text, sizeof(text), "%02x-%02x-%02x-%02x-%02x-%02x", m[0], m[1], m[2],
			 m[3], m[4],
			 m[5]);
	} else {
		socket_address_print(by->from, text);
	}
	fault_note(&g->faults, FAULT_MALFORMED, 1, "from %s: %s", text, why);
}

static bool take_body(struct goose_node *g, const struct goose_carrier *by, const struct apdu *head,
		      struct sample *smp)
{
	struct goose_source *s;
	struct goose message;
	const char *why = goose_decode(&head->body, &message);
	struct ber without = head->body;

	/* Some count what stands behind the message as a part of it. */
	if (why && apdu_extension(head) && apdu_extension(head) < without.len) {
		without.len -= apdu_extension(head);
		why = goose_decode(&without, &message);
	}
	if (why) {
		node_figure_add(g->node, GOOSE_FIGURE_SECURED, apdu_extension(head) != 0);
		note_malformed(g, by, apdu_extension(head) ? apdu_secured : why);
		return false;
	}
	s = find(g, by, head, &message);
	if (s && (message.secured || apdu_extension(head)))
		node_figure_add(g->node, GOOSE_FIGURE_UNVERIFIED, 1);
	if (s)
		return take_message(g, s, head, &message, by, smp);
	node_figure_add(g->node, GOOSE_FIGURE_OTHERS, 1);
	return false;
}

static bool is_whole(struct goose_node *g, bool truncated)
{
	if (truncated)
		fault_note(&g->faults, FAULT_TRUNCATED, 1, "more than %zu bytes",
			   g->receiver->size);
	return !truncated;
}

/* Takes a frame. 1: `smp` is a sample now; 0: it is none; or a negative errno. */
static int take_frame(struct goose_node *g, struct sample *smp)
{
	struct goose_receiver *r = g->receiver;
	struct ethernet_frame f;
	struct goose_carrier by = { .frame = &f };
	struct apdu head;
	const char *why;
	int ret = ethernet_receive(&r->ethernet, r->buffer, r->size, &f);

	if (ret || !is_whole(g, f.truncated))
		return ret;
	by.received = r->received = f.received;
	why = apdu_decode(f.payload, f.len, &head);
	if (!why)
		return take_body(g, &by, &head, smp);
	note_malformed(g, &by, why);
	return 0;
}

/* ---- routed messages ---- */

static void note_secured(struct goose_node *g, const char *what)
{
	struct goose_receiver *r = g->receiver;
	uint64_t now = clock_now_ns();
	char from[SOCKET_ADDRESS_MAX];

	node_figure_add(g->node, GOOSE_FIGURE_SECURED, 1);
	if (now < r->say_secured_ns)
		return;
	r->say_secured_ns = now + NSEC_PER_SEC;
	log_warn("%s: a datagram from %s is not used: %s, which is not supported", g->node->name,
		 socket_address_print(&r->datagram.from, from), what);
}

/* Takes a datagram; its payloads come next. 0 or a negative errno. */
static int take_datagram(struct goose_node *g)
{
	struct goose_receiver *r = g->receiver;
	struct goose_carrier by = { .from = &r->datagram.from };
	struct session s;
	const char *why;
	int ret = routed_receive(&r->socket, r->buffer, r->size, &r->datagram);

	if (ret || !is_whole(g, r->datagram.truncated))
		return ret;
	r->received = r->datagram.received;
	why = session_decode(r->buffer, r->datagram.len, &s);
	if (why)
		note_malformed(g, &by, why);
	else if (session_security(&s))
		note_secured(g, session_security(&s));
	else
		r->payloads = s.payloads;
	return 0;
}

/* As take_frame(): a payload, or a datagram. */
static int take_routed(struct goose_node *g, struct sample *smp)
{
	struct goose_receiver *r = g->receiver;
	const struct goose_carrier by = { .from = &r->datagram.from,
					 .received = r->datagram.received };
	struct session_part p;
	int ret = session_next(&r->payloads, &p);

	if (!ret)
		return take_datagram(g);
	if (ret < 0) {
		r->payloads.len = 0;
		note_malformed(g, &by, "the length of a payload is wrong");
		return 0;
	}
	if (p.type == SESSION_PAYLOAD_GOOSE)
		return take_body(g, &by, &(struct apdu){ .appid = p.appid,
							.simulation = p.simulation,
							 .body = p.body }, smp);
	node_figure_add(g->node, GOOSE_FIGURE_OTHERS, 1);
	return 0;
}

/* Takes samples until there are `cnt`, or nothing is there. Their number; -EAGAIN: nothing was
 * there; 0: other frames were; or another negative errno. */
static int take(struct node *node, struct sample *smps[], unsigned cnt)
{
	struct goose_node *g = node->private_data;
	struct goose_receiver *r = g->receiver;
	unsigned n = 0, frames;
	int ret = 0;

	/* The rest of a datagram is taken in any case: nothing tells a path that waits of it. */
	for (frames = 0; n < cnt && (frames < FRAMES_MAX || r->payloads.len); frames++) {
		ret = g->in.routing.enabled ? take_routed(g, smps[n]) : take_frame(g, smps[n]);
		if (ret < 0)
			break;
		r->down = false;
		n += (unsigned)ret;
		ret = 0;
	}
	if (ret == -ENETDOWN) {
		if (!r->down)
			log_warn("%s: %s is down", g->node->name, g->in.interface);
		r->down = true;
		ret = -EAGAIN;
	}
	/* Messages that wait in the kernel may have come in time. If they never end, time goes on with
	 * those that were taken. */
	if (ret == -EAGAIN)
		expire_all(g, clock_now_ns());
	else if (!ret)
		expire_all(g, arrival_ns(r, r->received));
	if (frames >= FRAMES_MAX)
		note_overruns(g);
	return n ? (int)n : ret;
}

/* ---- waiting ---- */

static void arm(struct goose_node *g)
{
	struct goose_receiver *r = g->receiver;
	uint64_t end = next_end_ns(g), now;
	struct itimerspec t = { 0 };

	if (end == r->armed_ns)
		return;
	r->armed_ns = end;
	now = clock_now_ns();
	if (end != UINT64_MAX)
		t.it_value = timespec_from_ns(end > now ? end - now : 1);
	timerfd_settime(r->timer_fd, 0, &t, NULL);
}

/* For a path that waits for the descriptors: never sleeps. */
static int read_polled(struct goose_node *g, struct sample *smps[], unsigned cnt)
{
	struct goose_receiver *r = g->receiver;
	uint64_t times;
	int ret;

	socket_wait_clear(&g->wait);
	/* One that ran early by the other clock is set again. */
	if (read(r->timer_fd, &times, sizeof(times)) > 0)
		r->armed_ns = UINT64_MAX;
	ret = take(g->node, smps, cnt);
	arm(g);
	/* The rest of a datagram, which makes no descriptor readable. */
	if (r->payloads.len)
		socket_wait_kick(&g->wait);
	return ret == -EAGAIN ? 0 : ret;
}

void goose_sleep(struct node *n, uint64_t until_ns)
{
	struct goose_node *g = n->private_data;

	if (!g->receiver)
		return;
	until_ns = MIN(until_ns, next_end_ns(g));
	if (until_ns > clock_now_ns() && !g->receiver->payloads.len)
		socket_wait_sleep(&g->wait, fd_of(g), until_ns);
}

int goose_read(struct node *n, struct sample *smps[], unsigned cnt, unsigned *release)
{
	struct goose_node *g = n->private_data;

	if (unlikely(!g->receiver))
		return -ENODATA;
	if (atomic_load_explicit(&g->wait.polled, memory_order_relaxed))
		return read_polled(g, smps, cnt);
	return socket_wait_read(&g->wait, n, smps, cnt, take);
}

int goose_poll_fds(struct node *n, int fds[], int max)
{
	struct goose_node *g = n->private_data;

	if (!g->receiver || !socket_wait_set_polled(&g->wait, max >= 3))
		return 0;
	fds[0] = fd_of(g);
	fds[1] = g->wait.wake_fd;
	fds[2] = g->receiver->timer_fd;
	return 3;
}
