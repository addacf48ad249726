// The page for all servers of a stream: collect --http.
//   node collect_page.mjs TWSCOPE
// Covers: proxy/process/fleet_page.cpp, proxy/process/state_folder.cpp, proxy/cli/collect_command.cpp
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { keepPicture, openPage, startBrowser } from './browser.mjs';
import { NatsClient } from './nats_client.mjs';
import { startNats } from './nats_server.mjs';
import { need } from './need.mjs';
import { Child, endChildren, freePort, temporaryFolder, waitUntil } from './process.mjs';

need(fileURLToPath(new URL('node_modules/ajv', import.meta.url)));
const Ajv = createRequire(import.meta.url)('ajv/dist/2020.js');
const TWSCOPE = process.argv.at(-1);
const WAIT_MS = 20000;
const AGAIN_MS = 200;
const CAPTURE = fileURLToPath(new URL('../data/golden/token-map-change.pcap', import.meta.url));
const SPEC = JSON.parse(readFileSync(new URL('../../docs/openapi.json', import.meta.url), 'utf8'));
const MINUTE = '2026-11-22T18:00';

const folder = temporaryFolder();
const browser = await startBrowser();
after(() => { endChildren(); return browser.close(); });

/** Returns a line as a proxy publishes it, about a session, `at` seconds after the full minute. */
const line = (type, session, at, rest) => JSON.stringify({ v: 1, t: `${MINUTE}:${`${at}`.padStart(2, '0')}.000000Z`, type, session, ...rest });
const opens = (session, client) => [line('session', session, 1, { event: 'open', client, server: '127.0.0.1:8304' }),
    line('session', session, 2, { event: 'established', client, server: '127.0.0.1:8304', protocol: '0.6+ddnet' })];
const named = (session, name) => line('message', session, 3, { dir: 'c2s', name: 'cl_start_info', system: false, vital: true, seq: 1, size: 20,
    fields: { name, clan: '' } });
const mismatch = (session) => line('finding', session, 4, { dir: 's2c', id: 'snapshot.crc_mismatch', severity: 'error', tick: 70, crc_wanted: 1, crc_got: 2 });

/** Publishes lines under a server's name. */
const sender = (client) => (server, ...lines) => {
    for (const text of lines) client.publish(`twscope.${server}.${JSON.parse(text).type}`, text);
};

/** Publishes lines as one run of a server's twscope. */
const runner = (client, server) => {
    const run = randomUUID();
    let sent = 0;
    return (...lines) => {
        for (const text of lines) client.publishAs(`${run}:${sent += 1}`, `twscope.${server}.${JSON.parse(text).type}`, text);
    };
};

/** Sends these lines repeatedly until the promise is fulfilled. */
async function sending(act, promise) {
    const timer = setInterval(act, AGAIN_MS);
    try {
        return await promise;
    } finally {
        clearInterval(timer);
    }
}

/** A bus with the records of a capture as server `dm`, and a collector that shows them. */
async function begin(...args) {
    const nats = await startNats({ folder });
    const done = spawnSync(TWSCOPE, ['decode', CAPTURE, '--bus', nats.url, '--bus-name', 'dm'], { encoding: 'utf8' });
    assert.equal(done.status, 0, done.stderr);
    const port = await freePort();
    const collector = new Child('twscope', TWSCOPE, ['collect', '--bus', nats.url, '--http', `${port}`, '--state', folder, ...args]);
    await collector.waitFor(/page of all servers on port \d+: http:\S+\n/, WAIT_MS);
    const ask = (path, options) => fetch(`http://127.0.0.1:${port}${path}`, options);
    const state = async () => (await ask('/api/state')).json();
    await waitUntil('the capture\'s records', async () => (await state()).servers.some(({ records }) => records > 100), WAIT_MS);
    const client = await NatsClient.connect(nats.port);
    return { nats, collector, port, ask, state, client, send: sender(client) };
}

test('the API has the servers, players and findings of a stream', async () => {
    const { nats, collector, ask, state, client, send } = await begin('--http-server-page', 'http://{server}.example.org:9303/');
    send('ctf-1', ...opens(1, '10.0.0.1:5000'), named(1, 'anna'), ...opens(2, '10.0.0.2:5000'), mismatch(1));
    await waitUntil('its findings', async () => (await state()).servers[0].findings === 1, WAIT_MS);
    const shown = await state();
    const validate = new Ajv({ strict: false }).compile({ $ref: '#/components/schemas/State', components: SPEC.components });
    assert.ok(validate(shown), JSON.stringify(validate.errors?.slice(0, 3)));
    const [ctf, dm] = shown.servers;
    assert.deepEqual([ctf.name, ctf.players, ctf.findings, ctf.records, ctf.page, ctf.silent],
        ['ctf-1', 2, 1, 6, 'http://ctf-1.example.org:9303/', false]);
    assert.equal(ctf.last_ms, Date.parse(`${MINUTE}:04Z`));
    assert.deepEqual([dm.name, dm.players], ['dm', 0]); // all sessions of the server have ended
    assert.deepEqual(shown.sessions.map(({ server_name: server, number, name, client }) => [server, number, name, client]),
        [['ctf-1', 1, 'anna', '10.0.0.1:5000'], ['ctf-1', 2, '', '10.0.0.2:5000']]);
    assert.match(shown.recent.at(-1).text, /^error snapshot\.crc_mismatch: ctf-1, session 1, tick 70/);
    assert.equal(shown.stream.name, 'twscope');
    assert.equal(shown.stream.trouble, '');

    const metrics = await (await ask('/metrics')).text();
    assert.match(metrics, /^twscope_collect_server_records_total\{server="ctf-1"\} 6$/m);
    assert.match(metrics, /^twscope_collect_server_findings_total\{server="ctf-1"\} 1$/m);
    assert.match(metrics, /^twscope_collect_server_sessions\{server="ctf-1"\} 2$/m);
    assert.match(metrics, /^twscope_collect_connected 1$/m);
    assert.doesNotMatch(metrics, /datagrams_total/);
    const put = await ask('/api/impairment', { method: 'PUT', body: 'none', headers: { 'Content-Type': 'text/plain',
        Authorization: `Bearer ${readFileSync(join(folder, 'http.token'), 'utf8').trim()}` } });
    assert.equal(put.status, 400);
    assert.match(await put.text(), /nothing is forwarded here/);
    for (const path of ['/api/world', '/api/map?session=1', '/api/explain?session=1&tick=70']) assert.equal((await ask(path)).status, 404, path);
    const sent = line('map', 1, 9, { name: 'ctf1' });
    const records = await sending(() => send('late', sent), ask('/api/records?wait=3&filter=map%20and%20server_name%20%3D%3D%20late'));
    const text = await records.text();
    assert.deepEqual(JSON.parse(text.split('\n')[0]), { ...JSON.parse(sent), server_name: 'late' });

    // Another program that may publish uses a server name that twscope would never use.
    send('@evil/","type":"x', ...opens(1, '10.0.0.3:5000'));
    const other = async () => (await state()).servers.find(({ name }) => name === 'other');
    await waitUntil('the one with the odd name', other, WAIT_MS);
    assert.equal((await other()).page, 'http://other.example.org:9303/');
    assert.equal((await state()).servers.length, 4); // the fourth server is `late`

    // Threads open sessions in any order, and a killed twscope leaves no open sessions behind.
    const open = async () => (await state()).sessions.filter(({ server_name: server }) => server === 'killed').map(({ number }) => number).join();
    const killed = runner(client, 'killed');
    killed(...opens(3, '10.0.0.3:5000'), ...opens(2, '10.0.0.2:5000'));
    await waitUntil('both to be shown', async () => await open() === '2,3', WAIT_MS);
    runner(client, 'killed')(...opens(5, '10.0.0.2:5000'));
    await waitUntil('those of the new run alone', async () => await open() === '5', WAIT_MS);

    assert.equal((await ask('/readyz')).status, 200);
    await nats.kill();
    await waitUntil('the bus to be missed', async () => (await ask('/readyz')).status === 503, WAIT_MS);
    assert.match((await state()).stream.trouble, /\S/);
    assert.equal((await ask('/healthz')).status, 200);
    assert.equal(await collector.stop('SIGINT'), 0, collector.log);
});

test('the page has a table of servers with links to their games, findings and the log', async () => {
    const { nats, collector, port, send } = await begin('--http-server-page', 'ctf-1=http://ctf-1.example.org:9303/');
    send('ctf-1', ...opens(1, '10.0.0.1:5000'), named(1, '<img src=x onerror=alert(1)>'), mismatch(1));
    send('race', ...opens(1, '10.0.0.9:5000'), named(1, 'cleo'));
    const page = await openPage(browser, `http://127.0.0.1:${port}/`);
    const row = (server) => page.locator('table.servers tbody tr', { hasText: server });
    await row('race').waitFor();
    assert.match(await row('ctf-1').innerText(), /ctf-1\s+answers\s+1\s+1\s+1\s/);
    assert.equal(await row('ctf-1').getByRole('link').getAttribute('href'), 'http://ctf-1.example.org:9303/');
    assert.equal(await page.locator('#game').isVisible(), false);
    assert.deepEqual(await page.locator('#tabs button:visible').allInnerTexts(), ['sessions', 'findings', 'log']);
    const players = page.locator('#panel-sessions table').nth(1).locator('tbody tr');
    await players.nth(1).waitFor();
    assert.equal(await players.count(), 2);
    assert.match(await players.nth(0).innerText(), /<img src=x onerror=alert\(1\)>/);
    await keepPicture(page, 'collected');
    await row('race').getByRole('button').click();
    await waitUntil('the sessions of one server', async () => await players.count() === 1, WAIT_MS);
    assert.match(await players.nth(0).innerText(), /cleo/);
    await page.keyboard.press('d');
    await page.getByText('snapshot.crc_mismatch').first().waitFor();
    await page.keyboard.press('n'); // this key does nothing here
    assert.equal(await page.locator('#panel-findings').isVisible(), true);
    await page.keyboard.press('m');
    await page.locator('#filter').fill('server_name == race');
    await page.locator('#filter').press('Enter');
    const lines = page.locator('#panel-log ol.lines li', { hasText: 'Tutorial' });
    await sending(() => send('race', line('map', 1, 9, { name: 'Tutorial' })), lines.first().waitFor());
    assert.equal(await page.locator('#panel-log ol.lines li', { hasText: 'ctf-1' }).count(), 0);
    await nats.kill();
    await page.locator('#alarm', { hasText: 'No records from the bus' }).waitFor();
    assert.deepEqual(page.complaints, []);
    assert.equal(await collector.stop('SIGINT'), 0, collector.log);
});

test('an invalid flag is refused with one line', () => {
    for (const [args, complaint] of [
        [['--http-server-page', 'ftp://x', '--http', '0'], /--http-server-page ftp:\/\/x: expected/],
        [['--http-server-page', 'a b=http://x', '--http', '0'], /--http-server-page a b=http:\/\/x: expected/],
        [['--http-server-page', 'http://x', '-o', '-'], /--http-server-page has no effect without --http/],
        [['--http', 'nowhere'], /--http nowhere/],
        [[], /--http PORT/],
    ]) {
        const child = spawnSync(TWSCOPE, ['collect', '--bus', 'nats://127.0.0.1:1', ...args], { encoding: 'utf8', timeout: WAIT_MS });
        assert.equal(child.status, 2, child.stderr);
        assert.match(child.stderr, complaint);
    }
});
