// Captures of live runs (-w): in segments, after a kill, moved and truncated while in use; and pipes that nobody reads.
//   [TW_RECORDING_KILLS=50] node captures.mjs TWSCOPE
// Covers: proxy/pipeline/record_outputs.cpp, proxy/cli/inspect_flags.cpp
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { Bot, endPeers, plays, SNAPSHOTS } from './bot.mjs';
import { need } from './need.mjs';
import { Child, freePort, isBound, temporaryFolder, waitUntil } from './process.mjs';
import { startProxy, TWSCOPE } from './proxy.mjs';
import { MAPS, startServer } from './server.mjs';

const KILLS = Number(process.env.TW_RECORDING_KILLS ?? 3);
const WAIT_MS = 20000;
const TSHARK = '/usr/bin/tshark';

need(TSHARK, MAPS);
after(endPeers);
const top = temporaryFolder();
let games = 0;

const run = (command, ...args) => spawnSync(command, args, { encoding: 'utf8', maxBuffer: 1 << 30 });

function linesOf(command, ...args) {
    const done = run(command, ...args);
    assert.equal(done.status, 0, done.stderr);
    return done.stdout.split('\n').slice(0, -1);
}

const decoded = (...files) => linesOf(TWSCOPE, 'decode', ...files, '--maps', MAPS, '--items', 'all', '--show-secrets', '-o', '-')
    .map((line) => JSON.parse(line));

/** Returns what happened in the game, without what depends on the recording. */
const seen = (records) => records.filter(({ type }) => ['message', 'snapshot', 'map', 'finding'].includes(type))
    .map(({ full, ...rest }) => rest);

/** Returns the snapshots of each client with their items, because a capture numbers its sessions differently. */
function snapshotsByClient(records) {
    const clients = new Map();
    const snapshots = new Map();
    for (const record of records) {
        if (record.event === 'open') clients.set(record.session, `${record.client} ${record.server}`);
        if (record.type !== 'snapshot') continue;
        const { t, session, full, ...rest } = record;
        const client = clients.get(session);
        snapshots.set(client, [...snapshots.get(client) ?? [], rest]);
    }
    return snapshots;
}

/** Returns the announced maps. */
const mapsIn = (records) => new Set(records.filter(({ type }) => type === 'map')
    .map(({ name, crc, size, sha256, source }) => JSON.stringify([name, crc, size, sha256, source])));

const ticksIn = (records) => records.filter(({ type }) => type === 'snapshot').map(({ tick }) => tick);

/** Waits until the capture has grown by this much. */
async function grows(file) {
    const size = () => statSync(file, { throwIfNoEntry: false })?.size ?? 0;
    const before = size();
    await waitUntil(`${file} to grow`, () => size() > before, WAIT_MS);
}

async function withServer(body) {
    games += 1;
    const folder = join(top, `${games}`);
    mkdirSync(folder);
    const server = await startServer({ folder, port: await freePort(), map: 'ctf1',
        settings: ['sv_max_clients_per_ip 64', 'conn_timeout 5'] });
    const proxies = [];
    const write = async (capture, records, ...args) => {
        const proxy = await startProxy({ server: server.port, records, args: ['--maps', MAPS, '--items', 'all', '--show-secrets',
            '-w', capture, ...args] });
        proxies.push(proxy);
        return proxy;
    };
    const enter = async (proxy, name = 'anna') => (await new Bot(proxy.port, name, { keep: true }).join()).walk();
    try {
        await body({ folder, server, write, enter });
    } finally {
        for (const proxy of proxies) await proxy.child.stop();
        await server.stop();
    }
}

test('a capture gives the records of the run, and each segment can be read alone', () =>
    withServer(async ({ folder, write, enter }) => {
        const captures = join(folder, 'captures');
        const records = join(folder, 'records/');
        const proxy = await write(`${captures}/`, records, '--rotate', '2s');
        const bot = await enter(proxy);
        const late = await enter(proxy, 'bob');
        await plays(bot, 5 * SNAPSHOTS);
        const before = readdirSync(captures).length;
        proxy.child.signal('SIGHUP');
        await waitUntil('another segment', () => readdirSync(captures).length > before, WAIT_MS);
        await plays(bot);
        await late.leave();
        await bot.leave();
        assert.equal(await proxy.drain(), 0);
        const files = readdirSync(captures).sort();
        assert.ok(files.length >= 3, files.join());
        const alone = new Map();
        const segments = [];
        for (const [index, name] of files.entries()) {
            assert.match(name, new RegExp(`^capture-\\d{8}T\\d{6}Z-${`${index + 1}`.padStart(4, '0')}\\.pcapng$`));
            const file = join(captures, name);
            assert.equal(statSync(file).mode & 0o777, 0o600);
            const packets = run(TSHARK, '-r', file, '-T', 'fields', '-e', 'frame.comment', '-e', 'frame.interface_name');
            assert.deepEqual([packets.status, packets.stderr.replace(/^Running as user.*\n/, '')], [0, '']);
            for (const session of [1, 2]) assert.match(packets.stdout, new RegExp(`twscope: session ${session}: 127\\.`), name);
            const records = decoded(file);
            assert.ok(records.some(({ type }) => type === 'message'), name);
            for (const { type, ok, tick } of records) assert.ok(type !== 'snapshot' || ok, `${name}: tick ${tick}`);
            if (index > 0) assert.deepEqual(records.filter(({ id }) => /joined_midway|not_accepted|unknown_base/.test(id)), []);
            for (const [client, snapshots] of snapshotsByClient(records)) alone.set(client, [...alone.get(client) ?? [], ...snapshots]);
            segments.push(records);
        }
        const live = linesOf(TWSCOPE, 'records', records).map((line) => JSON.parse(line));
        const again = decoded(...files.map((name) => join(captures, name)));
        assert.ok(ticksIn(live).length > 200);
        assert.deepEqual(alone, snapshotsByClient(live));
        for (const records of segments) assert.deepEqual(mapsIn(records), mapsIn(live));
        assert.deepEqual(seen(again), seen(live));
        assert.deepEqual(decoded(captures), again);
    }));

test(`a capture that is killed ${KILLS} times holds whole packets, and goes on behind them`, () =>
    withServer(async ({ folder, write, enter }) => {
        const capture = join(folder, 'game.pcapng');
        let before = [];
        for (let kill = 1; kill <= KILLS; kill += 1) {
            const proxy = await write(capture, join(folder, 'game.jsonl'));
            const bot = await enter(proxy);
            await plays(bot, 10 + 7 * kill % 20);
            await grows(capture);
            process.kill(-proxy.child.process.pid, 'SIGKILL');
            await proxy.child.ended;
            bot.vanish();
            const damaged = run(TWSCOPE, 'decode', capture, '-o', '-', '--items', 'none');
            assert.equal(damaged.status, 0, damaged.stderr);
            const ticks = ticksIn(damaged.stdout.split('\n').slice(0, -1).map((line) => JSON.parse(line)));
            assert.deepEqual(ticks.slice(0, before.length), before);
            assert.ok(ticks.length > before.length);
            before = ticks;
            // Appends what a power failure leaves: the beginning of a packet.
            const whole = readFileSync(capture);
            if (kill % 2 === 0) writeFileSync(capture, Buffer.concat([whole, whole.subarray(0, 9)]));
        }
        const proxy = await write(capture, join(folder, 'game.jsonl'));
        const bot = await enter(proxy);
        await plays(bot);
        await bot.leave();
        assert.equal(await proxy.drain(), 0);
        const ticks = ticksIn(decoded(capture));
        assert.deepEqual(ticks.slice(0, before.length), before);
        assert.ok(bot.snapshots.every(({ tick }) => ticks.includes(tick)));
    }));

test('a capture that is moved, removed or truncated continues under its name and can be read', () =>
    withServer(async ({ folder, write, enter }) => {
        const capture = join(folder, 'game.pcapng');
        const proxy = await write(capture, join(folder, 'game.jsonl'));
        const bot = await enter(proxy);
        const all = [];
        const blows = [() => renameSync(capture, join(folder, 'old.pcapng')), () => rmSync(capture),
            () => truncateSync(capture, 0)];
        for (const blow of blows) {
            await plays(bot);
            await grows(capture);
            blow();
            await grows(capture);
            await plays(bot);
            assert.equal(run(TWSCOPE, 'decode', capture, '-o', '/dev/null').status, 0);
        }
        all.push(...ticksIn(decoded(join(folder, 'old.pcapng'))));
        assert.ok(all.length >= SNAPSHOTS);
        await bot.leave();
        assert.equal(await proxy.drain(), 0);
    }));

for (const flags of [['--summary'], ['-o'], ['--show-secrets', '-w']]) {
    test(`${flags.at(-1)} to a pipe that nobody reads does not keep it from ending`, async () => {
        const pipe = join(top, `pipe${flags.at(-1)}`);
        execFileSync('mkfifo', [pipe]);
        for (const signal of ['SIGTERM', 'SIGINT']) {
            const port = await freePort();
            const child = new Child('twscope', TWSCOPE, ['proxy', '-s', '127.0.0.1:1', '-l', `127.0.0.1:${port}`, '-q', ...flags, pipe]);
            await waitUntil('twscope to have its port', () => isBound(port) || !child.running, WAIT_MS);
            child.signal(signal);
            assert.equal(await child.ended, 0, child.log);
            assert.match(child.errors, /stopping: (terminated|interrupted) during start-up/);
        }
    });
}

test('SIGHUP does not wait for a pipe without a reader', async () => {
    const pipe = join(top, 'left');
    execFileSync('mkfifo', [pipe]);
    const reader = new Child('a reader', 'cat', [pipe]);
    const port = await freePort();
    const child = new Child('twscope', TWSCOPE, ['proxy', '-s', '127.0.0.1:1', '-l', `127.0.0.1:${port}`, '-q', '--summary', pipe]);
    await child.waitFor(/the server sees/, WAIT_MS);
    await reader.stop('SIGKILL');
    child.signal('SIGHUP');
    await child.waitFor(/cannot reopen .*left: .*continuing in the file that is already open/, WAIT_MS);
    child.signal('SIGTERM');
    assert.ok([0, 3].includes(await child.ended), child.log);
});

test('flags that exclude each other are refused', () => {
    const refused = (args, what) => {
        const done = run(TWSCOPE, 'proxy', '-s', '127.0.0.1:1', '-l', '127.0.0.1:0', '--show-secrets', ...args);
        assert.equal(done.status, 2, done.stderr);
        assert.match(done.stderr, what);
    };
    const foreign = join(top, 'notes');
    writeFileSync(foreign, 'dear diary\n');
    refused(['-w', foreign], /notes contains something other than a pcapng capture/);
    refused(['-w', '/dev/null'], /--write \/dev\/null: name a file, or a pipe with a reader/);
    refused(['-w', '-'], /--write -: name a file, or a pipe/);
    refused(['-w', join(top, 'no/such/file')], /No such file/);
    refused(['-w', join(top, 'a.pcapng'), '--keep', '1d'], /--keep deletes segments/);
    assert.equal(readFileSync(foreign, 'utf8'), 'dear diary\n');
});
