// Measures the cost of a recording. 64 bots play on the real server through two proxies, one behind the other, so that both see the same
// game at the same time. Both record every item: one writes to /dev/null, the other one compressed to a file. Then the proxies exchange
// their roles. Prints the CPU time of both, and the bytes.
//   node recording.mjs [--seconds N] [--players N] [--keep FILE.jsonl.zst] TWSCOPE
import { execFileSync, spawnSync } from 'node:child_process';
import { copyFileSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { Bot, endPeers } from '../e2e/bot.mjs';
import { Child, delay, freePort, temporaryFolder } from '../e2e/process.mjs';
import { startProxy, TWSCOPE } from '../e2e/proxy.mjs';
import { MAPS, startServer } from '../e2e/server.mjs';

const SETTLE_MS = 5000; // until the last bots have joined and histories are full
const JOIN_MS = 60000;
const NICE = 3; // niceness of the bots, whose speed does not matter
const BARS = { share: 3, ratio: 30 }; // per cent of a core; ratio of the sizes

const { values: options } = parseArgs({ allowPositionals: true, options: {
    seconds: { type: 'string', default: '60' }, players: { type: 'string', default: '64' }, keep: { type: 'string' },
    bots: { type: 'string' } } });
const players = Number(options.players);

/** Runs all bots in a process of their own. They acknowledge snapshots without decoding them. */
async function playBots(port) {
    const { Snapshot } = createRequire(import.meta.resolve('../e2e/bot.mjs'))('teeworlds/lib/snapshot.js');
    Snapshot.prototype.unpackSnapshot = (body, delta, tick) => ({ items: [], recvTick: tick });
    for (let number = 1; number <= players; number += 1) {
        const bot = await new Bot(port, `bot ${number}`, { seed: number }).join();
        bot.walk();
        bot.gone.then(({ reason }) => { throw new Error(`${bot.name} was thrown out: ${reason}`); });
    }
    console.log('all play');
}

/** Seconds that all threads of a process and its children ran. */
function cpuSeconds(pid) {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number);
    const own = readdirSync(`/proc/${pid}/task`).reduce((sum, thread) =>
        sum + Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0]), 0);
    return children.reduce((sum, child) => sum + cpuSeconds(child), own / 1e9);
}

/** One game; `packed`: which of the two compresses, 0 is nearest to the players. */
async function measure(folder, packed, seconds) {
    const file = join(folder, `${packed}.jsonl.zst`);
    const server = await startServer({ folder, port: await freePort(), map: 'ctf5' });
    const proxies = [];
    for (let place = 1, behind = server.port; place >= 0; place -= 1, behind = proxies[0].port) {
        proxies.unshift(await startProxy({ server: behind, records: place === packed ? file : '/dev/null',
            args: ['--maps', MAPS, '--items', 'all', '--no-admission', '-q', '--state', join(folder, `state-${packed}-${place}`)] }));
    }
    const bots = new Child('bots', 'nice', ['-n', `${NICE}`, process.execPath, fileURLToPath(import.meta.url), '--bots',
        `${proxies[0].port}`, '--players', `${players}`]);
    await bots.waitFor(/all play/, JOIN_MS);
    await delay(SETTLE_MS);
    const look = () => ({ at: performance.now(), bytes: statSync(file).size,
        cpu: proxies.map(({ child }) => cpuSeconds(child.process.pid)) });
    const before = look();
    await delay(seconds * 1000);
    const after = look();
    if (!bots.running) throw new Error(bots.log);
    await bots.stop('SIGKILL');
    for (const proxy of proxies) {
        const status = await proxy.drain();
        if (status !== 0) throw new Error(`twscope ended with ${status}:\n${proxy.child.log}`);
    }
    await server.stop();
    const taken = (after.at - before.at) / 1000;
    const share = (place) => 100 * (after.cpu[place] - before.cpu[place]) / taken;
    const lines = Number(execFileSync('sh', ['-c', 'zstdcat "$0" | wc -c', file], { encoding: 'utf8' }));
    return { packed: share(packed), plain: share(1 - packed), rate: (after.bytes - before.bytes) / taken,
        ratio: lines / statSync(file).size, file };
}

async function main() {
    const folder = temporaryFolder();
    const runs = [];
    for (const packed of [0, 1]) {
        const run = await measure(folder, packed, Number(options.seconds) / 2);
        runs.push(run);
        console.log(`compressed ${run.packed.toFixed(1)} %, to /dev/null ${run.plain.toFixed(1)} % of a core; ` +
            `${(run.rate / 1e6).toFixed(2)} MB/s of ${(run.rate * run.ratio / 1e6).toFixed(1)} MB/s`);
    }
    if (options.keep) copyFileSync(runs[1].file, options.keep);
    const mean = (key) => runs.reduce((sum, run) => sum + run[key], 0) / runs.length;
    const more = mean('packed') - mean('plain');
    const verdict = (held) => (held ? '' : '  MISSED');
    console.log(`compression takes ${more.toFixed(2)} % of a core (bar: ${BARS.share})${verdict(more <= BARS.share)}\n` +
        `a file is 1/${mean('ratio').toFixed(0)} of its lines (bar: 1/${BARS.ratio})${verdict(mean('ratio') >= BARS.ratio)}\n` +
        `a day is ${(mean('rate') * 86400 / 1e9).toFixed(0)} GB, were it all like this`);
    endPeers();
    process.exit(0);
}

if (spawnSync('zstdcat', ['--version']).status !== 0) throw new Error('zstd is not installed; ./dev deps test');
await (options.bots ? playBots(Number(options.bots)) : main());
