// SPDX-License-Identifier: BSD-2-Clause
// Places boxes in layers, so that most arrows point the same way and few cross. Pure.
//
// Arrows against the stream close a circle; they are found by a search in depth and turned
// around while layers are given. Boxes between which an arrow passes over layers leave it a
// lane. Order within a layer: the mean place of the neighbours, some sweeps in both directions.

export interface Box {
	id: string;
	/** Along the stream, and across. */
	length: number; breadth: number;
}
export interface Arrow { from: string; to: string }
export interface Point { along: number; across: number }
export interface Laid {
	places: Map<string, Point>;          // centres
	lanes: Point[][];                    // of each arrow: the points between its ends
	backward: boolean[];
	length: number; breadth: number;
}

interface Cell {
	id: string;
	layer: number;
	breadth: number;
	length: number;
	across: number;
	next: Cell[];
	prev: Cell[];
	order: number;
}

function findBackward(boxes: Box[], arrows: Arrow[]): boolean[] {
	const state = new Map<string, number>();
	const backward = arrows.map(() => false);
	const visit = (id: string): void => {
		state.set(id, 1);
		arrows.forEach((a, i) => {
			if (a.from !== id)
				return;
			if (state.get(a.to) === 1)
				backward[i] = true;
			else if (!state.has(a.to))
				visit(a.to);
		});
		state.set(id, 2);
	};
	const fed = new Set(arrows.map(a => a.to));
	// Sources first: what they feed lies behind them.
	for (const b of [...boxes.filter(b => !fed.has(b.id)), ...boxes])
		if (!state.has(b.id))
			visit(b.id);
	return backward;
}

function giveLayers(boxes: Box[], arrows: Arrow[], backward: boolean[]): Map<string, number> {
	const layer = new Map(boxes.map(b => [b.id, 0]));
	const ends = arrows.map((a, i) => backward[i] ? [a.to, a.from] : [a.from, a.to]);
	for (let round = 0; round < boxes.length; round++) {
		let moved = false;
		for (const [from, to] of ends) {
			if (from === to || layer.get(to)! > layer.get(from)!)
				continue;
			layer.set(to, layer.get(from)! + 1);
			moved = true;
		}
		if (!moved)
			break;
	}
	// A source stands right before what it feeds.
	for (const b of boxes) {
		const after = ends.filter(e => e[0] === b.id).map(e => layer.get(e[1])!);
		if (after.length && !ends.some(e => e[1] === b.id))
			layer.set(b.id, Math.min(...after) - 1);
	}
	return layer;
}

function place(cells: Cell[], gap: number, straight = false): void {
	// Keeps the order and the gaps, as close as that allows to where each wants to be.
	const want = cells.map(c => {
		const near = straight && c.prev.length ? c.prev : [...c.prev, ...c.next];
		return near.length ? near.reduce((t, n) => t + n.across, 0) / near.length : c.across;
	});
	const clusters: { first: number; last: number; at: number; weight: number }[] = [];
	const offset: number[] = [];
	cells.forEach((c, i) => {
		offset[i] = i ? offset[i - 1] + (cells[i - 1].breadth + c.breadth) / 2 + gap : 0;
		clusters.push({ first: i, last: i, at: want[i] - offset[i], weight: 1 });
		while (clusters.length > 1) {
			const b = clusters[clusters.length - 1], a = clusters[clusters.length - 2];
			if (a.at <= b.at)
				break;
			a.at = (a.at * a.weight + b.at * b.weight) / (a.weight + b.weight);
			a.weight += b.weight;
			a.last = b.last;
			clusters.pop();
		}
	});
	for (const k of clusters)
		for (let i = k.first; i <= k.last; i++)
			cells[i].across = k.at + offset[i];
}

function sweep(layers: Cell[][], gap: number): void {
	const sort = (layer: Cell[], side: 'prev' | 'next'): void => {
		const want = new Map(layer.map(c => [c, c[side].length ?
			c[side].reduce((t, n) => t + n.order, 0) / c[side].length : c.order]));
		layer.sort((a, b) => want.get(a)! - want.get(b)! || a.order - b.order);
		layer.forEach((c, i) => c.order = i);
	};
	for (let round = 0; round < 6; round++) {
		for (let i = 1; i < layers.length; i++)
			sort(layers[i], 'prev');
		for (let i = layers.length - 2; i >= 0; i--)
			sort(layers[i], 'next');
	}
	for (const layer of layers) {
		let at = 0;
		for (const c of layer) {
			c.across = at + c.breadth / 2;
			at += c.breadth + gap;
		}
		for (const c of layer)
			c.across -= (at - gap) / 2;
	}
	for (let round = 0; round < 8; round++) {
		for (const layer of layers)
			place(layer, gap);
		for (let i = layers.length - 1; i >= 0; i--)
			place(layers[i], gap);
	}
	for (const layer of layers)
		place(layer, gap, true);
}

export function layOut(boxes: Box[], arrows: Arrow[], gap: number, step: number): Laid {
	const backward = findBackward(boxes, arrows);
	const layer = giveLayers(boxes, arrows, backward);
	const lowest = Math.min(...layer.values(), 0);
	const layers: Cell[][] = [];
	const cells = new Map<string, Cell>();
	const add = (id: string, at: number, breadth: number, length: number): Cell => {
		const c: Cell = { id, layer: at, breadth, length, across: 0, next: [], prev: [], order: 0 };
		(layers[at] ??= []).push(c);
		c.order = layers[at].length - 1;
		return c;
	};
	for (const b of boxes)
		cells.set(b.id, add(b.id, layer.get(b.id)! - lowest, b.breadth, b.length));
	const chains = arrows.map((a, i) => {
		let from = cells.get(backward[i] ? a.to : a.from)!;
		const to = cells.get(backward[i] ? a.from : a.to)!;
		const chain: Cell[] = [];
		while (from.layer + 1 < to.layer) {
			const lane = add('', from.layer + 1, 14, 0);
			from.next.push(lane);
			lane.prev.push(from);
			chain.push(lane);
			from = lane;
		}
		if (from !== to) {
			from.next.push(to);
			to.prev.push(from);
		}
		return backward[i] ? chain.reverse() : chain;
	});
	for (let i = 0; i < layers.length; i++)
		layers[i] ??= [];
	sweep(layers, gap);

	const all = layers.flat();
	const top = Math.min(...all.map(c => c.across - c.breadth / 2));
	const along: number[] = [];
	let length = 0;
	layers.forEach((l, i) => {
		const widest = Math.max(0, ...l.map(c => c.length));
		along[i] = length + widest / 2;
		length += widest + (i + 1 < layers.length ? step : 0);
	});
	const at = (c: Cell): Point => ({ along: along[c.layer], across: c.across - top });
	return {
		places: new Map([...cells].map(([id, c]) => [id, at(c)])),
		lanes: chains.map(chain => chain.map(at)),
		backward, length,
		breadth: Math.max(...all.map(c => c.across + c.breadth / 2)) - top,
	};
}
