// --resync on the real server: the observer process is killed, and the session is verified again at once, because twscope requested a full
// snapshot from the server in the client's name. The client is not affected.
//   node resync.mjs TWSCOPE
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { Bot, endPeers, plays } from './bot.mjs';
import { childrenOf, delay, freePort, temporaryFolder, waitUntil } from './process.mjs';
import { startProxy } from './proxy.mjs';
import { MAPS, startServer } from './server.mjs';
import { Tap } from './tap.mjs';

const WAIT_MS = 15000;
/** The time from the next observer's start until a snapshot is verified: VERIFIED_MS at least once, BUSY_MS always. */
const VERIFIED_MS = 500;
const BUSY_MS = 2000;
/** The longest time from the kill until a snapshot is verified, because a busy machine is slow to start a process. */
const STARTED_MS = 3000;
const PLAY_SNAPSHOTS = 50;
const KILLS = 3;
/** The most inputs that may be rewritten for one request: those of three seconds. */
const MOST = 150;
/** A server that was asked for a full snapshot sends one every second until the next acknowledgement. So a stalled client may wait this long. */
const LONGEST_STEP = 50; // ticks of 20 ms
/** The shortest time between two requests of a session. */
const BETWEEN_MS = 5000;

after(endPeers);

const timeOf = (record) => Date.parse(record.t);
const isGap = (record) => record.type === 'finding' && record.id === 'inspect.gap';
const isResync = (record) => record.type === 'finding' && record.id === 'session.resync';

/** Plays while the observer is killed repeatedly. Returns what the client sent and what the server received. */
async function game({ args }) {
    const folder = temporaryFolder();
    const server = await startServer({ folder, port: await freePort(), map: 'ctf1' });
    const behind = await Tap.open(server.port);
    const proxy = await startProxy({ server: behind.port, records: join(folder, 'records.jsonl'), args: ['--maps', MAPS, ...args] });
    const front = await Tap.open(proxy.port);
    const bot = await new Bot(front.port, 'anna', { seed: 1, keep: true }).join();
    await plays(bot.walk(), PLAY_SNAPSHOTS);
    const { pid } = proxy.child.process;
    for (let kill = 1; kill <= KILLS; kill += 1) {
        const [observer] = childrenOf(pid);
        const lines = proxy.records().length;
        process.kill(observer, 'SIGKILL');
        await waitUntil('another observer', () => childrenOf(pid).some((child) => child !== observer), WAIT_MS);
        await waitUntil('it to look', () => proxy.records().slice(lines).some(({ type }) => type === 'snapshot'), WAIT_MS);
        await delay(BETWEEN_MS + 500);
    }
    await bot.leave();
    const flow = (tap) => [...tap.flows.values()].sort((a, b) => b.datagrams.length - a.datagrams.length)[0];
    const saidGoodbye = (tap) => /^1[0-3]..0004/.test(flow(tap).wire('c2s').split('\n').at(-1)); // a control packet: CLOSE
    await waitUntil('its goodbye to arrive', () => saidGoodbye(front) && saidGoodbye(behind), WAIT_MS);
    const status = await proxy.drain();
    await server.stop();
    const [sent, arrived] = [flow(front), flow(behind)];
    front.close();
    behind.close();
    return { status, bot, records: proxy.records(), sent, arrived };
}

/** Returns the number of the client's datagrams that reached the server with other bytes. */
function changed(sent, arrived) {
    const left = new Map();
    for (const line of arrived.wire('c2s').split('\n')) left.set(line, (left.get(line) ?? 0) + 1);
    return sent.wire('c2s').split('\n').filter((line) => {
        const count = left.get(line) ?? 0;
        left.set(line, count - 1);
        return count <= 0;
    }).length;
}

function checkClient(bot) {
    assert.ok(bot.snapshots.length > PLAY_SNAPSHOTS);
    assert.deepEqual(bot.snapshots.filter(({ failed }) => failed), [], 'the client could not read a snapshot');
    // A server sends a snapshot every other tick, and on a busy machine some later.
    const ticks = bot.snapshots.map(({ tick }) => tick).slice(PLAY_SNAPSHOTS);
    const steps = ticks.slice(1).map((tick, index) => tick - ticks[index]);
    console.log(`the longest time between two snapshots at the client: ${Math.max(...steps)} ticks`);
    assert.deepEqual(steps.filter((step) => step > LONGEST_STEP), [], 'snapshots are missing at the client');
}

describe('games with a server each', { concurrency: 2 }, () => {
    test('a session is verified again as soon as another observer inspects it, without an effect on its client', async () => {
        const { bot, records, sent, arrived } = await game({ args: ['--resync'] });
        checkClient(bot);
        const joined = records.filter((record) => isGap(record) && record.name === 'new_observer');
        assert.equal(joined.length, KILLS);
        const took = [];
        for (const gap of joined) {
            const verified = records.find((record) => record.type === 'snapshot' && record.session === gap.session && record.ok);
            const first = records.find((record) => isResync(record) && record.session === gap.session);
            assert.ok(verified, `session ${gap.session} stayed blind`);
            assert.ok(first, `nothing was asked for session ${gap.session}`);
            const ms = timeOf(verified) - timeOf(gap);
            console.log(`verified again ${ms} ms after the next observer looked`);
            assert.ok(ms <= BUSY_MS, `${ms} ms`);
            took.push(ms);
            assert.equal(verified.delta_tick, -1, 'it is a whole one');
            const later = records.filter((record) => record.type === 'snapshot' && record.session === gap.session
                && timeOf(record) >= timeOf(verified));
            const share = later.filter(({ ok }) => ok).length / later.length;
            console.log(`${(100 * share).toFixed(1)} % of the ${later.length} snapshots from it on are verified`);
            assert.equal(share, 1, 'what the server sent behind it builds on it');
            const before = records.filter(({ t }) => t < gap.t).at(-1);
            assert.ok(timeOf(gap) - timeOf(before) < STARTED_MS);
        }
        assert.ok(Math.min(...took) <= VERIFIED_MS, `${took} ms`);
        // Of findings that repeat within a second, only one is recorded, and a killed observer did not report the others.
        const recorded = records.filter(isResync).length;
        const touched = changed(sent, arrived);
        console.log(`${touched} inputs were rewritten, ${recorded} findings`);
        assert.ok(touched >= recorded && touched <= KILLS * MOST, `${touched} inputs were rewritten, ${recorded} findings`);
        // The last request came after the client had left.
        assert.ok(arrived.wire('s2c').startsWith(sent.wire('s2c')), 'nothing from the server was touched');
    });

    test('without --resync, no datagram is changed, and the session stays unverified', async () => {
        const { bot, records, sent, arrived } = await game({ args: [] });
        checkClient(bot);
        assert.equal(sent.wire('c2s'), arrived.wire('c2s'));
        assert.equal(records.filter(isResync).length, 0);
        const last = Math.max(...records.filter(({ type }) => type === 'snapshot').map(({ session }) => session));
        assert.ok(records.filter(({ type, session }) => type === 'snapshot' && session === last).every(({ ok }) => !ok));
    });
});
