// SPDX-License-Identifier: BSD-2-Clause
// The last samples of a stream in typed arrays, the least and the greatest value for each
// column of pixels, and the search for a trigger. Pure: knows neither page nor network.

/** Smallest power of two that is not below n. */
function power(n: number): number {
	let p = 1024;
	while (p < n)
		p *= 2;
	return p;
}

export class Ring {
	readonly capacity: number;
	readonly times: Float64Array;
	readonly values: (Float32Array | Int32Array)[];
	/** Samples that were ever put in; the last one is at (total - 1) % capacity. */
	total = 0;
	/** Mean time between two samples, over the last hundred or so. */
	interval = 0;

	constructor(types: boolean[] /* whether integer */, samples: number) {
		this.capacity = power(samples);
		this.times = new Float64Array(this.capacity);
		this.values = types.map(whole => whole ? new Int32Array(this.capacity) :
			new Float32Array(this.capacity));
	}

	get first(): number {
		return Math.max(0, this.total - this.capacity);
	}

	at(i: number): number {
		return i & (this.capacity - 1);
	}

	get newest(): number {
		return this.total ? this.times[this.at(this.total - 1)] : NaN;
	}

	/** The place for the next sample; its time is `t`. */
	push(t: number): number {
		if (this.total) {
			const step = t - this.newest;
			// Time that went back is another stream.
			if (step < -1)
				this.total = 0;
			else if (step > 0)
				this.interval += (step - this.interval) * (this.interval ? 0.01 : 1);
		}
		const i = this.at(this.total++);
		this.times[i] = t;
		return i;
	}

	/** The number of the first sample that is not before `t`. */
	find(t: number): number {
		let low = this.first, high = this.total;
		while (low < high) {
			const mid = Math.floor((low + high) / 2);
			if (this.times[this.at(mid)] < t)
				low = mid + 1;
			else
				high = mid;
		}
		return low;
	}

	/** A pause longer than this is a gap in the line. */
	get gap(): number {
		return Math.max(5 * this.interval, 0.1);
	}
}

/** Extremes of signals for columns of equal width in time, which move on with the time. */
export class Columns {
	readonly min: Float32Array[];
	readonly max: Float32Array[];
	/** The newest column, counted from time 0; -1: none. */
	head = -1;
	private done = 0;

	constructor(readonly ring: Ring, readonly signals: number[], readonly width: number,
		    readonly count: number) {
		this.min = signals.map(() => new Float32Array(count).fill(NaN));
		this.max = signals.map(() => new Float32Array(count).fill(NaN));
		this.done = ring.first;
	}

	slot(column: number): number {
		return ((column % this.count) + this.count) % this.count;
	}

	private open(column: number): void {
		const from = Math.max(this.head + 1, column - this.count + 1);
		for (let c = from; c <= column; c++) {
			const k = this.slot(c);
			for (let s = 0; s < this.signals.length; s++)
				this.min[s][k] = this.max[s][k] = NaN;
		}
		this.head = column;
	}

	/** Takes what has come since the last call. */
	advance(): void {
		const r = this.ring;
		if (r.total < this.done) { // it began anew
			this.head = -1;
			for (const a of [...this.min, ...this.max])
				a.fill(NaN);
			this.done = r.first;
		}
		for (let i = Math.max(this.done, r.first); i < r.total; i++) {
			const at = r.at(i), column = Math.floor(r.times[at] / this.width);
			if (column > this.head)
				this.open(column);
			else if (column <= this.head - this.count)
				continue;
			const k = this.slot(column);
			for (let s = 0; s < this.signals.length; s++) {
				const v = r.values[this.signals[s]][at];
				if (!(v >= this.min[s][k]))
					this.min[s][k] = v;
				if (!(v <= this.max[s][k]))
					this.max[s][k] = v;
			}
		}
		this.done = r.total;
	}
}

/** The same for a window of the ring that does not move. */
export function columnsOf(ring: Ring, signal: number, from: number, to: number, count: number):
	{ min: Float32Array; max: Float32Array } {
	const min = new Float32Array(count).fill(NaN), max = new Float32Array(count).fill(NaN);
	const scale = count / (to - from), values = ring.values[signal];
	for (let i = ring.find(from); i < ring.total; i++) {
		const at = ring.at(i), k = Math.floor((ring.times[at] - from) * scale);
		if (k >= count)
			break;
		const v = values[at];
		if (!(v >= min[k]))
			min[k] = v;
		if (!(v <= max[k]))
			max[k] = v;
	}
	return { min, max };
}

export interface TriggerSettings { signal: number; level: number; rising: boolean }

/** Looks through new samples for a crossing of the level. */
export class Trigger {
	private done: number;
	/** On the other side of the level, so that a crossing can come. */
	private ready = false;

	constructor(readonly ring: Ring, readonly settings: TriggerSettings) {
		this.done = Math.max(ring.first, ring.total - 1);
	}

	/** The time of the next crossing that is not before `from`; null: none yet. */
	next(from: number): number | null {
		const r = this.ring, { signal, level, rising } = this.settings;
		const values = r.values[signal];
		if (r.total < this.done)
			this.done = r.first;
		for (let i = Math.max(this.done, r.first); i < r.total; i++) {
			const at = r.at(i), v = values[at];
			const beyond = rising ? v >= level : v <= level;
			if (!beyond) {
				this.ready = true;
				continue;
			}
			if (!this.ready)
				continue;
			this.ready = false;
			if (r.times[at] < from)
				continue;
			this.done = i + 1;
			return this.crossing(i, values, level);
		}
		this.done = r.total;
		return null;
	}

	/** Between two samples, by a straight line. */
	private crossing(i: number, values: Float32Array | Int32Array, level: number): number {
		const r = this.ring, t = r.times[r.at(i)];
		if (i <= r.first)
			return t;
		const v = values[r.at(i)], v0 = values[r.at(i - 1)], t0 = r.times[r.at(i - 1)];
		return v === v0 ? t : t0 + (t - t0) * (level - v0) / (v - v0);
	}
}
