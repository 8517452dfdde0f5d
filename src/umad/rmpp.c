/* SPDX-License-Identifier: BSD-2-Clause */
/* Long messages; see rmpp.h. */
#define LOG_ROOM "umad"
#include "umad/rmpp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/clock.h"
#include "util/container_of.h"
#include "util/log.h"
#include "wire/mad/rmpp.h"

#define TRANSFERS 256
#define MESSAGE_BYTES_MAX (32u << 20)
#define MESSAGE_BYTES_UNKNOWN (4u << 20) /* the first segment does not say how much follows */
#define SA_CLASS_BYTES 20
#define VENDOR_CLASS_BYTES 4

/* A long message on its way; `mad` has the headers at its start, then data. */
struct umad_transfer {
	struct list entry;
	struct plug_mad head;  /* the peer */
	uint64_t tid;
	uint8_t class;
	bool sends, done;
	size_t headers;        /* bytes before the data */
	uint64_t until_ns;     /* when it is done: repeated segments are answered until then */
	struct mad_rmpp_sender sender;
	struct mad_rmpp_receiver receiver;
	uint8_t *mad;
};

static void transfer_free(struct umad_port_open *p, struct umad_transfer *t)
{
	list_remove(&t->entry);
	p->transfer_count--;
	free(t->mad);
	free(t);
}

/* Makes room by giving up the oldest of those that are done, then of all. */
static struct umad_transfer *transfer_new(struct umad_port_open *p)
{
	struct umad_transfer *t = calloc(1, sizeof(*t)), *oldest = NULL;

	if (!t)
		return NULL;
	if (p->transfer_count >= TRANSFERS) {
		list_for_each(other, &p->transfers, struct umad_transfer, entry)
			if (!oldest || (other->done && !oldest->done))
				oldest = other;
		transfer_free(p, oldest);
	}
	list_push(&p->transfers, &t->entry);
	p->transfer_count++;
	return t;
}

static struct mad_rmpp_config config_of(uint8_t class)
{
	struct mad_rmpp_config config = MAD_RMPP_CONFIG_SA;

	if (class != MAD_CLASS_SUBN_ADM)
		config.class_bytes = VENDOR_CLASS_BYTES;
	return config;
}

bool umad_rmpp_is(const uint8_t *mad)
{
	struct mad_rmpp r;

	mad_rmpp_unpack(mad + MAD_RMPP_AT, &r);
	return r.flags & MAD_RMPP_ACTIVE; /* programs leave the type to the kernel */
}

static void put(struct umad_port_open *p, const struct plug_mad *head, const uint8_t *mad)
{
	struct plug_mad to = *head;

	to.timeout_ms = to.retries = 0;
	to.status = 0;
	umad_port_put_mad(p, &to, mad); /* what does not fit is repeated */
}

/* ---- sending ---- */

static void send_turn(struct umad_port_open *p, struct umad_transfer *t, uint64_t now_ns)
{
	uint8_t mad[MAD_BYTES];

	while (mad_rmpp_send_next(&t->sender, now_ns, mad))
		put(p, &t->head, mad);
	if (t->sender.state == MAD_RMPP_FAILED)
		log_debug("a message of %zu bytes to lid %u is given up, RMPP status %u",
			  t->sender.bytes, t->head.lid, t->sender.status);
	if (t->sender.state != MAD_RMPP_RUNNING)
		transfer_free(p, t);
}

int umad_rmpp_send(struct umad_port_open *p, const struct plug_mad *head, const uint8_t *mad,
		   size_t bytes)
{
	const uint64_t now_ns = clock_monotonic_ns_slow();
	struct mad_rmpp_config config = config_of(mad[1]);
	struct umad_transfer *t;
	struct mad_header header;
	int ret;

	if (bytes > MESSAGE_BYTES_MAX)
		return -EMSGSIZE;
	t = transfer_new(p);
	if (!t)
		return -ENOMEM;
	t->sends = true;
	t->head = *head;
	t->headers = MAD_RMPP_CLASS_AT + config.class_bytes;
	t->mad = calloc(1, MAX(bytes, MAD_BYTES));
	ret = !t->mad ? -ENOMEM : bytes < t->headers ? -EINVAL : 0;
	if (!ret) {
		memcpy(t->mad, mad, bytes);
		umad_stamp(&p->agents[head->agent], t->mad);
		mad_header_unpack(t->mad, &header);
		t->tid = header.tid;
		t->class = header.mgmt_class;
		ret = mad_rmpp_send_begin(&t->sender, &config, t->mad, t->mad + t->headers,
					  bytes - t->headers, now_ns);
	}
	if (ret)
		transfer_free(p, t);
	else
		send_turn(p, t, now_ns);
	return ret;
}

/* ---- receiving ---- */

static struct umad_transfer *transfer_find(struct umad_port_open *p, bool sends,
					   const struct plug_mad *head, const struct mad_header *h)
{
	list_for_each(t, &p->transfers, struct umad_transfer, entry)
		if (t->sends == sends && t->tid == h->tid && t->class == h->mgmt_class &&
		    t->head.lid == head->lid && t->head.qpn == head->qpn &&
		    t->head.agent == head->agent)
			return t;
	return NULL;
}

static struct umad_transfer *receive_begin(struct umad_port_open *p, const struct plug_mad *head,
					   const struct mad_header *h, const uint8_t *mad,
					   uint64_t now_ns)
{
	struct mad_rmpp_config config = config_of(h->mgmt_class);
	size_t capacity = MESSAGE_BYTES_UNKNOWN;
	struct umad_transfer *t;
	struct mad_rmpp r;

	mad_rmpp_unpack(mad + MAD_RMPP_AT, &r);
	if (r.segment != 1)
		return NULL;
	if (r.length)
		capacity = MIN(r.length, MESSAGE_BYTES_MAX);
	t = transfer_new(p);
	if (!t)
		return NULL;
	t->head = *head;
	t->tid = h->tid;
	t->class = h->mgmt_class;
	t->headers = MAD_RMPP_CLASS_AT + config.class_bytes;
	t->mad = malloc(t->headers + capacity + MAD_BYTES);
	if (!t->mad || mad_rmpp_receive_begin(&t->receiver, &config, t->mad + t->headers, capacity,
					      now_ns)) {
		transfer_free(p, t);
		return NULL;
	}
	memcpy(t->mad, mad, t->headers);
	return t;
}

static void receive_done(struct umad_port_open *p, struct umad_transfer *t, uint64_t now_ns)
{
	/* The program counts records by the length, which may be less than that of a MAD. */
	if (t->receiver.state == MAD_RMPP_DONE)
		umad_port_queue(p, &t->head, t->mad, t->headers + t->receiver.bytes);
	t->done = true;
	t->until_ns = now_ns + 10 * NSEC_PER_SEC;
}

static void receive_data(struct umad_port_open *p, const struct plug_mad *head,
			 const struct mad_header *h, const uint8_t *mad, uint64_t now_ns)
{
	struct umad_transfer *t = transfer_find(p, false, head, h);
	uint8_t reply[MAD_BYTES];

	if (!t)
		t = receive_begin(p, head, h, mad, now_ns);
	if (!t)
		return;
	if (mad_rmpp_receive(&t->receiver, mad, now_ns, reply))
		put(p, &t->head, reply);
	if (!t->done && t->receiver.state != MAD_RMPP_RUNNING)
		receive_done(p, t, now_ns);
}

void umad_rmpp_receive(struct umad_port_open *p, const struct plug_mad *head,
		       const uint8_t mad[PLUG_MAD_BYTES])
{
	const uint64_t now_ns = clock_monotonic_ns_slow();
	struct umad_transfer *t;
	struct mad_header h;
	struct mad_rmpp r;

	mad_header_unpack(mad, &h);
	mad_rmpp_unpack(mad + MAD_RMPP_AT, &r);
	if (r.type == MAD_RMPP_DATA) {
		receive_data(p, head, &h, mad, now_ns);
		return;
	}
	t = transfer_find(p, true, head, &h);
	if (t) {
		mad_rmpp_send_receive(&t->sender, mad, now_ns);
		send_turn(p, t, now_ns);
		return;
	}
	/* An ABORT of the sender. */
	t = transfer_find(p, false, head, &h);
	if (t && !t->done && (r.type == MAD_RMPP_ABORT || r.type == MAD_RMPP_STOP))
		transfer_free(p, t);
}

/* ---- time ---- */

static uint64_t due_ns(const struct umad_transfer *t)
{
	if (t->sends)
		return mad_rmpp_send_due_ns(&t->sender);
	return t->done ? t->until_ns : mad_rmpp_receive_due_ns(&t->receiver);
}

uint64_t umad_rmpp_due_ns(const struct umad_port_open *p)
{
	uint64_t due = UINT64_MAX;

	list_for_each(t, (struct list *)&p->transfers, struct umad_transfer, entry)
		due = MIN(due, due_ns(t));
	return due;
}

void umad_rmpp_turn(struct umad_port_open *p)
{
	const uint64_t now_ns = clock_monotonic_ns_slow();
	struct list turn, *entry;

	/* Of those that are due, each ends or waits on. */
	list_init(&turn);
	list_splice(&turn, &p->transfers);
	while ((entry = list_pop(&turn))) {
		struct umad_transfer *t = list_entry(entry, struct umad_transfer, entry);

		list_push(&p->transfers, &t->entry);
		if (due_ns(t) > now_ns)
			continue;
		if (t->sends)
			send_turn(p, t, now_ns);
		else
			transfer_free(p, t);
	}
}

void umad_rmpp_forget(struct umad_port_open *p)
{
	struct list *entry;

	while ((entry = list_pop(&p->transfers))) {
		struct umad_transfer *t = list_entry(entry, struct umad_transfer, entry);

		free(t->mad);
		free(t);
	}
	p->transfer_count = 0;
}
