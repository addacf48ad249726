// The whole game: compares the merged snapshots of all players' views with the server's own demo, which has everything, and the live run
// with the capture of the same run.
//   node world.mjs TWSCOPE
// Covers: proxy/pipeline/world_run.cpp, proxy/process/observer_run.cpp
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Bot, endPeers } from './bot.mjs';
import { LyingServer } from './lying_server.mjs';
import { freePort, temporaryFolder, waitUntil } from './process.mjs';
import { readRecords, startProxy, TWSCOPE } from './proxy.mjs';
import { RawClient } from './raw_client.mjs';
import { endSevenBots, SevenBot } from './seven_client.mjs';
import { MAPS, startServer } from './server.mjs';

const NAMES = ['anna', 'bob', 'cleo', 'dora', 'emil', 'fay'];
const SNAPSHOTS = 150;
const WAIT_MS = 40000;
const TRUTH = fileURLToPath(new URL('world_truth.py', import.meta.url));
const DEMOS = fileURLToPath(new URL('../demos', import.meta.url));

after(endSevenBots);
after(endPeers);

const plays = (bots, count) => {
    const goals = bots.map((bot) => bot.snapshots.length + count);
    return waitUntil(`${count} more snapshots each`, () => bots.every((bot, i) => bot.snapshots.length >= goals[i]), WAIT_MS);
};

/** Returns the path of the file with this name in a folder or below. */
function find(folder, name) {
    const found = readdirSync(folder, { recursive: true }).map((path) => join(folder, `${path}`)).filter((path) => path.endsWith(name));
    return found[0];
}

const lines = (file, type) => readFileSync(file, 'utf8').split('\n').filter((line) => line.includes(`"type":"${type}"`));

/** Returns the chat and kills in a demo as text, without those that only some of the players received. */
function said(demo) {
    const records = execFileSync(TWSCOPE, ['decode', demo, '--items', 'none', '-o', '-'], { encoding: 'utf8', maxBuffer: 1 << 28 });
    return records.split('\n').filter((line) => line.includes('"type":"message"')).map((line) => JSON.parse(line))
        .filter(({ name, fields }) => name === 'sv_kill_msg' || (name === 'sv_chat' && fields.team === 0 && fields.client_id >= 0))
        .map(({ name, fields }) => `${name} ${JSON.stringify(fields)}`);
}

/** @param sevens number of players with clients of 0.7 */
async function game(map, settings = [], sevens = 0) {
    const folder = temporaryFolder();
    const worlds = join(folder, 'worlds');
    mkdirSync(worlds);
    const server = await startServer({ folder, port: await freePort(), map, settings });
    const records = join(folder, 'game.jsonl');
    const capture = join(folder, 'game.pcapng');
    const proxy = await startProxy({ server: server.port, records, args: ['--maps', MAPS, '--maps', `${MAPS}7`, '--view', 'both', '--items', 'all,raw',
        '--demo', worlds, '-w', capture, '--show-secrets'] });
    const bots = [];
    for (const [seed, name] of NAMES.entries()) {
        const Client = seed < NAMES.length - sevens ? Bot : SevenBot;
        bots.push(await new Client(proxy.port, name, { seed: seed + 1, keep: true }).join());
    }
    await server.command('record truth');
    for (const bot of bots) bot.walk?.(); // bots of 0.7 walk from the start
    await plays(bots, SNAPSHOTS / 3);
    for (const bot of bots) bot.say(`${bot.name} is here`);
    await plays(bots, SNAPSHOTS / 3);
    bots[0].say('twice');
    bots[0].client.game.Kill();
    await plays(bots, SNAPSHOTS / 3);
    bots[0].say('twice');
    await plays(bots, SNAPSHOTS / 3);
    await server.command('stoprecord');
    await waitUntil('the server to end its demo', () => /[Ss]topped recording/.test(server.child.log), WAIT_MS);
    for (const bot of bots) await bot.leave();
    assert.equal(await proxy.drain(), 0, proxy.child.errors);
    await server.stop();
    const truth = find(folder, 'truth.demo');
    assert(truth, 'the server wrote no demo');
    return { folder, worlds, records, capture, truth };
}

const GAMES = [['ctf2', ['sv_spamprotection 0'], 0], ['Sunny Side Up', ['sv_high_bandwidth 1', 'sv_spamprotection 0'], 0], ['Tsunami', ['sv_sixup 1', 'sv_spamprotection 0'], 3],
    ['Sunny Side Up', ['sv_sixup 1', 'sv_spamprotection 0'], 5]];

for (const [map, settings, sevens] of GAMES) {
    test(`${map}, ${sevens} clients of 0.7: the world is what the server's own demo shows, no more, and nothing of what was seen is missing`, async () => {
        const { folder, worlds, records, capture, truth } = await game(map, settings, sevens);
        const held = spawnSync('python3', [TRUTH, truth, records], { encoding: 'utf8' });
        console.error(held.stdout);
        assert.equal(held.status, 0, held.stdout + held.stderr);

        // The capture of the run must give the same merged snapshots.
        const again = join(folder, 'again.jsonl');
        const demosAgain = join(folder, 'again');
        mkdirSync(demosAgain);
        execFileSync(TWSCOPE, ['decode', capture, '--maps', MAPS, '--maps', `${MAPS}7`, '--view', 'world', '--items', 'all,raw',
            '-o', again, '--demo', demosAgain], { stdio: 'ignore' });
        assert.deepEqual(lines(again, 'world'), lines(records, 'world'));

        // Another reader reads the demo with all players.
        const made = readdirSync(worlds).filter((name) => name.includes('-world-')).map((name) => join(worlds, name));
        assert.equal(made.length, 1);
        execFileSync('python3', [DEMOS, TWSCOPE, ...made]);
        assert(existsSync(made[0]));

        // The demo must have every chat message as often as it was sent. The server's own demo lacks chat, and has a kill once for each client of
        // 0.6 that received it.
        const [live] = made;
        const [told, known] = [said(live), said(truth)];
        assert.deepEqual(told.filter((message) => message.includes('twice')).length, 2);
        for (const name of NAMES) assert.equal(told.filter((message) => message.includes(`${name} is here`)).length, 1, name);
        const kill = `sv_kill_msg ${JSON.stringify({ killer: 0, victim: 0, weapon: -2, mode_special: 0 })}`;
        assert.equal(told.filter((message) => message === kill).length, 1);
        for (const message of known) assert(told.includes(message), `${message} in ${told}`);
        assert.deepEqual(readFileSync(join(demosAgain, live.split('/').pop())), readFileSync(live));
    });
}

test('a server that sends two clients different positions of a tee is reported with the field, both values and sessions', async () => {
    const folder = temporaryFolder();
    const records = join(folder, 'lies.jsonl');
    const capture = join(folder, 'lies.pcapng');
    let lies = 0;
    const server = await new LyingServer((client, tee, tick) => ({ x: 500 + tee * 100 + (client === 1 && tee === 0 ? lies : 0), y: tick % 400 }))
        .start();
    const proxy = await startProxy({ server: server.port, records, args: ['--view', 'both', '-w', capture, '--show-secrets'] });
    const clients = [await new RawClient(proxy.port, 'ann').join(), await new RawClient(proxy.port, 'bob').join()];
    const goOn = () => {
        const goal = Math.min(...clients.map(({ ticks }) => ticks.size)) + 30;
        return waitUntil('some more ticks', () => clients.every(({ ticks }) => ticks.size >= goal), WAIT_MS);
    };
    await goOn();
    const found = () => readRecords(records).filter(({ type, id }) => type === 'finding' && id.startsWith('world.'));
    assert.deepEqual(found(), [], 'what is told alike is no finding');
    lies = 32;
    await goOn();
    for (const client of clients) await client.leave();
    assert.equal(await proxy.drain(), 0, proxy.child.errors);
    assert.match(proxy.child.log, / warning world\.views_differ: session \d/);
    for (const client of clients) client.vanish();
    server.stop();

    const findings = found();
    assert.equal(findings.length, 1, JSON.stringify(findings));
    const [{ id, field, item, value, expected, session, other_session: other }] = findings;
    assert.deepEqual({ id, field, item, values: [value, expected].sort(), sessions: [session, other].sort() },
        { id: 'world.views_differ', field: 'x', item: { type: 'character', type_id: 9, id: 0 }, values: [500, 532], sessions: [1, 2] });
    assert.equal(value === 532, session === 2, 'the lie is the second client\'s');
    assert.equal(readRecords(records).filter(({ type, ok }) => type === 'snapshot' && !ok).length, 0);

    // The capture must give the same findings, and fail with --fail-on.
    const again = spawnSync(TWSCOPE, ['decode', capture, '--view', 'world', '--fail-on', 'world.views_differ', '-o', join(folder, 'again.jsonl')]);
    assert.equal(again.status, 1);
    assert.deepEqual(lines(join(folder, 'again.jsonl'), 'finding').filter((line) => line.includes('"world.')),
        lines(records, 'finding').filter((line) => line.includes('"world.')));
});
