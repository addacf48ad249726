// A new twscope takes over three servers from a running one. All players stay, and their traffic is unchanged.
//   [TW_UPGRADES=30] node fleet_takeover.mjs TWSCOPE
// Covers: proxy/process/takeover.cpp
import assert from 'node:assert/strict';
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { Bot, endPeers, plays, SNAPSHOTS } from './bot.mjs';
import { Child, freePort, temporaryFolder, waitUntil } from './process.mjs';
import { readRecords, TWSCOPE } from './proxy.mjs';
import { MAPS, startServer } from './server.mjs';
import { Tap } from './tap.mjs';

const UPGRADES = Number(process.env.TW_UPGRADES ?? 3);
const WAIT_MS = 20000;
const REFUSED = 2;
const NOBODY_THERE = 4;
const PLAYERS = 2; // players of each server

const taps = [];

after(() => {
    endPeers();
    for (const tap of taps) tap.close();
});

/** A server with a forwarder before and behind twscope, both of which store all datagrams. */
async function place(folder, name, map) {
    const server = await startServer({ folder, port: await freePort(), map });
    const port = await freePort();
    const [behind, front] = [await Tap.open(server.port), await Tap.open(port)];
    taps.push(behind, front);
    return { name, server, port, behind, front, bots: [] };
}

const settings = (places) => [
    `server = [${places.map(({ name, behind }) => `"${name}=127.0.0.1:${behind.port}"`).join(', ')}]`,
    `listen = [${places.map(({ port }) => `"127.0.0.1:${port}"`).join(', ')}]`,
].join('\n').concat('\n');

async function getIn(at, count = PLAYERS) {
    for (let i = 0; i < count; i += 1) {
        const bot = await new Bot(at.front.port, `${at.name}${at.bots.length}`, { seed: at.bots.length, keep: true }).join();
        at.bots.push(bot.walk());
    }
}

async function allPlay(places, count) {
    for (const bot of places.flatMap(({ bots }) => bots)) {
        await plays(bot, count);
        assert.equal(bot.left, null);
    }
}

/** Returns what players sent and received, without the page's requests to the server. */
const wires = (tap, dir) => [...tap.flows.values()].filter(({ datagrams }) => datagrams.length > SNAPSHOTS)
    .map((flow) => flow.wire(dir)).sort();

const same = ({ front, behind }) => ['c2s', 's2c'].every((dir) => {
    const [here, there] = [wires(front, dir), wires(behind, dir)];
    return here.length === there.length && here.every((wire, i) => wire === there[i]);
});

test(`${UPGRADES} upgrades of three servers cost none of them a player, an address or a byte`, async () => {
    const folder = temporaryFolder();
    const records = join(folder, 'records.jsonl');
    const config = join(folder, 'fleet.conf');
    const state = join(folder, 'state');
    const page = await freePort();
    const [ctf, race, dm, late] = [await place(folder, 'ctf', 'ctf1'), await place(folder, 'race', 'Tutorial'),
        await place(folder, 'dm', 'dm1'), await place(folder, 'late', 'ctf1')];
    const start = (...more) => new Child('twscope', TWSCOPE, ['proxy', '--config', config, '-o', records, '--maps', MAPS,
        '--state', state, '--http', `127.0.0.1:${page}`, ...more]);
    const metric = async (name) => fetch(`http://127.0.0.1:${page}/metrics`).then((answer) => answer.text(), () => '')
        .then((text) => Number(text.split('\n').find((line) => line.startsWith(`${name} `))?.split(' ')[1] ?? -1));

    writeFileSync(config, settings([ctf, race, dm]));
    let running = start();
    await running.waitFor(/the server sees/, WAIT_MS);
    const upgrade = async (...more) => {
        const before = running;
        running = start('--takeover', ...more);
        await running.waitFor(/took over \d+ sessions?/, WAIT_MS);
        await waitUntil('the old one to end', () => !before.running, WAIT_MS);
        assert.equal(before.status, 0, before.log);
        return before;
    };
    for (const at of [ctf, race, dm]) await getIn(at);
    await allPlay([ctf, race, dm]);

    const pauses = [];
    for (let i = 0; i < UPGRADES; i += 1) {
        // The order of the servers in the configuration may differ.
        writeFileSync(config, settings(i % 2 ? [ctf, race, dm] : [dm, ctf, race]));
        await upgrade('--threads', String(1 + (i % 2)));
        assert.match(running.errors, new RegExp(`took over ${3 * PLAYERS} sessions`));
        pauses.push(Number(/paused for ([\d.]+) ms/.exec(running.errors)[1]));
        await allPlay([ctf, race, dm], 3);
    }
    console.log(`# ${UPGRADES} upgrades of three servers; forwarding paused for ${Math.max(...pauses)} ms at most, `
        + `${[...pauses].sort((a, b) => a - b)[Math.floor(pauses.length / 2)]} ms at the median`);
    await allPlay([ctf, race, dm]);
    await waitUntil('the page', async () => await metric('twscope_sessions{server="race"}') === PLAYERS, WAIT_MS);
    assert.ok(await metric('twscope_datagrams_total{server="dm",direction="s2c",result="forwarded"}')
        > UPGRADES * PLAYERS, 'what was counted before goes on');

    // A takeover with an unsuitable configuration is refused with the server's name, and the old process continues.
    const wrong = [
        [[{ ...ctf, name: 'capture' }, race, dm], /for ctf, which should now be capture/],
        [[ctf, { ...race, behind: dm.behind }], /forwards to race at/],
        [[ctf, { ...race, port: await freePort() }, dm], /listens on other addresses for race/],
        [[late], /has none of these servers/],
    ];
    for (const [places, text] of wrong) {
        writeFileSync(config, settings(places));
        const next = start('--takeover');
        assert.equal(await next.ended, REFUSED, next.log);
        assert.match(next.errors, text);
    }
    const unnamed = new Child('twscope', TWSCOPE, ['proxy', '-s', `127.0.0.1:${ctf.behind.port}`, '-l', `127.0.0.1:${ctf.port}`,
        '--state', state, '--takeover']);
    assert.equal(await unnamed.ended, NOBODY_THERE, unnamed.log);
    await allPlay([ctf, race, dm]);

    // The players of two servers lose no datagram while the third server is removed and another one is added.
    writeFileSync(config, settings([race, ctf, late]));
    const before = await upgrade();
    assert.match(before.errors, new RegExp(`no server dm: ${PLAYERS} sessions end`));
    assert.match(running.errors, /the server dm is no longer configured/);
    assert.match(running.errors, new RegExp(`took over ${2 * PLAYERS} sessions`));
    await getIn(late);
    await allPlay([ctf, race, late]);
    for (const bot of dm.bots) bot.vanish();
    // The new process can remove a server that it added, and add one that was removed, as in any run.
    writeFileSync(config, settings([race, ctf, dm]));
    running.signal('SIGHUP');
    await running.waitFor(/forwarding to dm/, WAIT_MS);
    dm.bots.length = 0;
    await getIn(dm, 1);
    await allPlay([ctf, race, dm]);
    await upgrade(); // the new process numbers the servers differently
    await allPlay([ctf, race, dm]);

    const stay = [ctf, race];
    for (const bot of stay.flatMap(({ bots }) => bots)) await bot.leave();
    for (const at of stay) {
        await waitUntil(`what is under way at ${at.name} to arrive`, () => same(at), WAIT_MS);
        assert.equal(wires(at.behind, 's2c').length, PLAYERS, 'the server saw no new address');
    }
    running.signal('SIGINT');
    assert.equal(await running.ended, 0, running.log);
    for (const bot of [...dm.bots, ...late.bots]) bot.vanish();
    for (const at of [ctf, race, dm, late]) await at.server.stop();
    assert.deepEqual(readdirSync(state).sort(), ['addresses.key', 'http.token'], 'something is left in the state folder');
    check(readRecords(records), stay);
});

function check(all, stay) {
    const names = new Map(all.filter(({ type, event }) => type === 'session' && event === 'open')
        .map(({ session, server_name: name }) => [session, name]));
    assert.deepEqual(all.filter(({ session, server_name: name }) => session && names.get(session) !== name), []);
    for (const { name } of stay) {
        const own = all.filter(({ server_name: server }) => server === name);
        const snapshots = own.filter(({ type }) => type === 'snapshot');
        assert.ok(snapshots.length > UPGRADES * PLAYERS);
        assert.ok(snapshots.every(({ ok }) => ok), `a snapshot of ${name} was not rebuilt`);
        assert.deepEqual(own.filter(({ id }) => id === 'inspect.gap' || id === 'session.joined_midway'), []);
        const ends = own.filter(({ type, event }) => type === 'session' && event === 'close').map(({ reason }) => reason);
        assert.equal(ends.filter((reason) => reason === 'handed over').length, (UPGRADES + 2) * PLAYERS);
    }
    const removed = all.filter(({ type, event, reason }) => type === 'session' && event === 'close' && reason === 'removed');
    assert.deepEqual(removed.map(({ server_name: name }) => name).sort(), ['dm', 'dm', 'late', 'late']);
}
