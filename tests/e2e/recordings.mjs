// Recordings survive kill -9, a full disk, and being moved, removed and truncated while in use; and they can be read while they grow.
//   [TW_RECORDING_KILLS=50] [TW_RECORDING_FULL=20] [TW_RECORDING_RESTARTS=20] node recordings.mjs TWSCOPE
// Covers: proxy/cli/recording_flags.cpp, proxy/cli/records_command.cpp, proxy/cli/records_files.cpp, proxy/pipeline/record_outputs.cpp
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { copyFileSync, cpSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { after, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Bot, endPeers, plays, SNAPSHOTS } from './bot.mjs';
import { asRoot } from './namespaces.mjs';
import { need } from './need.mjs';
import { Child, freePort, runToEnd, temporaryFolder, waitUntil } from './process.mjs';
import { startProxy, TWSCOPE } from './proxy.mjs';
import { MAPS, startServer } from './server.mjs';

const KILLS = Number(process.env.TW_RECORDING_KILLS ?? 4);
const FULL = Number(process.env.TW_RECORDING_FULL ?? 2);
const RESTARTS = Number(process.env.TW_RECORDING_RESTARTS ?? 3);
const WAIT_MS = 20000;
const TRIES = 20;
const FORMS = ['jsonl', 'jsonl.zst'];

need('/usr/bin/zstdcat', MAPS);
asRoot();
after(endPeers);
const top = temporaryFolder();
let games = 0;

const linesOf = (text) => text.split('\n').slice(0, -1).map((line) => JSON.parse(line));

/** Returns a file's contents as text; the file may be growing. */
function textOf(file) {
    if (!file.endsWith('.zst') || statSync(file).size === 0) return readFileSync(file, 'utf8');
    for (let tries = 1; ; tries += 1) {
        const read = spawnSync('zstdcat', [file], { encoding: 'utf8', maxBuffer: 1 << 30 });
        if (read.status !== 0 && /premature end/.test(read.stderr) && tries < TRIES) continue; // a frame is being written at this moment
        assert.equal(read.status, 0, read.stderr);
        return read.stdout;
    }
}

const recordsIn = (file) => linesOf(textOf(file));
const ticksIn = (records) => records.filter(({ type }) => type === 'snapshot').map(({ tick }) => tick);

/** Waits until the file has the last snapshot that the bot has seen so far. */
async function holds(file, bot) {
    const { tick } = bot.snapshots.at(-1);
    await waitUntil('the records to be there', () => ticksIn(recordsIn(file)).includes(tick), WAIT_MS);
}

/** Returns a server, and a function that starts twscope before it. */
async function withServer(body) {
    games += 1;
    const folder = join(top, `${games}`);
    mkdirSync(folder);
    const server = await startServer({ folder, port: await freePort(), map: 'ctf1',
        // Players of a killed run stay in the game until they time out.
        settings: ['sv_max_clients_per_ip 64', 'conn_timeout 5'] });
    const proxies = [];
    const record = async (records, ...args) => {
        const proxy = await startProxy({ server: server.port, records, args: ['--maps', MAPS, ...args] });
        proxies.push(proxy);
        return proxy;
    };
    const join_ = async (proxy, name = 'anna') => (await new Bot(proxy.port, name, { keep: true }).join()).walk();
    try {
        await body({ folder, server, record, enter: join_ });
    } finally {
        for (const proxy of proxies) await proxy.child.stop();
        await server.stop();
    }
}

/** Each snapshot that the bot saw must be recorded exactly once. */
function holdsAll(ticks, bot) {
    assert.deepEqual(ticks, [...new Set(ticks)].sort((a, b) => a - b));
    const missing = bot.snapshots.filter(({ tick }) => !ticks.includes(tick)).map(({ tick }) => tick);
    assert.deepEqual(missing, []);
}

describe('recordings, each of a game of its own', { concurrency: 3 }, () => {
    for (const form of ['records/', 'game.jsonl']) {
        test(`${form}: one twscope writes to it: a second one is refused, a takeover has it, and a killed one leaves no lock`, () =>
            withServer(async ({ folder, server, record, enter }) => {
                const path = join(folder, form);
                const state = join(folder, 'state');
                const isRefused = async () => {
                    const { status, stderr } = await runToEnd(TWSCOPE, ['proxy', '-s', `127.0.0.1:${server.port}`, '-l', '127.0.0.1:0', '-o', path]);
                    assert.match(stderr, /another process is recording to it; stop that one, or name another/);
                    assert.equal(status, 2);
                };
                const first = await record(path, '--state', state);
                await isRefused();
                const next = await startProxy({ server: server.port, listen: first.port, records: path, args: ['--maps', MAPS, '--state', state, '--takeover'] });
                await first.child.ended;
                const bot = await enter(next);
                await plays(bot); // by then it goes on with the recording
                await isRefused();
                process.kill(-next.child.process.pid, 'SIGKILL');
                await next.child.ended;
                bot.vanish();
                const last = await record(path, '--state', state);
                assert.equal(await last.drain(), 0);
                const { status, stdout } = spawnSync(TWSCOPE, ['records', path, '--verify'], { encoding: 'utf8' });
                assert.match(stdout, /^\d+ files?[^\n]*\n1 session without an end: cut off[^\n]*\nincomplete\n$/);
                assert.equal(status, 3);
            }));
    }

    for (const form of FORMS) {
        test(`${form}: it can be read while it grows, and another run goes on behind it`, () =>
            withServer(async ({ folder, record, enter }) => {
                const file = join(folder, `game.${form}`);
                let before = '';
                for (let run = 1; run <= RESTARTS; run += 1) {
                    const proxy = await record(file);
                    const bot = await enter(proxy);
                    await plays(bot);
                    await holds(file, bot);
                    assert.ok(textOf(file).startsWith(before));
                    await bot.leave();
                    assert.equal(await proxy.drain(), 0);
                    const text = textOf(file);
                    assert.ok(text.startsWith(before));
                    holdsAll(ticksIn(linesOf(text.slice(before.length))), bot);
                    before = text;
                }
                assert.equal(linesOf(before).filter(({ type, session }) => type === 'summary' && session === 0).length, RESTARTS);
            }));

        test(`${form}: killed ${KILLS} times, what was there once is there for good, and what follows can be read`, () =>
            withServer(async ({ folder, record, enter }) => {
                const file = join(folder, `game.${form}`);
                let before = '';
                for (let kill = 1; kill <= KILLS; kill += 1) {
                    const proxy = await record(file);
                    assert.ok(textOf(file).startsWith(before));
                    const bot = await enter(proxy);
                    await plays(bot, 10 + 7 * kill % 20);
                    await holds(file, bot);
                    before = textOf(file);
                    process.kill(-proxy.child.process.pid, 'SIGKILL');
                    await proxy.child.ended;
                    bot.vanish();
                    // Appends what a power failure leaves: the beginning of a record.
                    const whole = readFileSync(file);
                    if (kill % 2 === 0) writeFileSync(file, Buffer.concat([whole, whole.subarray(0, 9)]));
                }
                const proxy = await record(file);
                const bot = await enter(proxy);
                await plays(bot);
                await bot.leave();
                assert.equal(await proxy.drain(), 0);
                if (KILLS % 2 === 0) assert.match(proxy.child.errors, /ended in the middle of a record: removed its last 9 bytes/);
                const text = textOf(file);
                assert.ok(text.startsWith(before));
                assert.equal(linesOf(text).at(-1).type, 'summary');
            }));

        test(`${form}: moved away, removed and emptied under it, it goes on, and says where`, () =>
            withServer(async ({ folder, record, enter }) => {
                const file = join(folder, `game.${form}`);
                const proxy = await record(file);
                const bot = await enter(proxy);
                await plays(bot);
                renameSync(file, `${file.replace('.jsonl', '-moved.jsonl')}`);
                await waitUntil('another file', () => readdirSync(folder).includes(`game.${form}`), WAIT_MS);
                await plays(bot);
                await holds(file, bot);
                const moved = file.replace('.jsonl', '-moved.jsonl');
                const ticks = [...ticksIn(recordsIn(moved)), ...ticksIn(recordsIn(file))];
                holdsAll(ticks, { snapshots: bot.snapshots.filter(({ tick }) => tick <= ticks.at(-1)) });
                rmSync(file);
                await waitUntil('another file', () => readdirSync(folder).includes(`game.${form}`), WAIT_MS);
                await plays(bot);
                await holds(file, bot);
                const copy = join(folder, `copy.${form}`);
                copyFileSync(file, copy);
                truncateSync(file, 0);
                await plays(bot);
                await holds(file, bot);
                await bot.leave();
                assert.equal(await proxy.drain(), 0);
                recordsIn(copy);
                assert.equal(recordsIn(file).at(-1).type, 'summary');
            }));

        test(`${form}: a disk that is full ${FULL} times and free again loses nothing; one that stays full is reported`, async () => {
            const disk = join(top, `disk-${form}`);
            mkdirSync(disk);
            const holder = new Child('a small disk', 'unshare', ['-m', 'sh', '-c',
                `mount -t tmpfs -o size=4m none '${disk}' && echo mounted && exec sleep infinity`]);
            await waitUntil('the disk', () => /mounted/.test(holder.output) || !holder.running, WAIT_MS);
            assert.ok(holder.running, holder.log);
            const inside = (path) => join(`/proc/${holder.process.pid}/root`, path);
            await withServer(async ({ server, enter }) => {
                const start = async (file) => {
                    const port = await freePort();
                    const child = new Child('twscope', 'nsenter', ['-t', `${holder.process.pid}`, '-m', '-r', resolve(TWSCOPE), 'proxy', '-s',
                        `127.0.0.1:${server.port}`, '-l', `127.0.0.1:${port}`, '-o', file, '--maps', MAPS]);
                    await child.waitFor(/the server sees/, WAIT_MS);
                    const bot = await enter({ port });
                    await plays(bot);
                    return { child, bot };
                };
                const end = async ({ child, bot }) => {
                    await bot.leave();
                    child.signal('SIGINT');
                    return child.ended;
                };
                const file = join(disk, `game.${form}`);
                const { child, bot } = await start(file);
                const filler = inside(join(disk, 'filler'));
                const fill = () => spawnSync('dd', ['if=/dev/zero', `of=${filler}`, 'bs=4096']);
                const says = (what, count) => waitUntil(what, () =>
                    (child.errors.match(new RegExp(what, 'g')) ?? []).length >= count, WAIT_MS);
                for (let time = 1; time <= FULL; time += 1) {
                    fill();
                    await says('stopped: No space left on device', time);
                    await plays(bot);
                    if (form === 'jsonl') recordsIn(inside(file));
                    rmSync(filler);
                    await says('recording to \\S+ resumed', time);
                }
                await plays(bot);
                assert.equal(await end({ child, bot }), 0, child.log);
                const records = recordsIn(inside(file));
                holdsAll(ticksIn(records), bot);
                assert.deepEqual(records.filter(({ type }) => type === 'records_lost'), []);
                fill();
                const full = await start(join(disk, `full.${form}`));
                assert.equal(await end(full), 3, full.child.log);
                assert.match(full.child.errors, /recorded nothing; \d+ records are missing\n$/);
            });
            await holder.stop();
        });
    }

    test('segments follow each other without a gap and can be read alone', () =>
        withServer(async ({ folder, record, enter }) => {
            const recordings = join(folder, 'recordings');
            const proxy = await record(`${recordings}/`, '--rotate', '2s');
            const bot = await enter(proxy);
            await plays(bot, 5 * SNAPSHOTS);
            const late = await enter(proxy, 'bob');
            await plays(late, 2 * SNAPSHOTS);
            const before = readdirSync(recordings).length;
            proxy.child.signal('SIGHUP');
            await waitUntil('another segment', () => readdirSync(recordings).length > before, WAIT_MS);
            await plays(bot);
            await late.leave();
            await bot.leave();
            assert.equal(await proxy.drain(), 0);
            const files = readdirSync(recordings).sort();
            assert.ok(files.length >= 4, files.join());
            const all = [];
            for (const [index, name] of files.entries()) {
                assert.match(name, /^records-\d{8}T\d{6}Z-\d{4,}\.jsonl\.zst$/);
                assert.ok(name.endsWith(`-${`${index + 1}`.padStart(4, '0')}.jsonl.zst`));
                const records = recordsIn(join(recordings, name));
                const opened = new Set();
                const mapped = new Set();
                const whole = new Set();
                for (const { type, session, event, full } of records) {
                    if (session === 0) continue;
                    if (type === 'session' && event === 'open') opened.add(session);
                    assert.ok(opened.has(session), `${name}: session ${session} is not opened`);
                    if (type === 'map') mapped.add(session);
                    if (type !== 'snapshot') continue;
                    assert.ok(mapped.has(session), `${name}: session ${session} has no map`);
                    assert.ok(full || whole.has(session), `${name}: the first snapshot of session ${session} is not whole`);
                    whole.add(session);
                }
                all.push(...records);
            }
            const sessions = all.filter(({ type, event, again }) => type === 'session' && event === 'open' && !again);
            assert.equal(sessions.length, 2);
            holdsAll(ticksIn(all.filter(({ session }) => session === sessions[0].session)), bot);
            holdsAll(ticksIn(all.filter(({ session }) => session === sessions[1].session)), late);
        }));

    const run = (...args) => {
        const done = spawnSync(TWSCOPE, args, { encoding: 'utf8', maxBuffer: 1 << 30 });
        return { status: done.status, out: done.stdout, log: done.stderr };
    };

    test('each segment has the impairment', () =>
        withServer(async ({ folder, record, enter }) => {
            const recordings = join(folder, 'recordings/');
            const proxy = await record(recordings, '--rotate', '2s', '--impair', 's2c:delay=5ms');
            const bot = await enter(proxy);
            await plays(bot, 6 * SNAPSHOTS);
            await bot.leave();
            assert.equal(await proxy.drain(), 0);
            const files = readdirSync(recordings).sort();
            assert.ok(files.length >= 3, files.join());
            for (const name of files.slice(0, -1)) {
                assert.ok(recordsIn(join(recordings, name)).some(({ type, settings }) => type === 'impairment' && /5ms/.test(settings)), name);
            }
        }));

    test('segments are read as one recording, while they grow and when they are complete', () =>
        withServer(async ({ folder, record, enter }) => {
            const recordings = join(folder, 'recordings/');
            const proxy = await record(recordings, '--rotate', '2s', '--items', 'all');
            const bot = await enter(proxy);
            await plays(bot);
            const follower = new Child('a follower', TWSCOPE, ['records', '-f', recordings, '--filter', 'snapshot']);
            await plays(bot, 4 * SNAPSHOTS);
            await bot.leave();
            assert.equal(await proxy.drain(), 0);
            const lines = run('records', recordings).out.split('\n').slice(0, -1);
            const all = lines.map((line) => JSON.parse(line));
            await waitUntil('the follower to see all', () => follower.output.includes(lines.filter((line) =>
                line.includes('"type":"snapshot"')).at(-1)), WAIT_MS);
            follower.signal('SIGINT');
            assert.equal(await follower.ended, 0, follower.log);
            holdsAll(ticksIn(all), bot);
            holdsAll(ticksIn(linesOf(follower.output)), bot);
            assert.equal(all.filter(({ again }) => again).length, 0);
            assert.equal(all.filter(({ event }) => event === 'open').length, 1);
            assert.deepEqual(linesOf(run('records', recordings, '--session', '1', '--filter', 'type == map').out),
                all.filter(({ type, session }) => session === 1 && type === 'map'));
            const { t } = all[Math.floor(all.length / 2)];
            // What a session began with comes first, marked: without its map no position could be read.
            const from = (time, path = recordings) => linesOf(run('records', path, '--from', time).out);
            assert.deepEqual(from(t).filter(({ again }) => !again), all.filter((each) => each.t >= t));
            assert.deepEqual(from(t).filter(({ again }) => again).map(({ type, event }) => event ?? type), ['open', 'established', 'map']);
            assert.deepEqual(linesOf(run('records', recordings, '--to', t).out), all.filter((each) => each.t < t));
            const rows = run('records', recordings, '--columns', 't,tick,items.player,items.at.x').out.split('\r\n').slice(0, -1);
            const tees = all.flatMap(({ t: time, tick, items }) => (items ?? []).filter(({ player, at }) => player ?? at)
                .map(({ player, at }) => [time, tick, player ?? '', at?.x ?? ''].join()));
            assert.deepEqual(rows, ['t,tick,items.player,items.at.x', ...tees]);

            // Only one of several recordings is followed.
            const both = join(folder, 'both/');
            mkdirSync(both);
            for (const name of ['a', 'b']) writeFileSync(join(both, `${name}-20261121T161530Z-0001.jsonl`), `${lines[0]}\n`);
            const other = new Child('a follower', TWSCOPE, ['records', '-f', both]);
            await waitUntil('both to be read', () => linesOf(other.output).length === 2, WAIT_MS);
            other.signal('SIGINT');
            assert.equal(await other.ended, 0, other.log);
            assert.match(other.log, /contains 2 recordings; following only 'b'/);

            // Files before the requested time are not opened.
            const part = join(folder, 'part/');
            cpSync(recordings, part, { recursive: true });
            writeFileSync(join(part, readdirSync(part).sort()[0]), 'no recording\n');
            const last = all.at(-5).t;
            assert.deepEqual(from(last, part).filter(({ again }) => !again), all.filter((each) => each.t >= last));

            const verified = run('records', recordings, '--verify');
            assert.equal(verified.status, 0, verified.out);
            assert.match(verified.out, /\ncomplete\n$/);
            const files = readdirSync(recordings).sort();
            assert.ok(files.length > 2);
            rmSync(join(recordings, files[1]));
            assert.match(run('records', recordings, '--verify').out, /^1 segment missing[^]*incomplete\n$/m);

            const one = join(folder, 'one.jsonl');
            const packed = `${one}.zst`;
            for (const file of [one, packed]) assert.equal(run('records', recordings, '-o', file).status, 0);
            assert.equal(textOf(packed), textOf(one));
            const bytes = readFileSync(packed);
            writeFileSync(packed, bytes.subarray(0, bytes.length - 5));
            const damaged = run('records', packed, '--verify');
            assert.equal(damaged.status, 3);
            assert.match(damaged.out, /ends? in the middle of a record/);
            writeFileSync(packed, bytes);
            for (const [name, file] of [['plain', one], ['packed', packed]]) {
                assert.equal(run('map', join(MAPS, 'ctf1.map'), '--png', join(folder, `${name}.png`), '--path', file).status, 0);
            }
            assert.deepEqual(readFileSync(join(folder, 'packed.png')), readFileSync(join(folder, 'plain.png')));
            assert.equal(run('explain', packed).out.replaceAll(packed, one), run('explain', one).out);
        }));

    test('a compressed capture gives the records of the uncompressed one', () => {
        const capture = fileURLToPath(new URL('../data/golden/token-map-change.pcap', import.meta.url));
        const packed = join(top, 'traffic.pcap.zst');
        execFileSync('zstd', ['-q', capture, '-o', packed]);
        const [plain, same] = [capture, packed].map((file) => run('decode', file, '-o', '-'));
        assert.equal(same.status, 0, same.log);
        assert.equal(same.out, plain.out);
        writeFileSync(packed, 'no capture\n');
        assert.match(run('decode', packed, '-o', '-').log, /expected a pcap or pcapng file/);
    });

    test('after an observer is killed, or a takeover, recording continues in another segment', () =>
        withServer(async ({ folder, server, record, enter }) => {
            const recordings = join(folder, 'game.jsonl');
            const args = ['--rotate', '1h,1MiB', '--state', join(folder, 'state')];
            const proxy = await record(recordings, ...args);
            const bot = await enter(proxy);
            await plays(bot);
            process.kill(proxy.observer(), 'SIGKILL');
            await proxy.child.waitFor(/running again/, WAIT_MS);
            await plays(bot);
            const next = new Child('another twscope', TWSCOPE, ['proxy', '-s', `127.0.0.1:${server.port}`, '-l',
                `127.0.0.1:${proxy.port}`, '-o', recordings, '--maps', MAPS, ...args, '--takeover']);
            await next.waitFor(/took over \d+ sessions?/, WAIT_MS);
            await plays(bot);
            await bot.leave();
            next.signal('SIGINT');
            await next.ended;
            assert.equal(next.status, 0, next.log);
            const files = readdirSync(folder).filter((name) => name.startsWith('game-')).sort();
            assert.equal(files.length, 3, files.join());
            for (const name of files) {
                assert.match(name, /^game-\d{8}T\d{6}Z-000[123]\.jsonl$/);
                assert.ok(recordsIn(join(folder, name)).length > 0);
            }
        }));

    test('flags that exclude each other are refused', () => {
        const refused = (args, what) => {
            const run = spawnSync(TWSCOPE, ['proxy', '-s', '127.0.0.1:1', '-l', '127.0.0.1:0', ...args], { encoding: 'utf8' });
            assert.equal(run.status, 2, run.stderr);
            assert.match(run.stderr, what);
        };
        const foreign = join(top, 'notes.zst');
        writeFileSync(foreign, 'dear diary\n');
        refused(['-o', join(top, 'a.jsonl'), '--keep', '1d'], /--keep deletes segments/);
        refused(['-o', '-', '--rotate', '1h'], /--rotate needs/);
        refused(['-o', join(top, 'a.jsonl'), '--rotate', '1x'], /--rotate 1x: expected a time/);
        refused(['-o', join(top, 'a.jsonl'), '--rotate', '1h,2h'], /--rotate 1h,2h: expected/);
        refused(['-o', join(top, 'a.jsonl'), '--rotate', '0s'], /--rotate 0s: expected/);
        refused(['-o', foreign], /notes\.zst contains something other/);
        refused(['-o', join(top, 'no/folder/')], /no\/folder\/: No such file/);
        for (const [args, what] of [[[join(top, 'nothing')], /nothing: No such file/], [[top], /no segments/],
            [[foreign, '--from', '20:15'], /--from 20:15: the recording does not begin/], [[foreign, '--filter', 'size_bytes > 1'], /recorded lines have no size_bytes/],
            [[foreign, '-o', 'a.csv'], /--columns/]]) {
            const { status, log } = run('records', ...args);
            assert.equal(status, 2, log);
            assert.match(log, what);
        }
        assert.equal(execFileSync('cat', [foreign], { encoding: 'utf8' }), 'dear diary\n');
    });
});
