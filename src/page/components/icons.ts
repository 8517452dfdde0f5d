// SPDX-License-Identifier: BSD-2-Clause
// A shape for each state, so that no state is told by its colour alone.
import { s } from './dom';

export type Tone = 'good' | 'idle' | 'held' | 'bad';

/** Of 16 x 16. */
const SHAPES: Record<string, string> = {
	run: 'M8 2.5a5.5 5.5 0 1 0 0 11a5.5 5.5 0 1 0 0-11z',
	hold: 'M4 3h3v10H4zM9 3h3v10H9z',
	stop: 'M3 3h10v10H3z',
	wait: 'M8 2a6 6 0 1 0 0 12a6 6 0 1 0 0-12zM8 4a4 4 0 1 1 0 8a4 4 0 1 1 0-8z',
	off: 'M2.5 7h11v2h-11z',
	warn: 'M8 1.5 15 14H1zM7.2 5.5v4.6h1.6V5.5zM7.2 11.2v1.6h1.6v-1.6z',
	play: 'M4 2.5v11l9.5-5.5z',
	again: 'M8 2.5a5.5 5.5 0 1 0 5.4 6.6h-1.8A3.8 3.8 0 1 1 8 4.2c1 0 2 .4 2.7 1.1L8.8 7.2H14V2l-2 2A5.5 5.5 0 0 0 8 2.5z',
	close: 'M3.5 2.4 8 6.9l4.5-4.5 1.1 1.1L9.1 8l4.5 4.5-1.1 1.1L8 9.1l-4.5 4.5-1.1-1.1L6.9 8 2.4 3.5z',
};

export interface Look {
	shape: string;
	tone: Tone;
	/** What is said of it. */
	text: string;
}

const STATES: Record<string, Look> = {
	started: { shape: 'run', tone: 'good', text: 'running' },
	running: { shape: 'run', tone: 'good', text: 'running' },
	paused: { shape: 'hold', tone: 'held', text: 'paused' },
	stopped: { shape: 'stop', tone: 'held', text: 'stopped' },
	waiting: { shape: 'wait', tone: 'idle', text: 'waits for samples' },
	ended: { shape: 'stop', tone: 'idle', text: 'ended' },
	'pending-connect': { shape: 'wait', tone: 'held', text: 'waits for its peer' },
	connected: { shape: 'run', tone: 'good', text: 'connected' },
	disabled: { shape: 'off', tone: 'idle', text: 'disabled' },
};

export function look(state: string): Look {
	return STATES[state] ?? { shape: 'wait', tone: 'idle', text: state };
}

export function iconPath(shape: string): SVGPathElement {
	return s('path', { d: SHAPES[shape] ?? SHAPES.off, 'fill-rule': 'evenodd' });
}

export function icon(shape: string, tone = ''): SVGSVGElement {
	return s('svg', { class: `icon ${tone}`, viewBox: '0 0 16 16', 'aria-hidden': 'true' },
		iconPath(shape));
}
