/* SPDX-License-Identifier: BSD-2-Clause */
/* See mitigation.h. */
#include "virtual/odp/mitigation.h"

#include <string.h>

#include "util/container_of.h"
#include "virtual/fail.h"
#include "virtual/odp/record.h"

#define DOUBLINGS 4u
/* Reissued READs on their way. */
#define REISSUED_MAX 4u

enum page { PAGE_NEW, PAGE_GATED, PAGE_USED };

struct lane {
	uint64_t next;      /* the operation that is posted next */
	uint64_t posted, completed;
	uint64_t moved_ns;  /* the last progress, or a dummy */
	unsigned dummies;   /* since the last progress */
};

static struct {
	struct odp_ends *ends;
	uint64_t wanted;    /* operations below it */
	uint64_t look_ns;
	struct lane lane[ODP_QPS_MAX]; /* by queue pair */
	uint8_t page[ODP_BYTES_MAX / ODP_PAGE + 1]; /* enum page */
	bool done[ODP_OPS_MAX];
	uint64_t posted_ns[ODP_OPS_MAX];
	uint64_t lowest;    /* all operations below it are done */
	uint64_t reissue;   /* operations below it were reissued, or need not be */
	unsigned reissued;  /* on their way */
} m;

/* ---- pages ---- */

static uint64_t first_page(const struct odp_point *p, uint64_t i)
{
	return odp_offset(p, i) / ODP_PAGE;
}

static uint64_t last_page(const struct odp_point *p, uint64_t i)
{
	return (odp_offset(p, i) + p->size - 1) / ODP_PAGE;
}

static bool has_page(const struct odp_point *p, uint64_t i, enum page state)
{
	for (uint64_t page = first_page(p, i); page <= last_page(p, i); page++)
		if (m.page[page] == state)
			return true;
	return false;
}

static void set_pages(const struct odp_point *p, uint64_t i, enum page state)
{
	for (uint64_t page = first_page(p, i); page <= last_page(p, i); page++)
		if (m.page[page] != PAGE_USED)
			m.page[page] = (uint8_t)state;
}

/* ---- posting ---- */

/* Those of the queue pair that are on their way use pages that were used before. */
static bool knows_all(const struct odp_point *p, unsigned qp)
{
	const struct lane *l = &m.lane[qp];

	for (uint64_t n = l->completed; n <= l->posted; n++)
		if (has_page(p, qp + n * p->num_qps, PAGE_NEW))
			return false;
	return true;
}

static bool is_allowed(const struct odp_point *p, unsigned qp)
{
	const struct lane *l = &m.lane[qp];

	switch (p->mitigation) {
	case ODP_WINDOW: return l->posted - l->completed < p->window || knows_all(p, qp);
	case ODP_GATE: return !has_page(p, l->next, PAGE_GATED);
	default: return true;
	}
}

static void post_lane(unsigned qp, uint64_t now_ns)
{
	const struct odp_point *p = m.ends->point;
	struct lane *l = &m.lane[qp];

	while (l->next < m.wanted && is_allowed(p, qp)) {
		if (p->mitigation == ODP_GATE && has_page(p, l->next, PAGE_NEW))
			set_pages(p, l->next, PAGE_GATED);
		odp_record_post(l->next);
		odp_ends_post(m.ends, l->next);
		m.posted_ns[l->next] = l->moved_ns = now_ns;
		l->next += p->num_qps;
		l->posted++;
	}
}

static bool holds_back(const struct odp_point *p)
{
	return p->mitigation == ODP_WINDOW || p->mitigation == ODP_GATE;
}

void odp_mitigation_post(uint64_t i, uint64_t now_ns)
{
	m.wanted = i + 1;
	post_lane((unsigned)(i % m.ends->point->num_qps), now_ns);
}

/* ---- completions ---- */

static void add_reissued(uint64_t now_ns)
{
	m.reissue = MAX(m.reissue, m.lowest);
	while (m.reissue < m.wanted && m.reissued < REISSUED_MAX &&
	       (m.done[m.reissue] ||
		now_ns - m.posted_ns[m.reissue] >= m.ends->point->patience_ns)) {
		if (!m.done[m.reissue]) {
			odp_ends_reissue(m.ends, m.reissue);
			m.reissued++;
		}
		m.reissue++;
	}
}

static void lane_moves(uint64_t i, uint64_t now_ns)
{
	const struct odp_point *p = m.ends->point;
	struct lane *l = &m.lane[i % p->num_qps];

	l->completed++;
	l->moved_ns = now_ns;
	l->dummies = 0;
	set_pages(p, i, PAGE_USED);
	for (unsigned qp = 0; qp < p->num_qps && holds_back(p); qp++)
		post_lane(qp, now_ns);
}

bool odp_mitigation_done(const struct ibv_wc *wc, uint64_t now_ns, uint64_t *i)
{
	uint64_t number = wc->wr_id & ~(ODP_WR_DUMMY | ODP_WR_REISSUED);

	if (wc->wr_id & ODP_WR_DUMMY)
		return false;
	if (wc->wr_id & ODP_WR_REISSUED)
		m.reissued--;
	else
		lane_moves(number, now_ns);
	if (m.done[number])
		return false;
	if (wc->wr_id & ODP_WR_REISSUED)
		odp_ends_take_reissued(m.ends, number);
	m.done[number] = true;
	while (m.lowest < m.wanted && m.done[m.lowest])
		m.lowest++;
	if (wc->wr_id & ODP_WR_REISSUED)
		add_reissued(now_ns);
	*i = number;
	return true;
}

/* ---- looking ---- */

static void add_dummies(uint64_t now_ns)
{
	const struct odp_point *p = m.ends->point;

	for (unsigned qp = 0; qp < p->num_qps; qp++) {
		struct lane *l = &m.lane[qp];

		if (l->posted == l->completed ||
		    now_ns - l->moved_ns < p->patience_ns << MIN(l->dummies, DOUBLINGS))
			continue;
		odp_ends_post_dummy(m.ends, qp);
		l->moved_ns = now_ns;
		l->dummies++;
	}
}

static bool looks(const struct odp_point *p)
{
	return p->mitigation == ODP_DUMMIES || p->mitigation == ODP_REISSUE;
}

uint64_t odp_mitigation_next_ns(void)
{
	return m.look_ns;
}

void odp_mitigation_look(uint64_t now_ns)
{
	const struct odp_point *p = m.ends->point;

	if (now_ns < m.look_ns)
		return;
	m.look_ns = now_ns + p->patience_ns / 2;
	if (p->mitigation == ODP_DUMMIES)
		add_dummies(now_ns);
	else
		add_reissued(now_ns);
}

void odp_mitigation_begin(struct odp_ends *ends, uint64_t now_ns)
{
	memset(&m, 0, sizeof(m));
	m.ends = ends;
	m.look_ns = looks(ends->point) ? now_ns + ends->point->patience_ns / 2 : UINT64_MAX;
	for (unsigned qp = 0; qp < ends->point->num_qps; qp++)
		m.lane[qp].next = qp;
}
