/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Certificates and tokens: loaded at the start, and again when their files are others,
 * while connections go on; see service.h.
 */
#define LOG_ROOM "gateway/http"
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "gateway/http/service.h"
#include "gateway/plugin/plugin.h"
#include "util/log.h"

static void times_of(const struct http_settings *s, struct timespec *cert,
		     struct timespec *key)
{
	struct stat st;

	memset(cert, 0, sizeof(*cert));
	memset(key, 0, sizeof(*key));
	if (!stat(s->ssl_cert, &st))
		*cert = st.st_mtim;
	if (!stat(s->ssl_private_key, &st))
		*key = st.st_mtim;
}

/* Of a message that begins with "cert", "key" or "ca". */
static enum http_setting setting_of(const char *error)
{
	return !strncmp(error, "key ", 4) ? HTTP_SSL_PRIVATE_KEY :
	       !strncmp(error, "ca ", 3)  ? HTTP_SSL_CA :
					    HTTP_SSL_CERT;
}

/* 0 or a negative errno; logs the key of the configuration that cannot be used. */
static int make_context(const struct http_server *s, struct tls_context **out)
{
	const struct tls_settings t = { .cert = s->settings->ssl_cert,
					.key = s->settings->ssl_private_key,
					.ca = s->settings->ssl_ca };
	char error[400];
	int ret = s->tls_ops->context_new(out, TLS_SERVER, &t, error, sizeof(error));

	if (ret == -ENOMEM)
		log_error("http: %s", error);
	else if (ret)
		log_error("%s%s", http_setting_name(s->settings, setting_of(error)),
			  error + strcspn(error, " "));
	return ret;
}

int http_certificates_load(struct http_server *s)
{
	if (!s->settings->ssl_cert)
		return 0;
#ifdef GATEWAY_HAVE_TLS
	s->tls_ops = plugin_symbol("http_tls", "http_tls");
	if (!s->tls_ops)
		return -ENOENT;
	times_of(s->settings, &s->cert_time, &s->key_time);
	return make_context(s, &s->tls);
#else
	log_error("%s: this build has no TLS, because libssl was not found",
		  http_setting_name(s->settings, HTTP_SSL_CERT));
	return -ENOTSUP;
#endif
}

static bool same(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

static void refresh_tokens(struct http_server *s)
{
	struct http_access *access;

	if (!s->settings->token_file || http_access_new(&access, s->settings))
		return;
	http_access_free(s->access);
	s->access = access;
	log_info("http: the tokens were read again");
}

void http_certificates_refresh(struct http_server *s, bool force)
{
	struct tls_context *next;
	struct timespec cert, key;

	if (force)
		refresh_tokens(s);
	if (!s->tls)
		return;
	times_of(s->settings, &cert, &key);
	if (!force && same(&cert, &s->cert_time) && same(&key, &s->key_time))
		return;
	s->cert_time = cert;
	s->key_time = key;
	/* One of both may be new already: the old pair stays until they fit. */
	if (make_context(s, &next))
		return;
	s->tls_ops->context_free(s->tls);
	s->tls = next;
	log_info("http: the certificate was loaded again");
}
