/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A library with the functions of DSS C-API that the node-type opendss uses. Its files have lines
 * `load NAME`, `generator NAME`, `isource NAME`, `monitor NAME CHANNELS`. A solution is: channel i
 * of a monitor has the sum of the kW of all loads, less that of the generators, times i + 1. Above
 * 1000 kW it does not converge; a kW below 0 of a load is an error. After a file with the word
 * `snapshot` monitors record only when they are told to; `short` cuts their records.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MANY 16
#define HEADER 272

struct element {
	char kind[12], name[40];
	double kw;
	int channels, records;
	float *data;
};

static struct element elements[MANY];
static int count, steps, error, snapshot, cut;
static struct element *active;
static char text[200];

static void fail(int number, const char *what)
{
	error = number;
	snprintf(text, sizeof(text), "%s", what);
}

uint16_t DSS_Start(int32_t code)
{
	return 1;
}

void DSS_Set_AllowForms(uint16_t on)
{
}

int32_t Error_Get_Number(void)
{
	int e = error;

	error = 0;
	return e;
}

const char *Error_Get_Description(void)
{
	return text;
}

static void clear(void)
{
	for (int i = 0; i < count; i++)
		free(elements[i].data);
	count = steps = snapshot = cut = 0;
	active = NULL;
}

static void compile(const char *path)
{
	char line[100], word[12], name[40];
	FILE *f = fopen(path, "re");
	int channels;

	clear();
	if (!f) {
		fail(243, "redirect file not found");
		return;
	}
	while (fgets(line, sizeof(line), f)) {
		int n = sscanf(line, "%11s %39s %d", word, name, &channels);

		snapshot |= n == 1 && !strcmp(word, "snapshot");
		cut |= n == 1 && !strcmp(word, "short");
		if (n < 2)
			continue;
		elements[count] = (struct element){ .channels = n == 3 ? channels : 0 };
		memcpy(elements[count].kind, word, sizeof(word));
		memcpy(elements[count++].name, name, sizeof(name));
	}
	fclose(f);
	if (chdir("/"))
		fail(1, "chdir");
}

void Text_Set_Command(const char *command)
{
	char path[300];

	if (sscanf(command, "compile \"%299[^\"]\"", path) == 1)
		compile(path);
	else if (!strcmp(command, "clear"))
		clear();
	else
		fail(302, "unknown command");
}

static void activate(const char *kind, const char *name)
{
	active = NULL;
	for (int i = 0; i < count; i++)
		if (!strcmp(elements[i].kind, kind) && !strcmp(elements[i].name, name))
			active = &elements[i];
	if (!active)
		fail(5003, "element not found in the circuit");
}

#define SELECT(function, kind) \
	void function(const char *name) \
	{ \
		activate(kind, name); \
	}
SELECT(Loads_Set_Name, "load")
SELECT(Generators_Set_Name, "generator")
SELECT(ISources_Set_Name, "isource")
SELECT(Monitors_Set_Name, "monitor")

void Loads_Set_kW(double v)
{
	if (v < 0)
		fail(77, "a load below zero");
	else
		active->kw = v;
}

void Generators_Set_kW(double v)
{
	active->kw = -v;
}

/* What the others set adds to the kW, so that each can be told from the others. */
#define ADD(function, factor) \
	void function(double v) \
	{ \
		active->kw += v * (factor); \
	}
ADD(Loads_Set_kV, 0.01)
ADD(Loads_Set_kvar, 0.02)
ADD(Loads_Set_PF, 0.03)
ADD(Generators_Set_kV, 0.04)
ADD(Generators_Set_kvar, 0.05)
ADD(Generators_Set_PF, 0.06)
ADD(ISources_Set_Amps, 0.07)
ADD(ISources_Set_AngleDeg, 0.08)
ADD(ISources_Set_Frequency, 0.09)

static double total(void)
{
	double sum = 0;

	for (int i = 0; i < count; i++)
		sum += elements[i].kw;
	return sum;
}

static void record(struct element *m)
{
	int size = m->channels + 2;
	float *at;

	m->data = realloc(m->data, (size_t)((m->records + 1) * size) * sizeof(float));
	at = m->data + m->records++ * size;
	at[0] = (float)(steps / 3600);
	at[1] = (float)(steps % 3600);
	for (int i = 0; i < m->channels; i++)
		at[2 + i] = (float)(total() * (i + 1));
}

void Monitors_SampleAll(void)
{
	for (int i = 0; i < count; i++)
		if (!strcmp(elements[i].kind, "monitor"))
			record(&elements[i]);
}

void Monitors_SaveAll(void)
{
}

void Solution_Solve(void)
{
	steps++;
	if (!snapshot)
		Monitors_SampleAll();
}

uint16_t Solution_Get_Converged(void)
{
	return total() <= 1000;
}

void Monitors_ResetAll(void)
{
	for (int i = 0; i < count; i++)
		elements[i].records = 0;
}

int32_t Monitors_Get_NumChannels(void)
{
	return active->channels;
}

int32_t Monitors_Get_SampleCount(void)
{
	return active->records;
}

void Monitors_Get_ByteStream(int8_t **data, int32_t size[4])
{
	size_t bytes = (size_t)(active->records * (active->channels + 2)) * sizeof(float);

	*data = calloc(1, HEADER + bytes);
	memcpy(*data + HEADER, active->data, bytes);
	size[0] = (int32_t)(HEADER + bytes) - (cut ? 4 : 0);
}

void DSS_Dispose_PByte(int8_t **data)
{
	free(*data);
	*data = NULL;
}
