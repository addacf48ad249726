// Records on NATS JetStream: every record is in the stream once, whatever process is killed meanwhile.
//   node nats.mjs TWSCOPE
// TW_NATS_KILLS: number of times that each program is killed (2).
// Covers: proxy/bus/bus_output.cpp, proxy/bus/link.cpp, proxy/bus/publisher.cpp
// Covers: proxy/cli/publish_flags.cpp, proxy/pipeline/record_outputs.cpp
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Bot, endPeers, plays, SNAPSHOTS } from './bot.mjs';
import { NatsClient } from './nats_client.mjs';
import { NatsLine } from './nats_line.mjs';
import { startNats, withNats } from './nats_server.mjs';
import { Child, freePort, temporaryFolder, waitUntil } from './process.mjs';
import { startProxy, TWSCOPE } from './proxy.mjs';
import { startServer } from './server.mjs';

const KILLS = Number(process.env.TW_NATS_KILLS ?? 2);
const WAIT_MS = 20000;
const CAPTURE = fileURLToPath(new URL('../data/golden/token-map-change.pcap', import.meta.url));

after(endPeers);
const folder = temporaryFolder();
let files = 0;
const newFile = () => join(folder, `records-${files += 1}.jsonl`);
const linesOf = (file) => readFileSync(file, 'utf8').split('\n').slice(0, -1);

/** Returns the messages in a stream, read by our own client. */
async function streamOf(nats, stream = 'twscope', login = {}) {
    const client = await NatsClient.connect(nats.port, login);
    try {
        return await client.messages(stream);
    } finally {
        client.close();
    }
}

/** Waits until the stream has as many records as the file. */
async function caughtUp(nats, ...files) {
    const client = await NatsClient.connect(nats.port);
    const wanted = () => files.reduce((sum, file) => sum + linesOf(file).length, 0);
    await waitUntil('the stream to have it all', async () => ((await client.info('twscope')).state?.messages ?? 0) >= wanted(), WAIT_MS);
    client.close();
}

/** Each message must have its own id and the subject of its type, and no number of a run may be missing. */
function checkIds(messages, server) {
    const runs = new Map();
    for (const { subject, id, data } of messages) {
        assert.equal(subject, `twscope.${server}.${JSON.parse(data).type}`);
        const [run, number] = id.split(':');
        runs.set(run, [...runs.get(run) ?? [], Number(number)]);
    }
    for (const numbers of runs.values()) {
        assert.deepEqual(numbers.sort((a, b) => a - b), numbers.map((_, index) => index + 1));
    }
    return runs.size;
}

const sorted = (texts) => [...texts].sort();
const timesOf = (texts) => texts.reduce((times, text) => times.set(text, (times.get(text) ?? 0) + 1), new Map());

/** Every line of the file must be in the stream once, and nothing else. */
function checkSame(messages, file) {
    assert.deepEqual(sorted(messages.map(({ data }) => data)), sorted(linesOf(file)));
}

async function withPlay(nats, args, body) {
    const server = await startServer({ folder, port: await freePort(), map: 'ctf1' });
    const file = newFile();
    const proxy = await startProxy({ server: server.port, records: file, args: ['--bus', nats.url, '--bus-name', 'one', ...args] });
    try {
        await body({ server, proxy, file });
    } finally {
        await proxy.child.stop();
        await server.stop();
    }
}

function decode(nats, ...args) {
    return spawnSync(TWSCOPE, ['decode', CAPTURE, '--bus', nats.url, ...args], { encoding: 'utf8', timeout: 60000 });
}

test('the stream has the same records as the file, each once', withNats({ folder }, async (nats) => {
    await withPlay(nats, [], async ({ proxy, file }) => {
        const bots = [];
        for (const name of ['anna', 'bob']) bots.push((await new Bot(proxy.port, name, { keep: true }).join()).walk());
        for (const bot of bots) await plays(bot, 2 * SNAPSHOTS);
        for (const bot of bots) await bot.leave();
        assert.equal(await proxy.drain(), 0, proxy.child.errors);
        const messages = await streamOf(nats);
        assert.equal(checkIds(messages, 'one'), 1);
        checkSame(messages, file);
        assert.deepEqual(messages.map(({ data }) => data), linesOf(file), 'and in the same order');
    });
}));

test('a stream is created with the limits, and an existing one is not changed', withNats({ folder }, async (nats) => {
    assert.equal(decode(nats, '--bus-limits', '1h,64MiB').status, 0);
    const client = await NatsClient.connect(nats.port);
    const { config } = await client.info('twscope');
    assert.deepEqual(config.subjects, ['twscope.>']);
    assert.equal(config.max_age, 3600e9);
    assert.equal(config.max_bytes, 64 << 20);
    assert.equal(config.discard, 'old');
    assert.equal(config.duplicate_window, 120e9);
    const other = decode(nats, '--bus-limits', '2h,1MiB');
    assert.equal(other.status, 0);
    assert.match(other.stderr, /already exists with other limits/);
    assert.deepEqual((await client.info('twscope')).config, config);
    // A stream may not detect duplicates for longer than it keeps messages.
    await client.request('$JS.API.STREAM.DELETE.twscope');
    assert.equal(decode(nats, '--bus-limits', '1min,64MiB').status, 0);
    assert.equal((await client.info('twscope')).config.duplicate_window, 60e9);
    client.close();
}));

test('a capture is published under its file name', withNats({ folder }, async (nats) => {
    const file = newFile();
    const decoded = decode({ url: `${nats.url}/fleet` }, '-o', file);
    assert.equal(decoded.status, 0, decoded.stderr);
    const messages = await streamOf(nats, 'fleet');
    checkSame(messages, file);
    assert.ok(messages.every(({ subject }) => subject.startsWith('fleet.token-map-change.')));
}));

test('if nats-server is killed repeatedly, each record is in the stream once', async () => {
    let nats = await startNats({ folder });
    await withPlay(nats, [], async ({ proxy, file }) => {
        const bot = (await new Bot(proxy.port, 'anna', { keep: true }).join()).walk();
        for (let kill = 0; kill < KILLS; kill += 1) {
            await plays(bot);
            await nats.kill();
            await plays(bot); // the game is not affected
            nats = await nats.again();
        }
        await plays(bot);
        await bot.leave();
        await caughtUp(nats, file);
        assert.equal(await proxy.drain(), 0, proxy.child.errors);
        const messages = await streamOf(nats);
        checkIds(messages, 'one');
        checkSame(messages, file);
        assert.match(proxy.child.errors, /cannot publish records/);
    });
    await nats.stop();
});

test('a stopped bus does not affect the game, and no record is missing after it continues', withNats({ folder }, async (nats) => {
    await withPlay(nats, [], async ({ proxy, file }) => {
        const bot = (await new Bot(proxy.port, 'anna', { keep: true }).join()).walk();
        await plays(bot);
        nats.child.signal('SIGSTOP');
        await plays(bot, 8 * SNAPSHOTS);
        nats.child.signal('SIGCONT');
        await plays(bot);
        await bot.leave();
        await caughtUp(nats, file);
        assert.equal(await proxy.drain(), 0, proxy.child.errors);
        checkSame(await streamOf(nats), file);
    });
}));

test('without a bus, the game goes on, and missing records are reported', async () => {
    const nats = await startNats({ folder });
    await nats.stop();
    await withPlay(nats, [], async ({ proxy, file }) => {
        const bot = (await new Bot(proxy.port, 'anna', { keep: true }).join()).walk();
        await plays(bot);
        await bot.leave();
        proxy.child.signal('SIGINT');
        await waitUntil('the end', () => !proxy.child.running, WAIT_MS);
        assert.equal(proxy.child.status, 3);
        assert.match(proxy.child.errors, new RegExp(`${linesOf(file).length} records could not be written`));
    });
});

test('if the bus stops answering at the end, only unacknowledged records are reported as lost', withNats({ folder }, async (nats) => {
    const line = await NatsLine.open(nats.port);
    await withPlay({ url: line.url }, [], async ({ proxy, file }) => {
        const bot = (await new Bot(proxy.port, 'anna', { keep: true }).join()).walk();
        await plays(bot, 2 * SNAPSHOTS);
        line.fallSilent();
        const taken = Number([...line.said.matchAll(/"stream":"twscope",\s*"seq":(\d+)/g)].at(-1)[1]);
        await plays(bot);
        await bot.leave();
        assert.equal(await proxy.drain(), 3, proxy.child.errors);
        assert.match(proxy.child.errors, new RegExp(`${linesOf(file).length - taken} records could not be written`));
    });
    line.close();
}));

test('after an outage longer than the run, the next run publishes the spool under the same ids', async () => {
    const first = await startNats({ folder });
    await first.stop();
    const spool = join(folder, 'spool-outage');
    const recorded = [];
    const playOnce = (args = []) => withPlay(first, ['--spool', `${spool},64MiB`, ...args], async ({ proxy, file }) => {
        const bot = (await new Bot(proxy.port, 'anna', { keep: true }).join()).walk();
        await plays(bot);
        await bot.leave();
        assert.equal(await proxy.drain(), 0, proxy.child.errors);
        recorded.push(file);
        return proxy;
    });
    await playOnce();
    assert.equal(readdirSync(spool).length, 2);
    await playOnce();
    const nats = await first.again();
    await playOnce();
    const messages = await streamOf(nats);
    assert.equal(checkIds(messages, 'one'), 3);
    assert.deepEqual(sorted(messages.map(({ data }) => data)), sorted(recorded.flatMap(linesOf)));
    assert.deepEqual(readdirSync(spool), []);
    await nats.stop();
});

test('a stopped bus does not delay the end, and the next run publishes the rest once', withNats({ folder }, async (nats) => {
    const recorded = [];
    const said = [];
    const playOnce = (body) => withPlay(nats, ['--spool', `${join(folder, 'spool-frozen')},64MiB`], async ({ proxy, file }) => {
        const bot = (await new Bot(proxy.port, 'anna', { keep: true }).join()).walk();
        await plays(bot);
        await body(bot);
        await bot.leave();
        recorded.push(file);
        assert.equal(await proxy.drain(), 0, proxy.child.errors);
        said.push(proxy.child.errors);
    });
    await playOnce(async (bot) => {
        nats.child.signal('SIGSTOP');
        await plays(bot);
    });
    assert.match(said[0], /records remain in the spool/);
    assert.doesNotMatch(said[0], /did not end in time/);
    nats.child.signal('SIGCONT');
    await playOnce(() => {});
    const messages = await streamOf(nats);
    assert.equal(checkIds(messages, 'one'), 2);
    assert.deepEqual(sorted(messages.map(({ data }) => data)), sorted(recorded.flatMap(linesOf)));
}));

test('if twscope is killed repeatedly, each line of the spool is published once', withNats({ folder }, async (nats) => {
    const spool = join(folder, 'spool-killed');
    const recorded = [];
    for (let kill = 0; kill <= KILLS; kill += 1) {
        await withPlay(nats, ['--spool', `${spool},64MiB`], async ({ proxy, file }) => {
            recorded.push(file);
            const bot = (await new Bot(proxy.port, 'anna', { keep: true }).join()).walk();
            await plays(bot);
            if (kill === KILLS) {
                await bot.leave();
                await waitUntil('the spool to be empty', async () => {
                    const client = await NatsClient.connect(nats.port);
                    const { state } = await client.info('twscope');
                    client.close();
                    return state.messages >= recorded.reduce((sum, each) => sum + linesOf(each).length, 0) - 200;
                }, WAIT_MS);
                assert.equal(await proxy.drain(), 0, proxy.child.errors);
                return;
            }
            process.kill(proxy.observer(), 'SIGKILL');
            await proxy.child.stop('SIGKILL');
            bot.vanish();
        });
    }
    const messages = await streamOf(nats);
    assert.equal(checkIds(messages, 'one'), KILLS + 1);
    const published = new Set(messages.map(({ data }) => data));
    // A client may send the same chat message twice in one datagram.
    const written = timesOf(recorded.flatMap(linesOf));
    const twice = [...timesOf(messages.map(({ data }) => data))].filter(([line, times]) => times > (written.get(line) ?? 1));
    assert.deepEqual(twice, [], 'a record is there twice');
    for (const file of recorded) {
        // File and spool are written independently, so they may differ by the records between the two writes.
        const lines = linesOf(file);
        const missing = lines.filter((line) => !published.has(line));
        const late = Date.parse(JSON.parse(lines.at(-1)).t) - 500;
        assert.deepEqual(missing.filter((line) => Date.parse(JSON.parse(line).t) < late), []);
    }
    assert.deepEqual(readdirSync(spool), []);
}));

test('a bus without JetStream, missing rights and a wrong password are reported', async () => {
    const rows = [
        ['no JetStream', { jetstream: false }, '', /has no JetStream/],
        ['a wrong password', { config: 'authorization { user: me, password: secret }' }, 'me:wrong@', /[Aa]uthorization/],
        ['who may not publish', { config: `authorization { users: [ { user: me, password: secret,
            permissions: { publish: ["$JS.API.>"], subscribe: ["_INBOX.>"] } } ] }` }, 'me:secret@', /[Pp]ermissions|acknowledged/],
    ];
    for (const [name, options, login, complaint] of rows) {
        const nats = await startNats({ folder, ...options });
        const child = new Child('twscope', TWSCOPE, ['decode', CAPTURE, '--bus', `nats://${login}127.0.0.1:${nats.port}`]);
        await child.waitFor(complaint, WAIT_MS).catch((error) => { throw new Error(`${name}: ${error.message}\n${child.log}`); });
        assert.doesNotMatch(child.log, /secret|wrong@/);
        await child.stop();
        await nats.stop();
    }
});

test('a lasting problem is reported once, not for each connection or record', withNats({ folder, config: 'max_payload: 400' }, async (nats) => {
    const client = await NatsClient.connect(nats.port);
    await client.request('$JS.API.STREAM.CREATE.twscope', { name: 'twscope', subjects: ['other.>'] });
    const refused = new Child('decode', TWSCOPE, ['decode', CAPTURE, '--bus', nats.url]);
    await refused.waitFor(/no stream accepts twscope\./, WAIT_MS);
    await new Promise((resolve) => { setTimeout(resolve, 3500); }); // at least four more attempts
    await refused.waitFor(/\(\d+ so far\)/, WAIT_MS); // appears later on a busy machine
    await refused.stop('SIGKILL');
    assert.equal(refused.errors.split('cannot publish records').length, 2, refused.errors);
    const lost = Number(/\((\d+) so far\)[^(]*$/.exec(refused.errors)[1]);
    assert.ok(lost > 100, refused.errors);
    assert.ok(refused.errors.split('more than the bus accepts').length <= 2 + Math.log2(lost), refused.errors);
    client.close();
}));

test('an invalid flag is refused with one line', () => {
    const rows = [
        [['--bus', 'localhost:4222'], /nats:\/\/HOST:PORT/],
        [['--bus', 'nats://x/a.b'], /--bus: the stream a\.b/],
        [['--bus', 'nats://x', '--bus-name', '*'], /--bus-name \*/],
        [['--bus', 'nats://x', '--bus-file', '/nowhere'], /--bus-file \/nowhere: No such file/],
        [['--bus', 'nats://x', '--bus-file', '/dev/null'], /contains neither credentials/],
        [['--bus', 'nats://x', '--spool', 'dir,1KiB'], /--spool dir,1KiB: expected/],
        [['--spool', 'dir'], /--spool has no effect without --bus/],
    ];
    for (const [args, complaint] of rows) {
        for (const command of [['proxy', '-s', '127.0.0.1:9'], ['decode', CAPTURE]]) {
            const child = spawnSync(TWSCOPE, [...command, ...args], { encoding: 'utf8' });
            assert.equal(child.status, 2, child.stderr);
            assert.match(child.stderr, complaint);
            assert.match(child.stderr, /^[^\n]+\n$/);
        }
    }
});
