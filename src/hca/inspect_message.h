/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The question for a process's segment, asked on the control socket of any of
 * its QPN blocks, and the answer, which carries the read-only descriptor; and
 * the request to let a device of the process fail, which is answered with what
 * has become of it and no descriptor.
 *
 * The two structures never change; what is behind the descriptor does, and
 * `segment_version` says how it looks.
 */
#ifndef HCA_INSPECT_MESSAGE_H
#define HCA_INSPECT_MESSAGE_H

#include <stdbool.h>
#include <stdint.h>

#define HCA_INSPECT_MAGIC 0x69736262u /* "bbsi" */
#define HCA_INSPECT_VERSION 1

enum hca_inspect_kind {
	HCA_INSPECT_QUESTION = 1,
	HCA_INSPECT_ANSWER,
	HCA_INSPECT_FAIL,
};

/* A request to fail: all devices. */
#define HCA_INSPECT_DEVICES UINT32_MAX

struct hca_inspect_message {
	uint32_t magic;
	uint16_t version;
	uint16_t kind;
	/* Answer: 0, to a question with a descriptor, or a negative errno. */
	int32_t status;
	uint32_t segment_version;
	uint64_t segment_bytes;
	uint32_t device; /* request to fail: N of softN */
	uint32_t reserved;
};

_Static_assert(sizeof(struct hca_inspect_message) == 32, "fixed for ever");

/*
 * If the first message that waits on a new connection is one of these, answers
 * it (a request to fail: when that is done, on a descriptor of its own) and
 * returns true: the connection is done with. Who may ask is decided in peers.h.
 * Progress thread.
 */
bool hca_inspect_answer(int fd);
/* An answer without descriptor. */
void hca_inspect_reply(int fd, int status);

#endif
