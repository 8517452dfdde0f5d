/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of a message of a program (struct ib_user_mad), by the calls of umad_get_mad(3) and so
 * on: they only read and write the program's memory. */
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "umad/umad.h"

static struct ib_user_mad *message(void *umad)
{
	return umad;
}

UMAD_EXPORT void *umad_get_mad(void *umad)
{
	return message(umad)->data;
}

UMAD_EXPORT size_t umad_size(void)
{
	return sizeof(struct ib_user_mad);
}

UMAD_EXPORT int umad_status(void *umad)
{
	return (int)message(umad)->status;
}

UMAD_EXPORT ib_mad_addr_t *umad_get_mad_addr(void *umad)
{
	return &message(umad)->addr;
}

UMAD_EXPORT int umad_set_grh(void *umad, void *mad_addr)
{
	struct ib_mad_addr *to = &message(umad)->addr, *from = mad_addr;

	to->grh_present = from != NULL;
	if (!from)
		return 0;
	memcpy(to->gid, from->gid, sizeof(to->gid));
	to->flow_label = htobe32(from->flow_label);
	to->hop_limit = from->hop_limit;
	to->traffic_class = from->traffic_class;
	to->gid_index = from->gid_index;
	return 0;
}

UMAD_EXPORT int umad_set_addr(void *umad, int dlid, int dqp, int sl, int qkey)
{
	struct ib_mad_addr *to = &message(umad)->addr;

	to->qpn = htobe32((uint32_t)dqp);
	to->lid = htobe16((uint16_t)dlid);
	to->qkey = htobe32((uint32_t)qkey);
	to->sl = (uint8_t)sl;
	return 0;
}

UMAD_EXPORT int umad_set_addr_net(void *umad, __be16 dlid, __be32 dqp, int sl, __be32 qkey)
{
	struct ib_mad_addr *to = &message(umad)->addr;

	to->qpn = dqp;
	to->lid = dlid;
	to->qkey = qkey;
	to->sl = (uint8_t)sl;
	return 0;
}

UMAD_EXPORT int umad_set_pkey(void *umad, int pkey_index)
{
	message(umad)->addr.pkey_index = (uint16_t)pkey_index;
	return 0;
}

UMAD_EXPORT int umad_get_pkey(void *umad)
{
	return message(umad)->addr.pkey_index;
}

/* ---- for people: standard error, as the system's library prints ---- */

UMAD_EXPORT int umad_debug(int level)
{
	(void)level;
	return 0;
}

UMAD_EXPORT void umad_addr_dump(ib_mad_addr_t *addr)
{
	fprintf(stderr, "qpn %u qkey 0x%x lid %u sl %u path_bits 0x%x pkey_index %u grh %s\n",
		be32toh(addr->qpn), be32toh(addr->qkey), be16toh(addr->lid), addr->sl,
		addr->path_bits, addr->pkey_index, addr->grh_present ? "" : "none");
	if (!addr->grh_present)
		return;
	fprintf(stderr, "gid_index %u hop_limit %u traffic_class 0x%x flow_label 0x%x gid ",
		addr->gid_index, addr->hop_limit, addr->traffic_class, be32toh(addr->flow_label));
	for (size_t i = 0; i < sizeof(addr->gid); i++)
		fprintf(stderr, "%02x", addr->gid[i]);
	fputc('\n', stderr);
}

UMAD_EXPORT void umad_dump(void *umad)
{
	const struct ib_user_mad *m = message(umad);

	fprintf(stderr, "agent %u status %u timeout %u ms retries %u length %u\n", m->agent_id,
		m->status, m->timeout_ms, m->retries, m->length);
	umad_addr_dump(&message(umad)->addr);
}
