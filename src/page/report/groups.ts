// SPDX-License-Identifier: BSD-2-Clause
// Cases of one question, and which of their parameters vary: up to two numbers are axes (rate, size),
// the others name the curves.
import { at, Case, Latency, latenciesOf, latencyNamed, Parameter, Run } from './data';
import { axisName, parameter, quantity } from './words';

export interface AxisKey { key: string; label: string; unit: string; plural?: boolean }
/** Cases that differ in nothing but the axes, ascending. */
export interface Line { label: string; cases: Case[] }

export interface Group {
	kind: string; scenario: string; question: string; cases: Case[];
	x: AxisKey | null; y: AxisKey | null; lines: Line[];
	/** Names of latencies, that of the answer first. */
	latencies: string[];
	labels: Map<Case, string>;
}

/** All groups of one scenario. */
export interface Section { scenario: string; question: string; groups: Group[] }

const KNOWN: AxisKey[] = [
	{ key: 'size', label: 'message size', unit: 'B' },
	{ key: 'rate', label: 'rate', unit: 'Hz' },
	{ key: 'values', label: 'values per sample', unit: '' },
];
/** A number with fewer values than this names curves, it is no axis. */
const AXIS_VALUES_MIN = 3;
/** Latencies that answer a question before others. */
const FIRST = ['from_step', 't_lat', 't_rtt'];

export function valueAt(axis: AxisKey | null, c: Case): number {
	const v = axis ? c.parameters[axis.key] : NaN;
	return typeof v === 'number' ? v : NaN;
}

function same(a: Parameter, b: Parameter): boolean {
	return a === b || JSON.stringify(a) === JSON.stringify(b);
}

/** Numbers of different values. */
function variety(cases: Case[], key: string): number {
	return new Set(cases.map(c => JSON.stringify(c.parameters[key]) ?? '')).size;
}

function varying(cases: Case[]): string[] {
	const keys = new Set(cases.flatMap(c => Object.keys(c.parameters)));
	return [...keys].filter(k => variety(cases, k) > 1);
}

/** How many values, for what is a number in all cases. */
function extent(cases: Case[], key: string): number {
	return cases.every(c => typeof c.parameters[key] === 'number') ? variety(cases, key) : 0;
}

function chooseAxes(cases: Case[], keys: string[]): [AxisKey | null, AxisKey | null] {
	const can = (k: string): boolean => keys.includes(k) && extent(cases, k) >= AXIS_VALUES_MIN;
	const known = KNOWN.find(k => can(k.key));
	if (known && known.key !== 'rate' && can('rate'))
		return [KNOWN[1], known];
	if (known)
		return [known, known.key === 'rate' && can('values') ? KNOWN[2] : null];
	// Two sizes of several ways: a pair for each way, no curve.
	const pair = KNOWN.find(k => keys.includes(k.key) && extent(cases, k.key) === 2);
	if (pair && cases.length > 3 && keys.length > 1)
		return [pair, null];
	const best = keys.filter(can).sort((a, b) => extent(cases, b) - extent(cases, a))[0];
	return best ? [{ key: best, ...axisName(best) }, null] : [null, null];
}

function unique(cases: Case[], keys: string[]): boolean {
	return new Set(cases.map(c => JSON.stringify(keys.map(k => c.parameters[k])))).size === cases.length;
}

/** Without numbers that follow from the other parameters (the burst that a size allows): they must not
 * tear a curve into pieces. */
function independent(cases: Case[], keys: string[], axes: string[]): string[] {
	let left = keys;
	if (!unique(cases, keys))
		return left;
	for (const k of keys) {
		const without = left.filter(x => x !== k);
		if (!axes.includes(k) && extent(cases, k) && unique(cases, without))
			left = without;
	}
	return left;
}

function describe(c: Case, keys: string[]): string {
	return keys.map(k => parameter(k, c.parameters[k])).filter(t => t).join(', ');
}

function linesOf(cases: Case[], keys: string[], x: AxisKey | null, y: AxisKey | null): Line[] {
	const names = keys.filter(k => k !== x?.key && k !== y?.key), lines: Line[] = [];
	for (const c of cases) {
		let line = x && lines.find(l => names.every(k => same(l.cases[0].parameters[k], c.parameters[k])));
		if (!line) {
			line = { label: describe(c, names), cases: [] };
			lines.push(line);
		}
		line.cases.push(c);
	}
	for (const l of lines)
		l.cases.sort((a, b) => valueAt(x, a) - valueAt(x, b) || valueAt(y, a) - valueAt(y, b));
	const given = lines.map(l => givenLabel(l, [x?.key, y?.key]));
	if (lines.length > 1 && given.every(g => g) && new Set(given).size === lines.length)
		lines.forEach((l, i) => l.label = given[i]);
	return lines;
}

/** What the suite calls all cases of a line, without their places on the axes; "": not the same. */
function givenLabel(l: Line, axes: (string | undefined)[]): string {
	const names = l.cases.map(c => (c.label ?? '').split(', ')
		.filter(t => !axes.some(k => k && (t.startsWith(k.replace('_', '-') + ' ') || axisName(k).unit === 'ns' && DURATION.test(t)))).join(', '));
	return names.every(n => n === names[0]) ? names[0] : '';
}

function latencyNames(cases: Case[]): string[] {
	const names = [...new Set(cases.flatMap(c => latenciesOf(c).map(l => l.name)))];
	const first = FIRST.find(n => names.includes(n));
	return first ? [first, ...names.filter(n => n !== first)] : names;
}

const DURATION = /^(\d+)(ns|us|ms|s)$/;

/** Numbers in a suite's label with their units. */
function pretty(label: string): string {
	return label.replace(/\b(size|rate|num-qps|num-ops) (\d+)(?=$|,)/g, (_, name, n) => parameter(name.replace('-', '_'), Number(n)))
		.split(', ').map(t => t.replace(DURATION, (_, n, unit) => quantity(Number(n), unit))).join(', ');
}

/** Has the axis only two values? */
export function isPair(g: Group): boolean {
	return !!g.x && extent(g.cases, g.x.key) === 2;
}

function makeGroup(cases: Case[]): Group {
	const keys = varying(cases), [x, y] = chooseAxes(cases, keys);
	const named = independent(cases, keys, [x?.key ?? '', y?.key ?? '']);
	const given = new Set(cases.map(c => c.label).filter(l => l)).size === cases.length;
	const label = (c: Case): string => (given && pretty(c.label!)) || (named.length && describe(c, named)) || c.label || c.id;
	return {
		kind: cases[0].kind, scenario: cases[0].scenario ?? '', question: cases.find(c => c.question)?.question ?? '',
		cases, x, y, lines: linesOf(cases, named, x, y), latencies: latencyNames(cases),
		labels: new Map(cases.map(c => [c, label(c)])),
	};
}

/** In the order of the cases. */
export function sectionsOf(run: Run): Section[] {
	const by = new Map<string, Case[]>(), sections: Section[] = [];
	for (const c of run.cases) {
		const key = JSON.stringify([c.scenario ?? '', c.kind, c.scenario ? '' : c.question ?? '']);
		by.set(key, [...by.get(key) ?? [], c]);
	}
	for (const cases of by.values()) {
		const g = makeGroup(cases);
		const old = g.scenario ? sections.find(s => s.scenario === g.scenario) : undefined;
		if (old)
			old.groups.push(g);
		else
			sections.push({ scenario: g.scenario, groups: [g],
				question: g.question || at(run.run, 'question') || g.scenario || g.kind });
	}
	return sections;
}

export function latencyLabel(g: Group, name: string): string {
	for (const c of g.cases) {
		const l = latencyNamed(c, name);
		if (l)
			return l.label;
	}
	return name;
}

/** The latency of each case that has it. */
export function withLatency(cases: Case[], name: string): { c: Case; l: Latency }[] {
	return cases.flatMap(c => {
		const l = latencyNamed(c, name);
		return l ? [{ c, l }] : [];
	});
}

/** Numbers that differ between the cases, or all of a group of one case. */
export function numbersOf(g: Group, all: boolean): { name: string; label: string; unit: string }[] {
	const found = new Map<string, { name: string; label: string; unit: string; values: Set<number> }>();
	for (const c of g.cases)
		for (const f of c.figures) {
			const known = found.get(f.name) ?? { name: f.name, label: f.label, unit: f.unit, values: new Set<number>() };
			found.set(f.name, known);
			if (f.value !== null)
				known.values.add(f.value);
		}
	return [...found.values()].filter(f => f.values.size > 1 || (all && f.values.size));
}
