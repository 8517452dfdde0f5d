/* SPDX-License-Identifier: BSD-2-Clause */
#include "ripc/find/resolver_private.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Thread_local char sentence[512];

static int refuse(const char **why, int ret, const char *what, const char *text)
{
	snprintf(sentence, sizeof(sentence), "resolver \"%s\": %s", text, what);
	*why = sentence;
	return ret;
}

/* "HOST:PORT", an IPv6 address in brackets. May ask the name service. */
static int rendezvous_parse(const char *text, union address *out, const char **why)
{
	struct addrinfo hints = { .ai_socktype = SOCK_DGRAM, .ai_flags = AI_ADDRCONFIG |
				  AI_NUMERICSERV }, *found;
	const char *colon = strrchr(text, ':');
	char host[256], reason[300];
	size_t length = colon ? (size_t)(colon - text) : 0;
	unsigned long port;
	char *end;
	int ret;

	if (!length || length >= sizeof(host))
		return refuse(why, -EINVAL, "not of the form rendezvous:HOST:PORT", text);
	port = strtoul(colon + 1, &end, 10);
	if (*end || !port || port > UINT16_MAX || colon[1] < '0' || colon[1] > '9')
		return refuse(why, -EINVAL, "the port is not from 1 to 65535", text);
	if (text[0] == '[' && text[length - 1] == ']') {
		text++;
		length -= 2;
	}
	memcpy(host, text, length);
	host[length] = 0;
	if (address_parse(host, (uint16_t)port, out))
		return 0;
	ret = getaddrinfo(host, colon + 1, &hints, &found);
	if (ret) {
		snprintf(reason, sizeof(reason), "the host is not found: %s", gai_strerror(ret));
		return refuse(why, -EHOSTUNREACH, reason, text);
	}
	memcpy(out, found->ai_addr, found->ai_addrlen < sizeof(*out) ?
	       found->ai_addrlen : sizeof(*out));
	freeaddrinfo(found);
	return 0;
}

static int method_parse(struct method *m, char *text, const char **why)
{
	char reason[400];
	int ret;

	if (!strcmp(text, "multicast")) {
		m->kind = METHOD_MULTICAST;
		return 0;
	}
	if (!strcmp(text, "broadcast")) {
		m->kind = METHOD_BROADCAST;
		return 0;
	}
	if (!strncmp(text, "hosts:", 6)) {
		m->kind = METHOD_HOSTS;
		ret = hosts_open(&m->hosts, text + 6, reason, sizeof(reason));
		return ret ? refuse(why, ret, reason, text) : 0;
	}
	if (!strncmp(text, "rendezvous:", 11)) {
		m->kind = METHOD_RENDEZVOUS;
		return rendezvous_parse(text + 11, &m->rendezvous, why);
	}
	return refuse(why, -EINVAL, "not one of multicast, broadcast, hosts:FILE, "
		      "rendezvous:HOST:PORT", text);
}

int methods_parse(struct resolver *r, const char *how, const char **why)
{
	char *copy = strdup(how), *at = copy, *text;
	int ret = 0;

	if (!copy) {
		*why = "no memory";
		return -ENOMEM;
	}
	while (!ret && (text = strsep(&at, ","))) {
		if (r->method_count == METHODS_MAX)
			ret = refuse(why, -EINVAL, "more than 8 ways", how);
		else
			ret = method_parse(&r->methods[r->method_count], text, why);
		r->method_count += !ret;
	}
	free(copy);
	if (ret)
		methods_free(r);
	return ret;
}

void methods_free(struct resolver *r)
{
	for (unsigned i = 0; i < r->method_count; i++)
		hosts_close(r->methods[i].hosts);
	r->method_count = 0;
}

bool methods_have(const struct resolver *r, enum method_kind kind)
{
	for (unsigned i = 0; i < r->method_count; i++)
		if (r->methods[i].kind == kind)
			return true;
	return false;
}

static void send_one(struct resolver *r, const struct method *m,
		     const struct packet_resolve *p, const uint8_t *bytes, size_t length)
{
	union address hosts[HOSTS_ASKED_MAX];
	unsigned hosts_count;

	switch (m->kind) {
	case METHOD_MULTICAST:
		net_send_group(&r->net, NET_MULTICAST, bytes, length);
		return;
	case METHOD_BROADCAST:
		net_send_group(&r->net, NET_BROADCAST, bytes, length);
		return;
	case METHOD_HOSTS:
		hosts_count = hosts_find(m->hosts, p->id, p->name, false, hosts,
					 HOSTS_ASKED_MAX);
		for (unsigned i = 0; i < hosts_count; i++)
			net_send(&r->net, -1, &hosts[i], bytes, length);
		return;
	case METHOD_RENDEZVOUS:
		net_send(&r->net, -1, &m->rendezvous, bytes, length);
		return;
	}
}

void methods_send(struct resolver *r, unsigned methods, const struct packet_resolve *p)
{
	uint8_t bytes[PACKET_RESOLVE_BYTES_MAX];
	const size_t length = packet_resolve_encode(p, &r->config.key, bytes);

	if (methods_have(r, METHOD_MULTICAST) || methods_have(r, METHOD_BROADCAST))
		net_scan(&r->net, true, resolver_now_ns());
	for (unsigned i = 0; i < methods; i++)
		send_one(r, &r->methods[i], p, bytes, length);
}

bool methods_sent_to(struct resolver *r, uint32_t id, const char *name,
		     const union address *from)
{
	for (unsigned i = 0; i < r->method_count; i++) {
		const struct method *m = &r->methods[i];

		if (m->kind == METHOD_HOSTS ? hosts_has(m->hosts, id, name, from) :
		    m->kind == METHOD_RENDEZVOUS ? address_same(&m->rendezvous, from, true) :
		    true)
			return true;
	}
	return false;
}

int methods_listen(struct resolver *r, uint32_t id, const char *name)
{
	union address at[HOSTS_ASKED_MAX];
	int ret = 0;

	for (unsigned i = 0; i < r->method_count; i++) {
		unsigned found;

		if (r->methods[i].kind != METHOD_HOSTS)
			continue;
		/* By its number, and where the file has none, by its name. */
		found = hosts_find(r->methods[i].hosts, id, "", true, at, HOSTS_ASKED_MAX);
		if (!found && name[0])
			found = hosts_find(r->methods[i].hosts, 0, name, true, at,
					   HOSTS_ASKED_MAX);
		for (unsigned k = 0; k < found; k++) {
			int got = net_listen(&r->net, &at[k]);

			if (got && got != -EADDRNOTAVAIL)
				ret = got;
		}
	}
	if (!ret)
		resolver_wake_thread(r);
	return ret;
}
