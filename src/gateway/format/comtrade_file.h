/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What node `file` asks of the format beyond format.h: a record in two files,
 * and the head of a record that is rewritten as it grows.
 */
#ifndef GATEWAY_FORMAT_COMTRADE_FILE_H
#define GATEWAY_FORMAT_COMTRADE_FILE_H

#include "gateway/comtrade/comtrade.h"
#include "gateway/plugin/format.h"

extern const struct format_type format_comtrade;

/* Before the first scan or print, COMTRADE_STREAM else; a record begins. */
void comtrade_format_set_layout(struct format *f, enum comtrade_layout layout);

/* The files that messages name; must outlive the format's use. */
void comtrade_format_set_name(struct format *f, const char *cfg, const char *dat);

/* Parses the text of a .cfg for the data that are scanned from now on. 0 or a
 * negative errno, *err filled with -EBADMSG. */
int comtrade_format_use_cfg(struct format *f, const char *text, size_t len,
			    struct comtrade_error *err);
/* The signals of a configuration; NULL on no memory. */
struct signal_list *comtrade_signals(const struct comtrade_cfg *c);

/* Why a record cannot be written with these settings; NULL when it can. */
const char *comtrade_format_problem(const struct format *f);

/*
 * Head of what was printed so far: the text of the .cfg, or all of a .cff before
 * its data, which always takes the same number of bytes. Counts bytes as
 * snprintf() does; 0 when neither samples nor `signals` have come.
 */
size_t comtrade_format_head(struct format *f, const struct signal_list *signals,
			    char *buf, size_t size);

#endif
