// A game with simulated network faults: what is lost, when datagrams arrive, and what the records say.
//   node impairment.mjs TWSCOPE
import assert from 'node:assert/strict';
import dgram from 'node:dgram';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { Bot, endPeers } from './bot.mjs';
import { Child, freePort, temporaryFolder, waitUntil } from './process.mjs';
import { startProxy, TWSCOPE } from './proxy.mjs';
import { MAPS, startServer } from './server.mjs';

const WAIT_MS = 20000;
const REQUESTS = 2000;
const WINDOW = 50; // requests in flight, so that no buffer overflows
const BUFFER_BYTES = 4 << 20;

after(endPeers);
const folder = temporaryFolder();
let files = 0;
const recordsFile = () => join(folder, `records-${files += 1}.jsonl`);
const of = (records, type) => records.filter((record) => record.type === type);
const bound = (socket) => new Promise((resolve) => { socket.bind(0, '127.0.0.1', () => resolve(socket)); });

/** Sends numbered server-info requests through twscope to a silent server. Returns what arrived, and the records. */
async function requests(args) {
    const server = await bound(dgram.createSocket({ type: 'udp4', recvBufferSize: BUFFER_BYTES }));
    const arrived = [];
    server.on('message', (bytes) => arrived.push(bytes.at(-1) | bytes.at(-2) << 8));
    const proxy = await startProxy({ server: server.address().port, records: recordsFile(),
        args: ['--no-admission', ...args] }); // the requests are not those of a game client
    const client = await bound(dgram.createSocket('udp4'));
    for (let number = 0; number < REQUESTS; number += 1) {
        // xe, four ignored bytes, ff ff ff ff gie3, then our number in place of the token
        const request = Buffer.from('7865000000000000ffffffff6769653300', 'hex');
        client.send(Buffer.concat([request, Buffer.from([number >> 8, number & 0xff])]), proxy.port, '127.0.0.1');
        if (number % WINDOW === WINDOW - 1) await new Promise((resolve) => { setTimeout(resolve, 5); });
    }
    // Delayed datagrams are sent when twscope ends.
    const status = await proxy.drain();
    let before = -1;
    await waitUntil('all that was sent on to arrive', () => before === (before = arrived.length), WAIT_MS);
    client.close();
    server.close();
    return { status, arrived, records: proxy.records(), log: proxy.child.log };
}

const timeless = ({ t, client, server, ...record }) => JSON.stringify(record);

test('the same seed and traffic give the same datagrams and the same records', async () => {
    const args = ['--impair', 'c2s:loss=5%,burst=2,dup=3%,reorder=2%', '--impair-seed', '7'];
    const [first, second] = [await requests(args), await requests(args)];
    assert.equal(first.status, 0, first.log);
    assert.deepEqual(second.arrived, first.arrived);
    // The delays are measured, so they may vary.
    const lines = ({ records }) => records.filter(({ type }) => type !== 'summary').map(timeless);
    assert.deepEqual(lines(second), lines(first));
    const { c2s, s2c } = of(first.records, 'summary').find(({ session }) => session === 0).impaired;
    assert.equal(c2s.datagrams, REQUESTS);
    assert.ok(c2s.lost > 40 && c2s.lost < 180, `${c2s.lost} lost`);
    assert.equal(first.arrived.length, REQUESTS - c2s.lost + c2s.duplicated);
    assert.equal(s2c.datagrams, 0);
    assert.deepEqual(of(second.records, 'summary').at(-1).impaired, { c2s, s2c });
    const other = await requests([...args.slice(0, 3), '8']);
    assert.notDeepEqual(other.arrived, first.arrived);
});

test('the records and the log\'s first line have the impairment', async () => {
    const { records, log } = await requests(['--impair', 's2c:delay=40ms,jitter=10ms', '--impair', 'c2s:rate=1mbit']);
    const [{ settings, seed, c2s, s2c }] = of(records, 'impairment');
    assert.equal(settings, 'c2s:rate=1mbit;s2c:delay=40ms,jitter=10ms');
    assert.equal(seed, 1);
    assert.equal(c2s.rate_bps, 1_000_000);
    assert.deepEqual([s2c.delay_us, s2c.jitter_us, s2c.loss_ppm], [40_000, 10_000, 0]);
    assert.match(log, /the network is impaired: c2s:rate=1mbit;s2c:delay=40ms,jitter=10ms \(seed 1\)/);
});

test('an invalid impairment is refused with one line', async () => {
    const child = new Child('twscope', TWSCOPE, ['proxy', '-s', '127.0.0.1:1', '-l', '127.0.0.1:0', '--impair', 's2c:loss=2']);
    assert.equal(await child.ended, 2);
    assert.match(child.errors, /^twscope: --impair s2c:loss=2: loss is a share from 0% to 100%, for example 2%, not '2'\n$/);
});

test('a game on a bad network continues with delays and losses, and all received snapshots are verified', async () => {
    const server = await startServer({ folder, port: await freePort(), map: 'ctf1' });
    const proxy = await startProxy({ server: server.port, records: recordsFile(),
        args: ['--maps', MAPS, '--impair', 'delay=20ms,jitter=5ms;s2c:loss=2%,dup=1%'] });
    // A client does not repeat its first messages and may need several attempts because of the loss. Other errors still fail.
    let bot;
    await waitUntil('a client to get in', async () => {
        bot = new Bot(proxy.port, 'anna', { keep: true });
        return bot.join(5000).then(() => true, () => { bot.vanish(); return false; });
    }, 5 * WAIT_MS);
    bot.walk();
    await waitUntil('snapshots to be seen', () => bot.snapshots.length >= 200, WAIT_MS);
    await bot.leave();
    assert.equal(await proxy.drain(), 0);
    await server.stop();
    const records = proxy.records();
    const snapshots = of(records, 'snapshot');
    assert.deepEqual(snapshots.filter(({ ok, crc_got: crc }) => !ok && crc !== null).map(({ tick }) => tick), []);
    const recorded = new Set(snapshots.map(({ tick }) => tick));
    assert.deepEqual(bot.snapshots.filter(({ tick, failed }) => !failed && !recorded.has(tick)), []);
    const { impaired } = of(records, 'summary').find(({ session }) => session === 0);
    assert.ok(impaired.s2c.lost > 0, JSON.stringify(impaired));
    assert.equal(impaired.c2s.lost, 0);
});
