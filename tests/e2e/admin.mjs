// Covers: proxy/process/live_page.cpp
// The live page, the metrics and the health checks during a real game.
//   node admin.mjs TWSCOPE
// Covers: proxy/cli/live_commands.cpp, proxy/cli/publish_flags.cpp
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { after, test } from 'node:test';
import parseMetrics from 'parse-prometheus-text-format';
import { Bot, endPeers } from './bot.mjs';
import { Child, freePort, temporaryFolder, waitUntil } from './process.mjs';
import { startProxy, TWSCOPE } from './proxy.mjs';
import { MAPS, startServer } from './server.mjs';
import { Tap } from './tap.mjs';

const WAIT_MS = 10000;
const SNAPSHOTS = 25;
const SHORT_BYTES = 30;
const READY_ASKED = 40;
const READY_HOLDS_MS = 250; // how long a result of /readyz is reused
const CONTROL = 0x10; // flag of a control packet, in its first byte

after(endPeers);

/** Runs `twscope health` and returns its exit code. */
async function health(...args) {
    const child = new Child('twscope health', TWSCOPE, ['health', ...args]);
    await waitUntil('twscope health to end', () => !child.running, WAIT_MS);
    if (child.status === 0) assert.match(child.output, /^healthy: a server answered .* at /);
    return child.status;
}

/** Sends a request to the page; returns { status, text }. */
async function ask(proxy, path, options = {}) {
    await proxy.child.waitFor(/live page on port \d+/, WAIT_MS);
    const [, port] = /live page on port (\d+)/.exec(proxy.child.log);
    const answer = await fetch(`http://127.0.0.1:${port}${path}`, options);
    return { status: answer.status, text: await answer.text() };
}

/** Returns the samples of a text in Prometheus' format, by name and labels. */
const samples = (text) => new Map(text.split('\n').filter((line) => line && !line.startsWith('#'))
    .map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ') + 1))]));

/** Checks Prometheus' text with parsers that are not ours: one from npm, and promtool, which also checks names, where it is installed. */
function checkFormat(text) {
    const families = parseMetrics(text);
    assert.equal(new Set(families.map(({ name }) => name)).size, families.length);
    for (const { name, help, type, metrics } of families) {
        assert.match(name, /^twscope_[a-z0-9_]+$/);
        assert.ok(help, `${name} has no help`);
        assert.ok(['COUNTER', 'GAUGE', 'HISTOGRAM', 'SUMMARY'].includes(type), `${name} is of type ${type}`);
        assert.equal(name.endsWith('_total'), type === 'COUNTER', name);
        for (const { value } of metrics) assert.ok(value === undefined || Number.isFinite(Number(value)), `${name} is ${value}`);
    }
    const promtool = spawnSync('promtool', ['check', 'metrics'], { input: text, encoding: 'utf8' });
    if (promtool.error?.code === 'ENOENT') {
        assert.ok(!process.env.TW_PROMTOOL_REQUIRED, 'promtool is not installed (./dev deps monitoring)');
        console.log('# promtool is not installed (./dev deps monitoring): its check is left out');
        return;
    }
    assert.deepEqual([promtool.stdout, promtool.stderr, promtool.status], ['', '', 0]);
}

test('a finding has a link to its explanation', async () => {
    const folder = temporaryFolder();
    const server = await startServer({ folder, port: await freePort(), map: 'ctf1' });
    const line = await Tap.open(server.port);
    const proxy = await startProxy({ server: line.port, records: join(folder, 'records.jsonl'),
        args: ['--http', '0', '--state', folder] });
    const bot = await new Bot(proxy.port, 'anna', { keep: true }).join();
    await waitUntil('snapshots', () => bot.snapshots.length >= SNAPSHOTS, WAIT_MS);
    bot.walk();
    // Flips bits of datagrams until a snapshot is damaged.
    let passed = 0;
    line.change = (dir, bytes) => {
        const changed = Buffer.from(bytes);
        if (dir === 's2c' && bytes.length >= SHORT_BYTES && !(bytes[0] & CONTROL) && (passed += 1) % 8 === 0) {
            changed[Math.floor(bytes.length / 2)] ^= 4;
        }
        return changed;
    };
    const address = await waitUntil('a finding with an explanation', async () => JSON.parse((await ask(proxy, '/api/state')).text)
        .recent.map(({ explained_at: at }) => at).find(Boolean), WAIT_MS);
    const { status, text } = await ask(proxy, address);
    assert.equal(status, 200);
    assert.match(text, /^snapshot\.\w+\nsession \d+, .*, map ctf1, tick \d+\n\nWhat happened\n/);
    assert.match(text, /<- this finding/);
    line.change = (dir, bytes) => bytes;
    await bot.leave();
    await server.stop();
    assert.equal(await proxy.drain('SIGTERM'), 0);
    line.close();
});

test('the page, the metrics and the health checks show a game', async () => {
    const folder = temporaryFolder();
    const server = await startServer({ folder, port: await freePort(), map: 'ctf1' });
    const proxy = await startProxy({ server: server.port, records: join(folder, 'records.jsonl'),
        args: ['--maps', MAPS, '--http', '0', '--state', folder] });
    assert.deepEqual(await ask(proxy, '/healthz'), { status: 200, text: 'ok\n' });
    assert.deepEqual(await ask(proxy, '/readyz'), { status: 200, text: 'ok\n' });
    assert.equal(await health(`127.0.0.1:${proxy.port}`), 0);

    const bot = await new Bot(proxy.port, '<b>&anna', { keep: true }).join();
    bot.walk();
    await waitUntil('snapshots', () => bot.snapshots.length >= SNAPSHOTS, WAIT_MS);
    const state = await waitUntil('the page to show the player', async () => {
        const now = JSON.parse((await ask(proxy, '/api/state')).text);
        return now.sessions.some(({ name, snapshots }) => name === '<b>&anna' && snapshots >= SNAPSHOTS) && now;
    }, WAIT_MS);
    const { snapshots, recording } = state;
    assert.equal(snapshots.verified, snapshots.total);
    assert.equal(recording.failed, false);
    const session = state.sessions.find(({ name }) => name === '<b>&anna');
    assert.match(session.place, /^\(\d+,\d+\) \w+$/);
    assert.equal(session.map, 'ctf1');

    const exposed = (await ask(proxy, '/metrics')).text;
    checkFormat(exposed);
    const metrics = samples(exposed);
    assert.ok(metrics.get('twscope_snapshots_total{result="verified"}') >= SNAPSHOTS);
    assert.ok(metrics.get('twscope_snapshot_items_total{item_type="character"}') >= SNAPSHOTS);
    assert.ok(metrics.get('twscope_datagrams_total{direction="s2c",result="forwarded"}') >= SNAPSHOTS);

    // Many health checks must not make twscope ask the server as often.
    const towardsServer = async () =>
        samples((await ask(proxy, '/metrics')).text).get('twscope_datagrams_total{direction="c2s",result="forwarded"}');
    await bot.leave();
    const before = await towardsServer();
    const start = Date.now();
    for (let i = 0; i < READY_ASKED; i += 1) {
        assert.equal((await ask(proxy, '/readyz')).status, 200);
    }
    const most = 2 * (2 + (Date.now() - start) / READY_HOLDS_MS);
    assert.ok(await towardsServer() - before <= most, `asked the server ${await towardsServer() - before} times`);

    // The log names the token's file, not the token, because others may read the log.
    const [, file] = /#token=\$\(cat ([^)]+)\)/.exec(proxy.child.log);
    const token = readFileSync(file, 'utf8').trim();
    assert.ok(!proxy.child.log.includes(token));
    assert.equal(statSync(file).mode & 0o777, 0o600);
    const put = (body, headers) => ask(proxy, '/api/impairment',
        { method: 'PUT', body, headers: { Authorization: `Bearer ${token}`, ...headers } });
    assert.equal((await put('s2c:delay=40ms', { Authorization: '' })).status, 401);
    assert.equal((await put('s2c:delay=40ms', { Authorization: `Bearer ${token}x` })).status, 401);
    assert.equal(JSON.parse((await ask(proxy, '/api/state')).text).impairment, 'none');
    assert.deepEqual(await put('s2c:delay=40ms'), { status: 200, text: 's2c:delay=40ms\n' });
    assert.equal((await put('s2c:delay=4')).status, 400);
    assert.equal((await put('none', { Origin: 'http://evil.example' })).status, 403);
    assert.equal(JSON.parse((await ask(proxy, '/api/state')).text).impairment, 's2c:delay=40ms');
    assert.equal((await put('none')).status, 200);

    await server.stop();
    await waitUntil('the last answer to be over', async () => (await ask(proxy, '/readyz')).status === 503, WAIT_MS);
    assert.deepEqual(await ask(proxy, '/healthz'), { status: 200, text: 'ok\n' });
    assert.deepEqual(await ask(proxy, '/readyz'),
        { status: 503, text: 'the relay forwards datagrams, but the server does not answer\n' });
    assert.equal(await health(`127.0.0.1:${proxy.port}`, '--timeout', '0.5'), 1);
    assert.equal(await proxy.drain('SIGTERM'), 0);
    assert.equal(await health(`127.0.0.1:${proxy.port}`, '--timeout', '0.5'), 1);
    // There was one player. The health checks opened no session and left no record.
    const sessions = proxy.records().filter(({ type, event }) => type === 'session' && event === 'open');
    assert.equal(sessions.length, 1);
});

/** Connects to a unix socket or a port, sends `text`, and returns the response; '' if there is none. */
const say = (where, text) => new Promise((resolve) => {
    let answer = '';
    const socket = connect(where, () => socket.write(text));
    socket.on('data', (data) => { answer += data; }).on('error', () => {}).on('close', () => resolve(answer));
});

test('other hosts need the token, the owner does not, and health checks are always answered', async () => {
    const folder = temporaryFolder();
    const path = join(folder, 'page.sock');
    const tokenFile = join(folder, 'token');
    writeFileSync(tokenFile, 'correct-horse-battery-staple\n');
    const proxy = await startProxy({ server: await freePort(), records: join(folder, 'records.jsonl'),
        args: ['--http', '0.0.0.0:0', '--http', `unix:${path}`, '--http-token-file', tokenFile] });
    const authorized = { headers: { Authorization: 'Bearer correct-horse-battery-staple' } };
    for (const [address, without, wrong] of [['/', 200, 200], ['/healthz', 200, 200], ['/readyz', 503, 503],
        ['/api/state', 401, 401], ['/metrics', 401, 401], ['/api/impairment', 401, 401]]) {
        assert.equal((await ask(proxy, address)).status, without, address);
        assert.equal((await ask(proxy, address, { headers: { Authorization: 'Bearer nonsense' } })).status, wrong, address);
        assert.equal((await ask(proxy, address, authorized)).status, without === 401 ? 200 : without, address);
        assert.equal((await ask(proxy, `${address}?token=correct-horse-battery-staple`)).status, without, address);
    }
    assert.equal(statSync(path).mode & 0o777, 0o600);
    const asked = 'PUT /api/impairment HTTP/1.1\r\nHost: x\r\nContent-Length: 7\r\n\r\nloss=1%';
    assert.match(await say(path, asked), /^HTTP\/1.1 200 [^]*loss=1%\n$/);

    // Other clients hold all connections that they may have, and send nothing.
    const [, port] = /live page on port (\d+)/.exec(proxy.child.log);
    const held = [];
    for (let each = 0; each < 100; each += 1) {
        const localAddress = `127.0.1.${each % 10 + 1}`;
        held.push(connect({ port, host: '127.0.0.1', localAddress }).on('error', () => {}));
    }
    await waitUntil('them to be there', () => held.every((socket) => !socket.connecting), WAIT_MS);
    const get = (address) => say({ port, host: '127.0.0.1' }, `GET ${address} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
    for (let each = 0; each < 20; each += 1) assert.match(await get('/healthz'), /^HTTP\/1.1 200 /);
    assert.match(await get('/'), /^HTTP\/1.1 503 [^]*too many connections/);
    for (const socket of held) socket.destroy();
    assert.equal(await proxy.drain(), 0);
});

test('an invalid token or an impossible socket gives one line and exit code 2', async () => {
    const folder = temporaryFolder();
    const short = join(folder, 'short');
    writeFileSync(short, 'short\n');
    for (const [args, says] of [[['--http', '0', '--http-token-file', short], /short: its first line is not a token/],
        [['--http', '0', '--http-token-file', join(folder, 'missing')], /missing: No such file/],
        [['--http', `unix:${join(folder, 'none', 'sock')}`], /--http: cannot listen on unix:.*No such file/],
        [['--http', `unix:${short}`], /Address already in use/],
        [['--http', 'unix:'], /expected unix:PATH/]]) {
        const child = new Child('twscope', TWSCOPE, ['proxy', '-s', '127.0.0.1:1', '-l', '127.0.0.1:0', ...args]);
        await waitUntil('it to end', () => !child.running, WAIT_MS);
        assert.equal(child.status, 2, child.log);
        assert.match(child.errors, /^[^\n]+\n$/);
        assert.match(child.errors, says);
    }
});

test('a missing page address is tried again until --start-timeout, then exit code 4', async () => {
    const folder = temporaryFolder();
    const other = createServer();
    const port = await freePort();
    await new Promise((listening) => { other.listen(port, '127.0.0.1', listening); });
    const start = (...args) => new Child('twscope', TWSCOPE,
        ['proxy', '-s', '127.0.0.1:1', '-l', '127.0.0.1:0', '--http', String(port), '--state', folder, ...args]);
    const refused = start();
    await waitUntil('it to end', () => !refused.running, WAIT_MS);
    assert.equal(refused.status, 4, refused.log);
    assert.match(refused.errors, /^twscope: --http: cannot listen on 127\.0\.0\.1:\d+: Address already in use \(ss -tlpn shows which program has the port\)\n$/);
    const patient = start('--start-timeout', '10');
    await patient.waitFor(/trying again for 10 seconds/, WAIT_MS);
    await new Promise((closed) => { other.close(closed); });
    await patient.waitFor(/live page on port \d+/, WAIT_MS);
    await patient.stop();
});
