// A real server's game with objects of other sizes, live with --learn-sizes: the types are named, and every session is decoded; later
// sessions use the sizes that the first one learned, also after the learning process was killed.
//   node sizes.mjs TWSCOPE
// Covers: proxy/process/observer_run.cpp
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { endChildren, freePort, temporaryFolder, waitUntil } from './process.mjs';
import { startProxy } from './proxy.mjs';
import { RawClient } from './raw_client.mjs';
import { AGREED, Resizer } from './resizer.mjs';
import { MAPS, startServer } from './server.mjs';
import { Tap } from './tap.mjs';

const NAMED_MS = 10000; // longest time of play until every size is named
const WAIT_MS = 15000;
const TURN_MS = 400;
const SNAPSHOTS = 20;

after(() => { endChildren(); [...RawClient.all].forEach(leave); });
const folder = temporaryFolder();
let games = 0;

const sizeFindings = (records) => records.filter(({ id }) => id === 'snapshot.size_differs');
const snapshotsOf = (records, session) => records.filter((each) => each.type === 'snapshot' && each.session === session);
const lastSession = (records) => Math.max(...records.map(({ session }) => session ?? 0));
const played = (proxy, ...sessions) => waitUntil(`snapshots of sessions ${sessions}`, () => {
    const all = proxy.records();
    return sessions.every((session) => snapshotsOf(all, session).length >= SNAPSHOTS);
}, WAIT_MS);

/** A client that walks to and fro, so that snapshots differ. */
async function enter(port, name) {
    const client = await new RawClient(port, name).join();
    client.direction = 1;
    client.turns = setInterval(() => { client.direction *= -1; }, TURN_MS);
    return client;
}

async function leave(client) {
    clearInterval(client.turns);
    await client.leave();
    client.vanish();
}

/** Returns the types that a session named, sorted. */
const namedBy = (records, session) => sizeFindings(records).filter((each) => each.session === session)
    .map(({ item }) => item.type_id).sort((a, b) => a - b);

async function withMod(mod, args, body) {
    const server = await startServer({ folder, port: await freePort(), map: 'ctf1' });
    const tap = await Tap.open(server.port);
    const resizer = new Resizer(mod);
    tap.change = (...datagram) => resizer.change(...datagram);
    const records = join(folder, `records-${games += 1}.jsonl`);
    const proxy = await startProxy({ server: tap.port, records, args: ['--maps', MAPS, '--learn-sizes', '--items', 'none', ...args] });
    const types = Object.keys(mod).map(Number);
    const namedInAll = (sessions) => waitUntil('all sizes to be named', () => {
        const all = proxy.records();
        return sessions(all).every((session) => types.every((type) => namedBy(all, session).includes(type)));
    }, NAMED_MS);
    try {
        const clients = [await enter(proxy.port, 'anna'), await enter(proxy.port, 'bob')];
        await namedInAll(() => [1, 2]);
        await body({ proxy, clients, namedInAll });
        for (const client of clients) await leave(client);
        await proxy.drain();
    } finally {
        for (const client of [...RawClient.all]) await leave(client);
        await proxy.child.stop();
        await server.stop();
        tap.close();
    }
    const all = proxy.records();
    for (const { item, value, limit, confirmed } of sizeFindings(all)) {
        assert.deepEqual([item.type_id, value, limit], [item.type_id, mod[item.type_id], AGREED[item.type_id]]);
        assert.ok(confirmed >= 3);
    }
    return all;
}

const MODS = [
    { name: 'player_info is one int shorter', mod: { 10: 4 } },
    { name: 'client_info is one int longer', mod: { 11: 18 } },
    { name: 'game_info is three ints longer', mod: { 6: 11 } },
    { name: 'player_info is shorter, and client_info longer', mod: { 10: 4, 11: 18 } },
    { name: 'character is two ints longer, and pickup one', mod: { 9: 24, 4: 5 } },
];

for (const { name, mod } of MODS) {
    test(`${name}: named, and decoded on in every session`, async () => {
        const all = await withMod(mod, [], async ({ proxy, clients }) => {
            await played(proxy, 1, 2);
            clients.push(await enter(proxy.port, 'late'));
            await played(proxy, 1, 2, 3);
        });
        const types = Object.keys(mod).map(Number);
        const told = [1, 2, 3].map((session) => {
            const last = sizeFindings(all).findLast((each) => each.session === session);
            const snapshots = snapshotsOf(all, session);
            const wrong = snapshots.filter(({ ok }) => !ok);
            assert.ok(snapshots.length >= SNAPSHOTS);
            assert.deepEqual(wrong.filter(({ t }) => last && t > last.t), [], 'a size is known, and a snapshot wrong');
            return { of: snapshots.length, wrong: wrong.length, named: namedBy(all, session) };
        });
        console.log(JSON.stringify({ name, told }));
        assert.deepEqual([told[0].named, told[1].named], [types, types]);
        assert.equal(told[2].wrong, 0, 'the late session begins with what the first learned');
    });
}

test('the learned sizes survive a killed observer', async () => {
    const all = await withMod({ 10: 4, 11: 18 }, ['--resync'], async ({ proxy, clients, namedInAll }) => {
        const logged = proxy.child.errors.length;
        process.kill(proxy.observer(), 'SIGKILL');
        await waitUntil('another observer', () => proxy.child.errors.includes('running again', logged), WAIT_MS);
        await waitUntil('both sessions to be seen again', () => lastSession(proxy.records()) >= 4, WAIT_MS);
        clients.push(await enter(proxy.port, 'late'));
        await namedInAll((records) => [lastSession(records)]);
        await played(proxy, 3, 4, 5);
    });
    const told = [3, 4, 5].map((session) => {
        const snapshots = snapshotsOf(all, session);
        const wrong = snapshots.slice(snapshots.findIndex(({ ok }) => ok)).filter(({ ok }) => !ok);
        return { session, of: snapshots.length, first: snapshots.findIndex(({ ok }) => ok), wrong: wrong.length, named: namedBy(all, session) };
    });
    console.log(JSON.stringify(told));
    for (const { of, wrong, named } of told) {
        assert.ok(of >= SNAPSHOTS);
        assert.equal(wrong, 0);
        assert.deepEqual(named, [10, 11]);
    }
    assert.equal(told[2].first, 0, 'the late session begins with what the first learned');
});
