// SPDX-License-Identifier: BSD-2-Clause
// A figure: axes, curves that can be chosen, a closer look, what lies under the pointer or the arrow keys.
// It is SVG, so that labels have boxes, that it prints sharp and follows the colours of the page, and that
// what is seen can be saved.
import { h, s } from '../components/dom';
import { colourClass, Drawing, marker, textWidth } from './drawing';
import { arrowStep, Drawn, isModified } from './drawn';
import { LegendEntry } from './save';
import { Axis, inverse, position, ticksOf } from './scale';
import { brief } from './words';

export interface Point { x: number; y: number; text: string }

export interface Series {
	name: string;
	/** Index of the page's colours. */
	colour: number;
	dash?: boolean;
	/** Of other hardware: drawn as marks, and named so. */
	elsewhere?: boolean;
	points: Point[];
	draw(d: Drawing): void;
}

export interface Plot {
	/** "Histogram: RC": unique within the section. */
	what: string;
	/** What a reader who does not see the figure is told. */
	description: string;
	x: Axis; y: Axis; series: Series[];
	height?: number;
	/** The pointer finds the nearest row, not the nearest x. */
	byRow?: boolean;
	/** What stands in the legend beside the series. */
	note?: string;
	under?(d: Drawing): void;
	over?(d: Drawing): void;
}

const LINE = 16;

/** The figure with legend and buttons. */
export class Chart extends Drawn {
	private hidden = new Set<Series>();
	private range: [number, number] | null = null;
	private drawing: Drawing | null = null;
	private at: number | null = null;
	private drag: { from: number; rect: SVGRectElement } | null = null;

	constructor(readonly plot: Plot) {
		super(plot.what, '', h('button', { type: 'button', class: 'small', hidden: true, title: 'Show all of the axis (key 0)', click: () => this.zoom(null) }, 'Whole axis'));
		this.on({
			pointermove: e => this.pointed(e), pointerleave: () => this.point(null), pointerdown: e => this.press(e), pointerup: e => this.release(e),
			pointercancel: () => this.cancel(), dblclick: () => this.zoom(null), keydown: e => this.key(e), blur: () => this.point(null),
		});
		this.svg.setAttribute('aria-label', `${plot.what}. ${plot.description}`);
		const legend = this.legend();
		if (legend)
			this.element.prepend(legend);
	}

	protected legendEntries(): LegendEntry[] {
		return this.shown().map(x => ({ name: x.name, colour: x.colour, elsewhere: !!x.elsewhere }));
	}

	private shown(): Series[] {
		return this.plot.series.filter(x => !this.hidden.has(x));
	}

	private legend(): HTMLElement | null {
		const p = this.plot;
		if (p.series.length < 2 && !p.note && !p.series[0]?.elsewhere)
			return null;
		const one = p.series.length < 2;
		return h('ul', { class: 'legend', 'aria-label': 'Curves' }, ...(one ? [] : p.series).map((x, i) => {
			const sign = s('svg', { class: 'sign', viewBox: '0 0 18 10', 'aria-hidden': 'true' });
			const d = new Drawing(sign, sign as unknown as SVGGElement, p.x, p.y, 0, 0, 18, 10);
			d.add('path', { class: `line ${colourClass(x.colour)}${x.dash ? ' dash' : ''}`, d: 'M0 5H18' });
			if (!x.dash)
				marker(d, x.colour, 9, 5, `dot ${x.elsewhere ? 'elsewhere' : colourClass(x.colour)}`);
			const button: HTMLButtonElement = h('button', { type: 'button', class: 'small', 'aria-pressed': 'true',
				title: 'Show or hide; with Shift: only this one', click: (e: Event) => {
					this.choose(i, (e as MouseEvent).shiftKey);
				} }, sign, h('span', {}, x.name));
			return h('li', {}, button);
		}), p.note ? h('li', { class: 'muted' }, p.note) : null);
	}

	private choose(i: number, only: boolean): void {
		const x = this.plot.series[i];
		if (only)
			this.hidden = new Set(this.plot.series.filter(y => y !== x));
		else if (!this.hidden.delete(x) && this.shown().length > 1)
			this.hidden.add(x);
		this.element.querySelectorAll('.legend button').forEach((b, k) =>
			b.setAttribute('aria-pressed', String(!this.hidden.has(this.plot.series[k]))));
		this.draw();
	}

	private leftMargin(y: Axis, width: number): number {
		if (!y.rows)
			return Math.max(34, ...ticksOf(y, 5).map(t => textWidth(t.text) + 12));
		return width < 560 ? 8 : Math.min(width * 0.36, Math.max(...y.rows.map(r => textWidth(r))) + 14);
	}

	draw(): void {
		const p = this.plot, narrow = this.width < 560, rows = p.y.rows;
		const x = this.range ? { ...p.x, low: this.range[0], high: this.range[1] } : p.x;
		const height = p.height ?? (rows ? 46 + rows.length * (narrow ? 40 : rows.length < 7 ? 34 : 26) : narrow ? 260 : 320);
		const left = this.leftMargin(p.y, this.width), right = rows ? 22 : 18, top = rows ? 8 : 28, bottom = 42;
		const svg = this.clear(height), layer = s('g', {});
		const d = this.drawing = new Drawing(svg, layer, x, p.y, left, top, this.width - left - right, height - top - bottom);
		this.grid(d, narrow);
		const id = `clip${Chart.number++}`;
		svg.append(s('clipPath', { id }, s('rect', { x: left - 6, y: top - 16, width: d.width + 12 + right - 8, height: d.height + 22 })),
			layer);
		layer.setAttribute('clip-path', `url(#${id})`);
		p.under?.(d);
		for (const one of this.shown())
			one.draw(d);
		p.over?.(d);
		this.back!.hidden = !this.range;
		this.point(null);
	}

	private static number = 0;

	private grid(d: Drawing, narrow: boolean): void {
		const { plot: p, svg } = this, bottom = d.top + d.height;
		const line = (x1: number, y1: number, x2: number, y2: number, kind: string): void => {
			svg.append(s('line', { class: kind, x1: x1.toFixed(1), y1: y1.toFixed(1), x2: x2.toFixed(1), y2: y2.toFixed(1) }));
		};
		for (const t of ticksOf(d.x_axis, Math.max(2, d.width / 85))) {
			const at = d.x(t.at);
			line(at, d.top, at, bottom, 'grid');
			d.label(t.text, Math.min(at, this.width - textWidth(t.text) / 2), bottom + 16, 'middle', 'tick', true);
		}
		d.label(p.x.label, d.left + d.width / 2, bottom + 34, 'middle', 'axis', true);
		if (p.y.rows) {
			p.y.rows.forEach((r, i) => {
				const most = narrow ? this.width - 20 : d.left - 8;
				let text = r;
				while (textWidth(text) > most && text.length > 4)
					text = brief(text, text.length - 2);
				if (narrow)
					d.label(text, d.left + 4, d.y(i) + 13, 'start', 'row', true);
				else
					d.label(text, d.left - 8, d.y(i + 0.5) + 4, 'end', 'row', true);
				if (i)
					line(narrow ? d.left : 4, d.y(i), d.left + d.width, d.y(i), 'grid');
			});
		} else {
			for (const t of ticksOf(p.y, Math.max(2, d.height / 52))) {
				const at = d.y(t.at);
				if (at < d.top - 1 || at > bottom + 1)
					continue;
				line(d.left, at, d.left + d.width, at, 'grid');
				d.label(t.text, d.left - 7, at + 4, 'end', 'tick', true);
			}
			d.label(p.y.label, 2, d.top - 15, 'start', 'axis', true);
		}
		line(d.left, bottom, d.left + d.width, bottom, 'base');
		if (p.y.rows)
			line(d.left, d.top, d.left, bottom, 'base');
	}

	/** In a row: where its marks stand, below its name on a narrow screen. */
	static rowAt(d: Drawing, i: number, share = 0.5): number {
		const narrow = Number(d.svg.dataset.width) < 560;
		return d.y(i) + (d.y(i + 1) - d.y(i)) * (narrow ? 0.45 + share * 0.5 : share);
	}

	// ---- the pointer, and the keys that take its place

	private xOf(e: PointerEvent): number {
		const d = this.drawing!, box = this.svg.getBoundingClientRect();
		return inverse(d.x_axis, Math.max(0, Math.min(1, (e.clientX - box.left - d.left) / d.width)));
	}

	private pointed(e: PointerEvent): void {
		const d = this.drawing;
		if (!d)
			return;
		if (this.drag) {
			const a = d.x(this.drag.from), b = d.x(this.xOf(e));
			this.drag.rect.setAttribute('x', String(Math.min(a, b)));
			this.drag.rect.setAttribute('width', String(Math.abs(a - b)));
			return;
		}
		const box = this.svg.getBoundingClientRect();
		this.point(this.plot.byRow ? Math.floor(inverse(d.y_axis, (e.clientY - box.top - d.top) / d.height)) : this.xOf(e));
	}

	private press(e: PointerEvent): void {
		if (e.button || e.pointerType === 'touch' || !this.drawing)
			return;
		const d = this.drawing, rect = s('rect', { class: 'select', y: d.top, height: d.height, width: 0 });
		this.svg.append(rect);
		this.drag = { from: this.xOf(e), rect };
		this.svg.setPointerCapture(e.pointerId);
	}

	private release(e: PointerEvent): void {
		const drag = this.drag, to = drag ? this.xOf(e) : 0;
		this.cancel();
		if (drag && Math.abs(this.drawing!.x(drag.from) - this.drawing!.x(to)) > 8)
			this.zoom([Math.min(drag.from, to), Math.max(drag.from, to)]);
	}

	private cancel(): void {
		this.drag?.rect.remove();
		this.drag = null;
	}

	private zoom(range: [number, number] | null): void {
		this.range = range;
		this.draw();
	}

	private key(e: KeyboardEvent): void {
		const d = this.drawing, xs = this.positions();
		if (!d || isModified(e))
			return;
		const step = arrowStep(e, this.plot.byRow);
		if (step && xs.length) {
			const i = this.at === null ? (step > 0 ? 0 : xs.length - 1) : xs.indexOf(this.at) + step;
			this.point(xs[Math.max(0, Math.min(xs.length - 1, i))]);
		} else if (e.key === '+' || e.key === '-') {
			const a = position(d.x_axis, this.plot.byRow ? inverse(d.x_axis, 0.5) : this.at ?? inverse(d.x_axis, 0.5));
			const half = e.key === '+' ? 0.25 : 1, axis = this.plot.x;
			this.zoom([Math.max(axis.low, inverse(d.x_axis, a - half)), Math.min(axis.high, inverse(d.x_axis, a + half))]);
		} else if (e.key === '0') {
			this.zoom(null);
		} else if (e.key === 'Escape') {
			this.point(null);
		} else {
			return;
		}
		e.preventDefault();
	}

	/** Where there is something to say, ascending. */
	private positions(): number[] {
		const d = this.drawing!, by = this.plot.byRow;
		return [...new Set(this.shown().flatMap(x => x.points.filter(p => d.sees(p.x)).map(p => by ? Math.floor(p.y) : p.x)))].sort((a, b) => a - b);
	}

	private point(v: number | null): void {
		this.hide();
		this.at = null;
		const xs = v === null || !this.drawing ? [] : this.positions(), d = this.drawing!;
		if (!xs.length)
			return;
		const where = (x: number): number => this.plot.byRow ? x : position(d.x_axis, x);
		const at = xs.reduce((a, b) => Math.abs(where(b) - where(v!)) < Math.abs(where(a) - where(v!)) ? b : a);
		this.at = at;
		this.say(d, at);
	}

	private say(d: Drawing, at: number): void {
		const near = (x: number): boolean => Math.abs(position(d.x_axis, x) - position(d.x_axis, at)) < 1e-9;
		const said = this.shown().flatMap(x => x.points.filter(p => this.plot.byRow ? Math.floor(p.y) === at : near(p.x)).map(p => ({ x, p })));
		const place = this.plot.byRow ? d.x(said[0].p.x) : d.x(at);
		if (!this.plot.byRow)
			this.svg.append(s('line', { class: 'cursor', x1: place, x2: place, y1: d.top, y2: d.top + d.height }));
		for (const { p } of said)
			this.svg.append(s('circle', { class: 'cursor', cx: d.x(p.x), cy: this.plot.byRow ? Chart.rowAt(d, at, p.y - at) : d.y(p.y), r: 5 }));
		this.tell(said.slice(0, 12).map(({ x, p }) => h('p', {}, h('i', { class: x.elsewhere ? 'key' : `key ${colourClass(x.colour)}` }), p.text)),
			place, this.plot.byRow ? d.y(at + 1) : LINE, 14);
	}
}
