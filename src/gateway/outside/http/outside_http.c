/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests of HTTP without waiting, by the multi interface of libcurl; see outside_http.h. */
#include "gateway/outside/http/outside_http.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/clock.h"
#include "util/container_of.h"

#define MS UINT64_C(1000000)
/* Bytes of the heads of an answer, and of its text that messages show. */
#define HEAD_MAX 65536ul
#define SHOWN_MAX 200
/* Seconds that a server can ask for. */
#define LATER_MAX_S 300.0
#define LATER_S 1.0

int outside_http_type_start(struct services *services)
{
	return curl_global_init(CURL_GLOBAL_DEFAULT) ? -ENOMEM : 0;
}

int outside_http_type_stop(void)
{
	curl_global_cleanup();
	return 0;
}

/* ---- settings ---- */

static int check_url(struct config *c, const json_t *cfg, const char *key, const char *url)
{
	const char *host = strstr(url, "://");

	host = host ? host + 3 : "";
	if ((strncmp(url, "http://", 7) && strncmp(url, "https://", 8)) || !*host ||
	    strchr("/:?#@", *host)) {
		config_fail(c, cfg, key, "expected an address like \"http://host:port\" or \"https://host:port\"");
		return -EINVAL;
	}
	for (const char *p = url; *p; p++) {
		if (*p > ' ' && *p <= '~' && !strchr("?#\"<>\\^`{|}", *p))
			continue;
		config_fail(c, cfg, key, "an address holds no '%c' here", isprint((unsigned char)*p) ? *p : '?');
		return -EINVAL;
	}
	if (strlen(url) > OUTSIDE_HTTP_URL / 4) {
		config_fail(c, cfg, key, "it is too long");
		return -EINVAL;
	}
	return 0;
}

/* Of an address without TLS. */
static void warn_plain(struct config *c, const json_t *cfg, const char *key, const char *url,
		       const char *const secrets[])
{
	const char *host = strstr(url, "://") + 3, *end = host + strcspn(host, "/");
	const char *at = memrchr(host, '@', (size_t)(end - host)), *name = at ? at + 1 : host;
	char text[256];

	if (*name == '[')
		snprintf(text, sizeof(text), "%.*s", (int)strcspn(name + 1, "]"), name + 1);
	else
		snprintf(text, sizeof(text), "%.*s", (int)strcspn(name, ":/"), name);
	if (at && memchr(host, ':', (size_t)(at - host)))
		outside_warn_plain(c, cfg, key, text);
	for (; *secrets; secrets++)
		if (json_object_get(cfg, *secrets))
			outside_warn_plain(c, cfg, *secrets, text);
}

int outside_http_parse(struct outside_tls *tls, struct config *c, const json_t *cfg,
		       const char *key, const char *url, const char *const secrets[])
{
	const json_t *group = json_object_get(cfg, "ssl");
	bool https = !strncmp(url, "https:", 6);

	if (check_url(c, cfg, key, url) | outside_tls_parse(tls, c, cfg, https))
		return -EINVAL;
	if (tls->enabled != https) {
		config_fail(c, cfg, "ssl", "`%s` begins with %s", key, https ? "https" : "http");
		return -EINVAL;
	}
	if (!https)
		warn_plain(c, cfg, key, url, secrets);
	if (tls->server_name) {
		config_fail(c, group, "server_name",
			    "libcurl compares the certificate with the host of `%s` only", key);
		return -EINVAL;
	}
	return 0;
}

bool outside_http_append(char url[OUTSIDE_HTTP_URL], const char *before, const char *name)
{
	size_t len = strlen(url);
	char *text = curl_easy_escape(NULL, name, 0);
	int n = text ? snprintf(url + len, OUTSIDE_HTTP_URL - len, "%s%s", before, text) : -1;

	curl_free(text);
	return n >= 0 && (size_t)n < OUTSIDE_HTTP_URL - len;
}

/* ---- what libcurl asks to wait for ---- */

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *unused)
{
	struct outside_http *h = arg;
	unsigned i = 0;

	while (i < h->count && h->fds[i].fd != fd)
		i++;
	if (what == CURL_POLL_REMOVE) {
		if (i < h->count)
			h->fds[i] = h->fds[--h->count];
		return 0;
	}
	/* Two requests, each with two addresses that it tries, stay below. */
	if (i == ARRAY_SIZE(h->fds))
		return -1;
	if (i == h->count)
		h->count++;
	h->fds[i] = (struct pollfd){
		.fd = fd,
		.events = (short)((what & CURL_POLL_IN ? POLLIN : 0) |
				  (what & CURL_POLL_OUT ? POLLOUT : 0)),
	};
	return 0;
}

static int on_timer(CURLM *multi, long timeout_ms, void *arg)
{
	struct outside_http *h = arg;

	h->due_ns = timeout_ms < 0 ? UINT64_MAX : clock_now_ns() + (uint64_t)timeout_ms * MS;
	return 0;
}

/* ---- what libcurl tells about a request ---- */

static size_t on_body(char *data, size_t size, size_t count, void *arg)
{
	struct outside_http_call *call = arg;
	size_t len = size * count, kept = MIN(call->answer_len, call->http->keep_max);
	size_t more = MIN(len, call->http->keep_max - kept);

	call->answer_len += len;
	if (call->answer_len > call->http->answer_max)
		return 0;
	if (kept + more + 1 > call->answer_size) {
		size_t want = MAX(kept + more + 1, 2 * call->answer_size);
		char *answer = realloc(call->answer, want);

		if (!answer)
			return 0;
		call->answer = answer;
		call->answer_size = want;
	}
	memcpy(call->answer + kept, data, more);
	call->answer[kept + more] = '\0';
	return len;
}

static size_t on_head(char *data, size_t size, size_t count, void *arg)
{
	struct outside_http_call *call = arg;

	call->head_bytes += size * count;
	return call->head_bytes > HEAD_MAX ? 0 : size * count;
}

static int on_request(void *arg, char *peer, char *local, int peer_port, int local_port)
{
	struct outside_http_call *call = arg;

	call->attempts++;
	return CURL_PREREQFUNC_OK;
}

/* ---- connections ---- */

int outside_http_open(struct outside_http *h)
{
	h->count = 0;
	h->due_ns = UINT64_MAX;
	h->multi = curl_multi_init();
	if (!h->multi)
		return outside_fail(h->o, -ENOMEM, "%s", strerror(ENOMEM));
	curl_multi_setopt(h->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
	curl_multi_setopt(h->multi, CURLMOPT_SOCKETDATA, h);
	curl_multi_setopt(h->multi, CURLMOPT_TIMERFUNCTION, on_timer);
	curl_multi_setopt(h->multi, CURLMOPT_TIMERDATA, h);
	curl_multi_setopt(h->multi, CURLMOPT_MAXCONNECTS, 4L);
	return 0;
}

void outside_http_close(struct outside_http *h)
{
	curl_multi_cleanup(h->multi);
	h->multi = NULL;
	h->count = 0;
}

static CURLcode set_tls(CURL *easy, const struct outside_tls *t)
{
	CURLcode rc = CURLE_OK;

	if (!t->enabled)
		return rc;
	/* One authority that is named is the only one that is trusted. */
	if (t->ca || t->ca_path) {
		rc = curl_easy_setopt(easy, CURLOPT_CAINFO, t->ca);
		rc = rc ? rc : curl_easy_setopt(easy, CURLOPT_CAPATH, t->ca_path);
	}
	if (t->cert) {
		rc = rc ? rc : curl_easy_setopt(easy, CURLOPT_SSLCERT, t->cert);
		rc = rc ? rc : curl_easy_setopt(easy, CURLOPT_SSLKEY, t->key);
	}
	if (t->ciphers)
		rc = rc ? rc : curl_easy_setopt(easy, CURLOPT_SSL_CIPHER_LIST, t->ciphers);
	rc = rc ? rc : curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, t->verify ? 1L : 0L);
	rc = rc ? rc : curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, t->verify_host ? 2L : 0L);
	return rc ? rc : curl_easy_setopt(easy, CURLOPT_SSLVERSION,
					  t->version && !strcmp(t->version, "1.3") ?
						  (long)CURL_SSLVERSION_TLSv1_3 :
						  (long)CURL_SSLVERSION_TLSv1_2);
}

static CURLcode set_options(struct outside_http_call *call)
{
	struct outside_http *h = call->http;
	CURL *easy = call->easy;
	CURLcode rc = CURLE_OK;

#define SET(option, value) rc = rc ? rc : curl_easy_setopt(easy, option, value)
	SET(CURLOPT_NOSIGNAL, 1L);
	/* The end of the node does not wait for the search of a name. */
	SET(CURLOPT_QUICK_EXIT, 1L);
	SET(CURLOPT_PROTOCOLS_STR, "http,https");
	SET(CURLOPT_FOLLOWLOCATION, 0L);
	/* Else the environment would choose a proxy. */
	SET(CURLOPT_PROXY, "");
	SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	SET(CURLOPT_TCP_NODELAY, 1L);
	SET(CURLOPT_TIMEOUT_MS, (long)(h->timeout_s * 1e3));
	SET(CURLOPT_CONNECTTIMEOUT_MS, (long)(h->o->connect_timeout_s * 1e3));
	SET(CURLOPT_ERRORBUFFER, call->error);
	SET(CURLOPT_PRIVATE, call);
	SET(CURLOPT_WRITEFUNCTION, on_body);
	SET(CURLOPT_WRITEDATA, call);
	SET(CURLOPT_HEADERFUNCTION, on_head);
	SET(CURLOPT_HEADERDATA, call);
	SET(CURLOPT_PREREQFUNCTION, on_request);
	SET(CURLOPT_PREREQDATA, call);
	if (h->username) {
		SET(CURLOPT_HTTPAUTH, (long)CURLAUTH_BASIC);
		SET(CURLOPT_USERNAME, h->username);
		SET(CURLOPT_PASSWORD, h->password);
	}
#undef SET
	return rc;
}

int outside_http_call_open(struct outside_http_call *call, struct outside_http *h,
			   int (*done)(struct outside_http_call *call, int ret))
{
	CURLcode rc;

	*call = (struct outside_http_call){ .http = h, .done = done };
	call->easy = curl_easy_init();
	if (!call->easy)
		return outside_fail(h->o, -ENOMEM, "%s", strerror(ENOMEM));
	rc = set_options(call);
	if (!rc)
		rc = set_tls(call->easy, h->tls);
	/* Else libcurl asks before it sends a long request, and waits for the answer. */
	if (!rc && outside_http_call_header(call, "Expect:"))
		rc = CURLE_OUT_OF_MEMORY;
	if (!rc)
		return 0;
	outside_fail(h->o, 0, "%s", curl_easy_strerror(rc));
	outside_http_call_close(call);
	return -EINVAL;
}

int outside_http_call_header(struct outside_http_call *call, const char *header)
{
	struct curl_slist *more = curl_slist_append(call->headers, header);

	if (!more)
		return -ENOMEM;
	call->headers = more;
	return 0;
}

void outside_http_call_close(struct outside_http_call *call)
{
	if (!call->easy)
		return;
	if (call->busy)
		curl_multi_remove_handle(call->http->multi, call->easy);
	curl_easy_cleanup(call->easy);
	curl_slist_free_all(call->headers);
	free(call->answer);
	*call = (struct outside_http_call){ 0 };
}

/* ---- requests ---- */

int outside_http_begin(struct outside_http_call *call, const char *method, const char *url,
		       const char *body, size_t len)
{
	CURL *easy = call->easy;
	CURLcode rc = curl_easy_setopt(easy, CURLOPT_URL, url);
	CURLMcode mc;

	call->attempts = 0;
	call->head_bytes = 0;
	call->answer_len = 0;
	call->error[0] = '\0';
	if (call->answer)
		call->answer[0] = '\0';
	if (body) {
		rc = rc ? rc : curl_easy_setopt(easy, CURLOPT_POST, 1L);
		rc = rc ? rc : curl_easy_setopt(easy, CURLOPT_POSTFIELDS, body);
		rc = rc ? rc : curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)len);
	} else {
		rc = rc ? rc : curl_easy_setopt(easy, CURLOPT_HTTPGET, 1L);
	}
	rc = rc ? rc : curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, method);
	rc = rc ? rc : curl_easy_setopt(easy, CURLOPT_HTTPHEADER, call->headers);
	if (rc)
		return outside_fail(call->http->o, -EINVAL, "%s", curl_easy_strerror(rc));
	mc = curl_multi_add_handle(call->http->multi, easy);
	if (mc)
		return outside_fail(call->http->o, -EIO, "%s", curl_multi_strerror(mc));
	call->busy = true;
	return 0;
}

/* Why no answer came; the same text for the same reason, so that it is said once. The texts of
 * libcurl for the first two have milliseconds. */
static int fail_call(struct outside_http_call *call, CURLcode rc)
{
	struct outside_http *h = call->http;
	long error = 0;

	curl_easy_getinfo(call->easy, CURLINFO_OS_ERRNO, &error);
	if (rc == CURLE_COULDNT_CONNECT && error)
		return outside_fail(h->o, -EHOSTUNREACH, "%s", strerror((int)error));
	if (rc == CURLE_OPERATION_TIMEDOUT && call->attempts)
		return outside_fail(h->o, -ETIMEDOUT, "it does not answer within %g s (timeout)",
				    h->timeout_s);
	if (rc == CURLE_OPERATION_TIMEDOUT)
		return outside_fail(h->o, -ETIMEDOUT,
				    "it takes no connection in time (connect_timeout, timeout)");

	if (rc == CURLE_WRITE_ERROR && call->answer_len > h->answer_max)
		return outside_fail(h->o, -EMSGSIZE, "an answer has more than %zu bytes",
				    h->answer_max);
	if (rc == CURLE_WRITE_ERROR && call->head_bytes > HEAD_MAX)
		return outside_fail(h->o, -EMSGSIZE, "the head of an answer has more than %lu bytes",
				    HEAD_MAX);
	if (rc == CURLE_SSL_CONNECT_ERROR && *call->error)
		return outside_fail(h->o, -EPROTO, "TLS: %s", outside_tls_reason(call->error));
	return outside_fail(h->o, -EIO, "%s", *call->error ? call->error : curl_easy_strerror(rc));
}

static int finish_call(struct outside_http_call *call, CURLcode rc)
{
	curl_off_t after = 0;

	curl_multi_remove_handle(call->http->multi, call->easy);
	call->busy = false;
	call->status = 0;
	curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &call->status);
	curl_easy_getinfo(call->easy, CURLINFO_RETRY_AFTER, &after);
	call->retry_after_s = (double)after;
	return call->done(call, rc ? fail_call(call, rc) : 0);
}

int outside_http_turn(struct outside_http *h)
{
	struct pollfd fds[OUTSIDE_FDS];
	unsigned count = h->count;
	int running, left, ret = 0;
	CURLMsg *m;

	memcpy(fds, h->fds, sizeof(fds));
	if (count && poll(fds, count, 0) > 0)
		for (unsigned i = 0; i < count; i++)
			if (fds[i].revents)
				curl_multi_socket_action(
					h->multi, fds[i].fd,
					(fds[i].revents & (POLLIN | POLLHUP) ? CURL_CSELECT_IN : 0) |
					(fds[i].revents & POLLOUT ? CURL_CSELECT_OUT : 0) |
					(fds[i].revents & (POLLERR | POLLNVAL) ? CURL_CSELECT_ERR : 0),
					&running);
	if (clock_now_ns() >= h->due_ns) {
		h->due_ns = UINT64_MAX;
		curl_multi_socket_action(h->multi, CURL_SOCKET_TIMEOUT, 0, &running);
	}
	while (!ret && (m = curl_multi_info_read(h->multi, &left))) {
		char *call = NULL;
		CURLcode rc = m->data.result;

		if (m->msg != CURLMSG_DONE)
			continue;
		curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &call);
		ret = finish_call((struct outside_http_call *)(void *)call, rc);
	}
	return ret;
}

unsigned outside_http_wait(struct outside_http *h, struct pollfd fds[OUTSIDE_FDS],
			   uint64_t *until_ns)
{
	memcpy(fds, h->fds, sizeof(h->fds));
	*until_ns = MIN(*until_ns, h->due_ns);
	return h->count;
}

/* ---- answers ---- */

/* Copies a server's text into a message, on one line. */
static void show_text(const char *text, char *buf, size_t size)
{
	size_t n = 0;

	for (; text[n] && n + 1 < size && n < SHOWN_MAX; n++)
		buf[n] = isprint((unsigned char)text[n]) ? text[n] : ' ';
	buf[n] = '\0';
}

const char *outside_http_reason(const struct outside_http_call *call, char *buf, size_t size)
{
	/* The one that says most comes first. */
	static const char *const keys[] = { "message", "description", "detail", "error", "title" };
	int n = snprintf(buf, size, "it answers %ld", call->status);
	json_t *o = call->answer ? json_loads(call->answer, JSON_DISABLE_EOF_CHECK, NULL) : NULL;
	const char *why = NULL;

	if (call->status >= 300 && call->status < 400) {
		snprintf(buf + n, size - (size_t)n, ", and redirects are not followed");
	} else {
		for (size_t i = 0; i < ARRAY_SIZE(keys) && !why; i++)
			why = json_string_value(json_object_get(o, keys[i]));
		if (!why && !o)
			why = call->answer;
		if (why && *why && (size_t)n + 2 < size) {
			memcpy(buf + n, ", ", 2);
			show_text(why, buf + n + 2, size - (size_t)n - 2);
		}
	}
	json_decref(o);
	return buf;
}

uint64_t outside_http_later_ns(const struct outside_http_call *call)
{
	double s = call->retry_after_s > 0 ? call->retry_after_s : LATER_S;

	return clock_now_ns() + (uint64_t)(MIN(s, LATER_MAX_S) * 1e9);
}
