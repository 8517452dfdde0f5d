/* SPDX-License-Identifier: BSD-2-Clause */
/* What comes from the fabric, or from agents of this host, goes into the queue of its port. */
#define LOG_ROOM "umad"
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "umad/plain.h"
#include "umad/rmpp.h"
#include "umad/umad.h"
#include "util/log.h"

static void take_mad(struct umad_port_open *p, const struct plug_mad *head, const uint8_t *mad)
{
	if (head->agent >= UMAD_AGENTS || !p->agents[head->agent].used)
		return;
	if (!head->status && p->agents[head->agent].rmpp && umad_rmpp_is(mad))
		umad_rmpp_receive(p, head, mad);
	else
		umad_port_queue(p, head, mad, PLUG_MAD_BYTES);
}

static void take_agent(struct umad_port_open *p, const struct plug_head *head)
{
	struct umad_agent *a = head->a < UMAD_AGENTS ? &p->agents[head->a] : NULL;

	if (!a || !a->waits)
		return;
	a->waits = false;
	a->used = head->b != 0;
	a->upper = head->b;
}

static int pump_plain(struct umad_port_open *p)
{
	uint8_t mad[PLUG_MAD_BYTES];
	struct plug_mad head;

	if (!umad_plain_receive(p, &head, mad))
		return 0;
	take_mad(p, &head, mad);
	return 1;
}

int umad_port_pump(struct umad_port_open *p)
{
	union {
		struct plug_head head;
		uint8_t bytes[PLUG_MESSAGE_BYTES];
	} m;
	struct plug_mad head;
	ssize_t n;

	if (p->broken)
		return -EIO;
	if (p->plug < 0)
		return pump_plain(p);
	n = recv(p->plug, &m, sizeof(m), MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0 || !plug_check(&m.head, (size_t)n)) {
		p->broken = true;
		log_warn("the fabric has ended: this port sends and receives no more");
		return -EIO;
	}
	if (m.head.type == PLUG_MAD) {
		memcpy(&head, m.bytes + sizeof(m.head), sizeof(head));
		take_mad(p, &head, m.bytes + sizeof(m.head) + sizeof(head));
	} else if (m.head.type == PLUG_AGENT) {
		take_agent(p, &m.head);
	}
	return 1;
}
