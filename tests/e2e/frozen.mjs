// Run by hand: compares how long a real client was frozen, by its acknowledgements on the network, with what twscope reports. Tests
// --impair, datagrams damaged on the way from the server, and datagrams lost on the way to the client. Needs Debian's graphical client
// (packages ddnet, xvfb).
//   node frozen.mjs TWSCOPE
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { Bot, endPeers, random } from './bot.mjs';
import { messagesOf, SYSTEM } from './chunks.mjs';
import { ints } from './ints.mjs';
import { delay, freePort, temporaryFolder } from './process.mjs';
import { startProxy, TWSCOPE } from './proxy.mjs';
import { startRealClient } from './real_client.mjs';
import { startServer } from './server.mjs';
import { Tap } from './tap.mjs';

const SNAPSHOT_MS = 40;
const TOLD_MS = 250;
const TOKEN_BYTES = 4;
const PLAY_MS = 45000;
const SNAPSHOT_BYTES = 24; // a shorter datagram has no snapshot, or an empty one
const BOTS = ['anna', 'bob', 'cleo'];
const CONTROL = 0x10;

after(endPeers);

/** Returns whether the trouble is on, which happens for a while at regular intervals. */
const inTurns = (everyMs, forMs) => (Date.now() % everyMs) < forMs;

/** Plays with the forwarder `behind` between server and twscope and `front` between twscope and client. */
async function play({ args = [], behind: spoilBehind, front: spoilFront }) {
    const folder = temporaryFolder();
    const server = await startServer({ folder, port: await freePort(), map: 'ctf5' });
    const behind = await Tap.open(server.port);
    const proxy = await startProxy({ server: behind.port, records: join(folder, 'live.jsonl'), args: ['--items', 'none', ...args] });
    const front = await Tap.open(proxy.port);
    // Others play directly on the server, so that snapshots differ.
    const bots = BOTS.map((bot, index) => new Bot(server.port, bot, { seed: index + 1 }));
    for (const bot of bots) (await bot.join()).walk();
    const client = await startRealClient({ folder, port: front.port });
    await delay(3000);
    if (spoilBehind) behind.change = spoilBehind;
    if (spoilFront) front.change = spoilFront;
    await delay(PLAY_MS);
    behind.change = front.change = (dir, bytes) => bytes;
    await delay(3000);
    await client.stop();
    for (const bot of bots) await bot.leave();
    await proxy.drain();
    await server.stop();
    // The client requests the server's info from another socket.
    const [game] = [...front.flows.values()].sort((a, b) => b.datagrams.length - a.datagrams.length);
    front.close();
    behind.close();
    return { datagrams: game.datagrams, records: proxy.records(), log: client.child.log };
}

/** Returns the client's inputs as [time, acknowledged tick, the client's own clock]. */
function inputsOf(datagrams) {
    const inputs = [];
    for (const { time, dir, bytes } of datagrams) {
        if (dir !== 'c2s' || bytes[0] & CONTROL) continue;
        for (const [id, system, body] of messagesOf(bytes, { ack: 0 }, TOKEN_BYTES)) {
            if (!system || id !== SYSTEM.input) continue;
            const [acked] = ints(body);
            inputs.push({ time, acked });
        }
    }
    return inputs;
}

/**
 * Returns how long the client acknowledged nothing new, beyond the usual wait for one snapshot: at least from the first to the last input
 * with the same tick, at most from the input before to the input after them. A frozen client sends few inputs.
 */
function freezesOf(inputs) {
    const freezes = [];
    let shown = null;
    let before = 0;
    for (const { time, acked } of inputs) {
        if (acked >= 0 && (!shown || acked > shown.acked)) {
            if (shown) {
                freezes.push({ since: shown.acked, until: acked, least: Math.round(shown.last - shown.first - SNAPSHOT_MS),
                    most: Math.round(time - shown.before - SNAPSHOT_MS) });
            }
            shown = { acked, first: time, before };
        }
        if (shown) shown.last = time;
        before = time;
    }
    return freezes.filter(({ most }) => most >= TOLD_MS);
}

const sum = (values) => values.reduce((total, value) => total + value, 0);

function check(name, { datagrams, records, log }) {
    const own = freezesOf(inputsOf(datagrams));
    const told = records.filter(({ id }) => id === 'snapshot.client_stalled');
    // Before 19.9, a client rejects by the checksum what later clients reject by the size.
    const crcErrors = [...log.matchAll(/snapshot crc error.*? tick=(\d+)/g)].map(([, tick]) => Number(tick));
    const unpackFailed = (log.match(/delta unpack failed/g) ?? []).length;
    const refused = records.filter(({ type, ok }) => type === 'snapshot' && !ok).map(({ tick }) => tick);
    const mismatched = records.filter(({ id }) => id === 'snapshot.crc_mismatch').map(({ tick }) => tick);
    const total = records.findLast(({ type, session }) => type === 'summary' && session === 0);
    const rows = own.map((each) => ({ ...each,
        told: sum(told.filter(({ since_tick: since }) => since >= each.since && since < each.until).map(({ value }) => value)) }));
    const wrong = rows.filter(({ least, most, told: value }) =>
        (value !== 0 || least >= TOLD_MS + SNAPSHOT_MS) && (value < least - SNAPSHOT_MS || value > most + SNAPSHOT_MS));
    const without = told.filter(({ since_tick: since }) => !own.some((each) => since >= each.since && since < each.until));
    const sharp = rows.filter(({ least, most, told: value }) => value !== 0 && most - least <= 2 * SNAPSHOT_MS);
    console.log(JSON.stringify({ name, stalls: told.length, why: [...new Set(told.map(({ name: why }) => why))],
        toldMs: sum(told.map(({ value }) => value)), frozenMs: total.snapshots.frozen_ms,
        compared: rows.filter(({ told: value }) => value !== 0).length, wrong, without: without.map(({ since_tick, value }) => [since_tick, value]),
        // For times known within two snapshots: the reported time minus the middle of the bounds.
        sharp: sharp.map(({ least, most, told: value }) => Math.round(value - (least + most) / 2)),
        client: { crcErrors: crcErrors.length, unpackFailed }, here: { refused: refused.length, mismatched: mismatched.length } }));
    assert.ok(told.length > 0, 'it never stood still');
    assert.deepEqual(wrong, []);
    assert.deepEqual(without, []);
    const among = (some, all) => some.filter((tick) => !all.includes(tick));
    assert.deepEqual(among(crcErrors, refused), [], 'the client refused others');
    assert.deepEqual(among(mismatched, crcErrors), [], 'the client took these');
    // Nothing is expected of other damage, such as a truncated number.
    assert.ok(refused.length >= crcErrors.length + unpackFailed);
}

test('datagrams lost in bursts', async () => {
    check('loss', await play({ args: ['--impair', 's2c:loss=45%,burst=14', '--impair-seed', '7'] }));
});

test('datagrams damaged between server and twscope', async () => {
    const next = random(5);
    check('damage', await play({ behind: (dir, bytes) => {
        if (dir !== 's2c' || bytes.length < SNAPSHOT_BYTES || bytes[0] & CONTROL || !inTurns(4000, 1500)) return bytes;
        const changed = Buffer.from(bytes);
        // Damages the upper half of a datagram, which has the snapshot's items but not the token at the end.
        const at = Math.floor(bytes.length * (0.4 + 0.5 * next()));
        changed[at] ^= 1 << Math.floor(8 * next());
        return changed;
    } }));
});

test('datagrams lost between twscope and the client', async () => {
    check('lost behind', await play({ front: (dir, bytes) =>
        (dir === 's2c' && bytes.length >= SNAPSHOT_BYTES && inTurns(3000, 900) ? null : bytes) }));
});
