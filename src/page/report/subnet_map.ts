// SPDX-License-Identifier: BSD-2-Clause
// The topology as a figure. Each cable has two halves: the half at a node shows what that node sends. The
// colour and the width of a half are a value of 0 to 1, or a state. The pointer or the arrow keys tell the values of a cable; a
// click on a node shows its cables alone.
import { count, s } from '../components/dom';
import { Drawing } from './drawing';
import { arrowStep, Drawn, isModified } from './drawn';
import { Line, layoutOf, Layout, Spot } from './subnet_layout';
import { Cable, Subnet, Way } from './subnet_data';
import { percent } from './words';

export interface MapView {
	/** Unique within the page. */
	what: string; description: string;
	/** 0 to 1; NaN: not drawn in a colour. */
	value(w: Way): number;
	/** What the pointer is told of a direction. */
	say(w: Way): string;
	/** A scale below the figure; without it values are 0 or 1. */
	scale: string;
	/** Ends of ports that get a ring. */
	roots?: () => Set<string>;
}

const STEPS = [0.0005, 0.25, 0.5, 0.75, 0.9], STEP_NAMES = ['none', 'below 25 %', '50 %', '75 %', '90 %', 'up to 100 %'];
const WIDTHS = [1, 1.6, 2.2, 2.8, 3.4, 4];
const NEAR = 14, SAMPLES = [0.08, 0.18, 0.28, 0.38, 0.48];
const SCALE = 46;
/** Up to so many cables are drawn in full width. */
const WIDE = 250;

function stepOf(v: number): number {
	return Number.isFinite(v) ? STEPS.filter(x => v >= x).length : 0;
}

/** The point at a share of the way along a curve. */
function along(l: Line, t: number): [number, number] {
	const u = 1 - t;
	return [u * u * l.from.x + 2 * u * t * l.cx + t * t * l.to.x, u * u * l.from.y + 2 * u * t * l.cy + t * t * l.to.y];
}

export class SubnetMap extends Drawn {
	private layout: Layout | null = null;
	private focus: Spot | null = null;
	private at = -1;
	private order: Line[] = [];

	constructor(private subnet: Subnet, private view: MapView) {
		super(view.what, 'map', null);
		this.on({ pointermove: e => this.pointed(e), pointerleave: () => this.hide(), click: e => this.pick(e), keydown: e => this.key(e), blur: () => this.hide() });
	}

	/** Other values, the same places. */
	show(view: MapView): void {
		this.view = view;
		this.draw();
	}

	protected resized(): void {
		this.layout = layoutOf(this.subnet, this.width);
		this.focus = null;
		this.draw();
	}

	private top(c: Cable): number {
		return Math.max(...c.ways.map(w => this.view.value(w) || 0), c.up ? 0 : 0.5);
	}

	draw(): void {
		const l = this.layout;
		if (!l)
			return;
		const d = this.begin(l.height + (this.view.scale ? SCALE : 8));
		this.svg.setAttribute('aria-label', `${this.view.what}. ${this.view.description}`);
		this.order = [...l.lines].sort((a, b) => this.top(a.cable) - this.top(b.cable));
		this.order.forEach(line => this.line(d, line));
		const roots = this.view.roots?.() ?? new Set<string>();
		l.spots.forEach(x => this.spot(d, x, roots));
		[...l.spots].sort((a, b) => Number(a.below) - Number(b.below)).forEach(x => this.name(d, x));
		if (this.view.scale)
			this.scale(d, l.height);
		this.hide();
	}

	private away(line: Line): boolean {
		return !!this.focus && line.from !== this.focus && line.to !== this.focus;
	}

	private line(d: Drawing, line: Line): void {
		const [mx, my] = along(line, 0.5), faint = this.away(line) ? ' away' : '';
		for (const [spot, node] of [[line.from, line.cable.a], [line.to, line.cable.b]] as const) {
			const way = line.cable.ways.find(w => w.from === node), step = way ? stepOf(this.view.value(way)) : 0;
			const kind = !line.cable.up ? 'cut' : this.view.scale || !step ? `w${step}` : 'jam';
			d.add('path', { class: `way ${kind}${faint}`, 'stroke-width': (WIDTHS[step] * Math.max(0.3, Math.min(1, Math.sqrt(WIDE / this.order.length)))).toFixed(2),
				d: `M${spot.x.toFixed(1)} ${spot.y.toFixed(1)}Q${((spot.x + line.cx) / 2).toFixed(1)} ${((spot.y + line.cy) / 2).toFixed(1)} ${mx.toFixed(1)} ${my.toFixed(1)}` });
		}
	}

	private spot(d: Drawing, x: Spot, roots: Set<string>): void {
		const names = x.node ? [x.node.name] : x.hosts.map(n => n.name);
		if (x.below)
			d.add('circle', { class: 'host', cx: x.x.toFixed(1), cy: x.y.toFixed(1), r: x.r });
		else
			d.add('rect', { class: 'switch', x: (x.x - x.r * 1.3).toFixed(1), y: (x.y - x.r * 0.9).toFixed(1), width: (x.r * 2.6).toFixed(1), height: (x.r * 1.8).toFixed(1), rx: 2 });
		if (names.some(n => roots.has(n)))
			d.add('circle', { class: 'root', cx: x.x.toFixed(1), cy: x.y.toFixed(1), r: x.r + 6 });
	}

	private name(d: Drawing, x: Spot): void {
		const text = x.node ? x.node.name : `${x.hosts.length} hosts`, kind = this.layout!.kind;
		if (!x.below && kind === 'levels' && this.layout!.spots.some(o => o.below && o.x - x.x < 60 && o.x >= x.x - 60 && o.y > x.y && o.y < x.y + 60))
			d.label(text, x.x, x.y + x.r + 13, 'middle', 'node-name') || d.label(text.replace(/^\D+/, ''), x.x, x.y + x.r + 13, 'middle', 'node-name');
		else if (!x.below && (kind === 'levels' || kind === 'row'))
			d.label(text, x.x, x.y - x.r - 6, 'middle', 'node-name');
		else if (!x.below && kind === 'grid')
			d.label(text, x.x - 2, x.y - x.r - 5, 'end', 'node-name') || d.label(text, x.x, x.y - x.r - 5, 'middle', 'node-name');
		else if (kind === 'circle' && x.below)
			return;
		else if (kind === 'circle')
			this.outside(d, x, text);
		else if (kind === 'ring' && !x.below && Math.abs(x.y - this.layout!.height / 2) < 20)
			d.label(text, x.x, x.y - x.r - 8, 'middle', 'node-name');
		else if (kind === 'ring')
			d.label(text, x.x + (x.x < this.width / 2 - 2 ? -1 : 1) * (x.r + 8), x.y + 4, x.x < this.width / 2 - 2 ? 'end' : 'start', x.below ? 'tick' : 'node-name');
		else
			d.label(text, x.x, x.y + x.r + 14, 'middle', 'tick') || d.label(text.replace(/\D+/g, ''), x.x, x.y + x.r + 14, 'middle', 'tick');
	}

	/** Of a node on a circle: beyond its hosts. */
	private outside(d: Drawing, x: Spot, text: string): void {
		const l = this.layout!, dx = x.x - this.width / 2, dy = x.y - l.height / 2, far = Math.hypot(dx, dy) || 1;
		const px = x.x + dx / far * (l.reach + 8), py = x.y + dy / far * (l.reach + 8);
		d.label(text, px, py + 4, Math.abs(dx) < far * 0.15 ? 'middle' : dx < 0 ? 'end' : 'start', 'node-name');
	}

	private scale(d: Drawing, y: number): void {
		const part = Math.min(110, (this.width - 16) / STEP_NAMES.length);
		d.label(this.view.scale, 8, y + 12, 'start', 'axis', true);
		STEP_NAMES.forEach((name, i) => {
			d.add('path', { class: `way w${i}`, 'stroke-width': WIDTHS[i] + 1, d: `M${10 + i * part} ${y + 22}h${part - 8}` });
			d.label(part < 80 ? name.replace('below ', '').replace('up to ', '') : name, 8 + i * part, y + 39, 'start', 'tick', true);
		});
	}

	// ---- the pointer and the keys

	private place(e: PointerEvent): [number, number] {
		const box = this.svg.getBoundingClientRect();
		return [e.clientX - box.left, e.clientY - box.top];
	}

	private spotAt(x: number, y: number): Spot | undefined {
		return this.layout?.spots.find(p => Math.hypot(p.x - x, p.y - y) < p.r + 4);
	}

	private lineAt(x: number, y: number): Line | null {
		let best: Line | null = null, least = NEAR;
		for (const l of this.order) {
			if (this.away(l))
				continue;
			for (const t of [...SAMPLES, ...SAMPLES.map(v => 1 - v)]) {
				const [px, py] = along(l, t), far = Math.hypot(px - x, py - y);
				if (far <= least)
					[best, least] = [l, far];
			}
		}
		return best;
	}

	private pointed(e: PointerEvent): void {
		const [x, y] = this.place(e), spot = this.spotAt(x, y), line = spot ? null : this.lineAt(x, y);
		this.hide();
		if (spot)
			this.tell(this.ofSpot(spot), spot.x, spot.y + 12);
		else if (line)
			this.ofLine(line);
	}

	private ofSpot(x: Spot): string[] {
		if (!x.node)
			return [`${x.hosts.length} hosts: ${x.hosts[0].name} to ${x.hosts[x.hosts.length - 1].name}`];
		const n = x.node, ways = this.subnet.ways.filter(w => w.from === n.name), most = ways.reduce<Way | null>((a, w) => a && !(this.view.value(w) > this.view.value(a)) ? a : w, null);
		return [n.name + (n.description && n.description !== n.name ? ` (${n.description})` : ''), `${count(n.cables.length)} ${n.cables.length === 1 ? 'cable' : 'cables'}`,
			most && this.view.value(most) > 0 ? `most: ${this.view.say(most)}` : ''].filter(t => t);
	}

	private ofLine(l: Line): void {
		const [x, y] = along(l, 0.5);
		this.svg.append(s('path', { class: 'cursor', 'stroke-width': 1.5, d: `M${l.from.x} ${l.from.y}Q${l.cx} ${l.cy} ${l.to.x} ${l.to.y}` }));
		this.tell([...l.cable.up ? [] : ['This cable is down.'], ...l.cable.ways.map(w => this.view.say(w))], x, y + 12);
	}

	private pick(e: PointerEvent): void {
		const spot = this.spotAt(...this.place(e));
		this.focus = spot && spot !== this.focus ? spot : null;
		this.draw();
	}

	private key(e: KeyboardEvent): void {
		const step = arrowStep(e);
		if (isModified(e) || (!step && e.key !== 'Escape'))
			return;
		e.preventDefault();
		if (!step) {
			this.focus = null;
			this.draw();
			return;
		}
		// The busiest cable first.
		const all = this.order.length;
		this.at = Math.max(0, Math.min(all - 1, this.at + step));
		this.hide();
		if (all)
			this.ofLine(this.order[all - 1 - this.at]);
	}
}

export function share(v: number): string {
	return Number.isFinite(v) ? percent(Math.round(v * 1000) / 10) : 'not known';
}
