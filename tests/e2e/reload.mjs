// SIGHUP reopens files and rereads the configuration, while the game goes on.
//   node reload.mjs TWSCOPE
// Covers: proxy/cli/live_commands.cpp, proxy/process/supervisor.cpp
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { Bot, endPeers, plays } from './bot.mjs';
import { Child, freePort, isBound, temporaryFolder, waitUntil } from './process.mjs';
import { readRecords, startProxy, TWSCOPE } from './proxy.mjs';
import { MAPS, startServer } from './server.mjs';

const WAIT_MS = 15000;

after(endPeers);

/** Returns how often the log has this text so far. */
const times = (proxy, pattern) => (proxy.child.errors.match(new RegExp(pattern, 'g')) ?? []).length;

async function says(proxy, pattern, count = 1) {
    await waitUntil(`the log to say ${count} times: ${pattern}`, () => times(proxy, pattern) >= count, WAIT_MS);
}

async function hangUp(proxy, count) {
    proxy.child.signal('SIGHUP');
    await says(proxy, 'configuration (reloaded|not reloaded)', count);
}

test('moved files are reopened, and no record is lost or truncated', async () => {
    const folder = temporaryFolder();
    const records = join(folder, 'game.jsonl');
    const summary = join(folder, 'summary.txt');
    const server = await startServer({ folder, port: await freePort(), map: 'ctf1' });
    const proxy = await startProxy({ server: server.port, records, args: ['--maps', MAPS, '--items', 'all', '--summary', summary,
        '--expect', 'never snapshot and not ok'] });
    const bot = await new Bot(proxy.port, 'anna', { keep: true }).join();
    await plays(bot.walk());
    for (let turn = 1; turn <= 3; turn += 1) {
        renameSync(records, `${records}.${turn}`);
        renameSync(summary, `${summary}.${turn}`);
        await hangUp(proxy, turn);
        await plays(bot);
        await waitUntil('the new file to fill', () => readRecords(records).length > 0, WAIT_MS);
    }
    await bot.leave();
    assert.equal(await proxy.drain(), 0);
    const parts = [1, 2, 3].map((turn) => `${records}.${turn}`).concat(records);
    for (const part of parts) assert.match(readFileSync(part, 'utf8'), /^\{[^]*\}\n$/);
    const all = parts.flatMap(readRecords);
    const seen = all.filter(({ type }) => type === 'snapshot').map(({ tick }) => tick);
    assert.deepEqual(seen, [...new Set(seen)].sort((a, b) => a - b));
    assert.ok(bot.snapshots.every(({ tick }) => seen.includes(tick)), 'what the client saw is there');
    assert.equal(all.at(-1).type, 'summary');
    assert.equal(readFileSync(`${summary}.3`, 'utf8'), '');
    assert.match(readFileSync(summary, 'utf8'), /never snapshot/);
    await server.stop();
});

test('settings that can change during a run change, others are named, and an invalid file changes nothing', async () => {
    const folder = temporaryFolder();
    const config = join(folder, 'game.conf');
    const write = (...lines) => writeFileSync(config, lines.map((line) => `${line}\n`).join(''));
    const token = `http-token-file = "${join(folder, 'token')}"`;
    write('log-level = "info"', 'max-sessions = 64', token);
    writeFileSync(join(folder, 'token'), 'correct-horse-battery\n');
    const server = await startServer({ folder, port: await freePort(), map: 'ctf1' });
    const proxy = await startProxy({ server: server.port, records: join(folder, 'records.jsonl'),
        args: ['--maps', MAPS, '--http', '0', '--config', config] });
    await proxy.child.waitFor(/live page on port (\d+)/, WAIT_MS); // logged by another process than the line about listening
    const [, port] = /live page on port (\d+)/.exec(proxy.child.log);
    const impairment = async () => (await fetch(`http://127.0.0.1:${port}/api/impairment`)).text();
    const put = async (token) => (await fetch(`http://127.0.0.1:${port}/api/impairment`,
        { method: 'PUT', body: 'none', headers: { 'Content-Type': 'text/plain', Authorization: `Bearer ${token}` } })).status;
    assert.equal(await put('correct-horse-battery'), 200);

    write('log-level = "debug"', 'max-sessions = 32', 'impair = "s2c:delay=10ms"', 'idle-timeout = 30', 'pseudonyms = "secret"', token);
    writeFileSync(join(folder, 'token'), 'another-horse-battery\n');
    await hangUp(proxy, 1);
    await says(proxy, 'changed, but takes effect at the next takeover or restart: idle-timeout, max-sessions');
    await says(proxy, 'changed, but takes effect at the next restart: pseudonyms');
    await says(proxy, 'the network is impaired: s2c:delay=10ms');
    await waitUntil('the page to show it', async () => await impairment() === 's2c:delay=10ms\n', WAIT_MS);
    assert.equal(await put('correct-horse-battery'), 401);
    assert.equal(await put('another-horse-battery'), 200);
    assert.equal(await impairment(), 'none\n');

    for (const [turn, broken] of ['impair = "s2c:delay=1"', 'no-such-key = 1', 'max-sessions = "many"', '= = ='].entries()) {
        write('log-level = "error"', 'impair = "c2s:loss=1%"', broken, token);
        await hangUp(proxy, turn + 2);
        assert.equal(times(proxy, 'configuration not reloaded'), turn + 1);
        assert.equal(await impairment(), 'none\n');
    }

    // A pipe without a writer in place of the file must not block twscope.
    rmSync(config);
    execFileSync('mkfifo', [config]);
    await hangUp(proxy, 6);
    assert.match(proxy.child.log, /configuration not reloaded: --config .*: No data available/);
    assert.equal(await impairment(), 'none\n');

    // A new observer starts with the settings of the run, whatever is in the file now.
    process.kill(proxy.observer(), 'SIGKILL');
    await says(proxy, 'the observer is running again');
    const bot = await new Bot(proxy.port, 'anna', { keep: true }).join();
    await plays(bot.walk());
    await bot.leave();
    assert.equal(await proxy.drain(), 3, 'an observer was lost');
    await server.stop();
});

test('a configuration that exceeds the process\'s limits changes nothing, not even the token', async () => {
    const folder = temporaryFolder();
    const [config, token] = [join(folder, 'game.conf'), join(folder, 'token')];
    const names = ['ctf', 'race'];
    const ports = await Promise.all(names.map(() => freePort()));
    const list = (key, count, value) => `${key} = [${names.slice(0, count).map((name, index) => `"${value(name, ports[index])}"`).join(', ')}]`;
    const write = (count, secret) => {
        writeFileSync(config, [list('server', count, (name, port) => `${name}=127.0.0.2:${port}`),
            list('listen', count, (name, port) => `127.0.0.1:${port}`), 'max-sessions = 100', `http-token-file = "${token}"\n`].join('\n'));
        writeFileSync(token, `${secret}\n`);
    };
    write(1, 'correct-horse-battery');
    const proxy = { child: new Child('twscope', TWSCOPE, ['proxy', '--config', config, '-o', join(folder, 'records.jsonl'), '-q', '--http', '0']) };
    await proxy.child.waitFor(/live page on port (\d+)/, WAIT_MS);
    const [, port] = /live page on port (\d+)/.exec(proxy.child.log);
    const put = async (secret) => (await fetch(`http://127.0.0.1:${port}/api/impairment`,
        { method: 'PUT', body: 'none', headers: { 'Content-Type': 'text/plain', Authorization: `Bearer ${secret}` } })).status;
    execFileSync('prlimit', ['--pid', `${proxy.child.process.pid}`, '--nofile=230:230']); // enough descriptors for one server
    write(2, 'another-horse-battery');
    await hangUp(proxy, 1);
    assert.equal(times(proxy, 'configuration not reloaded: --max-sessions 100'), 1, proxy.child.log);
    assert.equal(await put('correct-horse-battery'), 200);
    assert.equal(await put('another-horse-battery'), 401);
    assert.equal(await proxy.child.stop('SIGINT'), 0);
});

test('closing the terminal ends the run, but not after nohup', async () => {
    for (const [before, stays] of [['', false], ['nohup ', true]]) {
        const folder = temporaryFolder();
        const port = await freePort();
        const command = `echo $$ >'${folder}/pid'; exec ${before}'${TWSCOPE}' proxy -s 127.0.0.1:1 -l 127.0.0.1:${port} -q --no-inspect`
            + ` </dev/null >'${folder}/log' 2>&1`;
        const terminal = new Child('a terminal', 'script', ['-qfc', command, '/dev/null'], { cwd: folder });
        const log = () => (existsSync(join(folder, 'log')) ? readFileSync(join(folder, 'log'), 'utf8') : '');
        await waitUntil('twscope to listen', () => isBound(port) && /listening/.test(log()), WAIT_MS);
        await terminal.stop('SIGKILL');
        await waitUntil('it to hear of that', () => (stays ? /configuration reloaded/.test(log()) : !isBound(port)), WAIT_MS);
        assert.equal(/the terminal is gone/.test(log()), !stays, log());
        if (stays) {
            process.kill(Number(readFileSync(join(folder, 'pid'), 'utf8')), 'SIGTERM');
            await waitUntil('it to end', () => !isBound(port), WAIT_MS);
        }
    }
});
