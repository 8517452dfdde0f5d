/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Formats: samples to bytes and back. A format is one file
 * gateway/format/<name>.c and its name in gateway/meson.build.
 */
#ifndef GATEWAY_FORMAT_H
#define GATEWAY_FORMAT_H

#include <stdbool.h>
#include <stddef.h>

#include "gateway/config.h"
#include "gateway/plugin.h"
#include "gateway/sample.h"

struct format;

struct format_type {
	const char *name;             /* "villas.human" */
	const char *description;
	bool lines;                   /* text, one sample per line */
	bool binary;                  /* its bytes are no text */
	size_t size;                  /* bytes of private data, zeroed */
	/* Options of this format alone; unpacked into the private data before
	 * init is called. */
	const struct config_key *keys;
	size_t key_count;
	/* What is wrong with options may be left in f->error: it is reported
	 * with their place. */
	int (*init)(struct format *f);
	void (*destroy)(struct format *f);

	/*
	 * Prints up to `cnt` samples into buf[0..size). Sets *used to the
	 * bytes written. Returns the number of whole samples printed, fewer
	 * than `cnt` when the buffer is full; 0 with *used = 0 means that not
	 * even one fits (the caller grows the buffer).
	 */
	int (*print)(struct format *f, char *buf, size_t size, size_t *used,
		     struct sample *const smps[], unsigned cnt);

	/* Header for a new file or stream; bytes, as snprintf counts them. */
	size_t (*header)(struct format *f, char *buf, size_t size,
			 const struct signal_list *signals);

	/* A new file or stream begins (rewind): forget what the old one's
	 * beginning told. NULL when there is nothing to forget. */
	void (*reset)(struct format *f);

	/*
	 * The signals that the beginning of a file names; NULL when it names
	 * none. For formats whose files say more than samples can.
	 */
	struct signal_list *(*names)(struct format *f, const char *buf,
				     size_t len);

	/*
	 * Scans up to `cnt` samples from buf[0..len). Sets *used to the bytes
	 * consumed (an incomplete last sample is left). Returns the number of
	 * samples filled, or -EBADMSG with *used behind the bad piece and
	 * format_error() telling what was wrong.
	 */
	int (*scan)(struct format *f, const char *buf, size_t len, size_t *used,
		    struct sample *smps[], unsigned cnt);
};

struct format {
	const struct format_type *type;
	struct signal_list *signals;  /* owned reference; types for scan */
	/* Options; see the manual page. */
	bool header, skip_first_line, ts_origin, ts_received, sequence, data,
		offset;
	/* Set by its user: each buffer is one message (a datagram, a frame),
	 * not a piece of a stream or file. json then prints an array. */
	bool message;
	/* Set by a format with `lines` while what it scans are none (a header
	 * told so): nothing may be added behind the last byte. */
	bool binary;
	char delimiter, separator, comment_prefix;
	int64_t real_precision;       /* digits; 17 and 0 both mean exact */
	void *private_data;
	char error[160];              /* of the last scan, or of init */
};

/* NULL when there is none, or its module cannot be loaded (which is logged). */
static inline const struct format_type *format_type_find(const char *name)
{
	return plugin_find(format_plugins, name);
}

/*
 * By name ("csv") or by object ({"type": "csv", "separator": ";"}). `signals`
 * is referenced. NULL `cfg` takes `fallback`.
 */
int format_new(struct format **out, struct config *c, json_t *cfg,
	       const char *fallback, struct signal_list *signals);
void format_destroy(struct format *f); /* NULL allowed */

static inline const char *format_error(const struct format *f)
{
	return f->error;
}

#endif
