// Collects records from NATS JetStream. Each is handled exactly once, by the collector or its successor, even if either is killed.
//   node collect.mjs TWSCOPE
// TW_NATS_KILLS: number of times that a collector is killed (2).
// Covers: proxy/bus/collector.cpp, proxy/cli/collect_command.cpp
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { NatsClient } from './nats_client.mjs';
import { NatsLine } from './nats_line.mjs';
import { startNats, withNats } from './nats_server.mjs';
import { Child, endChildren, temporaryFolder, waitUntil } from './process.mjs';

const TWSCOPE = process.argv.at(-1);
const KILLS = Number(process.env.TW_NATS_KILLS ?? 2);
const WAIT_MS = 40000;
const GOLDEN = fileURLToPath(new URL('../data/golden/', import.meta.url));
const CAPTURE = join(GOLDEN, 'token-map-change.pcap');

after(endChildren);
const folder = temporaryFolder();
let made = 0;
const newFolder = () => { const path = join(folder, `collected-${made += 1}`); mkdirSync(path); return path; };

async function run(...args) {
    const child = new Child('twscope', TWSCOPE, args, { timeout: WAIT_MS });
    await child.ended;
    return child;
}

/** Publishes a capture under these servers' names; returns its lines. */
async function publish(nats, ...names) {
    const file = join(folder, `published-${made += 1}.jsonl`);
    for (const name of names) {
        const done = await run('decode', CAPTURE, '--items', 'all', '--bus', nats.url, '--bus-name', name, '-o', file);
        assert.equal(done.status, 0, done.log);
    }
    return readFileSync(file, 'utf8').split('\n').slice(0, -1);
}

const sorted = (lines) => [...lines].sort();
const filesIn = (path) => readdirSync(path, { recursive: true }).filter((name) => name.endsWith('.jsonl.zst')).sort();

/** Returns all lines in a collector's folder, file by file. */
const linesIn = (path) => filesIn(path).flatMap((name) => {
    const read = spawnSync('zstdcat', [join(path, name)], { encoding: 'utf8', maxBuffer: 1 << 28 });
    assert.equal(read.status, 0, read.stderr);
    return read.stdout.split('\n').slice(0, -1);
});

/** Returns the number of lines while a collector writes: 0 if it just removed or shortened a file, to roll back an unconfirmed batch. */
function countSoFar(path) {
    try {
        return linesIn(path).length;
    } catch {
        return 0;
    }
}

const collect = (nats, ...args) => run('collect', '--bus', nats.url, '--until-end', ...args);

describe('collectors, each of a nats-server of its own', { concurrency: 4 }, () => {
    test('each server has a file for each hour, with all records once', withNats({ folder }, async (nats) => {
        const lines = await publish(nats, 'one', 'two');
        const path = newFolder();
        const done = await collect(nats, '-o', `${path}/`);
        assert.equal(done.status, 0, done.log);
        const hour = `${JSON.parse(lines[0]).t.slice(0, 13)}Z.jsonl.zst`;
        for (const server of ['one', 'two']) {
            assert.ok(filesIn(path).includes(join(server, hour)), filesIn(path).join());
            const read = await run('records', join(path, server), '--filter', 'snapshot');
            assert.equal(read.status, 0, read.log);
            assert.ok(read.output.split('\n').length > 100, 'a folder of hours is read as one of segments');
            const late = await run('records', join(path, server), '--from', '2099-01-01');
            assert.equal(late.status, 0, late.log);
            assert.equal(late.output, '');
        }
        assert.deepEqual(sorted(linesIn(path)), sorted([...lines, ...lines]));
        // The second run finds no new records, and another consumer starts at the first record.
        assert.equal((await collect(nats, '-o', `${path}/`)).status, 0);
        assert.equal(linesIn(path).length, 2 * lines.length);
        const other = join(folder, 'other.jsonl');
        assert.equal((await collect(nats, '--bus-consumer', 'other', '-o', other)).status, 0);
        assert.deepEqual(sorted(readFileSync(other, 'utf8').split('\n').slice(0, -1)), sorted([...lines, ...lines]));
    }));

    test('a missing stream is not created: an error with --until-end, otherwise waiting', withNats({ folder }, async (nats) => {
        const missing = await collect(nats, '--expect', 'snapshot');
        assert.equal(missing.status, 4, missing.log);
        assert.match(missing.errors, /the bus has no stream twscope/);
        await publish(nats, 'one');
        assert.match((await run('collect', '--bus', `${nats.url}/twscop`, '--until-end', '--expect', 'snapshot')).errors, /no stream twscop: .*\(there is twscope\)/);
        const client = await NatsClient.connect(nats.port);
        await client.request('$JS.API.STREAM.DELETE.twscope');
        client.close();
        const path = newFolder();
        const child = new Child('a collector', TWSCOPE, ['collect', '--bus', nats.url, '-o', `${path}/`]);
        await child.waitFor(/no stream twscope/, WAIT_MS);
        const lines = await publish(nats, 'one');
        await waitUntil('all to be written', () => countSoFar(path) >= lines.length, WAIT_MS);
        assert.equal(await child.stop(), 0, child.log);
        assert.equal(child.errors.split('no stream twscope').length, 2, 'said once');
    }));

    test('records that the stream dropped before they were collected are reported once and change the exit code', async () => {
        const nats = await startNats({ folder });
        const path = newFolder();
        const lines = await publish(nats, 'one');
        assert.equal((await collect(nats, '-o', `${path}/`)).status, 0);
        await publish(nats, 'two');
        const client = await NatsClient.connect(nats.port);
        await client.request('$JS.API.STREAM.PURGE.twscope');
        await publish(nats, 'three');
        const done = await collect(nats, '-o', `${path}/`);
        assert.equal(done.status, 3, done.log);
        assert.match(done.errors, new RegExp(`--until-end: ${lines.length} records are missing`));
        assert.deepEqual(sorted(linesIn(path)), sorted([...lines, ...lines]));
        assert.equal((await collect(nats, '-o', `${path}/`)).status, 0);
        assert.equal((await collect(nats, '--bus-consumer', 'other', '-o', `${newFolder()}/`)).status, 0, 'a new one misses nothing');
        client.close();
        await nats.stop();
    });

    test('other programs\' messages in the stream do not count as missing, and invalid records are left out', withNats({ folder }, async (nats) => {
        const client = await NatsClient.connect(nats.port);
        await client.request('$JS.API.STREAM.CREATE.twscope', { name: 'twscope', subjects: ['twscope.>', 'weather.>'] });
        const lines = await publish(nats, 'one');
        const path = newFolder();
        assert.equal((await collect(nats, '-o', `${path}/`)).status, 0);
        client.publish('weather.rain', 'much');
        client.publish('twscope.two.words', 'none');
        client.publish('twscope.two.map', lines.find((text) => text.includes('"type":"map"')).replace(/}$/, ',no JSON}'));
        await waitUntil('all to be there', async () => (await client.messages('twscope')).length === lines.length + 3, WAIT_MS);
        const more = await publish(nats, 'one');
        const done = await collect(nats, '-o', `${path}/`);
        assert.equal(done.status, 0, done.log);
        assert.match(done.errors, /2 messages that are not records/);
        assert.deepEqual(sorted(linesIn(path)), sorted([...lines, ...more]));
        client.close();
    }));

    test('a collector needs only the permissions in docs/fleet.md', async () => {
        const page = readFileSync(fileURLToPath(new URL('../../docs/fleet.md', import.meta.url)), 'utf8');
        const [, rights] = /A user that collects needs to publish to ([^]*?), and to subscribe to `_INBOX/.exec(page);
        const subjects = [...rights.matchAll(/`([^`]+)`/g)].map(([, subject]) => `"${subject}"`);
        const nats = await startNats({ folder, config: `authorization { users = [ { user: all, password: all },
            { user: one, password: one, permissions: { publish: [${subjects.join()}], subscribe: ["_INBOX.>"] } } ] }` });
        const as = (user) => ({ url: `nats://${user}:${user}@127.0.0.1:${nats.port}` });
        const lines = await publish(as('all'), 'one');
        const path = newFolder();
        const done = await collect(as('one'), '-o', `${path}/`);
        assert.equal(done.status, 0, done.log);
        assert.equal(linesIn(path).length, lines.length);
        await nats.stop();
    });

    test('a collector ends without an error if the reader of its output closes the pipe', withNats({ folder }, async (nats) => {
        await publish(nats, ...Array.from({ length: 5 }, (_, index) => `server-${index}`)); // more than a pipe holds
        const piped = spawnSync('bash', ['-c', `"${TWSCOPE}" collect --bus ${nats.url} -o - | head -n 1; exit $PIPESTATUS`],
            { encoding: 'utf8', timeout: WAIT_MS });
        assert.equal(piped.status, 0, piped.stderr);
        assert.equal(piped.stdout.split('\n').length, 2);
        assert.doesNotMatch(piped.stderr, /Broken pipe/);
    }));

    test('the exit code tells whether the checks of all servers passed', withNats({ folder }, async (nats) => {
        await publish(nats, 'one', 'two');
        const rows = [
            [['--expect', 'never finding and severity >= error', '--fail-on', 'error'], 0],
            [['--expect', 'snapshot and tick > 1000000000'], 1],
            [['--expect', 'snapshot', '--expect', 'never message'], 1],
            [['--filter', 'map', '-o', '-'], 0],
        ];
        for (const [index, [args, status]] of rows.entries()) {
            const done = await collect(nats, '--bus-consumer', `check-${index}`, ...args);
            assert.equal(done.status, status, done.log);
            if (args.includes('-o')) {
                const types = done.output.trim().split('\n').map((line) => JSON.parse(line).type);
                assert.deepEqual([...new Set(types)], ['map']);
            }
        }
    }));

    test('with two collectors that are killed repeatedly, each record is written once', withNats({ folder }, async (nats) => {
        const folders = [newFolder(), newFolder()];
        const start = (index) => new Child('a collector', TWSCOPE, ['collect', '--bus', nats.url, '-o', `${folders[index]}/`]);
        const lines = await publish(nats, 'first'); // otherwise the lines wait for the stream
        const collectors = [start(0), start(1)];
        for (const child of collectors) await child.waitFor(/collecting from the stream/, WAIT_MS);
        const names = Array.from({ length: 12 }, (_, index) => `server-${index}`);
        for (let kill = 0; kill < KILLS; kill += 1) {
            const published = await publish(nats, ...names);
            for (const _ of names) lines.push(...published);
            const index = kill % 2;
            await collectors[index].stop('SIGKILL');
            collectors[index] = start(index);
        }
        for (const child of collectors) await child.waitFor(/collecting from the stream/, WAIT_MS);
        const client = await NatsClient.connect(nats.port);
        await waitUntil('all to be handled', async () => {
            const info = await client.request('$JS.API.CONSUMER.INFO.twscope.collect');
            return info.num_pending === 0 && info.num_ack_pending === 0;
        }, WAIT_MS);
        client.close();
        for (const child of collectors) assert.equal(await child.stop(), 0, child.log);
        assert.deepEqual(sorted(folders.flatMap(linesIn)), sorted(lines));
    }));

    test('if nats-server is killed during collection, each record is written once', async () => {
        let nats = await startNats({ folder });
        const path = newFolder();
        const child = new Child('a collector', TWSCOPE, ['collect', '--bus', nats.url, '-o', `${path}/`]);
        const lines = [];
        const names = ['one', 'two', 'three', 'four'];
        for (let kill = 0; kill <= KILLS; kill += 1) {
            const published = await publish(nats, ...names);
            for (const _ of names) lines.push(...published);
            if (kill < KILLS) {
                await nats.kill();
                nats = await nats.again();
            }
        }
        await waitUntil('all to be written', () => countSoFar(path) >= lines.length, WAIT_MS);
        assert.equal(await child.stop(), 0, child.log);
        const game = lines.slice(0, lines.length / names.length / (KILLS + 1));
        for (const name of names) {
            assert.deepEqual(linesIn(join(path, name)), Array.from({ length: KILLS + 1 }, () => game).flat(), `${name}: all, in order`);
        }
        assert.deepEqual(sorted(linesIn(path)), sorted(lines));
        await nats.stop();
    });

    test('a second collector of the same name waits until the first one has ended', withNats({ folder }, async (nats) => {
        const paths = [newFolder(), newFolder()];
        const start = (path, ...args) => new Child('a collector', TWSCOPE, ['collect', '--bus', nats.url, '-o', `${path}/`, ...args]);
        const lines = await publish(nats, 'one');
        const first = start(paths[0]);
        await waitUntil('the first game to be written', () => countSoFar(paths[0]) === lines.length || !first.running, WAIT_MS);
        const second = start(paths[1]);
        await second.waitFor(/another collector has the consumer collect: waiting/, WAIT_MS);
        await publish(nats, 'two');
        await waitUntil('the second game to be written', () => countSoFar(paths[0]) === 2 * lines.length || !first.running, WAIT_MS);
        const third = await collect(nats, '-o', `${newFolder()}/`);
        assert.equal(third.status, 0, third.log); // no records are left
        assert.deepEqual(linesIn(paths[1]), []);
        assert.equal(await first.stop(), 0, first.log);
        await publish(nats, 'three');
        await waitUntil('the third game to be written', () => countSoFar(paths[1]) === lines.length || !second.running, WAIT_MS);
        assert.equal(await second.stop(), 0, second.log);
        assert.match(second.errors, /taking over the consumer collect/);
    }));

    test('a collector continues after collectors of an earlier version, and reports unconfirmed batches', withNats({ folder }, async (nats) => {
        const lines = await publish(nats, 'one');
        const client = await NatsClient.connect(nats.port);
        // The format of version 0.9: an acknowledgement for each record, and a log of ranges.
        await client.request('$JS.API.CONSUMER.DURABLE.CREATE.twscope.collect', { stream_name: 'twscope', config: { durable_name: 'collect',
            ack_policy: 'explicit', deliver_policy: 'all', filter_subject: 'twscope.>', ack_wait: 30e9 } });
        await client.request('$JS.API.STREAM.CREATE.twscope-collected', { name: 'twscope-collected', subjects: ['twscope-collected.*'] });
        const { created } = await client.info('twscope');
        let handed = 0;
        const end = client.subscribe('handed.out', ({ reply }) => {
            handed += 1;
            if (handed <= 100) client.publish(reply, '+ACK');
        });
        client.publish('$JS.API.CONSUMER.MSG.NEXT.twscope.collect', '{"batch":110,"expires":5000000000}', 'handed.out');
        await waitUntil('110 records to be handed out', () => handed === 110, WAIT_MS);
        client.publish('twscope-collected.collect', `twscope.collect.01a6 ${Date.parse(created)}000000 1-100`);
        end();
        const path = newFolder();
        const done = await collect(nats, '-o', `${path}/`);
        assert.equal(done.status, 0, done.log);
        assert.match(done.errors, /10 records were handed to collectors of an earlier version/);
        assert.deepEqual(linesIn(path), lines.slice(100));
        assert.equal((await collect(nats, '-o', `${path}/`)).status, 0);
        assert.equal(linesIn(path).length, lines.length - 100);
        client.close();
    }));

    test('records of a recreated stream are collected, too', withNats({ folder }, async (nats) => {
        const path = newFolder();
        const lines = await publish(nats, 'one');
        assert.equal((await collect(nats, '-o', `${path}/`)).status, 0);
        assert.equal(linesIn(path).length, lines.length);
        const client = await NatsClient.connect(nats.port);
        await client.request('$JS.API.STREAM.DELETE.twscope');
        await publish(nats, 'two');
        const child = new Child('a collector', TWSCOPE, ['collect', '--bus', nats.url, '-o', `${path}/`]);
        await waitUntil('the second game to be written', () => countSoFar(path) >= 2 * lines.length || !child.running, WAIT_MS);
        await client.request('$JS.API.STREAM.DELETE.twscope');
        await publish(nats, 'three');
        await waitUntil('the third game to be written', () => countSoFar(path) >= 3 * lines.length || !child.running, WAIT_MS);
        assert.equal(await child.stop(), 0, child.log);
        assert.deepEqual(sorted(linesIn(path)), sorted([...lines, ...lines, ...lines]));
        client.close();
    }));

    test('a batch is written and checked even if the connection breaks after the position was set', withNats({ folder }, async (nats) => {
        const lines = await publish(nats, 'one');
        const line = await NatsLine.open(nats.port);
        line.cutBefore(/"stream":"twscope-collected"/);
        const child = new Child('a collector', TWSCOPE, ['collect', '--bus', line.url, '-o', '-', '--expect', 'never snapshot']);
        const count = () => child.output.split('\n').length - 1;
        await waitUntil('all to be printed', () => count() >= lines.length || !child.running, WAIT_MS);
        assert.equal(line.cuts, 1);
        assert.equal(await child.stop(), 1, child.log);
        assert.ok(child.log.includes(`of ${lines.length} records matched`), child.log);
        assert.equal(count(), lines.length);
        line.close();
    }));

    test('collectors continue, and end on request, if the stream of positions is emptied', withNats({ folder }, async (nats) => {
        const path = newFolder();
        const lines = await publish(nats, 'one');
        const child = new Child('a collector', TWSCOPE, ['collect', '--bus', nats.url, '-o', `${path}/`]);
        const client = await NatsClient.connect(nats.port);
        // Counts records on the bus, because a file may shrink while it is read: an unconfirmed batch is rolled back.
        const handled = (count) => waitUntil(`${count} records to be handled`, async () => {
            const info = await client.request('$JS.API.CONSUMER.INFO.twscope.collect');
            return info.ack_floor?.stream_seq === count || !child.running;
        }, WAIT_MS);
        await handled(lines.length);
        await client.request('$JS.API.STREAM.PURGE.twscope-collected');
        await publish(nats, 'two');
        await handled(2 * lines.length);
        assert.equal(await child.stop(), 0, child.log);
        assert.match(child.errors, /twscope-collected was emptied or recreated/);
        assert.deepEqual(sorted(linesIn(path)), sorted([...lines, ...lines]));
        client.close();
    }));

    test('an unconfirmed batch is decided by the position of its own consumer', withNats({ folder }, async (nats) => {
        const path = newFolder();
        await publish(nats, 'one');
        const line = await NatsLine.open(nats.port);
        line.cutBefore(/"stream":"twscope-collected"/);
        const child = new Child('a collector', TWSCOPE, ['collect', '--bus', line.url, '-o', `${path}/`]);
        await waitUntil('the line to be cut', () => line.cuts === 1, WAIT_MS);
        await child.stop('SIGKILL');
        line.close();
        const written = linesIn(path);
        assert.ok(written.length > 0);
        const done = await collect(nats, '--bus-consumer', 'other', '--filter', 'tick > 1000000000', '-o', `${path}/`);
        assert.equal(done.status, 0, done.log);
        assert.deepEqual(linesIn(path), written, 'it stood in the log of the consumer before');
    }));

    test('an invalid flag is refused with one line', async () => {
        const rows = [
            [[], /collect needs the bus/],
            [['--bus', 'nats://127.0.0.1:1'], /nothing to do/],
            [['--bus', 'nats://127.0.0.1:1', '--bus-consumer', 'a.b', '-o', '-'], /--bus-consumer a\.b/],
            [['--bus', 'nats://127.0.0.1:1', '-o', '-', '--filter', 'tick >'], /--filter/],
            [['--bus', 'nats://127.0.0.1:1', '-o', '/nowhere/at/all/'], /--output \/nowhere/],
        ];
        for (const [args, complaint] of rows) {
            const child = await run('collect', ...args);
            assert.equal(child.status, 2, child.log);
            assert.match(child.errors, complaint);
            assert.match(child.errors, /^[^\n]+\n$/);
        }
    });
});

// Alone, because this program passes on the slow one's data, and must not be busy with other tests.
test('records of the largest size that the bus permits are collected', async () => {
    const nats = await startNats({ folder, config: 'max_payload: 8MB\nmax_pending: 64MB' });
    await publish(nats, 'one');
    const client = await NatsClient.connect(nats.port);
    const record = (size) => `{"v":1,"t":"2026-11-22T18:00:00.000000Z","type":"map","session":1,"name":"${'x'.repeat(size)}"}`;
    for (let index = 0; index < 40; index += 1) client.publish('twscope.big.map', record(index === 20 ? 6 << 20 : 300000));
    await waitUntil('all to be in the stream', async () => (await client.messages('twscope'))
        .filter(({ subject }) => subject === 'twscope.big.map').length === 40, WAIT_MS);
    const path = newFolder();
    const done = await collect(nats, '-o', `${path}/`, '--filter', 'map');
    assert.equal(done.status, 0, done.log);
    assert.equal(linesIn(join(path, 'big')).length, 40);
    // Sent at once, they would delay every answer of the bus beyond the timeout.
    const line = await NatsLine.open(nats.port);
    line.bytesPerSecond = 2 << 20;
    const slow = new Child('a slow one', TWSCOPE, ['collect', '--bus', line.url, '--until-end', '--duration', '120', '--bus-consumer', 'slow',
        '--expect', 'map']);
    assert.equal(await slow.ended, 0, slow.log);
    assert.doesNotMatch(slow.log, /cannot collect records/);
    line.close();
    client.close();
    await nats.stop();
});
