/* SPDX-License-Identifier: BSD-2-Clause */
/* Fuzz target: the reader of csv, tsv and plain recordings. */
#include <stddef.h>

static const char *const format_cfgs[] = {
	"{ \"type\": \"csv\" }",
	"{ \"type\": \"tsv\" }",
	"{ \"type\": \"csv\", \"columns\": \"plain\" }",
	"{ \"type\": \"csv\", \"columns\": \"plain\", \"time_column\": \"time\", \"time_format\": \"%d-%b-%Y %H:%M:%S\" }",
	"{ \"type\": \"csv\", \"columns\": \"plain\", \"time_format\": \"%FT%T.%f%z\" }",
	NULL,
};

static const char *const seeds[] = {
	"# secs,nsecs,offset,sequence,a\n1637846259,201578969,0.000000107,5,1.5,-2,1,1.5-2.25i\n",
	"10,000000005,nan,nan,,7,0,0i\n11,0,-1.5e-3,9,NaN,8,1,2i\n",
	"1\t2\t0.5\t3\t4.5\t6\t1\t1+1i\n",
	"time,\"a,b\",c\n0.5,1,2\n1.5e-3,\"3\",4\n",
	"a,b,time\n1,2,28-Apr-2025 11:00:02\n",
	"\xef\xbb\xbf\"Time (ms)\",a,b\r-1.5,1,2\r-.5e-3,,\r1,2\r",
	"time [s],a\n2024-02-29T12:00:00.25+01:00,1\n1969-12-31T23:59:59,5Z,2\n",
	"-2,500000000,-9223372036854775808.5,18446744073709551615,1\n",
	NULL,
};

#include "text_format.h"
