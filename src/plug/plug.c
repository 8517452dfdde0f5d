/* SPDX-License-Identifier: BSD-2-Clause */
/* The client's side of a running fabric's socket; see plug.h. */
#define LOG_ROOM "plug"
#include "plug/plug.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "util/abstract.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/user.h"

#define ANSWER_NS (5 * NSEC_PER_SEC)
#define ENVIRONMENT "BUSBAR_FABRIC"

static bool name_is_valid(const char *name, size_t length)
{
	if (!length || length >= PLUG_NAME_MAX)
		return false;
	for (size_t i = 0; i < length; i++)
		if (name[i] <= ' ' || name[i] > '~' || name[i] == '/')
			return false;
	return true;
}

int plug_place(struct plug_place *place)
{
	const char *text = secure_getenv(ENVIRONMENT), *slash;

	if (!text || !*text)
		return 0;
	slash = strchr(text, '/');
	if (!slash || !name_is_valid(text, (size_t)(slash - text)) ||
	    !name_is_valid(slash + 1, strlen(slash + 1))) {
		log_warn(ENVIRONMENT "='%.80s' not usable: it is NAME/HOST, the names of a running fabric and of one of its hosts, each of up to %d printable characters",
			 text, PLUG_NAME_MAX - 1);
		return -EINVAL;
	}
	*place = (struct plug_place){ 0 };
	memcpy(place->fabric, text, (size_t)(slash - text));
	memcpy(place->host, slash + 1, strlen(slash + 1));
	return 1;
}

int plug_send(int fd, enum plug_type type, uint32_t a, uint32_t b, const void *body, size_t bytes)
{
	struct plug_head head = { .type = (uint16_t)type, .bytes = (uint16_t)bytes, .a = a, .b = b };
	const struct iovec iov[] = { { &head, sizeof(head) }, { (void *)body, bytes } };
	const struct msghdr message = { .msg_iov = (struct iovec *)iov, .msg_iovlen = bytes ? 2 : 1 };

	if (sizeof(head) + bytes > PLUG_MESSAGE_BYTES)
		return -EMSGSIZE;
	return sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* The shortest and the longest body of each type. */
static const struct {
	uint16_t least, most;
} lengths[] = {
	[PLUG_HELLO] = { sizeof(struct plug_hello), sizeof(struct plug_hello) },
	[PLUG_QP_OPEN] = { sizeof(struct plug_qp), sizeof(struct plug_qp) },
	[PLUG_QP_CLOSE] = { sizeof(struct plug_qp), sizeof(struct plug_qp) },
	[PLUG_GROUP_JOIN] = { sizeof(struct plug_group), sizeof(struct plug_group) },
	[PLUG_GROUP_LEAVE] = { sizeof(struct plug_group), sizeof(struct plug_group) },
	[PLUG_PACKET] = { 8 + 12 + 4, PLUG_PACKET_BYTES }, /* LRH, BTH, ICRC */
	[PLUG_AGENT_OPEN] = { sizeof(struct plug_agent), sizeof(struct plug_agent) },
	[PLUG_AGENT_CLOSE] = { 0, 0 },
	[PLUG_MAD] = { sizeof(struct plug_mad) + PLUG_MAD_BYTES,
		       sizeof(struct plug_mad) + PLUG_MAD_BYTES },
	[PLUG_SET_CAPABILITY] = { 0, 0 },
	[PLUG_ASK] = { 1, 512 },
	[PLUG_FIND] = { sizeof(struct plug_peer), sizeof(struct plug_peer) },
	[PLUG_PEER] = { sizeof(struct plug_peer), sizeof(struct plug_peer) },
	[PLUG_WELCOME] = { sizeof(struct plug_welcome), sizeof(struct plug_welcome) },
	[PLUG_REFUSED] = { 0, 512 },
	[PLUG_PORT] = { sizeof(struct plug_port), sizeof(struct plug_port) },
	[PLUG_DONE] = { 0, 0 },
	[PLUG_EVENT] = { 0, 0 },
	[PLUG_AGENT] = { 0, 0 },
	[PLUG_TEXT] = { 0, PLUG_MESSAGE_BYTES - sizeof(struct plug_head) },
};

bool plug_check(const struct plug_head *head, size_t received)
{
	if (received < sizeof(*head) || head->bytes != received - sizeof(*head) ||
	    head->type >= sizeof(lengths) / sizeof(lengths[0]))
		return false;
	/* A type that is not in the table. */
	if (!lengths[head->type].most && head->type != PLUG_AGENT_CLOSE &&
	    head->type != PLUG_SET_CAPABILITY && head->type < PLUG_DONE)
		return false;
	return head->bytes >= lengths[head->type].least && head->bytes <= lengths[head->type].most;
}

/* The next message, of `want`, into `body`: 0 or a negative errno; a refusal is logged. */
static int await(int fd, enum plug_type want, void *body, size_t bytes, uint64_t until_ns)
{
	union {
		struct plug_head head;
		uint8_t bytes[PLUG_MESSAGE_BYTES];
	} m;
	struct pollfd p = { .fd = fd, .events = POLLIN };
	ssize_t n;

	for (;;) {
		uint64_t now_ns = clock_monotonic_ns_slow();
		int left_ms = now_ns < until_ns ? (int)((until_ns - now_ns) / 1000000) + 1 : 0;

		n = recv(fd, &m, sizeof(m), MSG_DONTWAIT);
		if (n >= 0)
			break;
		if (errno == EINTR)
			continue;
		if (errno != EAGAIN)
			return -errno;
		if (!left_ms)
			return -ETIMEDOUT;
		poll(&p, 1, left_ms);
	}
	if (!n)
		return -ECONNRESET;
	if (!plug_check(&m.head, (size_t)n))
		return -EPROTO;
	if (m.head.type == PLUG_REFUSED) {
		log_error("the fabric refuses this process: %.*s", (int)m.head.bytes,
			  (const char *)m.bytes + sizeof(m.head));
		return m.head.a && m.head.a < 4096 ? -(int)m.head.a : -EPROTO;
	}
	if (m.head.type != want)
		return -EPROTO;
	memcpy(body, m.bytes + sizeof(m.head), bytes);
	return 0;
}

/* Is the holder of the name a process of this user or of root? Anybody can take a name. */
static int check_server(int fd)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len))
		return -errno;
	return user_is_ours_or_root(cred.uid) ? 0 : -EACCES;
}

static int greet(int fd, const struct plug_place *place, enum plug_purpose purpose,
		 struct plug_welcome *welcome, struct plug_port *port)
{
	const uint64_t until_ns = clock_monotonic_ns_slow() + ANSWER_NS;
	struct plug_hello hello = { .version = PLUG_VERSION, .purpose = (uint8_t)purpose };
	int ret;

	memcpy(hello.host, place->host, sizeof(hello.host));
	strncpy(hello.program, program_invocation_short_name, sizeof(hello.program) - 1);
	ret = plug_send(fd, PLUG_HELLO, 0, 0, &hello, sizeof(hello));
	if (!ret)
		ret = await(fd, PLUG_WELCOME, welcome, sizeof(*welcome), until_ns);
	return ret ? ret : await(fd, PLUG_PORT, port, sizeof(*port), until_ns);
}

int plug_connect(const struct plug_place *place, enum plug_purpose purpose,
		 struct plug_welcome *welcome, struct plug_port *port)
{
	struct abstract_name name;
	int fd, ret = abstract_name(&name, PLUG_NAME, place->fabric);

	if (ret)
		return ret;
	fd = abstract_connect(&name);
	if (fd < 0) {
		log_error("no fabric '%s' runs here (%s); `busbar fabric run` starts one",
			  place->fabric, strerror(-fd));
		return fd == -ECONNREFUSED ? -ENOENT : fd;
	}
	ret = check_server(fd);
	if (ret == -EACCES)
		log_error("the fabric '%s' belongs to another user", place->fabric);
	else if (!ret)
		ret = greet(fd, place, purpose, welcome, port);
	if (ret == -EPROTO || ret == -ETIMEDOUT || ret == -ECONNRESET)
		log_error("the fabric '%s' does not answer as this version of busbar expects: %s",
			  place->fabric, strerror(-ret));
	if (!ret)
		return fd;
	close(fd);
	return ret;
}
