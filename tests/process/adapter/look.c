/* SPDX-License-Identifier: BSD-2-Clause */
/* See look.h. */
#include "look.h"

#include <unistd.h>

#include "verbs/private.h"

struct hca_inspector *look_open(void)
{
	struct hca_inspector *in;

	expect_eq(busbar_inspector_open(HCA_VIEW_VERSION, &in), 0);
	return in;
}

struct hca_view *look_again(struct hca_inspector *in)
{
	struct hca_view *v;

	expect_eq(busbar_inspector_look(in, &v), 0);
	return v;
}

void look_close(struct hca_inspector *in)
{
	busbar_inspector_close(in);
}

struct hca_view *look(void)
{
	struct hca_inspector *in = look_open();
	struct hca_view *v = look_again(in);

	look_close(in);
	return v;
}

void look_free(struct hca_view *v)
{
	busbar_view_free(v);
}

pid_t side_pid(const struct side *s)
{
	return s->pid > 0 ? s->pid : getpid();
}

const struct hca_process_view *look_find(const struct hca_view *v, pid_t pid)
{
	for (size_t i = 0; i < v->process_count; i++)
		if (v->processes[i].pid == (uint32_t)pid)
			return &v->processes[i];
	return NULL;
}

/* One that does not get a processor does not answer in time, and is asked again. */
const struct hca_process_view *look_shown(struct hca_view **v, const struct side *s)
{
	const uint64_t end = now_ms() + WAIT_MS;
	const struct hca_process_view *p;

	for (;;) {
		*v = look();
		p = look_find(*v, side_pid(s));
		if (p && !*p->problem)
			return p;
		if (now_ms() > end)
			fail("pid %d: %s", (int)side_pid(s), p ? p->problem : "not shown");
		look_free(*v);
	}
}

struct hca_process_view look_process(const struct side *s)
{
	struct hca_view *v;
	struct hca_process_view p = *look_shown(&v, s);

	p.qps = NULL;
	p.links = NULL;
	look_free(v);
	return p;
}

struct hca_qp_view look_qp(const struct side *s, int qp)
{
	struct hca_view *v;
	const struct hca_process_view *p = look_shown(&v, s);

	for (size_t i = 0; i < p->qp_count; i++) {
		if (p->qps[i].qpn == s->qpn[qp]) {
			struct hca_qp_view found = p->qps[i];

			look_free(v);
			return found;
		}
	}
	fail("qp 0x%x is not shown", s->qpn[qp]);
}
