// Several servers in one process: their names in records, metrics and on the page; servers added and removed while another one is played.
//   node fleet.mjs TWSCOPE
// Covers: proxy/process/server_names.cpp, proxy/process/relayed_servers.cpp, proxy/relay/session_maker.cpp, proxy/relay/listen_socket.cpp
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { Bot, endPeers, plays } from './bot.mjs';
import { Child, freePort, temporaryFolder, waitUntil } from './process.mjs';
import { readRecords, TWSCOPE } from './proxy.mjs';
import { MAPS, startServer } from './server.mjs';
import { Tap } from './tap.mjs';

const SNAPSHOTS = 50; // about two seconds of play
const WAIT_MS = 15000;

after(endPeers);

/** Starts a server, and returns it with the address at which its clients connect. */
async function place(folder, name, map) {
    const server = await startServer({ folder, port: await freePort(), map });
    return { name, server, map, target: server.port, port: await freePort() };
}

/** Returns the configuration's lines for these servers. */
const settings = (places) => [
    `server = [${places.map(({ name, target }) => `"${name}=127.0.0.1:${target}"`).join(', ')}]`,
    `listen = [${places.map(({ port }) => `"127.0.0.1:${port}"`).join(', ')}]`,
].join('\n').concat('\n');

const joined = (at, name, seed) => new Bot(at.front?.port ?? at.port, name, { seed, keep: true }).join();

/** Returns a scrape's samples as a map from name and labels to the value. */
const numbers = (text) => new Map(text.split('\n').filter((line) => line && !line.startsWith('#'))
    .map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ') + 1))]));

const folder = temporaryFolder();
const records = join(folder, 'records.jsonl');
const config = join(folder, 'fleet.conf');

test('servers of one process are kept apart, and are added and removed without affecting each other', async () => {
    const [ctf, race, late] = [await place(folder, 'ctf', 'ctf1'), await place(folder, 'race', 'Tutorial'),
        await place(folder, 'late', 'ctf1')];
    ctf.behind = await Tap.open(ctf.server.port);
    ctf.target = ctf.behind.port;
    ctf.front = await Tap.open(ctf.port);
    writeFileSync(config, settings([ctf, race]));
    const child = new Child('twscope', TWSCOPE, ['proxy', '--config', config, '-o', records, '--maps', MAPS, '--items', 'all',
        '--view', 'both', '--http', '0', '-q']);
    const times = (pattern) => (child.errors.match(new RegExp(pattern, 'g')) ?? []).length;
    await child.waitFor(/live page on port (\d+)/, WAIT_MS);
    const [, port] = /live page on port (\d+)/.exec(child.log);
    const page = async (path) => (await fetch(`http://127.0.0.1:${port}${path}`)).text();
    const state = async () => JSON.parse(await page('/api/state'));

    const anna = await joined(ctf, 'anna', 1);
    const [bob, cleo] = [await joined(race, 'bob', 2), await joined(race, 'cleo', 3)];
    for (const bot of [anna, bob, cleo]) bot.walk();
    await Promise.all([anna, bob, cleo].map((bot) => plays(bot, SNAPSHOTS)));

    await waitUntil('the page to show the players', async () => {
        const { servers } = await state();
        return servers.map(({ name, players }) => `${name} ${players}`).join() === 'ctf 1,race 2';
    }, WAIT_MS);
    const shown = await state();
    assert.deepEqual(shown.servers.map(({ server, listen }) => [server, listen]),
        [ctf, race].map(({ target, port: own }) => [`127.0.0.1:${target}`, [`127.0.0.1:${own}`]]));
    assert.deepEqual(shown.sessions.map(({ server_name: name }) => name).sort(), ['ctf', 'race', 'race']);
    assert.equal(await page('/readyz'), 'ok\n');
    const scraped = numbers(await page('/metrics'));
    assert.equal(scraped.get('twscope_sessions{server="ctf"}'), 1);
    assert.ok(scraped.get('twscope_datagrams_total{server="race",direction="s2c",result="forwarded"}') > 2 * SNAPSHOTS);
    assert.equal(scraped.get('twscope_datagrams_total{direction="s2c",result="forwarded"}'), undefined);
    assert.equal(scraped.get('twscope_server_silent{server="race"}'), 0);

    // Both the same observer and a restarted one know the servers of the sessions.
    writeFileSync(config, settings([ctf, late]));
    child.signal('SIGHUP');
    await waitUntil('the servers to change', () => times('configuration reloaded') === 1
        && times('forwarding to late') === 1, WAIT_MS);
    assert.equal(times('removed the server race'), 1);
    assert.equal(times('takes effect at the next'), 0);
    const dora = await joined(late, 'dora', 4);
    await Promise.all([plays(anna, SNAPSHOTS), plays(dora.walk(), SNAPSHOTS)]);
    await waitUntil('the page to show others', async () => {
        const { servers } = await state();
        return servers.map(({ name, players }) => `${name} ${players}`).join() === 'ctf 1,late 1';
    }, WAIT_MS);
    assert.deepEqual([...numbers(await page('/metrics')).keys()].filter((key) => key.includes('"race"')), []);

    // A server that cannot be added is reported and does not affect the others; a later reload may add it.
    writeFileSync(config, settings([ctf, late, { name: 'taken', target: race.target, port: ctf.server.port }]));
    child.signal('SIGHUP');
    await waitUntil('it to be named', () => times('the server taken is unavailable: cannot listen on') === 1, WAIT_MS);
    await Promise.all([plays(anna, SNAPSHOTS), plays(dora, SNAPSHOTS)]);

    // The clients that played on lost no datagram.
    const here = ctf.front.flowOf(anna.port);
    await Promise.all([anna.leave(), dora.leave()]);
    await ctf.server.stop();
    const [there] = [...ctf.behind.flows.values()].sort((a, b) => b.datagrams.length - a.datagrams.length);
    await waitUntil('what is under way to arrive', () => ['c2s', 's2c'].every((dir) => here.wire(dir) === there.wire(dir)), WAIT_MS);
    child.signal('SIGINT');
    await waitUntil('twscope to drain', () => !child.running, WAIT_MS);
    assert.equal(child.status, 0, child.log);
    for (const each of [race, late]) await each.server.stop();
    for (const tap of [ctf.front, ctf.behind]) tap.close();
    for (const bot of [bob, cleo]) bot.vanish();
    check(readRecords(records), { ctf, race, late });
});

/** Every record about a session or a world must name its server, and no world may have another server's sessions. */
function check(all, places) {
    const ofSession = new Map(all.filter(({ type, event }) => type === 'session' && event === 'open')
        .map(({ session, server_name: name, server }) => [session, { name, server }]));
    for (const { name, server } of ofSession.values()) assert.equal(server, `127.0.0.1:${places[name].target}`);
    const named = all.filter(({ session, type }) => session !== 0 || type === 'world');
    assert.deepEqual(named.filter((record) => record.session !== 0
        && record.server_name !== ofSession.get(record.session).name), []);
    const played = (name) => all.filter(({ type, server_name: own }) => type === 'snapshot' && own === name);
    for (const name of Object.keys(places)) {
        assert.ok(played(name).length >= SNAPSHOTS, `${played(name).length} snapshots of ${name}`);
        assert.deepEqual(played(name).filter(({ ok }) => !ok), []);
    }
    const worlds = all.filter(({ type }) => type === 'world');
    for (const { server_name: name, server, views, items } of worlds) {
        assert.equal(server, `127.0.0.1:${places[name].target}`);
        assert.ok(views <= (name === 'race' ? 2 : 1));
        for (const item of items) {
            for (const session of item.seen_by ?? []) assert.equal(ofSession.get(session).name, name);
        }
    }
    assert.deepEqual([...new Set(worlds.map(({ server_name: name }) => name))].sort(), ['ctf', 'late', 'race']);
    const maps = new Set(all.filter(({ type }) => type === 'map').map(({ server_name: own, name }) => `${own} ${name}`));
    assert.deepEqual([...maps].sort(), ['ctf ctf1', 'late ctf1', 'race Tutorial']);
    const ended = all.filter(({ type, event, reason }) => type === 'session' && event === 'close' && reason === 'removed');
    assert.deepEqual(ended.map(({ server_name: name }) => name), ['race', 'race']);
    assert.deepEqual(all.filter(({ session, server_name: name }) => session === 0 && name).filter(({ type }) => type !== 'world'
        && type !== 'finding'), []);
}
