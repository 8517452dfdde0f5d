// SPDX-License-Identifier: BSD-2-Clause
// Axes: where values lie, and which of them are named.
import { seconds } from '../components/dom';
import { niceStep } from '../components/ticks';
import { bytes, percent, quantity } from './words';

/** What the numbers of an axis are. */
export type Unit = 'ns' | 'B' | 'Hz' | '%' | 's' | string;

export interface Axis {
	label: string; unit: Unit; log: boolean; low: number; high: number;
	/** Only these are named (sizes that were measured). */
	marks?: number[];
	/** These names, wherever they stand. */
	ticks?: Tick[];
	/** Rows instead of numbers, the first one on top. */
	rows?: string[];
}

export interface Tick { at: number; text: string }

export function position(a: Axis, v: number): number {
	if (!a.log)
		return (v - a.low) / (a.high - a.low || 1);
	return Math.log(Math.max(v, Number.MIN_VALUE) / a.low) / Math.log(a.high / a.low || 2);
}

export function inverse(a: Axis, share: number): number {
	return a.log ? a.low * (a.high / a.low) ** share : a.low + share * (a.high - a.low);
}

const SCALES: [number, string][] = [[1e9, 's'], [1e6, 'ms'], [1e3, 'µs'], [1, 'ns']];

/** Names that tell neighbours apart: as many digits as the step has. */
function linearText(unit: Unit, v: number, step: number, most: number): string {
	if (v === 0)
		return unit === 'ns' || unit === 's' ? '0' : unit === '%' ? percent(0) : '0';
	let by = 1, name = '';
	if (unit === 'ns' || unit === 's') {
		const ns = unit === 's' ? 1e9 : 1;
		const [scale, text] = SCALES.find(([l]) => most * ns >= l) ?? SCALES[3];
		[by, name] = [scale / ns, text];
	} else if (unit === '%') {
		name = '%';
	} else if (Math.abs(most) >= 1e6 || (Math.abs(most) < 1e-3 && most !== 0)) {
		return v.toExponential(1);
	} else {
		return `${quantity(Number(v.toPrecision(6)), unit === 'Hz' || unit === 'B' ? unit : '')}`.replace('-', '−');
	}
	const digits = Math.max(0, Math.min(6, -Math.floor(Math.log10(step / by) + 1e-9)));
	return `${(v / by).toFixed(digits)}\u202f${name}`.replace('-', '−');
}

function logText(unit: Unit, v: number): string {
	return unit === 'ns' ? seconds(v / 1e9) : unit === 's' ? seconds(v) : unit === 'B' ? bytes(v) :
		unit === '%' ? percent(v) : unit === 'Hz' ? quantity(v, 'Hz') : quantity(Number(v.toPrecision(6)), '');
}

function logTicks(a: Axis, wanted: number): Tick[] {
	const ticks: Tick[] = [], decades = Math.log10(a.high / a.low);
	const steps = decades < 0.7 ? null : decades > wanted / 1.5 ? [1] : decades > wanted / 2.4 ? [1, 3] : [1, 2, 5];
	if (!steps)
		return linearTicks(a, wanted);
	for (let p = Math.floor(Math.log10(a.low)); p <= Math.log10(a.high); p++)
		for (const m of steps) {
			const v = m * 10 ** p;
			if (v >= a.low * 0.999 && v <= a.high * 1.001)
				ticks.push({ at: v, text: logText(a.unit, Number(v.toPrecision(6))) });
		}
	return ticks.length > 1 ? ticks : linearTicks(a, wanted);
}

function linearTicks(a: Axis, wanted: number): Tick[] {
	const step = niceStep(a.high - a.low, wanted), ticks: Tick[] = [];
	const most = Math.max(Math.abs(a.low), Math.abs(a.high));
	for (let i = Math.ceil(a.low / step - 1e-9); i * step <= a.high + step * 1e-9 && ticks.length < 60; i++)
		ticks.push({ at: i * step, text: linearText(a.unit, Number((i * step).toPrecision(12)), step, most) });
	return ticks;
}

export function ticksOf(a: Axis, wanted: number): Tick[] {
	if (a.ticks)
		return a.ticks.filter(t => t.at >= a.low && t.at <= a.high);
	const marks = a.marks?.filter(v => v >= a.low && v <= a.high);
	if (marks && marks.length > 1)
		return marks.map(v => ({ at: v, text: logText(a.unit, v) }));
	return a.log ? logTicks(a, wanted) : linearTicks(a, wanted);
}

/** An axis that holds these values: logarithmic where they span more than a factor of 20. */
export function axisFor(label: string, unit: Unit, values: number[], more: Partial<Axis> = {}): Axis {
	const known = values.filter(Number.isFinite), positive = known.filter(v => v > 0);
	const high = Math.max(...known, 0), least = Math.min(...positive);
	const log = more.log ?? (positive.length === known.length && positive.length > 0 && high / least > 20);
	if (!known.length)
		return { label, unit, log: false, low: 0, high: 1, ...more };
	if (log)
		return { label, unit, log, low: least / 1.25, high: high * 1.25, ...more };
	const low = Math.min(0, ...known), step = niceStep((high - low) || 1, 5);
	return { label, unit, log, low: low < 0 ? Math.floor(low / step) * step : 0,
		high: Math.max(Math.ceil(high / step + 0.15) * step, step), ...more };
}
