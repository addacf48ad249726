// Covers: proxy/process/takeover.cpp, proxy/process/relay_run.cpp
// A new twscope takes over from a running one, without any effect on the players.
//   [TW_UPGRADES=100] node takeover.mjs TWSCOPE
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { closeSync, constants, existsSync, openSync, readdirSync } from 'node:fs';
import { get } from 'node:http';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { Bot, endPeers, plays, SNAPSHOTS } from './bot.mjs';
import { Child, delay, freePort, runToEnd, temporaryFolder, waitUntil } from './process.mjs';
import { readRecords, startProxy, TWSCOPE } from './proxy.mjs';
import { MAPS, startServer } from './server.mjs';

const UPGRADES = Number(process.env.TW_UPGRADES ?? 5);
const WAIT_MS = 20000;
const NOBODY_THERE = 4;
const REFUSED = 2;
const PLAYERS = 3;

after(endPeers);
const folder = temporaryFolder();
let games = 0;

/** Starts a game with the players `names`, and returns a function that starts another twscope with the same arguments. */
async function withGame(body, { args = [], settings = [] } = {}) {
    games += 1;
    const state = join(folder, `state-${games}`);
    const records = join(folder, `records-${games}.jsonl`);
    const server = await startServer({ folder, port: await freePort(), map: 'ctf1', settings });
    const all = ['--state', state, '--maps', MAPS, ...args];
    const proxy = await startProxy({ server: server.port, records, args: all });
    const another = (...more) => new Child('another twscope', TWSCOPE, ['proxy', '-s', `127.0.0.1:${server.port}`,
        '-l', `127.0.0.1:${proxy.port}`, '-o', records, ...all, ...more]);
    const game = { server, proxy, state, records, another, running: proxy.child, left: 0 };
    game.upgrade = async (...more) => {
        const before = game.running;
        const next = another('--takeover', ...more);
        await next.waitFor(/took over \d+ sessions?[^]*recording records to [^]*listening on /, WAIT_MS);
        game.running = next;
        await waitUntil('the old one to end', () => !before.running, WAIT_MS);
        assert.equal(before.status, 0, before.log);
        return next;
    };
    try {
        game.bots = Array.from({ length: PLAYERS }, (_, i) => new Bot(proxy.port, `player${i}`, { seed: i, keep: true }));
        await Promise.all(game.bots.map(async (bot) => plays((await bot.join()).walk())));
        await body(game);
    } finally {
        await game.running.stop();
        await server.stop();
    }
}

/** The players must play on as the same clients of the server, and a new player must be able to join. */
async function goesOn(game) {
    const { server, proxy, bots } = game;
    await Promise.all(bots.map((bot) => plays(bot)));
    assert.ok(bots.every(({ left }) => !left));
    const count = (pattern) => (server.child.log.match(pattern) ?? []).length;
    const entered = () => count(/player has entered the game/g);
    assert.equal(count(/has left the game/g), game.left, 'the server lost a player');
    const before = entered();
    const late = await new Bot(proxy.port, 'late', { seed: 9, keep: true }).join();
    await plays(late.walk());
    assert.equal(entered(), before + 1, 'the server sees one more player, and no old one anew');
    await late.leave();
    game.left += 1;
    await waitUntil('the server to see it leave', () => count(/has left the game/g) === game.left, WAIT_MS);
}

describe('takeovers, each in a game of its own', { concurrency: 4 }, () => {
    test(`${UPGRADES} upgrades in a row cost no player, no address and no player a snapshot`, () => {
        const captures = join(folder, 'captures');
        return withGame(async (game) => {
            const pauses = [];
            for (let i = 0; i < UPGRADES; i += 1) {
                const next = await game.upgrade('--threads', String(1 + (i % 2)));
                pauses.push(Number(/paused for ([\d.]+) ms/.exec(next.errors)[1]));
                await Promise.all(game.bots.map((bot) => plays(bot, 3)));
            }
            console.log(`# ${UPGRADES} upgrades; forwarding paused for ${Math.max(...pauses)} ms at most, `
                + `${[...pauses].sort((a, b) => a - b)[Math.floor(pauses.length / 2)]} ms at the median`);
            await goesOn(game);
            for (const bot of game.bots) {
                assert.ok(bot.snapshots.every((snapshot) => !snapshot.failed), 'a client could not decode a snapshot');
                await bot.leave();
            }
            await game.upgrade();
            game.running.signal('SIGINT');
            assert.equal(await game.running.ended, 0, game.running.log);
            assert.match(game.running.errors, / info 0 sessions, /, 'players who had left were counted again');
            const records = readRecords(game.records);
            assert.deepEqual(records.filter(({ reason }) => reason === 'shutdown'), [], 'a player who had left came back');
            const snapshots = records.filter((record) => record.type === 'snapshot');
            // The old process also hands over its state of each session, so no snapshot is missed.
            assert.ok(snapshots.length > UPGRADES * PLAYERS);
            assert.ok(snapshots.every((snapshot) => snapshot.ok), 'a snapshot was not rebuilt');
            const blind = records.filter(({ id }) => id === 'inspect.gap' || id === 'session.joined_midway');
            assert.deepEqual(blind, []);
            const last = Math.max(...records.map((record) => record.session ?? 0));
            const late = snapshots.filter((snapshot) => snapshot.session === last);
            assert.ok(late.length >= SNAPSHOTS && late.every((snapshot) => snapshot.ok), 'the late player was not seen whole');
            const numbers = records.filter((record) => record.type === 'session' && record.event === 'open').map(({ session }) => session);
            assert.equal(new Set(numbers).size, numbers.length, 'a session number was given twice');
            // The new twscope must write nothing before the old one has written everything.
            for (const client of new Set(records.map((record) => record.client))) {
                const events = records.filter((record) => record.type === 'session' && record.client === client)
                    .map(({ event }) => event).filter((event) => event !== 'established');
                assert.ok(events.every((event, i) => event === ['open', 'close'][i % 2]), `${client}: ${events}`);
            }
            assert.deepEqual(readdirSync(game.state), ['addresses.key'], 'something is left in the state folder');
            // Each process started a segment that can be read alone.
            const files = readdirSync(captures).sort();
            assert.equal(files.length, UPGRADES + 2, files.join());
            for (const name of files.slice(0, -1)) { // nobody plays any more in the last one
                const said = await runToEnd(TWSCOPE, ['decode', join(captures, name), '--maps', MAPS, '--items', 'none', '-o', '-']);
                assert.equal(said.status, 0, said.stderr);
                const alone = said.stdout.split('\n').slice(0, -1).map((line) => JSON.parse(line));
                const read = alone.filter(({ type }) => type === 'snapshot');
                assert.ok(read.length > 0 && read.every(({ ok }) => ok), `${name}: a snapshot was not rebuilt`);
                assert.ok(alone.every(({ id }) => id !== 'session.joined_midway'), name);
            }
        }, { args: ['-w', `${captures}/`, '--show-secrets'] });
    });

    test('an impairment that was changed on the page stays in force', () => withGame(async (game) => {
        await game.upgrade('--impair', 'delay=200ms');
        assert.ok(!/the network is impaired/.test(game.running.errors));
        await goesOn(game);
    }));

    test('the page is served again at the same port', async () => {
        const port = await freePort();
        const up = () => fetch(`http://127.0.0.1:${port}/metrics`).then((response) => response.text(), () => '');
        await withGame(async (game) => {
            const opened = async () => Number(/twscope_sessions_total\{result="opened"\} (\d+)/.exec(await up())?.[1] ?? -1);
            assert.equal(await opened(), PLAYERS);
            await game.upgrade();
            await waitUntil('the page', async () => await opened() === PLAYERS, WAIT_MS);
            await goesOn(game);
        }, { args: ['--http', `127.0.0.1:${port}`] });
    });

    test('the page is served again at the same unix socket', async () => {
        const socketPath = join(folder, 'page.sock');
        const opened = () => new Promise((resolve) => {
            get({ socketPath, path: '/metrics', headers: { Host: 'localhost' } }, (response) => {
                let text = '';
                response.on('data', (data) => { text += data; })
                    .on('end', () => resolve(Number(/twscope_sessions_total\{result="opened"\} (\d+)/.exec(text)?.[1] ?? -1)));
            }).on('error', () => resolve(-1));
        });
        await withGame(async (game) => {
            assert.equal(await opened(), PLAYERS);
            for (let i = 0; i < 2; i += 1) {
                const next = await game.upgrade();
                await waitUntil('the page', async () => await opened() === PLAYERS, WAIT_MS);
                await waitUntil('its log', () => /live page on unix:/.test(next.errors), WAIT_MS);
            }
            await goesOn(game);
        }, { args: ['--http', `unix:${socketPath}`] });
    });

    test('a new process that is killed while it prepares changes nothing', () => withGame(async (game) => {
        // The old observer waits for a reader of this pipe, and no reader comes.
        const pipe = join(folder, 'nobody-reads');
        assert.equal(spawnSync('mkfifo', [pipe]).status, 0);
        const hanging = game.another('--takeover', '--summary', pipe);
        await game.running.waitFor(/starting a takeover/, WAIT_MS);
        const second = game.another('--takeover');
        assert.equal(await second.ended, NOBODY_THERE, second.log);
        hanging.signal('SIGKILL');
        await game.running.waitFor(/takeover failed/, WAIT_MS);
        const reader = openSync(pipe, constants.O_RDONLY | constants.O_NONBLOCK); // lets the old observer continue and end
        await hanging.ended;
        closeSync(reader);
        await game.running.waitFor(/takeover failed/, WAIT_MS);
        await goesOn(game);
        await game.upgrade();
        await goesOn(game);
    }));

    test('if the new process is killed at any moment, either it or the old process has the game', () => withGame(async (game) => {
        for (const ms of [20, 40, 60, 80, 120, 160]) {
            const next = game.another('--takeover', '--threads', '2');
            await delay(ms); // an arbitrary moment, because the checks must hold at any time
            if (/took over/.test(next.errors) || !game.running.running) {
                game.running = next;
                continue;
            }
            next.process.kill('SIGSTOP'); // so that its state cannot change between the check and the kill
            await delay(ms);
            if (/took over/.test(next.errors) || /has taken over/.test(game.running.errors)) {
                next.process.kill('SIGCONT');
                game.running = next;
                continue;
            }
            await next.stop('SIGKILL');
            const before = game.bots.map((bot) => bot.snapshots.length);
            const goOn = () => game.bots.every((bot, i) => bot.snapshots.length >= before[i] + 3);
            await waitUntil('the game to go on, or the old one to end', () => goOn() || !game.running.running, WAIT_MS);
            if (!game.running.running) { // it had reported that it forwards, but the report was not read yet
                assert.match(game.running.errors, /has taken over/);
                assert.equal(game.running.status, 0);
                return;
            }
        }
        await goesOn(game);
    }));

    test('an unsuitable configuration is refused, and the old process continues', () => withGame(async (game) => {
        const { port } = game.proxy;
        const wrong = [
            [['-l', `127.0.0.1:${port}`, '-l', `127.0.0.2:${port}`], /listens on other addresses/],
            [['-s', `127.0.0.1:${await freePort()}`], /forwards to/],
            [['--client-address', 'shared'], /client addresses/],
            [['--pseudonyms', 'secret'], /the new one would replace them by pseudonyms/],
        ];
        for (const [args, text] of wrong) {
            const base = ['-s', `127.0.0.1:${game.server.port}`, '-l', `127.0.0.1:${port}`];
            const rest = base.filter((_, i) => !args.includes(base[i - (i % 2)]));
            const next = new Child('another twscope', TWSCOPE, ['proxy', ...rest, ...args, '-o', join(folder, 'other.jsonl'),
                '--state', game.state, '--takeover']);
            assert.equal(await next.ended, REFUSED, next.log);
            assert.match(next.errors, text);
            assert.match(next.errors, /; the running twscope carries on as before\n$/);
            assert.doesNotMatch(next.errors, /listening on|recording/, 'what did not happen');
        }
        await game.running.waitFor(/takeover failed: the new one ended .*; this twscope carries on as before/, WAIT_MS);
        const without = game.another('--start-timeout', '0');
        assert.equal(await without.ended, NOBODY_THERE, without.log);
        assert.match(without.errors, /in use .*--takeover takes over from it/);
        await goesOn(game);
    }));

    test('a takeover without a running twscope is refused', async () => {
        const state = join(folder, 'empty');
        const next = new Child('twscope', TWSCOPE, ['proxy', '-s', '127.0.0.1:8304', '-l', '127.0.0.1:0', '--state', state, '--takeover']);
        assert.equal(await next.ended, NOBODY_THERE);
        assert.match(next.errors, /no running twscope/);
        assert.ok(existsSync(state));
    });

    test('in the background, twscope returns once it forwards, and tells the service manager its process', () => withGame(async (game) => {
        const before = game.running;
        const next = game.another('--takeover', '--background');
        await waitUntil('the old one to end', () => !before.running, WAIT_MS);
        assert.equal(before.status, 0);
        // The output stays open while the background process runs, so that process is found by its arguments.
        const pid = Number(spawnSync('pgrep', ['-f', '-o', `^${TWSCOPE} proxy .*${game.state} .*--background`]).stdout.toString());
        assert.ok(pid > 0);
        try {
            await goesOn(game);
        } finally {
            process.kill(pid, 'SIGTERM');
        }
        assert.equal(await next.ended, 0);
    }));
});
