// SPDX-License-Identifier: BSD-2-Clause
// Live samples of one direction of a node, by WebSocket in the format villas.web: samples one
// behind the other, each a header of 16 bytes and 4 bytes for each value, little-endian.
import { openSocket } from './api';
import { model, Signal } from './model';
import { Ring } from './ring';

export type TapState = 'connecting' | 'live' | 'silent' | 'lost';

/** Times are counted from here, which keeps their digits. */
export const EPOCH = Math.floor(Date.now() / 1000);

const MEMORY = 48 << 20;
const SAMPLES_MAX = 65536;
/** A stream whose clock is further from ours is moved to where it came in. */
const FOREIGN_S = 5;

export class Tap {
	ring: Ring;
	state: TapState = 'connecting';
	/** Added to the times of the stream. */
	shift = 0;
	hasShift = false;
	private socket: WebSocket | null = null;
	private attempts = 0;
	private closed = false;
	private lastFrame = 0;
	private timer = 0;
	/** villas.web has no booleans and no complex values. */
	private asText: boolean;
	/** Nothing is taken in: what is seen stays. */
	held = false;

	constructor(readonly node: string, readonly direction: 'in' | 'out', readonly signals: Signal[],
		    private rate: number) {
		this.asText = signals.some(s => s.type !== 'float' && s.type !== 'integer');
		this.ring = new Ring(signals.map(s => s.type === 'integer'),
			Math.min(SAMPLES_MAX, Math.floor(MEMORY / 8 / Math.max(1, signals.length))));
		this.open();
		this.timer = window.setInterval(() => this.watch(), 500);
	}

	/** Of all taps: what a ring holds within a window is enough. */
	static rateFor(signals: number, window: number): number {
		const room = Math.min(SAMPLES_MAX, Math.floor(MEMORY / 8 / Math.max(1, signals)));
		return Math.ceil(room / (window * 1.5));
	}

	setRate(rate: number): void {
		if (rate === this.rate)
			return;
		this.rate = rate;
		this.attempts = 0;
		this.reopen();
	}

	private reopen(): void {
		const old = this.socket;
		this.socket = null;
		old?.close();
		this.open();
	}

	private open(): void {
		const query = this.rate ? `?rate=${this.rate}` : '';
		let socket: WebSocket;
		try {
			socket = openSocket(`/tap/${encodeURIComponent(this.node)}/` +
				`${this.direction}${this.asText ? '.json' : ''}${query}`);
		} catch {
			this.state = 'lost';
			return;
		}
		this.socket = socket;
		socket.onopen = () => this.attempts = 0;
		socket.onmessage = e => {
			if (this.socket !== socket)
				return;
			if (e.data instanceof ArrayBuffer)
				this.take(e.data);
			else
				this.takeText(e.data);
		};
		socket.onclose = e => {
			if (this.closed || this.socket !== socket)
				return;
			// A reload has brought other signals.
			if (e.code === 1012)
				model.hurry();
			this.state = 'lost';
			this.socket = null;
			const wait = Math.min(5000, 400 * 2 ** this.attempts++);
			setTimeout(() => {
				if (!this.closed && !this.socket)
					this.open();
			}, wait);
		};
	}

	private watch(): void {
		if (this.socket?.readyState !== WebSocket.OPEN)
			return;
		this.state = performance.now() - this.lastFrame < 1500 ? 'live' : 'silent';
	}

	private align(t: number): void {
		const now = Date.now() / 1000 - EPOCH;
		if (!this.hasShift || Math.abs(t + this.shift - now) > FOREIGN_S) {
			this.shift = Math.abs(t - now) > FOREIGN_S ? now - t : 0;
			this.hasShift = true;
		}
	}

	/** The place for a sample of this time. */
	private begin(sec: number, nsec: number): number {
		const t = sec - EPOCH + nsec * 1e-9;
		this.align(t);
		return this.ring.push(t + this.shift);
	}

	private takeText(text: string): void {
		let list: any;
		try {
			list = JSON.parse(text);
		} catch {
			return;
		}
		this.lastFrame = performance.now();
		this.state = 'live';
		for (const sample of Array.isArray(list) ? list : [list]) {
			const origin = sample?.ts?.origin, data = sample?.data;
			if (this.held || !Array.isArray(origin) || !Array.isArray(data))
				continue;
			const slot = this.begin(Number(origin[0]), Number(origin[1]));
			this.ring.values.forEach((values, i) => {
				const v = data[i];
				values[slot] = v === null || v === undefined ? NaN :
					typeof v === 'object' ? Math.hypot(v.real, v.imag) : Number(v);
			});
		}
	}

	private take(data: ArrayBuffer): void {
		const view = new DataView(data), ring = this.ring;
		this.lastFrame = performance.now();
		this.state = 'live';
		for (let at = 0; at + 16 <= data.byteLength;) {
			const count = view.getUint16(at + 2, true), first = at + 16;
			at = first + 4 * count;
			if (view.getUint8(first - 16) >> 4 !== 2 || at > data.byteLength)
				return;
			if (view.getUint8(first - 16) & 0x0c || this.held)
				continue;
			const slot = this.begin(view.getUint32(first - 8, true), view.getUint32(first - 4, true));
			const n = Math.min(count, ring.values.length);
			for (let i = 0; i < n; i++) {
				const values = ring.values[i];
				values[slot] = values instanceof Int32Array ?
					view.getInt32(first + 4 * i, true) : view.getFloat32(first + 4 * i, true);
			}
			for (let i = n; i < ring.values.length; i++)
				ring.values[i][slot] = ring.values[i] instanceof Int32Array ? 0 : NaN;
		}
	}

	close(): void {
		this.closed = true;
		clearInterval(this.timer);
		this.socket?.close();
	}
}
