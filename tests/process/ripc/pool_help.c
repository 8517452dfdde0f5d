/* SPDX-License-Identifier: BSD-2-Clause */
/* See pool_help.h. */
#include "pool_help.h"

#include <errno.h>
#include <stdint.h>

atomic_size_t registered_max = SIZE_MAX;
atomic_int refused_with = ENOMEM;
atomic_size_t refused;
atomic_bool read_only;

static struct pool *watched;

struct ibv_mr *__real_ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length,
				       uint64_t iova, unsigned int access);
struct ibv_mr *__wrap_ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length,
				       uint64_t iova, unsigned int access);
struct ibv_mr *__wrap_ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access);

struct ibv_mr *__wrap_ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length,
				       uint64_t iova, unsigned int access)
{
	const size_t max = registered_max;

	if (read_only && (access & IBV_ACCESS_LOCAL_WRITE)) {
		errno = EFAULT;
		return NULL;
	}
	if (max < SIZE_MAX && counters_of(watched).registered_bytes + length > max) {
		refused++;
		errno = refused_with;
		return NULL;
	}
	return __real_ibv_reg_mr_iova2(pd, addr, length, iova, access);
}

struct ibv_mr *__wrap_ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	return __wrap_ibv_reg_mr_iova2(pd, addr, length, (uintptr_t)addr, (unsigned)access);
}

struct pool_counters counters_of(struct pool *p)
{
	struct pool_counters c;

	pool_counters(p, &c);
	return c;
}

void ground_open(struct ground *g, size_t kept_bytes_max)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	check(list && list[0]);
	g->ctx = ibv_open_device(list[0]);
	check(g->ctx);
	ibv_free_device_list(list);
	g->pd = ibv_alloc_pd(g->ctx);
	check(g->pd);
	check_eq(pool_open(&g->pool, g->pd, kept_bytes_max), 0);
	watched = g->pool;
}

void ground_close(struct ground *g)
{
	pool_close(g->pool);
	check_eq(ibv_dealloc_pd(g->pd), 0);
	check_eq(ibv_close_device(g->ctx), 0);
}
