/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Formats convert samples to bytes and back. A format is one file
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
	/* A reader of a stream finds the end of a sample by its bytes. */
	FORMAT_SELF_DELIMITING = 1 << 2,
	/* Reading marks a missing sequence number or time as missing, and does not
	 * return zero for it. */
	FORMAT_TELLS_ABSENT = 1 << 3,
	/* A message (datagram, frame) holds one sample; print() makes no more. */
	FORMAT_ONE_PER_MESSAGE = 1 << 4,
};

#define FORMAT_TYPE(type) (1u << (type))
#define FORMAT_ALL_TYPES                                             \
	(FORMAT_TYPE(SIGNAL_FLOAT) | FORMAT_TYPE(SIGNAL_INTEGER) |   \
	 FORMAT_TYPE(SIGNAL_BOOLEAN) | FORMAT_TYPE(SIGNAL_COMPLEX))

/* Which parts of a sample survive writing and reading, with the default options. */
struct format_carries {
	unsigned traits;        /* enum format_traits */
	unsigned types;         /* FORMAT_TYPE()s it can hold; 0: not declared */
	uint32_t flags;         /* enum sample_flags, of which fields */
	unsigned values_max;    /* per sample; 0: any */
	unsigned real_bits;     /* 64; 32: rounded to single precision */
	unsigned integer_bits;  /* signed; higher bits are cut off */
	unsigned sequence_bits; /* 0: none */
	unsigned seconds_bits;  /* unsigned; 0: none */
	unsigned time_step_ns;  /* resolution of times */
};

/*
 * State of the search for the end of an unfinished sample in a stream. The reader of the
 * stream owns it, and zeroes it when another byte becomes the first one.
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
	bool binary;                  /* its bytes are not text */
	struct format_carries carries;
	size_t size;                  /* bytes of private data, zeroed */
	/* Options of this format alone; unpacked into the private data before
	 * init is called. */
	const struct config_key *keys;
	size_t key_count;
	/* May describe wrong options in f->error; the caller reports the text with
	 * file and line of the options. */
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

	/* Prints the header of a new file or stream; returns its length, as
	 * snprintf() does. */
	size_t (*header)(struct format *f, char *buf, size_t size,
			 const struct signal_list *signals);

	/* A new file or stream begins, or the file was rewound: forgets what the
	 * beginning of the old one said. NULL when there is nothing to forget. */
	void (*reset)(struct format *f);

	/*
	 * The signals that the beginning of a file names, a new reference; NULL
	 * when it names none. For formats whose files describe signals.
	 */
	struct signal_list *(*names)(struct format *f, const char *buf,
				     size_t len);

	/*
	 * Scans up to `cnt` samples from buf[0..len). Sets *used to the bytes
	 * consumed, without an incomplete last sample. Returns the number of
	 * samples filled, or -EBADMSG with *used after the invalid piece and the
	 * cause in format_error().
	 */
	int (*scan)(struct format *f, const char *buf, size_t len, size_t *used,
		    struct sample *smps[], unsigned cnt);

	/*
	 * For streams: scan() has left an unfinished sample at buf[0], of which
	 * there are now `len` bytes. Returns whether scan() might find its end,
	 * or an error. Examines only bytes from u->seen on, so that a peer that
	 * sends a long sample in small pieces costs no more than its bytes. NULL
	 * where scan() knows the length of a sample from its first bytes, and
	 * for formats with `lines`. Callers use format_may_end().
	 */
	bool (*may_end)(struct format *f, const char *buf, size_t len,
			struct format_unfinished *u);

	/*
	 * The file or stream has ended after the bytes that were scanned. Returns
	 * 0, or, where the file states another length and with the cause in
	 * format_error(), -EBADMSG when data are missing and -EOVERFLOW when
	 * there were more than stated.
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
	/* Set by the caller: each buffer is one message (a datagram, a frame),
	 * not a piece of a stream or file. json then prints an array. */
	bool message;
	/* Set by a format with `lines` while it scans binary data (its header said
	 * so): the caller must not add bytes after the last one. */
	bool binary;
	char delimiter, separator, comment_prefix;
	/* The input has names that are not signals; a message about it was logged. */
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
 * Makes a format from a name ("csv") or an object ({"type": "csv", "separator": ";"});
 * from the name `fallback` when `cfg` is NULL. Takes a reference of its own to
 * `signals`. 0 with *out set, or a negative errno after reporting the error.
 */
int format_new(struct format **out, struct config *c, json_t *cfg,
	       const char *fallback, struct signal_list *signals);
void format_destroy(struct format *f); /* NULL allowed */

/*
 * The index of the first of `signals` whose values the format cannot hold; -1 when it
 * can hold them all. `signals` may be NULL.
 */
long format_refused_signal(const struct format *f,
			   const struct signal_list *signals);

/* The same, and reports such a signal as an error of `cfg`, the group of the node or
 * format. 0, or -EINVAL after config_fail(); where `c` is NULL it logs the error. */
int format_check_signals(const struct format *f, struct config *c, json_t *cfg,
			 const struct signal_list *signals);

/* Can the format `reader` be read and `writer` be written (NULL: it need not)? 0, or -EINVAL after
 * config_fail() for key `format` of `cfg`. */
int format_check_use(const struct format *reader, const struct format *writer,
		     struct config *c, const json_t *cfg);

/* Sizes of the record of one sample. */
struct format_sizes {
	size_t room_max;  /* buffer that print() may need; up to 1/64 too large */
	size_t bytes_min; /* of the shortest record */
};

/*
 * Finds the sizes by printing samples with extreme values of the types of `signals`;
 * too slow for the data path. 0, or the error of print(), with format_error().
 */
int format_sizes(struct format *f, struct signal_list *signals,
		 struct format_sizes *out);
/* The same; reports an error of `cfg` by config_fail() and returns -EINVAL then. */
int format_check_sizes(struct format *f, struct config *c, json_t *cfg,
		       struct signal_list *signals, struct format_sizes *out);

/* Whether scan() might find the end of the unfinished sample at buf[0]; see may_end. */
bool format_may_end(struct format *f, const char *buf, size_t len,
		    struct format_unfinished *u);

static inline const char *format_error(const struct format *f)
{
	return f->error;
}

#endif
