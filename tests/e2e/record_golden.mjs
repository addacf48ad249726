// Records the golden captures from the real server with tcpdump (as root); see tests/data/golden/README.md.
//   node record_golden.mjs [NAME...]
import dgram from 'node:dgram';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Bot } from './bot.mjs';
import { Child, delay, isBound, temporaryFolder, waitUntil } from './process.mjs';
import { SevenBot } from './seven_client.mjs';
import { startServer } from './server.mjs';
import { startTeeworlds } from './teeworlds_server.mjs';
import { TokenlessClient } from './tokenless.mjs';

const PORT = 8303;
const GOLDEN = fileURLToPath(new URL('../data/golden/', import.meta.url));
const PLAY_MS = 1500;
const WAIT_MS = 10000;

const bot = (name, seed, options) => new Bot(PORT, name, { seed, keep: true, options }).join();
const tickFalls = (snapshots, from) => snapshots.slice(from).some(({ tick }) => tick < snapshots[from - 1].tick);

async function changeMap(server, map, ...bots) {
    const seen = bots.map(({ snapshots }) => snapshots.length);
    await server.command(`change_map ${map}`);
    await waitUntil('the new map', () => bots.every(({ snapshots }, index) => tickFalls(snapshots, seen[index])), WAIT_MS);
}

/** Requests the server's info like a server browser, without a connection. */
function serverInfo() {
    return new Promise((resolve) => {
        const socket = dgram.createSocket('udp4');
        socket.on('message', () => socket.close(resolve));
        socket.send(Buffer.concat([Buffer.alloc(10, 0xff), Buffer.from('gie3\x2a')]), PORT, '127.0.0.1');
    });
}

// For each capture: its name, the server's map and settings, and what happens in it.
const SCENES = {
    'token-map-change': { map: 'dm1', async play(server) {
        const anna = (await bot('anna', 1)).walk();
        const bob = (await bot('bob', 2)).walk();
        await delay(PLAY_MS);
        anna.say('hello');
        await changeMap(server, 'ctf1', anna, bob);
        const cleo = (await bot('cleo', 3)).walk();
        await delay(PLAY_MS);
        await bob.leave();
        await delay(PLAY_MS / 2);
        await anna.leave();
        await cleo.leave();
    } },
    'token-ddnet-layers-rejoin': { map: 'Tutorial', async play() {
        await serverInfo();
        const anna = (await bot('anna', 4)).walk();
        await delay(PLAY_MS);
        await anna.stepOut();
        await delay(PLAY_MS / 5);
        (await anna.join()).walk();
        await delay(PLAY_MS);
        await anna.leave();
    } },
    'tokenless-map-change': { map: 'ctf5', settings: ['sv_vanilla_antispoof 0'], async play(server) {
        const anna = await new TokenlessClient(PORT, 'anna', 5).join();
        const bob = await new TokenlessClient(PORT, 'bob', 6).join();
        await delay(PLAY_MS);
        const seen = anna.tick;
        await server.command('change_map dm2');
        await waitUntil('the new map', () => anna.tick > 0 && anna.tick < seen, WAIT_MS);
        await bob.leave();
        await delay(PLAY_MS);
        await anna.leave();
    } },
    'token-map-download': { map: 'dm2', async play() {
        const anna = (await bot('anna', 7, { downloadMap: true })).walk();
        await delay(PLAY_MS / 2);
        await anna.leave();
    } },
    'token-high-bandwidth': { map: 'dm7', settings: ['sv_high_bandwidth 1'], async play() {
        const bots = [];
        for (const [index, name] of ['anna', 'bob', 'cleo', 'dora'].entries()) bots.push((await bot(name, 8 + index)).walk());
        await delay(PLAY_MS / 2);
        for (const one of bots) await one.leave();
    } },
    'seven-map-change': { start: startTeeworlds, map: 'dm1', async play() {
        const anna = await new SevenBot(PORT, 'anna', { seed: 12, download: true }).join();
        const bob = await new SevenBot(PORT, 'bob', { seed: 13 }).join();
        await delay(PLAY_MS / 2);
        anna.say('hello');
        anna.whisper(anna.idOf('bob'), 'between us');
        anna.authenticate('twscope');
        await waitUntil('anna to be the admin', () => anna.authed, WAIT_MS);
        const changed = Promise.all([anna.changesMap(), bob.changesMap()]);
        anna.console('change_map dm2');
        await changed;
        await delay(PLAY_MS / 2);
        await bob.leave();
        await delay(PLAY_MS / 5);
        await anna.leave();
    } },
    'seven-on-ddnet': { map: 'Tutorial', settings: ['sv_sixup 1'], async play() {
        const six = (await bot('six', 14)).walk();
        const seven = await new SevenBot(PORT, 'seven', { seed: 15 }).join();
        await delay(PLAY_MS / 2);
        seven.say('hello from 0.7');
        await delay(PLAY_MS / 2);
        await six.leave();
        await seven.leave();
    } },
};

async function record(name, { start = startServer, map, settings, play }) {
    const server = await start({ folder: temporaryFolder(), port: PORT, map, settings });
    const file = join(GOLDEN, `${name}.pcap`);
    const capture = new Child('tcpdump', 'tcpdump', ['-i', 'lo', '-n', '-U', '-Z', 'root', '-s', '0', '--immediate-mode',
        '-w', file, `udp port ${PORT}`]);
    await capture.waitFor(/listening on/, WAIT_MS);
    await play(server);
    await delay(PLAY_MS / 5); // nothing shows whether tcpdump has seen the last datagram
    await capture.stop('SIGINT');
    await server.stop();
    console.log(`${name}: ${/(\d+) packets captured/.exec(capture.errors)?.[1]} packets`);
}

if (isBound(PORT)) throw new Error(`UDP port ${PORT} is taken`);
for (const name of process.argv.length > 2 ? process.argv.slice(2) : Object.keys(SCENES)) await record(name, SCENES[name]);
process.exit(0);
