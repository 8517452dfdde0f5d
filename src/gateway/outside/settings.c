/* SPDX-License-Identifier: BSD-2-Clause */
/* Settings of TLS and passwords; see settings.h. */
#include "gateway/outside/settings.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "gateway/plugin/plugin.h"
#include "util/container_of.h"

#define NAMES_MAX 4 /* of a key */

/* A key and the other names that it has in files of VILLASnode. */
struct tls_group {
	bool enabled, insecure, verify, verify_peer, verify_host, verify_hostname;
	const char *ca, *cafile, *ca_cert, *cacert;
	const char *ca_path, *capath, *cacertdir;
	const char *cert, *certfile, *client_cert;
	const char *key, *keyfile, *client_key;
	const char *server_name, *ciphers, *cipher, *version, *tls_version;
};

#define FIELD(field) offsetof(struct tls_group, field)

const struct config_key outside_tls_keys[OUTSIDE_TLS_KEYS] = {
	{ "enabled", CONFIG_BOOL, FIELD(enabled), "true", .help = "TLS is used" },
	{ "ca", CONFIG_STRING, FIELD(ca),
	  .help = "PEM file of authorities whose servers are trusted" },
	{ "cafile", CONFIG_STRING, FIELD(cafile), .help = "The same as ca" },
	{ "ca_cert", CONFIG_STRING, FIELD(ca_cert), .help = "The same as ca" },
	{ "cacert", CONFIG_STRING, FIELD(cacert), .help = "The same as ca" },
	{ "ca_path", CONFIG_STRING, FIELD(ca_path), .help = "Folder of authorities" },
	{ "capath", CONFIG_STRING, FIELD(capath), .help = "The same as ca_path" },
	{ "cacertdir", CONFIG_STRING, FIELD(cacertdir), .help = "The same as ca_path" },
	{ "cert", CONFIG_STRING, FIELD(cert), .help = "PEM file with a certificate of the node" },
	{ "certfile", CONFIG_STRING, FIELD(certfile), .help = "The same as cert" },
	{ "client_cert", CONFIG_STRING, FIELD(client_cert), .help = "The same as cert" },
	{ "key", CONFIG_STRING, FIELD(key), .help = "PEM file with the key of cert" },
	{ "keyfile", CONFIG_STRING, FIELD(keyfile), .help = "The same as key" },
	{ "client_key", CONFIG_STRING, FIELD(client_key), .help = "The same as key" },
	{ "verify", CONFIG_BOOL, FIELD(verify), "true",
	  .help = "The server's certificate is checked" },
	{ "verify_peer", CONFIG_BOOL, FIELD(verify_peer), "true", .help = "The same as verify" },
	{ "insecure", CONFIG_BOOL, FIELD(insecure), "false",
	  .help = "The certificate may be of another server: verify_host = false" },
	{ "verify_host", CONFIG_BOOL, FIELD(verify_host), "true",
	  .help = "The certificate has to be of the server's name" },
	{ "verify_hostname", CONFIG_BOOL, FIELD(verify_hostname), "true",
	  .help = "The same as verify_host" },
	{ "server_name", CONFIG_STRING, FIELD(server_name),
	  .help = "Name that the certificate has to be of, in place of the host's" },
	{ "ciphers", CONFIG_STRING, FIELD(ciphers), .help = "Ciphers of TLS 1.2, as OpenSSL names them" },
	{ "cipher", CONFIG_STRING, FIELD(cipher), .help = "The same as ciphers" },
	{ "version", CONFIG_STRING, FIELD(version), .help = "Lowest version: 1.2 or 1.3" },
	{ "tls_version", CONFIG_STRING, FIELD(tls_version), .help = "The same as version" },
};

/* The one of several names that is given; two are an error. */
static int choose(const char **out, const char *const given[NAMES_MAX], struct config *c,
		  const json_t *group, const char *key)
{
	*out = NULL;
	for (size_t i = 0; i < NAMES_MAX; i++) {
		if (given[i] && *out) {
			config_fail(c, group, key, "is given by two names");
			return -EINVAL;
		}
		if (given[i])
			*out = given[i];
	}
	return 0;
}

static int check_file(struct config *c, const json_t *group, const char *key, const char *path)
{
	int error;

	if (!path || !access(path, R_OK))
		return 0;
	error = errno;
	config_fail(c, group, key, "cannot read %s: %s", path, strerror(error));
	return -EINVAL;
}

static int set_version(struct outside_tls *t, struct config *c, const json_t *group)
{
	if (!t->version)
		return 0;
	if (!strncmp(t->version, "tlsv", 4))
		t->version += 4;
	if (!strcmp(t->version, "1.2") || !strcmp(t->version, "1.3"))
		return 0;
	config_fail(c, group, "version", "expected \"1.2\" or \"1.3\"");
	return -EINVAL;
}

int outside_tls_parse(struct outside_tls *t, struct config *c, const json_t *cfg,
		      bool enabled_by_default)
{
	const json_t *group = json_object_get(cfg, "ssl");
	struct tls_group g = { 0 };
	int ret = 0;

	*t = (struct outside_tls){ .enabled = enabled_by_default, .verify = true,
				   .verify_host = true };
	if (!group || json_is_null(group))
		return 0;
	if (!json_is_object(group)) {
		config_fail(c, cfg, "ssl", "expected a group");
		return -EINVAL;
	}
	if (config_unpack(c, group, outside_tls_keys, OUTSIDE_TLS_KEYS, &g, NULL, 0))
		return -EINVAL;
	t->enabled = g.enabled;
	t->verify = g.verify && g.verify_peer;
	t->verify_host = t->verify && g.verify_host && g.verify_hostname && !g.insecure;
	t->server_name = g.server_name;
#define CHOOSE(field, ...) \
	choose(&t->field, (const char *const[NAMES_MAX]){ __VA_ARGS__ }, c, group, #field)
	if (CHOOSE(ca, g.ca, g.cafile, g.ca_cert, g.cacert) |
	    CHOOSE(ca_path, g.ca_path, g.capath, g.cacertdir) |
	    CHOOSE(cert, g.cert, g.certfile, g.client_cert) |
	    CHOOSE(key, g.key, g.keyfile, g.client_key) |
	    CHOOSE(ciphers, g.ciphers, g.cipher) | CHOOSE(version, g.version, g.tls_version))
		return -EINVAL;
#undef CHOOSE
	if (!t->cert != !t->key) {
		config_fail(c, group, t->cert ? "cert" : "key", "cert and key are given together");
		ret = -EINVAL;
	}
	if (t->enabled && (check_file(c, group, "ca", t->ca) |
			   check_file(c, group, "ca_path", t->ca_path) |
			   check_file(c, group, "cert", t->cert) |
			   check_file(c, group, "key", t->key)))
		ret = -EINVAL;
	return set_version(t, c, group) ?: ret;
}

int outside_tls_find(struct outside_tls *t, struct config *c, const json_t *cfg)
{
	t->ops = t->enabled ? plugin_symbol("http_tls", "http_tls") : NULL;
	if (!t->enabled || t->ops)
		return 0;
	config_fail(c, cfg, "ssl", "TLS needs the module http_tls");
	return -EINVAL;
}

int outside_texts(struct config *c, const json_t *at, const char *key, const json_t *given,
		  const char *what, const char **out, unsigned max, unsigned *count)
{
	size_t n = json_is_array(given) ? json_array_size(given) : given && !json_is_null(given);

	*count = 0;
	for (size_t i = 0; i < n; i++) {
		const char *text = json_string_value(json_is_array(given) ?
							     json_array_get(given, i) : given);

		if (!text || i == max) {
			config_fail(c, at, key, "expected %s, or a list of %u at most", what, max);
			return -EINVAL;
		}
		out[(*count)++] = text;
	}
	return 0;
}

const char *outside_secret(const char *value, const char *file,
			   char buf[OUTSIDE_SECRET_MAX], char *why, size_t size)
{
	ssize_t len;
	int fd;

	buf[0] = 0;
	if (!file) {
		snprintf(buf, OUTSIDE_SECRET_MAX, "%s", value ? value : "");
		return buf;
	}
	/* A FIFO without a writer must not hold the node. */
	fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	len = fd < 0 ? -1 : read(fd, buf, OUTSIDE_SECRET_MAX - 1);
	if (len < 0)
		snprintf(why, size, "cannot read %s: %s", file, strerror(errno));
	if (fd >= 0)
		close(fd);
	if (len < 0)
		return NULL;
	buf[len] = 0;
	if (len == OUTSIDE_SECRET_MAX - 1 && !strpbrk(buf, "\r\n")) {
		snprintf(why, size, "the first line of %s is longer than %d bytes", file,
			 OUTSIDE_SECRET_MAX - 2);
		return NULL;
	}
	buf[strcspn(buf, "\r\n")] = 0;
	return buf;
}

int outside_secret_check(struct config *c, const json_t *cfg, const char *key,
			 const char *file_key)
{
	if (!json_object_get(cfg, key) || !json_object_get(cfg, file_key))
		return 0;
	config_fail(c, cfg, file_key, "%s and %s are not given together", key, file_key);
	return -EINVAL;
}

void outside_warn_plain(struct config *c, const json_t *cfg, const char *key, const char *host)
{
	if (!host || !strcmp(host, "localhost") || !strncmp(host, "127.", 4) ||
	    !strcmp(host, "::1") || !strcmp(host, "[::1]"))
		return;
	config_warn(c, cfg, key, "goes over the network in plain text; with `ssl` nobody can read it");
}

const char *outside_url_shown(const char *url, char *buf, size_t size)
{
	const char *host = strstr(url, "://"), *end, *at = NULL, *colon;

	host = host ? host + 3 : url;
	end = host + strcspn(host, "/?#");
	for (const char *p = host; p < end; p++)
		if (*p == '@')
			at = p;
	colon = at ? memchr(host, ':', (size_t)(at - host)) : NULL;
	if (colon)
		snprintf(buf, size, "%.*s:...%s", (int)(colon - url), url, at);
	else
		snprintf(buf, size, "%s", url);
	return buf;
}
