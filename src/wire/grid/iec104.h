/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages of IEC 60870-5-104 edition 2: frames (APCI, clause 5) and the ASDUs in them, with the
 * fields that this profile fixes: two bytes for the cause of transmission and the common address,
 * three for addresses of information objects. Pure functions, of any thread.
 */
#ifndef WIRE_GRID_IEC104_H
#define WIRE_GRID_IEC104_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	IEC104_APCI = 6,
	IEC104_APDU_MAX = 255,
	IEC104_ASDU_HEADER = 6,
	IEC104_ASDU_MAX = IEC104_APDU_MAX - IEC104_APCI,
	IEC104_OBJECTS_MAX = 127,
	IEC104_MODULO = 32768,           /* of the sequence numbers */
	IEC104_ADDRESS_MAX = 0xffffff,   /* of an information object; 0: it has none */
	IEC104_STATION_ALL = 0xffff,     /* common address that means every station; 0 is none */
};

/* ---- frames ---- */

enum iec104_format { IEC104_I, IEC104_S, IEC104_U };

enum iec104_function {
	IEC104_STARTDT_ACT = 0x04,
	IEC104_STARTDT_CON = 0x08,
	IEC104_STOPDT_ACT = 0x10,
	IEC104_STOPDT_CON = 0x20,
	IEC104_TESTFR_ACT = 0x40,
	IEC104_TESTFR_CON = 0x80,
};

struct iec104_frame {
	enum iec104_format format;
	uint16_t send, receive;          /* N(S) of I; N(R) of I and S */
	enum iec104_function function;   /* of U */
	const uint8_t *asdu;             /* of I */
	size_t asdu_len;
};

/* The first frame of `len` bytes. Its length; 0: it is not complete; -EPROTO with *why. */
int iec104_frame_decode(const uint8_t *at, size_t len, struct iec104_frame *f, const char **why);
/* Writes a frame, of I with its ASDU of at most IEC104_ASDU_MAX bytes. Its length. */
size_t iec104_frame_encode(const struct iec104_frame *f, uint8_t to[IEC104_APDU_MAX]);

/* ---- ASDUs ---- */

enum iec104_type {
	IEC104_M_SP_NA = 1, IEC104_M_DP_NA = 3, IEC104_M_ST_NA = 5, IEC104_M_BO_NA = 7,
	IEC104_M_ME_NA = 9, IEC104_M_ME_NB = 11, IEC104_M_ME_NC = 13, IEC104_M_IT_NA = 15,
	IEC104_M_ME_ND = 21,
	IEC104_M_SP_TB = 30, IEC104_M_DP_TB, IEC104_M_ST_TB, IEC104_M_BO_TB, IEC104_M_ME_TD,
	IEC104_M_ME_TE, IEC104_M_ME_TF, IEC104_M_IT_TB,
	IEC104_C_SC_NA = 45, IEC104_C_DC_NA, IEC104_C_RC_NA, IEC104_C_SE_NA, IEC104_C_SE_NB,
	IEC104_C_SE_NC, IEC104_C_BO_NA,
	IEC104_C_SC_TA = 58, IEC104_C_DC_TA, IEC104_C_RC_TA, IEC104_C_SE_TA, IEC104_C_SE_TB,
	IEC104_C_SE_TC, IEC104_C_BO_TA,
	IEC104_M_EI_NA = 70,
	IEC104_C_IC_NA = 100, IEC104_C_CI_NA, IEC104_C_RD_NA, IEC104_C_CS_NA, IEC104_C_TS_NA,
	IEC104_C_RP_NA, IEC104_C_TS_TA = 107,
};

/* What an object of a type holds, before the time tag. */
enum iec104_kind {
	IEC104_SINGLE,       /* value 0 or 1 */
	IEC104_DOUBLE,       /* value 0 to 3: intermediate, off, on, indeterminate */
	IEC104_STEP,         /* value -64 to 63, `transient` */
	IEC104_BITS,         /* value: 32 bits */
	IEC104_NORMALIZED,   /* value: 32768ths */
	IEC104_NORMALIZED_PLAIN, /* the same without quality */
	IEC104_SCALED,       /* value: -32768 to 32767 */
	IEC104_SHORT,        /* real */
	IEC104_COUNTER,      /* value; quality: enum iec104_counter_bit and a sequence number */
	IEC104_SINGLE_COMMAND, /* value 0 or 1, qualifier 0 to 31, `select` */
	IEC104_DOUBLE_COMMAND, /* value 1 off, 2 on; 0 and 3 are not permitted */
	IEC104_STEP_COMMAND,   /* value 1 lower, 2 higher; likewise */
	IEC104_NORMALIZED_SETPOINT, /* qualifier 0 to 127, `select` */
	IEC104_SCALED_SETPOINT,
	IEC104_SHORT_SETPOINT,
	IEC104_BITS_COMMAND,   /* neither qualifier nor select */
	IEC104_ONE_BYTE,     /* value: a qualifier (QOI, QCC, QRP) or a cause (COI) */
	IEC104_TWO_BYTES,    /* value: a test pattern */
	IEC104_NOTHING,
};

enum iec104_quality {
	IEC104_OVERFLOW = 0x01,
	IEC104_BLOCKED = 0x10,
	IEC104_SUBSTITUTED = 0x20,
	IEC104_NOT_TOPICAL = 0x40,
	IEC104_INVALID = 0x80,
};

enum iec104_counter_bit {
	IEC104_COUNTER_SEQUENCE = 0x1f,
	IEC104_COUNTER_CARRY = 0x20,
	IEC104_COUNTER_ADJUSTED = 0x40,
	IEC104_COUNTER_INVALID = 0x80,
};

enum iec104_cause {
	IEC104_PERIODIC = 1, IEC104_BACKGROUND, IEC104_SPONTANEOUS, IEC104_INITIALIZED,
	IEC104_REQUESTED, IEC104_ACTIVATION, IEC104_ACTIVATION_CON, IEC104_DEACTIVATION,
	IEC104_DEACTIVATION_CON, IEC104_ACTIVATION_END,
	IEC104_INTERROGATED = 20,        /* 21 to 36: groups */
	IEC104_COUNTERS_REQUESTED = 37,  /* 38 to 41: groups */
	IEC104_UNKNOWN_TYPE = 44, IEC104_UNKNOWN_CAUSE, IEC104_UNKNOWN_STATION,
	IEC104_UNKNOWN_ADDRESS,
};

#define IEC104_STATION_INTERROGATION 20 /* QOI */
#define IEC104_COUNTERS_ALL 5           /* QCC: all counters; 1 to 4: a group of them */

/* Bits 6 and 7 of QCC. */
enum iec104_freeze {
	IEC104_READ,
	IEC104_FREEZE,
	IEC104_FREEZE_RESET,
	IEC104_RESET,
	IEC104_FREEZE_SHIFT = 6,
};
#define IEC104_TEST_PATTERN 0x55aa

struct iec104_type_info {
	const char *name;                /* "M_SP_NA_1" */
	uint8_t type;                    /* enum iec104_type */
	uint8_t kind;                    /* enum iec104_kind */
	bool timed;                      /* a CP56Time2a follows */
	bool command;                    /* from master to slave, one object */
};

/* NULL: no type that these functions know. */
const struct iec104_type_info *iec104_type_find(unsigned type);
const struct iec104_type_info *iec104_type_named(const char *name);
/* The type of that kind; NULL: there is none. */
const struct iec104_type_info *iec104_type_of(enum iec104_kind kind, bool timed);
/* Bytes of an object without its address. */
size_t iec104_object_size(const struct iec104_type_info *info);

/* A date and a time of day, of which the standard does not say the time zone. */
struct iec104_time {
	uint16_t millisecond;            /* of the minute: 0 to 59999 */
	uint8_t minute, hour, day, month, year; /* day and month from 1, year 0 to 99: 2000 to 2099 */
	uint8_t weekday;                 /* 1 Monday to 7; 0: not said */
	bool invalid, summer, substituted;
};

enum { IEC104_TIME_BYTES = 7 };
void iec104_time_decode(const uint8_t from[IEC104_TIME_BYTES], struct iec104_time *t);
void iec104_time_encode(const struct iec104_time *t, uint8_t to[IEC104_TIME_BYTES]);
/* Of nanoseconds since 1970, in UTC, cut to milliseconds; years outside of 2000 to 2099: `invalid`. */
struct iec104_time iec104_time_from_ns(int64_t ns);
/* False: it is invalid, or no date. */
bool iec104_time_to_ns(const struct iec104_time *t, int64_t *ns);

struct iec104_object {
	uint32_t address;
	int32_t value;
	float real;
	uint8_t quality;                 /* enum iec104_quality */
	uint8_t qualifier;
	bool transient, select;
	struct iec104_time time;
};

struct iec104_asdu {
	uint8_t type;                    /* enum iec104_type, or another one */
	uint8_t cause, originator;
	uint16_t station;                /* the common address */
	bool sequence;                   /* the addresses count up from that of the first object */
	bool negative, test;
	unsigned count;
	/* Of a decoded one: NULL if the type is not known; then its objects cannot be decoded. */
	const struct iec104_type_info *info;
	const uint8_t *objects;
};

/* NULL, or what is wrong with it. The objects take up all of the bytes. */
const char *iec104_asdu_decode(const uint8_t *at, size_t len, struct iec104_asdu *a);
/* Object number `index` of a decoded ASDU whose type is known. */
void iec104_object_decode(const struct iec104_asdu *a, unsigned index, struct iec104_object *o);
/* Writes an ASDU with `count` objects. Its length; 0: the type is not known, or the objects are
 * none, too many, or not of consecutive addresses in a sequence. Values are cut to their bits. */
size_t iec104_asdu_encode(const struct iec104_asdu *a, const struct iec104_object objects[],
			  uint8_t to[IEC104_ASDU_MAX]);
/* How many objects an ASDU of that type holds at most. */
unsigned iec104_asdu_room(const struct iec104_type_info *info, bool sequence);
/* Makes the answer to an ASDU out of its bytes. */
void iec104_asdu_answer(uint8_t *asdu, enum iec104_cause cause, bool negative);

#endif
