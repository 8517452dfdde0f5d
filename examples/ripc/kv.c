/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A store of keys and values.
 *
 *	ripc-kv NAME serve             until Ctrl-C
 *	ripc-kv NAME put KEY           the value is read from the standard input
 *	ripc-kv NAME get KEY           and written to the standard output
 *	ripc-kv NAME remove KEY
 *
 * A question has two or three items: "put", "get" or "remove"; the key; the value. An
 * answer has two: "ok" or what is wrong; the value. Either is long if it does not fit into
 * a packet. For `get` the client offers a buffer, into which a long value is written where
 * it will be read. The store keeps received messages just as they came: no byte of a value is
 * copied on its way into the store or out of it, but for short ones.
 */
#include <busbar/ripc.h>

#include <err.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VALUE_MAX ((size_t)16 << 20)
#define WAIT_MS 5000
#define LOOK_MS 200

struct entry {
	struct entry *next;
	char *key, *value;      /* value: of ripc_alloc(), or an item of `kept` */
	size_t key_bytes, value_bytes;
	struct ripc_message kept;
};

static struct entry *entries;
static volatile sig_atomic_t stopped;

static void on_signal(int number)
{
	(void)number;
	stopped = 1;
}

static struct ripc_item text(const char *t)
{
	return (struct ripc_item){ (void *)(uintptr_t)t, strlen(t) };
}

static bool equals(const struct ripc_item *i, const char *t)
{
	return i->bytes == strlen(t) && !memcmp(i->data, t, i->bytes);
}

static int send_message(struct ripc_service *s, uint32_t to, const struct ripc_item *items,
			unsigned count, const struct ripc_item *returns, unsigned returns_count)
{
	int ret = ripc_send_short(s, to, items, count, returns, returns_count);

	return ret == -EMSGSIZE ? ripc_send_long(s, to, items, count, returns, returns_count,
						 NULL) : ret;
}

/* ---- the store ---- */

static struct entry **find(const struct ripc_item *key)
{
	struct entry **at = &entries;

	while (*at && ((*at)->key_bytes != key->bytes ||
		       memcmp((*at)->key, key->data, key->bytes)))
		at = &(*at)->next;
	return at;
}

static void drop(struct entry **at)
{
	struct entry *e = *at;

	*at = e->next;
	if (e->kept.count)
		ripc_release(&e->kept);
	else
		ripc_free(NULL, e->value);
	free(e->key);
	free(e);
}

/* A long message is kept, so that its memory holds the value. A short one lies in a receive
 * of the connection, of which there are few: its value is copied. */
static const char *put(struct ripc_message *m)
{
	const struct ripc_item *key = &m->items[1], *value = &m->items[2];
	struct entry *e = calloc(1, sizeof(*e)), **old = find(key);

	if (e && (e->key = malloc(key->bytes ? key->bytes : 1)))
		e->value = m->is_long ? value->data : ripc_alloc(NULL, value->bytes);
	if (!e || !e->key || (!e->value && value->bytes)) {
		if (e)
			free(e->key);
		free(e);
		return "no memory";
	}
	memcpy(e->key, key->data, key->bytes);
	e->key_bytes = key->bytes;
	e->value_bytes = value->bytes;
	if (m->is_long) {
		e->kept = *m;
		m->count = 0;
	} else if (value->bytes) {
		memcpy(e->value, value->data, value->bytes);
	}
	if (*old)
		drop(old);
	e->next = entries;
	entries = e;
	return "ok";
}

static void answer(struct ripc_service *s, struct ripc_message *m)
{
	struct ripc_item out[2] = { { NULL, 0 }, { NULL, 0 } };
	const char *status = "a question is put, get or remove, and a key";
	struct entry **e = m->count > 1 ? find(&m->items[1]) : NULL;

	if (e && m->count == 3 && equals(&m->items[0], "put")) {
		status = put(m);
	} else if (e && (equals(&m->items[0], "get") || equals(&m->items[0], "remove"))) {
		status = *e ? "ok" : "there is no such key";
		if (*e && equals(&m->items[0], "get"))
			out[1] = (struct ripc_item){ (*e)->value, (*e)->value_bytes };
		else if (*e)
			drop(e);
	}
	out[0] = text(status);
	if (send_message(s, m->from, out, 2, NULL, 0))
		warnx("service %#x: %s", m->from, ripc_error());
}

static int serve(const char *name)
{
	struct ripc_service *s;
	struct ripc_message m;

	if (ripc_service_open(NULL, 0, name, &s))
		errx(1, "%s", ripc_error());
	printf("serving as %s\n", name);
	fflush(stdout);
	while (!stopped) {
		int ret = ripc_receive(s, &m, LOOK_MS);

		if (ret == -EAGAIN)
			continue;
		if (ret)
			errx(1, "%s", ripc_error());
		answer(s, &m);
		if (m.count) /* else it is kept */
			ripc_release(&m);
	}
	while (entries)
		drop(&entries);
	ripc_service_close(s);
	return 0;
}

/* ---- the client ---- */

static int ask(const char *name, const char *what, const char *key)
{
	struct ripc_item value = { NULL, VALUE_MAX }, items[3] = { text(what), text(key) };
	bool is_put = !strcmp(what, "put"), good;
	struct ripc_service *s;
	struct ripc_message m;
	uint32_t to;

	if (ripc_service_open(NULL, 0, NULL, &s) || ripc_find(NULL, name, -1, &to))
		errx(1, "%s", ripc_error());
	value.data = ripc_alloc(NULL, VALUE_MAX);
	if (!value.data)
		errx(1, "%s", ripc_error());
	if (is_put) {
		items[2].data = value.data;
		items[2].bytes = fread(value.data, 1, VALUE_MAX, stdin);
		if (ferror(stdin) || !feof(stdin))
			errx(1, "the value cannot be read, or has more than %zu bytes", VALUE_MAX);
	}
	if (send_message(s, to, items, is_put ? 3 : 2, &value, is_put ? 0 : 1) ||
	    ripc_receive(s, &m, WAIT_MS))
		errx(1, "%s", ripc_error());
	good = m.count == 2 && equals(&m.items[0], "ok");
	if (!good)
		warnx("%s: %.*s", key, m.count ? (int)m.items[0].bytes : 0,
		      m.count ? (const char *)m.items[0].data : "");
	else if (fwrite(m.items[1].data, 1, m.items[1].bytes, stdout) != m.items[1].bytes ||
		 fflush(stdout))
		err(1, "writing");
	ripc_release(&m);
	ripc_service_close(s);
	return !good;
}

int main(int argc, char *argv[])
{
	struct sigaction end = { .sa_handler = on_signal };

	if (argc == 4 && (!strcmp(argv[2], "put") || !strcmp(argv[2], "get") ||
			  !strcmp(argv[2], "remove")))
		return ask(argv[1], argv[2], argv[3]);
	if (argc != 3 || strcmp(argv[2], "serve")) {
		fprintf(stderr, "usage: ripc-kv NAME serve | put KEY | get KEY | remove KEY\n");
		return 2;
	}
	sigaction(SIGINT, &end, NULL);
	sigaction(SIGTERM, &end, NULL);
	return serve(argv[1]);
}
