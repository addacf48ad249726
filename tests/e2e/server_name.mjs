// A server known by its name returns at another address: new players reach it there, and so do old ones that try again.
//   node server_name.mjs TWSCOPE
// Uses its own hosts file, in a mount namespace.
// Covers: proxy/process/server_names.cpp
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { Bot, endPeers, plays } from './bot.mjs';
import { asRoot } from './namespaces.mjs';
import { Child, freePort, temporaryFolder } from './process.mjs';
import { readRecords, TWSCOPE } from './proxy.mjs';
import { MAPS, startServer } from './server.mjs';

asRoot();

const WAIT_MS = 30000;

after(endPeers);

test('a server that moves to another address is found by its name by new and returning players', async () => {
    const folder = temporaryFolder();
    const hosts = join(folder, 'hosts');
    const records = join(folder, 'records.jsonl');
    const port = await freePort();
    const listen = await freePort();
    writeFileSync(hosts, '127.0.0.1 game.test localhost\n');
    const first = await startServer({ folder, port, map: 'ctf1' });
    const proxy = new Child('twscope', 'unshare', ['-m', 'sh', '-c', 'mount --bind "$0" /etc/hosts && exec "$@"', hosts,
        TWSCOPE, 'proxy', '-s', `game.test:${port}`, '-l', `127.0.0.1:${listen}`, '-o', records, '--maps', MAPS, '--http', '0']);
    await proxy.waitFor(/the server sees/, WAIT_MS);
    const anna = await new Bot(listen, 'anna', { seed: 1, keep: true }).join();
    await plays(anna.walk());
    const { port: annasPort } = anna;

    await first.child.stop('SIGKILL');
    const second = await startServer({ folder: join(folder, 'second'), port, map: 'ctf1', settings: ['bindaddr 127.0.0.2'] });
    writeFileSync(hosts, '127.0.0.2 game.test\n127.0.0.1 localhost\n');
    await proxy.waitFor(new RegExp(`the server game.test is now at 127.0.0.2:${port}`), WAIT_MS);

    const bob = await new Bot(listen, 'bob', { seed: 2, keep: true }).join();
    await plays(bob.walk());
    // She uses the same port as before, so her old session must be replaced.
    await anna.stepOut();
    assert.equal(anna.port, annasPort);
    await anna.join(WAIT_MS);
    await plays(anna.walk());

    const [, page] = /live page on port (\d+)/.exec(proxy.log);
    const state = await (await fetch(`http://127.0.0.1:${page}/api/state`)).json();
    assert.equal(state.server, `127.0.0.2:${port}`);
    await anna.leave();
    await bob.leave();
    assert.equal(await proxy.stop('SIGINT'), 0, proxy.log);
    const opened = readRecords(records).filter(({ type, event }) => type === 'session' && event === 'open');
    assert.deepEqual(opened.map(({ server }) => server), [1, 2, 2].map((last) => `127.0.0.${last}:${port}`));
    await second.stop();
});
