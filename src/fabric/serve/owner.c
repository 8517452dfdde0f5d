/* SPDX-License-Identifier: BSD-2-Clause */
/* Owners of queue pairs and groups, and flows; see owner.h. */
#include "fabric/serve/owner.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/serve/pool.h"

#define QPN_FIRST 2
#define QPN_LAST 0xffffffu

void serve_owner_init(struct serve *s)
{
	for (unsigned i = 0; i < SERVE_BUCKETS; i++) {
		list_init(&s->qps[i]);
		list_init(&s->groups[i]);
		list_init(&s->flows[i]);
	}
}

static struct list *bucket(struct list *buckets, const void *whose, uint64_t key)
{
	uint64_t mixed = (key ^ (uintptr_t)whose) * UINT64_C(0x9e3779b97f4a7c15);

	return &buckets[(mixed >> 40) % SERVE_BUCKETS];
}

/* ---- queue pairs ---- */

static struct serve_owner *find_qp(struct serve *s, const struct serve_host *h, uint32_t qpn)
{
	list_for_each (o, bucket(s->qps, h, qpn), struct serve_owner, in_bucket)
		if (o->number == qpn && o->host == h)
			return o;
	return NULL;
}

int serve_owner_open_qp(struct serve_client *c, uint32_t qpn)
{
	struct serve_owner *o;

	if (qpn < QPN_FIRST || qpn > QPN_LAST)
		return -EINVAL;
	o = find_qp(c->serve, c->host, qpn);
	if (o)
		return o->client == c ? 0 : -EADDRINUSE;
	if (c->qp_count >= SERVE_QPS_MAX || c->host->qp_count >= SERVE_QPS_OF_HOST_MAX)
		return -ENOSPC;
	o = calloc(1, sizeof(*o));
	if (!o)
		return -ENOMEM;
	*o = (struct serve_owner){ .client = c, .host = c->host, .number = qpn };
	list_push(bucket(c->serve->qps, c->host, qpn), &o->in_bucket);
	list_push(&c->qps, &o->in_client);
	c->qp_count++;
	c->host->qp_count++;
	return 0;
}

static void drop_owner(struct serve_owner *o)
{
	list_remove(&o->in_bucket);
	list_remove(&o->in_client);
	if (o->is_group) {
		o->client->group_count--;
	} else {
		o->client->qp_count--;
		o->host->qp_count--;
	}
	free(o);
}

int serve_owner_close_qp(struct serve_client *c, uint32_t qpn)
{
	struct serve_owner *o = find_qp(c->serve, c->host, qpn);

	if (!o || o->client != c)
		return -ENOENT;
	drop_owner(o);
	return 0;
}

struct serve_client *serve_owner_of_qp(struct serve *s, const struct serve_host *h, uint32_t qpn)
{
	struct serve_owner *o = find_qp(s, h, qpn);

	return o ? o->client : NULL;
}

/* ---- groups ---- */

static bool is_member(const struct serve_owner *o, const struct serve_host *h, uint16_t mlid,
		      const uint8_t mgid[16])
{
	return o->number == mlid && o->host == h && !memcmp(o->mgid, mgid, sizeof(o->mgid));
}

/* The MGID is a part of it: a process may join a thousand groups of one MLID. */
static struct list *group_bucket(struct serve *s, const struct serve_host *h, uint16_t mlid,
				 const uint8_t mgid[16])
{
	uint64_t half[2];

	memcpy(half, mgid, sizeof(half));
	return bucket(s->groups, h, mlid ^ half[0] * UINT64_C(0xff51afd7ed558ccd) ^
				    half[1] * UINT64_C(0xc4ceb9fe1a85ec53));
}

static struct serve_owner *find_member(struct serve_client *c, const struct plug_group *g)
{
	list_for_each (o, group_bucket(c->serve, c->host, g->mlid, g->mgid), struct serve_owner, in_bucket)
		if (o->client == c && is_member(o, c->host, g->mlid, g->mgid))
			return o;
	return NULL;
}

int serve_owner_join(struct serve_client *c, const struct plug_group *g)
{
	struct serve_owner *o;

	if (g->mlid < FABRIC_LID_MULTICAST || g->mlid == FABRIC_LID_PERMISSIVE || g->mgid[0] != 0xff)
		return -EINVAL;
	if (find_member(c, g))
		return 0;
	if (c->group_count >= SERVE_GROUPS_MAX)
		return -ENOSPC;
	o = calloc(1, sizeof(*o));
	if (!o)
		return -ENOMEM;
	*o = (struct serve_owner){ .client = c, .host = c->host, .number = g->mlid, .is_group = true };
	memcpy(o->mgid, g->mgid, sizeof(o->mgid));
	list_push(group_bucket(c->serve, c->host, g->mlid, g->mgid), &o->in_bucket);
	list_push(&c->groups, &o->in_client);
	c->group_count++;
	return 0;
}

int serve_owner_leave(struct serve_client *c, const struct plug_group *g)
{
	struct serve_owner *o = find_member(c, g);

	if (!o)
		return -ENOENT;
	drop_owner(o);
	return 0;
}

unsigned serve_owner_members(struct serve *s, const struct serve_host *h, uint16_t mlid,
			     const uint8_t mgid[16],
			     void (*f)(struct serve_client *c, struct serve_buffer *b),
			     struct serve_buffer *b)
{
	unsigned count = 0;

	list_for_each (o, group_bucket(s, h, mlid, mgid), struct serve_owner, in_bucket) {
		if (!is_member(o, h, mlid, mgid))
			continue;
		f(o->client, b);
		count++;
	}
	return count;
}

/* ---- flows ---- */

static void end_flow(struct serve_flow *w)
{
	struct serve *s = w->client->serve;
	struct fabric_packet *p;

	while ((p = w->first)) {
		w->first = p->next;
		w->client->waiting--;
		serve_pool_give(&s->pool, p->data);
		fabric_packet_free(s->fabric, p);
	}
	list_remove(&w->in_waiting);
	if (w->number)
		fabric_flow_close(s->fabric, w->number);
	w->number = 0;
}

static void free_flow(struct serve_flow *w)
{
	end_flow(w);
	list_remove(&w->in_bucket);
	list_remove(&w->in_client);
	w->client->flow_count--;
	free(w);
}

/* The one that was used longest ago and has nothing waiting gives its place up. */
static void make_room(struct serve_client *c)
{
	struct serve_flow *oldest = NULL;

	list_for_each (w, &c->flows, struct serve_flow, in_client)
		if (!w->first && (!oldest || w->used_ns < oldest->used_ns))
			oldest = w;
	if (oldest && c->serve->now_ns - oldest->used_ns > UINT64_C(100000000))
		free_flow(oldest);
}

static struct serve_flow *open_flow(struct serve_client *c, uint64_t key, uint8_t sl)
{
	struct serve_flow *w;

	if (c->flow_count >= SERVE_FLOWS_MAX)
		make_room(c);
	if (c->flow_count >= SERVE_FLOWS_MAX)
		return &c->rest;
	w = calloc(1, sizeof(*w));
	if (!w)
		return &c->rest;
	*w = (struct serve_flow){ .client = c, .key = key, .sl = sl, .last = &w->first };
	w->number = fabric_flow_open(c->serve->fabric, c->host->node, c->host->port, sl);
	list_init(&w->in_waiting);
	list_push(bucket(c->serve->flows, c, key), &w->in_bucket);
	list_push(&c->flows, &w->in_client);
	c->flow_count++;
	return w;
}

struct serve_flow *serve_owner_flow(struct serve_client *c, uint64_t key, uint8_t sl)
{
	key = key << 4 | sl;
	list_for_each (w, bucket(c->serve->flows, c, key), struct serve_flow, in_bucket)
		if (w->client == c && w->key == key) {
			w->used_ns = c->serve->now_ns;
			return w;
		}
	return open_flow(c, key, sl);
}

void serve_owner_end(struct serve_client *c)
{
	list_for_each_safe (o, &c->qps, struct serve_owner, in_client)
		drop_owner(o);
	list_for_each_safe (o, &c->groups, struct serve_owner, in_client)
		drop_owner(o);
	list_for_each_safe (w, &c->flows, struct serve_flow, in_client)
		free_flow(w);
	end_flow(&c->rest);
}
