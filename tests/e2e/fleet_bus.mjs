// Several servers of one process on the bus: each record under its server's name, and collected into that server's files.
//   node fleet_bus.mjs TWSCOPE
// Covers: proxy/bus/subjects.cpp
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { Bot, endPeers } from './bot.mjs';
import { NatsClient } from './nats_client.mjs';
import { withNats } from './nats_server.mjs';
import { Child, freePort, temporaryFolder, waitUntil } from './process.mjs';
import { TWSCOPE } from './proxy.mjs';
import { MAPS, startServer } from './server.mjs';

const SNAPSHOTS = 50; // about two seconds of play
const WAIT_MS = 20000;
const NAMES = ['ctf', 'race', 'dm'];

after(endPeers);
const folder = temporaryFolder();
const linesOf = (file) => readFileSync(file, 'utf8').split('\n').slice(0, -1);
const sorted = (texts) => [...texts].sort();

async function place(name, map) {
    const server = await startServer({ folder, port: await freePort(), map });
    return { name, server, port: await freePort() };
}

async function plays(bot) {
    const before = bot.snapshots.length;
    await waitUntil(`${bot.name} to play`, () => bot.snapshots.length >= before + SNAPSHOTS, WAIT_MS);
}

/** Returns the records of a run by their server; `fleet`: records without a server. */
function byServer(lines) {
    const groups = new Map();
    for (const line of lines) {
        const name = JSON.parse(line).server_name ?? 'fleet';
        groups.set(name, [...groups.get(name) ?? [], line]);
    }
    return groups;
}

async function play(nats, records, places, config) {
    writeFileSync(config, [
        `server = [${places.map(({ name, server }) => `"${name}=127.0.0.1:${server.port}"`).join(', ')}]`,
        `listen = [${places.map(({ port }) => `"127.0.0.1:${port}"`).join(', ')}]`,
    ].join('\n').concat('\n'));
    const child = new Child('twscope', TWSCOPE, ['proxy', '--config', config, '-o', records, '--maps', MAPS, '--view', 'both',
        '--items', 'changed', '--bus', nats.url, '--spool', `${join(folder, 'spool')},64MiB`, '--state', join(folder, 'state'), '--http', '0']);
    await child.waitFor(/the server sees/, WAIT_MS);
    // A peer cannot choose the server name of its records.
    const bots = [];
    for (const [seed, { port, name }] of places.entries()) {
        const bot = await new Bot(port, `","server_nam${seed}`, { seed, keep: true }).join();
        bot.say(`","server_name":"race","x":"${name}`);
        bots.push(bot.walk());
    }
    for (const bot of bots) await plays(bot);
    await checkMetrics(nats, /live page on port (\d+)/.exec(child.log)[1], bots[0]);
    for (const bot of bots) await bot.leave();
    child.signal('SIGINT');
    assert.equal(await child.ended, 0, child.log);
}

/** Dashboards and alarms must use only metrics that several servers provide. */
function checkMonitoring(scraped) {
    const there = new Set([...scraped.matchAll(/^# TYPE (\w+)/gm)].map(([, name]) => name));
    const files = ['grafana/dashboards/fleet.json', 'grafana/dashboards/twscope.json', 'alerts.yml'];
    for (const file of files) {
        const text = readFileSync(new URL(`../../docker/monitoring/${file}`, import.meta.url), 'utf8');
        const asked = new Set([...text.matchAll(/\btwscope_\w+/g)].map(([name]) => name));
        const missing = [...asked].filter((name) => !there.has(name) && !there.has(name.replace(/_(sum|count)$/, '')));
        assert.ok(asked.size > 0);
        assert.deepEqual(missing, [], file);
    }
}

/** The metrics of the bus must describe its state, and the page about the bus must list each of them. */
async function checkMetrics(nats, port, bot) {
    const scrape = async () => new Map((await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()).split('\n')
        .filter((line) => line.startsWith('twscope_bus_')).map((line) => [line.split(' ')[0], Number(line.split(' ')[1])]));
    const value = async (name) => (await scrape()).get(`twscope_bus_${name}`);
    await waitUntil('records to be acknowledged', async () => await value('records_total{result="acknowledged"}') > SNAPSHOTS, WAIT_MS);
    assert.equal(await value('connected'), 1);
    assert.equal(await value('records_total{result="dropped"}'), 0);
    assert.equal(await value('reconnects_total'), 0);
    await nats.kill();
    await waitUntil('the bus to be missed', async () => await value('connected') === 0, WAIT_MS);
    const [waiting, bytes] = [await value('waiting_records'), await value('waiting_bytes')];
    await plays(bot);
    assert.ok(await value('waiting_records') > waiting && await value('waiting_bytes') > bytes, 'the spool grows');
    Object.assign(nats, await nats.again());
    await waitUntil('the bus to be back', async () => await value('connected') === 1 && await value('reconnects_total') >= 1, WAIT_MS);
    const [before, taken] = [await value('records_total{result="acknowledged"}'), await value('records_total{result="published"}')];
    await waitUntil('more to be acknowledged', async () => await value('records_total{result="acknowledged"}') > before, WAIT_MS);
    assert.ok(taken >= before);
    checkMonitoring(await (await fetch(`http://127.0.0.1:${port}/metrics`)).text());
    const page = readFileSync(new URL('../../docs/fleet.md', import.meta.url), 'utf8');
    for (const name of (await scrape()).keys()) {
        const [, family, , result] = /^(\w+)(\{result="(\w+)"\})?$/.exec(name);
        assert.ok(page.includes(`| \`${family}\` |`) && (!result || page.includes(`\`${result}\``)), `${name} in docs/fleet.md`);
    }
}

test('records are published under their server\'s name and collected into that server\'s files', withNats({ folder }, async (nats) => {
    const records = join(folder, 'records.jsonl');
    const places = [await place('ctf', 'ctf1'), await place('race', 'Tutorial'), await place('dm', 'dm1')];
    await play(nats, records, places, join(folder, 'fleet.conf'));
    const recorded = byServer(linesOf(records));
    assert.deepEqual(sorted(recorded.keys()), sorted([...NAMES, 'fleet']));

    const client = await NatsClient.connect(nats.port);
    const messages = await client.messages('twscope');
    client.close();
    const chats = [];
    for (const { subject, data } of messages) {
        const record = JSON.parse(data);
        assert.equal(subject, `twscope.${record.server_name ?? 'fleet'}.${record.type}`);
        if (data.includes('server_name\\":')) chats.push(subject);
    }
    assert.deepEqual([...new Set(chats)].sort(), NAMES.map((name) => `twscope.${name}.message`).sort(), 'what was said is there');
    assert.deepEqual(sorted(messages.map(({ data }) => data)), sorted(linesOf(records)));
    for (const name of NAMES) {
        const types = new Set(messages.filter(({ subject }) => subject.startsWith(`twscope.${name}.`)).map(({ subject }) => subject.split('.')[2]));
        for (const type of ['session', 'map', 'message', 'snapshot', 'world', 'summary']) assert.ok(types.has(type), `${type} of ${name}`);
    }

    const collected = join(folder, 'collected');
    mkdirSync(collected);
    const done = spawnSync(TWSCOPE, ['collect', '--bus', nats.url, '--until-end', '-o', `${collected}/`, '--expect', 'session'],
        { encoding: 'utf8', timeout: WAIT_MS });
    assert.equal(done.status, 0, done.stdout + done.stderr);
    assert.deepEqual(sorted(readdirSync(collected).filter((name) => !name.startsWith('.'))), sorted(recorded.keys()));
    for (const [name, lines] of recorded) {
        const found = readdirSync(join(collected, name)).flatMap((file) => {
            const read = spawnSync('zstdcat', [join(collected, name, file)], { encoding: 'utf8', maxBuffer: 1 << 28 });
            assert.equal(read.status, 0, read.stderr);
            return read.stdout.split('\n').slice(0, -1);
        });
        assert.deepEqual(sorted(found), sorted(lines), name);
    }
    for (const { server } of places) await server.stop();
}));
