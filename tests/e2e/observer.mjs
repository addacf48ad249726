// Covers: proxy/process/observer_process.cpp, proxy/process/relay_run.cpp, proxy/process/observer_run.cpp
// The game goes on whatever happens to the observer process and to the readers of its output.
//   [TW_OBSERVER_KILLS=1000] node observer.mjs TWSCOPE
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { Bot, endPeers, plays, SNAPSHOTS } from './bot.mjs';
import { Child, freePort, isBound, temporaryFolder, waitUntil } from './process.mjs';
import { readRecords, startProxy, TWSCOPE } from './proxy.mjs';
import { MAPS, startServer } from './server.mjs';

const WAIT_MS = 15000;
const KILLS = Number(process.env.TW_OBSERVER_KILLS ?? 15);
/** The time that twscope promises for ending, and the extra time of a busy machine. */
const END_MS = 2000;
const SLACK_MS = 1500;

after(endPeers);
const folder = temporaryFolder();
let files = 0;
const recordsFile = () => join(folder, `records-${files += 1}.jsonl`);

async function observerOf(proxy, not) {
    let found;
    await waitUntil('an observer', () => {
        found = proxy.observer();
        return found !== undefined && found !== not;
    }, WAIT_MS);
    return found;
}

async function withGame(body, { args = [], records = recordsFile() } = {}) {
    const server = await startServer({ folder, port: await freePort(), map: 'ctf1' });
    const proxy = await startProxy({ server: server.port, records, args: ['--maps', MAPS, ...args] });
    try {
        const bot = await new Bot(proxy.port, 'anna', { seed: 1, keep: true }).join();
        await plays(bot.walk());
        await body({ server, proxy, bot });
    } finally {
        await proxy.child.stop();
        await server.stop();
    }
}

describe('an observer, each in a game of its own', { concurrency: 3 }, () => {
    test(`an observer that is killed ${KILLS} times is started again each time, and nobody in the game notices`, () =>
        withGame(async ({ proxy, bot }) => {
            let observer = await observerOf(proxy);
            let logged = 0;
            for (let kill = 1; kill <= KILLS; kill += 1) {
                logged = proxy.child.errors.length;
                process.kill(observer, 'SIGKILL');
                observer = await observerOf(proxy, observer);
                await plays(bot, 3);
            }
            await waitUntil('the last observer to look', () => proxy.child.errors.includes('running again', logged), WAIT_MS);
            await plays(bot);
            // The current observer sees a new client completely.
            const late = await new Bot(proxy.port, 'late', { seed: 2, keep: true }).join();
            await plays(late.walk());
            await late.leave();
            await bot.leave();
            assert.equal(await proxy.drain(), 3, 'records are missing, which the exit code says');
            assert.match(proxy.child.errors, /an observer was lost: the totals count only the last \d+ s, and the exit code is 3\n/);
            const records = proxy.records();
            const gaps = records.filter((record) => record.type === 'finding' && record.id === 'inspect.gap');
            assert.ok(gaps.some((gap) => gap.name === 'new_observer'));
            const lateSession = records.find((record) => record.type === 'session' && record.event === 'open'
                && record.session === Math.max(...records.map((each) => each.session ?? 0))).session;
            const seen = records.filter((record) => record.type === 'snapshot' && record.session === lateSession);
            assert.ok(seen.length >= SNAPSHOTS && seen.every((snapshot) => snapshot.ok));
            // Each observer continues the counts of the previous one.
            const opened = records.filter((record) => record.type === 'session' && record.event === 'open').map(({ session }) => session);
            assert.equal(new Set(opened).size, opened.length);
        }));

    test('the page of the next observer has the same port, and the current token', async () => {
        const token = join(folder, 'page.token');
        writeFileSync(token, 'correct-horse-battery\n');
        await withGame(async ({ proxy, bot }) => {
            await proxy.child.waitFor(/live page on port \d+/, WAIT_MS);
            const [, page] = /live page on port (\d+)/.exec(proxy.child.errors);
            const put = async (word) => (await fetch(`http://127.0.0.1:${page}/api/impairment`,
                { method: 'PUT', body: 'none', headers: { 'Content-Type': 'text/plain', Authorization: `Bearer ${word}` } })).status;
            assert.equal(await put('correct-horse-battery'), 200);
            process.kill(await observerOf(proxy), 'SIGKILL');
            writeFileSync(token, 'another-horse-battery\n');
            process.kill(proxy.child.process.pid, 'SIGHUP');
            await proxy.child.waitFor(/configuration reloaded/, WAIT_MS);
            await plays(bot, 2 * SNAPSHOTS);
            await waitUntil('the page to be there', async () => (await fetch(`http://127.0.0.1:${page}/healthz`).catch(() => ({}))).ok, WAIT_MS);
            assert.equal(await put('correct-horse-battery'), 401);
            assert.equal(await put('another-horse-battery'), 200);
            await bot.leave();
            await proxy.drain();
        }, { args: ['--http', '0', '--http-token-file', token] });
    });

    test('an observer that hangs is ended and started again', () =>
        withGame(async ({ proxy, bot }) => {
            const observer = await observerOf(proxy);
            process.kill(observer, 'SIGSTOP');
            await plays(bot);
            await waitUntil('it to be ended', () => /has made no progress for/.test(proxy.child.errors), 2 * WAIT_MS);
            await observerOf(proxy, observer);
            await plays(bot);
        }));

    test('if a reader of the records leaves, only its own lines end', () =>
        withGame(async ({ server }) => {
            const port = await freePort();
            const shell = new Child('a reader that leaves', 'bash', ['-c',
                `"$0" proxy -s 127.0.0.1:${server.port} -l 127.0.0.1:${port} -o - | head -n 1`, TWSCOPE]);
            await waitUntil('twscope to listen', () => isBound(port), WAIT_MS);
            const bot = await new Bot(port, 'bob', { seed: 3, keep: true }).join();
            await plays(bot.walk(), 2 * SNAPSHOTS);
            await waitUntil('it to say so', () => /recording to - stopped/.test(shell.errors), WAIT_MS);
            await plays(bot);
            await bot.leave();
            process.kill(-shell.process.pid, 'SIGTERM');
            await shell.ended;
            assert.match(shell.errors, /records? could not be written/);
        }));

    test('stalled readers of records, log and console delay neither the game nor the end', async () => {
        const server = await startServer({ folder, port: await freePort(), map: 'ctf1' });
        const port = await freePort();
        // No process reads from these pipes.
        const child = spawn(TWSCOPE, ['proxy', '-s', `127.0.0.1:${server.port}`, '-l', `127.0.0.1:${port}`, '-o', '-',
            '--items', 'all', '--log-level', 'trace'], { stdio: ['ignore', 'pipe', 'pipe'] });
        child.stdout.pause();
        child.stderr.pause();
        const ended = new Promise((resolve) => { child.once('exit', (code, signal) => resolve(signal ?? code)); });
        await waitUntil('twscope to listen', () => isBound(port), WAIT_MS);
        const bots = [1, 2, 3].map((seed) => new Bot(port, `bot${seed}`, { seed, keep: true }));
        await Promise.all(bots.map(async (bot) => plays((await bot.join()).walk(), 4 * SNAPSHOTS)));
        const begin = Date.now();
        child.kill('SIGTERM');
        assert.equal(await ended, 3);
        assert.ok(Date.now() - begin < END_MS + SLACK_MS, `it took ${Date.now() - begin} ms to end`);
        await server.stop();
    });

    test('if the relay is killed, the observer writes the rest and ends', async () => {
        const records = recordsFile();
        await withGame(async ({ proxy, bot }) => {
            const observer = await observerOf(proxy);
            await plays(bot);
            proxy.child.signal('SIGKILL');
            await waitUntil('the observer to end', () => {
                try { process.kill(observer, 0); return false; } catch { return true; }
            }, WAIT_MS);
        }, { records });
        const all = readRecords(records);
        assert.equal(all.at(-1).type, 'summary');
        assert.ok(all.filter((record) => record.type === 'snapshot').every((snapshot) => snapshot.ok));
    });
});
