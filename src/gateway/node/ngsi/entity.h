/* SPDX-License-Identifier: BSD-2-Clause */
/* Entities of NGSI-v2 and NGSI-LD as JSON, and samples. No connection, no clock. */
#ifndef GATEWAY_NODE_NGSI_ENTITY_H
#define GATEWAY_NODE_NGSI_ENTITY_H

#include <stdbool.h>
#include <stddef.h>

#include "gateway/sample/sample.h"

/* Of a signal. */
struct ngsi_attribute {
	const char *name;    /* borrowed; NULL: the signal's */
	const char *type;    /* borrowed; NULL: by the signal's type */
	char *metadatas;     /* owned; JSON of members, each behind a comma; NULL: none */
};

struct ngsi_attributes {
	struct ngsi_attribute *list;
	unsigned count;
};

struct ngsi_entity {
	const char *id, *type;
	bool ld;             /* NGSI-LD, not NGSI-v2 */
	bool timestamp, sequence; /* go with each attribute */
	struct ngsi_attributes in, out;
};

#define NGSI_WHY 200

/* entity.c */
/*
 * Prints the attributes of a sample as the body of an update. `signals` (may be NULL) has
 * names in place of those of the sample. Adds the values that JSON cannot hold to *left_out. 1,
 * 0 when it needs more room, or -EBADMSG with the reason.
 */
int ngsi_entity_print(const struct ngsi_entity *e, const struct signal_list *signals,
		      const struct sample *s, char *buf, size_t size, size_t *used,
		      unsigned *left_out, char why[NGSI_WHY]);
/* The body that creates the entity, without attributes. Its length, as snprintf(). */
size_t ngsi_entity_create(const struct ngsi_entity *e, char *buf, size_t size);

/* scan.c */
/*
 * Reads an entity into a sample of `signals`. 1; 0: it has none of the attributes (yet);
 * -EBADMSG: an attribute is missing or of another type; -EPROTO: it is not that entity; both
 * with the reason.
 */
int ngsi_entity_scan(const struct ngsi_entity *e, struct signal_list *signals,
		     const char *text, size_t len, struct sample *s, char why[NGSI_WHY]);
/* The name of an attribute. */
const char *ngsi_attribute_name(const struct ngsi_attributes *a, unsigned index,
				const struct signal_list *signals);

#endif
