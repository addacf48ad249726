// Tricks on the network: each is played on the real server through twscope, with a second client as a witness. The records must say what
// the witness saw and what the server's log says; what the server drops must have no effect.
//   node evasion.mjs TWSCOPE
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { Bot, endPeers, random } from './bot.mjs';
import { TRICKS } from './evasion_tricks.mjs';
import { freePort, temporaryFolder, waitUntil } from './process.mjs';
import { isFreeze, startProxy } from './proxy.mjs';
import { RawClient } from './raw_client.mjs';
import { MAPS, startServer } from './server.mjs';

const SEED = 20261121;
const AT_ONCE = 10;        // number of tricks at the same time; a real client beside them still gets each snapshot
const SNAPSHOTS_AFTER = 50; // two seconds of play after each trick
const WAIT_MS = 20000;
const SHARE_VERIFIED = 0.995;

after(endPeers);
after(() => { for (const client of RawClient.all) client.vanish(); });

/** Collects what was seen of one trick. */
async function play(trick, index, { proxy, other, seen }) {
    const name = `t${`${index}`.padStart(2, '0')}`;
    const client = new RawClient(proxy.port, name, trick);
    const next = random(SEED + index);
    const below = (limit) => Math.floor(next() * limit);
    const tell = (text) => `${name} ${text}`;
    let syncs = 0;
    /** Waits until the witness has seen an honest chat message. The server has then received everything sent before. */
    const sync = async () => {
        const text = tell(`sync ${syncs += 1}`);
        client.say(text);
        await waitUntil(`the witness to see "${text}"`, () => seen.includes(text), WAIT_MS);
    };
    for (const build of trick.join ?? []) client.send(build(client));
    await client.join();
    client.resendBit = trick.resendBit ?? false;
    await trick.play({ client, tell, other, sync, below });
    await sync();
    const before = client.ticks.size;
    await waitUntil(`${name} to play on`, () => client.ticks.size >= before + SNAPSHOTS_AFTER, WAIT_MS);
    const result = { name, ticks: client.ticks.size, port: client.socket.address().port, close: client.close,
        mapChanges: client.mapChanges };
    await client.leave(trick.goodbyes);
    return result;
}

/** Plays all tricks, some at the same time, and returns a result or an error for each. */
async function playAll(game) {
    const results = [];
    const left = TRICKS.map((trick, index) => ({ trick, index }));
    const worker = async () => {
        for (let each = left.shift(); each; each = left.shift()) {
            const { trick, index } = each;
            results[index] = await play(trick, index, game).catch((error) => ({ error }));
        }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
    return results;
}

/** True for findings that honest games do not have. (The server does not describe a type in the snapshot that first uses it.) */
const isOdd = (finding) => finding.severity !== 'info' && finding.id !== 'snapshot.missing_descriptor' && !isFreeze(finding);

/** Between the tested twscope and the server, datagrams take 250 ms, so five snapshots are in flight when a client says goodbye. */
async function quitOverSlowLine() {
    const far = await startProxy({ server: server.port, records: join(folder, 'far.jsonl'), args: ['--impair', 'delay=120ms'] });
    const near = await startProxy({ server: far.port, records: join(folder, 'slow.jsonl'), args: ['--maps', MAPS, '--items', 'none'] });
    const client = await new RawClient(near.port, 'slow').join();
    await waitUntil('the client to play', () => client.ticks.size > SNAPSHOTS_AFTER, WAIT_MS);
    await client.comeBack();
    await waitUntil('the client to play again', () => client.ticksOf(2) > SNAPSHOTS_AFTER, WAIT_MS);
    await client.leave();
    await waitUntil('the server to see it leave', () => server.child.log.match(/'slow' has left the game/g)?.length === 2, WAIT_MS);
    const statuses = [await near.drain(), await far.drain()];
    const all = near.records();
    return { ticks: client.ticks.size, statuses, rebuilt: all.filter(({ type, ok }) => type === 'snapshot' && ok).length,
        events: all.filter(({ type }) => type === 'session').map(({ event }) => event),
        odd: all.filter(({ type }) => type === 'finding').filter(isOdd) };
}

const folder = temporaryFolder();
// The server has 0.7 switched on, so it understands every message of today's servers.
const server = await startServer({ folder, port: await freePort(), map: 'ctf5', settings: ['sv_sixup 1', 'sv_chat_penalty 0'] });
const proxy = await startProxy({ server: server.port, records: join(folder, 'live.jsonl'), args: ['--maps', MAPS, '--items', 'none'] });
const witness = new Bot(proxy.port, 'witness', { keep: true, options: { timeout: 60000 } });
const seen = [];
witness.client.on('message', ({ message: text }) => seen.push(text));
await witness.join();
// The client plays from another address, because its token would be the same otherwise.
const other = await new RawClient(proxy.port, 'other', { address: '127.0.0.2' }).join();
const results = await playAll({ proxy, other, seen });
const departed = () => (server.child.log.match(/has left the game/g) ?? []).length;
const played = results.filter(({ error }) => !error).length;
// Clients leave the game when the map changes, but the log does not say so.
await waitUntil('the tricks to have left', () => departed() >= played, WAIT_MS);
// Snapshots of the old map are in flight to both clients while the new map is announced.
await server.command('change_map dm1');
await other.inGame(2, WAIT_MS);
const seenBefore = witness.snapshots.length;
await waitUntil('the witness to play on the new map', () => witness.snapshots.length > seenBefore + SNAPSHOTS_AFTER, WAIT_MS);
const [witnessPort, otherPort] = [witness.port, other.socket.address().port];
await other.leave();
await witness.leave();
const slowLine = await quitOverSlowLine();
await waitUntil('all to have left', () => departed() >= played + 4, WAIT_MS);
const status = await proxy.drain();
await server.stop();
const records = proxy.records();

const sessionOf = (port) => records.find((record) =>
    record.type === 'session' && record.event === 'open' && record.client.endsWith(`:${port}`))?.session;
const of = (session, type) => records.filter((record) => record.session === session && record.type === type);
const verified = (session) => of(session, 'snapshot').filter(({ ok }) => ok).length;

/** Returns how often a client entered, by the server's log: a chat message names its id, and the last client to enter with it the address. */
function timesEntered(name) {
    const { log } = server.child;
    const chat = new RegExp(`chat: (\\d+):-?\\d+:${name}: `).exec(log);
    const entered = [...log.matchAll(/player has entered the game\. ClientI[Dd]=(\d+) addr=<\{(\S+)\}>/g)];
    const address = entered.filter((line) => line[1] === chat[1] && line.index < chat.index).at(-1)[2];
    return entered.filter((line) => line[2] === address).length;
}

for (const [index, trick] of TRICKS.entries()) {
    test(`${trick.name}: the records say what the server took`, () => {
        const result = results[index];
        if (result.error) throw result.error;
        const { name, ticks, port, close, mapChanges } = result;
        assert.equal(close, null, 'the server closed nothing');
        const session = sessionOf(port);
        const witnessed = seen.filter((text) => text.startsWith(`${name} `));
        const honest = (text) => !text.startsWith(`${name} sync`);
        assert.deepEqual(witnessed.filter(honest), trick.saw.map((text) => `${name} ${text}`), 'what the server took');
        const recorded = of(session, 'message').filter((record) => record.dir === 'c2s' && record.name === 'cl_say')
            .map(({ fields }) => fields.message);
        assert.deepEqual(recorded, witnessed, 'chats in the records');
        const connections = trick.connections ?? 1;
        // A server that receives another connection request sends the map again, and keeps the client in the game.
        assert.equal(mapChanges, connections, 'connections that the server saw');
        assert.equal(timesEntered(name), 1);
        const events = of(session, 'session').map(({ event }) => event);
        assert.deepEqual(events, ['open', ...Array(connections).fill(['established', 'close']).flat()], 'connections in the records');
        const protocols = of(session, 'session').filter(({ event }) => event === 'established').map(({ protocol }) => protocol);
        assert.deepEqual(new Set(protocols), new Set(['0.6+ddnet']));
        const rebuilt = verified(session);
        // A client that reconnects still accepts datagrams in flight, but no observer can rebuild their snapshots.
        const underWay = connections - 1;
        assert.ok(rebuilt + underWay >= ticks * SHARE_VERIFIED, `${rebuilt} snapshots verified, the client got ${ticks}`);
    });
}

test('the tricks did not affect the witness', () => {
    const session = sessionOf(witnessPort);
    assert.deepEqual(of(session, 'session').map(({ event }) => event), ['open', 'established', 'close']);
    assert.deepEqual(of(session, 'finding').filter(isOdd).slice(0, 5), []);
    const got = witness.snapshots.filter(({ failed }) => !failed).length;
    assert.ok(got > 100, `${got} snapshots`);
    const rebuilt = verified(session);
    assert.ok(rebuilt >= got * SHARE_VERIFIED, `${rebuilt} snapshots verified, the witness got ${got}`);
});

test('the tricks did not affect a client whose token was used', () => {
    const session = sessionOf(otherPort);
    assert.deepEqual(of(session, 'session').map(({ event }) => event), ['open', 'established', 'close']);
    assert.equal(of(session, 'map').length, 2);
    const rebuilt = verified(session);
    assert.ok(rebuilt >= other.ticks.size * SHARE_VERIFIED, `${rebuilt} snapshots verified, the client got ${other.ticks.size}`);
});

test('after an honest quit and return on a slow network, datagrams in flight are no findings', () => {
    const { events, odd, rebuilt, ticks, statuses } = slowLine;
    assert.deepEqual(statuses, [0, 0]);
    assert.deepEqual(events, ['open', 'established', 'close', 'established', 'close']);
    assert.deepEqual(odd, []);
    assert.ok(rebuilt >= ticks * SHARE_VERIFIED, `${rebuilt} snapshots verified, the client got ${ticks}`);
});

test('twscope finishes and exits with 0', () => assert.equal(status, 0, proxy.child.log));
