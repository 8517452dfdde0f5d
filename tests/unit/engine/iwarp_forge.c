/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Forged segments within a simulated connection: one header is changed before it is framed, with
 * the right CRC, so that only the other end's rules can find it. WRITEs are left alone: each of
 * their segments says by itself where it goes.
 */
#include "iwarp_sim.h"

static uint32_t step(void)
{
	return 1 + (uint32_t)dice(dice(2) ? 2 : 0x7fffffff);
}

static enum iwarp_error forge_send(struct iwarp_segment *s)
{
	if (s->mo && dice(3) == 0) {
		s->opcode = s->opcode == IWARP_SEND ? IWARP_SEND_SE : IWARP_SEND;
		return IWARP_RDMAP_OPCODE;
	}
	if (dice(2)) {
		s->mo += 1 + (uint32_t)dice(1000);
		return IWARP_DDP_MO;
	}
	s->msn += step();
	return IWARP_DDP_MSN;
}

static enum iwarp_error forge_read(struct iwarp_segment *s)
{
	if (s->read.bytes > 1 && dice(2)) {
		s->read.sink_to = UINT64_MAX - dice(s->read.bytes - 1);
		return IWARP_RDMAP_TO_WRAP;
	}
	s->msn -= step();
	return IWARP_DDP_MSN;
}

static enum iwarp_error forge_response(struct iwarp_segment *s)
{
	switch (dice(3)) {
	case 0:
		s->stag += step();
		return IWARP_DDP_STAG;
	case 1:
		s->to += dice(2) ? UINT64_C(1) << 32 : step();
		return IWARP_DDP_BOUNDS;
	default:
		s->last = !s->last;
		return IWARP_RDMAP_STREAM;
	}
}

static enum iwarp_error forge_atomic(struct iwarp_segment *s)
{
	if (dice(2)) {
		s->atomic.add_swap_mask ^= UINT64_C(1) << dice(64);
		return IWARP_RDMAP_ATOMIC;
	}
	s->msn += step();
	return IWARP_DDP_MSN;
}

static enum iwarp_error forge_atomic_response(struct iwarp_segment *s)
{
	if (dice(2)) {
		s->atomic_response.request += step();
		return IWARP_RDMAP_STREAM;
	}
	s->msn += step();
	return IWARP_DDP_MSN;
}

static enum iwarp_error forge_one(struct iwarp_segment *s)
{
	switch (s->opcode) {
	case IWARP_SEND:
	case IWARP_SEND_SE:
	case IWARP_SEND_INVALIDATE:
	case IWARP_SEND_SE_INVALIDATE:
		return forge_send(s);
	case IWARP_READ_REQUEST:
		return forge_read(s);
	case IWARP_READ_RESPONSE:
		return forge_response(s);
	case IWARP_ATOMIC_REQUEST:
		return forge_atomic(s);
	case IWARP_ATOMIC_RESPONSE:
		return forge_atomic_response(s);
	case IWARP_IMMEDIATE:
	case IWARP_IMMEDIATE_SE:
		s->msn -= step();
		return IWARP_DDP_MSN;
	default:
		return IWARP_OK;
	}
}

void forge_segment(struct end *e, struct iwarp_segment *s)
{
	if (!world.forge_after || world.forged || --world.forge_after)
		return;
	world.forged = forge_one(s);
	world.forger = e;
	/* This one cannot be: the next. */
	world.forge_after = !world.forged;
	world.forgeries += world.forged != IWARP_OK;
}

void forge_check(void)
{
	const struct end *e = world.forger, *victim = e ? e->peer : NULL;
	const struct iwarp_terminate *t = e ? &e->c.terminate : NULL;

	if (!world.forged)
		return;
	sim_check(victim, victim->c.error == world.forged, "the rule that a forged segment breaks");
	sim_check(e, e->c.terminated && ((uint32_t)t->layer << 12 | (uint32_t)t->type << 8 |
					 t->code) == iwarp_error_control(world.forged) >> 16,
		  "its sender is told");
}
