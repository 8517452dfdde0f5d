/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A board for tests of the node-type comedi: the functions of libcomedi that it calls, for one
 * board without a driver. Subdevices:
 *
 *	0  analog input, 8 channels of 16 bits, -10 to 10 V or 0 to 5 V, can stream
 *	1  analog output, 4 channels, likewise
 *	2  digital lines, 8 of either direction
 *	3  analog input, 2 channels of 24 bits, only singly
 *
 * Input 0 has on each channel what output 1 has on the channel of the same number; a line reads
 * what was written to it. As in the kernel, a buffer that overflows or runs dry ends the command;
 * data that came before are still read. The buffer is a pipe, so one command runs at a time.
 */
#ifndef TESTS_COMEDI_FAKE_H
#define TESTS_COMEDI_FAKE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct fake_board {
	atomic_bool ramp;             /* streamed inputs count the scans instead */
	atomic_bool broken;           /* single conversions fail */
	atomic_bool locked;           /* by somebody else */
	atomic_uint commands;         /* that were begun */
	atomic_uint ended;            /* by an overflow, or because they ran dry */
	atomic_uint scans_in, scans_out;
	atomic_uint period_ns;        /* of the last command */
	_Atomic uint32_t output[4];   /* codes that the outputs have */
	_Atomic uint32_t lines;       /* digital ones, a bit each */
	_Atomic uint32_t directions;  /* bits of those that are outputs */
};

extern struct fake_board fake_board;

#endif
