// The live page in Chromium with 64 captured players: frames per second, the duration of a frame, and the delay until a snapshot is on the
// canvas. In the view of one session, and in the view of all players.
//   node page.mjs [--seconds N] SESSION_LOAD TWSCOPE
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { addressOf, drawnAfter, openPage, startBrowser } from '../e2e/browser.mjs';
import { Child, delay, freePort, temporaryFolder, waitUntil } from '../e2e/process.mjs';
import { startProxy } from '../e2e/proxy.mjs';

const SETTLE_MS = 8000;
const WAIT_MS = 60000;
const SNAPSHOTS = 200;
const PLAYERS = 64;

const { values: options, positionals } = parseArgs({ allowPositionals: true, strict: false, options: {
    seconds: { type: 'string', default: '20' } } });
const [SESSION_LOAD] = positionals;
const seconds = Number(options.seconds);

/** Returns the number of frames in this many seconds, and the milliseconds that drawing each took. */
const frames = (page, time) => page.evaluate((ms) => new Promise((resolve) => {
    const { view, store } = window.twscope;
    const took = [];
    const draw = view.draw.bind(view);
    view.draw = () => {
        const begin = performance.now();
        draw();
        took.push(performance.now() - begin);
    };
    setTimeout(() => {
        delete view.draw;
        took.sort((a, b) => a - b);
        resolve({ a_second: took.length / ms * 1000, median: took[took.length >> 1], most: took[Math.floor(took.length * 0.95)],
            tees: [...store.moment.all('character')].length });
    }, ms);
}), time);

const folder = temporaryFolder();
const server = await freePort();
const proxy = await startProxy({ server, records: '/dev/null', args: ['--items', 'none', '--no-messages', '--http', '0', '--state', folder,
    '--no-admission', '--max-sessions', '4096', '--log-level', 'info'] });
const address = await addressOf(proxy, folder);
const load = new Child('load', SESSION_LOAD, ['--server-port', `${server}`, '--target-port', `${proxy.port}`, '--capture',
    'bench-64.pcap.gz', '--sessions', `${PLAYERS}`, '--seconds', '3600']);
await delay(SETTLE_MS);
const browser = await startBrowser();
const page = await openPage(browser, address);
for (const [what, key] of [['one session', ''], ['all players', 'W']]) {
    if (key) await page.keyboard.press(key);
    await waitUntil('many tees', () => page.evaluate(() => [...window.twscope.store.moment.all('character')].length > 30), WAIT_MS);
    await page.keyboard.press('0'); // shows the whole map, so that all players are drawn
    const drawn = await frames(page, seconds * 1000);
    const ages = (await drawnAfter(page, SNAPSHOTS)).sort((a, b) => a - b);
    console.log(`${what.padEnd(18)} ${drawn.tees} tees: ${drawn.a_second.toFixed(1)} frames a second, each ${drawn.median.toFixed(1)} ms ` +
        `(95 %: ${drawn.most.toFixed(1)}); tees stand after ${ages[SNAPSHOTS / 2].toFixed(0)} ms (95 %: ${ages[SNAPSHOTS * 0.95].toFixed(0)})`);
}
await browser.close();
await load.stop();
await proxy.drain('SIGTERM');
process.exit(0);
