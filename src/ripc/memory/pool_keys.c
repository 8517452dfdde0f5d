/* SPDX-License-Identifier: BSD-2-Clause */
/* Registrations of the pool's spans: made when they are first needed. */
#include <errno.h>

#include "ripc/memory/pool_private.h"

/* Rights of each registration. A source takes receives, too, so that memory which was
 * sent from already needs no other one for that: no peer sees a difference. */
static const int rights[POOL_ACCESSES] = {
	[POOL_LOCAL] = IBV_ACCESS_LOCAL_WRITE,
	[POOL_SOURCE] = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ,
	[POOL_SINK] = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE,
	[POOL_WINDOW] = IBV_ACCESS_LOCAL_WRITE,
};

struct ibv_mr *pool_key(const struct pool_span *s, enum pool_access access)
{
	/* All have the rights of these two, but for memory of a program's that it may only
	 * read. */
	const bool any = access == POOL_LOCAL || (access == POOL_WINDOW && !s->foreign);

	if (access == POOL_WINDOW && s->mr[POOL_SINK])
		return s->mr[POOL_SINK];
	for (unsigned i = 0; any && !s->mr[access] && i < POOL_ACCESSES; i++)
		/* Windows are written to. */
		if (s->mr[i] && !(access == POOL_WINDOW && i == POOL_SOURCE && s->place.fd >= 0))
			return s->mr[i];
	return s->mr[access];
}

static struct ibv_mr *try(const struct pool *p, const struct pool_span *s,
			  enum pool_access access)
{
	void *memory = (void *)s->start;
	size_t bytes = s->end - s->start;
	int flags = rights[access] | p->access_always;
	struct ibv_mr *mr = NULL;

	if (access == POOL_SOURCE && s->place.fd >= 0)
		mr = ibv_reg_dmabuf_mr(p->pd, 0, bytes, s->start, s->place.fd, flags);

	/* By its address it is usable all the same. */
	if (!mr)
		mr = ibv_reg_mr(p->pd, memory, bytes, flags);

	/* A program may send from memory that it may only read. */
	if (!mr && s->foreign && access != POOL_SINK && access != POOL_WINDOW &&
	    (errno == EFAULT || errno == EACCES || errno == EPERM))
		mr = ibv_reg_mr(p->pd, memory, bytes, rights[access] & IBV_ACCESS_REMOTE_READ);
	return mr;
}

static struct ibv_mr *make(struct pool *p, const struct pool_span *s, enum pool_access access)
{
	struct ibv_mr *mr = try(p, s, access);
	int error = errno;

	if (mr)
		return mr;
	/* What is kept for later counts against the limit of locked memory, too. */
	if (error == ENOMEM) {
		pool_trim(p, 0);
		mr = try(p, s, access);
		error = errno;
	}
	if (!mr)
		pool_say("registering", s->end - s->start, error);
	return mr;
}

int pool_key_make(struct pool *p, struct pool_span *s, enum pool_access access,
		  struct ibv_mr **out)
{
	struct ibv_mr *mr;

	pthread_mutex_lock(&p->registering);
	spin_lock(&p->lock);
	mr = pool_key(s, access);
	spin_unlock(&p->lock);
	if (mr)
		goto out;
	mr = make(p, s, access);
	if (!mr)
		goto out;
	spin_lock(&p->lock);
	s->mr[access] = mr;
	p->counters.registrations++;
	p->counters.registered_bytes += mr->length;
	spin_unlock(&p->lock);
out:
	pthread_mutex_unlock(&p->registering);
	*out = mr;
	return mr ? 0 : -ENOMEM;
}

int pool_keys_drop(struct pool *p, struct pool_span *s)
{
	int ret = 0;

	for (unsigned i = 0; i < POOL_ACCESSES; i++) {
		const size_t bytes = s->end - s->start;

		if (!s->mr[i])
			continue;
		if (ibv_dereg_mr(s->mr[i])) {
			ret = -EBUSY;
			continue;
		}
		spin_lock(&p->lock);
		s->mr[i] = NULL;
		p->counters.registered_bytes -= bytes;
		spin_unlock(&p->lock);
	}
	return ret;
}
