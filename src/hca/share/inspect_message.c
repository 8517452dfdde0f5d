/* SPDX-License-Identifier: BSD-2-Clause */
/* Sends answers to inspections. */
#define LOG_ROOM "hca"
#include "hca/share/inspect_message.h"

#include <string.h>
#include <sys/socket.h>

#include "hca/share/process.h"
#include "util/log.h"

static struct hca_inspect_message answer(int status)
{
	return (struct hca_inspect_message){
		.magic = HCA_INSPECT_MAGIC,
		.version = HCA_INSPECT_VERSION,
		.kind = HCA_INSPECT_ANSWER,
		.status = status,
		.segment_version = HCA_SEGMENT_VERSION,
		.segment_bytes = sizeof(struct hca_segment),
	};
}

void hca_inspect_send(int fd, int segment_fd, int status)
{
	struct hca_inspect_message msg = answer(status);
	union {
		char buf[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} space = { 0 };
	struct iovec iov = { &msg, sizeof(msg) };
	struct msghdr h = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (segment_fd >= 0) {
		struct cmsghdr *c = &space.align;

		h.msg_control = space.buf;
		h.msg_controllen = sizeof(space.buf);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &segment_fd, sizeof(segment_fd));
	}
	if (sendmsg(fd, &h, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		log_debug("inspection not answered: %m");
}

void hca_inspect_reply(int fd, int status)
{
	hca_inspect_send(fd, -1, status);
}

void hca_inspect_reply_faults(int fd, int status, struct hca_inspect_faults *msg)
{
	msg->head = answer(status);
	if (send(fd, msg, sizeof(*msg), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		log_debug("request about faults not answered: %m");
}
