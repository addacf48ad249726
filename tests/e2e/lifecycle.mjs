// Covers: proxy/process/server_probe.cpp
// Events around the game: map changes, leaving and returning, ending, and missing servers, files and ports.
//   node lifecycle.mjs TWSCOPE
import assert from 'node:assert/strict';
import dgram from 'node:dgram';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { Bot, endPeers } from './bot.mjs';
import { GameMap } from './map_reader.mjs';
import { Child, freePort, temporaryFolder, waitUntil } from './process.mjs';
import { startProxy, TWSCOPE } from './proxy.mjs';
import { MAPS, startServer } from './server.mjs';

const SNAPSHOTS = 25; // about one second of play
const WAIT_MS = 10000;

after(endPeers);
const folder = temporaryFolder();
let files = 0;
const recordsFile = () => join(folder, `records-${files += 1}.jsonl`);

/** Runs `body` with a server and twscope before it; ends both afterwards. */
async function withServer(body, args = []) {
    const server = await startServer({ folder, port: await freePort(), map: 'ctf1' });
    const proxy = await startProxy({ server: server.port, records: recordsFile(), args: ['--maps', MAPS, ...args] });
    try {
        await body({ server, proxy });
    } finally {
        await proxy.child.stop();
        await server.stop();
    }
}

const snapshotsSeen = (bot, count) => waitUntil(`${bot.name} to see ${count} snapshots`,
    () => bot.snapshots.length >= count, WAIT_MS);

async function enter(proxy, name, seed = 1) {
    const bot = await new Bot(proxy.port, name, { seed, keep: true }).join();
    await snapshotsSeen(bot.walk(), SNAPSHOTS);
    return bot;
}

const of = (records, type) => records.filter((record) => record.type === type);
const bad = (records) => of(records, 'snapshot').filter((record) => !record.ok);

/** Runs twscope with these arguments until it ends. */
async function run(...args) {
    const child = new Child('twscope', TWSCOPE, args);
    await waitUntil(`twscope ${args.join(' ')} to end`, () => !child.running, WAIT_MS);
    return child;
}

/** Expects one line on stderr with the reason, no output on stdout, and exit code 2, or 4 if a later try may succeed. */
function refused(child, what, code = 2) {
    assert.equal(child.status, code, child.log);
    assert.equal(child.output, '');
    assert.match(child.errors, /^[^\n]+\n$/);
    assert.match(child.errors, what);
}

test('after a map change, the new map is found, and every snapshot before and after is verified', () =>
    withServer(async ({ server, proxy }) => {
        const bots = [await enter(proxy, 'anna', 1), await enter(proxy, 'bob', 2)];
        const before = bots.map((bot) => bot.snapshots.length);
        await server.command('change_map ctf5');
        for (const [index, bot] of bots.entries()) {
            await waitUntil(`${bot.name} to play on the new map`, () => bot.snapshots.slice(before[index])
                .filter((snapshot) => snapshot.tick < bot.snapshots[before[index] - 1].tick).length > SNAPSHOTS, WAIT_MS);
        }
        for (const bot of bots) await bot.leave();
        assert.equal(await proxy.drain(), 0);
        const records = proxy.records();
        assert.deepEqual(bad(records), []);
        for (const session of [1, 2]) {
            const maps = of(records, 'map').filter((record) => record.session === session);
            assert.deepEqual(maps.map(({ name, crc, source }) => [name, crc, source]), ['ctf1', 'ctf5']
                .map((name) => [name, new GameMap(join(MAPS, `${name}.map`)).crc, 'folder']));
        }
    }));

test('a client that leaves and returns has two sessions with verified snapshots', () =>
    withServer(async ({ proxy }) => {
        const first = await enter(proxy, 'anna');
        await first.leave();
        const again = await enter(proxy, 'anna');
        const port = again.port;
        await again.stepOut();
        assert.equal(again.port, port);
        const seen = again.snapshots.length;
        await again.join();
        await snapshotsSeen(again, seen + SNAPSHOTS);
        await again.leave();
        assert.equal(await proxy.drain(), 0);
        const records = proxy.records();
        assert.deepEqual(bad(records), []);
        assert.equal(of(records, 'session').filter((record) => record.event === 'established').length, 3);
        assert.ok(of(records, 'snapshot').length >= 3 * SNAPSHOTS);
    }));

for (const signal of ['SIGINT', 'SIGTERM']) {
    test(`${signal} in the middle of play: exit code 0, and the summaries are written`, () =>
        withServer(async ({ proxy }) => {
            const bot = await enter(proxy, 'anna');
            assert.equal(await proxy.drain(signal), 0);
            const records = proxy.records();
            assert.deepEqual(of(records, 'summary').map((record) => record.session).sort(), [0, 1]);
            assert.equal(of(records, 'session').filter((record) => record.event === 'close').length, 1);
            bot.vanish();
        }));
}

test('without a server, clients get no answer, and twscope serves them once the server starts', async () => {
    const port = await freePort();
    const proxy = await startProxy({ server: port, records: recordsFile(), args: ['--maps', MAPS] });
    const lost = new Bot(proxy.port, 'lost');
    await assert.rejects(lost.join(2000), /waited 2000 ms/);
    lost.vanish();
    assert.ok(proxy.child.running);
    const server = await startServer({ folder, port, map: 'ctf1' });
    const bot = await enter(proxy, 'found');
    await bot.leave();
    assert.equal(await proxy.drain(), 0);
    await server.stop();
});

test('if the server dies during a game, twscope keeps running and ends cleanly', () =>
    withServer(async ({ server, proxy }) => {
        const bot = await enter(proxy, 'anna');
        await server.child.stop('SIGKILL');
        const sent = of(proxy.records(), 'snapshot').length;
        await new Promise((resolve) => { setTimeout(resolve, 500); });
        assert.ok(proxy.child.running, proxy.child.log);
        await bot.leave();
        assert.equal(await proxy.drain(), 0);
        assert.ok(of(proxy.records(), 'snapshot').length >= sent);
    }));

/** Returns the live page's state of the run. */
async function pageState(proxy) {
    const [, port] = /live page on port (\d+)/.exec(proxy.child.log);
    return (await fetch(`http://127.0.0.1:${port}/api/state`)).json();
}

/** The server stops answering by `begin` and answers again by `end`; the log and the page must say so. */
async function silence(proxy, begin, end) {
    await proxy.child.waitFor(/live page on port \d+/, WAIT_MS);
    await begin();
    await proxy.child.waitFor(/does not answer/, WAIT_MS);
    const silent = await waitUntil('the page to say that the server is silent', async () => {
        const state = await pageState(proxy);
        return state.server_silent && state;
    }, WAIT_MS);
    assert.ok(silent.server_unanswered >= 3);
    assert.ok(silent.server_silent_since_ms <= Date.now());
    await end();
    await proxy.child.waitFor(/answers again/, WAIT_MS);
    assert.equal((await pageState(proxy)).server_silent, false);
}

/** Log and records must report each change once, and the console nothing, which may share the log's file. */
function checkVoices(proxy, server) {
    const told = of(proxy.records(), 'finding').filter(({ id }) => id === 'session.server_silent');
    assert.deepEqual(told.map(({ detail, name }) => [detail, name]),
        ['began', 'ended'].map((detail) => [detail, `127.0.0.1:${server}`]));
    assert.ok(told.every(({ lost, value }) => lost >= 3 && value >= 3000), JSON.stringify(told));
    for (const line of [`the server 127.0.0.1:${server} does not answer`, `the server 127.0.0.1:${server} answers again`]) {
        assert.equal(proxy.child.errors.split(line).length, 2, proxy.child.errors);
        assert.doesNotMatch(proxy.child.output, new RegExp(line));
    }
}

test('a server that starts late is reported once as silent and once as answering', async () => {
    const port = await freePort();
    const proxy = await startProxy({ server: port, records: recordsFile(), args: ['--maps', MAPS, '--http', '0'] });
    const bot = new Bot(proxy.port, 'patient', { keep: true, options: { timeout: 60000 } });
    const joined = bot.join(4 * WAIT_MS);
    let server;
    await silence(proxy, () => {}, async () => {
        await proxy.child.waitFor(/ 0 snapshots\/s, 1 server silent since \d/, WAIT_MS);
        server = await startServer({ folder, port, map: 'ctf1' });
    });
    assert.match(proxy.child.errors, /refused: nothing listens there/);
    await joined;
    await bot.leave();
    assert.equal(await proxy.drain(), 0);
    checkVoices(proxy, port);
    await server.stop();
});

test('a server that is stopped and continued is reported once as silent and once as answering', () =>
    withServer(async ({ server, proxy }) => {
        const bot = await enter(proxy, 'anna');
        await silence(proxy, () => server.child.signal('SIGSTOP'), () => server.child.signal('SIGCONT'));
        await bot.leave();
        assert.equal(await proxy.drain(), 0);
        checkVoices(proxy, server.port);
    }, ['--http', '0']));

test('a port in use gives one line and exit code 4; with --start-timeout, twscope waits for it', async () => {
    const socket = dgram.createSocket('udp4');
    await new Promise((resolve) => { socket.bind(0, '127.0.0.1', resolve); });
    const { port } = socket.address();
    const args = ['proxy', '-s', '127.0.0.1:1', '-l', `127.0.0.1:${port}`, '-o', recordsFile()];
    refused(await run(...args), new RegExp(`${port}`), 4);
    const waiting = new Child('twscope', TWSCOPE, [...args, '--start-timeout', '1min']);
    await waiting.waitFor(/in use .*; trying again for 60 seconds/, WAIT_MS);
    socket.close();
    await waiting.waitFor(/listening on/, WAIT_MS);
    assert.equal(await waiting.stop(), 0);
});

test('impossible settings give one line and exit code 2, or 4 for a name that may resolve later', async () => {
    const noise = join(folder, 'noise');
    writeFileSync(noise, Buffer.from('this is neither a capture nor a map, but it is long enough to be read as one'));
    const listen = ['-l', `127.0.0.1:${await freePort()}`];
    refused(await run('proxy', ...listen, '-s', 'no-such-host.invalid:8303', '-o', recordsFile()), /no-such-host\.invalid/, 4);
    refused(await run('proxy', ...listen, '-s', '127.0.0.1:1', '--maps', join(folder, 'nowhere'), '-o', recordsFile()), /nowhere/);
    refused(await run('proxy', ...listen, '-s', '127.0.0.1:1', '-o', join(folder, 'nowhere', 'x.jsonl')), /nowhere/);
    refused(await run('decode', join(folder, 'missing.pcap')), /missing\.pcap/);
    refused(await run('decode', noise), /noise/);
    refused(await run('map', noise), /noise/);
    refused(await run('map', join(folder, 'missing.map')), /missing\.map/);
});

test('on a full disk, recording stops with one line and a count, and the game continues', async () => {
    const server = await startServer({ folder, port: await freePort(), map: 'ctf1' });
    const proxy = await startProxy({ server: server.port, records: '/dev/full', args: ['--maps', MAPS, '--items', 'all'] });
    const bot = await enter(proxy, 'anna');
    await snapshotsSeen(bot, 3 * SNAPSHOTS);
    assert.ok(proxy.child.running, proxy.child.log);
    await bot.leave();
    assert.equal(await proxy.drain(), 3, 'what is missing in the records fails the run');
    await server.stop();
    for (const line of [/error.*\/dev\/full.*stopped/g, /\d+ records? could not be written/g]) {
        assert.equal(proxy.child.errors.match(line)?.length, 1, proxy.child.errors);
    }
});
