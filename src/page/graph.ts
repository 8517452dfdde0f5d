// SPDX-License-Identifier: BSD-2-Clause
// Nodes and paths as they are connected, with what moves on the arrows.
import { byId, count, rate, s, seconds, setText } from './components/dom';
import { iconPath, look, Look } from './components/icons';
import { Arrow, Box, layOut, Laid, Point } from './layout';
import { GatewayNode, GatewayPath, model } from './model';

const NODE = { width: 196, height: 82 };
const PATH = { width: 136, height: 58 };

interface Item {
	group: SVGGElement;
	icon: SVGPathElement;
	lines: SVGTextElement[];
	update(): void;
}

export interface Choice { kind: 'node' | 'path'; id: string }

let items: Item[] = [];
let arrows: { line: SVGPathElement; path: GatewayPath }[] = [];
let drawnShape = -1;
let drawnDown: boolean | null = null;
let chosen: Choice | null = null;
let onChoose: (c: Choice) => void = () => undefined;

const ruler = document.createElement('canvas').getContext('2d')!;

/** Cut in the middle to `room` pixels; the whole is in the title. */
function fit(text: string, room: number, font: string): string {
	ruler.font = `${font} ${getComputedStyle(document.body).fontFamily}`;
	if (ruler.measureText(text).width <= room)
		return text;
	for (let most = text.length - 1; most > 3; most--) {
		const head = Math.ceil(most * 0.6), cut = text.slice(0, head) + '…' + text.slice(text.length - most + head);
		if (ruler.measureText(cut).width <= room)
			return cut;
	}
	return text.slice(0, 3) + '…';
}

/** Lines of text in a box, with a shape before the first. */
function makeItem(choice: Choice, at: Point, size: { width: number; height: number }, rows: number[],
		  name: string): Item {
	const x = at.along - size.width / 2, y = at.across - size.height / 2;
	const lines = rows.map((dy, i) => s('text', { x: i ? 12 : 32, y: dy, class: `row${i}` }));
	const icon = iconPath('wait');
	icon.setAttribute('transform', `translate(11 ${rows[0] - 11.5}) scale(.85)`);
	const group = s('g', {
		class: `box ${choice.kind}`, transform: `translate(${x} ${y})`, role: 'button', tabindex: 0,
		'data-id': choice.id,
		click: () => onChoose(choice),
		keydown: ((e: KeyboardEvent) => {
			if (e.key !== 'Enter' && e.key !== ' ')
				return;
			e.preventDefault();
			onChoose(choice);
		}) as EventListener,
	},
		s('title', {}, name),
		s('rect', { width: size.width, height: size.height, rx: choice.kind === 'node' ? 8 : 29 }),
		icon, ...lines);
	return { group, icon, lines, update: () => undefined };
}

function show(item: Item, choice: Choice, l: Look, state: string, texts: string[], spoken: string,
	      losing: boolean): void {
	const mine = chosen?.kind === choice.kind && chosen.id === choice.id;
	const shape = iconPath(l.shape).getAttribute('d')!;

	item.group.setAttribute('class', `box ${choice.kind} ${l.tone}${losing ? ' losing' : ''}` +
		(mine ? ' chosen' : ''));
	item.group.setAttribute('data-state', state);
	item.group.setAttribute('aria-label', spoken);
	item.group.setAttribute('aria-pressed', String(mine));
	item.icon.setAttribute('d', shape);
	texts.forEach((t, i) => setText(item.lines[i], t));
}

function nodeItem(n: GatewayNode, at: Point): Item {
	const choice: Choice = { kind: 'node', id: n.name };
	const item = makeItem(choice, at, NODE, [25, 44, 65], n.name);

	item.update = () => {
		const now = model.node(n.name) ?? n, f = model.nodeFigures.get(n.name);
		const l = look(now.state), bad = (f?.losses ?? 0) > 0;
		const moves = [];
		if (now.stats.received)
			moves.push('in ' + rate(f?.received ?? null));
		if (now.stats.sent || now.stats.not_sent)
			moves.push('out ' + rate(f?.sent ?? null));
		if (f?.missed)
			moves.push(`${rate(f.missed)} left out`);
		const figures = bad ? `▲ ${rate(f!.losses)} ${f!.cause}` :
			moves.join('  ·  ') || 'nothing moves yet';
		show(item, choice, l, now.state, [
			fit(n.name, NODE.width - 44, '600 14px'), fit(`${n.type} · ${l.text}`, NODE.width - 24, '12px'),
			fit(figures, NODE.width - 22, bad ? '600 12px' : '12px')],
			`node ${n.name}, ${n.type}, ${l.text}, ${moves.join(', ')}` +
			(bad ? `, losses ${rate(f!.losses)} ${f!.cause}` : ''), bad);
	};
	return item;
}

function pathItem(p: GatewayPath, at: Point): Item {
	const choice: Choice = { kind: 'path', id: p.uuid };
	const item = makeItem(choice, at, PATH, [24, 43], p.name);

	item.update = () => {
		const now = model.paths.find(q => q.uuid === p.uuid) ?? p;
		const f = model.pathFigures.get(p.uuid), l = look(now.state);
		const bad = (f?.dropped ?? 0) > 0, moves = now.state === 'running';
		const first = moves ? rate(f?.samples ?? null) : l.text;
		const second = bad ? `▲ ${rate(f!.dropped)} lost` :
			f?.count ? `${seconds(f.p50)} · ${seconds(f.p99)}` : 'no latency yet';
		show(item, choice, l, now.state, [first, second],
			`path ${p.name}, ${l.text}, ${rate(f?.samples ?? null)}, latency half below ` +
			`${seconds(f?.p50 ?? 0)}, 99 of 100 below ${seconds(f?.p99 ?? 0)}` +
			(bad ? `, losses ${rate(f!.dropped)}` : '') + `, ${count(now.stats.dropped)} lost in all`, bad);
	};
	return item;
}

/** A curve through points, which leaves and arrives along the stream. */
function curve(points: Point[], down: boolean): string {
	const at = (along: number, across: number): string =>
		down ? `${across.toFixed(1)} ${along.toFixed(1)}` : `${along.toFixed(1)} ${across.toFixed(1)}`;
	let d = 'M' + at(points[0].along, points[0].across);
	for (let i = 1; i < points.length; i++) {
		const a = points[i - 1], b = points[i];
		const reach = Math.max(Math.abs(b.along - a.along) * 0.45, a.along > b.along ? 60 : 12);
		const mid = i + 1 < points.length, before = i > 1;
		const turn = a.along > b.along ? 1 : 1;
		d += `C${at(a.along + (before && a.along > b.along ? -reach : reach * turn), a.across)} ` +
			`${at(b.along - (mid && a.along > b.along ? -reach : reach), b.across)} ` +
			at(b.along, b.across);
	}
	return d;
}

function ends(laid: Laid, from: string, to: string, lanes: Point[], reach: (id: string) => number): Point[] {
	const a = laid.places.get(from)!, b = laid.places.get(to)!;

	return [{ along: a.along + reach(from), across: a.across }, ...lanes,
		{ along: b.along - reach(to) - 5, across: b.across }];
}

/** What is not connected lies apart, one below the other. */
function stack(boxes: Box[], links: Arrow[], down: boolean): Laid {
	const part = new Map(boxes.map(b => [b.id, b.id]));
	const root = (id: string): string => part.get(id) === id ? id : root(part.get(id)!);
	for (const l of links)
		part.set(root(l.from), root(l.to));
	const all: Laid = { places: new Map(), lanes: [], backward: [], length: 0, breadth: 0 };
	for (const r of new Set(boxes.map(b => root(b.id)))) {
		const mine = links.map((l, i) => ({ l, i })).filter(x => root(x.l.from) === r);
		const laid = layOut(boxes.filter(b => root(b.id) === r), mine.map(x => x.l), down ? 16 : 20, down ? 30 : 48);
		const along = down && all.length ? all.length + 34 : 0, across = !down && all.breadth ? all.breadth + 34 : 0;
		const move = (p: Point): Point => ({ along: p.along + along, across: p.across + across });
		for (const [id, p] of laid.places)
			all.places.set(id, move(p));
		mine.forEach((x, k) => {
			all.lanes[x.i] = laid.lanes[k].map(move);
			all.backward[x.i] = laid.backward[k];
		});
		all.length = Math.max(all.length, along + laid.length);
		all.breadth = Math.max(all.breadth, across + laid.breadth);
	}
	return all;
}

function draw(svg: SVGSVGElement, down: boolean): void {
	const long = (size: { width: number; height: number }): number => down ? size.height : size.width;
	const wide = (size: { width: number; height: number }): number => down ? size.width : size.height;
	const inUse = new Set(model.paths.flatMap(p => [...p.in, ...p.out]));
	const nodes = [...model.nodes.filter(n => inUse.has(n.name)),
		...model.nodes.filter(n => !inUse.has(n.name))];
	const boxes = [
		...nodes.map(n => ({ id: 'n' + n.name, length: long(NODE), breadth: wide(NODE) })),
		...model.paths.map(p => ({ id: 'p' + p.uuid, length: long(PATH), breadth: wide(PATH) })),
	];
	const links = model.paths.flatMap(p => [
		...p.in.map(n => ({ from: 'n' + n, to: 'p' + p.uuid, p })),
		...p.out.map(n => ({ from: 'p' + p.uuid, to: 'n' + n, p })),
	]).filter(l => boxes.some(b => b.id === l.from) && boxes.some(b => b.id === l.to));
	const laid = stack(boxes, links, down);
	const reach = (id: string): number => long(id[0] === 'n' ? NODE : PATH) / 2;
	const place = (id: string): Point => {
		const at = laid.places.get(id)!;
		return down ? { along: at.across, across: at.along } : at;
	};

	const width = (down ? laid.breadth : laid.length) + 24;
	const height = (down ? laid.length : laid.breadth) + 24;
	svg.setAttribute('viewBox', `-12 -12 ${width} ${height}`);
	svg.style.width = `${width}px`;
	svg.style.minWidth = `${0.74 * width}px`;
	arrows = links.map((l, i) => ({
		path: l.p,
		line: s('path', {
			class: 'arrow', 'marker-end': 'url(#tip)',
			d: curve(ends(laid, l.from, l.to, laid.lanes[i], reach), down),
		}),
	}));
	items = [...nodes.map(n => nodeItem(n, place('n' + n.name))),
		...model.paths.map(p => pathItem(p, place('p' + p.uuid)))];
	svg.replaceChildren(
		s('defs', {}, s('marker', {
			id: 'tip', viewBox: '0 0 8 8', refX: 3, refY: 4, markerWidth: 7, markerHeight: 7,
			orient: 'auto-start-reverse', markerUnits: 'userSpaceOnUse',
		}, s('path', { d: 'M0 0 8 4 0 8z' }))),
		...arrows.map(a => a.line), ...items.map(i => i.group));
}

export function choose(c: Choice | null): void {
	chosen = c;
	items.forEach(i => i.update());
}

function update(): void {
	const svg = document.getElementById('graph') as unknown as SVGSVGElement;
	const down = byId('graph-frame').clientWidth < 620;

	byId('graph-empty').hidden = model.link !== 'connected' || model.nodes.length > 0;
	if (drawnShape !== model.shape || drawnDown !== down) {
		const at = (document.activeElement as Element | null)?.getAttribute?.('data-id');
		drawnShape = model.shape;
		drawnDown = down;
		draw(svg, down);
		items.find(i => at && i.group.getAttribute('data-id') === at)?.group.focus();
	}
	items.forEach(i => i.update());
	for (const a of arrows) {
		const state = model.paths.find(p => p.uuid === a.path.uuid)?.state ?? 'stopped';
		a.line.setAttribute('class', `arrow ${state}`);
	}
}

export function start(choice: (c: Choice) => void): void {
	onChoose = choice;
	model.listen(update);
	new ResizeObserver(() => {
		if (model.nodes.length)
			update();
	}).observe(byId('graph-frame'));
}
