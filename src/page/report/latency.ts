// SPDX-License-Identifier: BSD-2-Clause
// Figures of single latencies: histogram, the slowest messages, over time; and what a recording has over time.
import { count } from '../components/dom';
import { Case, Curve, hasRows, Latency, missed } from './data';
import { colourClass, Drawing, textWidth } from './drawing';
import type { Plot, Point, Series } from './plot';
import { Axis, axisFor } from './scale';
import { percent, quantity, sentence, time } from './words';

/** A latency under a name that tells it from the others in the figure. */
export interface Named { name: string; c: Case; l: Latency }

export function drawable(all: Named[]): Named[] {
	return all.filter(n => hasRows(n.l));
}

/** "0.06 % above 10 µs, maximum 45 µs, missed or lost 0.5 %" */
export function share(n: Named): string {
	const m = missed(n.c), above = n.l.share_above;
	return (above === null || above === undefined ? '' : `${percent(100 * above)} above ${time(n.c.limit_ns)}, `) +
		`maximum ${time(n.l.max)}` + (Number.isNaN(m) || m === 0 ? '' : `, missed or lost ${percent(m)}`);
}

function describe(all: Named[]): string {
	return all.map(n => `${n.name}: median ${time(n.l.p50)}, ${share(n)}.`).join(' ');
}

/** What all of them are: the label of a latency, or just a time. */
function kindOf(all: Named[]): string {
	return all.every(n => n.l.label === all[0].l.label) ? all[0].l.label : 'time';
}

function histogramPoints(n: Named, unit: number): Point[] {
	return n.l.bins!.map((v, i) => ({ x: (i + 0.5) * n.l.bin_ns!, y: v * unit / n.l.bin_ns!,
		text: `${n.name}: ${percent(v)} from ${time(i * n.l.bin_ns!)} to ${time((i + 1) * n.l.bin_ns!)}` }));
}

/** Steps along the bins, filled down to the axis. */
function drawHistogram(d: Drawing, n: Named, colour: number, filled: boolean, unit: number): void {
	// A logarithmic axis has no place for 0, where the first bin begins.
	const place = (x: number): number => Math.max(d.left, d.x(x)), points: [number, number][] = [[place(0), d.y(0)]], b = n.l.bin_ns!;
	n.l.bins!.forEach((v, i) => points.push([place(i * b), d.y(v * unit / b)], [place((i + 1) * b), d.y(v * unit / b)]));
	points.push([points[points.length - 1][0], d.y(0)]);
	if (filled)
		d.path(points, { class: `fill ${colourClass(colour)}` });
	d.path(points, { class: `thin ${colourClass(colour)}` });
	const x = d.x(n.l.p50);
	if (!d.sees(n.l.p50))
		return;
	d.add('line', { class: `line dash ${colourClass(colour)}`, x1: x, x2: x, y1: d.top, y2: d.top + d.height });
	if (n.l.reference_ns !== undefined && d.sees(n.l.reference_ns))
		d.add('path', { class: 'elsewhere', d: `M${d.x(n.l.reference_ns)} ${d.top + d.height}l4.5 -8h-9z` });
}

/** The box: median, the share above the range that is drawn, and the maximum of each latency. */
function shares(d: Drawing, all: Named[]): void {
	let y = d.top + 12;
	for (const n of all.slice(0, 6)) {
		const text = `${all.length > 1 ? n.name + ': ' : ''}median ${time(n.l.p50)}, ${percent(100 * (n.l.beyond ?? 0))} above ${time(n.l.range_ns)}, maximum ${time(n.l.max)}${missed(n.c) > 0 ? `, missed or lost ${percent(missed(n.c))}` : ''}`;
		for (const part of textWidth(text) > d.width - 16 ? text.split(/(?<=,) /) : [text]) {
			d.label(part, d.left + d.width - 6, y, 'end', 'value');
			y += 15;
		}
	}
}

export function histogram(all: Named[], what: string): Plot {
	const range = Math.max(...all.map(n => n.l.range_ns!));
	// Bins of different widths are made comparable: shares are those of the narrowest.
	const unit = Math.min(...all.map(n => n.l.bin_ns!)), medians = all.map(n => Math.max(n.l.p50, 1));
	const top = Math.max(...all.flatMap(n => n.l.bins!.map(v => v * unit / n.l.bin_ns!)), 0.001);
	const log = Math.max(...medians) / Math.min(...medians) > 20, low = log ? Math.max(unit / 2, Math.min(...all.map(n => n.l.min)) / 1.5, 1) : 0;
	const y = axisFor(`share of the messages in each ${time(unit)}`, '%', [0, top], { log: false, low: 0, high: Math.min(top * 1.12, 104) });
	return {
		what: `Histogram: ${what}`, description: describe(all),
		x: { label: `${kindOf(all)}; dashed: median`, unit: 'ns', log, low, high: range }, y,
		series: all.map((n, i) => ({ name: n.name, colour: i, points: histogramPoints(n, unit),
			draw: d => drawHistogram(d, n, i, all.length < 4, unit) })),
		note: all.some(n => n.l.reference_ns !== undefined && n.l.reference_ns < range) ? '△ median of other hardware' : undefined,
		over: d => shares(d, all),
	};
}

/** The cumulative distribution from above, down to the single slowest message. */
export function tail(all: Named[], what: string): Plot {
	const values = all.flatMap(n => n.l.tail!.value).filter(v => v > 0);
	const least = Math.min(...all.map(n => 1 / n.l.count));
	const y: Axis = { label: 'share of the messages that took at least so long', unit: '%', log: true,
		low: Math.max(least * 100 / 1.6, 1e-7), high: 160 };
	return {
		what: `The slowest messages: ${what}`,
		description: all.map(n => `${n.name}: 99 % below ${time(n.l.p99)}, 99.9 % below ${time(n.l['p99.9'])}, slowest ${time(n.l.max)}.`).join(' '),
		x: axisFor(kindOf(all), 'ns', values, { log: true }), y,
		series: all.map((n, i): Series => {
			const points = n.l.tail!.value.map((v, k) => ({ x: Math.max(v, 1), y: 100 * n.l.tail!.left[k] / n.l.count,
				text: `${n.name}: ${percent(100 * n.l.tail!.left[k] / n.l.count)} (${count(n.l.tail!.left[k])}) took ${time(v)} or longer` }));
			return { name: n.name, colour: i, dash: i >= 8, points, draw: d => {
				const steps: [number, number][] = [];
				points.forEach((p, k) => {
					if (k)
						steps.push([d.x(p.x), steps[steps.length - 1][1]]);
					steps.push([d.x(p.x), d.y(p.y)]);
				});
				d.path(steps, { class: `line ${colourClass(i)}${i >= 8 ? ' dash' : ''}` });
			} };
		}),
	};
}

/** Lowest, median and highest of groups of messages in the order in which they were sent. */
export function overTime(all: Named[], what: string): Plot {
	const values = all.flatMap(n => [...n.l.bands!.low, ...n.l.bands!.high]);
	const most = Math.max(...all.map(n => n.l.count));
	return {
		what: `Over time: ${what}`,
		description: all.map(n => `${n.name}: ${count(n.l.count)} messages in the order in which they were sent, from ${time(n.l.min)} to ${time(n.l.max)}.`).join(' '),
		x: { label: 'message, in the order of sending', unit: '', log: false, low: 0, high: most },
		y: axisFor(kindOf(all), 'ns', values.filter(v => v > 0)),
		series: all.map((n, i): Series => {
			const b = n.l.bands!, size = b.median.length, x = (k: number): number => n.l.count * k / size;
			return { name: n.name, colour: i, points: b.median.map((v, k) => ({ x: x(k + 0.5), y: v,
				text: `${n.name}, messages ${count(x(k))} to ${count(Math.max(x(k), x(k + 1) - 1))}: ${time(b.low[k])} to ${time(b.high[k])}, median ${time(v)}` })),
			draw: d => {
				const up = b.high.map((v, k): [number, number] => [d.x(x(k + 0.5)), d.y(v)]);
				const down = b.low.map((v, k): [number, number] => [d.x(x(k + 0.5)), d.y(v)]).reverse();
				d.path([...up, ...down], { class: `band ${colourClass(i)}` });
				d.path(up, { class: `thin ${colourClass(i)}`, 'stroke-opacity': 0.45 });
				d.path(b.median.map((v, k) => [d.x(x(k + 0.5)), d.y(v)]), { class: `line ${colourClass(i)}` });
			} };
		}),
		note: 'line: median; area: lowest to highest',
	};
}

/** A quantity of a recording. */
export function curve(c: Curve, name: string): Plot {
	const values = [...c.low, ...c.high], low = Math.min(...values), high = Math.max(...values), room = (high - low) * 0.08 || 1;
	const unit = c.unit === 'µs' ? 'ns' : c.unit, by = c.unit === 'µs' ? 1000 : 1;
	return {
		what: `${sentence(c.label)}: ${name}`,
		description: `${sentence(c.label)} over ${quantity(c.seconds[c.seconds.length - 1], 's')}: lowest ${quantity(c.min, c.unit)}, mean ${quantity(c.mean, c.unit)}, highest ${quantity(c.max, c.unit)}.`,
		x: { label: 'time since the first sample', unit: 's', log: false, low: 0, high: c.seconds[c.seconds.length - 1] || 1 },
		y: { label: c.label + (unit && unit !== 'ns' ? `, ${unit}` : ''), unit: unit === 'ns' ? 'ns' : '', log: false,
			low: (low >= 0 && low < room * 4 ? 0 : low - room) * by, high: (high + room) * by },
		height: 240,
		series: [{ name: c.label, colour: 0, points: c.seconds.map((t, i) => ({ x: t, y: c.high[i] * by,
			text: `${quantity(t, 's')}: ${quantity(c.low[i], c.unit)}` + (c.low[i] === c.high[i] ? '' : ` to ${quantity(c.high[i], c.unit)}`) })),
		draw: d => {
			const up = c.seconds.map((t, i): [number, number] => [d.x(t), d.y(c.high[i] * by)]);
			const down = c.seconds.map((t, i): [number, number] => [d.x(t), d.y(c.low[i] * by)]);
			d.path([...up, ...[...down].reverse()], { class: 'fill s0' });
			d.path(up, { class: 'thin s0' });
			d.path(down, { class: 'thin s0' });
		} }],
	};
}
