// `./dev picture`: creates the README's first picture, a game in the live page.
//   node picture.mjs TWSCOPE
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Bot, endPeers } from './bot.mjs';
import { addressOf, openPage, startBrowser } from './browser.mjs';
import { delay, freePort, temporaryFolder, waitUntil } from './process.mjs';
import { startProxy } from './proxy.mjs';
import { MAPS, startServer } from './server.mjs';

const PICTURE = fileURLToPath(new URL('../../docs/live-page.png', import.meta.url));
const NAMES = ['anna', 'bob', 'cleo', 'dora', 'emil', 'fritz'];
const WAIT_MS = 20000;

const folder = temporaryFolder();
const server = await startServer({ folder, port: await freePort(), map: 'Tutorial' });
const proxy = await startProxy({ server: server.port, records: join(folder, 'game.jsonl'), args: ['--maps', MAPS, '--http', '0', '--state', folder] });
const bots = NAMES.map((name, index) => new Bot(proxy.port, name, { seed: index + 40 }));
await Promise.all(bots.map((bot) => bot.join()));
for (const bot of bots) bot.walk();
const browser = await startBrowser();
try {
    const page = await openPage(browser, await addressOf(proxy, folder), { colorScheme: 'dark', width: 1200, height: 675 });
    await waitUntil('the game', () => page.evaluate(() => [...window.twscope.store.moment.all('character')].length >= 4), WAIT_MS);
    await page.click('#tab-selection');
    await page.selectOption('#span', '15');
    await delay(15000); // until the timeline is full
    await page.screenshot({ path: PICTURE });
    console.log(`made ${PICTURE}`);
} finally {
    await browser.close();
    await proxy.child.stop();
    await server.stop();
    endPeers();
}
process.exit(0);
