/* SPDX-License-Identifier: BSD-2-Clause */
/* Life cycle of ma and rms; see moving.h. */
#include "gateway/hook/part/moving.h"

#include <errno.h>
#include <stdlib.h>

int moving_parse(struct hook *h, struct config *c, json_t *cfg)
{
	struct moving *m = h->private_data;

	(void)c;
	(void)cfg;
	return hook_select_parse(&m->select, h, HOOK_SELECT_MANY);
}

int moving_signals(struct hook *h, struct signal_list *in,
		   struct signal_list **out)
{
	struct moving *m = h->private_data;
	struct signal_list *l;
	int ret = hook_select_resolve(&m->select, h, in);

	if (!ret)
		ret = hook_select_check_types(&m->select, h, in,
					      1 << SIGNAL_FLOAT |
					      1 << SIGNAL_INTEGER |
					      1 << SIGNAL_BOOLEAN);
	if (ret)
		return ret;
	m->length_min = 0;
	for (unsigned i = 0; i < m->select.count; i++)
		m->length_min = MAX(m->length_min, m->select.index[i] + 1);
	if (!in)
		return 0;
	l = hook_signals_insert(in, 0, 0);
	if (!l)
		return -ENOMEM;
	for (unsigned i = 0; i < m->select.count; i++)
		l->signals[m->select.index[i]].type = SIGNAL_FLOAT;
	*out = l;
	return 0;
}

int moving_start(struct hook *h)
{
	struct moving *m = h->private_data;

	m->sums = calloc(m->select.count ? m->select.count : 1,
			 sizeof(m->sums[0]));
	if (!m->sums)
		return -ENOMEM;
	for (unsigned i = 0; i < m->select.count; i++) {
		int ret = window_sum_init(&m->sums[i], (unsigned)m->window_size);

		if (ret) {
			moving_stop(h);
			return ret;
		}
	}
	return 0;
}

int moving_stop(struct hook *h)
{
	struct moving *m = h->private_data;

	for (unsigned i = 0; m->sums && i < m->select.count; i++)
		window_sum_destroy(&m->sums[i]);
	free(m->sums);
	m->sums = NULL;
	return 0;
}

void moving_restart(struct hook *h)
{
	struct moving *m = h->private_data;

	for (unsigned i = 0; i < m->select.count; i++)
		window_sum_clear(&m->sums[i]);
}

void moving_destroy(struct hook *h)
{
	struct moving *m = h->private_data;

	hook_select_free(&m->select);
}
