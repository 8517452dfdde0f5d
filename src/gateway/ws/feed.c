/* SPDX-License-Identifier: BSD-2-Clause */
/* The ring of payloads; see feed.h. */
#include "gateway/ws/feed.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/plugin/format.h"
#include "util/container_of.h"
#include "util/nearest.h"

#define ALIGN 8
#define NO_MORE UINT32_MAX /* the rest of the ring is not used */

/* In front of each payload. The room behind the numbers is for the head of its frame. */
struct record {
	uint32_t size;    /* with all that is in front of the payload; a multiple of ALIGN */
	uint32_t len;     /* of the payload, or NO_MORE */
	uint64_t samples; /* put before it */
	uint32_t count;   /* samples in it */
	char head[20];
	char payload[];
};

static_assert(sizeof(struct record) % ALIGN == 0 &&
		      sizeof(((struct record *)0)->head) >= WS_HEAD_MAX,
	      "payloads are aligned, heads have room");

struct ws_feed {
	struct format *format;
	bool joins;           /* messages one behind the other are a message */
	size_t size, keep;    /* of the ring */
	size_t frame_max;
	char *ring;
	/* Positions count bytes for ever. */
	cache_aligned _Atomic uint64_t head;
	uint64_t put;         /* samples */
	cache_aligned _Atomic uint64_t tail;
	uint64_t dropped;     /* samples before `tail` */
	struct ws_place newest; /* that the taking thread knows */
};

static struct record *record_at(const struct ws_feed *f, uint64_t at)
{
	return (struct record *)(void *)(f->ring + at % f->size);
}

static int find_format(const char *name, const struct signal_list *signals, char *why,
		       size_t size)
{
	struct nearest near = NEAREST(name);
	const struct format_type *type;
	char hint[100];

	for (const struct plugin *p = format_plugins; p->name; p++)
		nearest_try(&near, p->name);
	type = plugin_is_there(format_plugins, name) ? format_type_find(name) : NULL;
	if (!type || !type->print) {
		snprintf(why, size, "there is no format '%.40s'%s", name,
			 nearest_hint(&near, hint, sizeof(hint)));
		return -ENOENT;
	}
	for (unsigned i = 0; type->carries.types && signals && i < signals->count; i++) {
		const struct signal *s = &signals->signals[i];

		if (type->carries.types & FORMAT_TYPE(s->type))
			continue;
		snprintf(why, size, "the signal '%.40s' is %s, which the format '%s' cannot hold",
			 s->name, signal_type_name(s->type), type->name);
		return -EINVAL;
	}
	return 0;
}

/* Whether two of its messages, one behind the other, are one: of lines, and of binary
 * records that say where they end. */
static bool joins(const struct format_type *t)
{
	return (t->lines || t->binary) && !(t->carries.traits & FORMAT_ONE_PER_MESSAGE);
}

int ws_feed_new(struct ws_feed **out, const char *format, struct signal_list *signals,
		size_t backlog, char *why, size_t why_size)
{
	struct ws_feed *f;
	struct format_sizes sizes;
	int ret = find_format(format, signals, why, why_size);

	if (ret)
		return ret;
	snprintf(why, why_size, "there is no memory for the format '%.40s'", format);
	f = aligned_alloc(CACHE_LINE, sizeof(*f));
	if (!f)
		return -ENOMEM;
	memset(f, 0, sizeof(*f));
	ret = format_new(&f->format, NULL, NULL, format, signals);
	if (ret)
		goto err_feed;
	f->format->message = true;
	ret = format_sizes(f->format, f->format->signals, &sizes);
	if (ret) {
		snprintf(why, why_size, "%s", format_error(f->format));
		goto err_format;
	}
	f->joins = joins(f->format->type);
	f->frame_max = MAX(sizes.room_max, (size_t)WS_FRAME_BYTES) + sizeof(struct record);
	f->keep = (MAX(backlog, 2 * f->frame_max) + ALIGN - 1) / ALIGN * ALIGN;
	f->size = 2 * f->keep;
	f->ring = malloc(f->size);
	if (!f->ring) {
		ret = -ENOMEM;
		goto err_format;
	}
	*out = f;
	return 0;
err_format:
	format_destroy(f->format);
err_feed:
	free(f);
	return ret;
}

void ws_feed_free(struct ws_feed *f)
{
	if (!f)
		return;
	format_destroy(f->format);
	free(f->ring);
	free(f);
}

const char *ws_feed_name(const struct ws_feed *f)
{
	return f->format->type->name;
}

enum ws_opcode ws_feed_opcode(const struct ws_feed *f)
{
	return f->format->type->binary ? WS_BINARY : WS_TEXT;
}

/* ---- putting ---- */

/* Prints up to `cnt` samples into the ring at `head`, where `room` bytes are free. The number
 * printed, with the position behind in *end; 0: no room; or a negative errno. */
static int print_at(struct ws_feed *f, uint64_t head, size_t room,
		    struct sample *const smps[], unsigned cnt, uint64_t *end)
{
	struct record *r = record_at(f, head);
	size_t used = 0;
	int n;

	if (room <= sizeof(*r) + ALIGN)
		return 0;
	n = f->format->type->print(f->format, r->payload,
				   MIN(room, f->frame_max) - sizeof(*r), &used, smps,
				   MIN(cnt, (unsigned)WS_FRAME_SAMPLES));
	if (n <= 0)
		return n;
	*r = (struct record){
		.size = (uint32_t)((sizeof(*r) + used + ALIGN - 1) / ALIGN * ALIGN),
		.len = (uint32_t)used, .samples = f->put, .count = (uint32_t)n,
	};
	f->put += (unsigned)n;
	*end = head + r->size;
	return n;
}

struct ws_feed_put ws_feed_put(struct ws_feed *f, struct sample *const smps[],
			       unsigned count)
{
	uint64_t head = atomic_load_explicit(&f->head, memory_order_relaxed);
	uint64_t tail = atomic_load_explicit(&f->tail, memory_order_acquire), end = head;
	struct ws_feed_put result = { 0 };
	unsigned i = 0;

	while (i < count) {
		/* Both are multiples of ALIGN. */
		size_t free_bytes = f->size - (size_t)(end - tail);
		size_t to_end = f->size - (size_t)(end % f->size);
		int n = print_at(f, end, MIN(free_bytes, to_end), smps + i, count - i, &end);

		if (n > 0) {
			i += (unsigned)n;
			atomic_store_explicit(&f->head, end, memory_order_release);
		} else if (n < 0) {
			result.refused++;
			i++;
		} else if (free_bytes > to_end) {
			struct record *r = record_at(f, end);

			r->size = (uint32_t)to_end;
			r->len = NO_MORE;
			end += to_end;
		} else {
			result.lost += count - i;
			break;
		}
	}
	return result;
}

/* ---- taking ---- */

/* The first record at `*at` or behind it; NULL: there is none. */
static struct record *find_record(const struct ws_feed *f, uint64_t *at, uint64_t head)
{
	struct record *r;

	if (*at == head)
		return NULL;
	r = record_at(f, *at);
	if (r->len != NO_MORE)
		return r;
	*at += r->size;
	return *at == head ? NULL : record_at(f, *at);
}

static void look_for_new(struct ws_feed *f)
{
	uint64_t head = atomic_load_explicit(&f->head, memory_order_acquire);
	struct record *r;

	while ((r = find_record(f, &f->newest.at, head))) {
		f->newest.at += r->size;
		f->newest.samples = r->samples + r->count;
	}
}

void ws_place_init(struct ws_feed *f, struct ws_place *p)
{
	look_for_new(f);
	*p = f->newest;
}

void ws_feed_trim(struct ws_feed *f)
{
	uint64_t head = atomic_load_explicit(&f->head, memory_order_acquire);
	uint64_t at = atomic_load_explicit(&f->tail, memory_order_relaxed);
	struct record *r;

	look_for_new(f);
	while (head - at > f->keep && (r = find_record(f, &at, head))) {
		f->dropped = r->samples + r->count;
		at += r->size;
	}
	atomic_store_explicit(&f->tail, at, memory_order_release);
}

struct ws_batch ws_feed_take(struct ws_feed *f, struct ws_place *p,
			     struct ws_piece pieces[WS_FRAME_SAMPLES])
{
	uint64_t head = atomic_load_explicit(&f->head, memory_order_acquire);
	uint64_t tail = atomic_load_explicit(&f->tail, memory_order_relaxed);
	struct ws_batch b = { 0 };
	struct record *r;

	if (p->at < tail) {
		b.lost = f->dropped - p->samples;
		*p = (struct ws_place){ tail, f->dropped };
	}
	b.from = *p;
	while ((r = find_record(f, &p->at, head))) {
		if (b.pieces && (!f->joins || b.len + r->len > WS_FRAME_BYTES ||
				 b.samples + r->count > WS_FRAME_SAMPLES))
			break;
		pieces[b.pieces++] = (struct ws_piece){ r->payload, r->len };
		b.len += r->len;
		b.samples += r->count;
		p->at += r->size;
		p->samples += r->count;
	}
	return b;
}

uint64_t ws_feed_left(struct ws_feed *f, const struct ws_place *p)
{
	look_for_new(f);
	return f->newest.samples - p->samples;
}

size_t ws_feed_behind(const struct ws_feed *f, const struct ws_place *p)
{
	return (size_t)(f->newest.at - p->at);
}
