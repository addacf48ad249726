// Bundles the page:   node build.mjs [FOLDER]        (default: bundle, which is committed and compiled in)
import { mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const here = dirname(fileURLToPath(import.meta.url));
const out = process.argv[2] ?? join(here, 'bundle');

mkdirSync(out, { recursive: true });
await build({
    absWorkingDir: here,
    entryPoints: { page: 'src/main.ts' },
    outdir: out,
    bundle: true,
    minify: true,
    format: 'iife',
    target: 'es2022',
    charset: 'utf8',
    legalComments: 'inline',
    logLevel: 'warning',
});
