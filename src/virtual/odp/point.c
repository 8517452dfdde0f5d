/* SPDX-License-Identifier: BSD-2-Clause */
/* Points as text; see point.h. */
#include "virtual/odp/point.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "util/container_of.h"
#include "util/settings.h"

#define HOUR_NS UINT64_C(3600000000000)

static const char *const operations[] = { "same", "read", "write", "send", NULL };
static const char *const sides[] = { "none", "server", "client", "both", NULL };
static const char *const mitigations[] = { "none", "dummy", "window", "gate", "reissue", NULL };
static const char *const touches[] = { "none", "later", "all", NULL };

#define FIELD(name) .offset = offsetof(struct odp_point, name)
#define NUMBER(key, text, least, most, field)                                       \
	{ .env = key, .fallback = text, .type = SETTING_UINT, .min = (least),       \
	  .max = (most), FIELD(field) }
#define CHOICE(key, text, list, field)                                              \
	{ .env = key, .fallback = text, .type = SETTING_ENUM, .names = (list), FIELD(field) }
#define SWITCH(key, text, field)                                                    \
	{ .env = key, .fallback = text, .type = SETTING_BOOL, FIELD(field) }
#define TEXT(key, text, field)                                                      \
	{ .env = key, .fallback = text, .type = SETTING_STRING, FIELD(field) }

static const struct setting keys[] = {
	CHOICE("operation", "read", operations, operation),
	CHOICE("second", "same", operations, second),
	NUMBER("size", "100", 1, 1048576, size),
	NUMBER("stride", "0", 0, 1048576, stride),
	NUMBER("num_ops", "2", 1, ODP_OPS_MAX, num_ops),
	NUMBER("num_qps", "1", 1, ODP_QPS_MAX, num_qps),
	NUMBER("interval", "1000000", 0, HOUR_NS, interval_ns),
	NUMBER("jitter", "0", 0, HOUR_NS, jitter_ns),
	CHOICE("paged", "both", sides, paged),
	CHOICE("pre_touch", "none", touches, pre_touch),
	NUMBER("rnr_code", "14", 0, 31, rnr_code),
	NUMBER("ack_code", "1", 0, 31, ack_code),
	NUMBER("retry", "7", 0, 7, retry),
	NUMBER("rnr_retry", "7", 0, 7, rnr_retry),
	NUMBER("max_rd_atomic", "4", 1, 16, max_rd_atomic),
	TEXT("profile", "connectx4", profile),
	NUMBER("fault", "0", 0, HOUR_NS, fault_ns),
	NUMBER("trials", "1", 1, 1000, trials),
	NUMBER("seed", "1", 0, UINT64_MAX, seed),
	CHOICE("mitigation", "none", mitigations, mitigation),
	NUMBER("patience", "5000000", 1000, HOUR_NS, patience_ns),
	NUMBER("window", "4", 1, ODP_DEPTH_MAX, window),
	SWITCH("answers", "on", answers),
	SWITCH("list", "off", list),
	TEXT("capture", "", capture),
};

static int set_defaults(struct odp_point *p)
{
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (setting_parse(&keys[i], keys[i].fallback, (char *)p + keys[i].offset))
			return -EINVAL;
	return 0;
}

static const struct setting *key_of(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (!strcmp(keys[i].env, name))
			return &keys[i];
	return NULL;
}

static int set(struct odp_point *p, char *word, char *why, size_t why_bytes)
{
	char *value = strchr(word, '=');
	const struct setting *key;

	if (value)
		*value++ = '\0';
	key = key_of(word);
	if (!key || !value) {
		snprintf(why, why_bytes, "'%.40s' is not a parameter and its value", word);
		return -EINVAL;
	}
	if (setting_parse(key, value, (char *)p + key->offset)) {
		snprintf(why, why_bytes, "%s '%.40s' is not usable, expected %ju to %ju", word,
			 value, (uintmax_t)key->min, (uintmax_t)key->max);
		return -EINVAL;
	}
	return 0;
}

static int check(const struct odp_point *p, char *why, size_t why_bytes)
{
	if (p->operation == ODP_SAME) {
		snprintf(why, why_bytes, "operation is read, write or send");
		return -EINVAL;
	}
	if (p->num_ops > p->num_qps * ODP_DEPTH_MAX) {
		snprintf(why, why_bytes, "num_ops %ju is not usable, expected 1 to %ju: %u on "
			 "each queue pair", (uintmax_t)p->num_ops,
			 (uintmax_t)(p->num_qps * ODP_DEPTH_MAX), ODP_DEPTH_MAX);
		return -EINVAL;
	}
	if (p->stride && p->stride < p->size) {
		snprintf(why, why_bytes, "stride %ju is not usable, expected 0 or at least the "
			 "size, %ju", (uintmax_t)p->stride, (uintmax_t)p->size);
		return -EINVAL;
	}
	if (p->mitigation == ODP_REISSUE &&
	    (p->operation != ODP_READ || (p->second != ODP_SAME && p->second != ODP_READ))) {
		snprintf(why, why_bytes, "mitigation reissue is for READs alone");
		return -EINVAL;
	}
	if (odp_bytes(p) > ODP_BYTES_MAX) {
		snprintf(why, why_bytes, "size * num_ops is %ju, expected at most %ju",
			 (uintmax_t)odp_bytes(p), (uintmax_t)ODP_BYTES_MAX);
		return -EINVAL;
	}
	return 0;
}

int odp_point_parse(char *line, struct odp_point *out, char *why, size_t why_bytes)
{
	struct odp_point p = { 0 };
	int ret = set_defaults(&p);
	char *rest = line;

	for (char *word; !ret && (word = strsep(&rest, " \n"));)
		if (*word)
			ret = set(&p, word, why, why_bytes);
	if (!ret)
		ret = check(&p, why, why_bytes);
	*out = p;
	return ret;
}

enum ibv_wr_opcode odp_opcode(const struct odp_point *p, uint64_t i)
{
	int operation = i < p->num_qps || p->second == ODP_SAME ? p->operation : p->second;

	return operation == ODP_READ  ? IBV_WR_RDMA_READ :
	       operation == ODP_WRITE ? IBV_WR_RDMA_WRITE :
					IBV_WR_SEND;
}

unsigned odp_qps(const struct odp_point *p)
{
	return (unsigned)p->num_qps + (p->mitigation == ODP_REISSUE);
}

uint64_t odp_offset(const struct odp_point *p, uint64_t i)
{
	return i * (p->stride ? p->stride : p->size);
}

uint64_t odp_bytes(const struct odp_point *p)
{
	return odp_offset(p, p->num_ops - 1) + p->size;
}
