/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages on the control socket of each of a process' QPN blocks: the request for its
 * segment, and the answer with a read-only descriptor; the request to let a device
 * of the process fail, and the answer with the result and without a descriptor; and the
 * request to show or to change the faults that messages meet (hca/device/faults.h), and the
 * answer with those that are set; and the request for an event among these faults, by its index,
 * and the answer with a line about it.
 *
 * These structures never change. The layout of the segment does, and
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
	/* Both, and the answer to them, are struct hca_inspect_faults. */
	HCA_INSPECT_FAULTS_SET,
	HCA_INSPECT_FAULTS_SHOW,
	/* The request is a struct hca_inspect_message, the answer a struct hca_inspect_faults. */
	HCA_INSPECT_FAULTS_EVENT,
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
	uint32_t device; /* in a request to fail: N of softN; for an event: its index */
	uint32_t reserved;
};

_Static_assert(sizeof(struct hca_inspect_message) == 32, "fixed for ever");

/* Both texts end with a zero. */
struct hca_inspect_faults {
	struct hca_inspect_message head;
	/* As BUSBAR_FAULTS, "": none: those that are wanted; in an answer those that are set, or
	 * the event (with status -ENOENT there is none with this index). */
	char set[512];
	/* In an answer: lines, each with a newline, about transports that have other faults;
	 * with status -EINVAL what is wrong with the text. */
	char notes[480];
};

_Static_assert(sizeof(struct hca_inspect_faults) == 1024, "fixed for ever");

/* An answer with the segment's descriptor, unless it is -1. */
void hca_inspect_send(int fd, int segment_fd, int status);
/* An answer without descriptor. */
void hca_inspect_reply(int fd, int status);
/* An answer about faults; the head is filled in. */
void hca_inspect_reply_faults(int fd, int status, struct hca_inspect_faults *msg);

#endif
