/* SPDX-License-Identifier: BSD-2-Clause */
/* The tables of buffers of riomap(): of this side and of the peer. */

#include <stdlib.h>
#include <string.h>

#include "rdmacm/rsocket/rs.h"

int rs_maps_make(struct rs *rs)
{
	if (!rs->ours)
		rs->ours = calloc(rs->ours_count + RS_MAPS_LOCAL, sizeof(*rs->ours));
	if (!rs->theirs)
		rs->theirs = calloc(MAX(rs->theirs_count, 1u),
				    sizeof(*rs->theirs));
	return rs->ours && rs->theirs ? 0 : -ENOMEM;
}

void rs_maps_free(struct rs *rs)
{
	for (uint32_t i = 0; rs->ours && i < rs->ours_count + RS_MAPS_LOCAL; i++)
		if (rs->ours[i].used)
			ibv_dereg_mr(rs->ours[i].mr);
	free(rs->ours);
	free(rs->theirs);
	rs->ours = rs->theirs = NULL;
}

bool rs_map_received(struct rs *rs, enum rs_type type, const void *payload,
		     uint32_t len)
{
	struct rs_mapping *m;
	struct rs_map map;
	uint32_t index;

	if (len != sizeof(map) || rs_maps_make(rs))
		return false;
	memcpy(&map, payload, sizeof(map));
	index = ntohl(map.index);
	if (index >= rs->theirs_count)
		return false;
	m = &rs->theirs[index];
	if (m->used == (type == RS_MAP))
		return false;
	*m = (struct rs_mapping){
		.used = type == RS_MAP,
		.offset = be64toh(map.offset),
		.addr = be64toh(map.addr),
		.length = be64toh(map.length),
		.rkey = ntohl(map.rkey),
	};
	return m->length <= UINT64_MAX - m->offset;
}
