/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target of MADs: SMPs, the attributes of each class, details of traps, queries of subnet
 * administration. Built plainly, main() runs a bounded number of random mutations (argument 1:
 * runs, argument 2: seed); built with -fsanitize=fuzzer and -DFUZZER, libFuzzer drives it.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "drive.h"
#include "wire/bytes.h"
#include "wire/mad/cc.h"
#include "wire/mad/notice.h"
#include "wire/mad/sa.h"
#include "wire/mad/smp.h"

static void check(bool good)
{
	if (!good)
		abort();
}

/* What was read can be written again, and is read the same. `from` has the layout's bytes only. */
static void layout_check(const struct wire_layout *layout, const uint8_t *bytes)
{
	uint8_t *from = malloc(layout->bytes), *out = malloc(layout->bytes);
	void *host = malloc(layout->size), *again = calloc(1, layout->size);

	check(from && out && host && again);
	memcpy(from, bytes, layout->bytes);
	wire_unpack(layout, from, host);
	check(wire_pack(layout, host, out));
	wire_unpack(layout, out, again);
	check(!memcmp(host, again, layout->size));
	check(wire_pack_fields(layout, again, from));
	check(!memcmp(from, bytes, layout->bytes));
	free(from);
	free(out);
	free(host);
	free(again);
}

static void smp_check(const uint8_t *data, size_t size)
{
	struct mad_smp smp;
	uint8_t out[MAD_BYTES];

	if (!mad_smp_unpack(data, size, &smp))
		return;
	check(smp.hop_count < MAD_SMP_PATH_BYTES);
	check(mad_smp_pack(&smp, out));
	check(!memcmp(out, data, 18) || smp.mgmt_class == MAD_CLASS_SUBN_LID);
	check(!memcmp(out + MAD_DATA_AT, data + MAD_DATA_AT, MAD_SMP_DATA_BYTES));
}

/* A record has the components that it has itself. */
static void query_check(const uint8_t *data, const struct wire_layout *layout, uint16_t attr_id)
{
	struct mad_sa sa;

	mad_sa_unpack(data + MAD_SA_HEADER_AT, &sa);
	(void)layout;
	if (!mad_sa_matches(attr_id, sa.component_mask, data + MAD_SA_DATA_AT, data + MAD_SA_DATA_AT))
		check(sa.component_mask);
	check(mad_sa_matches(attr_id, sa.component_mask & 1, data + MAD_SA_DATA_AT,
			     data + MAD_SA_DATA_AT));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct wire_layout *trap;
	struct mad_attribute attribute;
	struct mad_header header;
	struct mad_notice notice;
	uint8_t answer[MAD_BYTES];

	smp_check(data, size);
	if (!mad_header_read(data, size, &header))
		return 0;
	memcpy(answer, data, sizeof(answer));
	check(!mad_make_response(answer, MAD_STATUS_BUSY) || answer[3] & MAD_RESPONSE);
	if (!mad_attribute_find(header.mgmt_class, header.attr_id, &attribute))
		return 0;
	check(attribute.at + attribute.layout->bytes <= MAD_BYTES);
	layout_check(attribute.layout, data + attribute.at);
	if (attribute.layout == &mad_congestion_log_switch_layout)
		layout_check(&mad_congestion_log_ca_layout, data + attribute.at);
	if (attribute.layout == &mad_notice_layout || attribute.layout == &mad_report_layout) {
		mad_notice_unpack(data + attribute.at, &notice);
		trap = mad_trap_layout(notice.trap_number);
		if (trap)
			layout_check(trap, notice.details);
	}
	if (header.mgmt_class == MAD_CLASS_SUBN_ADM)
		query_check(data, attribute.layout, header.attr_id);
	return 0;
}

#ifndef FUZZER
static size_t make(uint8_t *bytes, size_t capacity)
{
	static const uint8_t classes[] = { MAD_CLASS_SUBN_LID, MAD_CLASS_SUBN_DIRECTED,
					   MAD_CLASS_SUBN_ADM, MAD_CLASS_PERF, MAD_CLASS_CONG_MGT };
	static const uint16_t traps[] = { 64, 67, 128, 131, 144, 145, 256, 257, 258, 259, 1 };
	const uint8_t mgmt_class = classes[random_below(sizeof(classes))];

	for (unsigned i = 0; i < MAD_BYTES; i++)
		bytes[i] = (uint8_t)random_below(256);
	memcpy(bytes, (uint8_t[]){ MAD_BASE_VERSION, mgmt_class, 1 }, 3);
	bytes[7] &= 63;
	put_16(bytes + 16, (uint16_t)random_below(0x40));
	if (!random_below(4)) {
		put_16(bytes + 16, MAD_ATTR_NOTICE);
		put_16(bytes + (mgmt_class == MAD_CLASS_SUBN_ADM ? MAD_SA_DATA_AT : MAD_DATA_AT) + 4,
		       traps[random_below(sizeof(traps) / sizeof(traps[0]))]);
	}
	return random_below(8) ? MAD_BYTES : mutate_times(bytes, MAD_BYTES, capacity, 1);
}

int main(int argc, char **argv)
{
	return drive(argc, argv, 100000, MAD_BYTES + 8, make);
}
#endif
