/* SPDX-License-Identifier: BSD-2-Clause */
/* What the random test does differently over streams: how it connects pairs, and what no end of a
 * connection may do. How streams fail is not here, but in status.c and terminates.c. */
#include "engine/iwarp/setup.h"
#include "look.h"
#include "random.h"
#include "stream.h"

/* All that the two ends may agree on, each with pairs of several kinds. */
static struct stream_how how_of(int q)
{
	static const uint8_t rtr[] = { IWARP_RTR_WRITE, IWARP_RTR_READ, IWARP_RTR_SEND };

	return (struct stream_how){
		.crc = q & 1, .markers = q & 2, .old = q % 5 == 4, .rtr = rtr[q % 3],
		/* With less, TCP waits for its delayed acknowledgements. */
		.room = q % 3 ? 16384 << q % 4 : 0,
	};
}

void random_join(struct model *m, int q)
{
	const struct stream_how how = how_of(q);
	int first = (int)dice(m, 2);
	struct work *w;

	stream_join(m->side[first], m->qpn[first][q], m->side[!first], m->qpn[!first][q], &how);
	/* Else the responder waits for a message that the model may never choose. */
	w = how.old ? model_work(m, first, q, model_op_named("write")) : NULL;
	if (w)
		random_send(m, w);
}

void random_check_terminates(struct model *m)
{
	for (int s = 0; s < 2; s++) {
		struct hca_view *v;
		const struct hca_process_view *p = look_shown(&v, m->side[s]);

		expect(p->qp_count >= (size_t)model_pairs());
		for (size_t i = 0; i < p->qp_count; i++) {
			expect_eq(p->qps[i].counters[HCA_RX_NAKS_SENT], 0);
			expect_eq(p->qps[i].counters[HCA_TX_NAKS_RECEIVED], 0);
		}
		look_free(v);
	}
}
