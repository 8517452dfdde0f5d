// SPDX-License-Identifier: BSD-2-Clause
// The package `ws` of node as a server of our destinations and as a client of our endpoint, for
// referee_ws.py. Argument: the folder of packages. Each line on the input says what is to be done,
// and the port of the gateway; each one on the output is a JSON object. The end of the input is
// the end.
'use strict';
const folder = process.argv[2];
const { WebSocket, WebSocketServer } = require(folder + '/ws');

const tell = o => process.stdout.write(JSON.stringify(o) + '\n');
const message = n => JSON.stringify([{ sequence: n, data: [n, 0.5] }]);

function serve() {
	// `ws` masks, compresses and fragments as it likes: compression must be declined, pieces taken.
	const server = new WebSocketServer({ port: 0, host: '127.0.0.1', perMessageDeflate: true,
		handleProtocols: offered => offered.has('live') ? 'live' : false });
	let number = 0;
	server.on('connection', (ws, request) => {
		const mine = ++number;
		let samples = 0;
		tell({ server: 'open', number: mine, url: request.url, protocol: ws.protocol, extensions: ws.extensions });
		const text = message(mine);
		ws.send(text.slice(0, 7), { fin: false });
		ws.send(text.slice(7));
		ws.on('message', (data, binary) => {
			const list = JSON.parse(data.toString());
			const before = samples;
			samples += list.length;
			if (before < 20 && samples >= 20) {
				tell({ server: 'samples', number: mine, binary, data: list[0].data });
				ws.ping('there?');
			}
		});
		ws.on('pong', data => {
			tell({ server: 'pong', number: mine, data: data.toString() });
			// The second connection ends without a goodbye.
			if (mine === 2)
				ws.terminate();
			else if (mine < 3)
				ws.close(4000 + mine, 'again');
		});
		ws.on('close', (code, reason) => tell({ server: 'close', number: mine, code, reason: reason.toString() }));
		ws.on('error', e => tell({ server: 'error', number: mine, error: String(e) }));
	});
	server.on('listening', () => tell({ server: 'listening', port: server.address().port }));
	return server;
}

/** Resolves with the values that `back` gives for what is sent to `live`. */
function exchange(url, compress) {
	const live = new WebSocket(url + '/live.json', ['live'], { perMessageDeflate: compress });
	const back = new WebSocket(url + '/back.json', ['live'], { perMessageDeflate: compress });
	const values = [];
	let open = 0;
	const opened = () => {
		if (++open < 2)
			return;
		// Text in pieces of one byte, text at once, and a Buffer.
		const text = message(1);
		for (let i = 0; i < text.length; i++)
			live.send(text[i], { fin: i === text.length - 1, binary: false, compress });
		live.send(message(2), { compress });
		live.send(Buffer.from(message(3)), { compress });
		live.ping('hello');
	};
	live.on('open', opened);
	back.on('open', opened);
	live.on('pong', data => tell({ client: 'pong', data: data.toString() }));
	live.on('close', (code, reason) => tell({ client: 'close', code, reason: reason.toString() }));
	for (const ws of [live, back])
		ws.on('error', e => tell({ client: 'error', error: String(e) }));
	back.on('message', data => {
		for (const s of JSON.parse(data.toString()))
			values.push(s.data[0]);
		if (values.length < 3)
			return;
		tell({ client: 'values', compress, values, extensions: live.extensions, protocol: live.protocol });
		live.close(4321, 'enough');
		back.close();
	});
}

/** What is no frame of a client is answered with its status. */
function refusals(url) {
	for (const [path, protocols] of [['/live.none', ['live']], ['/nobody', ['live']], ['/live', ['dead']]]) {
		const ws = new WebSocket(url + path, protocols);
		ws.on('unexpected-response', (_, answer) => {
			tell({ client: 'refused', path, protocols, status: answer.statusCode });
			ws.terminate();
		});
		ws.on('error', () => {});
	}
	const ws = new WebSocket(url + '/live.json', ['live']);
	ws.on('open', () => ws.send(Buffer.alloc(70000, 32)));
	ws.on('close', code => tell({ client: 'too long', code }));
}

const server = serve();
let line = '';
process.stdin.on('data', data => {
	line += data;
	for (let at; (at = line.indexOf('\n')) >= 0; line = line.slice(at + 1)) {
		const [word, port] = line.slice(0, at).split(' '), url = 'ws://127.0.0.1:' + port;
		if (word === 'refusals')
			refusals(url);
		else
			exchange(url, word === 'compress');
	}
});
process.stdin.on('end', () => {
	server.close();
	for (const ws of server.clients)
		ws.terminate();
});
