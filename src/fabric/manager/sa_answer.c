/* SPDX-License-Identifier: BSD-2-Clause */
/* The records of an answer are gathered; see sa.h. */
#include "fabric/manager/sa.h"

#include <stdlib.h>
#include <string.h>

#include "fabric/manager/state.h"
#include "util/container_of.h"
#include "wire/mad/sa.h"

#define ANSWER_BYTES_MAX (64u << 20)

void *sa_answer_record(struct sa_answer *a)
{
	const size_t stride = 8u * mad_sa_offset(a->record_bytes);
	uint8_t *more;

	if (a->bytes + stride > a->capacity) {
		size_t capacity = MAX(2 * a->capacity, 64 * stride);

		more = capacity > ANSWER_BYTES_MAX ? NULL :
						     realloc(a->mad, MAD_SA_DATA_AT + capacity);
		if (!more) {
			a->status = MAD_SA_NO_RESOURCES;
			return NULL;
		}
		a->mad = more;
		a->capacity = capacity;
	}
	more = a->mad + MAD_SA_DATA_AT + a->bytes;
	memset(more, 0, stride);
	return more;
}

void sa_answer_keep(struct sa_answer *a, const uint8_t *record)
{
	if (a->status || !mad_sa_matches(a->attr_id, a->mask, a->query, record))
		return;
	a->bytes += 8u * mad_sa_offset(a->record_bytes);
	a->count++;
}

void sa_member_fill(const struct manager *m, const struct manager_group *g,
		    struct mad_mc_member_record *r)
{
	memcpy(r->mgid, g->mgid, sizeof(r->mgid));
	r->qkey = g->qkey;
	r->mlid = manager_group_mlid(m, g);
	r->mtu_selector = r->rate_selector = r->packet_life_selector = MAD_SELECT_EXACTLY;
	r->mtu = g->mtu;
	r->rate = g->rate;
	r->packet_life = g->packet_life;
	r->tclass = g->tclass;
	r->pkey = g->pkey;
	r->sl = g->sl;
	r->flow_label = g->flow_label;
	r->hop_limit = g->hop_limit;
	r->scope = g->scope;
}
