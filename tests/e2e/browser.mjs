// Opens the live page in Debian's Chromium, without a screen.
import { mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { need } from './need.mjs';

const CHROMIUM = '/usr/bin/chromium';
const LIBRARY = fileURLToPath(new URL('node_modules/playwright-core', import.meta.url));
export const OUT = fileURLToPath(new URL('out', import.meta.url));

need(CHROMIUM, LIBRARY);
const { chromium } = createRequire(import.meta.url)('playwright-core');

/** The browser, which is closed when the test program ends. */
export async function startBrowser() {
    return chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'] });
}

/**
 * Opens the page. Its errors are collected in `page.complaints`.
 * @param onSocket handles the page's WebSocket in place of twscope, as for routeWebSocket
 * @param options as for newContext: viewport, colorScheme, …
 */
export async function openPage(browser, address, { width = 1280, height = 720, onSocket, ...options } = {}) {
    const context = await browser.newContext({ viewport: { width, height }, ...options });
    const page = await context.newPage();
    page.complaints = [];
    page.on('pageerror', (error) => page.complaints.push(`${error}`));
    page.on('console', (message) => { if (message.type() === 'error') page.complaints.push(message.text()); });
    page.on('dialog', (dialog) => { page.complaints.push(`dialog: ${dialog.message()}`); dialog.dismiss(); });
    if (onSocket) await page.routeWebSocket(/\/api\/live$/, onSocket);
    await page.goto(address);
    return page;
}

/** Saves a screenshot under tests/e2e/out. */
export async function keepPicture(page, name) {
    mkdirSync(OUT, { recursive: true });
    await page.screenshot({ path: join(OUT, `${name}.png`) });
}

/** Returns the address that twscope printed, with the token if `state` is the folder with the token. */
export async function addressOf(proxy, state, ms = 10000) {
    await proxy.child.waitFor(/live page on port \d+: http:\S+/, ms);
    const [, address] = /live page on port \d+: (http:[^#]+)/.exec(proxy.child.log);
    return state ? `${address}#token=${readFileSync(join(state, 'http.token'), 'utf8').trim()}` : address;
}

/**
 * For a number of snapshots: milliseconds from the snapshot's datagram, by one clock, until the canvas shows all tees at their positions
 * in it or on their way to the next ones.
 */
export const drawnAfter = (page, count) => page.evaluate((wanted) => new Promise((resolve) => {
    const found = [];
    let last = window.twscope.store.moment.t;
    let seen = last;
    const look = () => {
        const { store, view } = window.twscope;
        const { moment } = store;
        const stands = (item) => {
            const place = view.drawn.get(item.id);
            return place && place.x === item.data[1] && place.y === item.data[2];
        };
        if (seen !== last && moment.t !== seen) found.push(Date.now() - (last = seen));
        seen = moment.t;
        if (seen !== last && [...moment.all('character')].every(stands)) found.push(Date.now() - (last = seen));
        if (found.length < wanted) requestAnimationFrame(look);
        else resolve(found);
    };
    look();
}), count);
