// The live page in states that are rare in real games: its WebSocket is scripted, all other responses are twscope's.
//   node page_states.mjs TWSCOPE
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, afterEach, test } from 'node:test';
import { endPeers } from './bot.mjs';
import { addressOf, keepPicture, openPage, startBrowser } from './browser.mjs';
import { freePort, temporaryFolder, waitUntil } from './process.mjs';
import { startProxy } from './proxy.mjs';

const WAIT_MS = 20000;
const STEP_MS = 500;
const TICK_MS = 20;

const folder = temporaryFolder();
const proxy = await startProxy({ server: await freePort(), records: join(folder, 'r.jsonl'), args: ['--http', '0', '--state', folder] });
const address = (await addressOf(proxy)).trim();
const ask = async (path) => (await fetch(new URL(path, address))).json();
const EMPTY = await ask('/api/state');
const objects = (await ask('/api/objects')).objects.map(({ name }) => name);
const browser = await startBrowser();
afterEach(() => Promise.all(browser.contexts().map((context) => context.close())));
after(async () => {
    await browser.close();
    await proxy.child.stop();
    endPeers();
    setTimeout(() => process.exit(), 5000).unref();
});

const traffic = { datagrams: 0, bytes: 0, recovered: 0, jitter_us: 0, jitter_count: 0 };
const session = (number, name, more = {}) => ({ number, client: `127.0.0.1:${50000 + number}`, protocol: '0.6+ddnet', map: 'ctf1', map_id: null, name, place: '(1,2) air',
    score: 7, closed: false, opened_ms: 1, c2s: traffic, s2c: traffic, snapshots: 100, verified: 100, missed: 0, frozen_ms: 0, ack_lag_ticks: 2, ack_lag_count: 5,
    largest_snapshot: 300, findings: 0, ...more });
const packed = (text, ints) => Array.from({ length: ints }, (_, at) => [0, 1, 2, 3].reduce((value, byte) =>
    (value << 8) | (((text.charCodeAt(at * 4 + byte) || 0) ^ 0x80) & 0xff), 0));

/** Returns the items of players given as [client, name, x, y]; the first one is the session's own player. */
const itemsOf = (players) => players.flatMap(([client, name, x, y], index) => [
    [objects.indexOf('player_info'), client, index === 0 ? 1 : 0, client, 0, 7, 30],
    [objects.indexOf('client_info'), client, ...packed(name, 4), ...packed('', 3), -1, ...packed('pinky', 6), 0, 0, 0],
    ...(x === undefined ? [] : [[objects.indexOf('character'), client, 1, x, y, ...new Array(19).fill(0)]])]);

/** Opens a page with a scripted WebSocket. */
async function open(hash = '', options = {}) {
    const script = { now: EMPTY.now_ms, n: 0, asked: {} };
    let socket = null;
    const page = await openPage(browser, address.replace(/#.*/, '') + hash, { width: 1440, height: 900, colorScheme: 'dark', reducedMotion: 'reduce', ...options, onSocket: (opened) => {
        socket = opened;
        socket.onMessage((text) => Object.assign(script.asked, JSON.parse(text)));
    } });
    await waitUntil('the page to ask', () => script.asked.pace !== undefined, WAIT_MS);
    const send = (message) => socket.send(JSON.stringify(message));
    const passed = () => waitUntil('the page to hear it', () => page.evaluate((now) => window.twscope.store.state?.now_ms === now, script.now), WAIT_MS);
    return Object.assign(script, { page,
        async state(changes = {}, ms = STEP_MS) {
            script.now += ms;
            send({ k: 'state', frames_lost: 0, world_server: null, state: { ...EMPTY, ...changes, now_ms: script.now } });
            await passed();
        },
        async frame(source, tick, players) {
            script.n += 1;
            send({ k: 'frame', session: source, n: script.n, full: true, t: EMPTY.now_ms + tick * TICK_MS, tick, items: itemsOf(players), gone: [],
                bars: [[source, EMPTY.now_ms + tick * TICK_MS, tick, tick - 2, 200, 1, 900, 0]] });
            await waitUntil('the frame', () => page.evaluate((wanted) => window.twscope.store.latest.tick === wanted, tick), WAIT_MS);
        },
        log: (...lines) => send({ k: 'log', lost: 0, lines }),
        text: (selector) => page.evaluate((wanted) => [...document.querySelectorAll(wanted)].filter((each) => each.checkVisibility()).map((each) => each.textContent), selector),
    });
}

/** Waits for two frames of the screen, so that received data is drawn. */
const drawn = (page) => page.evaluate(() => new Promise((resolve) => { requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(resolve, 100))); }));

test('an empty page says which address to enter; a client without an answer is shown', async () => {
    const view = await open();
    await view.state();
    const [text] = await view.text('#empty');
    assert.match(text, new RegExp(`enter:\nconnect 127\\.0\\.0\\.1:${proxy.port}$`));
    assert.match((await view.text('#age'))[0], /^up .* · twscope \d+\.\d+\.\d+/);
    await view.page.click('#tab-selection');
    assert.match((await view.text('#panel-selection'))[0], /^Click a tee or an item/);
    await view.page.click('#tab-log');
    assert.match(await view.page.evaluate(() => getComputedStyle(document.querySelector('.lines'), '::before').content), /Nothing yet/);
    await drawn(view.page);
    const isBlank = () => view.page.evaluate(() => {
        const canvas = document.getElementById('timeline');
        const { data } = canvas.getContext('2d').getImageData(0, canvas.height - 14, canvas.width - 4, 14);
        return data.every((value) => value === 0);
    });
    assert.ok(await isBlank(), 'a clock without data');
    assert.deepEqual(await view.text('.pick #source'), []);
    await view.state({ sessions: [session(1, 'anna', { closed: true })] });
    assert.match((await view.text('#empty'))[0], /^All players have left\. Open the console/);
    await view.state({ sessions: [session(1, '')] });
    assert.match((await view.text('#empty'))[0], /^127\.0\.0\.1:50001 is connecting/);
    await view.page.click('#tab-sessions');
    assert.deepEqual(await view.text('tr.chosen td button'), ['127.0.0.1:50001']);
    await view.state({ sessions: [session(1, '')], server_silent: true, server_silent_since_ms: view.now, server_unanswered: 9, server_refused: 9 });
    assert.match((await view.text('#empty'))[0], /^A client at 127\.0\.0\.1:50001 tries to connect, but the server 127\.0\.0\.1:\d+ does not answer\.\nStart the server/);
    await view.state({ listen: ['0.0.0.0:8303'] });
    assert.match((await view.text('#empty'))[0], /connect 127\.0\.0\.1:8303$/);
    await view.state({ listen: ['127.0.0.1:1', '127.0.0.1:2'], servers: ['ctf', 'race'].map((name, index) => ({ name, server: `127.0.0.1:${index + 5}`, listen: [`127.0.0.1:${index + 1}`],
        silent: false, players: 0, findings: 0, relay: EMPTY.relay })) });
    assert.match((await view.text('#empty'))[0], /\nctf: connect 127\.0\.0\.1:1\nrace: connect 127\.0\.0\.1:2$/);
    assert.deepEqual(view.page.complaints, []);
});

test('the server is shown as silent only if twscope reports it', async () => {
    const view = await open();
    const waiting = (seconds) => ({ relay: { ...EMPTY.relay, c2s: { ...EMPTY.relay.c2s, datagrams: seconds * 50 } }, sessions: [session(1, 'anna')] });
    for (let second = 1; second <= 5; second += 1) {
        await view.state(waiting(second), 1000);
        assert.deepEqual(await view.text('#alarm'), []);
    }
    await view.state({ ...waiting(6), server_silent: true, server_silent_since_ms: view.now, server_unanswered: 300 });
    assert.match((await view.text('#alarm'))[0], /has not answered since .*: 300 datagrams/);
    await view.state(waiting(7));
    assert.deepEqual(await view.text('#alarm'), []);
});

test('sessions that ended are last and grey; the table fits, is searchable, and is orange only while counts grow', async () => {
    const view = await open();
    const relay = { ...EMPTY.relay, sessions: 2 };
    const sessions = (anna) => [session(1, 'gone', { closed: true, missed: 3 }), session(2, 'anna', anna), session(3, 'bob', { score: -9999 }),
        session(4, 'cleo', { score: -1, score_is_ms: true }), session(5, 'dora', { score: 3_723_050, score_is_ms: true })];
    await view.state({ relay, sessions: sessions({ missed: 4 }) });
    const rows = () => view.page.evaluate(() => [...document.querySelectorAll('table.players tbody tr')].map((row) =>
        [row.className, ...[...row.cells].filter((cell) => cell.checkVisibility()).map((cell) => cell.textContent)]));
    const heads = await view.text('table.players th');
    assert.deepEqual(heads, ['#', 'player', 'score', 'ping', 'verified', 'missed', 'frozen', 'findings']);
    const [all, anna, bob, cleo, dora, gone] = await rows();
    assert.match(all[2], /^all players/);
    assert.deepEqual(anna.slice(1, 5), ['2', 'anna', '7', '40 ms']);
    assert.deepEqual([bob, cleo, dora].map((row) => row.slice(1, 4)), [['3', 'bob', '–'], ['4', 'cleo', '–'], ['5', 'dora', '1:02:03']]);
    assert.deepEqual(gone.slice(0, 5), ['left', '1', 'gone', '7', 'left']);
    assert.deepEqual((await view.text('.card')).slice(0, 1), ['2sessions']);
    const fits = () => view.page.evaluate(() => { const box = document.querySelector('table.players').parentElement; return box.scrollWidth <= box.clientWidth; });
    assert.ok(await fits(), 'wider than the panel');
    const orange = () => view.page.evaluate(() => document.querySelectorAll('table.players tr:nth-child(2) .warn').length);
    assert.equal(await orange(), 0); // the time of the finding is unknown
    await view.state({ sessions: sessions({ missed: 5 }) });
    assert.equal(await orange(), 1);
    await view.state({ sessions: sessions({ missed: 5 }) }, 61_000);
    assert.equal(await orange(), 0);

    await view.page.fill('input[type=search]', 'BO');
    assert.deepEqual((await rows()).map((row) => row[2].slice(0, 4)), ['all ', 'bob']);
    await view.page.fill('input[type=search]', 'nobody');
    assert.deepEqual((await rows()).map((row) => row[1]), ['no such session']);
    await view.page.fill('input[type=search]', '');
    await view.page.getByRole('button', { name: 'all columns' }).click();
    assert.equal((await view.text('table.players th')).length, 15);
    await view.page.getByRole('button', { name: 'all columns' }).click();
    for (const width of [1440, 1366, 1280]) {
        await view.page.setViewportSize({ width, height: 720 });
        await view.state({ sessions: [session(12, 'nameless tee 15', { missed: 123, frozen_ms: 12_345, findings: 123 }),
            session(13, 'nameless tee 16', { closed: true })] });
        assert.ok(await fits(), `wider than the panel at ${width}`);
        assert.ok((await view.text('table.players th')).includes('findings'));
    }
    assert.deepEqual(view.page.complaints, []);
});

test('a view whose player has left says so and does not look live; the timeline draws no line across a gap', async () => {
    const view = await open();
    const sessions = [session(1, 'anna'), session(2, 'bob')];
    await view.state({ sessions });
    for (const tick of [100, 110, 400, 410, 420, 430, 440, 450]) await view.frame(1, tick, [[0, 'anna', 500, 500]]);
    await drawn(view.page);
    /** Returns whether the line of distances is drawn this long before the end. */
    const hasLine = (seconds) => view.page.evaluate((before) => {
        const canvas = document.getElementById('timeline');
        const { data } = canvas.getContext('2d').getImageData(Math.round(canvas.width * (1 - before / 60)) - 2, canvas.height / 2, 3, canvas.height / 2);
        return data.some((red, at) => at % 4 === 0 && red > 200 && data[at + 2] < 150 && data[at + 3] > 100);
    }, seconds);
    assert.deepEqual([await hasLine(4), await hasLine(0.5)], [false, true]);
    const looks = async () => [await view.page.getAttribute('#live', 'aria-pressed'), ...await view.text('#empty')];
    await view.state({ sessions });
    assert.deepEqual(await looks(), ['true']);
    await view.state({ sessions: [session(1, 'anna', { closed: true }), session(2, 'bob')] });
    assert.deepEqual(await looks(), ['false',
        'anna has left; this is the last snapshot.\nOthers are playing: choose one under “view”, or press W for all players.']);
    await keepPicture(view.page, 'left');
    await view.state({ sessions: [session(2, 'bob')] }); // twscope has forgotten the session
    assert.match((await looks())[1], /^anna has left/);
    await view.state({ sessions: [] });
    assert.deepEqual(await looks(), ['false', 'The players have left; this is the last snapshot.']);
    assert.deepEqual(view.page.complaints, []);
});

test('where no map is shown, the page says why', async () => {
    const view = await open();
    const texts = [];
    for (const more of [{ map: '' }, { map: 'ctf1' }, { map: 'ctf1', map_id: 'ab' }]) {
        await view.state({ sessions: [session(1, 'anna', more)] });
        if (texts.length === 0) await view.frame(1, 100, [[0, 'anna', 500, 500]]);
        await waitUntil('another text', async () => {
            await view.state({ sessions: [session(1, 'anna', more)] });
            const [text] = await view.text('#no-map');
            return text !== undefined && text !== texts.at(-1) && texts.push(text);
        }, WAIT_MS);
    }
    assert.deepEqual(texts, ['No map: twscope did not see which one the server announced.',
        'No map: twscope has no file of ctf1. Start it with --maps DIR, a folder with the server’s version.',
        'No map: the map of that session is unknown.']);
    await keepPicture(view.page, 'no-map');
});

test('a recording that stopped is reported with the reason', async () => {
    const view = await open();
    const stopped = (lost) => ({ recording: { ...EMPTY.recording, failed: true, error: 'No space left on device', lost } });
    await view.state(stopped(0));
    assert.deepEqual(await view.text('#alarm'), ['Recording stopped: No space left on device. The game continues.']);
    await view.state(stopped(1));
    assert.deepEqual(await view.text('#alarm'), ['Recording stopped: No space left on device. 1 record could not be written. The game continues.']);
});

test('on a phone, the open tab is in sight; the list of keys is read downwards', async () => {
    const view = await open('#tab=network', { width: 390, height: 844 });
    const { x, width } = await view.page.locator('#tab-network').boundingBox();
    assert.ok(x >= 0 && x + width <= 390, `from ${x}, ${width} wide`);
    await view.page.setViewportSize({ width: 1440, height: 900 });
    await view.page.keyboard.press('?');
    const places = await view.page.evaluate(() => [...document.querySelectorAll('#key-list dt')].map((each) => each.getBoundingClientRect()).map(({ x, y }) => [x, y]));
    assert.equal(places[0][0], places[1][0]);
    assert.ok(places[0][1] < places[1][1]);
});

test('a link opens its session, tab and moment, or says that they are gone; the address follows the view', async () => {
    const view = await open('#session=3&tick=104&tab=findings');
    await waitUntil('session 3 to be asked for', () => view.asked.watch === 3, WAIT_MS);
    const sessions = [session(1, 'anna'), session(3, 'bob')];
    await view.state({ sessions });
    assert.deepEqual(await view.text('#note'), []);
    for (const tick of [100, 102, 104, 106]) await view.frame(3, tick, [[0, 'bob', 500, 500]]);
    await view.state({ sessions });
    const shown = () => view.page.evaluate(() => ({ source: window.twscope.store.source, tick: window.twscope.store.moment.tick, isLive: window.twscope.store.isLive, hash: location.hash }));
    const { source, tick, isLive } = await shown();
    assert.deepEqual([source, tick, isLive], [3, 104, false]);
    assert.equal(await view.page.locator('#panel-findings').isVisible(), true);
    const goTo = (hash) => view.page.evaluate((wanted) => { location.hash = wanted; }, hash);
    await goTo('#session=3&tick=102&tab=log');
    await waitUntil('the moment', async () => (await shown()).tick === 102, WAIT_MS);
    assert.equal(await view.page.locator('#panel-log').isVisible(), true);
    await view.page.click('#tab-traffic');
    await waitUntil('the address to say so', async () => (await shown()).hash === '#session=3&tick=102&tab=traffic', WAIT_MS);
    await view.page.keyboard.press('l');
    for (let tick = 108; /tick/.test((await shown()).hash); tick += 2) { // while snapshots arrive
        assert.ok(tick < 400, 'an address that is not live again');
        await view.frame(3, tick, [[0, 'bob', 500, 500]]);
    }
    await goTo('#session=3&tick=7');
    await waitUntil('it to be said', async () => /^Tick 7 is gone: this page has snapshots since/.test((await view.text('#note'))[0] ?? ''), WAIT_MS);
    await goTo('#session=9&tab=selection');
    await view.state({ sessions });
    await waitUntil('it to be said', async () => /^Session 9 is not here any more/.test((await view.text('#note'))[0] ?? ''), WAIT_MS);
    assert.equal((await shown()).source, 3);
    assert.ok(await view.page.evaluate(() => window.twscope.store.history.length) > 3, 'what was shown is lost');
    assert.deepEqual(view.page.complaints, []);
});

test('a link to a finding shows its explanation, also after its session has ended', async () => {
    const view = await open('#session=3&tick=104');
    const text = 'warning snapshot.client_stalled: session 3, tick 104, lost. A client got nothing new to show for a while.';
    const recent = [{ time_ms: view.now, session: 3, severity: 'warning', tick: 104, text }];
    await view.state({ sessions: [session(1, 'anna')], recent });
    await waitUntil('its details', async () => /snapshot\.client_stalled/.test((await view.text('.finding-details h2'))[0] ?? ''), WAIT_MS);
    await waitUntil('why it has no explanation', async () => /^No explanation is kept.*twscope explain RECORDING --session 3 --tick 104$/s.test((await view.text('.finding-details pre'))[0]), WAIT_MS);
});

test('a finding is shown with its player, and linked by its own session, whichever is shown', async () => {
    const view = await open();
    const sessions = [session(1, 'anna'), session(3, 'bob')];
    await view.state({ sessions });
    await view.frame(1, 104, [[0, 'anna', 500, 500]]);
    const text = 'warning snapshot.client_stalled: session 3, tick 104, lost. A client got nothing new to show for a while.';
    await view.state({ sessions, recent: [{ time_ms: EMPTY.now_ms + 104 * TICK_MS, session: 3, severity: 'warning', tick: 104, text }],
        findings: [{ id: 'snapshot.client_stalled', severity: 'warning', sentence: 'It froze.', cause: 'Loss.', count: 1 }] });
    await view.page.click('#tab-findings');
    assert.deepEqual(await view.text('#panel-findings td p'), ['It froze. Usually: Loss.', 'session 3 (bob), tick 104, lost']);
    await view.page.click('#panel-findings td button.link[title="show the latest"]');
    const hash = (wanted) => waitUntil(wanted, async () => await view.page.evaluate(() => location.hash) === wanted, WAIT_MS);
    await hash('#session=3&tick=104&tab=findings');
    await view.page.click('.finding-details button.link'); // close
    await view.page.keyboard.press('l');
    await view.frame(1, 106, [[0, 'anna', 500, 500]]);
    await hash('#session=1&tab=findings');
});

test('findings close together become one mark with their number', async () => {
    const view = await open();
    await view.state({ sessions: [session(1, 'anna')] });
    await view.frame(1, 100, [[0, 'anna', 500, 500]]);
    const recent = Array.from({ length: 12 }, (_, index) => ({ time_ms: EMPTY.now_ms + 100 * TICK_MS - 20_000 + index, session: 1, severity: 'warning', text: `warning a.b: session 1, tick ${index}. x` }));
    await view.state({ sessions: [session(1, 'anna')], recent });
    await drawn(view.page);
    const box = await view.page.locator('#timeline').boundingBox();
    const orange = await view.page.evaluate(() => {
        const canvas = document.getElementById('timeline');
        const ratio = canvas.width / canvas.clientWidth;
        const { data } = canvas.getContext('2d').getImageData(0, 3 * ratio, canvas.width, 1);
        const at = [];
        for (let x = 0; x < canvas.width; x += 1) if (data[x * 4] > 200 && data[x * 4 + 2] < 120 && data[x * 4 + 3] > 200) at.push(x / ratio);
        return [at[0], at.at(-1)];
    });
    assert.ok(orange[1] - orange[0] < 30, `one mark, from ${orange}`);
    await keepPicture(view.page, 'binned');
    await view.page.mouse.click(box.x + (orange[0] + orange[1]) / 2, box.y + 8);
    await waitUntil('the details of one of them', async () => (await view.text('.finding-details h2'))[0] === 'a.b', WAIT_MS);
});

test('W keeps all players in view; ◎ follows living players', async () => {
    const view = await open();
    const sessions = [session(1, 'anna'), session(2, 'bob')];
    await view.state({ sessions });
    await view.frame(1, 100, [[0, 'anna', 500, 500], [1, 'bob', 900, 500]]);
    await drawn(view.page);
    const camera = () => view.page.evaluate(() => { const { x, y, scale, width, height } = window.twscope.view.camera; return { x, y, scale, width, height }; });
    assert.equal((await camera()).x, 500); // the player whose session it is
    assert.equal(await view.page.evaluate(() => window.twscope.skin(window.twscope.store.moment, 1).body), '#f09cb6'); // the colour of the skin pinky
    await view.frame(1, 102, [[0, 'anna'], [1, 'bob', 900, 500]]); // anna is dead
    await view.page.keyboard.press('f');
    await view.page.keyboard.press('Escape');
    await view.page.keyboard.press('f');
    await drawn(view.page);
    assert.equal((await camera()).x, 900); // the camera shows the living players
    await view.page.keyboard.press('w');
    await waitUntil('all players to be asked for', () => view.asked.watch === 'all', WAIT_MS);
    view.n = 0;
    for (const [tick, x] of [[110, 900], [112, 6000]]) {
        await view.frame(0, tick, [[0, 'anna', 100, 100], [1, 'bob', x, 4000]]);
        await drawn(view.page);
        const { x: cx, y: cy, scale, width, height } = await camera();
        for (const [px, py] of [[100, 100], [x, 4000]]) assert.ok(Math.abs(px - cx) * scale < width / 2 && Math.abs(py - cy) * scale < height / 2, `${px}, ${py} at tick ${tick}`);
    }
    assert.equal(await view.page.getAttribute('#follow', 'aria-pressed'), 'true');
    const before = await camera();
    await view.page.keyboard.press('+');
    await view.frame(0, 114, [[0, 'anna', 100, 100], [1, 'bob', 300, 300]]);
    await drawn(view.page);
    assert.ok((await camera()).scale > before.scale);
    assert.equal((await camera()).x, before.x); // zooming stops following
    assert.deepEqual(view.page.complaints, []);
});

test('the log names players, and shows a message to several players once', async () => {
    const view = await open('#tab=log');
    await view.state({ sessions: [session(1, 'anna'), session(2, 'bob')] });
    assert.match(view.asked.log, /name != sv_weapon_pickup.* and name != cl_show_distance/);
    await view.frame(1, 100, [[0, 'anna', 500, 500], [5, 'bob', 900, 500]]);
    const told = (at, number, name, fields) => ({ v: 1, t: `2026-11-20T10:00:0${at}Z`, type: 'message', session: number, dir: 's2c', name, fields });
    const kill = { killer: 5, victim: 0, weapon: 1 };
    view.log(told('0.000', 2, 'sv_kill_msg', kill), told('0.010', 1, 'sv_kill_msg', kill), told('1.000', 1, 'sv_kill_msg', kill), told('1.001', 1, 'sv_kill_msg', kill),
        told('2.000', 2, 'sv_chat', { team: 0, client_id: 5, message: 'hello' }), told('2.001', 1, 'sv_chat', { team: 0, client_id: 5, message: 'hello' }));
    const lines = await waitUntil('the lines', async () => { const found = await view.text('.lines li'); return found.length === 4 && found; }, WAIT_MS);
    assert.equal(lines[0], '10:00:00.010 2 players ← sv_kill_msg killer bob, victim anna, weapon 1');
    assert.match(lines[1], / anna ← sv_kill_msg/); // a second message for the same session is not merged
    assert.equal(lines[3], '10:00:02.001 2 players bob hello');
    await view.state({ sessions: [session(1, 'anna')] });
    await view.frame(1, 102, [[0, 'anna', 500, 500]]); // bob has left
    view.log({ ...told('3.000', 1, 'sv_kill_msg', { killer: 5, victim: 5, weapon: -3 }), names: { weapon: 'game' } });
    await waitUntil('who died when leaving', async () => (await view.text('.lines li'))[4] === '10:00:03.000 anna ← sv_kill_msg killer bob, victim bob, weapon game', WAIT_MS);
    view.log({ v: 1, t: '2026-11-20T10:00:03.500Z', type: 'finding', session: 1, id: 'packet.malformed', severity: 'warning', offset: 3 });
    await waitUntil('a finding of a kind that no state has named yet', async () => (await view.text('.lines li'))[5] === '10:00:03.500 anna packet.malformed offset 3', WAIT_MS);
    await view.state({ sessions: [session(1, 'anna')], findings: [{ id: 'world.inside_solid', severity: 'info', sentence: 'It is in a wall.', cause: 'Lag.', count: 1 }] });
    view.log({ v: 1, t: '2026-11-20T10:00:04.000Z', type: 'finding', session: 1, id: 'world.inside_solid', severity: 'info', tick: 102, item: { type: 'character', type_id: 9, id: 0 }, field: 'x' });
    await waitUntil('what the finding means', async () => (await view.text('.lines li'))[6] === '10:00:04.000 anna world.inside_solid character 0, x: It is in a wall.', WAIT_MS);
    assert.deepEqual(view.page.complaints, []);
});
