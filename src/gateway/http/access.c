/* SPDX-License-Identifier: BSD-2-Clause */
/* Tokens, and addresses that present wrong ones; see access.h. */
#define LOG_ROOM "gateway/http"
#include "gateway/http/access.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gateway/part/sha.h"
#include "gateway/control/query.h"
#include "util/clock.h"
#include "util/hex.h"
#include "util/log.h"
#include "util/user.h"

#define TOKENS_MAX 256
#define TOKEN_MIN 16  /* characters; shorter ones can be guessed */
#define LINE_MAX_BYTES 1024
/* After so many wrong tokens of an address within WINDOW_NS, further ones get 429 until that time
 * has passed. */
#define WRONG_MAX 5
#define WINDOW_NS (60 * NSEC_PER_SEC)
/* Addresses that are remembered; the oldest one makes room. */
#define SUSPECTS 128

struct token {
	unsigned char hash[SHA256_BYTES];
	enum http_role role;
};

/* Prefix of an address: a host has a whole /64 of IPv6. */
struct suspect {
	unsigned char prefix[16];
	unsigned wrong;
	uint64_t since_ns;
};

struct http_access {
	struct token *tokens;
	size_t count;
	bool by_certificate, everybody;
	enum http_role client_role;
	struct suspect suspects[SUSPECTS];
};

/* 64 hexadecimal digits. */
static bool parse_hash(const char *text, size_t len, unsigned char hash[SHA256_BYTES])
{
	if (len != 2 * SHA256_BYTES)
		return false;
	for (size_t i = 0; i < len; i += 2) {
		int high = hex_digit(text[i]), low = hex_digit(text[i + 1]);

		if (high < 0 || low < 0)
			return false;
		hash[i / 2] = (unsigned char)(high << 4 | low);
	}
	return true;
}

int http_access_parse_line(const char *line, unsigned char hash[32],
			   enum http_role *role, const char **problem)
{
	size_t len;

	line += strspn(line, " \t");
	if (*line == '#' || !line[strspn(line, " \t\r\n")])
		return 0;
	len = strcspn(line, " \t\r\n");
	*role = http_role_parse(line, len);
	*problem = "expected watch, operate or configure, then the token";
	if (*role == HTTP_NOBODY)
		return -EINVAL;
	line += len;
	line += strspn(line, " \t");
	len = strcspn(line, " \t\r\n");
	if (!len || line[len + strspn(line + len, " \t\r\n")])
		return -EINVAL;
	if (!strncmp(line, "sha256:", 7)) {
		*problem = "expected 64 hexadecimal digits behind sha256:";
		return parse_hash(line + 7, len - 7, hash) ? 1 : -EINVAL;
	}
	*problem = "the token is shorter than 16 characters; `openssl rand -hex 32` makes a good one";
	if (len < TOKEN_MIN)
		return -EINVAL;
	sha256(line, len, hash);
	return 1;
}

static int add(struct http_access *a, const struct token *t)
{
	if (a->count == TOKENS_MAX)
		return -E2BIG;
	a->tokens[a->count++] = *t;
	return 0;
}

/* Only its owner may read it, who is the gateway's user or root. If a user namespace does not map
 * that user, others have the same number; but then the kernel has opened the file for its owner only,
 * as its mode says. */
static int check_file(int fd, const char *key, const char *path)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode)) {
		log_error("%s %s: no regular file", key, path);
		return -EINVAL;
	}
	if (st.st_mode & 077) {
		log_error("%s %s: its mode is %04o, so others can read the tokens; expected 0600 (chmod 600 %s)",
			  key, path, st.st_mode & 07777, path);
		return -EPERM;
	}
	if (st.st_uid != geteuid() && st.st_uid != 0) {
		log_error("%s %s: it belongs to user %u, expected the server's user %u or root",
			  key, path, st.st_uid, geteuid());
		return -EPERM;
	}
	return 0;
}

static int read_lines(struct http_access *a, FILE *f, const char *key, const char *path)
{
	char line[LINE_MAX_BYTES];
	unsigned number = 0;
	int ret = 0;

	while (!ret && fgets(line, sizeof(line), f)) {
		const char *problem = "the line is too long";
		struct token t;

		number++;
		ret = strlen(line) + 1 == sizeof(line) ?
			      -EINVAL :
			      http_access_parse_line(line, t.hash, &t.role, &problem);
		if (ret > 0) {
			ret = add(a, &t);
			problem = "more than 256 tokens";
		}
		if (ret < 0)
			log_error("%s %s:%u: %s", key, path, number, problem);
	}
	explicit_bzero(line, sizeof(line));
	return ret;
}

static int read_file(struct http_access *a, const char *key, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), ret;
	FILE *f;

	if (fd < 0) {
		ret = -errno;
		log_error("%s %s: %s", key, path, strerror(-ret));
		return ret;
	}
	ret = check_file(fd, key, path);
	f = ret ? NULL : fdopen(fd, "r");
	if (!f) {
		close(fd);
		return ret ? ret : -ENOMEM;
	}
	ret = read_lines(a, f, key, path);
	fclose(f);
	if (!ret && !a->count) {
		log_error("%s %s: there is no token in it", key, path);
		ret = -EINVAL;
	}
	return ret;
}

/* Checked by http_settings_parse(). */
static void read_list(struct http_access *a, const json_t *list)
{
	json_t *e;
	size_t i;

	json_array_foreach(list, i, e) {
		const char *role = json_string_value(json_object_get(e, "role"));
		const char *hash = json_string_value(json_object_get(e, "sha256"));
		struct token t;

		if (!role || !hash || !parse_hash(hash, strlen(hash), t.hash))
			continue;
		t.role = http_role_parse(role, strlen(role));
		add(a, &t);
	}
}

int http_access_new(struct http_access **out, const struct http_settings *s)
{
	struct http_access *a = calloc(1, sizeof(*a));
	int ret = 0;

	if (a)
		a->tokens = calloc(TOKENS_MAX, sizeof(*a->tokens));
	if (!a || !a->tokens) {
		http_access_free(a);
		return -ENOMEM;
	}
	a->by_certificate = s->ssl_ca;
	a->everybody = s->everybody;
	a->client_role = (enum http_role)s->client_role;
	if (s->token_file)
		ret = read_file(a, http_setting_name(s, HTTP_TOKEN_FILE), s->token_file);
	if (ret) {
		http_access_free(a);
		return ret;
	}
	read_list(a, s->tokens);
	if (http_access_asks_owner(a) && !user_is_known(geteuid()))
		log_warn("the user namespace does not map the server's user, who is then not told from others: only root may ask without a token, if it is mapped");
	*out = a;
	return 0;
}

void http_access_free(struct http_access *a)
{
	if (!a)
		return;
	free(a->tokens);
	free(a);
}

bool http_access_trusts_local(const struct http_access *a)
{
	return !a->count && !a->by_certificate;
}

bool http_access_asks_owner(const struct http_access *a)
{
	return http_access_trusts_local(a) && !a->everybody;
}

/* The entry of an address; NULL: there is none, unless one is to be made. */
static struct suspect *find(struct http_access *a, const struct http_peer *p, bool make)
{
	struct suspect *oldest = &a->suspects[0];
	unsigned char prefix[16] = { 0 };

	memcpy(prefix, p->address, http_peer_is_ipv4(p) ? 16 : 8);
	for (unsigned i = 0; i < SUSPECTS; i++) {
		struct suspect *s = &a->suspects[i];

		if (s->wrong && !memcmp(s->prefix, prefix, sizeof(prefix)))
			return s;
		if (!s->wrong || (oldest->wrong && s->since_ns < oldest->since_ns))
			oldest = s;
	}
	if (!make)
		return NULL;
	memset(oldest, 0, sizeof(*oldest));
	memcpy(oldest->prefix, prefix, sizeof(prefix));
	return oldest;
}

static bool is_refused(struct http_access *a, const struct http_peer *p,
		       uint64_t now_ns, unsigned *retry_s)
{
	struct suspect *s = find(a, p, false);

	if (s && now_ns - s->since_ns >= WINDOW_NS)
		s->wrong = 0;
	if (!s || s->wrong < WRONG_MAX)
		return false;
	*retry_s = (unsigned)((WINDOW_NS - (now_ns - s->since_ns)) / NSEC_PER_SEC) + 1;
	return true;
}

static void note_wrong(struct http_access *a, const struct http_peer *p, uint64_t now_ns)
{
	struct suspect *s = find(a, p, true);

	if (!s->wrong)
		s->since_ns = now_ns;
	if (++s->wrong == WRONG_MAX)
		log_warn("%s presents wrong tokens, further ones get status 429 for a minute", p->text);
}

/* All are compared, whichever fits; *which is its number, from 1. */
static enum http_role find_token(const struct http_access *a, const char *token, size_t len,
				 unsigned *which)
{
	unsigned char hash[SHA256_BYTES];
	enum http_role role = HTTP_NOBODY;

	sha256(token, len, hash);
	for (size_t i = 0; i < a->count; i++) {
		volatile unsigned char differs = 0;

		for (unsigned b = 0; b < SHA256_BYTES; b++)
			differs |= (unsigned char)(hash[b] ^ a->tokens[i].hash[b]);
		if (!differs && a->tokens[i].role > role) {
			role = a->tokens[i].role;
			*which = (unsigned)i + 1;
		}
	}
	return role;
}

enum http_role http_access_check(struct http_access *a, struct http_peer *p,
				 const char *authorization, uint64_t now_ns,
				 int *status, unsigned *retry_s)
{
	enum http_role role = HTTP_NOBODY;

	*status = 401;
	if (authorization && a->count) {
		if (!strncasecmp(authorization, "Bearer ", 7)) {
			const char *token = authorization + 7;

			token += strspn(token, " ");
			role = find_token(a, token, strcspn(token, " \t"), &p->token);
		}
		/* A valid token is accepted whatever other clients at this address have shown. */
		if (role == HTTP_NOBODY && is_refused(a, p, now_ns, retry_s))
			*status = 429;
		else if (role == HTTP_NOBODY)
			note_wrong(a, p, now_ns);
		return role;
	}
	if (a->by_certificate && p->has_certificate)
		return a->client_role;
	if (!http_access_trusts_local(a))
		return HTTP_NOBODY;
	if (a->everybody)
		return HTTP_OPERATE;
	*status = 403;
	if (!p->is_local || !p->has_owner || !user_is_ours_or_root(p->owner.uid))
		return HTTP_NOBODY;
	return HTTP_CONFIGURE;
}

const char *http_access_authorization(const struct http_request *r, char *room, size_t size)
{
	static const char word[] = "bearer.", scheme[] = "Bearer ";
	const char *p = r->socket_protocol;

	if (*r->authorization)
		return r->authorization;
	if (!r->upgrades || !*r->upgrade)
		return NULL;
	for (; *p; p += strcspn(p, ", \t")) {
		char *token = room + sizeof(scheme) - 1;

		p += strspn(p, ", \t");
		if (strncmp(p, word, sizeof(word) - 1))
			continue;
		p += sizeof(word) - 1;
		strcpy(room, scheme);
		if (query_decode(p, strcspn(p, ", \t"), token, size - sizeof(scheme) + 1))
			*token = '\0';
		return room;
	}
	return NULL;
}
