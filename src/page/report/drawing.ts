// SPDX-License-Identifier: BSD-2-Clause
// What figures are drawn with: positions on axes, labels, marks. No label is drawn over another one: the later one is
// left out.
import { s } from '../components/dom';
import { Axis, position } from './scale';

const COLOURS = 8;
const FONT = '11.5px system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif';
const pen = document.createElement('canvas').getContext('2d')!;

export function textWidth(text: string): number {
	pen.font = FONT;
	return pen.measureText(text).width * 1.03;
}

interface Box { x0: number; y0: number; x1: number; y1: number }

/** What series draw on; positions in pixels. */
export class Drawing {
	private boxes: Box[] = [];
	constructor(readonly svg: SVGSVGElement, readonly layer: SVGGElement, readonly x_axis: Axis, readonly y_axis: Axis,
		readonly left: number, readonly top: number, readonly width: number, readonly height: number) {}

	x(v: number): number {
		return this.left + Math.max(-0.5, Math.min(1.5, position(this.x_axis, v))) * this.width;
	}

	y(v: number): number {
		const share = Math.max(-0.5, Math.min(1.5, position(this.y_axis, v)));
		return this.top + (this.y_axis.rows ? share : 1 - share) * this.height;
	}

	sees(x: number): boolean {
		return x >= this.x_axis.low && x <= this.x_axis.high;
	}

	add<K extends keyof SVGElementTagNameMap>(tag: K, a: Record<string, string | number>, ...more: (Node | string)[]): SVGElementTagNameMap[K] {
		const e = s(tag, a, ...more);
		this.layer.append(e);
		return e;
	}

	/** A label, unless it covers another one or leaves the figure. */
	label(text: string, x: number, y: number, anchor: 'start' | 'middle' | 'end' = 'start', kind = 'tick', outside = false): boolean {
		const w = textWidth(text), x0 = anchor === 'start' ? x : anchor === 'middle' ? x - w / 2 : x - w;
		const b = { x0: x0 - 3, y0: y - 11, x1: x0 + w + 3, y1: y + 4 };
		if (b.x0 < -3 || b.x1 > Number(this.svg.dataset.width) + 3 ||
			this.boxes.some(o => b.x0 < o.x1 && o.x0 < b.x1 && b.y0 < o.y1 && o.y0 < b.y1))
			return false;
		this.boxes.push(b);
		const e = s('text', { class: kind, x: x.toFixed(1), y: y.toFixed(1), 'text-anchor': anchor }, text);
		(outside ? this.svg : this.layer).append(e);
		return true;
	}

	path(points: [number, number][], attributes: Record<string, string | number>): void {
		const d = points.map(([x, y], i) => `${i ? 'L' : 'M'}${x.toFixed(1)} ${y.toFixed(1)}`).join('');
		if (points.length)
			this.add('path', { d, ...attributes });
	}
}

export function colourClass(i: number): string {
	return `s${i % COLOURS}`;
}

/** A mark that tells series apart without colours. */
export function marker(d: Drawing, shape: number, x: number, y: number, kind: string): void {
	const r = 3.6;
	if (shape % 4 === 0)
		d.add('circle', { class: kind, cx: x, cy: y, r });
	else if (shape % 4 === 1)
		d.add('rect', { class: kind, x: x - 3.3, y: y - 3.3, width: 6.6, height: 6.6 });
	else if (shape % 4 === 2)
		d.add('path', { class: kind, d: `M${x} ${y - 4.4}l4.4 7.6h-8.8z` });
	else
		d.add('path', { class: kind, d: `M${x} ${y - 4.8}l4.8 4.8l-4.8 4.8l-4.8 -4.8z` });
}
