// Covers: proxy/relay/ring.cpp
// An idle proxy sleeps: counts how often the kernel wakes each of its threads, with every option that could wake it by itself; before the
// first client, while a client is silent, and after the last client has left.
//   node idle.mjs TWSCOPE
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { Bot, endPeers } from './bot.mjs';
import { childrenOf, delay, freePort, temporaryFolder, waitUntil } from './process.mjs';
import { startProxy } from './proxy.mjs';
import { MAPS, startServer } from './server.mjs';

const WAIT_MS = 20000;
const WINDOW_MS = 5000;
/** The most wake-ups per second of an idle run, all threads of both processes together. */
const WAKE_UPS = 20;

after(endPeers);

/** Returns how often each thread of a process and of its children has gone to sleep so far, by thread id. */
function sleepsOf(pid) {
    const sleeps = new Map();
    for (const process of [pid, ...childrenOf(pid)]) {
        for (const thread of readdirSync(`/proc/${process}/task`)) {
            const status = readFileSync(`/proc/${process}/task/${thread}/status`, 'utf8');
            sleeps.set(thread, Number(/^voluntary_ctxt_switches:\s+(\d+)/m.exec(status)[1]));
        }
    }
    return sleeps;
}

/** Returns the wake-ups per second over some idle seconds. */
async function wakeUps(pid) {
    const [begun, before] = [performance.now(), sleepsOf(pid)];
    await delay(WINDOW_MS);
    const now = sleepsOf(pid);
    const seconds = (performance.now() - begun) / 1000;
    assert.deepEqual([...now.keys()], [...before.keys()], 'threads came or went');
    return [...now].reduce((sum, [thread, count]) => sum + count - before.get(thread), 0) / seconds;
}

test(`a proxy that looks, records and shows a page wakes less than ${WAKE_UPS} times a second while nobody plays`, async () => {
    const folder = temporaryFolder();
    const server = await startServer({ folder, port: await freePort(), map: 'ctf1' });
    const proxy = await startProxy({
        server: server.port, records: join(folder, 'idle.jsonl'), args: ['--maps', MAPS, '--http', '127.0.0.1:0', '--idle-timeout', '3'],
    });
    const { pid } = proxy.child.process;
    // Waits until the start is over.
    await waitUntil('the start to be over', async () => {
        const before = [...sleepsOf(pid).values()];
        await delay(1000);
        return [...sleepsOf(pid).values()].reduce((sum, count, index) => sum + count - (before[index] ?? 0), 0) <= WAKE_UPS;
    }, WAIT_MS);
    const fresh = await wakeUps(pid);
    const bot = await new Bot(proxy.port, 'anna', { seed: 1, keep: true }).join();
    bot.walk();
    await waitUntil('a game', () => bot.snapshots.length > 50, WAIT_MS);
    const playing = await wakeUps(pid);
    await bot.leave();
    await waitUntil('the session to be over', () => proxy.records().some(({ type, event }) => type === 'session' && event === 'close'), WAIT_MS);
    await delay(1000);
    const over = await wakeUps(pid);
    console.log(`wake-ups a second: ${fresh.toFixed(1)} before, ${playing.toFixed(0)} while one plays, ${over.toFixed(1)} afterwards`);
    assert.ok(playing > 50, 'the count says nothing: a game wakes it with each datagram');
    assert.ok(fresh <= WAKE_UPS && over <= WAKE_UPS, `${fresh} before the game, ${over} after it`);
    assert.equal(await proxy.drain(), 0);
    const verified = proxy.records().filter(({ type, ok }) => type === 'snapshot' && ok);
    assert.ok(verified.length > 50);
    await server.stop();
});
