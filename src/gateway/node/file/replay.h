/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Replay of a recording at its own times or at a fixed rate. The settings are
 * filled by the node's key tables; see its manual page for what they mean.
 */
#ifndef GATEWAY_NODE_FILE_REPLAY_H
#define GATEWAY_NODE_FILE_REPLAY_H

#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "gateway/part/reader.h"
#include "gateway/part/timer.h"

struct node;

/* Figures of the node. */
enum { REPLAY_MALFORMED };

enum eof_mode {
	EOF_STOP,
	EOF_EXIT,
	EOF_REWIND,
	EOF_WAIT,
};

enum epoch_mode {
	EPOCH_DIRECT,
	EPOCH_WAIT,
	EPOCH_RELATIVE,
	EPOCH_ABSOLUTE,
	EPOCH_ORIGINAL,
};

enum stamp_mode {
	STAMP_RECORDED,
	STAMP_NOW,
	STAMP_PLANNED,
};

enum sequence_mode {
	SEQUENCE_RECORDED,
	SEQUENCE_NEW,
};

struct replay {
	/* Settings. */
	const char *uri;
	json_t *format_cfg;
	int eof, epoch_mode, stamp, sequence, timer_kind;
	double rate_hz, epoch_s, speed;
	int64_t skip, buffer_size;
	char path[PATH_MAX];
	struct format *format;

	struct reader reader;
	struct timer timer;
	struct hist *late_ns; /* of the samples that had a time; owned */
	uint64_t planned_ns;  /* when the last one was due, of the timer's clock */
	bool open, started;  /* started: a first sample has set the time */
	bool warned;         /* of missing timestamps */
	bool polled;         /* somebody waits for the timer's descriptor */
	struct sample *ahead; /* read before it is due; while polled */
	bool has_ahead;
	atomic_bool rewind_asked;
	uint64_t malformed;  /* of the reader, counted so far */
	uint64_t samples;    /* since the beginning of the file */
	uint64_t rounds;     /* how often it was rewound */
	struct timespec last;  /* replayed time of the last sample */
	int64_t interval_ns;   /* from the one before to that one */
	struct timespec first; /* recorded time of the first sample */
	struct timespec begin; /* the time that it is replayed at */
	int64_t base_ns;       /* replayed wall clock to the timer's */
};

/* 0 or a negative errno; logs the cause. */
int replay_open(struct replay *r);
/* Allowed when it is not open. */
void replay_close(struct node *n, struct replay *r);
/* As a node's read(). */
int replay_read(struct node *n, struct replay *r, struct sample *smps[],
		unsigned cnt);
void replay_interrupt(struct replay *r);
/* As a node's poll_fds(). */
int replay_poll_fds(struct node *n, struct replay *r, int fds[], int max);
void replay_rearm(struct replay *r);
/*
 * The next read goes on at the beginning; one that waits does so at once. From
 * any thread while it is open. -ESPIPE when there is no beginning, -EBADF when it
 * is not open.
 */
int replay_rewind(struct replay *r);

#endif
