// SPDX-License-Identifier: BSD-2-Clause
// The data of a report, as src/bench/report/data.h describes them, and what follows from single cases.
import type { Recorded } from './packets';
import type { RawSubnet } from './subnet_data';
import type { Trace } from './trace';

export type Parameter = string | number | boolean | null | undefined;

export interface Latency {
	name: string; label: string; count: number;
	min: number; p10: number; p25: number; p50: number; p75: number; p90: number; p95: number; p99: number;
	'p99.9': number; 'p99.99': number; 'p99.999': number; max: number;
	mean: number | null; middle: number | null; skewness: number | null; share_above: number | null;
	low?: number; high?: number; reference_ns?: number;
	range_ns?: number; bin_ns?: number; beyond?: number; bins?: number[];
	bands?: { low: number[]; median: number[]; high: number[] };
	tail?: { left: number[]; value: number[] };
}

export interface Figure { name: string; label: string; unit: string; value: number | null }

export interface Curve {
	label: string; unit: string; samples: number; min: number; mean: number; max: number;
	seconds: number[]; low: number[]; high: number[];
}

export interface Case {
	id: string; kind: string; scenario?: string; question?: string; label?: string; command?: string;
	limit_ns: number; parameters: Record<string, Parameter>;
	reference?: { source?: string; figures?: Record<string, number | string | { value: number }> };
	latencies: Latency[]; figures: Figure[]; curves: Curve[]; packets?: Recorded;
	/** Shares of the processors' time while it was measured. */
	disturbance?: { stolen_percent?: number | null; others_percent?: number | null };
}

export interface Shape {
	number: string; claim: string; figures: string; holds?: boolean | null;
	verdict?: string; reason?: string | null;
}

export interface Run {
	title: string; folder: string | null; run: any; machine: any; shapes: Shape[] | null; cases: Case[];
}

export interface Compared {
	id: string; latency: string; a_ns: number | null; b_ns: number | null;
	ratio: number | null; low: number | null; high: number | null; verdict: string;
}

export interface Data { trace?: Trace; subnets?: RawSubnet[]; layout: number; command: string; kind: string; runs: Run[]; compare?: Compared[] }

/** Characters that turn the direction of writing, or are none of a text. */
const UNFIT = /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

export function readData(text: string): Data {
	const data = JSON.parse(text, (_, v) => typeof v === 'string' ? v.replace(UNFIT, '\ufffd') : v);
	// Names, labels and units stand once for all cases.
	for (const run of data.runs)
		for (const c of run.cases)
			c.figures = c.figures.map(([i, value]: [number, number | null]) => ({ ...run.figures[i], value }));
	return data;
}

/** Is it a part of a budget: NAME.PART? */
export function isPart(name: string): boolean {
	return name.includes('.');
}

export function partsOf(c: Case, whole: Latency): Latency[] {
	return c.latencies.filter(l => l.name.startsWith(whole.name + '.'));
}

/** What is drawn as a latency: no budget, neither its parts nor the whole. */
export function latenciesOf(c: Case): Latency[] {
	return c.latencies.filter(l => !isPart(l.name) && !partsOf(c, l).length);
}

export function hasRows(l: Latency): boolean {
	return !!l.bands && l.bands.median.length > 0;
}

export function latencyNamed(c: Case, name: string): Latency | undefined {
	return c.latencies.find(l => l.name === name);
}

export function figureNamed(c: Case, name: string): Figure | undefined {
	return c.figures.find(f => f.name === name);
}

export function valueOf(c: Case, name: string): number {
	return figureNamed(c, name)?.value ?? NaN;
}

/** Percent of the steps whose sample did not arrive: missed by the generator, or lost behind it, which is
 * a share of those that were not missed. NaN: not known. */
export function missed(c: Case): number {
	let sum = NaN;
	for (const name of ['missed_share', 'missed', 'lost_share', 'lost']) {
		const f = figureNamed(c, name);
		if (f?.unit === '%' && f.value !== null)
			sum = Number.isNaN(sum) ? f.value : sum + f.value * (1 - sum / 100);
	}
	return sum;
}

/** At "cpu.model". */
export function at(o: any, path: string): any {
	return path.split('.').reduce((v, key) => v?.[key], o) ?? undefined;
}

/** The median of a cache line's way from one processor to another, ns. */
export function floorOf(run: Run): number {
	return at(run.machine, 'floor.cacheline_oneway_ns.median') ?? NaN;
}
