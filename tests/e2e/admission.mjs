// Admission under attack: what unverified senders can do while players play and others join (docs/limits.md).
//   node admission.mjs CROWD_FLOOD TWSCOPE            each attack for a few seconds, in every test run
//   SECONDS=60 KIND=mixed node admission.mjs CROWD_FLOOD TWSCOPE     one attack, by hand; KIND=all SOURCES=100000
import assert from 'node:assert/strict';
import dgram from 'node:dgram';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Bot, endPeers } from './bot.mjs';
import { asRoot, Host } from './namespaces.mjs';
import { Child, freePort, temporaryFolder, waitUntil } from './process.mjs';
import { startProxy } from './proxy.mjs';
import { startServer } from './server.mjs';

const FLOOD = process.argv.at(-2);
const SECONDS = Number(process.env.SECONDS ?? 5);
const SOURCES = process.env.SOURCES ?? '100000';
const KIND = process.env.KIND ?? 'all';
const PLAYERS = 4;
const BROWSERS = 40;
const NEWCOMERS = Math.max(2, Math.floor(SECONDS / 6));
const WAIT_MS = 30000;
const LONGEST_JOIN_MS = 3000; // 2 s, plus the delay of a busy machine
const SHARE_OF_SNAPSHOTS = 0.99;
const ADDRESS = '10.2.0.2'; // address of the players
const HOST = '10.2.0.1';
const PORT = '8303';
const VERIFIED = Array.from({ length: 17 }, (_, index) => `10.1.1.${index + 1}`);
const browsers = Array.from({ length: BROWSERS }, (_, index) => `10.2.1.${index + 1}`);

// The attacks: arguments of the forger, and whether it runs on the players' own host.
const ATTACKS = [
    { kind: 'mixed', forged: [SOURCES, 'mixed'] },
    { kind: 'connect', forged: [SOURCES, 'connect'] },
    { kind: 'rhythm', forged: [`${SOURCES / 2}`, 'rhythm'], byHand: true }, // cannot be distinguished from waiting players
    { kind: 'info', forged: ['1000000', 'info', '3000'], browsers: BROWSERS },
    { kind: 'info-one', forged: ['1', 'info', '1000'], browsers: BROWSERS },
    { kind: 'own-info', forged: ['1', 'info', '20000', ADDRESS], own: true },
    { kind: 'own-connect', forged: ['1', 'connect', '20000', ADDRESS], own: true },
    { kind: 'verified', browsers: BROWSERS }, // real addresses; nothing is forged
].filter(({ kind, byHand }) => (KIND === 'all' ? !byHand : kind === KIND));

asRoot();
after(endPeers);
const folder = temporaryFolder();
const memoryOf = (pid) => Number(readFileSync(`/proc/${pid}/status`, 'utf8').match(/VmRSS:\s+(\d+)/)[1]) / 1024;
const bytesOn = (host, device, way) => JSON.parse(host.run('ip', '-s', '-j', 'link', 'show', device))[0].stats64[way].bytes;
const script = (name) => fileURLToPath(new URL(name, import.meta.url));

/** Runs one attack. Returns how the players and newcomers fared. */
async function attack({ kind, forged, own }, { strangers, players, middle, proxy, game }) {
    const { pid } = proxy.child.process;
    const [memory, received, sent] = [memoryOf(pid), bytesOn(middle, 'crowd', 'rx'), bytesOn(middle, 'crowd', 'tx')];
    const flood = forged
        ? new Child(kind, FLOOD, [own ? HOST : '10.1.0.1', PORT, `${SECONDS + 2}`, ...forged], { namespace: (own ? players : strangers).pid })
        : new Child(kind, process.execPath, [script('admission_verified.mjs'), '10.1.0.1', PORT, ...VERIFIED], { namespace: strangers.pid });
    if (!forged) await flood.waitFor(/verifying/, WAIT_MS);
    const before = game.output.length;
    game.signal('SIGUSR2');
    await waitUntil(`the players to have fared (${kind})`, () => game.output.slice(before).includes('}\n'), WAIT_MS + SECONDS * 1000 + NEWCOMERS * 20000);
    const result = JSON.parse(game.output.slice(before));
    const amplified = (bytesOn(middle, 'crowd', 'tx') - sent) / (bytesOn(middle, 'crowd', 'rx') - received);
    const grown = memoryOf(pid) - memory;
    if (forged) await flood.ended; else await flood.stop();
    return { kind, ...result, grown_mib: grown, amplified, flood: flood.output.trim() };
}

test('unverified senders cost players nothing, exclude no newcomer, and are not in the records', async (t) => {
    const [strangers, players, middle] = await Promise.all(['strangers', 'players', 'the proxy'].map(Host.create));
    strangers.join(middle, 'crowd', ['10.1.0.2/16', ...VERIFIED.map((each) => `${each}/16`)], ['10.1.0.1/16']);
    players.join(middle, 'game', [`${ADDRESS}/16`, ...browsers.map((each) => `${each}/16`)], [`${HOST}/16`]);
    middle.run('ip', 'route', 'add', '10.64.0.0/10', 'via', '10.1.0.2'); // a route for answers to forged addresses
    const server = await startServer({ folder, port: 8304, namespace: middle.pid });
    const proxy = await startProxy({ server: 8304, address: '0.0.0.0', listen: 8303, records: join(folder, 'records.jsonl'),
        args: ['--items', 'none'], namespace: middle.pid });
    const game = new Child('the players', process.execPath, [script('admission_players.mjs'), HOST, PORT, ADDRESS, `${PLAYERS}`,
        `${NEWCOMERS}`, `${SECONDS}`, ...browsers], { namespace: players.pid });
    await game.waitFor(/playing.*\n/, WAIT_MS);
    t.diagnostic(game.output.trim());
    for (const each of ATTACKS) {
        const result = await attack(each, { strangers, players, middle, proxy, game });
        t.diagnostic(JSON.stringify(result));
        const { crowd, joins, online, answered } = result;
        assert.equal(online, PLAYERS, each.kind);
        assert.ok(each.byHand || joins.every((ms) => ms !== null && ms < LONGEST_JOIN_MS), `${each.kind}: newcomers took ${joins} ms`);
        assert.ok(crowd.snapshots >= crowd.expected * SHARE_OF_SNAPSHOTS - PLAYERS, `${each.kind}: ${crowd.snapshots} of ${crowd.expected} snapshots`);
        if (each.browsers) assert.equal(answered, each.browsers, `${each.kind}: browsers that were answered`);
        if (!each.own && each.forged?.[1] !== 'info') assert.ok(result.amplified < 1, `${each.kind}: ${result.amplified} bytes for each one that came`);
        assert.ok(result.grown_mib < 32, `${each.kind}: ${result.grown_mib} MiB more`);
    }
    await game.stop();
    assert.match(proxy.child.log, /datagrams rejected at the door/);
    assert.doesNotMatch(proxy.child.log, /does not answer/);
    assert.equal(await proxy.drain(), 0);
    const forged = proxy.records().filter(({ type, client }) => type === 'session' && client.startsWith('10.64.'));
    assert.deepEqual(forged, []);
    await server.stop();
    for (const host of [strangers, players, middle]) await host.stop();
});

test('a player whose NAT changes the port must reconnect, as without twscope', async () => {
    const server = await startServer({ folder, port: await freePort() });
    const proxy = await startProxy({ server: server.port, records: join(folder, 'nat.jsonl') });
    for (const port of [server.port, proxy.port]) {
        const bot = await new Bot(port, 'nat', { keep: true, options: { timeout: 3000 } }).join();
        bot.walk();
        await waitUntil('the game to go on', () => bot.snapshots.length > 25, WAIT_MS);
        bot.changePort();
        const before = bot.snapshots.length;
        await new Promise((resolve) => { bot.client.on('disconnect', resolve); });
        assert.equal(bot.snapshots.length, before, `port ${port}`);
        const again = await new Bot(port, 'again', { keep: true }).join();
        await waitUntil('the game to go on', () => again.snapshots.length > 25, WAIT_MS);
        await again.leave();
    }
    assert.equal(await proxy.drain(), 0);
    await server.stop();
});

test('a datagram with the proxy\'s own source address does not go in circles', async () => {
    const echo = dgram.createSocket('udp4'); // a server that sends everything back
    let seen = 0;
    echo.on('message', (datagram, { port, address }) => { seen += 1; echo.send(datagram, port, address); });
    await new Promise((resolve) => { echo.bind(0, '127.0.0.1', resolve); });
    const proxy = await startProxy({ server: echo.address().port, records: join(folder, 'loop.jsonl') });
    const client = dgram.createSocket('udp4');
    const forge = new Child('one forged datagram', FLOOD, ['127.0.0.1', `${proxy.port}`, '0', '1', 'loop']);
    await forge.ended;
    // A later request is answered. Otherwise the first one would have gone in circles many times by now.
    const answers = new Promise((resolve) => { client.on('message', resolve); });
    client.send(Buffer.from('\xff\xff\xff\xff\xff\xff\xff\xff\xff\xffgie3\x05', 'latin1'), proxy.port, '127.0.0.1');
    await answers;
    assert.equal(seen, 1);
    client.close();
    echo.close();
    assert.equal(await proxy.drain(), 0);
});
