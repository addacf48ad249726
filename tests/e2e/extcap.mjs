// twscope as a capture source of Wireshark: the extcap contract, and packets of a live game as tshark shows them.
//   node extcap.mjs TWSCOPE
// Covers: proxy/cli/integration_commands.cpp
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chmodSync, copyFileSync, existsSync, mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { Bot, endPeers } from './bot.mjs';
import { need } from './need.mjs';
import { Child, freePort, isBound, temporaryFolder, waitUntil } from './process.mjs';
import { TWSCOPE } from './proxy.mjs';
import { startServer } from './server.mjs';

const WAIT_MS = 30000;
const TSHARK = '/usr/bin/tshark';
const SNAPSHOTS = 25;

need(TSHARK);
after(endPeers);
const top = temporaryFolder();
const link = join(top, 'twscope');
copyFileSync(TWSCOPE, join(top, 'program'));
chmodSync(top, 0o755);
symlinkSync(join(top, 'program'), link);
const run = (...args) => spawnSync(link, args, { encoding: 'utf8' });

test('twscope answers Wireshark\'s queries under the name that Wireshark looks for', () => {
    const interfaces = run('--extcap-interfaces', '--extcap-version=4.0');
    assert.equal(interfaces.status, 0, interfaces.stderr);
    assert.match(interfaces.stdout, /^extcap \{version=\d[^}]*\}\{display=twscope\}\ninterface \{value=twscope\}\{display=[^}]+\}\n$/);
    assert.equal(run('--extcap-interface', 'twscope', '--extcap-dlts').stdout, 'dlt {number=1}{name=EN10MB}{display=Ethernet}\n');
    const config = run('--extcap-interface', 'twscope', '--extcap-config').stdout;
    for (const [number, call] of ['--server', '--listen', '--filter'].entries()) {
        assert.match(config, new RegExp(`^arg \\{number=${number}\\}\\{call=${call}\\}\\{display=[^}]+\\}\\{type=string\\}`, 'm'));
    }
    const right = run('--extcap-interface', 'twscope', '--extcap-capture-filter', 'session == 1');
    assert.deepEqual([right.status, right.stdout], [0, '']);
    const wrong = run('--extcap-interface', 'twscope', '--extcap-capture-filter', 'udp port 8303');
    assert.equal(wrong.status, 0);
    assert.notEqual(wrong.stdout, '');
    const other = run('--extcap-interface', 'eth0', '--extcap-dlts');
    assert.equal(other.status, 2);
    assert.match(other.stderr, /the only interface is twscope/);
    const more = ['--extcap-reload-option', 'server', '--debug', '--debug-file=debug.txt', '--extcap-of-tomorrow', '5', '--extcap-cleanup-postkill'];
    const said = run('--extcap-interface', 'twscope', '--extcap-config', ...more);
    assert.deepEqual([said.status, said.stdout, said.stderr], [0, config, '']);
    const gone = run('--extcap-interface', 'twscope', '--extcap-cleanup-postkill');
    assert.deepEqual([gone.status, gone.stdout, gone.stderr], [0, '', '']);
    const nonsense = run('--extcap-interface', 'twscope', '--extcap-config', '--frobnicate');
    assert.deepEqual([nonsense.status, nonsense.stdout], [2, '']);
    assert.match(nonsense.stderr, /extcap has no --frobnicate/);
    const serverless = run('--extcap-interface', 'twscope', '--capture', '--fifo', join(top, 'pipe'));
    assert.equal(serverless.status, 2);
    assert.match(serverless.stderr, /needs --fifo and --server/);
});

test('a capture prints nothing on standard error, because Wireshark would show it as an error', async () => {
    const pipe = join(temporaryFolder(), 'quiet'); // not next to the link, because tshark opens every file there
    assert.equal(spawnSync('mkfifo', [pipe]).status, 0);
    const reader = new Child('a reader', 'cat', [pipe]);
    const port = await freePort();
    const child = new Child('twscope', link, ['--capture', '--extcap-interface', 'twscope', '--fifo', pipe,
        '--server', '127.0.0.1:1', '--listen', `127.0.0.1:${port}`]);
    // If extcap ends before it opens the pipe, the reader waits for ever.
    await waitUntil('the head of the capture', () => reader.output !== '' || !child.running, WAIT_MS);
    child.signal('SIGTERM');
    assert.equal(await child.ended, 0, child.log);
    assert.equal(child.errors, '');
    assert.equal(await reader.ended, 0);
    assert.notEqual(reader.output, '');
});

/** A folder in which this tshark finds twscope and none of our other files. */
const wireshark = () => ({ ...process.env, HOME: join(top, 'home'), WIRESHARK_EXTCAP_DIR: top });

// As root, tshark searches only the system's folder.
const NOBODY = process.getuid() === 0 ? ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups'] : [];
const [SHARK, ...BEFORE] = [...NOBODY, TSHARK];

function shareFolder(folder) {
    mkdirSync(folder, { recursive: true });
    chmodSync(folder, 0o777);
}

/** Plays through tshark's interface and returns tshark's output. */
async function capture(filter) {
    const env = wireshark();
    const folder = temporaryFolder();
    const server = await startServer({ folder, port: await freePort(), map: 'dm1' });
    const port = await freePort();
    const file = join(folder, 'seen.pcapng');
    const options = { server: `127.0.0.1:${server.port}`, listen: `127.0.0.1:${port}`, ...(filter ? { filter } : {}) };
    const preferences = Object.entries(options).flatMap(([name, value]) => ['-o', `extcap.twscope.${name}:${value}`]);
    shareFolder(folder);
    const shark = new Child('tshark', SHARK, [...BEFORE, '-i', 'twscope', ...preferences, '-w', file], { env });
    await waitUntil('twscope to listen', () => isBound(port) || !shark.running, WAIT_MS);
    assert.ok(shark.running, shark.log);
    const bot = await new Bot(port, 'anna', { keep: true }).join();
    await waitUntil('play', () => bot.snapshots.length >= SNAPSHOTS, WAIT_MS);
    await bot.leave();
    const complete = () => existsSync(file) && (filter ? show(file).length > 0 : verifiedIn(file) >= SNAPSHOTS);
    await waitUntil('the packets to be there', complete, WAIT_MS);
    shark.signal('SIGINT');
    await waitUntil('tshark to end', () => !shark.running, WAIT_MS);
    await waitUntil('twscope to end', () => !isBound(port), WAIT_MS);
    await server.stop();
    return file;
}

/** Returns the number of snapshots in a capture, which may still be growing, by `decode`. */
function verifiedIn(file) {
    const { stdout } = spawnSync(TWSCOPE, ['decode', file], { encoding: 'utf8' });
    return Number(/, (\d+) verified/.exec(stdout)?.[1] ?? 0);
}

const show = (file, ...args) => {
    const said = spawnSync(TSHARK, ['-r', file, ...args], { encoding: 'utf8', env: wireshark() });
    return said.stdout.split('\n').filter(Boolean);
};

test('tshark lists twscope and shows a live game with twscope\'s comments', async () => {
    const env = wireshark();
    shareFolder(env.HOME);
    const listed = spawnSync(SHARK, [...BEFORE, '-D'], { encoding: 'utf8', env });
    assert.match(listed.stdout, /twscope \(Teeworlds and DDNet, through twscope\)/, listed.stdout + listed.stderr);

    const all = await capture();
    assert.ok(show(all).length > 2 * SNAPSHOTS);
    assert.deepEqual(show(all, '-Y', '_ws.malformed'), []);
    assert.ok(show(all, '-Y', 'frame.comment contains "established, 0.6+ddnet"').length > 0);
    const decoded = spawnSync(TWSCOPE, ['decode', all], { encoding: 'utf8' }).stdout;
    const [, snapshots, verified] = /snapshots: (\d+), (\d+) verified/.exec(decoded).map(Number);
    assert.ok(snapshots >= SNAPSHOTS && verified === snapshots, decoded);

    const some = await capture('snapshot');
    const filtered = show(some).length;
    assert.ok(filtered > 0 && filtered < show(all).length, `${filtered}`);
    assert.equal(show(some, '-Y', 'udp.srcport != 0 and frame.interface_name == "clients"').length, 0, 'snapshots come from the server');
});
