// Covers: proxy/pipeline/worker.cpp
// Four clients play for 20 seconds through twscope on a real server: checks what it forwarded, rebuilt, located and wrote.
//   node play.mjs TWSCOPE
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { Bot, endPeers } from './bot.mjs';
import { GameMap } from './map_reader.mjs';
import { Child, delay, freePort, temporaryFolder, waitUntil } from './process.mjs';
import { isFreeze, readRecords, startProxy, TWSCOPE } from './proxy.mjs';
import { MAPS, startServer } from './server.mjs';
import { Tap } from './tap.mjs';

const MAP = 'Tutorial';
const NAMES = ['anna', 'bob', 'cleo', 'dora'];
const PLAY_MS = 20000;
const CHAT_MS = 2000;
const SNAPSHOTS_A_SECOND = 25; // the server's rate
// When a client leaves, it does not read the snapshots in flight, which may be those of seconds on a busy machine.
const LATE_SNAPSHOTS = 4 * SNAPSHOTS_A_SECOND;
const CHARACTER = 9;
const CONTROL = 0x10; // flag of a control packet, in its first byte
const HEADER_BYTES = 3;
const CLOSE = 4; // kind of a control packet, after the header
const HELD_UP = 'dora'; // her goodbye never reaches the server, which goes on sending to her
const ITEMS_COMPARED_IN_FULL = 20; // the most differing lines in a message

after(endPeers);

const isGoodbye = ({ dir, bytes }) => dir === 'c2s' && (bytes[0] & CONTROL) !== 0 && bytes[HEADER_BYTES] === CLOSE;

/** Plays, and returns all data for the tests. */
async function play(folder) {
    const server = await startServer({ folder, port: await freePort(), map: MAP });
    const behind = await Tap.open(server.port);
    const proxy = await startProxy({ server: behind.port, records: join(folder, 'live.jsonl'),
        args: ['--maps', MAPS, '--items', 'all,raw'] });
    const front = await Tap.open(proxy.port);
    const bots = NAMES.map((name, index) => new Bot(front.port, name, { seed: index + 1, keep: true }));
    await Promise.all(bots.map((bot) => bot.join()));
    for (const bot of bots) bot.ports = { client: bot.port, seen: front.flowOf(bot.port).upstreamPort };
    for (const bot of bots) bot.walk();
    for (let passed = 0; passed < PLAY_MS; passed += CHAT_MS) {
        await delay(CHAT_MS);
        bots[(passed / CHAT_MS) % bots.length].say(`${passed + CHAT_MS} ms, "quoted" and \u00e4\u00f6\u00fc`);
    }
    // A session ends at its goodbye. A datagram of the server that is under way at that moment may reach twscope before it and the tap
    // after it; then only twscope's records have it. So the server's datagrams are held back until the goodbyes have passed.
    behind.hold();
    await waitUntil('what is under way to arrive', () => behind.counts[1] - behind.held.length === front.counts[1], 5000);
    for (const bot of bots) {
        if (bot.name === HELD_UP) behind.change = (dir, bytes) => (isGoodbye({ dir, bytes }) ? null : bytes);
        await bot.leave();
    }
    await waitUntil('the goodbyes', () => [...behind.flows.values()].every((flow) => flow.datagrams.some(isGoodbye)), 5000);
    behind.release();
    // The server goes on sending to a client until it has read its goodbye. So it is ended first, and twscope reads the rest.
    const late = front.flowOf(bots.find(({ name }) => name === HELD_UP).ports.client).datagrams;
    await waitUntil(`a snapshot behind the goodbye of ${HELD_UP}`, () => late.at(-1).dir === 's2c', 5000);
    const serverStatus = await server.stop();
    let before = '';
    await waitUntil('what is under way to arrive', () => {
        const [here, there] = [`${front.counts}`, `${behind.counts}`];
        const settled = here === there && here === before;
        before = here;
        return settled;
    }, 5000);
    const status = await proxy.drain();
    front.close();
    behind.close();
    return { front, behind, bots, proxy, status, serverStatus, records: proxy.records() };
}

const keyed = (items) => new Map(items.map(({ type_id, id, data }) => [`${type_id}:${id}`, data.join(' ')]));

/** Returns the differences between two lists of items as lines. */
function differences(got, wanted) {
    const [left, right] = [keyed(got), keyed(wanted)];
    const lines = got.length === left.size ? [] : ['an item is listed twice'];
    for (const key of new Set([...left.keys(), ...right.keys()])) {
        if (left.get(key) !== right.get(key)) {
            lines.push(`item ${key}: twscope ${left.get(key) ?? 'has none'}, client ${right.get(key) ?? 'has none'}`);
        }
    }
    return lines;
}

/** Returns the parts of a record that must be the same live and from a capture: all but times and the reason why a session ended. */
const timeless = ({ t, ...record }) => JSON.stringify(record);

const folder = temporaryFolder();
const game = await play(folder);
const map = new GameMap(join(MAPS, `${MAP}.map`));
const of = (type) => game.records.filter((record) => record.type === type);
const sessionOf = (bot) => of('session').find((record) =>
    record.event === 'open' && record.client === `127.0.0.1:${bot.ports.seen}`)?.session;

test('on SIGINT, twscope finishes and exits with 0', () => {
    assert.equal(game.status, 0, game.proxy.child.log);
    assert.equal(game.serverStatus, 0);
});

test('each client has one session, opened, established and closed; its summaries count every datagram once', () => {
    for (const bot of game.bots) {
        const session = sessionOf(bot);
        assert.ok(session > 0, `no session of ${bot.name}`);
        const mine = game.records.filter((record) => record.session === session);
        const events = mine.filter((record) => record.type === 'session').map((record) => record.event);
        assert.deepEqual(events, ['open', 'established', 'close']);
        // Datagrams after a goodbye, which occur now and then, get a summary of their own.
        const summaries = mine.filter((record) => record.type === 'summary');
        const [, ...late] = summaries;
        assert.ok(late.length <= 1 && (late.length === 1 || bot.name !== HELD_UP), `${late.length} late summaries of ${bot.name}`);
        for (const { c2s, s2c, snapshots } of late) {
            assert.deepEqual([s2c.not_accepted, c2s.datagrams - c2s.not_accepted, snapshots.total], [s2c.datagrams, 0, 0]);
        }
        const passed = game.front.flowOf(bot.ports.client).datagrams;
        for (const dir of ['c2s', 's2c']) {
            assert.equal(summaries.reduce((sum, summary) => sum + summary[dir].datagrams, 0),
                passed.filter((datagram) => datagram.dir === dir).length, `${dir} of ${bot.name}`);
        }
    }
    assert.equal(of('summary').filter((record) => record.session === 0).length, 1);
});

test('every snapshot is rebuilt and its checksum agrees', () => {
    const snapshots = of('snapshot');
    assert.ok(snapshots.length >= NAMES.length * SNAPSHOTS_A_SECOND * PLAY_MS / 1000 * 0.9, `only ${snapshots.length}`);
    assert.deepEqual(snapshots.filter((record) => record.ok !== true).map(timeless), []);
    for (const record of snapshots) {
        if (record.crc_wanted !== null) assert.equal(record.crc_got, record.crc_wanted);
        assert.equal(record.items.length, record.num_items);
    }
});

test('honest traffic gives no findings', () => {
    // The server does not describe a type in the snapshot that first uses it.
    const bad = of('finding').filter((finding) => /^(snapshot|map|packet|chunk|inspect)\./.test(finding.id)
        && finding.id !== 'snapshot.missing_descriptor' && !isFreeze(finding));
    assert.deepEqual(bad.slice(0, 5), []);
});

test('each item of each snapshot equals what the client decoded on its own, tick by tick', () => {
    let compared = 0;
    for (const bot of game.bots) {
        assert.deepEqual(bot.snapshots.filter((snapshot) => snapshot.failed).map(({ tick }) => tick), []);
        const recorded = of('snapshot').filter((record) => record.session === sessionOf(bot));
        const ticks = bot.snapshots.map(({ tick }) => tick);
        assert.deepEqual(recorded.slice(0, ticks.length).map(({ tick }) => tick), ticks, `ticks of ${bot.name}`);
        assert.ok(recorded.length - ticks.length <= LATE_SNAPSHOTS, `${recorded.length} recorded, ${ticks.length} seen`);
        for (const [index, snapshot] of bot.snapshots.entries()) {
            assert.equal(recorded[index].delta_tick, snapshot.deltaTick);
            const lines = differences(recorded[index].items, snapshot.items);
            assert.deepEqual(lines.slice(0, ITEMS_COMPARED_IN_FULL), [], `${bot.name}, tick ${snapshot.tick}`);
            compared += snapshot.items.length;
        }
    }
    assert.ok(compared > 20000, `only ${compared} items were compared`);
});

test('the map is found by its checksum', () => {
    for (const bot of game.bots) {
        const maps = of('map').filter((record) => record.session === sessionOf(bot));
        assert.equal(maps.length, 1);
        const { name, crc, size, sha256, source, width, height } = maps[0];
        assert.deepEqual({ name, crc, size, sha256, source, width, height }, { name: MAP, crc: map.crc, size: map.size,
            sha256: map.sha256, source: 'folder', width: map.width, height: map.height });
    }
});

test('the tile of each tee agrees with an independent map reader', () => {
    let tees = 0;
    const tiles = new Set();
    for (const { items, tick } of of('snapshot')) {
        for (const { data, at } of items.filter((item) => item.type_id === CHARACTER)) {
            const [x, y] = [data[1], data[2]];
            assert.ok(at, `a tee without a place at tick ${tick}`);
            assert.deepEqual([at.x, at.y], [x, y]);
            assert.deepEqual(at.tile, map.tileAt(x, y));
            assert.equal(at.index, map.idAt('game', x, y));
            for (const layer of ['front', 'tele', 'speedup', 'switch', 'tune']) {
                const id = map.idAt(layer, x, y);
                assert.equal(Boolean(at[layer]), id !== 0, `${layer} under ${x},${y}: ${JSON.stringify(at)}`);
                if (id !== 0 && at[layer].index !== undefined) assert.equal(at[layer].index, id);
            }
            tees += 1;
            tiles.add(at.tile.join());
        }
    }
    assert.ok(tees > 1000 && tiles.size > 10, `${tees} tees on ${tiles.size} tiles`);
});

test('the traffic is the same on both sides, byte for byte and in order', () => {
    const behind = [...game.behind.flows.values()];
    assert.equal(behind.length, NAMES.length);
    for (const bot of game.bots) {
        const flow = game.front.flowOf(bot.ports.client);
        assert.ok(flow.datagrams.length > 500, `${flow.datagrams.length} datagrams of ${bot.name}`);
        const same = behind.filter((other) => ['c2s', 's2c'].every((dir) => other.wire(dir) === flow.wire(dir)));
        assert.equal(same.length, 1, `flows behind twscope that equal ${bot.name}'s`);
    }
});

test('a capture of the same traffic gives the same records apart from times, and decoding twice the same bytes', async () => {
    const capture = join(folder, 'front.pcap');
    game.front.writePcap(capture, game.behind.port);
    const runs = [];
    for (const name of ['one.jsonl', 'two.jsonl']) {
        const file = join(folder, name);
        const child = new Child('twscope decode', TWSCOPE, ['decode', capture, '--server', `127.0.0.1:${game.behind.port}`,
            '--maps', MAPS, '--items', 'all,raw', '-o', file]);
        assert.equal(await child.ended, 0, child.log);
        runs.push(readRecords(file));
    }
    assert.deepEqual(runs[0], runs[1]);
    for (const bot of game.bots) {
        for (const dir of ['c2s', 's2c']) {
            const lines = (records) => records.filter((record) => record.session === sessionOf(bot) && record.dir === dir
                && ['message', 'map', 'snapshot', 'finding'].includes(record.type) && !isFreeze(record)).map(timeless);
            const [live, decoded] = [lines(game.records), lines(runs[0])];
            const first = live.findIndex((line, index) => line !== decoded[index]);
            assert.equal(decoded[first], live[first], `${bot.name} ${dir}, record ${first}`);
            assert.equal(decoded.length, live.length);
        }
    }
});
