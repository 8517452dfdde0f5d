// SPDX-License-Identifier: BSD-2-Clause
// The list of all signals of all nodes: which are shown, and what their values are.
import { byId, h, setText } from './components/dom';
import { model, Signal } from './model';

export interface Shown {
	key: string;
	node: string;
	direction: 'in' | 'out';
	index: number;
	signal: Signal;
	/** Position among those that were chosen: colour and dashes. */
	place: number;
}

interface Row { key: string; box: HTMLInputElement; swatch: HTMLElement; value: HTMLElement; line: HTMLElement }

const KEEP = 'busbar-signals';
const FIRST = 3;

const rows = new Map<string, Row>();
const groups: { all: HTMLInputElement; keys: string[]; frame: HTMLDetailsElement }[] = [];
let shown: Shown[] = [];
let drawn = -1;
let onChange: () => void = () => undefined;

export function list(): Shown[] {
	return shown;
}

export function signalName(signal: Signal, index: number): string {
	return (signal.name || `signal ${index}`) + (signal.type === 'complex' ? ' (magnitude)' : '');
}

function remember(): void {
	try {
		sessionStorage.setItem(KEEP, JSON.stringify(shown.map(x => x.key)));
	} catch { /* then the next visit begins anew */ }
}

function remembered(): string[] | null {
	try {
		const list = JSON.parse(sessionStorage.getItem(KEEP) ?? 'null');
		return Array.isArray(list) ? list : null;
	} catch {
		return null;
	}
}

function freePlace(): number {
	const used = new Set(shown.map(x => x.place));
	let i = 0;
	while (used.has(i))
		i++;
	return i;
}

function each(f: (node: string, direction: 'in' | 'out', signals: Signal[]) => void): void {
	for (const n of model.nodes)
		for (const direction of ['in', 'out'] as const)
			if (n[direction].signals.length)
				f(n.name, direction, n[direction].signals);
}

export function key(node: string, direction: string, index: number): string {
	return `${direction}/${index}/${node}`;
}

/** Adds or removes one, without telling. */
function put(k: string, on: boolean): void {
	const was = shown.findIndex(x => x.key === k);
	if (!on && was >= 0)
		shown.splice(was, 1);
	if (!on || was >= 0)
		return;
	const [direction, index] = k.split('/');
	const node = k.split('/').slice(2).join('/');
	const signal = model.node(node)?.[direction as 'in' | 'out']?.signals[Number(index)];
	if (signal)
		shown.push({
			key: k, node, direction: direction as 'in' | 'out', index: Number(index), signal,
			place: freePlace(),
		});
}

export function set(keys: string[], on: boolean): void {
	for (const k of keys)
		put(k, on);
	remember();
	mark();
	onChange();
}

/** Only these. */
export function showOnly(keys: string[]): void {
	shown = [];
	set(keys, true);
}

function mark(): void {
	const places = new Map(shown.map(x => [x.key, x.place]));
	for (const r of rows.values()) {
		const place = places.get(r.key);
		r.box.checked = place !== undefined;
		r.swatch.className = 'swatch' + (place === undefined ? '' :
			` c${place % 8} d${Math.floor(place / 8) % 4}`);
	}
	for (const g of groups) {
		const n = g.keys.filter(k => places.has(k)).length;
		g.all.checked = n > 0 && n === g.keys.length;
		g.all.indeterminate = n > 0 && n < g.keys.length;
	}
}

function makeRow(k: string, signal: Signal, index: number): HTMLElement {
	const name = signalName(signal, index);
	const swatch = h('span', { class: 'swatch', 'aria-hidden': 'true' });
	const value = h('span', { class: 'value' });
	const box = h('input', {
		type: 'checkbox', 'data-key': k,
		change: () => set([k], box.checked),
	});
	const line = h('label', { class: 'signal', title: name }, box, swatch,
		h('span', { class: 'name' }, name), value,
		h('span', { class: 'unit' }, signal.unit ?? ''));
	rows.set(k, { key: k, box, swatch, value, line });
	return line;
}

function build(): void {
	const frame = byId('picker-list'), open = new Set(groups.filter(g => g.frame.open).map(g => g.keys[0]));
	const fresh = groups.length === 0;
	rows.clear();
	groups.length = 0;
	frame.replaceChildren();
	each((node, direction, signals) => {
		const keys = signals.map((_, i) => key(node, direction, i));
		const all = h('input', {
			type: 'checkbox', 'aria-label': `all signals of ${node}, ${direction}`,
			change: () => set(keys, all.checked),
			click: (e: Event) => e.stopPropagation(),
		});
		const body = h('div', { class: 'signals' }, ...signals.map((s, i) => makeRow(keys[i], s, i)));
		const group = h('details', {},
			h('summary', {}, all, h('span', { class: 'name', title: node }, node),
				h('span', { class: 'tag' }, direction), h('span', { class: 'count' }, String(signals.length))),
			body);
		group.open = open.has(keys[0]) || (fresh && groups.length === 0);
		groups.push({ all, keys, frame: group });
		frame.append(group);
	});
	byId('picker-empty').hidden = groups.length > 0;
	filter();
}

function filter(): void {
	const word = byId<HTMLInputElement>('picker-search').value.trim().toLowerCase();
	for (const g of groups) {
		let found = 0;
		for (const k of g.keys) {
			const r = rows.get(k)!;
			const fits = !word || (r.line.title + ' ' + k).toLowerCase().includes(word);
			r.line.hidden = !fits;
			found += Number(fits);
		}
		g.frame.hidden = found === 0;
		if (word && found)
			g.frame.open = true;
	}
}

/** The first signals that move, so that a new page shows something. */
function begin(): void {
	const before = remembered();
	const keys: string[] = [];
	if (before) {
		keys.push(...before);
	} else {
		each((node, direction, signals) => {
			if (!keys.length && direction === 'in')
				signals.slice(0, FIRST).forEach((_, i) => keys.push(key(node, direction, i)));
		});
	}
	for (const k of keys)
		put(k, true);
}

function update(): void {
	if (drawn === model.shape || model.link !== 'connected')
		return;
	const fresh = drawn < 0;
	const keys = shown.map(x => x.key);
	drawn = model.shape;
	build();
	if (fresh) {
		begin();
	} else {
		shown = [];
		for (const k of keys)
			put(k, true);
	}
	mark();
	onChange();
}

/** Values beside the names; `of` gives NaN where nothing is known. */
export function showValues(of: (key: string) => string): void {
	for (const g of groups) {
		if (!g.frame.open || g.frame.hidden)
			continue;
		for (const k of g.keys)
			setText(rows.get(k)!.value, of(k));
	}
}

export function start(change: () => void): void {
	onChange = change;
	byId('picker-search').addEventListener('input', filter);
	model.listen(update);
}
