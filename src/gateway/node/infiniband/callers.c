/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "gateway/node/infiniband/callers.h"
#include "util/container_of.h"

bool callers_rule(const struct callers_case *c)
{
	if (c->caller_waits)
		return false;
	if (!c->place_taken)
		return true;
	if (c->caller_failed != c->holder_failed)
		return c->holder_failed;
	return c->holder_had_time;
}

/* The place of a host, or of the host that failed first, where free places come before all. */
static unsigned place_of(const struct callers *t, const struct caller_ip *ip)
{
	unsigned place = 0;

	for (unsigned i = 0; i < CALLERS_MAX; i++) {
		if (t->hosts[i].failed_ns && !memcmp(&t->hosts[i].ip, ip, sizeof(*ip)))
			return i;
		if (t->hosts[i].failed_ns < t->hosts[place].failed_ns)
			place = i;
	}
	return place;
}

/* The host, if it has failed lately. */
static const struct caller *failed(const struct callers *t, const struct caller_ip *ip,
				   uint64_t now_ns)
{
	const struct caller *c = &t->hosts[place_of(t, ip)];

	return c->failed_ns && !memcmp(&c->ip, ip, sizeof(*ip)) &&
	       now_ns - c->failed_ns < CALLERS_LATELY_NS ? c : NULL;
}

bool callers_may_take(const struct callers *t, const struct caller_ip *ip,
		      const struct caller_ip *holder, uint64_t since_ns, uint64_t now_ns)
{
	const struct caller *caller = failed(t, ip, now_ns);

	return callers_rule(&(struct callers_case){
		.caller_waits = caller && now_ns < caller->until_ns,
		.caller_failed = caller,
		.place_taken = holder,
		.holder_failed = holder && failed(t, holder, now_ns),
		.holder_had_time = holder && now_ns - since_ns >= CALLERS_CONFIRM_NS,
	});
}

void callers_note_failure(struct callers *t, const struct caller_ip *ip, uint64_t since_ns,
			  uint64_t now_ns)
{
	uint64_t held = now_ns - since_ns, wait = MAX(held, CALLERS_SHORTEST_NS);
	struct caller *c = &t->hosts[place_of(t, ip)];

	if (!failed(t, ip, now_ns))
		*c = (struct caller){ .ip = *ip };
	if (held >= CALLERS_CONFIRM_NS)
		wait = c->wait_ns = c->wait_ns ? MIN(2 * c->wait_ns, CALLERS_LONGEST_NS) :
						 CALLERS_FIRST_NS;
	c->failed_ns = now_ns;
	c->until_ns = now_ns + wait;
}

void callers_forget(struct callers *t, const struct caller_ip *ip)
{
	struct caller *c = &t->hosts[place_of(t, ip)];

	if (!memcmp(&c->ip, ip, sizeof(*ip)))
		*c = (struct caller){ 0 };
}
