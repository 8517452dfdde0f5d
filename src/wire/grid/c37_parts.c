/* SPDX-License-Identifier: BSD-2-Clause */
/* See c37_parts.h. */
#include "wire/grid/c37_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "wire/bytes.h"

#define INDEX 2u
#define LAST 65535u

void c37_parts_free(struct c37_parts *p)
{
	free(p->bytes);
	*p = (struct c37_parts){ 0 };
}

static int refuse(struct c37_parts *p, const char **why, const char *text)
{
	c37_parts_free(p);
	*why = text;
	return -EPROTO;
}

static int append(struct c37_parts *p, const uint8_t *data, size_t len)
{
	size_t before = p->len ? p->len : INDEX;
	uint8_t *bytes = realloc(p->bytes, before + len);

	if (!bytes)
		return -ENOMEM;
	p->bytes = bytes;
	memset(bytes, 0, INDEX);
	memcpy(bytes + before, data, len);
	p->len = before + len;
	return 0;
}

int c37_parts_take(struct c37_parts *p, const struct c37_frame *f, struct c37_frame *whole,
		   const char **why)
{
	unsigned index = f->body.len >= INDEX ? get_16(f->body.at) : 0;

	*whole = *f;
	/* Also one that is too short: it is refused as a configuration. */
	if (!index) {
		c37_parts_free(p);
		return 1;
	}
	if (index == 1) {
		c37_parts_free(p);
		*p = (struct c37_parts){ .next = 1, .idcode = f->idcode };
	}
	if (!p->next || (index != p->next && index != LAST))
		return refuse(p, why, "a part of a configuration is missing before it (CONT_IDX)");
	if (f->idcode != p->idcode || f->body.len == INDEX)
		return refuse(p, why, "it is no part of the configuration that is being sent");
	if (p->len + f->body.len > C37_CONFIG_MAX)
		return refuse(p, why, "the configuration has more parts than there is room for");
	if (append(p, f->body.at + INDEX, f->body.len - INDEX)) {
		c37_parts_free(p);
		return -ENOMEM;
	}
	p->next = index == LAST ? 0 : (uint16_t)(p->next + 1);
	whole->body = (struct c37_bytes){ p->bytes, p->len };
	return index == LAST;
}

static size_t write_part(const struct c37_frame *head, unsigned index, struct c37_bytes body,
			 uint8_t *to, size_t size)
{
	struct c37_out out;

	c37_begin(&out, to, size, head);
	c37_put_16(&out, (uint16_t)index);
	c37_put_bytes(&out, body.at, body.len);
	return c37_end(&out);
}

size_t c37_parts_write(const struct c37_frame *head, struct c37_bytes body, size_t part,
		       uint8_t *to, size_t size)
{
	size_t most = part - C37_FRAME_MIN - INDEX, used = 0;
	struct c37_bytes rest = { body.at + INDEX, body.len - INDEX };

	if (rest.len <= most)
		return write_part(head, 0, rest, to, size);
	for (unsigned index = 1; rest.len; index++) {
		struct c37_bytes now = { rest.at, rest.len < most ? rest.len : most };
		bool last = now.len == rest.len;
		size_t n;

		if (index == LAST)
			return 0;
		n = write_part(head, last ? LAST : index, now, to + used, size - used);
		if (!n)
			return 0;
		used += n;
		rest.at += now.len;
		rest.len -= now.len;
	}
	return used;
}
