/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writing to GOOSE: a sample that changes a value of a control block is sent at once, by the thread
 * that writes; a thread of the node repeats the last message of each control block.
 */
#define LOG_ROOM "gateway/iec61850-8-1"
#include "gateway/node/iec61850-8-1/goose.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gateway/base/thread.h"
#include "gateway/sample/time.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/wakeup.h"
#include "wire/grid/session.h"

/* Accuracy of times: not said. */
#define ACCURACY_UNKNOWN 31

static struct ber text(const char *s)
{
	return (struct ber){ (const uint8_t *)s, s ? strlen(s) : 0 };
}

/* Puts the header of a session in front of a body in the frame buffer. */
static uint8_t *wrap(struct goose_node *g, const struct goose_sink *s, uint8_t *body, size_t *len)
{
	const struct session session = { .kind = SESSION_GOOSE, .number = g->datagrams,
					 .version = (uint16_t)g->out.routing.session_version };
	const struct session_part part = { .type = SESSION_PAYLOAD_GOOSE,
					   .simulation = g->out.simulation,
					   .appid = (uint16_t)s->app_id };

	return session_wrap(&session, &part, body, len);
}

/* Writes a message to the end of the frame buffer, with the header of Ethernet or of a session.
 * NULL: it is longer than the interface, or a datagram, allows. */
static uint8_t *encode(struct goose_node *g, const struct goose_sink *s,
		       const struct goose_publication *p, const struct goose_value *values,
		       size_t *len)
{
	const struct apdu head = { .appid = (uint16_t)s->app_id, .simulation = g->out.simulation };
	const struct goose message = {
		.reference = text(s->reference), .dataset = text(s->dataset), .id = text(s->id),
		.allowed_live_ms = (uint32_t)s->allowed_live_ms, .time = s->time,
		.state = p->state, .sequence = p->sequence, .revision = (uint32_t)s->revision,
		.simulation = g->out.simulation,
	};
	uint8_t *at;

	if (g->out.routing.enabled) {
		at = goose_encode_body(&message, values, s->count, g->frame + SESSION_HEAD_MAX,
				       g->frame_size - SESSION_HEAD_MAX, len);
		return at ? wrap(g, s, at, len) : NULL;
	}
	at = goose_encode(&head, &message, values, s->count, g->frame + ETHERNET_HEADER_MAX,
			  g->frame_size - ETHERNET_HEADER_MAX, len);
	if (!at)
		return NULL;
	*len += s->header_len;
	return memcpy(at - s->header_len, s->header, s->header_len);
}

/* For messages. */
static const char *link_name(const struct goose_node *g)
{
	return g->out.routing.enabled ? "R-GOOSE" : g->out.interface;
}

/* Below the lock. */
static void note_failure(struct goose_node *g, const struct goose_sink *s, int err, uint64_t now)
{
	node_figure_add(g->node, GOOSE_FIGURE_FAILED, 1);
	if (now < g->say_ns)
		return;
	g->say_ns = now + NSEC_PER_SEC;
	log_warn("%s: %s: a message of '%s' could not be sent: %s", g->node->name,
		 link_name(g), s->reference, strerror(-err));
}

/* Below the lock. 0 or a negative errno. */
static int send_message(struct goose_node *g, const struct goose_sink *s, const uint8_t *at,
			size_t len)
{
	if (!at)
		return -EMSGSIZE;
	if (!g->out.routing.enabled)
		return ethernet_send(&g->ethernet, at, len);
	g->datagrams++;
	return routed_send(&g->socket, &s->to, at, len);
}

/* Sends what is due of one control block. Below the lock. */
static void send_due(struct goose_node *g, struct goose_sink *s, uint64_t now)
{
	struct goose_publication p;

	while (goose_publisher_take(&s->machine, now, &p)) {
		size_t len;
		uint8_t *at = encode(g, s, &p, s->values, &len);
		int ret = send_message(g, s, at, len);

		if (ret) {
			s->error = -ret;
			note_failure(g, s, ret, now);
			continue;
		}
		s->unsent = false;
		node_figure_add(g->node, GOOSE_FIGURE_SENT, 1);
	}
}

static void *repeat(void *arg)
{
	struct goose_node *g = arg;

	pthread_mutex_lock(&g->lock);
	while (!g->ending) {
		struct pollfd p = { .fd = g->wake_fd, .events = POLLIN };
		uint64_t now = clock_now_ns(), next = UINT64_MAX;

		for (unsigned i = 0; i < g->out.sink_count; i++) {
			send_due(g, &g->out.sinks[i], now);
			next = MIN(next, g->out.sinks[i].machine.next_ns);
		}
		g->planned_ns = next;
		pthread_mutex_unlock(&g->lock);
		wakeup_poll(&p, 1, next);
		pthread_mutex_lock(&g->lock);
	}
	pthread_mutex_unlock(&g->lock);
	return NULL;
}

/* ---- start and stop ---- */

/* Structures of a message have their members in the same list of values. */
static void link_groups(const struct goose_sink *s, struct goose_value *values)
{
	for (unsigned i = 0; i < s->total; i++) {
		const struct goose_entry *d = &s->data[i];

		if (!d->type)
			values[i] = (struct goose_value){ .type = d->group,
							  .parts = values + d->first,
							  .part_count = d->part_count };
	}
}

/* Does the longest message of a control block fit into a frame? */
static int check_size(struct goose_node *g, struct goose_sink *s)
{
	const struct goose_publication p = { UINT32_MAX, UINT32_MAX };
	size_t len;

	for (unsigned i = 0; i < s->total; i++)
		if (s->data[i].type && mms_is_text(s->data[i].type))
			s->next[i] = s->data[i].value;
		else if (s->data[i].type)
			s->next[i] = mms_longest(s->data[i].type, s->data[i].bits);
	if (encode(g, s, &p, s->next, &len))
		return 0;
	log_error("%s: a message of '%s' with %u values may be longer than %u bytes, which a %s%s has at most; fewer values are needed",
		  g->node->name, s->reference, s->count,
		  g->out.routing.enabled ? ROUTED_BYTES_MAX : g->ethernet.mtu,
		  g->out.routing.enabled ? "datagram" : "frame on ",
		  g->out.routing.enabled ? "" : g->out.interface);
	return -EMSGSIZE;
}

static int prepare_sink(struct goose_node *g, struct goose_sink *s)
{
	const struct goose_retransmission *r = &s->retransmission;
	const struct goose_repetition repetition = {
		(uint64_t)(r->min_s * 1e9), (uint64_t)(r->max_s * 1e9), r->factor,
		(unsigned)s->burst };
	const struct ethernet_vlan vlan = { s->vlan.enabled, (uint16_t)s->vlan.id,
					    (uint8_t)s->vlan.priority };

	if (!g->out.routing.enabled)
		s->header_len = ethernet_header(&g->ethernet, s->header, s->dst, &vlan);
	s->unsent = false;
	link_groups(s, s->values);
	link_groups(s, s->next);
	goose_publisher_begin(&s->machine, &repetition, s->machine.state);
	return check_size(g, s);
}

static int open_link(struct goose_node *g)
{
	const char *interface = g->out.interface;
	char why[MAX(ETHERNET_WHY_MAX, SOCKET_WHY_MAX)];
	int ret;

	if (g->out.routing.enabled) {
		if (!goose_is_given(g->node->out.cfg, "interface"))
			interface = NULL;
		ret = routing_open(&g->out.routing, interface, true, &g->socket, why);
		g->frame_size = ROUTED_BYTES_MAX;
	} else {
		ret = ethernet_open(&g->ethernet, interface, ETHERTYPE_GOOSE, false, why);
		g->frame_size = ETHERNET_HEADER_MAX + g->ethernet.mtu;
	}
	if (ret)
		log_error("%s: %s", g->node->name, why);
	return ret;
}

int goose_sender_open(struct goose_node *g)
{
	int ret = open_link(g);

	if (ret)
		return ret;
	g->frame = malloc(g->frame_size);
	if (!g->frame)
		return -ENOMEM;
	for (unsigned i = 0; i < g->out.sink_count && !ret; i++)
		ret = prepare_sink(g, &g->out.sinks[i]);
	if (ret)
		return ret;
	g->wake_fd = wakeup_open_signal();
	g->ending = false;
	g->planned_ns = 0;
	g->say_ns = 0;
	ret = g->wake_fd < 0 ? g->wake_fd : thread_start(&g->thread, "goose", THREAD_AS_CALLER,
							 repeat, g);
	if (ret)
		log_error("%s: no thread for repetitions: %s", g->node->name, strerror(-ret));
	g->running = !ret;
	return ret;
}

static enum node_loss cause_of(int err)
{
	return err == ENOBUFS || err == EAGAIN ? NODE_LOSS_STUCK :
	       err == ENETDOWN || err == ENXIO || err == ENODEV || err == ENETUNREACH ||
			       err == EHOSTUNREACH ? NODE_LOSS_ABSENT : NODE_LOSS_REFUSED;
}

/* Counts the last sample as lost if no message of its change could be sent. Below the lock, or
 * without the thread. */
static void lose_unsent(struct goose_node *g)
{
	int err = 0;

	for (unsigned i = 0; i < g->out.sink_count; i++) {
		if (g->out.sinks[i].unsent)
			err = g->out.sinks[i].error;
		g->out.sinks[i].unsent = false;
	}
	if (err)
		node_lose(g->node, cause_of(err), 1, "%s: no message of a change could be sent: %s",
			  link_name(g), strerror(err));
}

void goose_sender_close(struct goose_node *g)
{
	if (g->running) {
		pthread_mutex_lock(&g->lock);
		g->ending = true;
		pthread_mutex_unlock(&g->lock);
		wakeup_post(g->wake_fd);
		pthread_join(g->thread, NULL);
		g->running = false;
		lose_unsent(g);
	}
	if (g->wake_fd >= 0)
		close(g->wake_fd);
	g->wake_fd = -1;
	free(g->frame);
	g->frame = NULL;
	ethernet_close(&g->ethernet);
	routed_close(&g->socket);
}

/* ---- writing ---- */

/* The values of a data set, from a sample. False: the sample is refused. */
static bool make_values(struct goose_node *g, struct goose_sink *s, const struct sample *smp)
{
	for (unsigned i = 0; i < s->total; i++) {
		const struct goose_entry *d = &s->data[i];

		if (!d->type)
			continue;
		s->next[i] = d->value;
		if (!d->signal || (d->index >= smp->length && d->value.type))
			continue;
		if (d->index >= smp->length) {
			node_refuse(g->node, NODE_LOSS_FORMAT, 1,
				    "a sample has %u values, so none for the signal '%s'", smp->length,
				    d->signal);
			return false;
		}
		if (!mms_from_signal(d->type, d->bits, smp->data[d->index], d->from, &s->next[i])) {
			node_refuse(g->node, NODE_LOSS_FORMAT, 1,
				    "a value of the signal '%s' is out of the range of %s", d->signal,
				    d->type->name);
			return false;
		}
	}
	return true;
}

static bool has_changed(const struct goose_sink *s)
{
	bool changed = goose_publisher_is_silent(&s->machine);

	for (unsigned i = 0; i < s->total && !changed; i++)
		changed = s->data[i].signal && !mms_equal(&s->values[i], &s->next[i]);
	return changed;
}

static struct utc_time time_of(const struct sample *smp)
{
	struct timespec t = smp->flags & SAMPLE_HAS_ORIGIN ? smp->origin : clock_realtime();

	return (struct utc_time){
		.seconds = t.tv_sec < 0 ? 0 : t.tv_sec > UINT32_MAX ? UINT32_MAX : (uint32_t)t.tv_sec,
		.nanoseconds = sample_time_nsec(t),
		.accuracy = ACCURACY_UNKNOWN,
	};
}

/* Publishes the values that make_values() has made, if they are others than before. */
static bool publish(struct goose_node *g, struct goose_sink *s, const struct sample *smp,
		    uint64_t now)
{
	struct goose_value *values = s->next;

	if (!has_changed(s))
		return false;
	s->next = s->values;
	s->values = values;
	s->time = time_of(smp);
	for (unsigned i = 0; i < s->total; i++)
		if (s->data[i].stamp)
			s->values[i].time = s->time;
	s->unsent = true;
	goose_publisher_change(&s->machine, now);
	node_figure_add(g->node, GOOSE_FIGURE_CHANGES_SENT, 1);
	send_due(g, s, now);
	return true;
}

/* Below the lock. False: the sample is refused. */
static bool write_sample(struct goose_node *g, const struct sample *smp)
{
	uint64_t now = clock_now_ns();
	bool changed = false;

	for (unsigned i = 0; i < g->out.sink_count; i++)
		if (!make_values(g, &g->out.sinks[i], smp))
			return false;
	for (unsigned i = 0; i < g->out.sink_count; i++)
		if (g->out.sinks[i].unsent && has_changed(&g->out.sinks[i]))
			changed = true;
	if (changed)
		lose_unsent(g);
	changed = false;
	for (unsigned i = 0; i < g->out.sink_count; i++)
		changed |= publish(g, &g->out.sinks[i], smp, now);
	if (!changed)
		node_figure_add(g->node, GOOSE_FIGURE_UNCHANGED, 1);
	return true;
}

int goose_write(struct node *n, struct sample *smps[], unsigned cnt, unsigned *release)
{
	struct goose_node *g = n->private_data;
	unsigned accepted = 0;
	uint64_t next = UINT64_MAX;

	if (unlikely(!g->running))
		return -EBADF;
	pthread_mutex_lock(&g->lock);
	for (unsigned i = 0; i < cnt; i++)
		accepted += write_sample(g, smps[i]);
	for (unsigned i = 0; i < g->out.sink_count; i++)
		next = MIN(next, g->out.sinks[i].machine.next_ns);
	if (next < g->planned_ns) {
		g->planned_ns = next;
		wakeup_post(g->wake_fd);
	}
	pthread_mutex_unlock(&g->lock);
	return (int)accepted;
}
