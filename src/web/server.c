/* SPDX-License-Identifier: BSD-2-Clause */
/* The messages of the file server; what is answered is answer.c's. */
#include "web/server.h"

#include <busbar/ripc.h>
#include <errno.h>
#include <stdlib.h>

#include "web/answer.h"

/* While answers are on their way, how often it is looked whether they have arrived. */
#define REAP_MS 20

/* An answer that its receiver has not fetched yet. */
struct sending {
	uint32_t to;
	struct ripc_token token;
	struct answer answer;
};

struct worker {
	struct server *s;
	unsigned count;
	struct sending sending[SERVER_SENDING_MAX];
};

/* `ret`: of the sending, 0 or a negative errno. */
static void count_end(struct worker *w, int ret)
{
	atomic_fetch_add_explicit(ret ? &w->s->failed : &w->s->answered, 1, memory_order_relaxed);
}

/* Frees what has arrived, or never will. */
static void reap(struct worker *w)
{
	for (unsigned i = 0; i < w->count;) {
		struct sending *one = &w->sending[i];
		int ret = ripc_sent(w->s->service, one->token, 0);

		if (ret == -EAGAIN) {
			i++;
			continue;
		}
		count_end(w, ret);
		answer_free(w->s, &one->answer);
		*one = w->sending[--w->count];
	}
}

static bool has_room(struct worker *w, uint32_t to)
{
	unsigned of_one = 0;

	for (unsigned i = 0; i < w->count; i++)
		of_one += w->sending[i].to == to;
	return w->count < SERVER_SENDING_MAX && of_one < SERVER_SENDING_OF_ONE;
}

static void serve(struct worker *w, const struct ripc_message *m)
{
	struct sending *one = &w->sending[w->count];
	struct ripc_item items[2];

	atomic_fetch_add_explicit(&w->s->requests, 1, memory_order_relaxed);
	if (m->count != 1 || m->items[0].bytes > SERVER_REQUEST_MAX || !has_room(w, m->from) ||
	    answer_make(w->s, m->items[0].data, m->items[0].bytes, &one->answer)) {
		atomic_fetch_add_explicit(&w->s->refused, 1, memory_order_relaxed);
		return;
	}
	one->to = m->from;
	items[0] = (struct ripc_item){ one->answer.head, one->answer.head_bytes };
	items[1] = (struct ripc_item){ one->answer.content, one->answer.content_bytes };
	if (ripc_send_long(w->s->service, m->from, items, 2, NULL, 0, &one->token)) {
		atomic_fetch_add_explicit(&w->s->failed, 1, memory_order_relaxed);
		answer_free(w->s, &one->answer);
		return;
	}
	w->count++;
}

/* What is still on its way gets a second, for the clients that are there. */
static void finish(struct worker *w)
{
	for (unsigned i = 0; i < w->count; i++) {
		struct sending *one = &w->sending[i];
		int ret = ripc_sent(w->s->service, one->token, i ? 0 : 1000);

		count_end(w, ret);
		if (ret == -EAGAIN)
			continue; /* the end of the service ends it, its memory goes with
				   * the instance */
		answer_free(w->s, &one->answer);
	}
}

void server_work(struct server *s)
{
	struct worker *w = calloc(1, sizeof(*w));
	struct ripc_message m;

	if (!w)
		return;
	w->s = s;
	while (!atomic_load(&s->stop)) {
		int ret = ripc_receive(s->service, &m, w->count ? REAP_MS : -1);

		if (!ret && !atomic_load(&s->stop))
			serve(w, &m);
		if (!ret)
			ripc_release(&m);
		else if (ret != -EAGAIN)
			break;
		reap(w);
	}
	finish(w);
	free(w);
}
