/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CURVE, the encryption of ZeroMQ (rfc.zeromq.org, 25 and 26): the keys of the sockets, and the
 * list of clients that may connect, which the library asks for by ZAP (27).
 */
#define LOG_ROOM "gateway/zeromq"
#include "gateway/node/zeromq/zeromq.h"

#include <errno.h>
#include <string.h>

#include "util/clock.h"
#include "util/log.h"

#define ZAP_ADDRESS "inproc://zeromq.zap.01"
#define ZAP_DOMAIN "busbar"
/* Of a question: version, id, domain, address, identity, mechanism, key. */
#define ZAP_FRAMES 7
/* Questions that are answered before others have their turn. */
#define ZAP_MAX 64

static const char *const roles[] = { "binder", "server", "client", NULL };

#define OFFSET(field) offsetof(struct zeromq_curve, field)

const struct config_key zeromq_curve_keys[ZEROMQ_CURVE_KEYS] = {
	{ "enabled", CONFIG_BOOL, OFFSET(enabled), "true", .help = "CURVE is used" },
	{ "public_key", CONFIG_STRING, OFFSET(public_key),
	  .help = "Public key of the pair; of a client without server_key also the server's" },
	{ "secret_key", CONFIG_STRING, OFFSET(secret_key),
	  .help = "Secret key of the pair; better secret_key_file" },
	{ "secret_key_file", CONFIG_STRING, OFFSET(secret_key_file),
	  .help = "File whose first line is the secret key" },
	{ "server_key", CONFIG_STRING, OFFSET(server_key),
	  .help = "Public key of the server, for a client" },
	{ "role", CONFIG_ENUM, OFFSET(role), "binder", .names = roles,
	  .help = "Which side is the server: binder (who binds), or this node is server or client" },
	{ "allow", CONFIG_JSON, OFFSET(allow_cfg),
	  .form = "'type': ['array', 'null'], 'minItems': 1, 'maxItems': 128, "
		  "'items': {'type': 'string', 'minLength': 40, 'maxLength': 40}",
	  .help = "List of public keys of the clients that may connect; without it any" },
};

static bool is_server(const struct zeromq_node *m, const struct zeromq_side *side)
{
	return m->curve.role == ZEROMQ_ROLE_BINDER ? side->bind :
						      m->curve.role == ZEROMQ_ROLE_SERVER;
}

/* ---- settings ---- */

static bool is_key(const char *key)
{
	unsigned char bytes[ZEROMQ_KEY_BYTES];
	bool good = strlen(key) == ZEROMQ_KEY_LEN && zmq_z85_decode(bytes, key);

	explicit_bzero(bytes, sizeof(bytes));
	return good;
}

static int check_key(struct config *c, const json_t *group, const char *name, const char *key)
{
	if (!key || is_key(key))
		return 0;
	config_fail(c, group, name, "is no key: expected %d characters, as busbar zmq-keygen prints them",
		    ZEROMQ_KEY_LEN);
	return -EINVAL;
}

static int parse_allow(struct zeromq_curve *v, struct config *c, const json_t *group)
{
	size_t count = json_array_size(v->allow_cfg);

	if (!v->allow_cfg || json_is_null(v->allow_cfg))
		return 0;
	if (!json_is_array(v->allow_cfg) || !count || count > ZEROMQ_ALLOWED_MAX) {
		config_fail(c, group, "allow", "expected a list of 1 to %d public keys",
			    ZEROMQ_ALLOWED_MAX);
		return -EINVAL;
	}
	for (size_t i = 0; i < count; i++) {
		const char *key = json_string_value(json_array_get(v->allow_cfg, i));

		if (check_key(c, group, "allow", key ? key : ""))
			return -EINVAL;
		zmq_z85_decode(v->allow[v->allow_count++], key);
	}
	return 0;
}

/* Keys that no side of the node uses are errors, and so are those that are missing. */
static int check_sides(struct zeromq_node *m, struct config *c, const json_t *group)
{
	const struct zeromq_side *const sides[] = { &m->in, &m->out };
	const struct zeromq_curve *v = &m->curve;
	bool server = false, client = false, has_secret = v->secret_key || v->secret_key_file;

	for (int i = 0; i < 2; i++)
		if (sides[i]->url_count)
			*(is_server(m, sides[i]) ? &server : &client) = true;
	if (server && !has_secret)
		config_fail(c, group, "secret_key", "the node is a server of CURVE and needs one, or a secret_key_file");
	else if (client && !v->server_key && !v->public_key)
		config_fail(c, group, "server_key", "the node is a client of CURVE and needs the server's public key");
	else if (!client && server && v->server_key)
		config_fail(c, group, "server_key", "no direction of the node is a client of CURVE");
	else if (!server && client && v->allow_count)
		config_fail(c, group, "allow", "no direction of the node is a server of CURVE");
	else if (v->server_key && v->public_key && !has_secret)
		config_fail(c, group, "public_key", "is given together with its secret key");
	else
		return 0;
	return -EINVAL;
}

/* The public key of a secret one, compared with the one that is given. */
static bool is_pair(const struct zeromq_curve *v, const char *secret, char public[ZEROMQ_KEY_SIZE])
{
	return !zmq_curve_public(public, secret) &&
	       (!v->public_key || !strcmp(v->public_key, public));
}

int zeromq_curve_parse(struct zeromq_node *m, struct config *c, json_t *cfg)
{
	struct zeromq_curve *v = &m->curve;
	char public[ZEROMQ_KEY_SIZE];
	int ret;

	if (!m->curve_cfg || json_is_null(m->curve_cfg))
		return 0;
	if (!json_is_object(m->curve_cfg)) {
		config_fail(c, cfg, "curve", "expected a group");
		return -EINVAL;
	}
	if (config_unpack(c, m->curve_cfg, zeromq_curve_keys, ZEROMQ_CURVE_KEYS, v, NULL, 0))
		return -EINVAL;
	ret = check_key(c, m->curve_cfg, "public_key", v->public_key);
	ret = check_key(c, m->curve_cfg, "secret_key", v->secret_key) ?: ret;
	ret = check_key(c, m->curve_cfg, "server_key", v->server_key) ?: ret;
	ret = outside_secret_check(c, m->curve_cfg, "secret_key", "secret_key_file") ?: ret;
	ret = parse_allow(v, c, m->curve_cfg) ?: ret;
	if (!v->enabled || ret)
		return ret;
	if (m->pattern == ZEROMQ_RADIODISH) {
		config_fail(c, cfg, "curve", "is not there for the pattern radiodish");
		return -EINVAL;
	}
	if (!zmq_has("curve")) {
		config_fail(c, cfg, "curve", "the installed libzmq was built without CURVE");
		return -EINVAL;
	}
	if (v->secret_key && !is_pair(v, v->secret_key, public)) {
		config_fail(c, m->curve_cfg, "public_key", "is not the one of secret_key");
		return -EINVAL;
	}
	return check_sides(m, c, m->curve_cfg);
}

/* ---- sockets ---- */

/* The pair of the node: the configured one, or for a client without one a temporary one. */
static int make_pair(struct zeromq_node *m, char public[ZEROMQ_KEY_SIZE],
		     char secret[ZEROMQ_KEY_SIZE])
{
	const struct zeromq_curve *v = &m->curve;
	struct outside *o = &m->outside;
	char buf[OUTSIDE_SECRET_MAX];
	const char *key;
	int ret = 0;

	if (!v->secret_key && !v->secret_key_file)
		return zmq_curve_keypair(public, secret) ?
			outside_fail(o, -errno, "no key pair: %s", zmq_strerror(errno)) : 0;
	key = outside_secret(v->secret_key, v->secret_key_file, buf, o->why, sizeof(o->why));
	if (!key)
		ret = -EACCES;
	else if (!is_key(key))
		ret = outside_fail(o, -EINVAL, "the first line of %s is no secret key",
				   v->secret_key_file);
	else if (!is_pair(v, key, public))
		ret = outside_fail(o, -EINVAL, "curve.public_key is not the one of the secret key");
	else
		memcpy(secret, key, ZEROMQ_KEY_SIZE);
	explicit_bzero(buf, sizeof(buf));
	return ret;
}

int zeromq_curve_set(struct zeromq_node *m, struct zeromq_side *side)
{
	const struct zeromq_curve *v = &m->curve;
	const char *server = v->server_key ? v->server_key : v->public_key;
	char public[ZEROMQ_KEY_SIZE] = "", secret[ZEROMQ_KEY_SIZE] = "";
	int one = 1, ret, rc;

	/* With a domain, the library refuses peers of ZeroMQ 2 and 3, also where nobody answers for it.
	 * Libzmq 4.3.4 ends the process when such a peer greets a socket that is just being closed. */
	rc = zmq_setsockopt(side->socket, ZMQ_ZAP_DOMAIN, ZAP_DOMAIN, strlen(ZAP_DOMAIN));
	if (!v->enabled)
		return rc ? outside_fail(&m->outside, -errno, "a socket: %s", zmq_strerror(errno)) : 0;
	ret = make_pair(m, public, secret);
	if (ret)
		return ret;
	rc = rc ?: zmq_setsockopt(side->socket, ZMQ_CURVE_SECRETKEY, secret, sizeof(secret));
	explicit_bzero(secret, sizeof(secret));
	if (is_server(m, side)) {
		rc = rc ?: zmq_setsockopt(side->socket, ZMQ_CURVE_SERVER, &one, sizeof(one));
	} else {
		rc = rc ?: zmq_setsockopt(side->socket, ZMQ_CURVE_PUBLICKEY, public, sizeof(public));
		rc = rc ?: zmq_setsockopt(side->socket, ZMQ_CURVE_SERVERKEY, server,
					  ZEROMQ_KEY_SIZE);
	}
	return rc ? outside_fail(&m->outside, -errno, "CURVE: %s", zmq_strerror(errno)) : 0;
}

/* ---- the list of clients ---- */

int zeromq_zap_open(struct zeromq_node *m)
{
	size_t size = sizeof(m->zap_fd);

	if (!m->curve.enabled || !m->curve.allow_count)
		return 0;
	m->zap = zmq_socket(m->context, ZMQ_REP);
	if (!m->zap || zmq_bind(m->zap, ZAP_ADDRESS) ||
	    zmq_getsockopt(m->zap, ZMQ_FD, &m->zap_fd, &size))
		return outside_fail(&m->outside, -errno, "list of clients: %s",
				    zmq_strerror(errno));
	return 0;
}

static bool frame_is(zmq_msg_t *frame, const char *text)
{
	return zmq_msg_size(frame) == strlen(text) &&
	       !memcmp(zmq_msg_data(frame), text, strlen(text));
}

static bool is_allowed(const struct zeromq_node *m, zmq_msg_t frames[], int count)
{
	if (count != ZAP_FRAMES || !frame_is(&frames[0], "1.0") ||
	    !frame_is(&frames[2], ZAP_DOMAIN) || !frame_is(&frames[5], "CURVE") ||
	    zmq_msg_size(&frames[6]) != ZEROMQ_KEY_BYTES)
		return false;
	for (unsigned i = 0; i < m->curve.allow_count; i++)
		if (!memcmp(m->curve.allow[i], zmq_msg_data(&frames[6]), ZEROMQ_KEY_BYTES))
			return true;
	return false;
}

/* At most once a second, for such a client tries again. */
static void say_foreign(struct zeromq_node *m, zmq_msg_t frames[], int count)
{
	char key[ZEROMQ_KEY_SIZE] = "?";
	uint64_t now = clock_now_ns();

	if (count != ZAP_FRAMES || now < m->said_ns)
		return;
	m->said_ns = now + NSEC_PER_SEC;
	if (zmq_msg_size(&frames[6]) == ZEROMQ_KEY_BYTES)
		zmq_z85_encode(key, zmq_msg_data(&frames[6]), ZEROMQ_KEY_BYTES);
	log_info("node %s: the client %.*s with the key %s is not in curve.allow",
		 m->outside.node->name, (int)MIN(zmq_msg_size(&frames[3]), (size_t)60),
		 (const char *)zmq_msg_data(&frames[3]), key);
}

void zeromq_zap_answer(struct zeromq_node *m)
{
	zmq_msg_t frames[ZAP_FRAMES];

	m->zap_left = false;
	for (int i = 0; i < ZAP_MAX; i++) {
		int count = zeromq_frames_take(m->zap, frames, ZAP_FRAMES);
		bool good;

		if (count <= 0)
			return;
		good = is_allowed(m, frames, count);
		if (!good)
			say_foreign(m, frames, count);
		zmq_send(m->zap, "1.0", 3, ZMQ_SNDMORE | ZMQ_DONTWAIT);
		zmq_send(m->zap, count > 1 ? zmq_msg_data(&frames[1]) : "",
			 count > 1 ? zmq_msg_size(&frames[1]) : 0, ZMQ_SNDMORE | ZMQ_DONTWAIT);
		zmq_send(m->zap, good ? "200" : "400", 3, ZMQ_SNDMORE | ZMQ_DONTWAIT);
		zmq_send(m->zap, "", 0, ZMQ_SNDMORE | ZMQ_DONTWAIT);
		zmq_send(m->zap, "", 0, ZMQ_SNDMORE | ZMQ_DONTWAIT);
		zmq_send(m->zap, "", 0, ZMQ_DONTWAIT);
		zeromq_frames_close(frames, count, ZAP_FRAMES);
	}
	m->zap_left = true;
}
