// Tricks on the wire: each is played on the real server through twscope, with a second client as a witness. What the witness
// saw and what the server's log says is what the records have to say; what the server drops has no effect.
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
const AT_ONCE = 10;        // tricks; a real client beside them still sees each snapshot
const SNAPSHOTS_AFTER = 50; // two seconds of play after each trick
const WAIT_MS = 20000;
const SHARE_VERIFIED = 0.995;

after(endPeers);
after(() => { for (const client of RawClient.all) client.vanish(); });

/** Everything that was seen of one trick. */
async function play(trick, index, { proxy, other, seen }) {
    const name = `t${`${index}`.padStart(2, '0')}`;
    const client = new RawClient(proxy.port, name, trick);
    const next = random(SEED + index);
    const below = (limit) => Math.floor(next() * limit);
    const tell = (text) => `${name} ${text}`;
    let syncs = 0;
    /** Waits until the witness has seen an honest chat, and so the server all that was sent before it. */
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

/** Plays all tricks, some at once, and returns what became of each: a result or an error. */
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

/** Whether an honest game has no such finding. The server forgets to describe a type in the very snapshot in which it first uses it. */
const isOdd = (finding) => finding.severity !== 'info' && finding.id !== 'snapshot.missing_descriptor' && !isFreeze(finding);

/** Behind the twscope under test is a line of a quarter of a second: five snapshots are under way when a client says goodbye. */
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
// With 0.7 switched on, and so with all that a server of today understands.
const server = await startServer({ folder, port: await freePort(), map: 'ctf5', settings: ['sv_sixup 1', 'sv_chat_penalty 0'] });
const proxy = await startProxy({ server: server.port, records: join(folder, 'live.jsonl'), args: ['--maps', MAPS, '--items', 'none'] });
const witness = new Bot(proxy.port, 'witness', { keep: true, options: { timeout: 60000 } });
const seen = [];
witness.client.on('message', ({ message: text }) => seen.push(text));
await witness.join();
// From another address, else it has the same token.
const other = await new RawClient(proxy.port, 'other', { address: '127.0.0.2' }).join();
const results = await playAll({ proxy, other, seen });
const departed = () => (server.child.log.match(/has left the game/g) ?? []).length;
const played = results.filter(({ error }) => !error).length;
// Whoever is still there when the map changes is no longer in the game, and the log does not say that he left it.
await waitUntil('the tricks to have left', () => departed() >= played, WAIT_MS);
// Snapshots of the old map are on their way to both while the new one is announced.
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

/** How often a client entered, by the server's log: chat names its id, and the last to enter with that id is its address. */
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
        // A server that is asked to begin anew sends the map again, and leaves the client in the game.
        assert.equal(mapChanges, connections, 'connections that the server saw');
        assert.equal(timesEntered(name), 1);
        const events = of(session, 'session').map(({ event }) => event);
        assert.deepEqual(events, ['open', ...Array(connections).fill(['established', 'close']).flat()], 'connections in the records');
        const protocols = of(session, 'session').filter(({ event }) => event === 'established').map(({ protocol }) => protocol);
        assert.deepEqual(new Set(protocols), new Set(['0.6+ddnet']));
        const rebuilt = verified(session);
        // What is under way when a client begins anew it still takes, and nobody can rebuild it.
        const underWay = connections - 1;
        assert.ok(rebuilt + underWay >= ticks * SHARE_VERIFIED, `${rebuilt} snapshots verified, the client got ${ticks}`);
    });
}

test('nothing of it touched the witness', () => {
    const session = sessionOf(witnessPort);
    assert.deepEqual(of(session, 'session').map(({ event }) => event), ['open', 'established', 'close']);
    assert.deepEqual(of(session, 'finding').filter(isOdd).slice(0, 5), []);
    const got = witness.snapshots.filter(({ failed }) => !failed).length;
    assert.ok(got > 100, `${got} snapshots`);
    const rebuilt = verified(session);
    assert.ok(rebuilt >= got * SHARE_VERIFIED, `${rebuilt} snapshots verified, the witness got ${got}`);
});

test('nothing of it touched a client whose token was taken', () => {
    const session = sessionOf(otherPort);
    assert.deepEqual(of(session, 'session').map(({ event }) => event), ['open', 'established', 'close']);
    assert.equal(of(session, 'map').length, 2);
    const rebuilt = verified(session);
    assert.ok(rebuilt >= other.ticks.size * SHARE_VERIFIED, `${rebuilt} snapshots verified, the client got ${other.ticks.size}`);
});

test('an honest quit over a slow line, and coming back: what was in flight is no finding', () => {
    const { events, odd, rebuilt, ticks, statuses } = slowLine;
    assert.deepEqual(statuses, [0, 0]);
    assert.deepEqual(events, ['open', 'established', 'close', 'established', 'close']);
    assert.deepEqual(odd, []);
    assert.ok(rebuilt >= ticks * SHARE_VERIFIED, `${rebuilt} snapshots verified, the client got ${ticks}`);
});

test('twscope drains and exits 0', () => assert.equal(status, 0, proxy.child.log));
