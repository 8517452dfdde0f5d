/* SPDX-License-Identifier: BSD-2-Clause */
/* A pair of queue pairs over a network that loses exactly what a case names; see virtual.h. */
#include <string.h>

#include "util/container_of.h"
#include "virtual.h"

struct net net;

static bool judge(const struct packet_seen *p)
{
	if (p->from == 0) {
		if (net.requests < ARRAY_SIZE(net.at_ns))
			net.at_ns[net.requests] = p->at_ns;
		net.requests++;
	} else {
		net.answers++;
		net.naks += p->opcode == IB_ACKNOWLEDGE && p->syndrome == RC_SYN_SEQUENCE;
	}
	if (!net.lose || !net.is(p))
		return false;
	if (net.skip) {
		net.skip--;
		return false;
	}
	if (net.lose != UINT32_MAX)
		net.lose--;
	return true;
}

bool is_request(const struct packet_seen *p)
{
	return p->from == 0;
}

bool is_answer(const struct packet_seen *p)
{
	return p->from == 1;
}

bool is_any(const struct packet_seen *p)
{
	(void)p;
	return true;
}

void lose_behind(unsigned skip, unsigned count, bool (*is)(const struct packet_seen *p))
{
	memset(&net, 0, sizeof(net));
	net.skip = skip;
	net.lose = count;
	net.is = is;
	virtual_judge = judge;
}

void lose(unsigned count, bool (*is)(const struct packet_seen *p))
{
	lose_behind(0, count, is);
}

void pair_start(const struct options *o)
{
	virtual_open(&(struct carrier_sim_params){
		.ends = 2, .seed = 1, .link.delay_ns = DELAY_NS });
	sides_open(0, 0, 1, o);
	lose(0, is_any);
}

void pair_end(void)
{
	sides_close();
	virtual_close();
}

void expect_within(uint64_t took_ns, uint64_t least_ns, uint64_t most_ns)
{
	if (took_ns < least_ns || took_ns > most_ns)
		fail("it took %ju ns, not %ju to %ju", (uintmax_t)took_ns,
		     (uintmax_t)least_ns, (uintmax_t)most_ns);
}

void expect_done(const struct side *s, int queue, unsigned i, uint64_t id,
		 enum ibv_wc_status status)
{
	const struct ibv_wc *wc = &s->done[queue][i].wc;

	expect(i < s->count[queue]);
	if (wc->wr_id != id || wc->status != status)
		fail("completion %u is of %ju with '%s', not of %ju with '%s'", i,
		     (uintmax_t)wc->wr_id, ibv_wc_status_str(wc->status), (uintmax_t)id,
		     ibv_wc_status_str(status));
}
