/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Formats: samples to bytes and back. A format is one file
 * gateway/format/<name>.c and its name in gateway/format/meson.build.
 */
#ifndef GATEWAY_PLUGIN_FORMAT_H
#define GATEWAY_PLUGIN_FORMAT_H

#include <stdbool.h>
#include <stddef.h>

#include "gateway/config/config.h"
#include "gateway/plugin/plugin.h"
#include "gateway/sample/sample.h"

struct format;

enum format_traits {
	/* Reading gives back the same values, bit by bit (of a NaN only that it
	 * is one, in text). */
	FORMAT_LOSSLESS = 1 << 0,
	/* Reading needs the signals: their number, types or names. */
	FORMAT_NEEDS_SIGNALS = 1 << 1,
	/* Where a sample ends in a stream can be told from its bytes. */
	FORMAT_SELF_DELIMITING = 1 << 2,
	/* A sequence number or time that is missing is not read as zero. */
	FORMAT_TELLS_ABSENT = 1 << 3,
	/* A message (datagram, frame) holds one sample; print() makes no more. */
	FORMAT_ONE_PER_MESSAGE = 1 << 4,
};

#define FORMAT_TYPE(type) (1u << (type))
#define FORMAT_ALL_TYPES                                             \
	(FORMAT_TYPE(SIGNAL_FLOAT) | FORMAT_TYPE(SIGNAL_INTEGER) |   \
	 FORMAT_TYPE(SIGNAL_BOOLEAN) | FORMAT_TYPE(SIGNAL_COMPLEX))

/* What reading gives back of what was written, with the default options. */
struct format_carries {
	unsigned traits;        /* enum format_traits */
	unsigned types;         /* FORMAT_TYPE()s it can hold; 0: not declared */
	uint32_t flags;         /* enum sample_flags, of which fields */
	unsigned values_max;    /* per sample; 0: any */
	unsigned real_bits;     /* 64; 32: rounded to single precision */
	unsigned integer_bits;  /* signed; what is beyond is cut */
	unsigned sequence_bits; /* 0: none */
	unsigned seconds_bits;  /* unsigned; 0: none */
	unsigned time_step_ns;  /* resolution of times */
};

/*
 * How much of an unfinished sample in a stream has been looked at, kept by who reads
 * the stream. Zeroed when another byte stands at the beginning.
 */
struct format_unfinished {
	size_t seen;                  /* bytes */
	unsigned depth;               /* of brackets that are open */
	bool in_string, escaped;
	char last;                    /* the byte before `seen` */
};

struct format_type {
	const char *name;             /* "villas.human" */
	const char *description;
	bool lines;                   /* text, one sample per line */
	bool binary;                  /* its bytes are no text */
	struct format_carries carries;
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
	 * than `cnt` when the buffer is full (or a message can hold no more);
	 * 0 with *used = 0 means that not even one fits (the caller grows the
	 * buffer). A negative errno, *used = 0 and format_error() when the
	 * first one cannot be written in this format.
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

	/*
	 * For streams: scan() has left an unfinished sample at buf[0], and now
	 * there are `len` bytes of it. May scan() find its end (or an error)?
	 * Looks only at what stands behind u->seen, so that a peer that sends a
	 * long sample in small pieces costs no more than its bytes. NULL where
	 * scan() sees from the first bytes how long the sample is; formats with
	 * `lines` need none either. Use format_may_end().
	 */
	bool (*may_end)(struct format *f, const char *buf, size_t len,
			struct format_unfinished *u);

	/*
	 * The file or stream has ended behind what was scanned. 0, or with
	 * format_error() where it says itself that it has another length: -EBADMSG
	 * when something is missing, -EOVERFLOW when there was more.
	 */
	int (*finish)(struct format *f);
};

struct format {
	const struct format_type *type;
	struct signal_list *signals;  /* owned reference; types for scan */
	unsigned types;               /* as carries.types; init() may narrow it */
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
	/* What is scanned has values of names that are no signals; it was said. */
	bool foreign, said_foreign;
	int64_t real_precision;       /* digits; 17 and 0 both mean exact */
	void *private_data;
	char error[160];              /* of the last scan or print, or of init */
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

/*
 * The first of `signals` whose values the format cannot hold; -1 when it can
 * hold them all. `signals` may be NULL.
 */
long format_refused_signal(const struct format *f,
			   const struct signal_list *signals);

/* The same as an error about `cfg`, the node's or format's group: 0, or -EINVAL
 * after config_fail() (without `c` it is logged). */
int format_check_signals(const struct format *f, struct config *c, json_t *cfg,
			 const struct signal_list *signals);

/* Of one sample. */
struct format_sizes {
	size_t room_max;  /* that print() may ask for; up to 1/64 too much */
	size_t bytes_min; /* that the shortest one takes */
};

/*
 * By printing samples with values of the types of `signals`, so not on the data path.
 * 0 or what print() returned, with format_error().
 */
int format_sizes(struct format *f, struct signal_list *signals,
		 struct format_sizes *out);
/* The same; an error is reported about `cfg`, -EINVAL then. */
int format_check_sizes(struct format *f, struct config *c, json_t *cfg,
		       struct signal_list *signals, struct format_sizes *out);

/* May scan() find an end in the unfinished sample at buf[0]? See may_end. */
bool format_may_end(struct format *f, const char *buf, size_t len,
		    struct format_unfinished *u);

static inline const char *format_error(const struct format *f)
{
	return f->error;
}

#endif
