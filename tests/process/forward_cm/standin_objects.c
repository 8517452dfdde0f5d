/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What standin.c has of objects when a connection manager works on stand0: domains,
 * channels and completion queues that can be made and unmade.
 */
#include "standin.h"

#include <stdlib.h>

#define NODE(name, version) __asm__(".symver standin_" #name ", " #name "@@IBVERBS_" version)

struct ibv_pd *standin_ibv_alloc_pd(struct ibv_context *context);
struct ibv_pd *standin_ibv_alloc_pd(struct ibv_context *context)
{
	struct ibv_pd *pd = calloc(1, sizeof(*pd));

	pd->context = context;
	return pd;
}
NODE(ibv_alloc_pd, "1.1");

int standin_ibv_dealloc_pd(struct ibv_pd *pd);
int standin_ibv_dealloc_pd(struct ibv_pd *pd)
{
	free(pd);
	return 0;
}
NODE(ibv_dealloc_pd, "1.1");

struct ibv_comp_channel *standin_ibv_create_comp_channel(struct ibv_context *context);
struct ibv_comp_channel *standin_ibv_create_comp_channel(struct ibv_context *context)
{
	struct ibv_comp_channel *channel = calloc(1, sizeof(*channel));

	channel->context = context;
	channel->fd = -1;
	return channel;
}
NODE(ibv_create_comp_channel, "1.0");

int standin_ibv_destroy_comp_channel(struct ibv_comp_channel *channel);
int standin_ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	free(channel);
	return 0;
}
NODE(ibv_destroy_comp_channel, "1.0");

struct ibv_cq *standin_ibv_create_cq(struct ibv_context *context, int cqe,
				     void *cq_context,
				     struct ibv_comp_channel *channel, int vector);
struct ibv_cq *standin_ibv_create_cq(struct ibv_context *context, int cqe,
				     void *cq_context,
				     struct ibv_comp_channel *channel, int vector)
{
	struct ibv_cq *cq = calloc(1, sizeof(*cq));

	cq->context = context;
	cq->cq_context = cq_context;
	cq->channel = channel;
	cq->cqe = cqe;
	return cq;
}
NODE(ibv_create_cq, "1.1");

int standin_ibv_destroy_cq(struct ibv_cq *cq);
int standin_ibv_destroy_cq(struct ibv_cq *cq)
{
	free(cq);
	return 0;
}
NODE(ibv_destroy_cq, "1.1");
