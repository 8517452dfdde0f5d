/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * No peer copies into memory after its owner has taken it back: a key is withdrawn, a queue
 * pair is reset. The owner then uses the memory, and this access and the peer's copy must
 * be ordered.
 */
#include <string.h>

#include "check.h"
#include "hca/object/public.h"
#include "hca/object/sq.h"
#include "hca/queue/flush.h"
#include "hca/run/elide.h"
#include "transport/shm/reach/reach.h"
#include "transport/shm/link/state.h"
#include "util/container_of.h"
#include "world.h"

static bool copied;

static void start(void)
{
	world_make(IBV_QPS_RTS);
	pthread_mutex_init(&shm.lock, NULL);
	world.of_b.tx->ack.pulls = 1; /* the peer copies from our memory */
	world.of_b.path = world.to_b.path = SHM_PATH_PROCESS_VM;
	check_data(world.memory, sizeof(world.memory));
	copied = false;
}

static void writes(void)
{
	_Alignas(struct hca_swqe) uint8_t room[sizeof(struct hca_swqe) +
					      sizeof(struct ibv_sge)] = { 0 };
	struct hca_swqe *e = (void *)room;
	enum ibv_wc_status status;

	e->opcode = IBV_WR_RDMA_WRITE;
	e->num_sge = 1;
	e->length = 8;
	e->rkey = WORLD_KEY;
	e->remote_addr = (uintptr_t)world.memory;
	e->sge[0] = (struct ibv_sge){ (uintptr_t)world.sent, 8, WORLD_KEY };
	hca_lock(&world.a.sq_lock);
	shm_onesided(&world.a, e, &(struct shm_way){ &world.to_b, shm_qp(&world.a)->remote,
						     shm_qp(&world.a)->remote },
		     &(struct shm_part){ 0, 8 }, &status);
	hca_unlock(&world.a.sq_lock);
	copied = status == IBV_WC_SUCCESS;
}

/* A large copy, whose second part is as far from the first one as a copy of its own
 * (copy.c). */
static void writes_by_parts(void)
{
	_Alignas(struct hca_swqe) uint8_t room[sizeof(struct hca_swqe) +
					      sizeof(struct ibv_sge)] = { 0 };
	struct hca_swqe *e = (void *)room;
	const struct shm_way way = { &world.to_b, shm_qp(&world.a)->remote,
				     shm_qp(&world.a)->remote };
	enum ibv_wc_status status = IBV_WC_SUCCESS;

	e->opcode = IBV_WR_RDMA_WRITE;
	e->num_sge = 1;
	e->length = 8;
	e->rkey = WORLD_KEY;
	e->remote_addr = (uintptr_t)world.memory;
	e->sge[0] = (struct ibv_sge){ (uintptr_t)world.sent, 8, WORLD_KEY };
	for (uint32_t at = 0; at < 8 && status == IBV_WC_SUCCESS; at += 4)
		shm_onesided(&world.a, e, &way, &(struct shm_part){ at, 4 }, &status);
}

static void uses_memory(void)
{
	check_plain(world.memory, 8, true);
	memset(world.memory, 9, sizeof(world.memory));
}

/* As hca_mr_deregister() does. */
static void deregisters(void)
{
	hca_key_withdraw(WORLD_KEY);
	shm_key_fence(WORLD_KEY);
	uses_memory();
}

/* As hca_qp_destroy() does. */
static void destroys(void)
{
	hca_qp_set_state(&world.b, IBV_QPS_RESET);
	atomic_store(&world.b.pub->qpn, 0);
	shm_qp_fence(&world.b);
	uses_memory();
}

/* The key's entry is used again, for other memory. */
static void registers_again(void)
{
	struct hca_key as = {
		.access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE,
		.iova = (uintptr_t)world.memory, .length = 8,
		.addr = (uintptr_t)world.buffer, .pd_id = 1, .local_pd = 1,
	};

	hca_key_withdraw(WORLD_KEY);
	shm_key_fence(WORLD_KEY);
	uses_memory();
	hca_key_publish(WORLD_KEY, &as);
}

static void the_owner_has_its_memory(void)
{
	for (unsigned i = 0; i < sizeof(world.memory); i++)
		check_that(world.memory[i] == 9, "a copy came too late");
}

static const struct check_break no_fences[] = {
	{ "the initiator has no fence", WITHOUT_FENCES, NULL, 0, CHECK_C11 },
	{ "the owner has no fence", WITHOUT_FENCES, NULL, 1, CHECK_C11 },
	{ 0 },
};

static const struct check_break no_lock_of_key[] = {
	{ "the key is looked at in any order", WITHOUT_ORDER, NULL, 0, CHECK_C11 },
	{ 0 },
};

static const struct check_scenario scenarios[] = {
	{ .name = "memory is deregistered while a peer writes", .setup = start,
	  .threads = { writes, deregisters },
	  .finish = the_owner_has_its_memory, .old_values = 3, .interruptions = 3,
	  .breaks = no_fences },
	{ .name = "memory is deregistered while a peer writes by parts",
	  .setup = start, .threads = { writes_by_parts, deregisters },
	  .finish = the_owner_has_its_memory, .old_values = 3, .interruptions = 3,
	  .breaks = no_fences },
	{ .name = "a queue pair is destroyed while a peer writes", .setup = start,
	  .threads = { writes, destroys },
	  .finish = the_owner_has_its_memory, .old_values = 3, .interruptions = 3,
	  .breaks = no_fences },
	{ .name = "a key is used again while a peer writes", .setup = start,
	  .threads = { writes, registers_again },
	  .finish = the_owner_has_its_memory, .old_values = 3, .interruptions = 3,
	  .breaks = no_lock_of_key },
};

int main(int argc, char **argv)
{
	return check_main(argc, argv, scenarios, ARRAY_SIZE(scenarios));
}
