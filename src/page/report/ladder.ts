// SPDX-License-Identifier: BSD-2-Clause
// The packets of a flow over time: the lifelines of requester and responder, an arrow for each packet, pending
// periods shaded. Either each packet has a row, or time is to scale and texts without room are left out.
import { h, s, seconds } from '../components/dom';
import { Drawing, textWidth } from './drawing';
import { arrowStep, Drawn, isModified } from './drawn';
import { chooser } from './parts';
import { sentence } from './words';

export interface Packet {
	number: number; at_ns: number; answer: boolean; label: string; notes: string[]; lost: boolean; pending: boolean; silence_ns: number;
	/** No packet: it happens at one end, that of answers if `answer`. */
	own?: boolean;
	/** From here on pages are missing at the requester, at the responder. */
	missing?: [boolean, boolean];
}

/** How a diagram is shown. */
export interface Look {
	/** The names of the lifelines and what stands below them. */
	roles: [string, string]; ends: [string, string];
	scaled: boolean;
	/** Only so many packets at first. */
	first?: number;
}

const TOP = 46, LABEL = 16, SLOPE = 8, NOTE = 15, OWN = 4, BETWEEN = 6, BREAK = 30, SCALED = 620, WIDTH_MAX = 760, DRAG_LEAST = 12;

export class Ladder extends Drawn {
	private range: [number, number] | null = null;
	private tops: number[] = [];
	private at = -1;
	private from: number | null = null;

	constructor(what: string, private all: Packet[], private how: Look) {
		super(what, 'map ladder', h('button', { type: 'button', class: 'small', hidden: true, click: () => this.look(null) }, 'All packets'), WIDTH_MAX);
		if (how.first && all.length > how.first)
			this.range = [0, how.first - 1];
		this.on({
			pointermove: e => this.told(this.near(this.y(e))), pointerleave: () => this.told(-1), pointerdown: e => this.from = e.pointerType === 'touch' ? null : this.y(e),
			pointerup: e => this.release(this.y(e)), dblclick: () => this.look(null), keydown: e => this.key(e), blur: () => this.told(-1),
		});
		this.svg.setAttribute('aria-label', `${what}. ${this.description()}`);
	}

	/** For those who do not see it: each packet that something is noted of, and each silence. */
	private description(): string {
		return this.all.flatMap(p => [p.silence_ns ? `${seconds(p.silence_ns / 1e9)} without a packet.` : '',
			p.notes.length || p.own ? `${[`${named(p)} at ${when(p)} s`, ...p.notes].join(', ')}.` : '']).filter(t => t).join(' ');
	}

	private shown(): Packet[] {
		return this.range ? this.all.slice(this.range[0], this.range[1] + 1) : this.all;
	}

	/** Where the arrows begin, and the height of all. */
	private place(shown: Packet[]): number {
		if (this.how.scaled && shown.length > 1) {
			const begin = shown[0].at_ns, span = shown[shown.length - 1].at_ns - begin || 1;
			this.tops = shown.map(p => TOP + LABEL + (p.at_ns - begin) / span * SCALED);
			return TOP + LABEL + SCALED + 50;
		}
		let y = TOP;
		this.tops = shown.map(p => {
			const top = y + (p.silence_ns ? BREAK : 0) + LABEL;
			y = top + (p.own ? OWN : SLOPE + p.notes.length * NOTE) + BETWEEN;
			return top;
		});
		return y + 6;
	}

	draw(): void {
		const shown = this.shown(), height = this.place(shown), left = 92, right = this.width - 62, d = this.begin(height);
		const short = (text: string): string => textWidth(text) < this.width / 2 - 8 ? text : text.split(', ')[0];
		d.label(this.how.roles[0], 4, 14, 'start', 'row');
		d.label(this.how.roles[1], this.width - 4, 14, 'end', 'row');
		d.label(short(this.how.ends[0]), 4, 30, 'start', 'tick');
		d.label(short(this.how.ends[1]), this.width - 4, 30, 'end', 'tick');
		shown.forEach((p, i) => {
			if (p.pending)
				d.add('rect', { class: 'band s1 pending', x: left, y: this.tops[i], width: right - left, height: Math.max(2, (this.tops[i + 1] ?? height - 6) - this.tops[i]) });
		});
		for (const x of [left, right])
			d.add('path', { class: 'base', fill: 'none', d: `M${x} ${TOP - 8}` + (this.how.scaled ? '' : shown.map((p, i) => p.silence_ns ? `V${this.tops[i] - LABEL - BREAK + 6}l4 2l-8 3M${x - 4} ${this.tops[i] - LABEL - BREAK + 19}l8 3l-4 2` : '').join('')) + `V${height - 4}` });
		this.bars(d, shown, height - 4, [left, right]);
		shown.forEach((p, i) => this.packet(d, p, this.tops[i], left, right));
		this.back!.hidden = !this.range;
		this.told(-1);
	}

	/** Where pages are missing a lifeline is thick. */
	private bars(d: Drawing, shown: Packet[], end: number, x: number[]): void {
		x.forEach((at, side) => shown.forEach((p, i) => {
			if (p.missing?.[side])
				d.add('path', { class: 'missing way jam', 'stroke-width': 5, d: `M${at} ${this.tops[i]}V${this.tops[i + 1] ?? end}` });
		}));
	}

	private packet(d: Drawing, p: Packet, y: number, left: number, right: number): void {
		if (p.own)
			return this.event(d, p, y, left, right);
		const middle = (left + right) / 2, from = p.answer ? right : left, to = p.answer ? left : right, back = p.answer ? 7 : -7, end = y + SLOPE;
		if (p.silence_ns && !this.how.scaled)
			d.label(`${seconds(p.silence_ns / 1e9)} without a packet`, middle, y - LABEL - BREAK + 18, 'middle', 'tick');
		const lost = left + (right - left) * 0.75;
		d.add('path', p.lost ? { class: 'packet gone way jam', 'stroke-width': 1.6, d: `M${from} ${y}L${lost} ${y + 6}m-4 -4l8 8m0 -8l-8 8` } :
			{ class: `packet thin ${p.answer ? 's2' : 's0'}`, d: `M${from} ${y}L${to} ${end}m${back} -4.5L${to} ${end}l${back} 3.5` });
		d.label(p.label, middle, y - 3, 'middle', 'row');
		d.label(when(p), left - 7, y + 3, 'end', 'tick');
		d.label(`#${p.number}`, this.width - 4, y + 3, 'end', 'tick');
		p.notes.forEach((n, k) => d.label(n, middle, y + SLOPE + (k + 1) * NOTE - 2, 'middle', n === 'LOST' ? 'node-name' : 'tick'));
	}

	private event(d: Drawing, p: Packet, y: number, left: number, right: number): void {
		const x = p.answer ? right : left, text = [p.label, ...p.notes].join(': ');
		d.add('circle', { class: 'packet whole', cx: x, cy: y, r: 3.5 });
		d.label(text, p.answer ? x - 8 : x + 8, y + 4, p.answer ? 'end' : 'start', 'row');
		d.label(when(p), left - 7, y + 3, 'end', 'tick');
	}

	// ---- the pointer and the keys

	private y(e: Event): number {
		return (e as PointerEvent).clientY - this.svg.getBoundingClientRect().top;
	}

	private near(y: number): number {
		return this.tops.reduce((best, t, i) => Math.abs(t - y) < Math.abs((this.tops[best] ?? Infinity) - y) ? i : best, 0);
	}

	private release(y: number): void {
		const from = this.from;
		this.from = null;
		if (from === null || Math.abs(from - y) < DRAG_LEAST)
			return;
		const inside = this.tops.map((t, i) => [t, i]).filter(([t]) => t >= Math.min(from, y) - LABEL && t <= Math.max(from, y)).map(([, i]) => i + (this.range?.[0] ?? 0));
		if (inside.length > 1)
			this.look([inside[0], inside[inside.length - 1]]);
	}

	private look(range: [number, number] | null): void {
		this.range = range;
		this.draw();
	}

	private told(i: number): void {
		const shown = this.shown(), p = shown[i], before = shown[i - 1];
		this.hide();
		this.at = p ? i : -1;
		if (!p)
			return;
		this.svg.append(s('path', { class: 'cursor', d: `M0 ${this.tops[i] + 4}H${this.width}`, 'stroke-opacity': 0.3 }));
		this.tell([named(p), `${p.own ? 'at' : 'from'} the ${this.how.roles[p.answer ? 1 : 0]}, at ${when(p)} s` +
			(before ? `, ${seconds((p.at_ns - before.at_ns) / 1e9)} behind ${before.own ? `"${before.label}"` : `packet ${before.number}`}` : ''), p.pending ? 'within a pending period' : '', ...p.notes].filter(t => t), 80, this.tops[i] + 18);
	}

	private key(e: KeyboardEvent): void {
		const step = arrowStep(e), count = this.shown().length, begin = this.range?.[0] ?? 0;
		if (isModified(e))
			return;
		if (step)
			this.told(Math.max(0, Math.min(count - 1, this.at + step)));
		else if (e.key === '+' && count > 3)
			this.look([begin + Math.floor(count / 4), begin + Math.ceil(count * 3 / 4)]);
		else if (e.key === '0' || e.key === '-')
			this.look(null);
		else if (e.key === 'Escape')
			this.told(-1);
		else
			return;
		e.preventDefault();
	}
}

/** With a choice between rows and time to scale, and `text` below. */
export function ladderFigure(what: string, packets: Packet[], how: Omit<Look, 'scaled'>, text: string): HTMLElement {
	return h('figure', {}, h('figcaption', {}, what),
		chooser([{ label: 'Distances', options: ['a row for each packet', 'time to scale'] }], ([i]) => new Ladder(what, packets, { ...how, scaled: i === 1 }).element),
		h('p', { class: 'muted' }, `${text} Drag for a closer look, double-click for all.`));
}

function named(p: Packet): string {
	return p.own ? sentence(p.label) : `Packet ${p.number}: ${p.label}`;
}

function when(p: Packet): string {
	return (p.at_ns / 1e9).toFixed(6);
}
