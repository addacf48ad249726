// `./dev picture`: creates the README's first picture, a game in the live page, and three more in tests/e2e/out to look at.
//   node picture.mjs TWSCOPE
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Bot, endPeers } from './bot.mjs';
import { addressOf, keepPicture, openPage, startBrowser } from './browser.mjs';
import { delay, freePort, temporaryFolder, waitUntil } from './process.mjs';
import { startProxy } from './proxy.mjs';
import { MAPS, startServer } from './server.mjs';

const PICTURE = fileURLToPath(new URL('../../docs/live-page.png', import.meta.url));
const NAMES = ['anna', 'bob', 'cleo', 'dora', 'emil', 'fritz', 'gina', 'hugo'];
const WAIT_MS = 20000;
const SIZES = { dark: [1440, 900], light: [1440, 900], phone: [390, 844] };

/** Returns what a client says about its player, each with a colour of its own: hue, saturation and lightness in 24 bits. */
const identity = (name, index) => ({ name, clan: '', country: -1, skin: 'default', use_custom_color: 1,
    color_body: (Math.round(index * 255 / NAMES.length) << 16) | (200 << 8) | 60, color_feet: 65535 });

const folder = temporaryFolder();
const server = await startServer({ folder, port: await freePort(), map: 'dm1' });
const proxy = await startProxy({ server: server.port, records: join(folder, 'game.jsonl'), args: ['--maps', MAPS, '--http', '0', '--state', folder] });
const bots = NAMES.map((name, index) => new Bot(proxy.port, name, { seed: index + 40, options: { identity: identity(name, index) } }));
await Promise.all(bots.map((bot) => bot.join()));
for (const bot of bots) bot.walk();
const browser = await startBrowser();
const address = await addressOf(proxy, folder);

/** Opens the page with all players in sight, and waits until the timeline is full. */
async function openGame(options) {
    const page = await openPage(browser, address, { colorScheme: 'dark', ...options });
    await waitUntil('the game', () => page.evaluate(() => [...window.twscope.store.moment.all('character')].length > 0), WAIT_MS);
    await page.keyboard.press('w');
    await page.selectOption('#span', '15');
    await delay(17000);
    return page;
}

try {
    const page = await openGame({ width: 1200, height: 675 });
    await page.screenshot({ path: PICTURE });
    console.log(`made ${PICTURE}`);
    for (const [name, [width, height]] of Object.entries(SIZES)) {
        await keepPicture(await openGame({ width, height, colorScheme: name === 'light' ? 'light' : 'dark' }), `page-${name}`);
    }
} finally {
    await browser.close();
    await proxy.child.stop();
    await server.stop();
    endPeers();
}
process.exit(0);
