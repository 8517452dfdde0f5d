/* SPDX-License-Identifier: BSD-2-Clause */
/* Complete messages wait in memory for umad_recv(). */
#define LOG_ROOM "umad"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "umad/umad.h"
#include "util/log.h"

void umad_port_queue(struct umad_port_open *p, const struct plug_mad *head, const void *mad,
		     size_t bytes)
{
	const uint64_t one = 1;
	struct umad_message *m;

	if (p->queued >= UMAD_QUEUED)
		return; /* as one that is lost on the way */
	m = malloc(sizeof(*m) + bytes);
	if (!m)
		return;
	m->head = *head;
	m->bytes = bytes;
	memcpy(m->mad, mad, bytes);
	list_push(&p->queue, &m->entry);
	if (!p->queued++ && write(p->wake, &one, sizeof(one)) < 0)
		log_debug("the eventfd of a port is full");
}
