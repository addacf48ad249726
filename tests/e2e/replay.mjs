// Replays captured clients on the real server: they are admitted and verified, and rejected in every possible way.
//   node replay.mjs TWSCOPE
// Covers: proxy/replay/replay_run.cpp, proxy/cli/replay_command.cpp
import assert from 'node:assert/strict';
import dgram from 'node:dgram';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { Bot, endPeers, random } from './bot.mjs';
import { Child, freePort, temporaryFolder, waitUntil } from './process.mjs';
import { isFreeze, readRecords, startProxy, TWSCOPE } from './proxy.mjs';
import { MAPS, startServer } from './server.mjs';
import { SEVEN_MAPS, startTeeworlds } from './teeworlds_server.mjs';

const WAIT_MS = 30000;
const ALL_MAPS = ['--maps', MAPS, '--maps', SEVEN_MAPS];
const GOLDEN = fileURLToPath(new URL('../data/golden/token-map-change.pcap', import.meta.url));
const TOKENLESS = fileURLToPath(new URL('../data/golden/tokenless-map-change.pcap', import.meta.url));

after(endPeers);

/** A running replay. */
const begin = (capture, port, ...args) => new Child('the replay', TWSCOPE,
    ['replay', capture, '-s', `127.0.0.1:${port}`, ...ALL_MAPS, ...args]);

async function finished(child) {
    await waitUntil('the replay to end', () => !child.running, WAIT_MS);
    const numbers = (pattern) => (pattern.exec(child.output) ?? []).slice(1).map(Number);
    const [clients, entered] = numbers(/clients: (\d+), (\d+) entered/);
    const [inputs, messages] = numbers(/sent: (\d+) inputs, (\d+) messages?/);
    const [snapshots, verified] = numbers(/received: (\d+) snapshots, (\d+) verified/);
    const [lostPings, pings] = numbers(/(\d+) of (\d+) pings/);
    return { status: child.status, log: child.log, clients, entered, inputs, messages, snapshots, verified, lostPings, pings };
}

const replay = (...args) => finished(begin(...args));

async function withServer(body, ...settings) {
    const folder = temporaryFolder();
    const server = await startServer({ folder, port: await freePort(), map: 'ctf1', settings });
    try {
        await body({ folder, server });
    } finally {
        await server.stop();
    }
}

/** A forwarder between clients and the server; `pass` returns what to send for each datagram of the server: itself, another one, or none. */
async function between(server, pass) {
    const listener = dgram.createSocket('udp4');
    const upstreams = new Map();
    listener.on('message', (datagram, { port }) => {
        if (!upstreams.has(port)) {
            const upstream = dgram.createSocket('udp4');
            upstreams.set(port, upstream);
            upstream.on('message', (answer) => {
                const passed = pass(answer);
                if (passed) listener.send(passed, port, '127.0.0.1');
            });
        }
        upstreams.get(port).send(datagram, server.port, '127.0.0.1');
    });
    await new Promise((resolve) => listener.bind(0, '127.0.0.1', resolve));
    return {
        port: listener.address().port,
        close() {
            for (const upstream of upstreams.values()) upstream.close();
            listener.close();
        },
    };
}

describe('replays, each on a server of its own', { concurrency: 2 }, () => {
    for (const [name, capture] of [['with a token', GOLDEN], ['without one', TOKENLESS]]) {
        test(`a client that was captured ${name} plays again through twscope, and all that it gets is verified`, () =>
            withServer(async ({ folder, server }) => {
                const proxy = await startProxy({ server: server.port, records: join(folder, 'game.jsonl'), args: ['--maps', MAPS] });
                const done = await replay(capture, proxy.port, '-o', join(folder, 'replay.jsonl'));
                assert.equal(await proxy.drain(), 0);
                assert.equal(done.status, 0, done.log);
                assert.equal(done.entered, 1);
                assert.ok(done.snapshots > 50 && done.verified === done.snapshots, done.log);
                assert.ok(done.inputs > 50, done.log);
                const seen = proxy.records();
                const ticks = (records) => records.filter(({ type, ok }) => type === 'snapshot' && ok).map(({ tick }) => tick);
                assert.deepEqual(ticks(readRecords(join(folder, 'replay.jsonl'))), ticks(seen).slice(0, done.verified));
                assert.ok(seen.filter(({ name: each }) => each === 'input').length >= done.inputs);
                assert.deepEqual(seen.filter(({ severity }) => severity === 'error'), []);
                assert.ok(seen.some(({ type, event }) => type === 'session' && event === 'close'));
                await waitUntil('the server to say goodbye', () => /has left the game/.test(server.child.log), WAIT_MS);
            }));
    }

    test('the readable part of a damaged capture is replayed, with a message and the exit code of decode', () =>
        withServer(async ({ folder, server }) => {
            const whole = readFileSync(GOLDEN);
            const endless = Buffer.alloc(16, 0x7f); // a frame longer than any valid one
            const packed = gzipSync(whole);
            packed.fill(0x55, packed.length - 8); // damages the checksum
            for (const [name, bytes, status, says] of [
                ['cut.pcap', whole.subarray(0, -10), 0, /ends in the middle of a frame; read the \d+ before it/],
                ['damaged.pcap', Buffer.concat([whole, endless]), 3, /cannot be read beyond frame \d+: /],
                ['damaged.pcap.gz', packed, 3, /its compressed data is damaged/],
            ]) {
                const capture = join(folder, name);
                writeFileSync(capture, bytes);
                const read = new Child('twscope decode', TWSCOPE, ['decode', capture]);
                assert.equal(await read.ended, status, `${name}: ${read.log}`);
                assert.match(read.errors, says);
                const done = await replay(capture, server.port, '--speed', '4');
                assert.equal(done.status, status, `${name}: ${done.log}`);
                assert.match(done.log, says);
                assert.equal(done.entered, 1, done.log);
            }
        }));

    test('16 clients replay the inputs and chat of two bots', () =>
        withServer(async ({ folder, server }) => {
            const capture = join(folder, 'bots.pcapng');
            const proxy = await startProxy({ server: server.port, records: join(folder, 'bots.jsonl'),
                args: ['--maps', MAPS, '-w', capture, '--show-secrets'] });
            const bots = [];
            for (const name of ['anna', 'bob']) bots.push((await new Bot(proxy.port, name, { keep: true }).join()).walk());
            for (const bot of bots) bot.say(`${bot.name} was here`);
            bots[0].say('/timeout stolen-code');
            for (const bot of bots) await waitUntil('play', () => bot.snapshots.length > 75, WAIT_MS);
            for (const bot of bots) await bot.leave();
            assert.equal(await proxy.drain(), 0);
            const pressed = proxy.records().filter(({ name }) => name === 'input').map(({ fields }) => JSON.stringify(fields.data));
            server.child.output = server.child.errors = '';
            const second = await startProxy({ server: server.port, records: join(folder, 'again.jsonl'), args: ['--maps', MAPS] });
            const done = await replay(capture, second.port, '--clients', '16', '--fail-on', 'error');
            assert.equal(await second.drain(), 0);
            assert.equal(done.status, 0, done.log);
            assert.deepEqual([done.clients, done.entered], [16, 16]);
            assert.ok(done.snapshots > 16 * 50 && done.verified === done.snapshots, done.log);
            assert.match(done.log, /3 messages withheld/, 'a code, and what two clients told the remote console');
            const said = server.child.log.split('\n').filter((line) => /was here/.test(line));
            assert.equal(said.length, 16, 'each says it once');
            const again = second.records();
            assert.equal(again.filter(({ type, event }) => type === 'session' && event === 'established').length, 16);
            assert.ok(!JSON.stringify(again).includes('stolen-code'));
            // One client of each bot sends the same inputs in the same order, apart from idle repetitions.
            const changes = (list) => list.filter((each, index) => each !== list[index - 1]);
            const session = (records, number) => records.filter((each) => each.session === number && each.name === 'input')
                .map(({ fields }) => JSON.stringify(fields.data));
            const whole = changes(session(proxy.records(), 1)).join();
            assert.ok(pressed.length > 100);
            assert.ok(whole.includes(changes(session(again, 1)).slice(2, -2).join()), 'pressed the same');
        }));

    /** Returns what a client of 0.7 played in a golden capture. */
    const SEVEN_CAPTURES = [['a vanilla server', 'seven-map-change'], ['a server of DDNet', 'seven-on-ddnet']];

    for (const [where, name] of SEVEN_CAPTURES) {
        test(`clients of 0.7, captured on ${where}, play again on both servers through twscope`, async () => {
            const capture = fileURLToPath(new URL(`../data/golden/${name}.pcap`, import.meta.url));
            const folder = temporaryFolder();
            const vanilla = await startTeeworlds({ folder, port: await freePort(), map: 'dm1' });
            const ddnet = await startServer({ folder: temporaryFolder(), port: await freePort(), map: 'Tutorial', settings: ['sv_sixup 1'] });
            for (const [server, protocol] of [[vanilla, '0.7'], [ddnet, '0.7+ddnet']]) {
                const proxy = await startProxy({ server: server.port, records: join(folder, `${protocol}.jsonl`), args: ALL_MAPS });
                const session = name === 'seven-on-ddnet' ? ['--session', '2'] : [];
                const done = await replay(capture, proxy.port, ...session, '--clients', '2', '--fail-on', 'error');
                assert.equal(await proxy.drain(), 0);
                assert.equal(done.status, 0, done.log);
                assert.equal(done.entered, 2, done.log);
                assert.ok(done.snapshots > 50 && done.verified === done.snapshots, done.log);
                assert.ok(done.inputs > 20, done.log);
                const seen = proxy.records();
                assert.deepEqual(seen.filter((finding) => ['error', 'warning'].includes(finding.severity) && !isFreeze(finding)), []);
                assert.deepEqual(new Set(seen.filter(({ event }) => event === 'established').map((each) => each.protocol)), new Set([protocol]));
            }
            await vanilla.stop();
            await ddnet.stop();
        });
    }

    test('--speed and --duration limit a replay', () =>
        withServer(async ({ server }) => {
            const begun = Date.now();
            const fast = await replay(GOLDEN, server.port, '--speed', '4');
            const took = Date.now() - begun;
            assert.equal(fast.status, 0, fast.log);
            assert.ok(fast.inputs > 50 && took < 4500, `${took} ms`);
            const long = await replay(GOLDEN, server.port, '--duration', '6', '--speed', '10');
            assert.equal(long.status, 0, long.log);
            assert.match(long.log, /in 6\.\d s/);
            const short = await replay(GOLDEN, server.port, '--duration', '1');
            assert.equal(short.status, 0, short.log);
            assert.match(short.log, /in 1\.\d s/);
        }));

    test('a map change during a replay does no harm', () =>
        withServer(async ({ server }) => {
            const child = begin(GOLDEN, server.port);
            await waitUntil('it to play', () => /entered and joined/.test(server.child.log), WAIT_MS);
            await server.command('change_map dm1');
            const done = await finished(child);
            assert.equal(done.status, 0, done.log);
            assert.ok(done.verified === done.snapshots && done.inputs > 30, done.log);
        }));

    test('SIGINT ends a replay early, and the clients say goodbye', () =>
        withServer(async ({ server }) => {
            const child = begin(GOLDEN, server.port, '--clients', '4', '--duration', '60');
            await waitUntil('all to play', () => (server.child.log.match(/entered and joined/g) ?? []).length === 4, WAIT_MS);
            child.signal('SIGINT');
            const done = await finished(child);
            assert.equal(done.status, 0, done.log);
            assert.match(done.log, /4 interrupted/);
            await waitUntil('four goodbyes', () => (server.child.log.match(/has left the game/g) ?? []).length === 4, WAIT_MS);
        }));

    test('a server that does not answer gives exit code 4', async () => {
        const done = await replay(GOLDEN, await freePort(), '--timeout', '1');
        assert.equal(done.status, 4, done.log);
        assert.match(done.log, /no answer from 127\.0\.0\.1:\d+; is the server running/);
        const unknown = await finished(new Child('the replay', TWSCOPE, ['replay', GOLDEN, '-s', 'no-such-host.invalid:8303']));
        assert.equal(unknown.status, 4, unknown.log);
    });

    test('a full server\'s reason is printed', () =>
        withServer(async ({ server }) => {
            const bot = await new Bot(server.port, 'anna').join();
            const done = await replay(GOLDEN, server.port, '--timeout', '3');
            assert.equal(done.status, 2, done.log);
            assert.match(done.log, /the server said: .*full/i);
            await bot.leave();
        }, 'sv_max_clients 1'));

    test('a server\'s password is requested and used', () =>
        withServer(async ({ server }) => {
            const without = await replay(GOLDEN, server.port, '--timeout', '3');
            assert.equal(without.status, 2, without.log);
            assert.match(without.log, /the server said: .*password/i);
            assert.match(without.log, /let no client in; if it needs a password, give --password/);
            const done = await replay(GOLDEN, server.port, '--password', 'sesame');
            assert.equal(done.status, 0, done.log);
        }, 'password sesame'));

    test('a client that is kicked and one whose server goes silent end with that reason', () =>
        withServer(async ({ server }) => {
            const kicked = begin(GOLDEN, server.port, '--duration', '20');
            await waitUntil('it to play', () => /entered and joined/.test(server.child.log), WAIT_MS);
            await server.command('kick 0 enough');
            const away = await finished(kicked);
            assert.equal(away.status, 3, away.log);
            assert.match(away.log, /the server said: .*Kicked/i);
            assert.match(away.log, /1 disconnected by the server/);
            await server.command('unban_all');

            let passed = 0;
            const line = await between(server, (datagram) => (passed++ < 60 ? datagram : null));
            const silent = await replay(GOLDEN, line.port, '--timeout', '1', '--duration', '20');
            line.close();
            assert.equal(silent.status, 3, silent.log);
            assert.match(silent.log, /1 timed out/);
        }));

    test('a server with false answers is detected, and the clients play on', () =>
        withServer(async ({ server }) => {
            const chance = random(7);
            const line = await between(server, (datagram) => {
                if (datagram.length < 20 || chance() > 0.2) return datagram;
                const wrong = Buffer.from(datagram);
                wrong[8 + Math.floor(chance() * (wrong.length - 12))] ^= 1 + Math.floor(chance() * 255);
                return wrong;
            });
            const done = await replay(GOLDEN, line.port, '--duration', '6', '--fail-on', 'error');
            line.close();
            assert.equal(done.status, 1, done.log);
            assert.equal(done.entered, 1);
            assert.ok(done.verified > 20 && done.verified < done.snapshots, done.log);

            // The server sends only false answers, in the right format.
            const liar = dgram.createSocket('udp4');
            liar.on('message', (datagram, { port }) => {
                const accept = Buffer.from('10000002544b454e01020304', 'hex');
                liar.send(datagram[3] === 1 ? accept : Buffer.concat([Buffer.from([0, 1, 9]), Buffer.alloc(900, chance() * 256)]), port, '127.0.0.1');
            });
            await new Promise((resolve) => liar.bind(0, '127.0.0.1', resolve));
            const fooled = await replay(GOLDEN, liar.address().port, '--timeout', '1');
            liar.close();
            assert.equal(fooled.status, 3, fooled.log);
            assert.equal(fooled.entered, 0);
        }));

    test('captures and flags that cannot be replayed are refused before any datagram is sent', async () => {
        const refused = async (args, what) => {
            const done = await finished(new Child('the replay', TWSCOPE, ['replay', ...args]));
            assert.equal(done.status, 2, done.log);
            assert.match(done.log, what);
        };
        await refused([GOLDEN], /replay needs a game server: -s HOST:PORT/);
        await refused([GOLDEN, '-s', 'nowhere'], /--server nowhere: expected HOST:PORT/);
        await refused([GOLDEN, '-s', '127.0.0.1:1', '--clients', '129'], /--clients/);
        await refused([GOLDEN, '-s', '127.0.0.1:1', '--session', '9'], /no client plays in its session 9/);
        await refused([fileURLToPath(import.meta.url), '-s', '127.0.0.1:1'], /expected a pcap or pcapng file/);
    });
});
