// SPDX-License-Identifier: BSD-2-Clause
// build.mjs SOURCES OUT: page.js and page.css, always the same bytes for the same sources, whose hash
// is at the beginning of both (bundle.py makes and checks it). index.html is taken as it is.
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';

const from = resolve(process.argv[2]), to = resolve(process.argv[3]), hash = process.argv[4];
const esbuild = createRequire(join(from, 'package.json'))('esbuild');
const license = readFileSync(join(from, 'node_modules/uplot/LICENSE'), 'utf8').trim();
const banner = '/* SPDX-License-Identifier: BSD-2-Clause AND MIT */\n' +
	`/* Made from src/page by \`make page\`; sources sha256 ${hash} */\n`;

mkdirSync(to, { recursive: true });
await esbuild.build({
	absWorkingDir: from, entryPoints: ['main.ts'], outfile: join(to, 'page.js'), bundle: true, minify: true,
	format: 'esm', target: 'es2022', charset: 'utf8', legalComments: 'none', logLevel: 'warning',
	banner: { js: `${banner}/* It holds uPlot:\n${license}\n*/` },
});
await esbuild.build({
	absWorkingDir: from, stdin: { contents: '@import "uplot/dist/uPlot.min.css";\n@import "./style.css";', resolveDir: from, loader: 'css' },
	outfile: join(to, 'page.css'), bundle: true, minify: true, legalComments: 'none', logLevel: 'warning',
	target: 'chrome105', banner: { css: banner },
});
