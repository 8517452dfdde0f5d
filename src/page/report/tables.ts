// SPDX-License-Identifier: BSD-2-Clause
// The numbers behind the figures, as tables.
import { h } from '../components/dom';
import { Case, Latency, latenciesOf, valueOf } from './data';
import { Group, numbersOf } from './groups';
import type { Budget } from './rows';
import { percent, quantity, time } from './words';

type Cell = string | Node;

export function table(head: string[], rows: Cell[][], name: string, facts = false): HTMLElement {
	// Reachable by the keyboard, because it scrolls.
	return h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': name },
		h('table', facts ? { class: 'facts' } : {},
			head.some(t => t) ? h('thead', {}, h('tr', {}, ...head.map(t => h('th', { scope: 'col' }, t)))) : null,
			h('tbody', {}, ...rows.map(r => h('tr', {}, h('th', { scope: 'row' }, r[0]), ...r.slice(1).map(c => h('td', {}, c)))))));
}

const HEAD = ['', 'number', 'min', '10 %', 'median', '95 % interval', '90 %', '99 %', '99.9 %', '99.99 %', '99.999 %', 'max', 'above the limit', 'skewness',
	'median, in floors', 'other hardware: median'];

function latencyRow(name: string, c: Case, l: Latency, floor: number): string[] {
	return [name, quantity(l.count, ''), time(l.min), time(l.p10), time(l.p50), l.low === undefined ? '–' : `${time(l.low)} to ${time(l.high)}`, time(l.p90), time(l.p99),
		time(l['p99.9']), time(l['p99.99']), time(l['p99.999']), time(l.max),
		l.share_above === null || l.share_above === undefined ? '–' : `${percent(100 * l.share_above)} > ${time(c.limit_ns)}`,
		quantity(l.skewness, ''), Number.isFinite(floor) ? `${quantity(l.p50 / floor, '')} ×` : '–', time(l.reference_ns)];
}

export function latencyTable(g: Group, floor: number): HTMLElement | null {
	const several = g.latencies.length > 1;
	const rows = g.cases.flatMap(c => latenciesOf(c).map(l => latencyRow(several ? `${g.labels.get(c)}: ${l.label}` : g.labels.get(c)!, c, l, floor)));
	return rows.length ? table(HEAD, rows, 'Latencies of all cases') : null;
}

export function numberTable(g: Group): HTMLElement | null {
	const all = numbersOf(g, true);
	if (!all.length)
		return null;
	const cell = (c: Case, f: { name: string; unit: string }): string => quantity(valueOf(c, f.name), f.unit);
	// Many numbers of few cases are read from top to bottom.
	return all.length > 6 && g.cases.length <= 6 ?
		table(['', ...g.cases.map(c => g.labels.get(c)!)], all.map(f => [f.label, ...g.cases.map(c => cell(c, f))]), 'Numbers of all cases') :
		table(['', ...all.map(f => f.label)], g.cases.map(c => [g.labels.get(c)!, ...all.map(f => cell(c, f))]), 'Numbers of all cases');
}

export function referenceTable(g: Group): HTMLElement | null {
	const rows = g.cases.flatMap(c => Object.entries(c.reference?.figures ?? {}).map(([name, v]) => {
		const value = typeof v === 'object' && v ? v.value : v;
		return [g.labels.get(c)!, name.replace(/_ns$/, '').replace(/_/g, ' '), typeof value === 'number' ? quantity(value, name.endsWith('_ns') ? 'ns' : '') : String(value), c.reference?.source ?? ''];
	}));
	return rows.length ? table(['case', 'figure', 'other hardware', 'source'], rows, 'What the source measured on other hardware') : null;
}

export function budgetTable(b: Budget): HTMLElement {
	const whole = b.whole.middle || NaN;
	const row = (l: Latency): string[] => [l.label, quantity(l.count, ''), time(l.p10), time(l.p50), time(l.p90), time(l.middle), percent(100 * (l.middle ?? NaN) / whole)];
	const sum = (name: string, ns: number): string[] => [name, '', '', '', '', time(ns), percent(100 * ns / whole)];
	return table(['', 'number', '10 %', 'median', '90 %', 'mean of the middle 80 %', 'of the whole'],
		[...b.parts.map(row), sum('sum of the parts', b.sum), row(b.whole), sum('not explained', b.rest)], 'Budget');
}

/** All that an object says, by the paths of its members. */
export function objectTable(o: any, name: string): HTMLElement {
	const rows: string[][] = [];
	const text = (v: any): string => v === null || v === undefined ? 'not known' : v === true ? 'yes' : v === false ? 'no' :
		Array.isArray(v) ? v.map(text).join(', ') : typeof v === 'object' ? JSON.stringify(v) : typeof v === 'number' && !Number.isInteger(v) ? quantity(v, '') : String(v);
	const walk = (v: any, path: string): void => {
		for (const [key, value] of Object.entries(v ?? {}))
			if (value && typeof value === 'object' && !Array.isArray(value))
				walk(value, `${path}${key}.`);
			else
				rows.push([path + key, text(value)]);
	};
	walk(o, '');
	return table(['', ''], rows, name, true);
}
