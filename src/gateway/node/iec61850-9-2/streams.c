/* SPDX-License-Identifier: BSD-2-Clause */
/* The streams of a capture; see streams.h. */
#define LOG_ROOM "gateway/iec61850-9-2"
#include "gateway/node/iec61850-9-2/streams.h"

#include <errno.h>
#include <string.h>

#include "gateway/part/ethernet.h"
#include "util/clock.h"
#include "util/log.h"
#include "wire/grid/sv.h"

_Static_assert(SV_STREAM_ID_MAX == SV_ID_MAX, "streams.h is for who does not know wire");

static void copy_id(char to[SV_STREAM_ID_MAX + 1], const struct ber *id)
{
	size_t len = MIN(id->len, (size_t)SV_ID_MAX);

	for (size_t i = 0; i < len; i++)
		to[i] = (char)(id->at[i] < ' ' || id->at[i] > '~' ? '.' : id->at[i]);
	to[len] = '\0';
}

/* NULL: there is no room. */
static struct sv_stream *find(struct sv_streams *s, const char *id, uint16_t appid)
{
	for (unsigned i = 0; i < s->count; i++)
		if (s->streams[i].appid == appid && !strcmp(s->streams[i].id, id))
			return &s->streams[i];
	if (s->count == SV_STREAMS_MAX)
		return NULL;
	s->streams[s->count] = (struct sv_stream){ .appid = appid };
	strcpy(s->streams[s->count].id, id);
	return &s->streams[s->count++];
}

static void take_asdu(struct sv_stream *t, const struct sv_asdu *a, unsigned asdus)
{
	if (!t->samples) {
		t->asdus = asdus;
		t->bytes = a->values.len;
		t->revision = a->revision;
	}
	t->mixed |= t->bytes != a->values.len;
	t->synch = a->synch;
	t->count_max = MAX(t->count_max, a->count);
	t->samples++;
}

static void take_message(struct sv_streams *s, const struct ethernet_frame *f, const struct apdu *head,
			 struct sv_message *m)
{
	uint64_t now_ns = timespec_to_ns(f->received);
	const char *why;
	struct sv_asdu a;

	for (unsigned asdus = m->count; sv_next(m, &a, &why) > 0;) {
		char id[SV_STREAM_ID_MAX + 1];
		struct sv_stream *t;

		copy_id(id, &a.id);
		t = find(s, id, head->appid);
		if (!t) {
			s->left_out++;
			return;
		}
		if (!t->samples)
			t->first_ns = now_ns;
		t->last_ns = now_ns;
		t->simulated |= head->simulation;
		memcpy(t->destination, f->destination, sizeof(t->destination));
		take_asdu(t, &a, asdus);
	}
}

static void take_frame(struct sv_streams *s, const struct ethernet_frame *f)
{
	struct sv_message m;
	struct apdu head;

	if (f->truncated || apdu_decode(f->payload, f->len, &head) || sv_decode(&head.body, &m))
		s->malformed++;
	else
		take_message(s, f, &head, &m);
}

int sv_streams_read(struct sv_streams *s, const char *file)
{
	char why[ETHERNET_WHY_MAX];
	struct ethernet_frame f;
	struct ethernet e;
	int ret = ethernet_open_capture(&e, file, ETHERTYPE_SV, why);

	*s = (struct sv_streams){ 0 };
	if (ret) {
		log_error("%s", why);
		return ret;
	}
	while (!(ret = ethernet_receive(&e, NULL, 0, &f)))
		take_frame(s, &f);
	ethernet_close(&e);
	return ret == -ENODATA ? 0 : ret;
}
