// Covers: proxy/run/admin_run.cpp
// The live page, the metrics and the health checks beside a real game.
//   node admin.mjs TWSCOPE
// Covers: proxy/cli/health_command.cpp, proxy/cli/http_flags.cpp
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { Bot, endPeers } from './bot.mjs';
import { Child, freePort, temporaryFolder, waitUntil } from './process.mjs';
import { startProxy, TWSCOPE } from './proxy.mjs';
import { MAPS, startServer } from './server.mjs';

const WAIT_MS = 10000;
const SNAPSHOTS = 25;

after(endPeers);

/** Runs `twscope health` and returns its exit code. */
async function health(...args) {
    const child = new Child('twscope health', TWSCOPE, ['health', ...args]);
    await waitUntil('twscope health to end', () => !child.running, WAIT_MS);
    return child.status;
}

/** Asks the page; the answer as { status, text }. */
async function ask(proxy, path, options = {}) {
    await proxy.child.waitFor(/live page on port \d+/, WAIT_MS);
    const [, port] = /live page on port (\d+)/.exec(proxy.child.log);
    const answer = await fetch(`http://127.0.0.1:${port}${path}`, options);
    return { status: answer.status, text: await answer.text() };
}

/** The samples of Prometheus' text, by name and labels. */
const samples = (text) => new Map(text.split('\n').filter((line) => line && !line.startsWith('#'))
    .map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ') + 1))]));

test('a game is seen on the page, in the metrics and by the health checks', async () => {
    const folder = temporaryFolder();
    const server = await startServer({ folder, port: await freePort(), map: 'ctf1' });
    const proxy = await startProxy({ server: server.port, records: join(folder, 'records.jsonl'),
        args: ['--maps', MAPS, '--http', '0'] });
    assert.deepEqual(await ask(proxy, '/healthz'), { status: 200, text: 'ok\n' });
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

    const metrics = samples((await ask(proxy, '/metrics')).text);
    assert.ok(metrics.get('twscope_snapshots_total{result="verified"}') >= SNAPSHOTS);
    assert.ok(metrics.get('twscope_snapshot_items_total{item_type="character"}') >= SNAPSHOTS);
    assert.ok(metrics.get('twscope_datagrams_total{direction="s2c",result="forwarded"}') >= SNAPSHOTS);

    const put = (body, headers) => ask(proxy, '/api/impairment', { method: 'PUT', body, headers });
    assert.deepEqual(await put('s2c:delay=40ms'), { status: 200, text: 's2c:delay=40ms\n' });
    assert.equal((await put('s2c:delay=4')).status, 400);
    assert.equal((await put('none', { Origin: 'http://evil.example' })).status, 403);
    assert.equal(JSON.parse((await ask(proxy, '/api/state')).text).impairment, 's2c:delay=40ms');
    assert.equal((await put('none')).status, 200);

    await bot.leave();
    await server.stop();
    assert.deepEqual(await ask(proxy, '/healthz'),
        { status: 503, text: 'the relay passes datagrams on, but the server does not answer\n' });
    assert.equal(await health(`127.0.0.1:${proxy.port}`, '--timeout', '0.5'), 1);
    assert.equal(await proxy.drain('SIGTERM'), 0);
    assert.equal(await health(`127.0.0.1:${proxy.port}`, '--timeout', '0.5'), 1);
});
