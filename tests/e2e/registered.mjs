// A public server behind twscope stays in the server list (docs/client-addresses.md). It uses the port to which players connect, on an
// address of its own, and a reverse proxy passes its requests to the master. So the master's challenge and the players come through
// twscope.
//   node registered.mjs TWSCOPE
// The master is scripted: it lists an address once a challenge that it sent there comes back from the server.
// Covers: proxy/relay/upstream.cpp
import assert from 'node:assert/strict';
import dgram from 'node:dgram';
import http from 'node:http';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { Bot, endPeers } from './bot.mjs';
import { freePort, temporaryFolder, waitUntil } from './process.mjs';
import { startProxy } from './proxy.mjs';
import { startServer } from './server.mjs';

const WAIT_MS = 20000;
const PUBLIC_ADDRESS = '127.0.0.1';
const SERVER_ADDRESS = '127.0.0.2';
const CONNLESS = Buffer.alloc(6, 0xff);
const CHALLENGE = Buffer.from([0xff, 0xff, 0xff, 0xff, ...Buffer.from('chal')]);
const TOKEN = 'a token';

after(endPeers);

/** A master server. `listed` has the entries that it sends to players, by address. */
class Master {
    listed = new Map();

    async start() {
        this.udp = dgram.createSocket('udp4');
        this.http = http.createServer((request, response) => this.answer(request, response));
        await new Promise((resolve) => this.udp.bind(0, PUBLIC_ADDRESS, resolve));
        await listen(this.http, PUBLIC_ADDRESS);
        return this;
    }

    get url() { return `http://${PUBLIC_ADDRESS}:${this.http.address().port}/register`; }

    async answer(request, response) {
        let body = '';
        for await (const chunk of request) body += chunk;
        const { address, action, 'challenge-secret': secret, 'challenge-token': token } = request.headers;
        const reached = new URL(address.replace('connecting-address.invalid', request.socket.remoteAddress));
        let status = 'success';
        if (action === 'delete') {
            this.listed.delete(reached.href);
        } else if (token !== TOKEN) {
            status = 'need_challenge';
            this.udp.send(Buffer.concat([CONNLESS, CHALLENGE, Buffer.from(`${secret}\0${TOKEN}\0`)]), reached.port, reached.hostname);
        } else if (body) {
            this.listed.set(reached.href, JSON.parse(body));
        } else if (!this.listed.has(reached.href)) {
            status = 'need_info';
        }
        response.setHeader('content-type', 'application/json');
        response.end(JSON.stringify({ status }));
    }

    stop() {
        this.udp.close();
        closeNow(this.http);
    }
}

const listen = (server, address) => new Promise((resolve) => server.listen(0, address, resolve));

function closeNow(server) {
    server.closeAllConnections();
    server.close();
}

/** Passes requests to the master, from the address to which players connect. */
async function startReverseProxy(master) {
    const proxy = http.createServer((request, response) => {
        const { method, headers } = request;
        const onward = http.request(master.url, { method, headers, localAddress: PUBLIC_ADDRESS, agent: false },
            (answer) => { response.writeHead(answer.statusCode, answer.headers); answer.pipe(response); });
        request.pipe(onward);
    });
    await listen(proxy, SERVER_ADDRESS);
    return proxy;
}

async function startRegistered(folder, port, url) {
    return startServer({ folder, port, settings: [`bindaddr ${SERVER_ADDRESS}`, 'sv_name "a public server"',
        'sv_register ipv4', 'http_allow_insecure 1', `sv_register_url ${url}`] });
}

test('a server that registers directly is listed with its own address, so players bypass twscope', async () => {
    const master = await new Master().start();
    const port = await freePort();
    const server = await startRegistered(temporaryFolder(), port, master.url);
    await waitUntil('the server to be listed', () => master.listed.size > 0, WAIT_MS);
    assert.deepEqual([...master.listed.keys()], [`tw-0.6+udp://${SERVER_ADDRESS}:${port}`]);
    await server.stop();
    master.stop();
});

test('a server that registers through a reverse proxy is listed with twscope\'s address', async () => {
    const folder = temporaryFolder();
    const master = await new Master().start();
    const reverse = await startReverseProxy(master);
    const port = await freePort();
    const proxy = await startProxy({
        server: port, host: SERVER_ADDRESS, address: PUBLIC_ADDRESS, listen: port, records: join(folder, 'game.jsonl'),
    });
    const server = await startRegistered(folder, port, `http://${SERVER_ADDRESS}:${reverse.address().port}/register`);
    await waitUntil('the server to be listed', () => master.listed.size > 0, WAIT_MS);
    const address = `tw-0.6+udp://${PUBLIC_ADDRESS}:${port}`;
    assert.deepEqual([...master.listed.keys()], [address]);
    assert.equal(master.listed.get(address).name, 'a public server');

    const bot = await new Bot(port, 'anna', { keep: true }).join();
    await waitUntil('the game', () => bot.snapshots.length > 0, WAIT_MS);
    await waitUntil('the list to name the player',
        () => master.listed.get(address).clients.some(({ name }) => name === 'anna'), WAIT_MS);
    await bot.leave();

    await server.stop();
    assert.equal(master.listed.size, 0, 'a server that ends takes itself off the list');
    assert.equal(await proxy.drain(), 0);
    assert.ok(proxy.records().some(({ type, ok }) => type === 'snapshot' && ok));
    closeNow(reverse);
    master.stop();
});
