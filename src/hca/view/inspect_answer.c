/* SPDX-License-Identifier: BSD-2-Clause */
/* Answers inspections of this process; see inspect_answer.h. */
#define LOG_ROOM "hca"
#include "hca/view/inspect_answer.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hca/device/fail.h"
#include "hca/device/faults.h"
#include "hca/host/names.h"
#include "hca/share/inspect_message.h"
#include "hca/share/peers.h"
#include "hca/share/process.h"
#include "util/log.h"

/* No setting permits this to other users, because it changes the process. */
static void fail_answer(int fd, const struct ucred *cred, uint32_t device)
{
	int ret = hca_peer_may_control(cred) ? hca_fail_request(fd, device) : -EPERM;

	if (!ret)
		return; /* answered when the device has failed */
	if (hca_complaint_due())
		log_warn("process %d (user %u) asks for the device to fail: %s",
			 (int)cred->pid, (unsigned)cred->uid, strerror(-ret));
	hca_inspect_reply(fd, ret);
}

/* The same holds here. */
static void faults_answer(int fd, const struct ucred *cred, struct hca_inspect_faults *msg)
{
	int ret = hca_peer_may_control(cred) ? hca_faults_request(fd, msg) : -EPERM;

	if (!ret)
		return;
	if (hca_complaint_due())
		log_warn("process %d (user %u) asks for faults: %s", (int)cred->pid,
			 (unsigned)cred->uid, strerror(-ret));
	memset(msg, 0, sizeof(*msg));
	hca_inspect_reply_faults(fd, ret, msg);
}

/* Answered later as well, where no lock of a transport is held. */
static void event_answer(int fd, const struct hca_inspect_message *head)
{
	struct hca_inspect_faults msg = { .head = *head };
	int ret = hca_faults_request(fd, &msg);

	if (!ret)
		return;
	memset(&msg, 0, sizeof(msg));
	hca_inspect_reply_faults(fd, ret, &msg);
}

static size_t length_of(uint16_t kind)
{
	switch (kind) {
	case HCA_INSPECT_QUESTION:
	case HCA_INSPECT_FAIL:
	case HCA_INSPECT_FAULTS_EVENT:
		return sizeof(struct hca_inspect_message);
	case HCA_INSPECT_FAULTS_SET:
	case HCA_INSPECT_FAULTS_SHOW:
		return sizeof(struct hca_inspect_faults);
	default:
		return 0;
	}
}

bool hca_inspect_answer(int fd)
{
	struct hca_inspect_faults msg;
	struct ucred cred;
	ssize_t n = recv(fd, &msg, sizeof(msg), MSG_PEEK | MSG_TRUNC | MSG_DONTWAIT);
	uint16_t kind;
	bool may_look;

	if (n < (ssize_t)sizeof(msg.head) || msg.head.magic != HCA_INSPECT_MAGIC ||
	    (size_t)n != length_of(msg.head.kind))
		return false;
	kind = msg.head.kind;
	/* If it stayed unread, the peer's recv() would fail after close(). */
	n = recv(fd, &msg, sizeof(msg), MSG_DONTWAIT);
	may_look = hca_peer_cred(fd, &cred) && hca_peer_may_look(&cred);
	if (kind == HCA_INSPECT_FAIL)
		fail_answer(fd, &cred, msg.head.device);
	else if (kind == HCA_INSPECT_FAULTS_SET)
		faults_answer(fd, &cred, &msg);
	/* A refused inspection is not logged: it is no attempt to harm. */
	else if (!may_look)
		hca_inspect_reply(fd, -EPERM);
	else if (kind == HCA_INSPECT_FAULTS_SHOW)
		hca_faults_show(fd);
	else if (kind == HCA_INSPECT_FAULTS_EVENT)
		event_answer(fd, &msg.head);
	else
		hca_inspect_send(fd, hca_process.segment_fd, 0);
	return true;
}
