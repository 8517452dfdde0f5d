/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files of COMTRADE records for node `file`: names of the two files of a pair,
 * the configuration before the data are read, and the head that is rewritten
 * while a record grows.
 */
#ifndef GATEWAY_NODE_FILE_RECORDING_H
#define GATEWAY_NODE_FILE_RECORDING_H

#include <limits.h>
#include <stdbool.h>

#include "gateway/comtrade/comtrade.h"
#include "gateway/plugin/format.h"

struct record {
	bool single;           /* a .cff: `cfg` and `dat` are the same */
	char cfg[PATH_MAX], dat[PATH_MAX];
	struct format *format; /* borrowed */
	struct signal_list *signals; /* of the node, borrowed; may be NULL */
};

bool record_is_comtrade(const struct format *f);

/*
 * Both names from the one that was configured. False when it ends in none of
 * .cfg, .dat and .cff (in any case). To read, files that are there only with
 * other letters' case are found.
 */
bool record_name(struct record *r, const char *uri, bool to_read);

/* The configuration of the record, to be freed by comtrade_cfg_free(). 0; a negative errno: it
 * cannot be read (yet); with -EBADMSG *err says where it is wrong. */
int record_config(const struct record *r, struct comtrade_cfg **out, struct comtrade_error *err);
/* Signals of the record; NULL when it cannot be read (yet). */
struct signal_list *record_signals(const struct record *r);

/* Makes the format ready for the data. 0 or a negative errno; logs the cause. */
int record_open(struct record *r, struct format *f);

/* Refuses to go on with a file that holds something. 0 or a negative errno. */
int record_check_output(const struct record *r, bool append);

/* For writer_settings; `arg` is the record. 0 or a positive errno; logs it. */
int record_settle(void *arg, int fd);

#endif
