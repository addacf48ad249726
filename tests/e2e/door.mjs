// The door in a crowd: forged senders at the full rate of one core, while players play and others come.
//   node door.mjs CROWD_FLOOD TWSCOPE            a few seconds, in every test run
//   SECONDS=60 node door.mjs CROWD_FLOOD TWSCOPE by hand; KIND=mixed|connect|rhythm SOURCES=100000
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { endPeers } from './bot.mjs';
import { asRoot, Host } from './namespaces.mjs';
import { Child, temporaryFolder } from './process.mjs';
import { startProxy } from './proxy.mjs';
import { startServer } from './server.mjs';

const FLOOD = process.argv.at(-2);
const SECONDS = Number(process.env.SECONDS ?? 6);
const SOURCES = process.env.SOURCES ?? '100000';
const KIND = process.env.KIND ?? 'mixed';
const PLAYERS = 4;
const NEWCOMERS = Math.max(3, Math.floor(SECONDS / 6));
const WAIT_MS = 30000;
const LONGEST_JOIN_MS = 3000; // 2 s, and what a busy machine adds
const START_MS = 5000; // of a script
const PORTS_ASKING = 64; // as many sessions as an address may have

asRoot();
after(endPeers);
const folder = temporaryFolder();
const memoryOf = (pid) => Number(readFileSync(`/proc/${pid}/status`, 'utf8').match(/VmRSS:\s+(\d+)/)[1]) / 1024;
const bytesOn = (host, device, way) => JSON.parse(host.run('ip', '-s', '-j', 'link', 'show', device))[0].stats64[way].bytes;

test('a crowd of forged senders takes nothing from players, keeps nobody out, and is not in the records', async (t) => {
    const [strangers, players, middle] = await Promise.all(['strangers', 'players', 'the proxy'].map(Host.create));
    strangers.join(middle, 'crowd', ['10.1.0.2/16'], ['10.1.0.1/16']);
    players.join(middle, 'game', ['10.2.0.2/16'], ['10.2.0.1/16']);
    middle.run('ip', 'route', 'add', '10.64.0.0/10', 'via', '10.1.0.2'); // where answers to forged addresses go
    const server = await startServer({ folder, port: 8304, namespace: middle.pid });
    const proxy = await startProxy({ server: 8304, address: '0.0.0.0', listen: 8303, records: join(folder, 'records.jsonl'),
        args: ['--items', 'none'], namespace: middle.pid });
    const script = fileURLToPath(new URL('door_players.mjs', import.meta.url));
    const game = new Child('the players', process.execPath, [script, '10.2.0.1', '8303', '10.2.0.2', `${PLAYERS}`,
        `${NEWCOMERS}`, `${SECONDS}`], { namespace: players.pid });
    await game.waitFor(/playing/, WAIT_MS);
    const { pid } = proxy.child.process;
    const [memory, received, sent] = [memoryOf(pid), bytesOn(middle, 'crowd', 'rx'), bytesOn(middle, 'crowd', 'tx')];
    const flood = new Child('the crowd', FLOOD, ['10.1.0.1', '8303', `${SECONDS + 2}`, SOURCES, KIND], { namespace: strangers.pid });
    game.signal('SIGUSR2');
    await game.waitFor(/\}\n/, WAIT_MS + SECONDS * 1000 + NEWCOMERS * 20000);
    const grown = memoryOf(pid) - memory;
    const amplified = (bytesOn(middle, 'crowd', 'tx') - sent) / (bytesOn(middle, 'crowd', 'rx') - received);
    const result = JSON.parse(game.output.match(/\{.*\}/)[0]);
    await flood.ended;
    t.diagnostic(JSON.stringify({ ...result, grown_mib: grown, amplified, flood: flood.output.trim() }));
    assert.equal(result.online, PLAYERS);
    assert.ok(result.joins.every((ms) => ms !== null && ms < LONGEST_JOIN_MS), `newcomers took ${result.joins} ms`);
    assert.ok(amplified < 1, `${amplified} bytes for each one that came`);
    assert.ok(grown < 32, `${grown} MiB more`);
    assert.match(proxy.child.log, /datagrams rejected at the door/);
    assert.equal(await proxy.drain(), 0);
    const clients = new Set(proxy.records().filter(({ type }) => type === 'session').map(({ client }) => client.split(':')[0]));
    assert.deepEqual([...clients], ['10.2.0.2']);
    await server.stop();
    for (const host of [strangers, players, middle]) await host.stop();
});

test('who asks for info in the name of an address does not keep its players out', async () => {
    const [players, middle] = await Promise.all(['players', 'the proxy'].map(Host.create));
    players.join(middle, 'game', ['10.2.0.2/16'], ['10.2.0.1/16']);
    const server = await startServer({ folder, port: 8304, namespace: middle.pid });
    const proxy = await startProxy({ server: 8304, address: '0.0.0.0', listen: 8303, records: join(folder, 'asked.jsonl'),
        args: ['--items', 'none'], namespace: middle.pid });
    const run = (name, ...args) => new Child(name, process.execPath,
        [fileURLToPath(new URL(name, import.meta.url)), '10.2.0.1', '8303', '10.2.0.2', ...args], { namespace: players.pid });
    const asking = run('asking.mjs', `${PORTS_ASKING}`, `${PORTS_ASKING}`); // each once a second: its session lives for two
    await asking.waitFor(/asking/, WAIT_MS);
    const player = run('crowd.mjs');
    await player.waitFor(/all in the game/, LONGEST_JOIN_MS + START_MS);
    assert.equal(await player.stop(), 0);
    await asking.stop();
    assert.equal(await proxy.drain(), 0);
    await server.stop();
    for (const host of [players, middle]) await host.stop();
});
