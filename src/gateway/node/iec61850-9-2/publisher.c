/* SPDX-License-Identifier: BSD-2-Clause */
/* Writing sampled values: each sample becomes an ASDU, and so many of them a message. */
#define LOG_ROOM "gateway/iec61850-9-2"
#include "gateway/node/iec61850-9-2/sampled_values.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/sample/time.h"
#include "util/log.h"
#include "wire/grid/session.h"

struct sv_publisher {
	struct apdu head;
	uint8_t header[ETHERNET_HEADER_MAX]; /* of Ethernet */
	size_t header_len;
	struct sv_asdu *asdus;  /* of one message; what stays the same is in all of them */
	uint8_t *values;        /* their data sets */
	unsigned max, count;    /* ASDUs of a full message, and of the one that is being filled */
	unsigned kept;          /* of these: of samples that an earlier write() accepted */
	struct numbering numbering;
	uint64_t sequence;      /* of the last sample that had one */
	bool said_astray;
	struct session session; /* of routed messages */
	uint8_t *frame;
	size_t frame_size;
};

uint32_t sv_out_wrap(const struct sv_out_settings *s)
{
	double rate = (double)s->smp_rate;

	if (!s->smp_rate || (s->has_smp_mod && s->smp_mod == SV_SECONDS_PER_SAMPLE))
		return COUNTING_MAX;
	/* Without smpMod it is per period (IEC 61850-9-2). */
	if (!s->has_smp_mod || s->smp_mod == SV_PER_PERIOD)
		rate = rint(rate * s->frequency);
	return rate > COUNTING_MAX ? 0 : (uint32_t)fmax(rate, 1);
}

static struct ber text(const char *s)
{
	return (struct ber){ (const uint8_t *)s, s ? strlen(s) : 0 };
}

static void set_constants(struct sv_node *v)
{
	const struct sv_out_settings *s = &v->out;
	struct sv_publisher *p = v->publisher;

	for (unsigned i = 0; i < p->max; i++)
		p->asdus[i] = (struct sv_asdu){
			.id = text(s->sv_id),
			.dataset = text(s->datset),
			.revision = (uint32_t)s->conf_rev,
			.synch = (uint8_t)s->smp_synch,
			.has_rate = s->announce && s->smp_rate, .rate = (uint16_t)s->smp_rate,
			.has_mode = s->announce && s->has_smp_mod, .mode = (uint16_t)s->smp_mod,
			.values = { p->values + i * v->out_set->size, v->out_set->size },
		};
}

static uint8_t *encode_routed(struct sv_publisher *p, size_t *len)
{
	const struct session_part part = { .type = SESSION_PAYLOAD_SV,
					  .simulation = p->head.simulation,
					   .appid = p->head.appid };
	uint8_t *at = sv_encode_body(p->asdus, p->count, p->frame + SESSION_HEAD_MAX,
				     ROUTED_BYTES_MAX - SESSION_HEAD_MAX, len);

	return at ? session_wrap(&p->session, &part, at, len) : NULL;
}

/* Puts the message in front of the end of the buffer, with its header. NULL: it has no room. */
static uint8_t *encode(struct sv_publisher *p, size_t *len)
{
	uint8_t *at;

	if (p->session.kind)
		return encode_routed(p, len);
	at = sv_encode(&p->head, p->asdus, p->count, p->frame + sizeof(p->header),
		       p->frame_size - sizeof(p->header), len);
	if (!at)
		return NULL;
	*len += p->header_len;
	return memcpy(at - p->header_len, p->header, p->header_len);
}

/* Does a full message fit into a frame of the interface? */
static int check_size(struct sv_node *v)
{
	struct sv_publisher *p = v->publisher;
	size_t len = 0;
	unsigned max;
	uint8_t *at;

	for (unsigned i = 0; i < p->max; i++)
		p->asdus[i].has_time = v->out.refr_tm;
	p->count = p->max;
	at = encode(p, &len);
	p->count = 0;
	len = at ? len - p->header_len : UINT16_MAX;
	max = v->out.routing.enabled ? ROUTED_BYTES_MAX : v->ethernet.mtu;
	if (at && len <= max)
		return 0;
	log_error("%s: a message of %u samples of %u signals takes %s%zu bytes, a %s%s has %u at most; fewer signals or out.asdus are needed",
		  v->node->name, p->max, v->out_set->count, at ? "" : "more than ", len,
		  v->out.routing.enabled ? "datagram" : "frame on ",
		  v->out.routing.enabled ? "" : v->interface, max);
	return -EMSGSIZE;
}

int sv_publisher_open(struct sv_node *v)
{
	const struct ethernet_vlan vlan = { v->vlan.enabled, (uint16_t)v->vlan.id,
					    (uint8_t)v->vlan.priority };
	struct sv_publisher *p = calloc(1, sizeof(*p));

	v->publisher = p;
	if (!p)
		return -ENOMEM;
	p->max = (unsigned)v->out.asdus;
	p->frame_size = sizeof(p->header) + UINT16_MAX;
	p->asdus = calloc(p->max, sizeof(*p->asdus));
	p->values = malloc(p->max * v->out_set->size);
	p->frame = malloc(p->frame_size);
	if (!p->asdus || !p->values || !p->frame)
		return -ENOMEM;
	memset(p->values, 0, p->max * v->out_set->size);
	p->head = (struct apdu){ .appid = (uint16_t)v->app_id, .simulation = v->out.simulation };
	if (v->out.routing.enabled)
		p->session = (struct session){ .kind = SESSION_SV,
					       .version = (uint16_t)v->out.routing.session_version };
	else
		p->header_len = ethernet_header(&v->ethernet, p->header, v->dst, &vlan);
	p->numbering = (struct numbering){
		.wrap = sv_out_wrap(&v->out),
		.by_time = v->out.smp_synch == SV_SYNCH_GLOBAL && v->out.smp_rate &&
			   !(v->out.has_smp_mod && v->out.smp_mod == SV_SECONDS_PER_SAMPLE),
	};
	set_constants(v);
	return check_size(v);
}

static enum node_loss cause_of(int err)
{
	return err == ENOBUFS || err == EAGAIN ? NODE_LOSS_STUCK :
	       err == EMSGSIZE		       ? NODE_LOSS_TOO_LONG :
	       err == ENETDOWN || err == ENXIO || err == ENODEV || err == ENETUNREACH ||
			       err == EHOSTUNREACH ? NODE_LOSS_ABSENT : NODE_LOSS_REFUSED;
}

static int send_bytes(const struct sv_node *v, const uint8_t *at, size_t len)
{
	return v->out.routing.enabled ? routed_send(&v->out_socket, &v->out.to, at, len) :
					ethernet_send(&v->ethernet, at, len);
}

/* Sends the message. Returns how many of its samples the present write() has to refuse; they are
 * counted. */
static unsigned send_message(struct sv_node *v)
{
	struct sv_publisher *p = v->publisher;
	unsigned present = p->count - p->kept, kept = p->kept;
	size_t len;
	uint8_t *at = encode(p, &len);
	int ret = at ? send_bytes(v, at, len) : -EMSGSIZE;

	p->count = p->kept = 0;
	p->session.number++;
	if (!ret) {
		node_figure_add(v->node, SV_FIGURE_MESSAGES_SENT, 1);
		return 0;
	}
	if (kept)
		node_lose(v->node, cause_of(-ret), kept, "%s: %s", v->interface, strerror(-ret));
	if (present)
		node_refuse(v->node, cause_of(-ret), present, "%s: %s", v->interface,
			    strerror(-ret));
	return present;
}

void sv_publisher_close(struct sv_node *v)
{
	struct sv_publisher *p = v->publisher;

	if (!p)
		return;
	if (p->count) {
		p->kept = p->count;
		send_message(v);
	}
	free(p->asdus);
	free(p->values);
	free(p->frame);
	free(p);
	v->publisher = NULL;
}

static void number(struct sv_node *v, const struct sample *s, struct sv_asdu *a)
{
	struct sv_publisher *p = v->publisher;
	bool timed = s->flags & SAMPLE_HAS_ORIGIN, astray;
	uint64_t step = 0;

	a->has_time = v->out.refr_tm && timed && s->origin.tv_sec >= 0 &&
		      s->origin.tv_sec <= UINT32_MAX;
	a->time = (struct utc_time){
		.seconds = a->has_time ? (uint32_t)s->origin.tv_sec : 0,
		.nanoseconds = sample_time_nsec(s->origin),
		.not_synchronized = v->out.smp_synch == SV_SYNCH_NONE,
		.accuracy = 31,
	};
	if (likely(s->flags & SAMPLE_HAS_SEQUENCE)) {
		step = s->sequence > p->sequence ? s->sequence - p->sequence : 0;
		p->sequence = s->sequence;
	}
	a->count = numbering_take(&p->numbering,
				  timed ? (int64_t)sample_time_nsec(s->origin) : -1, step,
				  &astray);
	if (likely(!astray))
		return;
	node_figure_add(v->node, SV_FIGURE_ASTRAY, 1);
	if (!p->said_astray)
		log_warn("%s: samples do not come %u times a second, as out.smp_rate says: smpCnt leaves numbers out, or gives them twice",
			 v->node->name, p->numbering.wrap);
	p->said_astray = true;
}

/* True: the sample stands in the message. */
static bool add(struct sv_node *v, const struct sample *s)
{
	struct sv_publisher *p = v->publisher;
	const struct data_set *d = v->out_set;
	unsigned clipped;

	if (unlikely(s->length < d->count)) {
		node_refuse(v->node, NODE_LOSS_FORMAT, 1,
			    "a sample has %u values, the data set has %u", s->length, d->count);
		return false;
	}
	clipped = data_set_put(d, s, s->signals ? s->signals : v->node->out.hooked,
			       p->values + p->count * d->size);
	if (unlikely(clipped))
		node_figure_add(v->node, SV_FIGURE_CLIPPED, clipped);
	number(v, s, &p->asdus[p->count]);
	p->count++;
	return true;
}

int sv_write(struct node *n, struct sample *smps[], unsigned cnt, unsigned *release)
{
	struct sv_node *v = n->private_data;
	struct sv_publisher *p = v->publisher;
	unsigned accepted = 0;

	if (unlikely(!p))
		return -EBADF;
	for (unsigned i = 0; i < cnt; i++) {
		if (!add(v, smps[i]))
			continue;
		accepted++;
		if (p->count == p->max)
			accepted -= send_message(v);
	}
	if (p->count && v->out.flush)
		accepted -= send_message(v);
	p->kept = p->count;
	return (int)accepted;
}
