/* SPDX-License-Identifier: BSD-2-Clause */
/* See ws_peer.h. */
#include "gateway/ws/ws_peer.h"

#include <errno.h>
#include <string.h>

int ws_peer_init(struct ws_peer *p, struct web_stream *s, size_t message_max,
		 uint64_t now_ns)
{
	*p = (struct ws_peer){ .stream = s, .silence.heard_ns = now_ns,
			       .reader = ws_reader_new(WS_SERVER, message_max) };
	return p->reader ? 0 : -ENOMEM;
}

void ws_peer_destroy(struct ws_peer *p)
{
	ws_reader_free(p->reader);
}

void ws_peer_control(struct ws_peer *p, enum ws_opcode opcode, const void *data, size_t len)
{
	uint8_t frame[WS_HEAD_MAX + WS_CONTROL_MAX];
	size_t head = ws_head_write(frame, opcode, true, len, NULL);

	if (len)
		memcpy(frame + head, data, len);
	web_stream_send(p->stream, frame, head + len);
}

void ws_peer_close(struct ws_peer *p, unsigned status, const char *reason)
{
	uint8_t payload[WS_CONTROL_MAX];

	if (p->closing)
		return;
	p->closing = true;
	ws_peer_control(p, WS_CLOSE, payload, ws_close_write(payload, status, reason));
	web_stream_end(p->stream);
}

int ws_peer_next(struct ws_peer *p, const char **data, size_t *len, struct ws_message *m)
{
	size_t used;
	int ret;

	if (p->closing || !*len)
		return 0;
	ret = ws_reader_take(p->reader, *data, *len, &used, m);
	*data += used;
	*len -= used;
	if (ret < 0) {
		ws_peer_close(p, (unsigned)-ret, ws_reader_error(p->reader));
		return -EPROTO;
	}
	if (!ret)
		return 0;
	if (m->opcode == WS_CLOSE) {
		/* The answer has the same status. */
		ws_peer_close(p, m->status, "");
		return -EPIPE;
	}
	if (m->opcode == WS_PING)
		ws_peer_control(p, WS_PONG, m->data, m->len);
	return 1;
}

void ws_peer_heard(struct ws_peer *p, uint64_t now_ns)
{
	ws_silence_broken(&p->silence, now_ns);
}

bool ws_peer_watch(struct ws_peer *p, uint64_t now_ns, uint64_t ping_ns, uint64_t timeout_ns)
{
	enum ws_silence_step step;
	uint64_t until_ns;

	if (p->closing)
		return true;
	step = ws_silence_look(&p->silence, now_ns, ping_ns, timeout_ns, &until_ns);
	if (step == WS_SILENCE_ASK)
		ws_peer_control(p, WS_PING, "", 0);
	return step != WS_SILENCE_GIVE_UP;
}
