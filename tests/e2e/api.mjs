// The API's responses: compares docs/openapi.json with those of a real run.
//   node api.mjs TWSCOPE
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Bot, endPeers } from './bot.mjs';
import { need } from './need.mjs';
import { freePort, temporaryFolder, waitUntil } from './process.mjs';
import { startProxy } from './proxy.mjs';
import { MAPS, startServer } from './server.mjs';

need(fileURLToPath(new URL('node_modules/ajv', import.meta.url)));
const Ajv = createRequire(import.meta.url)('ajv/dist/2020.js');

const WAIT_MS = 15000;
const SPEC = JSON.parse(readFileSync(new URL('../../docs/openapi.json', import.meta.url), 'utf8'));
const PAGE = readFileSync(new URL('../../docs/api.md', import.meta.url), 'utf8');
const ADMIN = readFileSync(new URL('../../proxy/web/admin.cpp', import.meta.url), 'utf8');
const QUERIES = { '/api/recording': ['?name=none.demo'], '/api/explain': ['?session=1&tick=1'], '/api/world': ['?session=1', ''], '/api/map': ['?session=1'],
    '/api/map_design': ['?session=1'], '/api/map_image': ['?session=1&image=0'],
    '/api/records': [`?wait=2&filter=${encodeURIComponent('message or snapshot')}`] };

after(endPeers);

// Each type of record has its own keys.
const OPEN = new Set(['Record']);

/** Returns the schema, and checks that a response has no other keys. */
function closed(schema, name) {
    if (Array.isArray(schema)) return schema.map((each) => closed(each));
    if (typeof schema !== 'object' || schema === null) return schema;
    const copy = Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, closed(value, key)]));
    return typeof copy.properties === 'object' && !('additionalProperties' in copy) && !OPEN.has(name)
        ? { ...copy, unevaluatedProperties: false } : copy;
}

function validatorOf(schema) {
    return new Ajv({ strict: false, allErrors: true }).compile(closed({ ...schema, components: SPEC.components }));
}

async function play() {
    const folder = temporaryFolder();
    const server = await startServer({ folder, port: await freePort() });
    const proxy = await startProxy({ server: server.port, records: join(folder, 'r.jsonl'),
        args: ['--maps', MAPS, '--http', '0', '--http-recordings', folder, '--state', join(folder, 'state')] });
    await proxy.child.waitFor(/live page on port \d+/, WAIT_MS);
    const port = /live page on port (\d+)/.exec(proxy.child.log)[1];
    const bot = await new Bot(proxy.port, 'anna').join();
    bot.walk();
    return { proxy, server, bot, ask: (path, options) => fetch(`http://127.0.0.1:${port}${path}`, options) };
}

/** Returns the target of a reference. */
const resolved = (said) => said?.$ref ? said.$ref.split('/').slice(1).reduce((at, name) => at[name], SPEC) : said;

async function answersAsSaid(answer, path, responses) {
    const expected = resolved(responses[answer.status]);
    assert.ok(expected, `${path}: ${answer.status} is not in the file`);
    if (!['/api/explain', '/api/recording'].includes(path)) assert.equal(answer.status, 200, path);
    const [[type, { schema }]] = Object.entries(expected.content);
    assert.equal(answer.headers.get('content-type').split(';')[0], type, path);
    const text = await answer.text();
    if (type === 'text/plain' || type === 'application/octet-stream') return;
    const validate = validatorOf(schema);
    const values = type === 'application/json' ? [JSON.parse(text)] : text.split('\n').filter(Boolean).map((line) => JSON.parse(line));
    assert.ok(values.length > 0, path);
    for (const value of values) assert.ok(validate(value), `${path}: ${JSON.stringify(validate.errors?.slice(0, 3))}`);
}

test('every path of the file answers as the file says', async () => {
    const { proxy, bot, ask } = await play();
    await waitUntil('a snapshot on the page', async () => (await (await ask('/api/state')).json()).sessions[0]?.map_id, WAIT_MS);
    for (const [path, methods] of Object.entries(SPEC.paths)) {
        if (path === '/api/live' || !methods.get) continue;
        for (const query of QUERIES[path] ?? ['']) await answersAsSaid(await ask(path + query), path, methods.get.responses);
    }
    await bot.leave();
    assert.equal(await proxy.drain(), 0);
});

test('invalid requests get the errors in the file', async () => {
    const { proxy, ask } = await play();
    for (const [path, status] of [['/api/world?session=0', 400], ['/api/world?session=x', 400], ['/api/world?session=99', 404], ['/api/map', 400], ['/api/map?session=99', 404],
        ['/api/records?filter=nmae', 400], ['/api/records?wait=9', 400], ['/api/explain', 400]]) {
        const answer = await ask(path);
        assert.equal(answer.status, status, path);
        assert.ok(SPEC.paths[path.split('?')[0]].get.responses[status], path);
    }
    const put = await ask('/api/impairment', { method: 'PUT', body: 'none', headers: { 'Content-Type': 'text/plain' } });
    assert.equal(put.status, 401);
    assert.ok(SPEC.paths['/api/impairment'].put.responses[401]);
    assert.equal(await proxy.drain(), 0);
});

test('the file, the documentation and the program have the same paths', () => {
    const routes = new Set([...ADMIN.matchAll(/\{"(?:GET|PUT|POST)", "(\/(?:api\/\w+|metrics|healthz|readyz))"/g)].map(([, path]) => path));
    routes.add('/api/live');
    assert.deepEqual([...routes].sort(), Object.keys(SPEC.paths).sort());
    for (const path of routes) if (path.startsWith('/api')) assert.ok(PAGE.includes(`\`${path}`), `${path} is not in docs/api.md`);
});
