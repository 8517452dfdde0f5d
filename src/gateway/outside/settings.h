/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Settings that several node-types of servers have: the group `ssl`, with one set of keys
 * (and the names that VILLASnode gives them in its node-types), and passwords, which may stand
 * in a file.
 */
#ifndef GATEWAY_OUTSIDE_SETTINGS_H
#define GATEWAY_OUTSIDE_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>

#include "gateway/config/config.h"

struct outside_tls {
	bool enabled;
	/* PEM files; NULL: without. `ca` NULL: the authorities of the system. */
	const char *ca, *ca_path, *cert, *key;
	bool verify;             /* the server's certificate */
	bool verify_host;        /* and that it is of the server's name */
	const char *server_name; /* in place of the host's; NULL: that */
	const char *ciphers;     /* of TLS 1.2, as OpenSSL names them; NULL: its own choice */
	const char *version;     /* the lowest: "1.2" or "1.3"; NULL: 1.2 */
	const struct tls_ops *ops; /* of outside_tls_find() */
};

/*
 * From key `ssl` of `cfg` (NULL or absent: not enabled; with `enabled_by_default`, the
 * address says that TLS is used). The texts live as long as the configuration. 0, or -EINVAL
 * after config_fail(): a file that cannot be read is one, too.
 */
int outside_tls_parse(struct outside_tls *t, struct config *c, const json_t *cfg,
		      bool enabled_by_default);

/* Finds the module with TLS, if it is enabled, for outside_stream.h. 0, or -EINVAL after
 * config_fail(). */
int outside_tls_find(struct outside_tls *t, struct config *c, const json_t *cfg);

/* The keys of the group, for OUTSIDE_TLS_KEY. */
#define OUTSIDE_TLS_KEYS 24
extern const struct config_key outside_tls_keys[OUTSIDE_TLS_KEYS];

#define OUTSIDE_TLS_KEY(field) \
	{ "ssl", CONFIG_JSON, field, .group = outside_tls_keys, .group_count = OUTSIDE_TLS_KEYS, \
	  .help = "TLS: { enabled, ca, ca_path, cert, key, verify, verify_host, server_name, ciphers, version }" }

/*
 * The texts of a key that is one text or a list of texts (form CONFIG_TEXTS): fills out[], which
 * has room for `max`, and sets *count; none where `given` is NULL or null. `what`: "a topic", for
 * the message. The texts live as long as the configuration. 0, or -EINVAL after config_fail().
 */
int outside_texts(struct config *c, const json_t *at, const char *key, const json_t *given,
		  const char *what, const char **out, unsigned max, unsigned *count);

#define OUTSIDE_SECRET_MAX 4096

/*
 * A password: the first line of `file`, or else `value`; both may be NULL, then "" is
 * returned. Read anew at each attempt to connect. Returns buf, or NULL with the reason in `why`.
 */
const char *outside_secret(const char *value, const char *file,
			   char buf[OUTSIDE_SECRET_MAX], char *why, size_t size);

/* A password given as a text and as a file is an error. 0 or -EINVAL, reported. */
int outside_secret_check(struct config *c, const json_t *cfg, const char *key,
			 const char *file_key);

/* Warns that the password `key` of `cfg` would go to `host` in plain text, unless that is this
 * host. For a connection without TLS. */
void outside_warn_plain(struct config *c, const json_t *cfg, const char *key, const char *host);

/* A URL without its password: "amqp://user:...@host/". Returns buf. */
const char *outside_url_shown(const char *url, char *buf, size_t size);

#endif
