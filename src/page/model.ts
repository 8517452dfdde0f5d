// SPDX-License-Identifier: BSD-2-Clause
// What is known of the gateway: asked again and again, rates from the differences of counters.
import { get, Refused } from './api';

export interface Signal { name: string | null; type: string; unit?: string }
export interface Direction { signals: Signal[]; enabled: boolean; hooks?: { type: string }[] }
export interface GatewayNode {
	name: string; uuid: string; type: string; state: string; status: string;
	enabled: boolean; in: Direction; out: Direction; stats: any;
}
export interface GatewayPath {
	name: string; uuid: string; state: string; in: string[]; out: string[];
	mode: string; enabled: boolean; reversed: boolean; hooks: { type: string }[]; stats: any;
}

export interface NodeFigures {
	received: number | null; sent: number | null; losses: number | null;
	/** Steps that a generator left out. */
	missed: number;
	/** The cause of most losses in the last interval. */
	cause: string;
}
export interface PathFigures {
	samples: number | null; dropped: number | null;
	p50: number; p99: number; max: number; count: number;
}

export type Link = 'connecting' | 'connected' | 'lost' | 'refused';

const CAUSES: Record<string, string> = {
	full: 'queue full', absent: 'peer absent', closed: 'while paused or stopped',
	stuck: 'peer takes nothing', too_long: 'sample too long', format: 'not in this format',
	refused: 'refused by the peer', unknown: 'not sent', lost: 'missing',
	not_stored: 'not stored', missed: 'steps left out',
};

type Listener = () => void;

class Model {
	link: Link = 'connecting';
	/** Why it is not connected. */
	reason = '';
	lastAnswer = 0;
	status: any = null;
	nodes: GatewayNode[] = [];
	paths: GatewayPath[] = [];
	nodeFigures = new Map<string, NodeFigures>();
	pathFigures = new Map<string, PathFigures>();
	/** Rises with each change of nodes, paths, or their signals. */
	shape = 0;
	private before: any = null;
	private shapeText = '';
	private listeners: Listener[] = [];
	private round = 0;
	private wake: (() => void) | null = null;

	listen(f: Listener): void {
		this.listeners.push(f);
	}

	private tell(): void {
		for (const f of this.listeners)
			f();
	}

	/** Asks at once. */
	hurry(): void {
		this.round = 0;
		this.wake?.();
	}

	node(name: string): GatewayNode | undefined {
		return this.nodes.find(n => n.name === name);
	}

	async run(): Promise<void> {
		for (;;) {
			await this.ask();
			this.tell();
			await new Promise<void>(done => {
				this.wake = done;
				setTimeout(done, document.hidden ? 5000 : 1000);
			});
		}
	}

	private async ask(): Promise<void> {
		try {
			if (this.round++ % 3 === 0 || this.link !== 'connected')
				await this.askShape();
			this.take(await get('/stats'));
			this.link = 'connected';
			this.lastAnswer = Date.now();
		} catch (e) {
			this.before = null;
			this.link = e instanceof Refused && [401, 403, 429].includes(e.status) ?
				'refused' : 'lost';
			this.reason = e instanceof Refused ? e.message : '';
			if (e instanceof Refused && e.status === 429 && e.retry)
				this.reason += `; try again in ${e.retry} s`;
		}
	}

	private async askShape(): Promise<void> {
		const [status, nodes, paths] = await Promise.all([
			get('/status'), get<GatewayNode[]>('/nodes'), get<GatewayPath[]>('/paths')]);
		if (this.status && status.time_started !== this.status.time_started)
			this.before = null;
		this.status = status;
		this.nodes = nodes;
		this.paths = paths;
		const text = JSON.stringify([status.time_started,
			nodes.map(n => [n.name, n.type, n.in.signals, n.out.signals]),
			paths.map(p => [p.uuid, p.in, p.out])]);
		if (text !== this.shapeText) {
			this.shapeText = text;
			this.shape++;
		}
	}

	private take(now: any): void {
		const old = this.before;
		const dt = old ? now.seconds - old.seconds : 0;
		const known = dt > 0.05;
		let missing = false;
		for (const [name, o] of Object.entries<any>(now.nodes)) {
			const n = this.node(name), was = old?.nodes[name]?.stats;
			missing ||= !n;
			if (n) {
				n.state = o.state;
				n.stats = o.stats;
			}
			this.nodeFigures.set(name, nodeFigures(o.stats, known ? was : null, dt));
		}
		now.paths.forEach((o: any) => {
			const p = this.paths.find(q => q.uuid === o.uuid);
			const was = old?.paths.find((q: any) => q.uuid === o.uuid)?.stats;
			missing ||= !p;
			if (p) {
				p.state = o.state;
				p.stats = o.stats;
			}
			this.pathFigures.set(o.uuid, pathFigures(o.stats, known ? was : null, dt));
		});
		if (missing)
			this.round = 0;
		this.before = now;
	}
}

/** Counters that were set to zero begin anew. */
function per(now: number, was: number | undefined, dt: number): number {
	return was === undefined || now < was ? 0 : (now - was) / dt;
}

function nodeFigures(k: any, was: any, dt: number): NodeFigures {
	if (!was)
		return { received: null, sent: null, losses: null, missed: 0, cause: '' };
	const parts: [string, number][] = Object.keys(k.losses).map(
		c => [c, per(k.losses[c], was.losses[c], dt)]);
	const told = parts.reduce((sum, p) => sum + p[1], 0);
	parts.push(['lost', per(k.lost, was.lost, dt)]);
	parts.push(['unknown', Math.max(0, per(k.not_sent, was.not_sent, dt) +
		per(k.not_stored, was.not_stored, dt) - told)]);
	const worst = parts.reduce((a, b) => b[1] > a[1] ? b : a);
	return {
		received: per(k.received, was.received, dt), sent: per(k.sent, was.sent, dt),
		missed: per(k.missed, was.missed, dt),
		losses: parts.reduce((sum, p) => sum + p[1], 0),
		cause: worst[1] > 0 ? CAUSES[worst[0]] ?? worst[0] : '',
	};
}

function pathFigures(k: any, was: any, dt: number): PathFigures {
	const l = k.latency;
	return {
		samples: was ? per(k.samples, was.samples, dt) : null,
		dropped: was ? per(k.dropped, was.dropped, dt) : null,
		p50: l.p50_us * 1e-6, p99: l.p99_us * 1e-6, max: l.max_us * 1e-6, count: l.count,
	};
}

export const model = new Model();
export { CAUSES };
