/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The faults of streams, from BUSBAR_FAULTS or as they are asked for while the process runs. Streams
 * that meet them have a middlebox (middlebox.h), from their beginning or from the moment when the first
 * fault is set; they keep it to their end. The set-up of MPA meets no faults, nor do the bytes that came
 * with it.
 */
#define LOG_ROOM "iwarp"
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "hca/host/settings.h"
#include "hca/run/elide.h"
#include "transport/iwarp/middlebox.h"
#include "transport/iwarp/stream.h"
#include "util/log.h"

#define NOT_OFFERED \
	"loss, dup, reorder and events are not offered, as TCP repairs them; no faults on streams"

static struct {
	struct impair_settings set; /* receive_lock */
	atomic_bool known;
	atomic_bool on;             /* `set` has faults */
} faults;

static bool are_wanted(const struct impair_settings *s)
{
	return !impair_is_none(&s->out) || !impair_is_none(&s->in);
}

static bool are_offered(const struct impair_settings *s)
{
	return !impair_has_packet_faults(&s->out) && !impair_has_packet_faults(&s->in) &&
	       !s->events[0];
}

static bool corrupt(const struct impair_settings *s)
{
	return s->out.corrupt > 0 || s->in.corrupt > 0;
}

/* receive_lock is held. */
static void keep(const struct impair_settings *s)
{
	atomic_store(&faults.known, true);
	faults.set = *s;
	atomic_store(&faults.on, are_wanted(s));
}

void iwarp_faults_read(void)
{
	const char *text = hca_settings.faults;
	struct impair_settings wanted = { .seed = 1 };
	char error[256];

	if (atomic_load(&faults.known))
		return;
	if (impair_parse(text, &wanted, error, sizeof(error))) {
		log_warn("BUSBAR_FAULTS='%.80s' not usable: %s; no faults", text, error);
	} else if (!are_offered(&wanted)) {
		log_warn("BUSBAR_FAULTS='%.80s': " NOT_OFFERED, text);
		wanted = (struct impair_settings){ .seed = wanted.seed };
	}
	hca_lock(&iwarp_port.receive_lock);
	keep(&wanted);
	hca_unlock(&iwarp_port.receive_lock);
}

/* ---- streams ---- */

/* Neither end has begun to end it. */
static bool goes_on(const struct iwarp_connection *c)
{
	return c->output == IWARP_OUT_MESSAGES && c->input == IWARP_IN_MESSAGES && !c->aborted &&
	       !c->failed;
}

static void open_middlebox(struct iwarp_stream *s)
{
	const struct iwarp_middlebox_params p = {
		.fd = s->fd,
		.qpn = s->qp->ibv.qp_num,
		.in = &s->receiver,
		.out_partial = s->rest_bytes - s->rest_at,
		.out_position = s->c.framer.position,
		.out_markers = s->c.framer.markers,
		.crc = s->c.framer.crc,
	};
	int fd = iwarp_middlebox_open(&p, &faults.set, &s->middlebox);

	if (fd < 0)
		log_warn("qp 0x%x: no middlebox: %s; no faults on its stream", p.qpn,
			 strerror(-fd));
	else
		atomic_store(&s->fd, fd);
	if (fd >= 0 && corrupt(&faults.set) && !p.crc)
		log_warn("qp 0x%x: has no CRC (BUSBAR_IWARP_CRC), and takes corrupt bytes as they are",
			 p.qpn);
}

void iwarp_faults_meet(struct iwarp_stream *s)
{
	if (!atomic_load(&faults.on) || s->middlebox || s->fd < 0 || s->unsendable || !goes_on(&s->c))
		return;
	iwarp_unwatch(s);
	open_middlebox(s);
	if (s->events)
		iwarp_watch_again(s);
}

/* ---- while the process runs ---- */

/* Those that began without faults. receive_lock is held. */
static void meet_all(void)
{
	list_for_each(s, &iwarp_port.streams, struct iwarp_stream, entry) {
		struct hca_qp *qp = s->qp;

		if (!qp)
			continue;
		hca_lock(&qp->sq_lock);
		iwarp_faults_meet(s);
		hca_unlock(&qp->sq_lock);
	}
}

int iwarp_faults_set(const char *text, char *note, size_t note_bytes)
{
	struct impair_settings wanted;
	int ret = impair_parse(text, &wanted, note, note_bytes);
	unsigned without_crc;

	if (ret)
		return ret;
	if (!are_offered(&wanted)) {
		snprintf(note, note_bytes, NOT_OFFERED);
		wanted = (struct impair_settings){ .seed = wanted.seed };
		ret = -EOPNOTSUPP;
	}
	hca_enter();
	hca_lock(&iwarp_port.receive_lock);
	keep(&wanted);
	meet_all();
	hca_unlock(&iwarp_port.receive_lock);
	hca_leave();
	without_crc = iwarp_middleboxes_set(&wanted);
	if (!ret && without_crc && corrupt(&wanted))
		snprintf(note, note_bytes,
			 "%u streams have no CRC (BUSBAR_IWARP_CRC), and take corrupt bytes as they are",
			 without_crc);
	return ret;
}
