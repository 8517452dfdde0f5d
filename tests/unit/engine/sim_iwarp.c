/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections of iWARP over a simulated TCP stream: sim_iwarp [SEED [RUNS]].
 *
 * Each run plays one connection, from the set-up to the end of both directions. The stream cuts
 * anywhere, takes parts of what is written, stalls, ends at any byte, brings nothing more from any
 * byte on, is reset at any moment, or damages a bit where there are CRCs. Both ends send SENDs,
 * WRITEs, READs, atomics and immediate data; some messages are not allowed, find no receive or no
 * memory, and some segments are forged. Every byte that arrives is compared with what was sent,
 * every message is carried out once and in order, every work entry completes once and in order, and
 * each failure is the documented one on both ends.
 *
 * A run depends on its seed alone: one that fails prints the command that repeats it.
 */
#include "iwarp_sim.h"
#include "util/container_of.h"

struct world world;

enum { STEPS_MAX = 2000000, PATIENCE = 400 };

void sim_fail(const struct end *e, const char *what)
{
	printf("failed: %s\n", what);
	for (unsigned i = 0; e && i < 2; i++) {
		const struct end *x = &world.ends[i];

		printf("  %s %u (%s): set-up %u, %u of %u posted, %u complete, %u of the peer's "
		       "carried out, output %u, input %u, error %u%s\n",
		       x == e ? "here: end" : "end", i, x->initiator ? "initiator" : "responder",
		       x->setup.state, x->posted, x->count, x->completed, x->executed,
		       x->c.output, x->c.input, x->c.error, x->c.terminated ? ", terminated" : "");
	}
	printf("  again: sim_iwarp %ju 1\n", (uintmax_t)world.seed);
	exit(1);
}

/* ---- a run ---- */

static struct iwarp_setup_params any_setup(bool initiator, bool crc)
{
	struct iwarp_setup_params p = {
		.initiator = initiator, .revision = 1 + (dice(4) != 0), .markers = dice(3) == 0,
		.sends_markers = dice(40) != 0, .crc = crc || dice(3) == 0,
		.ird = 1 + (uint16_t)dice(8), .ord = 1 + (uint16_t)dice(8),
		.ird_max = 8, .ord_max = 8, .wait_ns = 5000000,
		.rtr = initiator ? 1 + (uint8_t)dice(7) : 7 & ~(uint8_t)(dice(4) ? 0 : dice(8)),
	};

	p.peer_to_peer = initiator && p.revision == 2 && dice(2);
	return p;
}

static void harm(void)
{
	struct pipe *p = &world.pipes[dice(2)];

	for (unsigned i = 0; i < 2; i++)
		world.pipes[i].cut_at = world.pipes[i].flip_at = world.pipes[i].stop_at =
			UINT64_MAX;
	switch (dice(8)) {
	case 0:
		p->cut_at = dice(dice(2) ? 1000 : 30000);
		world.harmed = true;
		world.cut++;
		break;
	case 1:
		p->flip_at = IWARP_MPA_FRAME_MAX + dice(20000);
		world.harmed = true;
		world.flipped++;
		break;
	case 2:
		p->stop_at = dice(dice(2) ? 1000 : 30000);
		world.harmed = true;
		world.stopped++;
		break;
	case 3:
		world.forge_after = 1 + (unsigned)dice(60);
		world.harmed = true;
	}
}

static void open_end(struct end *e, unsigned index, const struct iwarp_setup_params *p)
{
	bool flipped = world.pipes[0].flip_at + 1 || world.pipes[1].flip_at + 1;

	e->index = index;
	e->peer = &world.ends[!index];
	e->out = &world.pipes[index];
	e->in = &world.pipes[!index];
	/* Without a buffer, bytes are placed before the CRC says that they were damaged. */
	e->pieces = !flipped && dice(2);
	e->mulpdu = 64 + (uint32_t)dice(dice(2) ? 64 : 1500);
	e->ahead = dice(2) ? 0 : (uint32_t)dice(OUTBOX_BYTES);
	e->polite = world.forge_after || dice(6) != 0;
	world.harmed |= !e->polite;
	end_open(e, p);
}

static void open_run(void)
{
	struct iwarp_setup_params p[2];
	unsigned initiator;

	memset(world.ends, 0, sizeof(world.ends));
	memset(world.pipes, 0, sizeof(world.pipes));
	world.dice = prng_from(world.seed);
	world.harmed = false;
	world.poisons = world.forge_after = 0;
	world.forged = IWARP_OK;
	world.forger = NULL;
	world.now = 1;
	world.extended = dice(2);
	harm();
	initiator = (unsigned)dice(2);
	for (unsigned i = 0; i < 2; i++)
		p[i] = any_setup(i == initiator,
				 world.pipes[0].flip_at + 1 || world.pipes[1].flip_at + 1);
	/* Without negotiation both ends know it. */
	if (p[initiator].revision == 1)
		for (unsigned i = 0; i < 2; i++)
			p[i].ord = MIN(p[i].ord, p[!i].ird);
	for (unsigned i = 0; i < 2; i++)
		open_end(&world.ends[i], i, &p[i]);
	for (unsigned i = 0; i < 2; i++)
		plan_make(&world.ends[i]);
}

static uint64_t deadline_of(const struct end *e)
{
	uint64_t d = e->open ? e->c.deadline_ns : e->setup.deadline_ns;

	if (e->closed)
		return UINT64_MAX;
	if (!d)
		d = UINT64_MAX;
	return e->stalled_until > world.now ? MIN(d, e->stalled_until) : d;
}

static void step(struct end *e)
{
	switch (dice(8)) {
	case 0:
	case 1:
		for (uint64_t n = dice(4); n--; )
			end_post(e);
		break;
	case 2:
	case 3:
		end_frame(e);
		break;
	case 4:
	case 5:
		end_write(e);
		break;
	default:
		end_read(e);
	}
	end_attend(e);
	world.now += dice(100);
	if (!e->closed && world.now >= (e->open ? e->c.deadline_ns - 1 : e->setup.deadline_ns - 1))
		end_timer(e);
	end_attend(e);
}

/* Nothing has moved for long: the next timer. */
static void jump(void)
{
	uint64_t next = MIN(deadline_of(&world.ends[0]), deadline_of(&world.ends[1]));

	if (next != UINT64_MAX) {
		world.now = MAX(world.now, next);
		world.timeouts++;
		return;
	}
	/* Bytes that vanished, or a damaged length: the receiver waits for what is never sent. */
	sim_check(&world.ends[0], world.harmed, "it goes on");
	end_reset(&world.ends[0]);
	end_reset(&world.ends[1]);
}

static void check_terms(void)
{
	const struct iwarp_terms *a = &world.ends[0].setup.terms, *b = &world.ends[1].setup.terms;
	const struct end *e = &world.ends[0];

	if (!e->open || !e->peer->open || e->setup.terminate || e->peer->setup.terminate)
		return;
	sim_check(e, a->crc == b->crc && a->markers_in == b->markers_out &&
			     b->markers_in == a->markers_out && a->rtr == b->rtr,
		  "both ends agree");
	sim_check(e, a->ord <= b->ird && b->ord <= a->ird, "no ORD above the peer's IRD");
}

static void play(void)
{
	uint64_t moved = world.moved, idle = 0;
	uint64_t reset_at = world.forge_after || dice(20) ? UINT64_MAX : dice(2000);

	for (uint64_t n = 0; !world.ends[0].closed || !world.ends[1].closed; n++) {
		if (n == reset_at) {
			world.harmed = true;
			world.reset++;
			end_reset(&world.ends[0]);
			end_reset(&world.ends[1]);
			break;
		}
		sim_check(&world.ends[0], n < STEPS_MAX, "it ends");
		step(&world.ends[dice(2)]);
		idle = moved == world.moved ? idle + 1 : 0;
		moved = world.moved;
		if (idle > PATIENCE) {
			jump();
			idle = 0;
		}
	}
}

static void run(uint64_t seed)
{
	world.seed = seed;
	open_run();
	play();
	check_terms();
	for (unsigned i = 0; i < 2; i++)
		plan_check_end(&world.ends[i]);
	forge_check();
	world.connections++;
	world.refused += !world.ends[0].open || !world.ends[1].open;
}

int main(int argc, char **argv)
{
	uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
	uint64_t runs = argc > 2 ? strtoull(argv[2], NULL, 0) : 1000;

	setvbuf(stdout, NULL, _IOLBF, 0);
	plan_init();
	for (uint64_t i = 0; i < runs; i++)
		run(seed + i);
	printf("%ju runs from seed %ju: every byte right, every completion once\n",
	       (uintmax_t)runs, (uintmax_t)seed);
	printf("%ju messages, %ju segments; %ju set-ups refused, %ju messages failed, %ju timers\n",
	       (uintmax_t)world.messages, (uintmax_t)world.segments, (uintmax_t)world.refused,
	       (uintmax_t)world.poisoned, (uintmax_t)world.timeouts);
	printf("%ju streams cut, %ju stopped, %ju reset, %ju damaged, %ju segments forged\n",
	       (uintmax_t)world.cut, (uintmax_t)world.stopped, (uintmax_t)world.reset,
	       (uintmax_t)world.flipped, (uintmax_t)world.forgeries);
	printf("ended by: success %ju, flushed %ju, access %ju, invalid %ju, operation %ju, "
	       "local %ju, RNR %ju, bad response %ju, lost %ju\n",
	       (uintmax_t)world.ended[IBV_WC_SUCCESS], (uintmax_t)world.ended[IBV_WC_WR_FLUSH_ERR],
	       (uintmax_t)world.ended[IBV_WC_REM_ACCESS_ERR],
	       (uintmax_t)world.ended[IBV_WC_REM_INV_REQ_ERR],
	       (uintmax_t)world.ended[IBV_WC_REM_OP_ERR],
	       (uintmax_t)world.ended[IBV_WC_LOC_PROT_ERR],
	       (uintmax_t)world.ended[IBV_WC_RNR_RETRY_EXC_ERR],
	       (uintmax_t)world.ended[IBV_WC_BAD_RESP_ERR],
	       (uintmax_t)world.ended[IBV_WC_RETRY_EXC_ERR]);
	return 0;
}
