// SPDX-License-Identifier: BSD-2-Clause
// Figures over a parameter that was swept: medians with bars from 10 to 90 %, other numbers, and the
// surface over rate and size, flat as a map or seen from the side.
import { h, s } from '../components/dom';
import { Case, latencyNamed, missed, valueOf } from './data';
import { AxisKey, Group, latencyLabel, Line, valueAt } from './groups';
import { colourClass, Drawing, marker, textWidth } from './drawing';
import type { Plot, Point, Series } from './plot';
import { saveButtons } from './save';
import { Axis, axisFor } from './scale';
import { percent, quantity, sentence, time } from './words';

export interface Swept { line: Line; group: Group; latency: string; name: string }

function sweptAxis(x: AxisKey, cases: Case[]): Axis {
	const values = [...new Set(cases.map(c => valueAt(x, c)))].sort((a, b) => a - b);
	const log = values[0] > 0 && values[values.length - 1] / values[0] > 20;
	const low = values[0], high = values[values.length - 1], room = (high - low) * 0.05;
	return { label: x.label, unit: x.unit, log, marks: values,
		low: log ? low / 1.3 : low - room, high: log ? high * 1.3 : high + room };
}

interface Place { x: number; c: Case; p10: number; p50: number; p90: number; reference: number }

function placesOf(w: Swept): Place[] {
	return w.line.cases.flatMap(c => {
		const l = latencyNamed(c, w.latency), x = valueAt(w.group.x, c);
		return l && Number.isFinite(x) ? [{ x, c, p10: l.p10, p50: l.p50, p90: l.p90, reference: l.reference_ns ?? NaN }] : [];
	});
}

function drawMedians(d: Drawing, places: Place[], i: number, of: number): void {
	const kind = colourClass(i), shift = of > 1 ? (i - (of - 1) / 2) * Math.min(3, 26 / of) : 0;
	d.path(places.map(p => [d.x(p.x) + shift, d.y(p.p50)]), { class: `line ${kind}${i >= 8 ? ' dash' : ''}` });
	for (const p of places.filter(q => d.sees(q.x))) {
		const x = d.x(p.x) + shift, high = d.y(p.p90), low = d.y(p.p10);
		d.add('path', { class: `thin ${kind}`, d: `M${x} ${high}V${low}M${x - 3} ${high}h6M${x - 3} ${low}h6` });
		marker(d, i, x, d.y(p.p50), `dot ${kind}`);
	}
}

function pointText(name: string, p: Place, floor: number): string {
	const m = missed(p.c);
	return `${name}: ${time(p.p50)}, 10 to 90 %: ${time(p.p10)} to ${time(p.p90)}` +
		(Number.isFinite(floor) ? `; ${quantity(p.p50 / floor, '')} × floor` : '') +
		(m > 0 ? `; missed or lost ${percent(m)}` : '');
}

/** All lines of a question in one figure. */
export function medians(all: Swept[], what: string, floor: number): Plot {
	const lines = all.map(w => ({ w, places: placesOf(w) })).filter(l => l.places.length);
	const every = lines.flatMap(l => l.places), x = lines[0].w.group.x!;
	const series: Series[] = lines.map(({ w, places }, i) => ({
		name: w.name, colour: i, dash: i >= 8, draw: d => drawMedians(d, places, i, lines.length),
		points: places.map(p => ({ x: p.x, y: p.p50, text: pointText(w.name, p, floor) })),
	}));
	const references = lines.flatMap(l => l.places.filter(p => Number.isFinite(p.reference)).map((p): Point => ({ x: p.x, y: p.reference,
		text: `${l.w.name}, other hardware: ${time(p.reference)}` })));
	if (references.length)
		series.push({ name: 'other hardware', colour: 7, elsewhere: true, points: references,
			draw: d => references.filter(r => d.sees(r.x)).forEach(r => marker(d, 3, d.x(r.x), d.y(r.y), 'dot elsewhere')) });
	return {
		what: `Medians over the ${x.label}: ${what}`,
		description: lines.map(({ w, places }) => `${w.name || 'median'}: ${places.slice(0, 12).map(p => `${time(p.p50)} at ${quantity(p.x, x.unit)}`).join(', ')}.`).join(' '),
		x: sweptAxis(x, every.map(p => p.c)),
		y: axisFor(latencyLabel(lines[0].w.group, lines[0].w.latency), 'ns', [...every.flatMap(p => [p.p10, p.p50, p.p90]), ...references.map(r => r.y)].filter(v => v > 0)),
		series, note: 'bars: 10 to 90 %',
	};
}

/** A number beside the latencies. */
export function numbers(g: Group, like: { name: string; label: string; unit: string }): Plot {
	const lines = g.lines.map(line => ({ line, points: line.cases.map(c => ({ x: valueAt(g.x, c), y: valueOf(c, like.name) }))
		.filter(p => Number.isFinite(p.x) && Number.isFinite(p.y)) })).filter(l => l.points.length);
	return {
		what: `${sentence(like.label)} over the ${g.x!.label}`,
		description: lines.map(l => `${sentence(l.line.label || like.label)}: ${l.points.slice(0, 12).map(p => `${quantity(p.y, like.unit)} at ${quantity(p.x, g.x!.unit)}`).join(', ')}.`).join(' '),
		x: sweptAxis(g.x!, g.cases), height: 260,
		y: axisFor(like.label + (like.unit && !['ns', '%', 'Hz', 'B'].includes(like.unit) ? `, ${like.unit}` : ''), like.unit, lines.flatMap(l => l.points.map(p => p.y))),
		series: lines.map((l, i): Series => ({
			name: l.line.label || like.label, colour: i, dash: i >= 8,
			points: l.points.map(p => ({ ...p, text: `${l.line.label || like.label}: ${quantity(p.y, like.unit)}` })),
			draw: d => {
				d.path(l.points.map(p => [d.x(p.x), d.y(p.y)]), { class: `line ${colourClass(i)}${i >= 8 ? ' dash' : ''}` });
				l.points.forEach(p => marker(d, i, d.x(p.x), d.y(p.y), `dot ${colourClass(i)}`));
			},
		})),
	};
}

// ---- two parameters

interface Surface { xs: number[]; ys: number[]; at: Map<string, Case>; latency: string; low: number; high: number }

function surfaceOf(g: Group, line: Line, latency: string): Surface | null {
	const known = line.cases.filter(c => latencyNamed(c, latency) && Number.isFinite(valueAt(g.x, c)) && Number.isFinite(valueAt(g.y, c)));
	const axis = (k: AxisKey | null): number[] => [...new Set(known.map(c => valueAt(k, c)))].sort((a, b) => a - b);
	const xs = axis(g.x), ys = axis(g.y), values = known.map(c => latencyNamed(c, latency)!.p50);
	if (xs.length < 2 || ys.length < 2)
		return null;
	return { xs, ys, latency, at: new Map(known.map(c => [`${valueAt(g.x, c)} ${valueAt(g.y, c)}`, c])),
		low: Math.max(1, Math.min(...values)), high: Math.max(...values, 2) };
}

/** Light to dark, the same in both themes, for medians on a logarithmic scale. */
const STOPS = [[233, 242, 250], [150, 197, 232], [66, 139, 202], [28, 84, 150], [11, 38, 84]];

function shadeOf(f: Surface, ns: number): { fill: string; dark: boolean } {
	const share = f.high > f.low ? Math.max(0, Math.min(1, Math.log(Math.max(ns, 1) / f.low) / Math.log(f.high / f.low))) : 0;
	const i = Math.min(STOPS.length - 2, Math.floor(share * (STOPS.length - 1))), part = share * (STOPS.length - 1) - i;
	const rgb = STOPS[i].map((v, k) => Math.round(v + part * (STOPS[i + 1][k] - v)));
	return { fill: `rgb(${rgb.join(' ')})`, dark: share > 0.42 };
}

/** Missed or lost steps are named from here on. */
const MISSED_NAMED = 10;

function cellText(c: Case, f: Surface): string {
	const l = latencyNamed(c, f.latency)!, m = missed(c);
	return `median ${time(l.p50)}, 10 to 90 %: ${time(l.p10)} to ${time(l.p90)}` + (m > 0 ? `, missed or lost ${percent(m)}` : '');
}

/** Rows and columns as they were measured, whatever lies between them. */
export function heatMap(g: Group, line: Line, latency: string): Plot | null {
	const f = surfaceOf(g, line, latency);
	if (!f)
		return null;
	const cells = [...f.at.values()].map(c => ({ c, i: f.xs.indexOf(valueAt(g.x, c)), k: f.ys.indexOf(valueAt(g.y, c)) }));
	return {
		what: `Medians over ${g.x!.label} and ${g.y!.label}: ${line.label ? line.label + ', ' : ''}${latencyLabel(g, latency)}`,
		description: cells.map(({ c }) => `${quantity(valueAt(g.x, c), g.x!.unit)}, ${g.y!.label} ${quantity(valueAt(g.y, c), g.y!.unit)}: ${cellText(c, f)}.`).join(' '),
		x: { label: g.x!.label, unit: '', log: false, low: -0.5, high: f.xs.length - 0.5,
			ticks: f.xs.map((v, i) => ({ at: i, text: quantity(v, g.x!.unit) })) },
		y: { label: '', unit: '', log: false, low: 0, high: f.ys.length, rows: [...f.ys].reverse().map(v => `${quantity(v, g.y!.unit)}${g.y!.unit ? '' : ' ' + g.y!.label}`) },
		byRow: true, height: 60 + f.ys.length * 44,
		series: [{ name: latencyLabel(g, latency), colour: 0,
			points: cells.map(({ c, i, k }) => ({ x: i, y: f.ys.length - 1 - k + 0.5, text: `${quantity(f.xs[i], g.x!.unit)}: ${cellText(c, f)}` })),
			draw: d => drawCells(d, f, cells) }],
		note: `dark: slow; with a median: share of the steps missed or lost, from ${MISSED_NAMED} %`,
	};
}

function drawCells(d: Drawing, f: Surface, cells: { c: Case; i: number; k: number }[]): void {
	const narrow = Number(d.svg.dataset.width) < 560;
	for (const { c, i, k } of cells) {
		const row = f.ys.length - 1 - k, x = d.x(i - 0.5), w = d.x(i + 0.5) - x, y = d.y(row) + (narrow ? 17 : 1), h = d.y(row + 1) - y - 1;
		const l = latencyNamed(c, f.latency)!, shade = shadeOf(f, l.p50), m = missed(c), told = m >= MISSED_NAMED;
		d.add('rect', { class: 'cell', x, y, width: w, height: h, style: `fill:${shade.fill}` });
		const kind = shade.dark ? 'on' : 'off', middle = y + h / 2 + 4;
		const missing = `${Math.round(m)}\u202f%`, text = told && narrow ? `${time(l.p50)}, ${missing}` : time(l.p50);
		if (textWidth(text) < w - 2)
			d.label(text, x + w / 2, told && !narrow ? middle - 7 : middle, 'middle', kind);
		if (told && !narrow && textWidth(missing) < w - 2)
			d.label(missing, x + w / 2, middle + 8, 'middle', `${kind} missed`);
		else if (told && (!narrow || textWidth(text) >= w - 2))
			d.add('path', { class: kind, d: `M${x + w - 9} ${y + 2}h7v7z` });
	}
}

/** The same surface from the side: rate to the right, size to the back, medians upwards. */
export function surfaceView(g: Group, line: Line, latency: string): HTMLElement | null {
	const f = surfaceOf(g, line, latency);
	if (!f)
		return null;
	const what = `Surface over ${g.x!.label} and ${g.y!.label}: ${line.label ? line.label + ', ' : ''}${latencyLabel(g, latency)}`;
	const svg = s('svg', { class: 'plot side', viewBox: `0 0 ${SIDE.width} ${SIDE.height}`, role: 'img',
		'aria-label': `${what}. From ${time(f.low)} to ${time(f.high)}; the map has the same numbers.` });
	drawFaces(svg, f);
	nameSides(svg, f, g);
	return h('figure', {}, h('figcaption', {}, what), svg, h('div', { class: 'under' }, h('span', { class: 'push' }), ...saveButtons(what, () => svg, () => [])));
}

const SIDE = { width: 640, height: 380, left: 70, bottom: 310, along: 350, deep: 130, rise: 90, up: 180 };

function sidePlace(f: Surface, i: number, k: number, z: number): [number, number] {
	const back = k / (f.ys.length - 1);
	return [SIDE.left + i / (f.xs.length - 1) * SIDE.along + back * SIDE.deep, SIDE.bottom - back * SIDE.rise - z * SIDE.up];
}

/** From the back to the front, so that what is near covers what is behind it. */
function drawFaces(svg: SVGSVGElement, f: Surface): void {
	const level = (ns: number): number => f.high > f.low ? Math.log(Math.max(ns, 1) / f.low) / Math.log(f.high / f.low) : 0;
	const last = [f.xs.length - 1, f.ys.length - 1];
	const ground = (a: [number, number], b: [number, number]): void => {
		svg.append(s('line', { class: 'grid', x1: a[0], y1: a[1], x2: b[0], y2: b[1] }));
	};
	f.xs.forEach((_, i) => ground(sidePlace(f, i, 0, 0), sidePlace(f, i, last[1], 0)));
	f.ys.forEach((_, k) => ground(sidePlace(f, 0, k, 0), sidePlace(f, last[0], k, 0)));
	for (let k = last[1] - 1; k >= 0; k--)
		for (let i = 0; i < last[0]; i++) {
			const corners = [[i, k], [i + 1, k], [i + 1, k + 1], [i, k + 1]].map(([a, b]) => ({ a, b, c: f.at.get(`${f.xs[a]} ${f.ys[b]}`) }));
			if (corners.some(q => !q.c))
				continue;
			const ns = corners.map(q => latencyNamed(q.c!, f.latency)!.p50), mean = Math.exp(ns.reduce((sum, v) => sum + Math.log(Math.max(v, 1)), 0) / 4);
			svg.append(s('polygon', { class: 'cell', style: `fill:${shadeOf(f, mean).fill}`,
				points: corners.map((q, n) => sidePlace(f, q.a, q.b, level(ns[n])).map(v => v.toFixed(1)).join(',')).join(' ') },
				s('title', {}, `${time(Math.min(...ns))} to ${time(Math.max(...ns))}`)));
		}
}

function nameSides(svg: SVGSVGElement, f: Surface, g: Group): void {
	svg.dataset.width = String(SIDE.width);
	const d = new Drawing(svg, svg as unknown as SVGGElement, { label: '', unit: '', log: false, low: 0, high: 1 }, { label: '', unit: '', log: false, low: 0, high: 1 }, 0, 0, SIDE.width, SIDE.height);
	svg.append(s('line', { class: 'base', x1: SIDE.left, x2: SIDE.left, y1: SIDE.bottom, y2: SIDE.bottom - SIDE.up }));
	d.label(time(f.high), SIDE.left - 8, SIDE.bottom - SIDE.up + 4, 'end');
	d.label(time(f.low), SIDE.left - 8, SIDE.bottom + 4, 'end');
	d.label(g.x!.label, SIDE.left + SIDE.along / 2, SIDE.bottom + 42, 'middle', 'axis');
	f.xs.forEach((v, i) => d.label(quantity(v, g.x!.unit), sidePlace(f, i, 0, 0)[0], SIDE.bottom + 20, 'middle'));
	f.ys.forEach((v, k) => {
		const [x, y] = sidePlace(f, f.xs.length - 1, k, 0);
		d.label(quantity(v, g.y!.unit), x + 10, y + 4, 'start');
	});
	const [x, y] = sidePlace(f, f.xs.length - 1, (f.ys.length - 1) / 2, 0);
	d.label(g.y!.label, Math.min(x + 60, SIDE.width - textWidth(g.y!.label) - 4), y + 14, 'start', 'axis');
}
