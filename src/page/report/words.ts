// SPDX-License-Identifier: BSD-2-Clause
// Figures and parameters as texts.
import { count, number, seconds } from '../components/dom';
import type { Parameter } from './data';

export function time(ns: number | null | undefined): string {
	return ns === null || ns === undefined ? '–' : seconds(ns / 1e9);
}

/** "12.5 %", "0.0031 %". */
export function percent(x: number): string {
	return `${x !== 0 && Math.abs(x) < 0.01 ? Number(x.toPrecision(2)) : number(x)}\u202f%`;
}

export function times(x: number): string {
	return `${x >= 1000 ? count(x) : number(x)} times`;
}

const TIME = new Map([['ns', 1e-9], ['us', 1e-6], ['µs', 1e-6], ['ms', 1e-3], ['s', 1]]);
const LARGE: [number, string][] = [[1e9, 'G'], [1e6, 'M'], [1e3, 'k']];

/** A value in its unit, which is replaced by one that a reader needs not count digits of. */
export function quantity(x: number | null | undefined, unit: string): string {
	if (x === null || x === undefined || !Number.isFinite(x))
		return '–';
	if (TIME.has(unit))
		return seconds(x * TIME.get(unit)!);
	if (unit === '%')
		return percent(x);
	if (unit === 'B')
		return bytes(x);
	if (unit === 'Hz' || unit === '1/s' || unit === 'B/s') {
		const [by, prefix] = LARGE.find(([l]) => Math.abs(x) >= l) ?? [1, ''];
		return unit === '1/s' ? `${number(x / by)}${prefix ? '\u202f' + prefix : ''}/s` : `${number(x / by)}\u202f${prefix}${unit}`;
	}
	if (unit === 'MB/s' || unit === 'MiB/s' || unit === 'GB/s')
		return unit === 'MB/s' && x >= 1000 ? `${number(x / 1000)}\u202fGB/s` : `${number(x)}\u202f${unit}`;
	const text = Number.isInteger(x) && Math.abs(x) < 1e12 ? count(x) : number(x);
	return unit ? `${text}\u202f${unit}` : text;
}

/** Binary where that is whole. */
export function bytes(x: number): string {
	for (const [by, unit] of [[1 << 30, 'GiB'], [1 << 20, 'MiB'], [1024, 'KiB']] as const)
		if (x >= by && (x % by === 0 || x >= 100 * by))
			return `${number(x / by)}\u202f${unit}`;
	return x >= 1e6 ? `${number(x / 1e6)}\u202fMB` : `${count(x)}\u202fB`;
}

const DURATIONS = new Set(['pause', 'spin', 'lost_after', 'interval', 'catch_up', 'jitter', 'patience', 'fault']);
/** Parameters that count something. */
const COUNTS = new Map([['num_qps', 'queue pairs'], ['num_ops', 'requests']]);

/** What a parameter is called as an axis. */
export function axisName(name: string): { label: string; unit: string; plural: boolean } {
	return { label: COUNTS.get(name) ?? name.replace(/_/g, ' '), unit: DURATIONS.has(name) ? 'ns' : '', plural: COUNTS.has(name) };
}

/** "RC", "inline" or "no inline", "burst 8000"; "poll send busy" of "poll_send". */
export function parameter(name: string, v: Parameter): string {
	const shown = name.replace(/_/g, ' ');
	if (v === undefined || v === null)
		return '';
	if (typeof v === 'boolean')
		return v ? shown : `no ${shown}`;
	if (typeof v === 'string')
		return name.startsWith('poll_') ? `${shown} ${v || 'none'}` : v || `no ${shown}`;
	if (name === 'size')
		return bytes(v);
	if (name === 'rate')
		return quantity(v, 'Hz');
	if (DURATIONS.has(name))
		return `${shown} ${time(v)}`;
	if (COUNTS.has(name))
		return v === 1 ? `1 ${COUNTS.get(name)!.replace(/s$/, '')}` : `${quantity(v, '')} ${COUNTS.get(name)}`;
	return `${shown} ${quantity(v, '')}`;
}

/** "a", "a and b", "a, b and c". */
export function list(words: string[]): string {
	return words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} and ${words[words.length - 1]}`;
}

export function sentence(text: string): string {
	return text && text[0].toUpperCase() + text.slice(1);
}

/** Shortened at the end to so many characters. */
export function brief(text: string, most: number): string {
	return text.length <= most ? text : `${text.slice(0, Math.max(1, most - 1)).trimEnd()}…`;
}

/** The median with the interval that holds it in 95 of 100 repetitions. */
export function median(l: { p50: number; low?: number; high?: number }): string {
	const text = time(l.p50);
	if (l.low === undefined || l.high === undefined || (l.low === l.p50 && l.high === l.p50))
		return text;
	const low = time(l.low), high = time(l.high);
	return low === high && low === text ? text : `${text} (${low} to ${high})`;
}
