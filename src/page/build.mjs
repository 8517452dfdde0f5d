// SPDX-License-Identifier: BSD-2-Clause
// build.mjs SOURCES OUT HASH NAME...: NAME.js and NAME.css of each page, always the same bytes for the same
// sources, whose hash is at the beginning of both (bundle.py makes and checks it). The files index.html are taken
// as they are.
import { mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';

const from = resolve(process.argv[2]), to = resolve(process.argv[3]), hash = process.argv[4];
const esbuild = createRequire(join(from, 'package.json'))('esbuild');
const license = readFileSync(join(from, 'node_modules/uplot/LICENSE'), 'utf8').trim();
const made = `/* Made from src/page by \`make page\`; sources sha256 ${hash} */\n`;
const OURS = `/* SPDX-License-Identifier: BSD-2-Clause */\n${made}`;
const WITH_UPLOT = `/* SPDX-License-Identifier: BSD-2-Clause AND MIT */\n${made}`;
const PAGES = {
	page: { script: 'main.ts', style: '@import "uplot/dist/uPlot.min.css";\n@import "./style.css";', format: 'esm',
		banner: { js: `${WITH_UPLOT}/* It holds uPlot:\n${license}\n*/`, css: WITH_UPLOT } },
	// Within a page: no module.
	report: { script: 'report/main.ts', style: '@import "./report/style.css";', format: 'iife', banner: { js: OURS, css: OURS } },
};

mkdirSync(to, { recursive: true });
for (const name of process.argv.slice(5)) {
	const p = PAGES[name];
	await esbuild.build({
		absWorkingDir: from, entryPoints: [p.script], outfile: join(to, `${name}.js`), bundle: true, minify: true,
		format: p.format, target: 'es2022', charset: 'utf8', legalComments: 'none', logLevel: 'warning', banner: { js: p.banner.js },
	});
	await esbuild.build({
		absWorkingDir: from, stdin: { contents: p.style, resolveDir: from, loader: 'css' },
		outfile: join(to, `${name}.css`), bundle: true, minify: true, legalComments: 'none', logLevel: 'warning',
		target: 'chrome105', banner: { css: p.banner.css },
	});
}
