/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * modelDescription.xml of FMUs. What is taken has an identifier that is one, variables with names
 * that are found again, and nothing of a version that cannot be run; what is refused says why.
 *
 * usage: fuzz_fmu [RUNS [SEED]]
 */
#include <stdlib.h>
#include <string.h>

#include "gateway/node/fmu/fmu.h"

#define MUTATE_BYTES "<>/=\"'&;!?-[]0123456789.eE \n\t\x00\xff"
#include "drive.h"

static void must(bool good)
{
	if (!good)
		abort();
}

static void look_at(const struct fmu_description *d)
{
	must(d->version == 2 || d->version == 3);
	must(d->identifier && *d->identifier && !strpbrk(d->identifier, "/. \n"));
	must(d->model && *d->model && d->token && *d->token);
	for (size_t i = 0; i < d->count; i++) {
		const struct fmu_variable *v = &d->variables[i];

		must(v->name && *v->name && fmu_variable_find(d, v->name) == v);
		must(v->type <= FMU_OTHER && fmu_causality_name((enum fmu_causality)v->causality));
		must(!fmu_type_name(d->version, (enum fmu_type)v->type) == (v->type == FMU_OTHER));
		must(v->type >= FMU_TYPES || fmu_type_size(d->version, (enum fmu_type)v->type));
	}
	must(!fmu_variable_find(d, "\x01"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fmu_description d;
	struct fmu_why why = { "" };
	int ret = fmu_description_parse(&d, (const char *)data, size, &why);

	must(ret <= 0 && memchr(why.text, 0, sizeof(why.text)));
	if (ret)
		must(why.text[0] != '\0');
	else
		look_at(&d);
	fmu_description_free(&d);
	return 0;
}

static size_t make(uint8_t *bytes, size_t capacity)
{
	static const char *const seeds[] = {
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?><fmiModelDescription fmiVersion=\"2.0\" modelName=\"m\" guid=\"{1}\">"
		"<CoSimulation modelIdentifier=\"m\" canHandleVariableCommunicationStepSize=\"true\"/>"
		"<DefaultExperiment startTime=\"0\" stopTime=\"1.5\" tolerance=\"1e-6\" stepSize=\"0.1\"/><ModelVariables>"
		"<ScalarVariable name=\"a\" valueReference=\"1\" causality=\"input\"><Real start=\"1\"/></ScalarVariable>"
		"<ScalarVariable name=\"b[1]\" valueReference=\"2\" causality=\"output\" variability=\"discrete\"><Integer/></ScalarVariable>"
		"<ScalarVariable name=\"c\" valueReference=\"3\" causality=\"parameter\" variability=\"tunable\"><String/></ScalarVariable>"
		"</ModelVariables></fmiModelDescription>",
		"<fmiModelDescription fmiVersion=\"3.0\" modelName=\"m\" instantiationToken=\"t\"><CoSimulation modelIdentifier=\"m\"/>"
		"<ModelVariables><Float64 name=\"a\" valueReference=\"1\" causality=\"output\"><Dimension start=\"3\"/></Float64>"
		"<UInt64 name=\"b\" valueReference=\"4294967295\"/><Clock name=\"c\" valueReference=\"2\"/>"
		"<Enumeration name=\"d\" valueReference=\"0\" causality=\"structuralParameter\"/></ModelVariables></fmiModelDescription>",
		"<!DOCTYPE a [<!ENTITY b \"&#65;\">]><fmiModelDescription fmiVersion=\"2.0\" modelName=\"&b;\" guid=\"g\"/>",
		"<a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a>",
	};
	const char *seed = seeds[random_below(sizeof(seeds) / sizeof(seeds[0]))];
	size_t size = strlen(seed);

	if (size > capacity)
		abort();
	memcpy(bytes, seed, size);
	return mutate_times(bytes, size, capacity, random_below(6));
}

int main(int argc, char **argv)
{
	return drive(argc, argv, 200000, 2000, make);
}
