// SPDX-License-Identifier: BSD-2-Clause
// Figures with a row for each case: medians with bars from 10 to 90 %, numbers as bars, budgets as a waterfall,
// two runs beside each other.
import { Case, Compared, Latency, missed, partsOf } from './data';
import { colourClass, Drawing, marker, textWidth } from './drawing';
import { Chart, Plot, Series } from './plot';
import { Axis, axisFor } from './scale';
import { percent, quantity, sentence, time } from './words';
import type { Named } from './latency';

function rowsAxis(names: string[]): Axis {
	return { label: '', unit: '', log: false, low: 0, high: names.length, rows: names };
}

/** A median with its bar, the interval of the median and what the 99 % are. */
function drawDot(d: Drawing, l: Latency, row: number, share: number, colour: number): void {
	const y = Chart.rowAt(d, row, share), kind = colourClass(colour);
	d.add('path', { class: `thin ${kind}`, d: `M${d.x(l.p10)} ${y}H${d.x(l.p90)}M${d.x(l.p10)} ${y - 3}v6M${d.x(l.p90)} ${y - 3}v6` });
	if (l.low !== undefined && l.high !== undefined)
		d.add('rect', { class: `band ${kind}`, x: d.x(l.low), y: y - 6, width: Math.max(1, d.x(l.high) - d.x(l.low)), height: 12 });
	marker(d, colour, d.x(l.p50), y, `dot ${kind}`);
}

/** Behind the bar, else before it, else above its mark. */
function valueLabel(d: Drawing, text: string, behind: number, before: number, mark: number, y: number): void {
	const width = textWidth(text), half = width / 2;
	if (behind + width < d.left + d.width)
		d.label(text, behind, y + 4, 'start', 'value');
	else if (before - width > d.left)
		d.label(text, before, y + 4, 'end', 'value');
	else
		d.label(text, Math.max(d.left + half, Math.min(d.left + d.width - half, mark)), y - 7, 'middle', 'value');
}

/** Medians of cases beside each other; several latencies of a case share its row. */
export function dots(rows: { name: string; c: Case; latencies: Latency[] }[], what: string, floor: number): Plot {
	const names = [...new Map(rows.flatMap(r => r.latencies.map(l => [l.name, l.label]))).entries()];
	const values = rows.flatMap(r => r.latencies.flatMap(l => [l.p10, l.p50, l.p90, l.reference_ns ?? NaN]));
	const series: Series[] = names.map(([name, label], k): Series => {
		const own = rows.flatMap((r, row) => r.latencies.filter(l => l.name === name).map(l => ({ r, l, row })));
		const share = (k + 1) / (names.length + 1), ends = names.length > 1 ? share : 0.5;
		return { name: label, colour: k,
			points: own.map(({ r, l, row }) => ({ x: l.p50, y: row + ends, text: `${names.length > 1 ? label : r.name}: ${time(l.p50)}, 10 to 90 %: ${time(l.p10)} to ${time(l.p90)}` +
				(Number.isFinite(floor) ? `; ${quantity(l.p50 / floor, '')} × floor` : '') + (missed(r.c) > 0 ? `; missed or lost ${percent(missed(r.c))}` : '') })),
			draw: d => own.forEach(({ l, row }) => drawDot(d, l, row, ends, k)) };
	});
	const there = rows.flatMap((r, row) => r.latencies.filter(l => l.reference_ns !== undefined).map(l => ({ r, l, row, share: names.length > 1 ? (names.findIndex(n => n[0] === l.name) + 1) / (names.length + 1) : 0.5 })));
	if (there.length)
		series.push({ name: 'other hardware', colour: 7, elsewhere: true,
			points: there.map(({ l, row, share }) => ({ x: l.reference_ns!, y: row + share, text: `other hardware: ${time(l.reference_ns)}` })),
			draw: d => there.forEach(({ l, row, share }) => marker(d, 3, d.x(l.reference_ns!), Chart.rowAt(d, row, share), 'dot elsewhere')) });
	return {
		what: `Medians: ${what}`,
		description: rows.map(r => `${r.name}: ${r.latencies.map(l => `${names.length > 1 ? l.label + ' ' : ''}${time(l.p50)}`).join(', ')}.`).join(' '),
		x: axisFor(what === 'all latencies' ? 'latency' : what, 'ns', values.filter(v => v > 0)), y: rowsAxis(rows.map(r => r.name)),
		series, byRow: true, note: 'bars: 10 to 90 %; area: 95 % interval of the median',
		over: d => rows.forEach((r, row) => {
			if (names.length === 1 && !there.length) {
				const l = r.latencies[0], x = d.x(Math.max(l.p90, l.p50)) + 8;
				valueLabel(d, time(l.p50), x, d.x(l.p10) - 8, d.x(l.p50), Chart.rowAt(d, row));
			}
		}),
	};
}

export function bars(what: string, unit: string, values: { name: string; value: number }[]): Plot {
	const x = axisFor(unit && !['ns', '%', 'Hz', 'B', '1/s'].includes(unit) ? unit : '', unit, values.map(v => v.value), values.every(v => v.value > 0) ? {} : { log: false });
	x.label ||= unit === 'ns' ? 'time' : what;
	return {
		what: sentence(what), description: values.map(v => `${v.name}: ${quantity(v.value, unit)}.`).join(' '),
		x, y: rowsAxis(values.map(v => v.name)), byRow: true,
		series: [{ name: what, colour: 0, points: values.map((v, i) => ({ x: v.value, y: i + 0.5, text: `${v.name}: ${quantity(v.value, unit)}` })),
			draw: d => values.forEach((v, i) => {
				const zero = d.x(x.log ? x.low : 0), end = d.x(v.value), y = Chart.rowAt(d, i);
				d.add('rect', { class: 'bar s0', x: Math.min(zero, end), y: y - 7, width: Math.max(1, Math.abs(end - zero)), height: 14 });
				const inside = end + 70 > d.left + d.width && end - zero > 70;
				if (!inside || x.log || end - zero > 70)
					d.label(quantity(v.value, unit), inside ? end - 6 : end + 6, y + 4, inside ? 'end' : 'start', inside ? 'on' : 'value');
			}) }],
	};
}

// ---- budgets

export interface Budget { whole: Latency; parts: Latency[]; sum: number; rest: number }

export function budgetsOf(c: Case): Budget[] {
	return c.latencies.filter(l => partsOf(c, l).length).map(whole => {
		const parts = partsOf(c, whole), sum = parts.reduce((a, p) => a + (p.middle ?? NaN), 0);
		return { whole, parts, sum, rest: (whole.middle ?? NaN) - sum };
	});
}

interface Bar { name: string; from: number; to: number; kind: string; part?: Latency }

function barsOf(b: Budget): Bar[] {
	let at = 0;
	const rows: Bar[] = b.parts.map(part => {
		const from = at;
		at += part.middle ?? 0;
		return { name: part.label, from, to: at, kind: 'bar s0', part };
	});
	return [...rows, { name: 'sum of the parts', from: 0, to: b.sum, kind: 'bar s2' },
		{ name: b.whole.label, from: 0, to: b.whole.middle ?? NaN, kind: 'whole', part: b.whole },
		{ name: 'not explained', from: b.sum, to: b.whole.middle ?? NaN, kind: 'rest' }];
}

/** Each part begins where the one before it ends. */
export function waterfall(b: Budget, what: string): Plot {
	const all = barsOf(b).filter(r => Number.isFinite(r.to)), ends = all.flatMap(r => [r.from, r.to]);
	const low = Math.min(0, ...ends), high = Math.max(...ends, 1);
	const p90 = (r: Bar): number => r.kind === 'bar s0' ? r.from + r.part!.p90 : r.to;
	return {
		what: `Where the time goes: ${what}`,
		description: all.map(r => `${r.name}: ${time(r.to - r.from)}.`).join(' '),
		x: { label: 'time, mean of the middle 80 %', unit: 'ns', log: false, low: low < 0 ? low * 1.15 : 0, high: high * 1.2 },
		y: rowsAxis(all.map(r => r.name)), byRow: true, note: `lines: 10 to 90 %${all.some(r => p90(r) > 1.2 * high) ? '; an arrow: further than the axis' : ''}`,
		series: [{ name: b.whole.label, colour: 0,
			points: all.map((r, i) => ({ x: r.to, y: i + 0.5, text: `${r.name}: ${time(r.to - r.from)}, ${percent(100 * (r.to - r.from) / (b.whole.middle || NaN))} of the whole` +
				(r.part ? `; 10 to 90 %: ${time(r.part.p10)} to ${time(r.part.p90)}` : '') })),
			draw: d => all.forEach((r, i) => {
				const a = d.x(r.from), z = d.x(r.to), y = Chart.rowAt(d, i), end = d.x_axis.high, line = d.x(Math.min(p90(r), end));
				d.add('rect', { class: r.kind, x: Math.min(a, z), y: y - 7, width: Math.max(1.5, Math.abs(z - a)), height: 14 });
				if (r.kind === 'bar s0')
					d.add('path', { class: 'thin s7', d: `M${d.x(r.from + r.part!.p10)} ${y}H${line}${p90(r) > end ? 'm-5 -4l5 4l-5 4' : ''}` });
				const text = time(r.to - r.from);
				if (!d.label(text, Math.max(a, z, line) + 7, y + 4, 'start', 'value'))
					d.label(text, Math.min(a, z) - 7, y + 4, 'end', 'value');
			}) }],
	};
}

// ---- two runs

export function ratios(rows: { name: string; compared: Compared }[], what: string): Plot {
	const known = rows.filter(r => r.compared.ratio !== null && r.compared.ratio > 0 && Number.isFinite(r.compared.ratio));
	const clip = (v: number | null, or: number): number => v !== null && v > 0 && Number.isFinite(v) ? v : or;
	const ends = known.flatMap(r => [r.compared.ratio!, clip(r.compared.low, r.compared.ratio!), clip(r.compared.high, r.compared.ratio!)]);
	const low = Math.min(...ends, 1) / 1.15, high = Math.max(...ends, 1) * 1.15;
	return {
		what: `Second run over first: ${what}`,
		description: known.map(r => `${r.name}: ${quantity(r.compared.ratio, '')} times, ${r.compared.verdict}.`).join(' '),
		x: { label: 'median of the second run / of the first; left of 1: faster', unit: '', log: high / low > 3, low, high },
		y: rowsAxis(known.map(r => r.name)), byRow: true,
		series: [{ name: 'ratio', colour: 0, points: known.map((r, i) => ({ x: r.compared.ratio!, y: i + 0.5,
			text: `${r.name}: ${time(r.compared.a_ns)} and ${time(r.compared.b_ns)}, ${quantity(r.compared.ratio, '')} times (${quantity(r.compared.low, '')} to ${quantity(r.compared.high, '')}): ${r.compared.verdict}` })),
		draw: d => known.forEach((r, i) => {
			const colour = r.compared.verdict === 'faster' ? 2 : r.compared.verdict === 'slower' ? 1 : 7, y = Chart.rowAt(d, i);
			d.add('path', { class: `line ${colourClass(colour)}`, d: `M${d.x(clip(r.compared.low, r.compared.ratio!))} ${y}H${d.x(clip(r.compared.high, r.compared.ratio!))}` });
			marker(d, colour, d.x(r.compared.ratio!), y, `dot ${colourClass(colour)}`);
		}) }],
		under: d => {
			if (d.sees(1))
				d.add('line', { class: 'base', x1: d.x(1), x2: d.x(1), y1: d.top, y2: d.top + d.height });
		},
	};
}

export function named(rows: { c: Case; l: Latency }[], name: (c: Case) => string): Named[] {
	return rows.map(r => ({ name: name(r.c), ...r }));
}
