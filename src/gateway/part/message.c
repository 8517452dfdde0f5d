/* SPDX-License-Identifier: BSD-2-Clause */
/* Samples of messages; see message.h. */
#include "gateway/part/message.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/plugin/node.h"

#define SAMPLE_BYTES_FIRST 65536u
#define SAMPLE_BYTES_MAX (16u << 20)
/* The shortest payload of a frame: shorter ones come with zeros behind. */
#define ETH_PAYLOAD_MIN 46

static bool is_padding(const struct message *m)
{
	if (m->len > ETH_PAYLOAD_MIN)
		return false;
	for (size_t i = m->pos; i < m->len; i++)
		if (m->at[i])
			return false;
	return true;
}

static void stamp(const struct message *m, struct sample *smps[],
		  unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		/* The receive time in the message is that of the sender. */
		smps[i]->received = m->received;
		smps[i]->flags |= SAMPLE_HAS_RECEIVED;
	}
}

static void note_wrong(struct message *m, struct format *f, struct fault_counters *faults)
{
	m->wrong++;
	if (faults)
		fault_note(faults, FAULT_MALFORMED, 1, "%s%s%s%s", m->from ? "from " : "",
			   m->from ? m->from : "", m->from ? ": " : "", format_error(f));
}

unsigned message_scan(struct message *m, struct format *f, struct sample *smps[], unsigned cnt,
		      struct fault_counters *faults)
{
	unsigned n = 0;

	while (n < cnt && m->pos < m->len) {
		size_t used = 0;
		int ret = f->type->scan(f, m->at + m->pos, m->len - m->pos,
					&used, smps + n, cnt - n);

		assert(used <= m->len - m->pos);
		if (likely(ret > 0)) {
			stamp(m, smps + n, (unsigned)ret);
			n += (unsigned)ret;
			m->pos += used;
			if (likely(used))
				continue;
		} else if (m->padded && is_padding(m)) {
			/* Nothing is wrong. */
		} else if (ret < 0) {
			m->pos += used;
			note_wrong(m, f, faults);
			/* A line can be wrong alone; of others the rest is. */
			if (f->type->lines && used)
				continue;
		} else {
			m->pos += used;
			if (m->pos == m->len)
				break;
			snprintf(f->error, sizeof(f->error),
				 "it ends inside a sample, %zu bytes are left", m->len - m->pos);
			note_wrong(m, f, faults);
		}
		m->pos = m->len;
	}
	return n;
}

/* The bytes of one sample that found no room in a buffer; 0: unknown. */
static size_t sample_size(struct format *f, struct sample *smp)
{
	for (size_t size = SAMPLE_BYTES_FIRST; size <= SAMPLE_BYTES_MAX; size *= 4) {
		char *buf = malloc(size);
		size_t used = 0;
		int n = buf ? f->type->print(f, buf, size, &used, &smp, 1) : -1;

		free(buf);
		if (n < 0)
			return 0;
		if (n == 1)
			return used;
	}
	return 0;
}

void message_refuse(struct node *n, struct format *f, struct sample *smp, int printed,
		    size_t bytes, const char *limit, size_t max)
{
	if (printed < 0)
		node_refuse(n, NODE_LOSS_FORMAT, 1, "format %s: %s", f->type->name,
			    *format_error(f) ? format_error(f) : strerror(-printed));
	else
		node_refuse(n, NODE_LOSS_TOO_LONG, 1, "a sample of %u values is %zu bytes, %s %zu",
			    smp->length, bytes ? bytes : sample_size(f, smp), limit, max);
}
