/* SPDX-License-Identifier: BSD-2-Clause */
/* The greeting of a client; see hello.h. */
#define LOG_ROOM "fabric"
#include "fabric/serve/hello.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "fabric/serve/nodes.h"
#include "fabric/serve/out.h"
#include "util/log.h"
#include "util/user.h"

/* `h` NULL: at any host. */
static bool may_plug_in(const struct serve *s, uid_t uid, const struct serve_host *h)
{
	unsigned port;

	if (user_is_ours_or_root(uid))
		return true;
	for (unsigned i = 0; i < s->set.user_count; i++) {
		const struct serve_user *u = &s->set.users[i];

		if (u->uid == uid && user_is_known(uid) &&
		    (!h || !u->host || serve_nodes_find(s, u->host, &port) == h->node))
			return true;
	}
	return false;
}

void serve_hello_peer(struct serve_client *c)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (getsockopt(c->fd, SOL_SOCKET, SO_PEERCRED, &peer, &len))
		return;
	c->pid = peer.pid;
	c->uid = peer.uid;
	c->may_plug_in = may_plug_in(c->serve, peer.uid, NULL);
	c->may_change = user_is_ours_or_root(peer.uid);
}

static struct serve_host *find_host(struct serve_client *c, char *name)
{
	struct serve *s = c->serve;
	unsigned port;
	uint32_t node = serve_nodes_find(s, name, &port);
	struct serve_host *h;

	if (node == TOPOLOGY_NONE) {
		char hint[128];

		serve_out_refuse(c, -ENODEV, "the fabric '%s' has no host '%s'%s", s->set.name, name,
				 serve_nodes_hint(s, name, TOPOLOGY_HCA, hint, sizeof(hint)));
		return NULL;
	}
	if (!port)
		port = 1;
	if (s->topology->nodes[node].kind != TOPOLOGY_HCA) {
		serve_out_refuse(c, -ENODEV, "'%s' is a switch; processes plug into hosts", name);
		return NULL;
	}
	h = serve_nodes_host(s, node, (uint8_t)port);
	if (!h)
		serve_out_refuse(c, -ENODEV, "'%s': the adapter has ports 1 to %u", name,
				 s->topology->nodes[node].port_count);
	return h;
}

static struct plug_welcome describe(const struct serve *s, const struct serve_host *h)
{
	const struct topology_node *n = &s->topology->nodes[h->node];
	struct plug_welcome w = {
		.node_guid = n->guid, .system_guid = n->system_guid,
		.port_guid = n->ports[h->port].guid, .vendor_id = n->vendor_id,
		.device_id = n->device_id, .host_number = (uint32_t)(h - s->hosts) + 1,
		.port = h->port, .ports = n->port_count,
	};

	memcpy(w.description, n->name, strnlen(n->name, sizeof(w.description)));
	return w;
}

static void plug_in(struct serve_client *c, struct serve_host *h)
{
	struct plug_welcome w = describe(c->serve, h);

	if (!may_plug_in(c->serve, c->uid, h)) {
		serve_out_refuse(c, -EACCES, "user %u may not plug into the host '%s' of the fabric '%s'",
				 (unsigned)c->uid, c->serve->topology->nodes[h->node].id, c->serve->set.name);
		return;
	}
	if (h->client_count >= SERVE_CLIENTS_OF_HOST_MAX) {
		serve_out_refuse(c, -EUSERS, "%d processes are plugged into this host, more are not permitted",
				 SERVE_CLIENTS_OF_HOST_MAX);
		return;
	}
	c->host = h;
	c->stage = SERVE_PLUGGED;
	c->rest.sl = 0;
	c->serve->used_hosts += !h->client_count++;
	list_push(&h->clients, &c->in_host);
	serve_out_message(c, PLUG_WELCOME, 0, 0, &w, sizeof(w));
	serve_out_message(c, PLUG_PORT, 0, 0, &h->state, sizeof(h->state));
	log_debug("client %u (%s, process %d) plugs into %s", c->number, c->program, (int)c->pid,
		  c->serve->topology->nodes[h->node].id);
}

static void make_printable(char *p)
{
	for (; *p; p++)
		if (*p < ' ' || *p > '~')
			*p = '?';
}

void serve_hello(struct serve_client *c, const struct plug_hello *hello)
{
	char name[sizeof(hello->host) + 1] = "";
	struct serve_host *h;

	wheel_cancel(&c->serve->hellos, &c->timer);
	memcpy(name, hello->host, sizeof(hello->host));
	memcpy(c->program, hello->program, sizeof(c->program) - 1);
	make_printable(c->program);
	make_printable(name);
	c->purpose = hello->purpose;
	if (!c->may_plug_in) {
		serve_out_refuse(c, -EACCES,
				 "user %u may not use the fabric '%s'; busbar fabric run --allow-user permits it",
				 (unsigned)c->uid, c->serve->set.name);
	} else if (hello->version != PLUG_VERSION) {
		serve_out_refuse(c, -EPROTO, "the fabric speaks version %d of the protocol, this process %u",
				 PLUG_VERSION, hello->version);
	} else if (hello->purpose == PLUG_CONTROL) {
		c->stage = SERVE_ASKING;
		serve_out_message(c, PLUG_WELCOME, 0, 0, &(struct plug_welcome){ 0 },
				  sizeof(struct plug_welcome));
		serve_out_message(c, PLUG_PORT, 0, 0, &(struct plug_port){ 0 },
				  sizeof(struct plug_port));
	} else if (hello->purpose > PLUG_CONTROL) {
		serve_out_refuse(c, -EPROTO, "purpose %u of a client is not known", hello->purpose);
	} else {
		h = find_host(c, name);
		if (h)
			plug_in(c, h);
	}
}
