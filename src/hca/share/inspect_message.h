/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages on the control socket of each of a process' QPN blocks: the request for its
 * segment, and the answer with a read-only descriptor; and the request to let a device
 * of the process fail, and the answer with the result and without a descriptor.
 *
 * These two structures never change. The layout of the segment does, and
 * `segment_version` is its version.
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

/* In a request to fail: all devices. */
#define HCA_INSPECT_DEVICES UINT32_MAX

struct hca_inspect_message {
	uint32_t magic;
	uint16_t version;
	uint16_t kind;
	/* In an answer: 0 (with a descriptor, if it was asked for) or a negative errno. */
	int32_t status;
	uint32_t segment_version;
	uint64_t segment_bytes;
	uint32_t device; /* in a request to fail: N of softN */
	uint32_t reserved;
};

_Static_assert(sizeof(struct hca_inspect_message) == 32, "fixed for ever");

/* An answer with the segment's descriptor, unless it is -1. */
void hca_inspect_send(int fd, int segment_fd, int status);
/* An answer without descriptor. */
void hca_inspect_reply(int fd, int status);

#endif
