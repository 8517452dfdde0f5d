/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Engineering files of substations in the language SCL (IEC 61850-6: ICD, CID, IID, SCD): the
 * control blocks of GOOSE and sampled values in them, with their addresses, and with the types and
 * names of their data sets as the templates of data types say them.
 *
 * One thread at a time for each file.
 */
#ifndef GATEWAY_SCL_SCL_H
#define GATEWAY_SCL_SCL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gateway/scl/elements.h"

enum {
	SCL_FILE_BYTES_MAX = 64 << 20,
	SCL_DATA_MAX = 4096, /* values, structures and arrays of a data set */
	SCL_DEPTH_MAX = 7,   /* of structures in structures, as many as GOOSE reads */
	SCL_WHY_MAX = 600,
};

enum scl_kind { SCL_GOOSE, SCL_SAMPLED_VALUES };

/* A basic type of IEC 61850-7-2, and what the node-types call it. */
struct scl_basic {
	const char *name;     /* bType */
	const char *mms_type; /* of iec61850-8-1 */
	unsigned bits;        /* of an mms_type "bitstring"; bytes of one "octet_string" */
	const char *iec_type; /* of iec61850-9-2; NULL: it cannot hold such values */
};

/* A value of a data set, or several of them. */
struct scl_data {
	const char *name;  /* "LD0/PTRC1.Tr.general", which begins with the logical device */
	const struct scl_basic *basic; /* NULL: a structure, or an array */
	bool array;
	unsigned line;     /* of its FCDA */
	unsigned count;    /* of parts */
	struct scl_data *parts;
};

/* What a file says of a control block. Texts live as long as the file; NULL: not said. */
struct scl_control {
	enum scl_kind kind;
	const char *ied;
	const char *path;      /* "LD0/LLN0.trip": logical device, logical node, name */
	unsigned line;
	const struct scl_element *element, *node; /* the control block and its logical node */

	/* The rest is there after scl_control_read(). */
	const char *reference, *dataset; /* as in messages */
	const char *id;        /* goID or svID */
	bool has_revision, has_appid, has_vlan_id, has_vlan_priority;
	uint32_t revision;     /* confRev */
	const char *mac;       /* destination, "01-0C-CD-01-00-01" */
	const char *ip;        /* destination of routed messages */
	uint16_t appid, vlan_id;
	uint8_t vlan_priority;
	unsigned address_line; /* of GSE or SMV; 0: the file has none */
	double min_s, max_s;   /* MinTime, MaxTime; 0: not said */
	const char *protocol;  /* "R-GOOSE" or "R-SV" */
	bool fixed_offsets;    /* fixedOffs: GOOSE with lengths that do not depend on values */
	/* Of sampled values: */
	uint16_t rate;         /* smpRate */
	uint8_t mode;          /* enum sv_mode of wire/grid/sv.h */
	uint8_t asdus;         /* nofASDU */
	bool with_time, with_rate, with_dataset; /* SmvOpts */
	struct scl_data *data; /* one for each FCDA */
	unsigned count;
};

struct scl;

/* Reads a file. 0 or a negative errno with the reason, which begins with the file and the line
 * where it is one of its contents. Free it by scl_free(). */
int scl_load(const char *path, struct scl **out, char why[SCL_WHY_MAX]);
/* The same from memory, with a reader of XML; `name` stands in messages. */
int scl_read(const struct scl_xml_ops *xml, const char *name, const char *text, size_t len,
	     struct scl **out, char why[SCL_WHY_MAX]);
void scl_free(struct scl *s); /* NULL allowed */
const char *scl_name(const struct scl *s); /* of the file */

/* The control blocks of the file, in its order. */
struct scl_control *scl_controls(struct scl *s, unsigned *count);
/*
 * The control block `path` of device `ied` (NULL: of the only device that has one of this path). 0;
 * -ENOENT with the reason.
 */
int scl_find(struct scl *s, enum scl_kind kind, const char *ied, const char *path,
	     struct scl_control **out, char why[SCL_WHY_MAX]);
/* Looks up all that the file says of it. 0; -EINVAL: something is missing in the file, or
 * contradicts itself; -ENOMEM; with the reason. */
int scl_control_read(struct scl *s, struct scl_control *c, char why[SCL_WHY_MAX]);

/* Calls `take` for each value of the data set in its order, without structures and arrays, until
 * it returns other than 0; what it returned. `place`: on each of `depth` levels, which part. */
int scl_each_value(const struct scl_control *c,
		   int (*take)(void *arg, const struct scl_data *d, const unsigned place[],
			       unsigned depth),
		   void *arg);

/* A value of sampled values. */
struct scl_sampled {
	const struct scl_data *data;
	bool quality; /* the quality of its data object stands directly behind it */
};

/* The values of the data set in their order. 0; -EINVAL: sampled values cannot hold one of them;
 * or -ENOMEM; with the reason. They live as long as the file. */
int scl_sampled_values(struct scl *s, const struct scl_control *c, struct scl_sampled **out,
		       unsigned *count, char why[SCL_WHY_MAX]);

bool scl_is_quality(const struct scl_data *d);
bool scl_is_time(const struct scl_data *d);
/* No signal can hold it. */
bool scl_is_text(const struct scl_data *d);

#endif
