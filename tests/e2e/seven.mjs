// Teeworlds 0.7 through twscope: on the distribution's own 0.7 server, on a DDNet server with clients of 0.6 in the same game, and the 0.7
// connections of every capture of tests/data. Compares twscope's records with what our own clients decoded independently.
//   node seven.mjs TWSCOPE
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { gunzipSync } from 'node:zlib';
import { Bot, endPeers, plays } from './bot.mjs';
import { freePort, temporaryFolder, waitUntil } from './process.mjs';
import { isFreeze, readRecords, startProxy, TWSCOPE } from './proxy.mjs';
import { endSevenBots, SevenBot } from './seven_client.mjs';
import { readSevenConnections } from './seven_reader.mjs';
import { MAPS, startServer } from './server.mjs';
import { SEVEN_MAPS, startTeeworlds } from './teeworlds_server.mjs';

const DATA = fileURLToPath(new URL('../data/', import.meta.url));
const GAMENET = JSON.parse(readFileSync(join(DATA, 'spec/gamenet-0.6-ddnet.json')));
/** Messages with a UUID are the same in both protocols. */
const UUID_NAMES = new Map([...GAMENET.system_messages, ...GAMENET.game_messages].filter(({ uuid }) => uuid)
    .map(({ uuid, name }) => [uuid.replaceAll('-', ''), name]));
const CAPTURES = join(DATA, 'captures');
const CONVERTED_MAPS = '/usr/share/games/ddnet/data/maps7';
const ALL_MAPS = ['--maps', SEVEN_MAPS, '--maps', MAPS, '--maps', CONVERTED_MAPS];
const PLAYED = 75; // number of snapshots: three seconds
const WAIT_MS = 20000;
const SECRETS = ['hunter2', 'psst, a whisper', 'status of all'];

after(endSevenBots);
after(endPeers);

const of = (records, type) => records.filter((record) => record.type === type);
const warnings = (records) => of(records, 'finding').filter((finding) => finding.severity !== 'info' && !isFreeze(finding));
const unnamed = (records) => of(records, 'message').filter(({ name }) => !name);

/** Returns the session with the n-th `established` record of a client on this port. */
const sessionOf = (records, port) => of(records, 'session').find(({ client, event }) =>
    event === 'open' && client === `127.0.0.1:${port}`)?.session;

/** Returns the snapshots of a session as text, for comparison with another decoder. */
const shown = (records, session) => of(records, 'snapshot').filter((record) => record.session === session && record.ok)
    .map(({ tick, delta_tick: base, items }) => `${tick} ${base} ${items.map(({ type_id: type, id, data }) =>
        `${type}:${id}=${data}`).sort().join(' ')}`);
const rebuilt = (snapshots) => snapshots.map(({ tick, deltaTick, items }) =>
    `${tick} ${deltaTick} ${[...items].map(([key, data]) => `${key}=${data}`).sort().join(' ')}`);

/** Compares what our client rebuilt with twscope's records, tick by tick and item by item. The client may have left before the end. */
function compare(records, session, snapshots) {
    const [seen, own] = [shown(records, session), rebuilt(snapshots)];
    const first = own.findIndex((line, index) => line !== seen[index]);
    assert.equal(seen[first], own[first], `session ${session}, snapshot ${first}`);
    assert.ok(seen.length - own.length < 2 * PLAYED, `${seen.length} recorded, ${own.length} seen`);
    assert.equal(of(records, 'snapshot').filter((record) => record.session === session && !record.ok).length, 0);
    return own.length;
}

/** Collects what the live page receives of each session. */
async function pageOf(proxy) {
    await proxy.child.waitFor(/live page on port \d+/, WAIT_MS);
    const ask = async (path) => (await fetch(`http://127.0.0.1:${/live page on port (\d+)/.exec(proxy.child.log)[1]}${path}`)).json();
    const { sessions } = await ask('/api/state');
    const playing = sessions.filter(({ protocol, closed }) => protocol === '0.7' && !closed);
    assert.equal(playing.length, 3);
    return Promise.all(playing.map(({ number }) => ask(`/api/world?session=${number}`)));
}

test('Teeworlds 0.7.5: every snapshot, name and map of a game with a whisper, rcon and another map', async () => {
    const folder = temporaryFolder();
    const server = await startTeeworlds({ folder, port: await freePort(), settings: ['sv_rcon_password hunter2', 'password hunter2'] });
    const proxy = await startProxy({ server: server.port, records: join(folder, 'game.jsonl'),
        args: ['--items', 'all,raw', '--view', 'both', '--maps', SEVEN_MAPS, '--demo', folder, '--http', '0'] });
    assert.equal(spawnSync(TWSCOPE, ['health', `127.0.0.1:${proxy.port}`, '--timeout', '5']).status, 0, 'it answers in 0.7 alone');
    const bots = [];
    for (const [index, name] of ['anna', 'b\u00f6b', 'cleo'].entries()) {
        bots.push(await new SevenBot(proxy.port, name, { seed: index + 1, download: index === 1, password: 'hunter2' }).join());
    }
    const [anna, bob, cleo] = bots;
    await plays(anna, PLAYED);
    const onPage = await pageOf(proxy);
    anna.say('hello, all');
    anna.whisper(anna.idOf('b\u00f6b'), 'psst, a whisper');
    anna.authenticate('hunter2');
    await waitUntil('anna to be the admin', () => anna.authed, WAIT_MS);
    anna.console('echo status of all');
    anna.console('record truth');
    await plays(anna, PLAYED);
    anna.console('stoprecord');
    await waitUntil('the whisper to arrive', () => bob.chat.some(({ text }) => text === 'psst, a whisper'), WAIT_MS);
    await cleo.leave();
    const changed = Promise.all([anna.changesMap(), bob.changesMap()]);
    anna.console('change_map ctf1');
    await changed;
    await plays(anna, PLAYED);
    for (const bot of [anna, bob]) await bot.leave();
    assert.equal(await proxy.drain(), 0, proxy.child.errors);
    await server.stop();
    const records = proxy.records();

    const played = of(records, 'session').filter(({ event, protocol }) => event === 'established' && protocol === '0.7');
    assert.equal(played.length, 3);
    let compared = 0;
    for (const [index, { session }] of played.entries()) compared += compare(records, session, bots[index].snapshots);
    assert.ok(compared > 6 * PLAYED, `only ${compared} snapshots were compared`);
    assert.deepEqual(warnings(records), []);
    assert.deepEqual(unnamed(records), []);
    assert.deepEqual(bots.map(({ crcErrors }) => crcErrors), [0, 0, 0]);

    // Names come from messages: each tee must have one, and the map tile of its position.
    const tees = of(records, 'snapshot').flatMap(({ items }) => items.filter(({ type }) => type === 'character'));
    assert.ok(tees.length > 6 * PLAYED);
    assert.deepEqual([...new Set(tees.map(({ player }) => player))].sort(), ['anna', 'b\u00f6b', 'cleo']);
    assert.ok(tees.every(({ at }) => at.game !== 'solid'));
    const maps = of(records, 'map').filter(({ session }) => session === played[0].session);
    assert.deepEqual(maps.map(({ name, source }) => `${name} ${source}`), ['dm1 folder', 'ctf1 folder']);

    // There must be one merged snapshot for each tick, in the objects of 0.7, and one run for each map.
    const worlds = of(records, 'world');
    const ticks = of(records, 'snapshot').filter(({ items }) => items.length).map(({ tick, session }) => `${session} ${tick}`);
    assert.ok(worlds.length > PLAYED && worlds.length < ticks.length, `${worlds.length} worlds of ${ticks.length} snapshots`);
    assert.deepEqual([...new Set(worlds.map(({ run }) => run))], [1, 2]);
    assert.equal(Math.max(...worlds.map(({ views }) => views)), 3);
    const met = worlds.filter(({ views }) => views === 3).flatMap(({ items }) => items.filter(({ type }) => type === 'character'));
    assert.deepEqual([...new Set(met.map(({ player }) => player))].sort(), ['anna', 'b\u00f6b', 'cleo']);
    assert.ok(met.every(({ fields, at }) => at && fields.player_flags === undefined));
    // Only a player's own view has its health. A player that has just joined may be in others' views first.
    const healthy = met.filter(({ fields }) => fields.health !== undefined);
    assert.ok(healthy.length > 0.9 * met.length, `${healthy.length} of ${met.length}`);

    // The page must receive the game in the objects of 0.6: each tee at the position in the record of that tick, with its name.
    for (const shown of onPage) {
        const recorded = of(records, 'snapshot').find(({ session, tick }) => session === shown.session && tick === shown.tick);
        const places = ({ items }) => items.filter(({ type }) => type === 'character').map(({ id, player, fields }) =>
            `${id} ${player} ${fields.x} ${fields.y}`);
        assert.ok(places(shown).length > 0);
        assert.deepEqual(places(shown), places(recorded));
        assert.equal(shown.items.filter(({ type, fields }) => type === 'player_info' && fields.local).length, 1);
    }

    // Messages that are not for everybody must not be recorded.
    const text = readFileSync(proxy.file, 'utf8');
    for (const secret of SECRETS) assert.ok(!text.includes(secret), secret);
    assert.ok(text.includes('hello, all'));

    // In demos for 0.7's client, every snapshot read back must be the decoded one, plus the items that only demos have.
    const demos = readdirSync(folder).filter((name) => name.endsWith('.demo'));
    assert.deepEqual(demos.map((name) => name.replace(/^[^-]*-/, '')).sort(), ['s1-ctf1.demo', 's1-dm1.demo', 's2-ctf1.demo',
        's2-dm1.demo', 's3-dm1.demo', 'world-ctf1.demo', 'world-dm1.demo'].map((name) => name.replace(/^s(\d)/, (_, n) => `s${played[n - 1].session}`)).sort());
    const line = ({ tick, items }) => `${tick} ${items.filter(({ type_id: type }) => type < 13 || type > 15).map(({ type_id: type, id, data }) =>
        `${type}:${id}=${data}`).sort().join(' ')}`;
    const readDemo = (path) => {
        const file = `${path}.jsonl`;
        execFileSync(TWSCOPE, ['decode', path, '--items', 'all,raw', '-o', file, '--maps', SEVEN_MAPS], { stdio: 'ignore' });
        const read = readRecords(file);
        assert.deepEqual(warnings(read), [], path);
        assert.deepEqual(unnamed(read), [], path);
        return of(read, 'snapshot').filter(({ items }) => items.length);
    };
    const [ofSessions, ofWorlds] = ['-s', '-world-'].map((kind) => demos.filter((name) => name.includes(kind))
        .flatMap((name) => readDemo(join(folder, name))));
    assert.ok(ofSessions.every(({ items }) => items.some(({ type, player }) => type === 'character' ? player : true)));
    assert.deepEqual(ofSessions.map(line).sort(), of(records, 'snapshot').filter(({ items }) => items.length).map(line).sort());
    assert.deepEqual(ofWorlds.map(line).sort(), worlds.filter(({ tick, complete }) => complete || tick % 2 === 0).map(line).sort());

    // The server's own demo has everything. So must the merged snapshots, where a session saw the place.
    const [truth] = readdirSync(join(folder, `teeworlds-${server.port}`), { recursive: true }).filter((name) => /truth.*\.demo$/.test(name));
    const seen = new Map(readDemo(join(folder, `teeworlds-${server.port}`, truth)).map(({ tick, items }) =>
        [tick, new Map(items.map((item) => [`${item.type_id}:${item.id}`, item]))]));
    let held = 0;
    for (const { tick, items } of worlds.filter(({ run }) => run === 1)) {
        for (const { type, type_id: number, id, fields } of items) {
            const whole = seen.get(tick)?.get(`${number}:${id}`);
            if (seen.has(tick) && ['character', 'pickup', 'projectile', 'laser', 'flag'].includes(type)) {
                assert.ok(whole, `${type} ${id} of tick ${tick} is not in the game`);
                assert.deepEqual(fields, Object.fromEntries(Object.keys(fields).map((key) => [key, whole.fields[key]])), `${type} ${id} of tick ${tick}`);
                held += 1;
            }
        }
    }
    assert.ok(held > 3 * PLAYED, `only ${held} items were held against the server's demo`);
});

test('a 0.7 map that is in no folder is taken from its download and reused in the next session', async () => {
    const folder = temporaryFolder();
    const server = await startTeeworlds({ folder, port: await freePort(), map: 'dm2' });
    const proxy = await startProxy({ server: server.port, records: join(folder, 'game.jsonl'), args: ['--items', 'all,raw'] });
    const anna = await new SevenBot(proxy.port, 'anna', { download: true }).join();
    await plays(anna, PLAYED);
    await anna.leave();
    assert.equal(await proxy.drain(), 0, proxy.child.errors);
    await server.stop();
    const records = proxy.records();
    const maps = of(records, 'map');
    assert.deepEqual(maps.map(({ name, source }) => `${name} ${source}`), ['dm2 none', 'dm2 wire']);
    assert.equal(Number.parseInt(maps[1].crc, 16) | 0, anna.maps[0].crc);
    assert.ok(of(records, 'snapshot').at(-1).items.some(({ type, at }) => type === 'character' && at));
    const offsets = of(records, 'message').filter(({ name }) => name === 'map_data').map(({ fields }) => fields.offset);
    assert.deepEqual(offsets, offsets.map((_, index) => index * anna.maps[0].chunkSize));
});

test('on a network that loses and reorders datagrams, twscope shows the snapshots that the client could use', async () => {
    const folder = temporaryFolder();
    const server = await startTeeworlds({ folder, port: await freePort() });
    const proxy = await startProxy({ server: server.port, records: join(folder, 'game.jsonl'), args: ['--items', 'all,raw',
        '--impair', 'loss=4%,delay=10ms,jitter=5ms'] });
    const anna = await new SevenBot(proxy.port, 'anna').join();
    await plays(anna, 2 * PLAYED);
    await anna.leave();
    assert.equal(await proxy.drain(), 0, proxy.child.errors);
    await server.stop();
    const records = proxy.records();
    const { session } = of(records, 'session').find(({ protocol }) => protocol === '0.7');
    const seen = new Set(shown(records, session));
    const own = rebuilt(anna.snapshots);
    assert.deepEqual(own.filter((line) => !seen.has(line)), []);
    assert.deepEqual(warnings(records), []);
});

test('DDNet: clients of 0.6 and of 0.7 in one game', async () => {
    const folder = temporaryFolder();
    const server = await startServer({ folder, port: await freePort(), settings: ['sv_sixup 1'] });
    const proxy = await startProxy({ server: server.port, records: join(folder, 'game.jsonl'), args: ['--items', 'all,raw',
        '--view', 'both', '--maps', MAPS, '--maps', CONVERTED_MAPS] });
    const six = await new Bot(proxy.port, 'six', { keep: true }).join();
    const seven = await new SevenBot(proxy.port, 'seven').join();
    six.walk();
    await Promise.all([plays(six, PLAYED), plays(seven, PLAYED)]);
    seven.say('hello from 0.7');
    six.say('hello from 0.6');
    seven.command('timeout', 'hunter2');
    await waitUntil('0.7 to hear 0.6', () => seven.chat.some(({ text }) => text === 'hello from 0.6'), WAIT_MS);
    await six.leave();
    await seven.leave();
    assert.equal(await proxy.drain(), 0, proxy.child.errors);
    await server.stop();
    const records = proxy.records();
    const sessions = new Map(of(records, 'session').filter(({ event }) => event === 'established')
        .map(({ protocol, session }) => [protocol, session]));
    assert.deepEqual([...sessions.keys()].sort(), ['0.6+ddnet', '0.7+ddnet']);
    compare(records, sessions.get('0.7+ddnet'), seven.snapshots);
    assert.equal(of(records, 'snapshot').filter(({ ok }) => !ok).length, 0);
    // The server does not describe a type in the snapshot that first uses it.
    assert.deepEqual(warnings(records).filter(({ id }) => id !== 'snapshot.missing_descriptor'), []);
    assert.deepEqual(unnamed(records), []);
    assert.ok(!readFileSync(proxy.file, 'utf8').includes('hunter2'));
    // Both players must see both, by name and on the same map, although 0.7 has another map file.
    for (const session of sessions.values()) {
        const tees = of(records, 'snapshot').filter((record) => record.session === session)
            .flatMap(({ items }) => items.filter(({ type }) => type === 'character'));
        assert.deepEqual([...new Set(tees.map(({ player }) => player))].sort(), ['seven', 'six']);
        assert.ok(tees.every(({ at }) => at !== undefined));
    }
    assert.equal(new Set(of(records, 'map').map(({ crc }) => crc)).size, 2);
    // They are in one merged snapshot, which has the values of each player's own client.
    const worlds = of(records, 'world').filter(({ views }) => views === 2);
    assert.ok(worlds.length > PLAYED / 2);
    for (const { items } of worlds) {
        const each = items.filter(({ type }) => type === 'character');
        assert.deepEqual(each.map(({ player }) => player).sort(), ['seven', 'six']);
        assert.ok(each.every(({ type_id: type, fields }) => type === 9 && fields.health !== undefined && fields.player_flags !== undefined));
    }
});

test('clients of 0.7 have their own addresses at the server, and tokens made from these', async () => {
    const folder = temporaryFolder();
    const server = await startServer({ folder, port: await freePort(), settings: ['sv_sixup 1', 'sv_max_clients_per_ip 1'] });
    const proxy = await startProxy({ server: server.port, records: join(folder, 'game.jsonl'), args: ['--items', 'none'] });
    const bots = ['anna', 'bob'].map((name, index) => new SevenBot(proxy.port, name, { seed: index + 1 }));
    for (const [index, bot] of bots.entries()) {
        await new Promise((resolve) => { bot.socket.bind(0, `127.0.0.${index + 2}`, resolve); });
        await bot.join();
    }
    assert.ok(!bots[0].server.equals(bots[1].server), 'a token that one can use for the other');
    const addresses = [...server.child.log.matchAll(/has entered the game\. ClientI[Dd]=\d+ addr=<\{([\d.]+):/g)].map(([, address]) => address);
    assert.equal(new Set(addresses).size, 2, addresses.join());
    assert.ok(addresses.every((address) => !['127.0.0.1', '127.0.0.2', '127.0.0.3'].includes(address)), addresses.join());
    for (const bot of bots) await bot.leave();
    assert.equal(await proxy.drain(), 0, proxy.child.errors);
    await server.stop();
});

/** Returns all UDP datagrams of a classic pcap file of Ethernet and IPv4. */
function* readPcap(bytes) {
    for (let at = 24; at < bytes.length;) {
        const size = bytes.readUInt32LE(at + 8);
        const ip = bytes.subarray(at + 16 + 14, at + 16 + size);
        const udp = ip.subarray((ip[0] & 15) * 4);
        yield { source: udp.readUInt16BE(0), destination: udp.readUInt16BE(2),
            payload: Buffer.from(udp.subarray(8, udp.readUInt16BE(4))) };
        at += 16 + size;
    }
}

const RECORDED = { 'teeworlds-0.7.5': 1208, 'one-client-0.6-0.7-0.6-0.7': 523 };

for (const [name, expected] of Object.entries(RECORDED)) {
    test(`${name}: every message and snapshot of 0.7, as another decoder reads them`, () => {
        const folder = temporaryFolder();
        const capture = join(folder, `${name}.pcap`);
        const bytes = gunzipSync(readFileSync(join(CAPTURES, `${name}.pcap.gz`)));
        writeFileSync(capture, bytes);
        const connections = readSevenConnections([...readPcap(bytes)]);
        assert.equal(connections.flatMap(({ snapshots }) => snapshots).length, expected);
        assert.deepEqual(connections.filter(({ reader }) => reader.crcErrors !== 0), []);
        const file = join(folder, 'records.jsonl');
        execFileSync(TWSCOPE, ['decode', capture, '--items', 'all,raw', '-o', file, ...ALL_MAPS], { stdio: 'ignore' });
        const records = readRecords(file);
        assert.deepEqual(warnings(records), [], basename(capture));
        assert.deepEqual(unnamed(records), []);
        // Returns in order what passed on a client's port: its 0.7 connections, and everything between them.
        const count = new Map();
        const add = (key) => count.set(key, (count.get(key) ?? 0) + 1);
        for (const port of new Set(connections.map(({ client }) => client))) {
            const session = sessionOf(records, port);
            const protocols = of(records, 'session').filter((record) => record.session === session && record.event === 'established')
                .map(({ protocol }) => protocol);
            const own = connections.filter(({ client }) => client === port);
            assert.equal(protocols.filter((protocol) => protocol.startsWith('0.7')).length, own.length);
            const seen = new Set(shown(records, session));
            assert.deepEqual(rebuilt(own.flatMap(({ snapshots }) => snapshots)).filter((line) => !seen.has(line)), []);
            for (const { dir, name: message } of own.flatMap(({ messages }) => messages)) {
                add(`${session} ${dir} ${UUID_NAMES.get(message) ?? message}`);
            }
            let seven = false;
            for (const record of records.filter((each) => each.session === session)) {
                if (record.type === 'session' && record.event === 'established') seven = record.protocol.startsWith('0.7');
                if (record.type === 'message' && seven && !record.layer) {
                    const key = `${session} ${record.dir} ${record.name}`;
                    count.set(key, (count.get(key) ?? 0) - 1);
                }
            }
        }
        assert.deepEqual([...count].filter(([, left]) => left !== 0), []);
    });
}
