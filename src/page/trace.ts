// SPDX-License-Identifier: BSD-2-Clause
// The drawing of lines from columns of extremes onto a canvas that lies over the axes.

export interface Line {
	min: Float32Array; max: Float32Array;
	/** Place in the arrays of the first column that is seen, and how many there are. */
	first: number; count: number;
	/** Where the first column begins and how wide each is, in pixels of the canvas. */
	left: number; step: number;
	/** Columns without a sample that do not break the line. */
	bridge: number;
	/** From values to pixels: y = base - value * scale. */
	base: number; scale: number;
	place: number;
}

const DASHES = [[], [7, 4], [2, 3], [9, 3, 2, 3]];

export function drawLine(c: CanvasRenderingContext2D, l: Line, colour: string, ratio: number): void {
	const n = l.min.length;
	let empty = Infinity, last = 0;

	c.beginPath();
	for (let i = 0; i < l.count; i++) {
		const k = (l.first + i) % n, low = l.min[k];
		if (low !== low) {
			empty++;
			continue;
		}
		const x = l.left + (i + 0.5) * l.step;
		const a = l.base - low * l.scale, b = l.base - l.max[k] * l.scale;
		if (empty > l.bridge)
			c.moveTo(x, a);
		// First the end that is nearer to the column before.
		if (a === b) {
			c.lineTo(x, a);
			last = a;
		} else if (Math.abs(a - last) <= Math.abs(b - last)) {
			c.lineTo(x, a);
			c.lineTo(x, b);
			last = b;
		} else {
			c.lineTo(x, b);
			c.lineTo(x, a);
			last = a;
		}
		empty = 0;
	}
	c.strokeStyle = colour;
	c.lineWidth = 1.6 * ratio;
	c.setLineDash(DASHES[Math.floor(l.place / 8) % 4].map(d => d * ratio));
	c.stroke();
}

/**
 * Many lines, straight into the pixels of an image: without smoothing, but some ten times as
 * fast as strokes where no graphics processor draws them. In each column of pixels a line covers
 * its extremes and the way from the column before.
 */
export function drawPixels(to: Uint32Array, width: number, height: number, l: Line, colour: number): void {
	const n = l.min.length;
	let empty = Infinity, lastX = 0, lastTop = 0, lastBottom = 0;

	for (let i = 0; i < l.count; i++) {
		const k = (l.first + i) % n, low = l.min[k];
		if (low !== low) {
			empty++;
			continue;
		}
		const x = Math.round(l.left + (i + 0.5) * l.step);
		let top = Math.round(l.base - l.max[k] * l.scale), bottom = Math.round(l.base - low * l.scale);
		const from = empty <= l.bridge ? lastX : x;
		// Over columns without a sample it goes straight.
		for (let g = from + 1; g < x; g++) {
			const part = (g - from) / (x - from);
			const y = Math.round((lastTop + lastBottom) / 2 * (1 - part) + (top + bottom) / 2 * part);
			if (g >= 0 && g < width && y >= 0 && y < height)
				to[y * width + g] = colour;
		}
		const newTop = top, newBottom = bottom;
		if (from === x - 1) {
			top = Math.min(top, lastBottom);
			bottom = Math.max(bottom, lastTop);
		}
		if (x >= 0 && x < width) {
			const end = Math.min(height - 1, bottom);
			for (let y = Math.max(0, top); y <= end; y++)
				to[y * width + x] = colour;
		}
		lastX = x;
		lastTop = newTop;
		lastBottom = newBottom;
		empty = 0;
	}
}

/** "#rrggbb" as a pixel of an image (little-endian). */
export function pixel(colour: string): number {
	const n = parseInt(colour.slice(1), 16);
	return (0xff000000 | (n & 0xff) << 16 | (n & 0xff00) | n >> 16) >>> 0;
}

/** The range of an axis: follows at once where values leave it, and slowly where there is room. */
export class Range {
	low = -1;
	high = 1;
	private roomSince = 0;
	private empty = true;

	/** True: it has changed. */
	fit(min: number, max: number, now: number): boolean {
		if (!(min <= max))
			return false;
		const size = max - min || Math.abs(max) * 0.2 || 1;
		const low = min - 0.08 * size - (max === min ? size / 2 : 0);
		const high = max + 0.08 * size + (max === min ? size / 2 : 0);
		const outside = this.empty || min < this.low || max > this.high;
		const roomy = size < 0.55 * (this.high - this.low);
		if (!roomy)
			this.roomSince = now;
		if (!outside && now - this.roomSince < 2000)
			return false;
		this.empty = false;
		this.roomSince = now;
		if (outside && !roomy) {
			// The other side stays unless it has to move.
			this.low = Math.min(low, this.low > min - size ? this.low : low);
			this.high = Math.max(high, this.high < max + size ? this.high : high);
		} else {
			this.low = low;
			this.high = high;
		}
		return true;
	}

	forget(): void {
		this.empty = true;
	}
}
