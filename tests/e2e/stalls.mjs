// Causes of clients' stalls: real servers that are stopped, starved or cut off, networks that lose and delay in either direction, and
// clients that do not acknowledge or stop. This test knows the cause of each stall, and twscope must name it.
//   node stalls.mjs TWSCOPE
// TW_STALLS=5: multiplies the number of stalls of each kind.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { endPeers } from './bot.mjs';
import { delay, freePort, temporaryFolder, waitUntil } from './process.mjs';
import { startProxy, TWSCOPE } from './proxy.mjs';
import { RawClient } from './raw_client.mjs';
import { endSevenBots, SevenBot } from './seven_client.mjs';
import { startServer } from './server.mjs';
import { Tap } from './tap.mjs';
import { startTeeworlds } from './teeworlds_server.mjs';

const TIMES = Number(process.env.TW_STALLS ?? 1);
const REST_MS = 1300; // pause after a stall: records have one finding of a kind per second, and evidence may take a second
const STALL_MS = 600;
const SNAPSHOT_BYTES = 13; // a shorter datagram has no snapshot; an empty snapshot of DDNet 19 has this size
const CHAT_MS = 150;
const SLOWER_STEP = 50; // ticks between the snapshots of a server that waits for an acknowledgement
const FULL_MS = 120; // within this time, a requested full snapshot arrives
const WAIT_MS = 5000;
const RIGHT = 0.95;
const AT_A_TIME = 6; // games, each with a server of its own: they mostly wait

after(() => {
    endPeers();
    endSevenBots();
    for (const client of RawClient.all) client.vanish();
});

const PEERS = [
    { name: 'DDNet', start: (options) => startServer({ ...options, map: 'ctf5' }), join: (port, name) => new RawClient(port, name).join(),
        talk: (server) => server.command('say hello') },
    { name: 'Teeworlds 0.7', start: (options) => startTeeworlds({ ...options, map: 'ctf1' }),
        join: (port, name, seed) => new SevenBot(port, name, { seed }).join(), talk: (_, clients) => clients.at(-1).say('hello') },
];

/** Plays, and makes `times` stalls, each by calling `trouble`. `chat`: another player chats, so that there are reliable messages. */
async function play(peer, { args = [], times = 3, rest = REST_MS, chat = false, clients: number = 2, trouble }) {
    const folder = temporaryFolder();
    const server = await peer.start({ folder, port: await freePort() });
    const behind = await Tap.open(server.port);
    const proxy = await startProxy({ server: behind.port, records: join(folder, 'live.jsonl'), args: ['--items', 'none', ...args] });
    const front = await Tap.open(proxy.port);
    const clients = [];
    for (let i = 0; i < number; i += 1) clients.push(await peer.join(front.port, `player${i}`, i + 1));
    const talk = chat && setInterval(() => peer.talk(server, clients), CHAT_MS);
    await delay(2000);
    const begun = Date.now();
    for (let i = 0; i < times * TIMES; i += 1) {
        await trouble({ server, behind, front, proxy, clients, signal: (name) => server.child.signal(name) });
        await delay(rest);
    }
    clearInterval(talk);
    for (const client of clients) await client.leave();
    await proxy.drain();
    for (const client of clients) client.vanish();
    await server.stop();
    front.close();
    behind.close();
    // A finding without `name` only counts findings left out. Without `tick`, the client left before a snapshot ended the stall, so the records
    // have no later evidence of its cause.
    return proxy.records().filter(({ id, name, tick, t }) => id === 'snapshot.client_stalled' && name && tick !== undefined
        && Date.parse(t) >= begun);
}

const scores = [];

/** Most stalls must be reported, and nearly all of them with this cause. */
function check(name, stalls, causes, least) {
    const counts = {};
    for (const { name: cause } of stalls) counts[cause] = (counts[cause] ?? 0) + 1;
    const right = stalls.filter(({ name: cause }) => causes.includes(cause)).length;
    scores.push([right, stalls.length]);
    console.log(JSON.stringify({ name, causes, right, of: stalls.length, least: least * TIMES, counts,
        wrong: stalls.filter(({ name: cause }) => !causes.includes(cause)).map(({ name: cause, value, detail }) => [cause, value, detail]) }));
    assert.ok(stalls.length >= least * TIMES, `${stalls.length} stalls told, not ${least * TIMES}`);
    assert.ok(right >= RIGHT * stalls.length, `${right} of ${stalls.length} right`);
}

const dropSnapshots = (tap) => { tap.change = (dir, bytes) => (dir === 's2c' && bytes.length >= SNAPSHOT_BYTES ? null : bytes); };
const dropInputs = (tap) => { tap.change = (dir, bytes) => (dir === 'c2s' ? null : bytes); };
const passAll = (tap) => { tap.change = (dir, bytes) => bytes; };

const TROUBLES = [
    { name: 'the server is stopped', causes: ['server_silent'], least: 6, async trouble({ signal }) {
        signal('SIGSTOP');
        await delay(STALL_MS);
        signal('SIGCONT');
    } },
    { name: 'the server is stopped, with one client', causes: ['server_silent'], clients: 1, least: 3, async trouble({ signal }) {
        signal('SIGSTOP');
        await delay(STALL_MS);
        signal('SIGCONT');
    } },
    { name: 'the server is stopped for longer than it keeps snapshots', causes: ['server_silent'], times: 1, least: 2, async trouble({ signal }) {
        signal('SIGSTOP');
        await delay(4000);
        signal('SIGCONT');
    } },
    { name: 'the server is starved', causes: ['server_silent'], times: 2, rest: 0, least: 6, async trouble({ signal }) {
        for (const end = Date.now() + 3000; Date.now() < end;) {
            signal('SIGSTOP');
            await delay(450);
            signal('SIGCONT');
            await delay(50);
        }
    } },
    { name: '--impair loses the server\'s datagrams', causes: ['lost'], args: ['--impair', 's2c:loss=45%,burst=25', '--impair-seed', '3'],
        times: 1, least: 2, trouble: () => delay(8000) },
    { name: 'datagrams are lost between server and twscope', causes: ['lost'], least: 6, async trouble({ behind }) {
        dropSnapshots(behind);
        await delay(STALL_MS);
        passAll(behind);
    } },
    { name: 'datagrams are lost between twscope and client', causes: ['lost_behind'], chat: true, least: 5, async trouble({ front }) {
        dropSnapshots(front);
        await delay(STALL_MS);
        passAll(front);
    } },
    { name: 'datagrams of the server are held up', causes: ['late'], least: 6, async trouble({ behind }) {
        behind.hold();
        await delay(STALL_MS);
        behind.release();
    } },
    { name: 'inputs are lost between twscope and server', causes: ['lost'], times: 1, rest: 2500, least: 2, async trouble({ behind }) {
        dropInputs(behind);
        await delay(6000);
        passAll(behind);
    } },
    { name: 'a client acknowledges an old snapshot', causes: ['unacknowledged'], chat: true, least: 3, async trouble({ clients: [client] }) {
        client.keptAck = client.tick;
        await delay(1000);
        client.keptAck = null;
    } },
    { name: 'a client asks for a full snapshot again and again', causes: ['unacknowledged'], times: 1, least: 1, async trouble({ clients: [client] }) {
        client.keptAck = -1;
        await delay(3500);
        client.keptAck = null;
    } },
    { name: 'a client acknowledges a full snapshot late', causes: ['slower_rate'], least: 3, async trouble({ clients: [client] }) {
        // Starts soon after a tick at which servers send at the slower rate, so that no other snapshot comes before the acknowledgement.
        await waitUntil('a tick of the slower rate', () => client.tick % SLOWER_STEP <= SLOWER_STEP / 10, WAIT_MS);
        client.keptAck = -1; // requests a full snapshot
        await delay(FULL_MS);
        client.silent = true;
        await delay(STALL_MS - FULL_MS);
        Object.assign(client, { keptAck: null, silent: false });
    } },
    { name: 'a client stops', causes: ['client_silent'], times: 1, least: 1, async trouble({ clients: [client] }) {
        client.silent = true;
        await delay(6000);
        client.silent = false;
    } },
    { name: 'datagrams are lost between client and twscope', causes: ['client_silent'], times: 1, least: 2, async trouble({ front }) {
        dropInputs(front);
        await delay(6000);
        passAll(front);
    } },
];

describe('one kind of stall', { concurrency: AT_A_TIME }, () => {
    for (const peer of PEERS) {
        for (const { name, causes, least, ...how } of TROUBLES) {
            test(`${peer.name}: ${name}`, async () => {
                const once = async () => check(`${peer.name}: ${name}`, await play(peer, how), causes, least);
                // A busy machine causes stalls of its own, so one failure is repeated; the second one counts. All attempts are counted in the end.
                await once().catch(once);
            });
        }
        test(`${peer.name}: a normal join and play`, async () => {
            assert.deepEqual(await play(peer, { times: 1, trouble: () => delay(1000) }), []);
        });
    }
});

test('all kinds of stalls together', () => {
    const [right, all] = scores.reduce(([some, of], [each, total]) => [some + each, of + total], [0, 0]);
    console.log(`${right} of ${all} stalls told right`);
    assert.ok(right >= RIGHT * all);
});
