/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SCL files: each is refused with a reason, or each of its control blocks is read or refused with
 * a reason; data sets that are read lie within their bounds.
 *
 * usage: fuzz_scl [RUNS [SEED]]
 */
#include <stdlib.h>
#include <string.h>

#include "gateway/scl/scl.h"

#define MUTATE_BYTES "<>/=\"'& \n0123456789aAST.-!?\x00\xff"
#include "drive.h"

extern const struct scl_xml_ops scl_xml;

static void must(bool good)
{
	if (!good)
		abort();
}

struct bounds {
	const struct scl_control *c;
	unsigned count;
};

static int look(void *arg, const struct scl_data *d, const unsigned place[], unsigned depth)
{
	struct bounds *b = arg;
	const struct scl_data *list = b->c->data, *at = NULL;
	unsigned count = b->c->count;

	must(depth >= 1 && depth <= SCL_DEPTH_MAX + 1 && ++b->count <= SCL_DATA_MAX);
	for (unsigned i = 0; i < depth; i++) {
		must(place[i] < count);
		at = &list[place[i]];
		list = at->parts;
		count = at->count;
	}
	must(at == d && d->basic && d->name && d->line);
	return 0;
}

static void look_at(struct scl *s, struct scl_control *c)
{
	char why[SCL_WHY_MAX] = "";
	struct scl_sampled *values;
	struct bounds b = { c, 0 };
	unsigned count;

	if (scl_control_read(s, c, why)) {
		must(*why);
		return;
	}
	must(c->reference && c->dataset && c->id && c->count);
	must(scl_each_value(c, look, &b) == 0 && b.count);
	if (scl_sampled_values(s, c, &values, &count, why))
		must(*why);
	else
		must(count <= b.count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char why[SCL_WHY_MAX] = "";
	struct scl_control *list;
	struct scl *s;
	unsigned count;

	if (scl_read(&scl_xml, "fuzz", (const char *)data, size, &s, why)) {
		must(*why);
		return 0;
	}
	list = scl_controls(s, &count);
	for (unsigned i = 0; i < count; i++)
		look_at(s, &list[i]);
	scl_free(s);
	return 0;
}

#ifndef FUZZER
/* As dense as a file can be: what is changed means something. */
static const char base[] =
	"<SCL><Communication><SubNetwork><ConnectedAP iedName='B' apName='P'><GSE ldInst='L' cbName='g'>"
	"<Address><P type='MAC-Address'>01-0C-CD-01-00-01</P><P type='APPID'>1001</P>"
	"<P type='VLAN-ID'>005</P><P type='VLAN-PRIORITY'>4</P></Address>"
	"<MinTime multiplier='m'>4</MinTime><MaxTime>1</MaxTime></GSE></ConnectedAP></SubNetwork></Communication>"
	"<IED name='B'><AccessPoint name='P'><Server><LDevice inst='L'><LN0 lnClass='LLN0' lnType='N'>"
	"<DataSet name='s'><FCDA ldInst='L' lnClass='LLN0' doName='A' fc='ST'/>"
	"<FCDA ldInst='L' lnClass='LLN0' doName='A.B' daName='S.S' ix='1' fc='ST'/></DataSet>"
	"<GSEControl name='g' datSet='s' appID='i' confRev='1'/>"
	"<SampledValueControl name='v' datSet='s' smvID='i' smpRate='80' nofASDU='1'><SmvOpts sampleRate='true'/>"
	"</SampledValueControl></LN0></LDevice></Server></AccessPoint></IED>"
	"<DataTypeTemplates><LNodeType id='N'><DO name='A' type='A'/></LNodeType>"
	"<DOType id='A'><SDO name='B' type='B' count='2'/><DA name='q' bType='Quality' fc='ST'/></DOType>"
	"<DOType id='B'><DA name='S' bType='Struct' type='S' fc='ST'/><DA name='t' bType='Timestamp' fc='MX'/></DOType>"
	"<DAType id='S'><BDA name='S' bType='INT32'/><BDA name='T' bType='Struct' type='T' count='3'/></DAType>"
	"<DAType id='T'><BDA name='S' bType='FLOAT32'/><BDA name='T' bType='Enum'/></DAType>"
	"</DataTypeTemplates></SCL>";

/* Another name or type at a place where one stood. */
static void swap_names(uint8_t *bytes, size_t len)
{
	static const char names[] = "ABNSTLPgvs012";

	for (unsigned tries = 0; tries < 40; tries++) {
		size_t at = 1 + random_below(len - 2);

		if (bytes[at - 1] == '\'' && bytes[at + 1] == '\'') {
			bytes[at] = (uint8_t)names[random_below(sizeof(names) - 1)];
			return;
		}
	}
}

static size_t make(uint8_t *bytes, size_t capacity)
{
	size_t len = sizeof(base) - 1;

	memcpy(bytes, base, len);
	for (uint64_t times = random_below(4); times; times--)
		swap_names(bytes, len);
	return mutate_times(bytes, len, capacity, random_below(3));
}

int main(int argc, char **argv)
{
	return drive(argc, argv, 20000, 4000, make);
}
#endif
