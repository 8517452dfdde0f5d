/* SPDX-License-Identifier: BSD-2-Clause */
/* Where MADs leave: to the fabric, or to an agent of this host. */
#include <endian.h>
#include <string.h>

#include "umad/plain.h"
#include "umad/umad.h"

int umad_port_put_mad(struct umad_port_open *p, const struct plug_mad *head,
		      const uint8_t mad[PLUG_MAD_BYTES])
{
	uint8_t body[sizeof(struct plug_mad) + PLUG_MAD_BYTES];

	if (p->plug < 0)
		return umad_plain_send(p, head, mad);
	memcpy(body, head, sizeof(*head));
	memcpy(body + sizeof(*head), mad, PLUG_MAD_BYTES);
	return plug_send(p->plug, PLUG_MAD, 0, 0, body, sizeof(body));
}

void umad_stamp(const struct umad_agent *a, uint8_t *mad)
{
	uint64_t tid;

	if (mad[3] & MAD_RESPONSE || mad[3] == MAD_TRAP_REPRESS)
		return;
	memcpy(&tid, mad + 8, sizeof(tid));
	tid = htobe64((uint64_t)a->upper << 32 | (uint32_t)be64toh(tid));
	memcpy(mad + 8, &tid, sizeof(tid));
}
