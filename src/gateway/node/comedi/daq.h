/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Node-type `comedi`, for its own files: comedi.c has the settings, device.c the board and its
 * commands, read.c and write.c samples; scans.c is the pure part. Names begin with daq, because
 * those with comedi are the library's.
 */
#ifndef GATEWAY_NODE_COMEDI_DAQ_H
#define GATEWAY_NODE_COMEDI_DAQ_H

#include <comedilib.h>

#include "gateway/node/comedi/scans.h"
#include "gateway/part/fault.h"
#include "gateway/part/socket_wait.h"
#include "gateway/part/timer.h"
#include "gateway/plugin/node.h"

enum daq_figure {
	DAQ_AT_LIMIT = FAULT_KINDS,
	DAQ_READ_ERRORS,
	DAQ_UNDERRUNS,
	DAQ_FIGURES,
};

enum daq_kind { DAQ_ANALOG, DAQ_DIGITAL };
enum daq_mode { DAQ_AUTO, DAQ_STREAM, DAQ_SINGLE };

struct daq_channel {
	unsigned number, range, reference;
	enum signal_type type;     /* of `in` */
	struct daq_scale scale;    /* of the device */
};

/* One direction. */
struct daq_side {
	int64_t subdevice;         /* -1: the first one of its kind */
	int64_t buffer_kib;
	double rate;
	int kind, mode;
	struct daq_channel *channels;
	unsigned count;

	/* From start to stop */
	bool locked;
	bool streams;              /* by a command; else single conversions */
	bool commanded;            /* a command runs */
	bool wide;                 /* codes of 32 bits in the kernel's buffer */
	unsigned *list;            /* channels, as the kernel wants them */
	double period_ns;          /* of the board, which may differ from 1 / rate */
	size_t scan_size;          /* bytes */
	size_t kernel_size;        /* bytes of the kernel's buffer */
	char *buffer;              /* scans, or a part of one */
	size_t size, start, end;   /* bytes of it; of `out` only `end`: a part of a scan that waits */
};

struct daq_node {
	const char *device;
	struct daq_side in, out;

	/* From start to stop */
	comedi_t *dev;
	int fd;
	struct fault_counters faults;
	struct socket_wait wait;
	struct timer timer;        /* of single conversions */
	bool has_timer, resumed;
	struct daq_clock clock;
	bool triggered;            /* `out` streams */
	uint32_t *codes;           /* of the sample that is written */
};

/* device.c */
/* Opens the board and the subdevices that paths use. 0 or a negative errno, logged. */
int daq_open(struct node *n);
void daq_close(struct node *n);
/* Begins to convert at the rate, by a command of the kernel; 0 or a negative errno, and the reason
 * by comedi_errno(). */
int daq_command(struct daq_node *d, struct daq_side *s, bool writes);
void daq_cancel(struct daq_node *d, struct daq_side *s);
/* The library's words for what failed last. */
const char *daq_error(void);

/* read.c */
int daq_read_start(struct node *n);
void daq_resume(struct node *n);
int daq_read(struct node *n, struct sample *smps[], unsigned cnt, unsigned *release);

/* write.c */
int daq_write_start(struct node *n);
int daq_write(struct node *n, struct sample *smps[], unsigned cnt, unsigned *release);
void daq_write_stop(struct node *n);

#endif
