// The flight recorder of a live game: it writes the latest datagrams after a finding, a signal, or a request of the page.
//   node flight.mjs TWSCOPE
// Covers: proxy/cli/recording_flags.cpp, proxy/pipeline/record_outputs.cpp
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';
import { after, test } from 'node:test';
import { Bot, endPeers } from './bot.mjs';
import { asRoot } from './namespaces.mjs';
import { need } from './need.mjs';
import { freePort, Child, temporaryFolder, waitUntil } from './process.mjs';
import { readRecords, startProxy, TWSCOPE } from './proxy.mjs';
import { MAPS, startServer } from './server.mjs';

const WAIT_MS = 15000;
const SNAPSHOTS = 50;
const TSHARK = '/usr/bin/tshark';

const { MsgPacker } = createRequire(import.meta.url)('teeworlds/lib/MsgPacker.js');

need(TSHARK);
asRoot();
after(endPeers);

function decode(path) {
    execFileSync(TWSCOPE, ['decode', path, '-o', `${path}.jsonl`, '--show-secrets'], { stdio: 'ignore' });
    return readRecords(`${path}.jsonl`);
}

const captures = (folder) => readdirSync(folder).filter((name) => name.endsWith('.pcapng')).sort();

/** Waits until a complete capture with this name exists. */
async function written(folder, pattern, count = 1) {
    const found = () => captures(folder).filter((name) => pattern.test(name) && statSync(join(folder, name)).size > 1000);
    await waitUntil(`${count} captures like ${pattern}`, () => found().length >= count, WAIT_MS);
    return found().map((name) => join(folder, name));
}

async function withGame(args, body, kept = '60s,8MiB') {
    const folder = temporaryFolder();
    const flights = join(folder, 'flights');
    mkdirSync(flights);
    const server = await startServer({ folder, port: await freePort(), map: 'dm1' });
    const proxy = await startProxy({ server: server.port, records: join(folder, 'game.jsonl'),
        args: ['--maps', MAPS, '--flight', kept, flights, '--show-secrets', ...args] });
    const bots = [];
    for (const name of ['anna', 'bob']) bots.push((await new Bot(proxy.port, name, { keep: true }).join()).walk());
    for (const bot of bots) await waitUntil('play', () => bot.snapshots.length >= SNAPSHOTS, WAIT_MS);
    try {
        await body({ folder, flights, server, proxy, bots });
    } finally {
        await proxy.child.stop('SIGINT');
        await server.stop();
    }
}

test('a signal and the page write the latest datagrams, whose snapshots are those of the run', () =>
    withGame(['--http', '127.0.0.1:0'], async ({ flights, proxy, bots }) => {
        proxy.child.signal('SIGUSR2');
        const [first] = await written(flights, /^flight-\d{8}T\d{6}Z\.pcapng$/);
        await proxy.child.waitFor(/info flight recorder: wrote \S+flight-\d{8}T\d{6}Z\.pcapng\n/, WAIT_MS);
        const [, port, file] = /http:\/\/127\.0\.0\.1:(\d+)\/#token=\$\(cat ([^)]+)\)/.exec(proxy.child.errors);
        const authorization = `Bearer ${readFileSync(file, 'utf8').trim()}`;
        const ask = (query, more) => fetch(`http://127.0.0.1:${port}/api/flight${query}`, { method: 'POST', ...more });
        assert.equal((await ask('')).status, 401);
        assert.equal((await ask('?session=2', { headers: { authorization } })).status, 200);
        const [second] = await written(flights, /-s2\.pcapng$/);
        await waitUntil('all of it', () => decode(second).some(({ type }) => type === 'snapshot'), WAIT_MS);
        assert.equal(decode(second).filter(({ event }) => event === 'open').length, 1);
        for (const bot of bots) await bot.leave();
        assert.equal(await proxy.drain(), 0);
        const live = proxy.records();
        const seen = new Set(live.filter(({ type, ok }) => type === 'snapshot' && ok).map(({ tick, crc_got }) => `${tick} ${crc_got}`));
        const kept = decode(first).filter(({ type, ok }) => type === 'snapshot' && ok);
        assert.ok(kept.length >= 2 * SNAPSHOTS);
        for (const { tick, crc_got } of kept) assert.ok(seen.has(`${tick} ${crc_got}`));
        assert.match(proxy.child.errors, /the flight recorder wrote \d captures?/);
        const said = spawnSync(TSHARK, ['-r', first, '-Y', '_ws.malformed || ip.checksum.status == 0'], { encoding: 'utf8' });
        assert.equal(said.status, 0, said.stderr);
        assert.equal(said.stdout, '');
    }));

test('a file that begins during a game is verified from each session\'s first state on', () =>
    withGame([], async ({ flights, proxy, bots }) => {
        for (const bot of bots) await waitUntil('the beginning to be forgotten', () => bot.snapshots.length >= 5 * SNAPSHOTS, WAIT_MS);
        proxy.child.signal('SIGUSR2');
        const [file] = await written(flights, /^flight-\d{8}T\d{6}Z\.pcapng$/);
        for (const bot of bots) await bot.leave();
        assert.equal(await proxy.drain(), 0);
        const records = decode(file);
        assert.ok(records.every(({ delta_tick: base }) => base !== -1));
        for (const session of [1, 2]) {
            const right = records.filter((record) => record.type === 'snapshot' && record.session === session).map(({ ok }) => ok);
            const first = right.indexOf(true);
            assert.ok(first >= 0 && first < right.length / 2, `${first} of ${right.length}`);
            assert.ok(right.slice(first).every((ok) => ok));
        }
        const said = spawnSync(TSHARK, ['-r', file, '-T', 'fields', '-e', 'udp.port'], { encoding: 'utf8' });
        assert.equal(said.status, 0, said.stderr);
    }, '5s,8MiB'));

test('a finding writes the datagrams of its session, and a flood of findings one file', () =>
    withGame(['--flight-on', 'session.server_silent,message.unexpected'], async ({ flights, proxy, bots }) => {
        // Sends a message that no client sends, repeatedly.
        const [noisy] = bots;
        for (let time = 0; time < 50; time += 1) noisy.client.SendMsgEx(serverMessage());
        const [file] = await written(flights, /-s1-message\.unexpected\.pcapng$/);
        await waitUntil('all of it', () => decode(file).some(({ id }) => id === 'message.unexpected'), WAIT_MS);
        for (const bot of bots) await bot.leave();
        await proxy.drain();
        assert.ok(captures(flights).length <= 2, captures(flights).join());
        assert.ok(readFileSync(file, 'latin1').includes('message.unexpected'));
    }));

/** Returns an sv_broadcast, which only servers send. */
function serverMessage() {
    const message = new MsgPacker(2, false, 1);
    message.AddString('from a client');
    return message;
}

test('a full disk is reported, and the game goes on', async () => {
    const folder = temporaryFolder();
    const disk = join(folder, 'disk');
    mkdirSync(disk);
    const holder = new Child('a small disk', 'unshare', ['-m', 'sh', '-c',
        `mount -t tmpfs -o size=4k none '${disk}' && echo mounted && exec sleep infinity`]);
    await waitUntil('the disk', () => /mounted/.test(holder.output) || !holder.running, WAIT_MS);
    const server = await startServer({ folder, port: await freePort(), map: 'dm1' });
    const port = await freePort();
    const child = new Child('twscope', 'nsenter', ['-t', `${holder.process.pid}`, '-m', '-r', resolve(TWSCOPE), 'proxy', '-s', `127.0.0.1:${server.port}`,
        '-l', `127.0.0.1:${port}`, '--flight', '60s,8MiB', disk, '--show-secrets', '-o', join(folder, 'game.jsonl')]);
    await child.waitFor(/the server sees/, WAIT_MS);
    const bot = (await new Bot(port, 'anna', { keep: true }).join()).walk();
    await waitUntil('play', () => bot.snapshots.length >= SNAPSHOTS, WAIT_MS);
    child.signal('SIGUSR2');
    await child.waitFor(/not written: \S+flight-\S+: No space left on device; forwarding continues/, WAIT_MS);
    const before = bot.snapshots.length;
    await waitUntil('more play', () => bot.snapshots.length >= before + SNAPSHOTS, WAIT_MS);
    await bot.leave();
    child.signal('SIGINT');
    assert.equal(await child.ended, 0, child.log);
    const records = readRecords(join(folder, 'game.jsonl'));
    assert.equal(records.filter(({ type, ok }) => type === 'snapshot' && !ok).length, 0);
    await server.stop();
    await holder.stop();
});

test('flags that exclude each other are refused', () => {
    const folder = temporaryFolder();
    const refused = (args, what, env = {}) => {
        const run = spawnSync(TWSCOPE, ['proxy', '-s', '127.0.0.1:1', '-l', '127.0.0.1:0', ...args],
            { encoding: 'utf8', env: { ...process.env, ...env } });
        assert.equal(run.status, 2, run.stderr);
        assert.match(run.stderr, what);
    };
    refused(['--flight', '60s,64MiB', folder], /add --show-secrets/);
    refused(['--flight', '60s', '--show-secrets'], /--flight 60s: expected limits and a folder/);
    refused(['--flight', '60x', folder, '--show-secrets'], /--flight 60x: expected a time/);
    refused(['--flight', '4s', folder, '--show-secrets'], /--flight 4s: keep at least 5 s/);
    refused(['--flight', '60s,1GiB', folder, '--show-secrets'], /at most half of --memory/);
    refused(['--flight', '60s', join(folder, 'no'), '--show-secrets'], /--flight .*no: No such file/);
    refused(['--flight', '60s', folder, '--show-secrets', '--flight-on', 'nonsense'], /--flight-on nonsense: neither a finding/);
    refused(['--flight-on', 'error'], /need --flight/);
    refused(['--flight', '60s', folder, '--show-secrets', '--no-inspect'], /--flight needs inspection; drop --no-inspect/);
    refused(['--show-secrets'], /--flight .*no: No such file/, { TWSCOPE_FLIGHT: `60s,64MiB ${join(folder, 'no')}` });
});
