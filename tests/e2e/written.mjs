// The files that a live run writes for other programs: demos with the snapshots of the game, and a capture that gives the run's records.
//   node written.mjs TWSCOPE
// Covers: proxy/process/observer_run.cpp, proxy/pipeline/worker.cpp
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { Bot, endPeers, plays, SNAPSHOTS } from './bot.mjs';
import { need } from './need.mjs';
import { freePort, temporaryFolder, waitUntil } from './process.mjs';
import { readRecords, startProxy, TWSCOPE } from './proxy.mjs';
import { MAPS, startServer } from './server.mjs';

const WAIT_MS = 15000;
const TSHARK = '/usr/bin/tshark';

need(TSHARK);

after(endPeers);

function decode(path, ...args) {
    const records = `${path}.jsonl`;
    execFileSync(TWSCOPE, ['decode', path, '-o', records, ...args], { stdio: 'ignore' });
    return readRecords(records);
}

const demosIn = (folder) => readdirSync(folder).sort().map((name) => join(folder, name));

/** Returns the snapshots of these records as text for comparison. */
const shown = (records) => records.filter(({ type, ok }) => type === 'snapshot' && ok)
    .map(({ session, tick, items }) => ({ session, what: JSON.stringify([tick, items.map(({ type_id, id, data }) => [type_id, id, data])]) }));

async function start(folder, args) {
    mkdirSync(join(folder, 'demos'));
    const server = await startServer({ folder, port: await freePort(), map: 'dm1' });
    const proxy = await startProxy({ server: server.port, records: join(folder, 'game.jsonl'), args: ['--items', 'all,raw',
        '--demo', join(folder, 'demos'), ...args] });
    return { server, proxy };
}

test('demos show the run\'s snapshots, and a capture gives the run\'s records', async () => {
    const folder = temporaryFolder();
    const capture = join(folder, 'game.pcapng');
    const { server, proxy } = await start(folder, ['--maps', MAPS, '-w', capture, '--show-secrets']);
    const bots = [];
    for (const name of ['anna', 'bob']) bots.push(await new Bot(proxy.port, name, { keep: true }).join());
    for (const bot of bots) await plays(bot.walk());
    await server.command('change_map ctf1');
    for (const bot of bots) await plays(bot);
    for (const bot of bots) await bot.leave();
    assert.equal(await proxy.drain(), 0, proxy.child.errors);
    await server.stop();
    const live = proxy.records();

    // The demos must have every snapshot, and nothing else.
    const demos = demosIn(join(folder, 'demos'));
    assert.deepEqual(demos.map((path) => path.replace(/.*-s/, 's')).sort(),
        ['s1-ctf1.demo', 's1-dm1.demo', 's2-ctf1.demo', 's2-dm1.demo']);
    const seen = shown(live);
    for (const session of [1, 2]) {
        const own = demos.filter((path) => path.includes(`-s${session}-`));
        assert.deepEqual(own.flatMap((path) => shown(decode(path, '--items', 'all,raw'))).map(({ what }) => what),
            seen.filter((snapshot) => snapshot.session === session).map(({ what }) => what));
    }
    const map = decode(demos[0]).find(({ type }) => type === 'map');
    assert.equal(map.source, 'demo', 'the map is in the demo');

    const plain = (records) => records.filter(({ type }) => type !== 'session').map(({ t, ...record }) => record);
    const again = decode(capture, '--items', 'all,raw', '--show-secrets', '--maps', MAPS);
    // A live run writes the first of repeated findings, and then their number.
    const isRepeated = (record, index, all) => record.type === 'finding' && all.findIndex(({ id }) => id === record.id) < index;
    const perSession = (records, session) => plain(records).filter((record) => record.session === session && record.type !== 'summary')
        .filter((...each) => !isRepeated(...each));
    for (const session of [1, 2]) assert.deepEqual(perSession(again, session), perSession(live, session));
    // Compares the same game in the recording and in the capture, then with one number of one item changed.
    const compare = (a, b) => spawnSync(TWSCOPE, ['compare', a, b, '--json'], { encoding: 'utf8' });
    const recording = join(folder, 'game.jsonl');
    const same = compare(recording, capture);
    assert.equal(same.status, 0, same.stdout + same.stderr);
    const changed = readFileSync(recording, 'utf8').split('\n');
    const line = changed.findIndex((text, index) => index > changed.length / 3 && /"type":"snapshot".*"type":"character"/.test(text));
    const record = JSON.parse(changed[line]);
    const item = record.items.find(({ type }) => type === 'character');
    item.fields.vel_y += 1;
    item.data[Object.keys(item.fields).indexOf('vel_y')] += 1;
    changed[line] = JSON.stringify(record);
    const other = join(folder, 'changed.jsonl');
    writeFileSync(other, changed.join('\n'));
    const differs = compare(other, capture);
    assert.equal(differs.status, 1, differs.stdout + differs.stderr);
    for (const what of [`${record.tick}`, 'character', 'vel_y']) assert.ok(differs.stdout.includes(what), differs.stdout);
    const said = spawnSync(TSHARK, ['-r', capture, '-o', 'ip.check_checksum:TRUE', '-o', 'udp.check_checksum:TRUE', '-Y',
        'ip.checksum.status != 1 || udp.checksum.status != 1 || _ws.malformed'], { encoding: 'utf8' });
    assert.equal(said.status, 0, said.stderr);
    assert.equal(said.stdout, '');
});

test('after an observer is killed, its demos and capture can be read', async () => {
    const folder = temporaryFolder();
    const capture = join(folder, 'game.pcapng');
    const { server, proxy } = await start(folder, ['-w', capture, '--show-secrets']);
    const bot = await new Bot(proxy.port, 'anna', { keep: true }).join();
    await plays(bot.walk(), 3 * SNAPSHOTS);
    process.kill(proxy.observer(), 'SIGKILL');
    await waitUntil('another observer to look', () => /new_observer/.test(JSON.stringify(proxy.records())), WAIT_MS);
    await server.command('change_map ctf1');
    await plays(bot, 2 * SNAPSHOTS);
    await bot.leave();
    await proxy.drain();
    await server.stop();
    const demos = demosIn(join(folder, 'demos'));
    assert.equal(demos.length, 2);
    const [first, second] = demos.map((path) => decode(path));
    assert.ok(shown(first).length > SNAPSHOTS, 'what was seen before is in a demo');
    assert.ok(shown(second).length > SNAPSHOTS, 'and what was seen after, too');
    for (const records of [first, second]) assert.deepEqual(records.filter(({ id }) => /^demo\./.test(id)), []);
    const again = decode(capture, '--show-secrets');
    assert.ok(again.filter(({ type, ok }) => type === 'snapshot' && ok).length > 3 * SNAPSHOTS);
});
