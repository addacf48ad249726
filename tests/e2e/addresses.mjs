// Each client has its own address at the server: on loopback, and in a network of namespaces its real address.
//   node addresses.mjs TWSCOPE
import assert from 'node:assert/strict';
import dgram from 'node:dgram';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Bot, endPeers } from './bot.mjs';
import { asRoot, Host } from './namespaces.mjs';
import { Child, freePort, temporaryFolder, waitUntil } from './process.mjs';
import { startProxy, TWSCOPE } from './proxy.mjs';
import { startServer } from './server.mjs';

const CLIENTS = 16;
const PER_ADDRESS = 4;
const SETTINGS = [`sv_max_clients_per_ip ${PER_ADDRESS}`];
const WAIT_MS = 30000;
const SERVER_PORT = 8304;
const PROXY_PORT = 8303;

asRoot();
after(endPeers);
const folder = temporaryFolder();
let files = 0;
const records = () => join(folder, `records-${files += 1}.jsonl`);

/** Returns the addresses and ports in the server's log of the clients that entered the game. */
const entered = (server) => [...server.child.log.matchAll(/player has entered the game.*addr=<\{(\S+:\d+)\}>/g)]
    .map(([, address]) => address);
const hostOf = (address) => address.slice(0, address.lastIndexOf(':'));

test('on loopback, the server sees one address for each client address, the same in the next run', async () => {
    const server = dgram.createSocket('udp4');
    const senders = new Map();
    server.on('message', (bytes, from) => {
        senders.set(bytes.toString(), from.address);
        server.send(bytes, from.port, from.address);
    });
    await new Promise((resolve) => { server.bind(0, '127.0.0.1', resolve); });
    const state = join(folder, 'state');
    const runs = [];
    for (let run = 0; run < 2; run += 1) {
        const proxy = await startProxy({ server: server.address().port, records: records(), args: ['--state', state] });
        const clients = [];
        for (let index = 0; index < CLIENTS; index += 1) {
            for (const port of ['first', 'second']) {
                const client = dgram.createSocket('udp4');
                clients.push(client);
                await new Promise((resolve) => { client.bind(0, `127.0.1.${index + 1}`, resolve); });
                const said = `${port} of ${index}`;
                const answer = await new Promise((resolve) => {
                    client.once('message', (bytes) => resolve(bytes.toString()));
                    client.send(said, proxy.port, '127.0.0.1');
                });
                assert.equal(answer, said);
            }
        }
        for (let index = 0; index < CLIENTS; index += 1) {
            assert.equal(senders.get(`first of ${index}`), senders.get(`second of ${index}`));
        }
        assert.equal(new Set(senders.values()).size, CLIENTS);
        for (const address of senders.values()) assert.match(address, /^127\.(6[4-9]|[7-9]\d|1[01]\d|12[0-7])\.\d+\.\d+$/);
        assert.match(proxy.child.log, /each client with its own 127\.x\.y\.z address \(the server is on loopback\)/);
        assert.equal(await proxy.drain(), 0);
        for (const client of clients) client.close();
        runs.push(new Map(senders));
    }
    assert.deepEqual(runs[0], runs[1]);
    assert.equal(statSync(state).mode & 0o777, 0o700);
    assert.equal(statSync(join(state, 'addresses.key')).mode & 0o777, 0o600);
    server.close();
});

test('a server on another host gets a shared address only on explicit request', async () => {
    const args = { server: 8304, host: '192.0.2.7', records: records() };
    await assert.rejects(startProxy(args), /ended \(2\)[^]*--client-address transparent[^]*--insecure-shared/);
    await assert.rejects(startProxy({ ...args, args: ['--client-address', 'shared'] }), /ended \(2\)[^]*--insecure-shared/);
    const proxy = await startProxy({ ...args, args: ['--insecure-shared'] });
    await proxy.child.waitFor(/warning[^]*one anti-spoofing token[^]*kick players or speak as them/, 10000);
    assert.equal(await proxy.drain(), 0);
});

test('with a shared address, the server admits as many clients as it allows for one address', async () => {
    const server = await startServer({ folder, port: await freePort(), settings: SETTINGS });
    const proxy = await startProxy({ server: server.port, records: records(), args: ['--client-address', 'shared'] });
    const bots = [];
    for (let index = 0; index < PER_ADDRESS; index += 1) bots.push(await new Bot(proxy.port, `p${index}`).join());
    const refused = new Bot(proxy.port, 'one too many');
    await assert.rejects(refused.join(), /same IP/);
    assert.deepEqual(entered(server).map(hostOf), bots.map(() => '127.0.0.1'));
    assert.match(proxy.child.log, /all clients with the proxy's address \(as --client-address says\)/);
    for (const bot of bots) await bot.leave();
    refused.vanish();
    assert.equal(await proxy.drain(), 0);
    await server.stop();
});

test('with loopback addresses, limits and bans apply to a client address on every port', async () => {
    const server = await startServer({ folder, port: await freePort(), settings: ['sv_max_clients_per_ip 2'] });
    const proxy = await startProxy({ server: server.port, records: records() });
    const bot = (name, address) => new Bot(proxy.port, name, { address, options: { lightweight: true } });
    const bots = [];
    for (const address of ['127.0.1.1', '127.0.1.1', '127.0.1.2', '127.0.1.2', '127.0.1.3']) {
        bots.push(await bot(`p${bots.length}`, address).join());
    }
    const seen = entered(server).map(hostOf);
    assert.equal(seen[0], seen[1]);
    assert.equal(seen[2], seen[3]);
    assert.equal(new Set(seen).size, 3);
    const third = bot('one too many', '127.0.1.1');
    await assert.rejects(third.join(), /same IP/);
    third.vanish();
    await server.command(`ban ${seen[0]} 5 cheating`);
    await waitUntil('the banned to be thrown out', () => !bots[0].online && !bots[1].online, WAIT_MS);
    for (let port = 0; port < 3; port += 1) {
        const again = bot('again', '127.0.1.1');
        await assert.rejects(again.join(), /cheating|banned/i);
        again.vanish();
    }
    assert.ok(bots.slice(2).every((each) => each.online));
    bots.push(await bot('new', '127.0.1.3').join());
    for (const each of bots.slice(2)) await each.leave();
    assert.equal(await proxy.drain(), 0);
    await server.stop();
});

const LAYOUTS = [
    { name: 'a server elsewhere', serverAddress: '10.77.2.2', elsewhere: true },
    { name: 'a server beside the proxy', serverAddress: '127.0.0.1', elsewhere: false },
];
for (const { name, serverAddress, elsewhere } of LAYOUTS) {
    test(`transparent: ${name} sees each client's real address and port`, async () => {
        const addresses = Array.from({ length: CLIENTS }, (_, index) => `10.77.1.${index + 2}`);
        const [players, middle, far] = await Promise.all(['players', 'the proxy', 'the server'].map(Host.create));
        const hosts = [players, middle, far];
        players.join(middle, 'front', addresses.map((address) => `${address}/24`), ['10.77.1.1/24']);
        middle.join(far, 'back', ['10.77.2.1/24'], ['10.77.2.2/24']);
        far.run('ip', 'route', 'add', '10.77.1.0/24', 'via', '10.77.2.1');
        // Runs the commands that twscope prints, unchanged.
        const target = ['proxy', '-s', `${serverAddress}:${SERVER_PORT}`];
        middle.run('sh', '-ec', middle.run(TWSCOPE, ...target, '--print-routes'));
        const server = await startServer({ folder, port: SERVER_PORT, namespace: (elsewhere ? far : middle).pid,
            settings: [...SETTINGS, `bindaddr ${serverAddress}`] });
        const proxy = await startProxy({ server: SERVER_PORT, host: serverAddress, address: '10.77.1.1', listen: PROXY_PORT,
            records: records(), args: ['--client-address', 'transparent'], namespace: middle.pid });
        const crowd = new Child('the players', process.execPath, [fileURLToPath(new URL('crowd.mjs', import.meta.url)),
            '10.77.1.1', `${PROXY_PORT}`, ...addresses], { namespace: players.pid });
        await crowd.waitFor(/all in the game/, WAIT_MS);
        const real = [...crowd.output.matchAll(/in the game: \S+ (\S+)/g)].map(([, address]) => address);
        assert.deepEqual(entered(server), real);
        assert.deepEqual(real.map(hostOf), addresses);
        assert.match(proxy.child.log, /each client's real address/);
        assert.equal(await crowd.stop(), 0);
        assert.equal(await proxy.drain(), 0);
        await server.stop();
        for (const host of hosts) await host.stop();
    });
}

// The setup of docs/client-addresses.md with a cable instead of the tunnel: the server's host has no other route to the players.
test('with a server behind a tunnel, limits and bans apply to the clients\' real addresses', async () => {
    const [players, near, far] = await Promise.all(['players', 'the proxy', 'the server'].map(Host.create));
    const [first, second] = ['10.77.1.2', '10.77.1.3'];
    players.join(near, 'front', [`${first}/24`, `${second}/24`], ['10.77.1.1/24']);
    near.join(far, 'wg-game', ['10.88.0.1/24'], ['10.88.0.2/24']);
    far.run('ip', 'rule', 'add', 'pref', '8303', 'from', '10.88.0.2', 'lookup', '8303');
    far.run('ip', 'route', 'add', 'default', 'via', '10.88.0.1', 'dev', 'wg-game', 'table', '8303');
    for (const host of [near, far]) host.run('sysctl', '-q', 'net.ipv4.conf.wg-game.rp_filter=2');
    near.run('sh', '-ec', near.run(TWSCOPE, 'proxy', '-s', '10.88.0.2:8304', '--print-routes'));
    const server = await startServer({ folder, port: SERVER_PORT, namespace: far.pid,
        settings: ['sv_max_clients_per_ip 2', 'bindaddr 10.88.0.2'] });
    const proxy = await startProxy({ server: SERVER_PORT, host: '10.88.0.2', address: '10.77.1.1', listen: PROXY_PORT,
        records: records(), args: ['--client-address', 'transparent'], namespace: near.pid });
    const crowd = (...addresses) => new Child('players', process.execPath, [fileURLToPath(new URL('crowd.mjs', import.meta.url)),
        '10.77.1.1', `${PROXY_PORT}`, ...addresses], { namespace: players.pid });
    const game = crowd(first, first, second);
    await game.waitFor(/all in the game/, WAIT_MS);
    assert.deepEqual(entered(server).map(hostOf), [first, first, second]);
    await crowd(first).waitFor(/same IP/, WAIT_MS);
    await server.command(`ban ${first} 5 cheating`);
    await server.child.waitFor(/banned/, WAIT_MS);
    await crowd(first).waitFor(/cheating|banned/i, WAIT_MS);
    const other = crowd(second);
    await other.waitFor(/all in the game/, WAIT_MS);
    await Promise.all([game, other].map((child) => child.stop()));
    assert.equal(await proxy.drain(), 0);
    await server.stop();
    for (const host of [players, near, far]) await host.stop();
});
