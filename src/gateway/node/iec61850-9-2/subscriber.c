/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reading sampled values: the ASDUs of one stream become samples. What others send in the same
 * network is passed over; what contradicts itself or the configuration is counted and said.
 */
#define LOG_ROOM "gateway/iec61850-9-2"
#include "gateway/node/iec61850-9-2/sampled_values.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/plugin/services.h"
#include "gateway/sample/time.h"
#include "util/clock.h"
#include "util/log.h"
#include "wire/grid/session.h"

/* One read() looks at this many frames at most, so that it ends though others send. */
#define FRAMES_MAX 64
/* Room for what may stand behind a message (the trailer of redundant networks). */
#define TRAILER 64
/* Without in.sv_id: a stream that is silent for so long gives way to another one. */
#define SILENCE_NS (2 * NSEC_PER_SEC)

/* When a message came. */
struct moment {
	uint64_t read_ns;         /* when it was read, by a clock that does not jump; of a capture:
				   * the time of the frame */
	int64_t arrived_ns;       /* when the kernel took it */
};

struct sv_subscriber {
	uint8_t *buffer;
	size_t size;
	struct ethernet_frame frame;
	struct routed_datagram datagram; /* of routed messages: the last one, */
	struct ber payloads;      /* and what was not taken of it */
	uint64_t say_secured_ns;  /* when it may be said again */
	struct timespec received; /* the message */
	struct apdu head;
	struct sv_message message;
	bool open;                /* the message has ASDUs that were not read */
	struct moment now;        /* of that message */

	/* The stream. */
	struct counting count;
	uint8_t id[SV_ID_MAX];
	size_t id_len;
	bool bound;               /* its name is known */
	uint64_t heard_ns;
	bool simulated;           /* in.simulation: simulated ones have come, so others do not count */
	bool has_revision, said_revision;
	uint32_t revision;
	/* The messages with the sample that has the greatest number, and before that one. */
	struct moment last, before;
	int64_t refreshed_ns;     /* refrTm of that sample; 0: it has none */
	bool down;                /* the interface is down, which was logged */
};

/* Frames to groups; datagrams to groups the socket has joined. */
static int join(struct sv_node *v)
{
	int ret = v->in.check_dst_address ? 0 : ethernet_join_all(&v->ethernet);

	if (!ret && v->in.check_dst_address && v->dst[0] & 1)
		ret = ethernet_join(&v->ethernet, v->dst);
	if (ret)
		log_error("%s: %s: cannot receive what is sent to groups: %s", v->node->name,
			  v->interface, strerror(-ret));
	return ret;
}

int sv_subscriber_open(struct sv_node *v)
{
	struct sv_subscriber *r = calloc(1, sizeof(*r));

	v->subscriber = r;
	if (!r)
		return -ENOMEM;
	r->size = v->in.routing.enabled ? ROUTED_BYTES_MAX :
		ETHERNET_HEADER_MAX + v->ethernet.mtu + TRAILER;
	r->buffer = malloc(r->size);
	if (!r->buffer)
		return -ENOMEM;
	r->count.configured = (uint32_t)v->in.smp_rate;
	r->has_revision = v->in.has_conf_rev;
	r->revision = (uint32_t)v->in.conf_rev;
	if (v->in.sv_id) {
		r->id_len = strlen(v->in.sv_id);
		memcpy(r->id, v->in.sv_id, r->id_len);
		r->bound = true;
	}
	if (v->capture)
		return 0;
	return v->in.routing.enabled ? 0 : join(v);
}

static void note_overruns(struct sv_node *v)
{
	unsigned overruns = v->in.routing.enabled ? routed_overruns(&v->in_socket) :
						    ethernet_overruns(&v->ethernet);

	if (overruns)
		fault_note(&v->faults, FAULT_OVERRUN, overruns,
			   "messages for which the kernel had no room");
}

void sv_subscriber_close(struct sv_node *v)
{
	if (!v->subscriber)
		return;
	note_overruns(v);
	free(v->subscriber->buffer);
	free(v->subscriber);
	v->subscriber = NULL;
}

static int64_t refresh_ns(const struct sv_asdu *a)
{
	return a->has_time && !a->time.clock_failure ?
		       (int64_t)a->time.seconds * SAMPLE_TIME_SECOND + a->time.nanoseconds : 0;
}

/* Whether the ASDU belongs to the stream; the first one that comes decides which that is. */
static bool is_of_stream(struct sv_node *v, const struct sv_asdu *a)
{
	struct sv_subscriber *r = v->subscriber;
	bool same = r->id_len == a->id.len && (!a->id.len || !memcmp(r->id, a->id.at, a->id.len));

	if (!v->in.sv_id && !same && (!r->bound || r->now.read_ns - r->heard_ns > SILENCE_NS)) {
		if (r->bound) {
			r->count = (struct counting){ .configured = (uint32_t)v->in.smp_rate };
			r->has_revision = v->in.has_conf_rev;
			r->simulated = false;
		}
		memcpy(r->id, a->id.at, a->id.len);
		r->id_len = a->id.len;
		r->bound = same = true;
		log_info("%s: reads the stream '%.*s'", v->node->name, (int)r->id_len,
			 (const char *)r->id);
	}
	if (same) {
		r->heard_ns = r->now.read_ns;
		return true;
	}
	if (v->in.sv_id)
		node_figure_add(v->node, SV_FIGURE_OTHERS, 1);
	else
		fault_note(&v->faults, FAULT_FOREIGN, 1,
			   "svID '%.*s', and '%.*s' is read; in.sv_id says which one",
			   (int)a->id.len, (const char *)a->id.at, (int)r->id_len,
			   (const char *)r->id);
	return false;
}

/* Whether its confRev is the configured one; without that, it is the first one that came. */
static bool is_revision(struct sv_node *v, const struct sv_asdu *a)
{
	struct sv_subscriber *r = v->subscriber;

	if (likely(r->has_revision && a->revision == r->revision))
		return true;
	if (v->in.has_conf_rev) {
		node_figure_add(v->node, SV_FIGURE_WRONG_CONF_REV, 1);
		fault_note(&v->faults, FAULT_MALFORMED, 1, "confRev is %u, in.conf_rev is %u",
			   a->revision, r->revision);
		return false;
	}
	if (r->has_revision) {
		node_figure_add(v->node, SV_FIGURE_WRONG_CONF_REV, 1);
		if (!r->said_revision)
			log_warn("%s: confRev of '%.*s' was %u and is %u now: its data set may be another one",
				 v->node->name, (int)r->id_len, (const char *)r->id, r->revision,
				 a->revision);
		r->said_revision = true;
	}
	r->revision = a->revision;
	r->has_revision = true;
	return true;
}

/*
 * How much time has passed at most since the sample with the greatest number; 0: that is not known.
 * A publisher may have held back its message, and so may this host; so all clocks have to
 * agree. Samples of one message came at one time; of these only refrTm says something, and the
 * message before is the limit.
 */
static uint64_t elapsed(const struct sv_subscriber *r, const struct sv_asdu *a)
{
	bool same_message = r->now.read_ns == r->last.read_ns;
	const struct moment *since = same_message ? &r->before : &r->last;
	int64_t refreshed = refresh_ns(a), ns = r->now.arrived_ns - since->arrived_ns;

	if (!since->read_ns || (same_message && !(refreshed && r->refreshed_ns)))
		return 0;
	ns = MIN(ns, (int64_t)(r->now.read_ns - since->read_ns));
	if (refreshed && r->refreshed_ns)
		ns = MIN(ns, refreshed - r->refreshed_ns);
	return ns > 0 ? (uint64_t)ns : 0;
}

/* False: the sample is not delivered. */
static bool take_count(struct sv_node *v, const struct sv_asdu *a, uint64_t *sequence)
{
	struct sv_subscriber *r = v->subscriber;
	bool per_second = a->has_mode && a->mode == SV_PER_SECOND;
	struct counting_step step =
		counting_take(&r->count, a->count, per_second && a->has_rate ? a->rate : 0,
			      r->now.read_ns, elapsed(r, a));

	*sequence = step.sequence;
	switch (step.verdict) {
	case COUNTING_LATE:
		node_figure_add(v->node, SV_FIGURE_REORDERED, 1);
		return true;
	case COUNTING_REPEATED:
		node_figure_add(v->node, SV_FIGURE_REPEATED, 1);
		return false;
	case COUNTING_IMPOSSIBLE:
		node_figure_add(v->node, SV_FIGURE_WRONG_SMP_CNT, 1);
		fault_note(&v->faults, FAULT_MALFORMED, 1,
			   "smpCnt is %u, which is not less than in.smp_rate", a->count);
		return false;
	case COUNTING_LOST:
		node_figure_add(v->node, SV_FIGURE_LOST, step.lost);
		note_overruns(v);
		break;
	case COUNTING_RESTARTED:
		node_figure_add(v->node, SV_FIGURE_RESTARTS, 1);
		break;
	case COUNTING_NEXT:
		break;
	}
	if (r->last.read_ns != r->now.read_ns)
		r->before = r->last;
	r->last = r->now;
	r->refreshed_ns = refresh_ns(a);
	return true;
}

static void set_time(struct sv_node *v, const struct sv_asdu *a, struct sample *s)
{
	struct sv_subscriber *r = v->subscriber;
	int64_t ns = refresh_ns(a);

	s->received = r->received;
	s->flags |= SAMPLE_HAS_RECEIVED;
	if (!ns && !(a->synch == SV_SYNCH_GLOBAL &&
		     counting_time(&r->count, a->count, sample_time_to_ns(s->received), &ns)))
		return;
	s->origin = sample_time_from_ns(ns);
	s->flags |= SAMPLE_HAS_ORIGIN;
}

/* Who takes simulated messages of a stream takes no others once they have come (IEC 61850-7-1). */
static bool is_replaced(struct sv_node *v)
{
	struct sv_subscriber *r = v->subscriber;

	r->simulated |= r->head.simulation;
	if (likely(r->simulated == r->head.simulation))
		return false;
	node_figure_add(v->node, SV_FIGURE_NOT_SIMULATED, 1);
	return true;
}

/* One ASDU. True: `s` is a sample now. */
static bool take_asdu(struct sv_node *v, const struct sv_asdu *a, struct sample *s)
{
	struct sv_subscriber *r = v->subscriber;
	unsigned bad;

	if (!is_of_stream(v, a) || is_replaced(v) || !is_revision(v, a))
		return false;
	if (unlikely(a->values.len != v->in_set->size)) {
		node_figure_add(v->node, SV_FIGURE_WRONG_LENGTH, 1);
		fault_note(&v->faults, FAULT_MALFORMED, 1,
			   "a data set has %zu bytes, in.signals describe %zu", a->values.len,
			   v->in_set->size);
		return false;
	}
	if (!take_count(v, a, &s->sequence))
		return false;
	assert(s->capacity >= v->in_set->count);
	bad = data_set_take(v->in_set, a->values.at, s);
	if (unlikely(bad))
		node_figure_add(v->node, SV_FIGURE_BAD_QUALITY, bad);
	if (unlikely(a->synch == SV_SYNCH_NONE))
		node_figure_add(v->node, SV_FIGURE_NOT_SYNCHRONIZED, 1);
	node_figure_set(v->node, SV_FIGURE_SMP_SYNCH, a->synch);
	node_figure_set(v->node, SV_FIGURE_SMP_RATE, counting_wrap(&r->count));
	s->flags |= SAMPLE_HAS_SEQUENCE | SAMPLE_HAS_DATA;
	set_time(v, a, s);
	return true;
}

static void note_malformed(struct sv_node *v, const char *why)
{
	const uint8_t *m = v->subscriber->frame.source;
	char text[SOCKET_ADDRESS_MAX];

	if (v->in.routing.enabled)
		socket_address_print(&v->subscriber->datagram.from, text);
	else
		snprintf(text, sizeof(text), "%02x-%02x-%02x-%02x-%02x-%02x", m[0], m[1], m[2],
			 m[3], m[4],
			 m[5]);
	fault_note(&v->faults, FAULT_MALFORMED, 1, "from %s: %s", text, why);
}

static unsigned take_samples(struct sv_node *v, struct sample *smps[], unsigned cnt)
{
	struct sv_subscriber *r = v->subscriber;
	unsigned n = 0;

	while (r->open && n < cnt) {
		const char *why;
		struct sv_asdu a;

		if (sv_next(&r->message, &a, &why) > 0)
			n += take_asdu(v, &a, smps[n]);
		r->open = r->message.count;
	}
	return n;
}

/* A message of which a part contradicts itself is not read at all. NULL, or what is wrong. */
static const char *decode(struct sv_subscriber *r)
{
	struct sv_message rest;
	struct sv_asdu a;
	const char *why = sv_decode(&r->head.body, &r->message);
	int ret = why ? -EPROTO : 1;

	for (rest = r->message; ret > 0;)
		ret = sv_next(&rest, &a, &why);
	return ret ? why : NULL;
}

/* The message whose header is r->head now. */
static void open_message(struct sv_node *v)
{
	struct sv_subscriber *r = v->subscriber;
	unsigned extension;
	const char *why;

	r->now.arrived_ns = sample_time_to_ns(r->received);
	r->now.read_ns = MAX(v->capture ? (uint64_t)r->now.arrived_ns : clock_now_ns(),
			     r->now.read_ns + 1);
	if (r->head.appid != v->in.app_id) {
		node_figure_add(v->node, SV_FIGURE_OTHERS, 1);
		return;
	}
	if (r->head.simulation && !v->in.simulation) {
		node_figure_add(v->node, SV_FIGURE_SIMULATED, 1);
		return;
	}
	extension = apdu_extension(&r->head);
	why = decode(r);
	/* Some count what stands behind the message as a part of it. */
	if (why && extension && extension < r->head.body.len) {
		r->head.body.len -= extension;
		why = decode(r);
	}
	if (why) {
		node_figure_add(v->node, SV_FIGURE_SECURED, extension != 0);
		note_malformed(v, extension ? apdu_secured : why);
		return;
	}
	if (unlikely(extension || r->message.secured))
		node_figure_add(v->node, SV_FIGURE_UNVERIFIED, 1);
	node_figure_add(v->node, SV_FIGURE_MESSAGES_RECEIVED, 1);
	r->open = true;
}

static bool is_whole(struct sv_node *v, bool truncated)
{
	if (truncated)
		fault_note(&v->faults, FAULT_TRUNCATED, 1, "more than %zu bytes",
			   v->subscriber->size);
	return !truncated;
}

/* Takes a frame. 0 or a negative errno. */
static int take_frame(struct sv_node *v)
{
	struct sv_subscriber *r = v->subscriber;
	int ret = ethernet_receive(&v->ethernet, r->buffer, r->size, &r->frame);
	const char *why;

	if (ret)
		return ret;
	if (v->in.check_dst_address && memcmp(r->frame.destination, v->dst, ETHERNET_MAC)) {
		node_figure_add(v->node, SV_FIGURE_OTHERS, 1);
		return 0;
	}
	if (!is_whole(v, r->frame.truncated))
		return 0;
	r->received = r->frame.received;
	why = apdu_decode(r->frame.payload, r->frame.len, &r->head);
	if (why)
		note_malformed(v, why);
	else
		open_message(v);
	return 0;
}

/* ---- routed messages ---- */

static void note_secured(struct sv_node *v, const char *what)
{
	struct sv_subscriber *r = v->subscriber;
	uint64_t now = clock_now_ns();
	char from[SOCKET_ADDRESS_MAX];

	node_figure_add(v->node, SV_FIGURE_SECURED, 1);
	if (now < r->say_secured_ns)
		return;
	r->say_secured_ns = now + NSEC_PER_SEC;
	log_warn("%s: a datagram from %s is not used: %s, which is not supported", v->node->name,
		 socket_address_print(&r->datagram.from, from), what);
}

static int take_datagram(struct sv_node *v)
{
	struct sv_subscriber *r = v->subscriber;
	struct session s;
	const char *why;
	int ret = routed_receive(&v->in_socket, r->buffer, r->size, &r->datagram);

	if (ret || !is_whole(v, r->datagram.truncated))
		return ret;
	r->received = r->datagram.received;
	why = session_decode(r->buffer, r->datagram.len, &s);
	if (why)
		note_malformed(v, why);
	else if (session_security(&s))
		note_secured(v, session_security(&s));
	else
		r->payloads = s.payloads;
	return 0;
}

/* As take_frame(): a payload, or a datagram. */
static int take_routed(struct sv_node *v)
{
	struct sv_subscriber *r = v->subscriber;
	struct session_part p;
	int ret = session_next(&r->payloads, &p);

	if (!ret)
		return take_datagram(v);
	if (ret < 0) {
		r->payloads.len = 0;
		note_malformed(v, "the length of a payload is wrong");
	} else if (p.type != SESSION_PAYLOAD_SV) {
		node_figure_add(v->node, SV_FIGURE_OTHERS, 1);
	} else {
		r->head = (struct apdu){ .appid = p.appid, .simulation = p.simulation,
					.body = p.body };
		open_message(v);
	}
	return 0;
}

/* Takes samples until there are `cnt`, or nothing is there. Their number, or a negative errno
 * when there are none; -EAGAIN: nothing was there. */
static int take(struct node *node, struct sample *smps[], unsigned cnt)
{
	struct sv_node *v = node->private_data;
	struct sv_subscriber *r = v->subscriber;
	unsigned n = take_samples(v, smps, cnt), frames;
	int ret = 0;

	/* The rest of a datagram is taken in any case: nothing tells a path that waits of it. */
	for (frames = 0; n < cnt && (frames < FRAMES_MAX || r->payloads.len); frames++) {
		ret = v->in.routing.enabled ? take_routed(v) : take_frame(v);
		if (ret)
			break;
		r->down = false;
		n += take_samples(v, smps + n, cnt - n);
	}
	if (frames >= FRAMES_MAX)
		note_overruns(v);
	if (v->capture && ret && ret != -ENODATA) {
		services_note_failure(v->node->services);
		ret = -ENODATA;
	}
	if (ret == -ENETDOWN) {
		if (!r->down)
			log_warn("%s: %s is down", v->node->name, v->interface);
		r->down = true;
		ret = -EAGAIN;
	}
	return n ? (int)n : ret;
}

/* For a path that waits for the descriptors: never sleeps. */
static int read_polled(struct sv_node *v, struct sample *smps[], unsigned cnt)
{
	int ret;

	socket_wait_clear(&v->wait);
	ret = take(v->node, smps, cnt);
	if (v->subscriber->open || v->subscriber->payloads.len)
		socket_wait_kick(&v->wait); /* not seen at the socket any more */
	return ret == -EAGAIN ? 0 : ret;
}

int sv_read(struct node *n, struct sample *smps[], unsigned cnt, unsigned *release)
{
	struct sv_node *v = n->private_data;

	if (unlikely(!v->subscriber))
		return -ENODATA;
	if (atomic_load_explicit(&v->wait.polled, memory_order_relaxed))
		return read_polled(v, smps, cnt);
	return socket_wait_read(&v->wait, n, smps, cnt, take);
}

int sv_poll_fds(struct node *n, int fds[], int max)
{
	struct sv_node *v = n->private_data;

	if (!socket_wait_set_polled(&v->wait, max >= 2))
		return 0;
	fds[0] = sv_in_fd(v);
	fds[1] = v->wait.wake_fd;
	return 2;
}
