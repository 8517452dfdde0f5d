/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Frames of synchrophasors: IEEE C37.118.2-2011, and C37.118-2005, whose frames are the same but
 * for CFG-3. Pure functions: no socket, no clock, no memory. What is decoded points into the bytes
 * of the caller.
 *
 * A configuration frame describes the stations (PMUs) of a stream and the form of their values.
 * Data frames hold nothing but values, so a data frame is read with the configuration at hand.
 */
#ifndef WIRE_GRID_C37_H
#define WIRE_GRID_C37_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	C37_SYNC = 0xaa,
	C37_HEADER_SIZE = 14, /* SYNC to FRACSEC */
	C37_FRAME_MIN = 16,   /* with the check */
	C37_FRAME_MAX = 65535,
	C37_NAME_SIZE = 16,   /* of a name in CFG-1 and CFG-2 */
	C37_NAME_MAX = 255,   /* bytes of a name in CFG-3 */
	C37_GUID_SIZE = 16,
	C37_TIME_BASE_MAX = 0xffffff,
	C37_VERSION_2005 = 1,
	C37_VERSION_2011 = 2,
};

enum c37_type { C37_DATA, C37_HEADER, C37_CFG1, C37_CFG2, C37_COMMAND, C37_CFG3, C37_TYPES };

enum c37_command {
	C37_DATA_OFF = 1,
	C37_DATA_ON,
	C37_SEND_HEADER,
	C37_SEND_CFG1,
	C37_SEND_CFG2,
	C37_SEND_CFG3,
	C37_EXTENDED = 8,
};

/* The high byte of FRACSEC. */
enum c37_quality {
	C37_TIME_CODE = 0x0f,     /* 0: locked; 1 to 11: within 10^(code - 10) s; 15: no time */
	C37_LEAP_PENDING = 0x10,  /* a leap second comes within a minute */
	C37_LEAP_OCCURRED = 0x20, /* there was one within a day */
	C37_LEAP_DELETES = 0x40,  /* the second is left out, not inserted */
};

/* STAT, of each station in a data frame. */
enum c37_stat {
	C37_STAT_ERROR = 0xc000,       /* 0: good data */
	C37_STAT_ABSENT = 0x8000,      /* of these: values are absent, or those of a test */
	C37_STAT_NOT_IN_SYNC = 0x2000, /* with UTC */
	C37_STAT_BY_ARRIVAL = 0x1000,
	C37_STAT_TRIGGER = 0x0800,
	C37_STAT_CHANGE = 0x0400,      /* for a minute: the configuration changes */
	C37_STAT_MODIFIED = 0x0200,
};

/* FORMAT, of each station. */
enum c37_format {
	C37_POLAR = 1,            /* phasors are magnitude and angle, else real and imaginary part */
	C37_FLOAT_PHASORS = 2,    /* else 16-bit integers, likewise below */
	C37_FLOAT_ANALOGS = 4,
	C37_FLOAT_FREQUENCY = 8,
};

/* What a phasor is. */
enum c37_component {
	C37_ZERO_SEQUENCE,
	C37_POSITIVE_SEQUENCE,
	C37_NEGATIVE_SEQUENCE,
	C37_PHASE_A = 4,
	C37_PHASE_B,
	C37_PHASE_C,
};

enum c37_analog_kind { C37_POINT_ON_WAVE, C37_RMS, C37_PEAK };

struct c37_bytes {
	const uint8_t *at;
	size_t len;
};

struct c37_frame {
	enum c37_type type;
	uint8_t version;
	uint16_t idcode;   /* of the stream */
	uint32_t soc;      /* seconds since 1970, without leap seconds */
	uint8_t quality;   /* enum c37_quality */
	uint32_t fraction; /* of a second, in units of 1/TIME_BASE s */
	struct c37_bytes body;
};

/* CRC-CCITT as the frames have it: 0x1021, from 0xffff. */
uint16_t c37_crc(const uint8_t *data, size_t len);

/*
 * Reads the frame at the start of the bytes that came. Its length; 0: the frame is not complete;
 * -EPROTO: no frame begins here, because of *why, and *skip bytes (1 or more) have to be passed
 * over to look for the next one.
 */
int c37_next(const uint8_t *data, size_t len, struct c37_frame *f, size_t *skip,
	     const char **why);

/* The command of a command frame, 0: it has none. */
uint16_t c37_command_of(const struct c37_frame *f);

/* Nanoseconds since 1970 of a frame, -1: the fraction is more than a second. */
int64_t c37_time_ns(const struct c37_frame *f, uint32_t time_base);

/* ---- configurations ---- */

struct c37_config {
	bool cfg3;
	uint32_t time_base;   /* 1 to C37_TIME_BASE_MAX */
	unsigned stations;
	int16_t rate;         /* above 0: frames per second; below: minus seconds per frame; 0: not
			       * said */
	struct c37_bytes rest; /* that c37_station_next() has not taken */
};

/* What is needed to read a station's part of a data frame. */
struct c37_block {
	uint16_t format;      /* enum c37_format */
	uint16_t phasors, analogs, digitals; /* numbers of values; digitals are words of 16 bits */
	uint8_t nominal_hz;   /* 50 or 60 */
};

struct c37_station {
	struct c37_bytes name;
	uint16_t idcode;
	struct c37_block block;
	struct c37_bytes names; /* that c37_name_next() has not taken */
	const uint8_t *phasor_units, *analog_units, *digital_units;
	uint16_t changes;     /* CFGCNT */
	bool cfg3;
	/* CFG-3 only. */
	uint8_t guid[C37_GUID_SIZE];
	float latitude, longitude, elevation_m; /* infinite: not known */
	char service_class;   /* 'M' or 'P' */
	int32_t window_us, delay_us;
};

struct c37_phasor_unit {
	bool current;         /* amperes, else volts */
	uint8_t component;    /* enum c37_component; CFG-3 only */
	uint16_t modified;    /* by which processing; CFG-3 only */
	double scale;         /* volts or amperes per bit; of integers only */
	double angle;         /* radians that are taken off; of integers, CFG-3 only */
};

struct c37_analog_unit {
	uint8_t kind;         /* enum c37_analog_kind; not in CFG-3 */
	double scale, offset; /* of integers: value = scale * number + offset. In CFG-2 the scale
			       * is as the user of the device defines it; 0 is read as 1 */
};

struct c37_digital_unit {
	uint16_t normal, valid;
};

/* The configuration in a frame of type C37_CFG1, C37_CFG2 or C37_CFG3, which is looked at whole.
 * NULL, or what is wrong with it. */
const char *c37_config_decode(const struct c37_frame *f, struct c37_config *c);
/* The next station; false: that was the last one. */
bool c37_station_next(struct c37_config *c, struct c37_station *s);
/* Names of the phasors, then of the analogs, then 16 of each digital word; without the blanks
 * behind them. False: that was the last one. */
bool c37_name_next(struct c37_station *s, struct c37_bytes *name);
struct c37_phasor_unit c37_phasor_unit(const struct c37_station *s, unsigned i);
struct c37_analog_unit c37_analog_unit(const struct c37_station *s, unsigned i);
struct c37_digital_unit c37_digital_unit(const struct c37_station *s, unsigned i);

/* ---- data ---- */

/* Bytes of a station in a data frame. */
size_t c37_block_size(const struct c37_block *b);

struct c37_values {
	uint16_t stat;           /* enum c37_stat */
	double frequency_hz, rocof_hz_s;
	const uint8_t *phasors, *analogs, *digitals;
};

/* Takes the next station of a data frame off *rest, which begins as the body of the frame. 0, or
 * -EPROTO: it has too few bytes. What the device has no value for is NAN. */
int c37_data_next(struct c37_bytes *rest, const struct c37_block *b, struct c37_values *v);
/* Real and imaginary part. */
void c37_phasor(const struct c37_block *b, const struct c37_values *v, unsigned i,
		const struct c37_phasor_unit *u, double out[2]);
double c37_analog(const struct c37_block *b, const struct c37_values *v, unsigned i,
		  const struct c37_analog_unit *u);
uint16_t c37_digital(const struct c37_values *v, unsigned i);

/* ---- writing ---- */

/* A frame that is being written; what finds no room is noted, and c37_end() tells. */
struct c37_out {
	uint8_t *at;
	size_t size, used;
	bool full;
};

/* The header of `f`, whose body is not looked at. */
void c37_begin(struct c37_out *out, uint8_t *buffer, size_t size, const struct c37_frame *f);
void c37_put_16(struct c37_out *out, uint16_t v);
void c37_put_32(struct c37_out *out, uint32_t v);
void c37_put_bytes(struct c37_out *out, const void *data, size_t len);
/* Writes length and check. The length, 0: there was no room, or it is more than a frame has. */
size_t c37_end(struct c37_out *out);

/* A command frame as a whole, of C37_FRAME_MIN + 2 bytes. */
size_t c37_encode_command(uint8_t *buffer, size_t size, const struct c37_frame *f,
			  uint16_t command);

/*
 * A configuration: c37_put_config(), then for each station c37_put_station(), its names, its units
 * (phasors, analogs, digitals) and c37_put_station_end(), then c37_put_rate(). `cfg3`: of type
 * CFG-3. Names of other types have 16 bytes; longer ones are cut.
 */
void c37_put_config(struct c37_out *out, const struct c37_config *c);
void c37_put_station(struct c37_out *out, const struct c37_station *s);
void c37_put_name(struct c37_out *out, bool cfg3, struct c37_bytes name);
void c37_put_phasor_unit(struct c37_out *out, bool cfg3, const struct c37_phasor_unit *u);
void c37_put_analog_unit(struct c37_out *out, bool cfg3, const struct c37_analog_unit *u);
void c37_put_digital_unit(struct c37_out *out, const struct c37_digital_unit *u);
void c37_put_station_end(struct c37_out *out, const struct c37_station *s);
void c37_put_rate(struct c37_out *out, int16_t rate);

/* Values of a data frame, in this order: STAT by c37_put_16(), phasors, frequency, analogs, digitals
 * by c37_put_16(). Integers that are too small or large become the nearest ones. */
void c37_put_phasor(struct c37_out *out, const struct c37_block *b,
		    const struct c37_phasor_unit *u, const double v[2]);
void c37_put_frequency(struct c37_out *out, const struct c37_block *b, double frequency_hz,
		       double rocof_hz_s);
void c37_put_analog(struct c37_out *out, const struct c37_block *b,
		    const struct c37_analog_unit *u, double v);

#endif
