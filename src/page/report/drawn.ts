// SPDX-License-Identifier: BSD-2-Clause
// What figures have in common: an SVG as wide as its place, a box that tells what lies under the pointer or the
// arrow keys, and a row of buttons below.
import { h, s } from '../components/dom';
import { Drawing } from './drawing';
import { LegendEntry, saveButtons } from './save';
import type { Axis } from './scale';

const PLAIN: Axis = { label: '', unit: '', log: false, low: 0, high: 1 };

export abstract class Drawn {
	readonly element: HTMLElement;
	protected svg: SVGSVGElement;
	protected frame = h('div', { class: 'frame' });
	protected tip = h('div', { class: 'tip', role: 'status', hidden: true });
	protected width = 0;

	/** `kind`: further classes of the figure; `back`: the button at the left below it. */
	constructor(what: string, kind: string, protected back: HTMLElement | null, private most = Infinity) {
		this.svg = s('svg', { class: `plot ${kind}`.trim(), tabindex: 0, role: 'img' });
		this.frame.append(this.svg, this.tip);
		this.element = h('div', { class: 'chart' }, this.frame, h('div', { class: 'under' }, back, h('span', { class: 'push' }),
			...saveButtons(what, () => this.svg, () => this.legendEntries())));
		new ResizeObserver(() => {
			const w = Math.min(this.most, Math.floor(this.frame.getBoundingClientRect().width));
			if (w <= 0 || w === this.width)
				return;
			this.width = w;
			this.resized();
		}).observe(this.frame);
	}

	abstract draw(): void;

	/** What a saved figure has as its legend. */
	protected legendEntries(): LegendEntry[] {
		return [];
	}

	/** `this.width` is another one. */
	protected resized(): void {
		this.draw();
	}

	protected on(listeners: Record<string, (e: any) => void>): void {
		for (const [name, f] of Object.entries(listeners))
			this.svg.addEventListener(name, f);
	}

	/** Empties the figure; it has this height from now on. */
	protected clear(height: number): SVGSVGElement {
		const svg = this.svg;
		svg.replaceChildren();
		svg.setAttribute('viewBox', `0 0 ${this.width} ${height}`);
		svg.dataset.width = String(this.width);
		svg.style.height = `${height}px`;
		return svg;
	}

	/** Empties it, for a drawing in pixels. */
	protected begin(height: number): Drawing {
		const layer = s('g', {});
		this.clear(height).append(layer);
		return new Drawing(this.svg, layer, PLAIN, PLAIN, 0, 0, this.width, height);
	}

	/** Tells lines beside a place, before it where there is no room behind it. */
	protected tell(lines: (string | Node)[], x: number, y: number, gap = 16): void {
		this.tip.replaceChildren(...lines.map(t => typeof t === 'string' ? h('p', {}, t) : t));
		this.tip.hidden = false;
		const w = this.tip.offsetWidth;
		this.tip.style.left = `${Math.max(0, x + gap + w < this.width ? x + gap : x - w - gap)}px`;
		this.tip.style.top = `${Math.max(0, y)}px`;
	}

	protected hide(): void {
		this.svg.querySelectorAll('.cursor').forEach(e => e.remove());
		this.tip.hidden = true;
	}
}

/** 1 or -1: the next or the one before, by an arrow key. */
export function arrowStep(e: KeyboardEvent, vertical = true): number {
	return e.key === 'ArrowRight' || vertical && e.key === 'ArrowDown' ? 1 : e.key === 'ArrowLeft' || vertical && e.key === 'ArrowUp' ? -1 : 0;
}

/** Not meant for the figure. */
export function isModified(e: KeyboardEvent): boolean {
	return e.ctrlKey || e.metaKey || e.altKey;
}
