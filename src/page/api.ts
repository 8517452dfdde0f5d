// SPDX-License-Identifier: BSD-2-Clause
// Requests to the gateway, with a token where it wants one.

const BASE = '/api/v2';
const KEY = 'busbar-token';

export class Refused extends Error {
	constructor(public status: number, message: string, public body: any, public retry = 0) {
		super(message);
	}
}

/** No answer: the gateway is not there. */
export class Unreachable extends Error {
}

export function token(): string {
	try {
		return sessionStorage.getItem(KEY) ?? '';
	} catch {
		return '';
	}
}

export function setToken(text: string): void {
	try {
		if (text)
			sessionStorage.setItem(KEY, text);
		else
			sessionStorage.removeItem(KEY);
	} catch { /* a browser without storage asks again after a reload */ }
}

async function send(method: string, path: string, body: unknown, accept: string,
		    patience: number): Promise<Response> {
	const headers: Record<string, string> = { Accept: accept };
	if (token())
		headers.Authorization = 'Bearer ' + token();
	if (body !== undefined)
		headers['Content-Type'] = 'application/json';
	try {
		return await fetch(path, {
			method, headers, cache: 'no-store', signal: AbortSignal.timeout(patience),
			body: body === undefined ? undefined : JSON.stringify(body),
		});
	} catch {
		throw new Unreachable('no answer');
	}
}

async function refuse(r: Response): Promise<never> {
	let body: any = {};
	try {
		body = await r.json();
	} catch { /* the status says enough */ }
	throw new Refused(r.status, body?.error ?? `status ${r.status}`, body,
		Number(r.headers.get('Retry-After')) || 0);
}

export async function get<T = any>(path: string): Promise<T> {
	const r = await send('GET', BASE + path, undefined, 'application/json', 6000);
	if (!r.ok)
		return refuse(r);
	try {
		return await r.json();
	} catch {
		throw new Unreachable('the answer ended early');
	}
}

export async function getText(path: string, accept: string): Promise<string> {
	const r = await send('GET', path, undefined, accept, 6000);
	return r.ok ? r.text() : refuse(r);
}

/** A command that takes long becomes a job, which is asked for until it is done. */
export async function post<T = any>(path: string, body?: unknown): Promise<T> {
	const r = await send('POST', BASE + path, body, 'application/json', 70000);
	if (r.status !== 202)
		return r.ok ? r.json() : refuse(r);
	const place = r.headers.get('Location') ?? '';
	for (let i = 0; i < 600; i++) {
		await new Promise(done => setTimeout(done, 500));
		const job = await get(place.replace(BASE, ''));
		if (job.state !== 'done')
			continue;
		if (job.status >= 400)
			throw new Refused(job.status, job.body?.error ?? `status ${job.status}`, job.body);
		return job.body;
	}
	throw new Unreachable('the command has not ended after five minutes');
}

/** A browser sets no Authorization for a WebSocket: the token is a sub-protocol. */
export function openSocket(path: string): WebSocket {
	const words = ['live'];
	if (token())
		words.push('bearer.' + encodeURIComponent(token()).replace(/[()]/g,
			c => '%' + c.charCodeAt(0).toString(16).toUpperCase()));
	const scheme = location.protocol === 'https:' ? 'wss://' : 'ws://';
	const socket = new WebSocket(scheme + location.host + path, words);
	socket.binaryType = 'arraybuffer';
	return socket;
}
