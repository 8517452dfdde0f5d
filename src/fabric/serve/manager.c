/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The manager's sweeps; see manager.h. A sweep is a list of steps, each of which asks for an attribute of a
 * node and sets it. Some are under way at a time; those of one phase end before the next one
 * begins: tables, then ports to ARMED, then ports to ACTIVE.
 */
#define LOG_ROOM "fabric"
#include "fabric/serve/manager.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/agent/agent.h"
#include "fabric/serve/manager_steps.h"
#include "fabric/serve/state.h"
#include "util/log.h"
#include "wire/mad/port.h"
#include "wire/mad/smp.h"

#define SLOTS 32
#define ANSWER_NS UINT64_C(200000000)
#define TRIES 10
#define DELAY_NS UINT64_C(20000000) /* from a change of a link to the sweep: others come with it */
#define TID UINT64_C(0xffffffff)    /* the upper half; agents of clients never have it */

struct slot {
	bool used, sets; /* the Get is answered */
	uint32_t tid;
	unsigned tries;
	uint64_t until_ns;
	struct manager_step step;
	uint8_t data[MAD_SMP_DATA_BYTES];
};

struct serve_manager {
	struct serve *s;
	struct manager_steps *steps;
	struct slot slots[SLOTS];
	unsigned used;
	uint32_t tid;
	uint64_t due_ns;  /* of the next sweep; UINT64_MAX: none */
	unsigned lost;    /* steps of this sweep that nobody answered */
	bool sweeping, done;
};

int serve_manager_open(struct serve *s, struct serve_manager **out)
{
	struct serve_manager *m = calloc(1, sizeof(*m));
	int ret;

	if (!m)
		return -ENOMEM;
	m->s = s;
	ret = manager_steps_open(s, &m->steps);
	if (ret) {
		free(m);
		return ret;
	}
	*out = m;
	return 0;
}

void serve_manager_close(struct serve_manager *m)
{
	if (!m)
		return;
	manager_steps_close(m->steps);
	free(m);
}

void serve_manager_link(struct serve_manager *m, uint64_t now_ns)
{
	m->due_ns = now_ns + DELAY_NS;
}

bool serve_manager_is_done(const struct serve_manager *m)
{
	return m->done;
}

/* ---- SMPs ---- */

static int submit(struct serve_manager *m, const struct mad_smp *smp, uint16_t dlid)
{
	const struct agent_address to = { .dlid = dlid };
	const struct serve_host *h = manager_steps_host(m->steps);
	uint8_t mad[MAD_BYTES];

	if (!mad_smp_pack(smp, mad))
		return -EINVAL;
	return fabric_agents_submit(m->s->agents, h->node, h->port, mad, &to, m->s->now_ns);
}

static void send(struct serve_manager *m, struct slot *t)
{
	struct mad_smp smp = {
		.mgmt_class = MAD_CLASS_SUBN_DIRECTED, .class_version = MAD_VERSION_SUBN,
		.method = t->sets ? MAD_SET : MAD_GET, .attr_id = t->step.attribute,
		.attr_mod = t->step.modifier, .dr_slid = MAD_LID_PERMISSIVE,
		.dr_dlid = MAD_LID_PERMISSIVE,
	};

	t->tid = ++m->tid;
	t->until_ns = m->s->now_ns + ANSWER_NS;
	t->tries++;
	smp.tid = TID << 32 | t->tid;
	if (t->sets)
		memcpy(smp.data, t->data, sizeof(smp.data));
	manager_steps_path(m->steps, t->step.node, &smp);
	submit(m, &smp, MAD_LID_PERMISSIVE);
}

static void end_slot(struct serve_manager *m, struct slot *t)
{
	t->used = false;
	m->used--;
}

static void finish(struct serve_manager *m)
{
	m->sweeping = false;
	if (m->lost)
		log_warn("%u attributes of nodes could not be set; the fabric works in part", m->lost);
	else if (!m->done)
		log_info("LIDs and tables are set, the ports are active");
	m->done = true;
}

/* Starts as many steps as may be under way. */
static void fill(struct serve_manager *m)
{
	/* An answer from the host's own node comes within send(). */
	for (unsigned i = 0; m->sweeping && i < SLOTS; i++) {
		struct slot *t = &m->slots[i];

		if (t->used)
			continue;
		t->tries = 0;
		if (!manager_steps_next(m->steps, !m->used, &t->step)) {
			if (!m->used && manager_steps_over(m->steps))
				finish(m);
			return;
		}
		t->used = true;
		m->used++;
		t->sets = manager_steps_fill(m->steps, &t->step, NULL, t->data);
		send(m, t);
	}
}

static void on_answer(struct serve_manager *m, struct slot *t, const struct mad_smp *smp)
{
	if (smp->status) {
		log_debug("attribute 0x%04x of %s: status 0x%04x", smp->attr_id,
			  m->s->topology->nodes[t->step.node].id, smp->status);
		m->lost++;
		end_slot(m, t);
	} else if (!t->sets && manager_steps_fill(m->steps, &t->step, smp->data, t->data)) {
		t->sets = true;
		t->tries = 0;
		send(m, t);
	} else {
		end_slot(m, t);
	}
}

/* A trap is answered, so that it is not repeated. */
static void repress(struct serve_manager *m, struct mad_smp *smp, const struct agent_address *from)
{
	smp->method = MAD_TRAP_REPRESS;
	if (smp->mgmt_class == MAD_CLASS_SUBN_LID && from->slid)
		submit(m, smp, from->slid);
}

bool serve_manager_deliver(struct serve_manager *m, uint32_t node, uint8_t port, const uint8_t *mad,
			   const struct agent_address *from)
{
	const struct serve_host *h = manager_steps_host(m->steps);
	struct mad_smp smp;

	if (!h || h->node != node || h->port != port || !mad_smp_unpack(mad, MAD_BYTES, &smp))
		return false;
	if (smp.method == MAD_TRAP) {
		repress(m, &smp, from);
		return true;
	}
	if (smp.tid >> 32 != TID || smp.method != MAD_GET_RESP)
		return false;
	for (unsigned i = 0; i < SLOTS; i++)
		if (m->slots[i].used && m->slots[i].tid == (uint32_t)smp.tid) {
			on_answer(m, &m->slots[i], &smp);
			break;
		}
	/* The next steps begin in the tick: this may be called by one that is just sent. */
	return true;
}

/* ---- time ---- */

uint64_t serve_manager_next_ns(const struct serve_manager *m)
{
	uint64_t at_ns = m->due_ns;

	if (m->sweeping && m->used < SLOTS / 2)
		return 0;
	for (unsigned i = 0; i < SLOTS; i++)
		if (m->slots[i].used && m->slots[i].until_ns < at_ns)
			at_ns = m->slots[i].until_ns;
	return at_ns;
}

static void start(struct serve_manager *m)
{
	m->due_ns = UINT64_MAX;
	memset(m->slots, 0, sizeof(m->slots));
	m->used = m->lost = 0;
	if (manager_steps_begin(m->steps)) {
		log_warn("no host of the fabric has a link, so nothing is set");
		m->done = true;
		return;
	}
	m->sweeping = true;
}

void serve_manager_tick(struct serve_manager *m, uint64_t now_ns)
{
	if (now_ns >= m->due_ns)
		start(m);
	for (unsigned i = 0; m->sweeping && i < SLOTS; i++) {
		struct slot *t = &m->slots[i];

		if (!t->used || now_ns < t->until_ns)
			continue;
		if (t->tries < TRIES) {
			send(m, t);
		} else {
			m->lost++;
			end_slot(m, t);
		}
	}
	fill(m);
}
