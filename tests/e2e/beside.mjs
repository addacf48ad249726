// A tap beside the path: what it records of traffic that the kernel forwards, over every kind of link, what it reports about missed
// frames, and which rights it needs.
//   node beside.mjs TWSCOPE
// TW_TAP_PLAYERS: number of players for the comparison of a tap with a proxy (8).
// Covers: proxy/capture/live_capture.cpp, proxy/process/tap_run.cpp, proxy/process/supervisor.cpp
// Covers: proxy/cli/live_commands.cpp, proxy/cli/proxy_flags.cpp, proxy/cli/run_flags.cpp
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { endPeers } from './bot.mjs';
import { asRoot, Host } from './namespaces.mjs';
import { need } from './need.mjs';
import { Child, temporaryFolder, waitUntil } from './process.mjs';
import { datagramsOf } from './pcap_player.mjs';
import { isFreeze, readRecords, startProxy, TWSCOPE } from './proxy.mjs';
import { MAPS, startServer } from './server.mjs';

const TCPDUMP = '/usr/bin/tcpdump';
const GOLDEN = fileURLToPath(new URL('../data/golden/', import.meta.url));
const CROWD = fileURLToPath(new URL('crowd.mjs', import.meta.url));
const PLAYER = fileURLToPath(new URL('pcap_player.mjs', import.meta.url));
const WAIT_MS = 30000;
const PORT = 8303;
const PLAYERS = Number(process.env.TW_TAP_PLAYERS ?? 8);
const JOIN_MS = WAIT_MS + 2000 * PLAYERS;
/** The reader is stopped until this many bytes were recorded, so that the smallest buffer for frames overflows. */
const STALL_BYTES = 600_000 * PLAYERS;
/** Within this time of a goodbye, one observer may see a datagram before it and the other after it. */
const GOODBYE_MS = 200;
const CAP_NET_RAW = 1n << 13n;

// Sends to a port without a listener.
const SAY = 'import socket,sys;f=socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET;'
    + 'socket.socket(f,socket.SOCK_DGRAM).sendto(sys.argv[2].encode(),(sys.argv[1],9))';
// Sends the frames of a capture (Ethernet) over a cable, each with a tag after its addresses.
const TAG = `
import socket, struct, sys
device, capture, tag = sys.argv[1], open(sys.argv[2], 'rb').read(), bytes.fromhex(sys.argv[3])
cable = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
cable.bind((device, 0))
at = 24
while at < len(capture):
    size, = struct.unpack_from('<I', capture, at + 8)
    frame = capture[at + 16:at + 16 + size]
    at += 16 + size
    cable.send(frame[:12] + tag + frame[12:])
`;

need(TCPDUMP, '/usr/bin/python3', '/usr/bin/setpriv');
asRoot();
after(endPeers);
const folder = temporaryFolder();
let files = 0;
const fresh = (name) => join(folder, `${files += 1}-${name}`);

/** A tap on a host's interface, and tcpdump beside it, which sees the same frames. */
class Watched {
    static async start(host, device, args = [], { dump = true } = {}) {
        const watched = new Watched();
        watched.records = fresh('tap.jsonl');
        watched.capture = fresh('dump.pcap');
        watched.tap = new Child('twscope tap', TWSCOPE, ['tap', '-i', device, '-o', watched.records, '--maps', MAPS, '--items', 'raw',
            ...args], { namespace: host.pid });
        await watched.tap.waitFor(/observing /, WAIT_MS);
        if (dump) {
            watched.dump = new Child('tcpdump', TCPDUMP, ['-i', device, '-U', '-B', '16384', '-s', '2048', '--immediate-mode', '-Z', 'root',
                '--time-stamp-precision=nano', '-w', watched.capture, ...(device === 'any' ? ['-y', 'LINUX_SLL2'] : [])],
            { namespace: host.pid });
            await watched.dump.waitFor(/listening on/, WAIT_MS);
        }
        return watched;
    }

    /** Waits until the last frame is in the file: sends a text from one host to the other. */
    async passed(from, address) {
        const word = `the end of ${this.capture}`;
        from.run('python3', '-c', SAY, address, word);
        await waitUntil('the end of the traffic', () => readFileSync(this.capture).includes(word), WAIT_MS);
    }

    /** Ends both. Returns the tap's records, and what `decode` reads from tcpdump's file. */
    async stop(args = []) {
        if (this.dump) await this.dump.stop('SIGINT');
        this.status = await this.tap.stop('SIGINT');
        const live = readRecords(this.records);
        if (!this.dump) return { live };
        const file = fresh('decoded.jsonl');
        const child = new Child('twscope decode', TWSCOPE, ['decode', this.capture, '-o', file, '--maps', MAPS, '--items', 'raw', ...args]);
        assert.equal(await child.ended, 0, child.log);
        // Without servers, `decode` treats all traffic of a file as games, also our last text.
        const decoded = readRecords(file);
        const words = decoded.filter(({ server }) => server?.endsWith(':9')).map(({ session }) => session);
        return { live, decoded: decoded.filter(({ session }) => !words.includes(session)) };
    }
}

// These keys depend on the end of the run or on the observer's clock, not on the traffic.
const comparable = ({ t, ...record }) => JSON.stringify(record.type === 'session' && record.event === 'close'
    ? { ...record, reason: '' } : record);
// Sorts the closing records by session number; the run's totals are last.
const ofTraffic = (records) => records.filter(({ type, session }) => type !== 'finding' && (type !== 'summary' || session !== 0))
    .map(comparable);
// In a flood of findings, a live run writes one each second.
const findingsOf = (records) => [...new Set(records.filter((record) => record.type === 'finding' && !record.left_out && !isFreeze(record))
    .map(({ session, id }) => `${session} ${id}`))].sort();

function assertSame({ live, decoded }, least) {
    const [left, right] = [ofTraffic(live), ofTraffic(decoded)];
    const at = left.findIndex((line, index) => line !== right[index]);
    assert.equal(left[at], right[at], `record ${at} of ${left.length} and ${right.length}`);
    assert.equal(left.length, right.length);
    assert.deepEqual(findingsOf(live), findingsOf(decoded));
    const snapshots = live.filter(({ type }) => type === 'snapshot');
    assert.ok(snapshots.length >= least, `${snapshots.length} snapshots`);
    assert.deepEqual(snapshots.filter(({ ok }) => !ok), []);
}

/** Players, a router that forwards, and a server; `mtu`: of the cables. */
async function network({ players: ours, servers: theirs, mtu, near, far }) {
    const hosts = await Promise.all(['the players', 'the router', 'the server'].map(Host.create));
    const [players, router, server] = hosts;
    const v6 = theirs.includes(':');
    const mask = v6 ? 64 : 24;
    const all = ['-q', '-w', 'net.ipv4.ip_forward=1', 'net.ipv6.conf.all.forwarding=1', 'net.ipv6.conf.all.accept_dad=0',
        'net.ipv6.conf.default.accept_dad=0'];
    for (const host of hosts) host.run('sysctl', ...all);
    players.join(router, 'front', ours.map((address) => `${address}/${mask}`), [`${near}/${mask}`]);
    router.join(server, 'back', [`${far}/${mask}`], [`${theirs}/${mask}`]);
    const family = v6 ? ['-6'] : [];
    players.run('ip', ...family, 'route', 'add', 'default', 'via', near);
    server.run('ip', ...family, 'route', 'add', 'default', 'via', far);
    const ends = [[players, 'front'], [router, 'front'], [router, 'back'], [server, 'back']];
    if (mtu) for (const [host, device] of ends) host.run('ip', 'link', 'set', device, 'mtu', `${mtu}`);
    return { players, router, server, stop: () => Promise.all(hosts.map((host) => host.stop())) };
}

const FOUR = { players: Array.from({ length: 4 }, (_, index) => `10.77.1.${index + 2}`), near: '10.77.1.1', far: '10.77.2.1',
    servers: '10.77.2.2' };
const SIX = { players: ['fd00:1::2'], near: 'fd00:1::1', far: 'fd00:2::1', servers: 'fd00:2::2' };

/** Replays a captured game between two hosts. */
async function playCapture(from, to, address, capture, { rounds = 1, port = PORT } = {}) {
    const side = (role, host) => new Child(`the ${role}'s side`, process.execPath,
        [PLAYER, role, join(GOLDEN, capture), address, `${port}`, `${rounds}`], { namespace: host.pid });
    const server = side('server', to);
    await server.waitFor(/waiting/, WAIT_MS);
    const client = side('client', from);
    for (const child of [server, client]) {
        await child.waitFor(/played/, WAIT_MS);
        assert.equal(await child.ended, 0, child.log);
    }
}

test('a real server and players behind a router: the records are those of a capture of the same traffic', async () => {
    const net = await network(FOUR);
    const server = await startServer({ folder, port: PORT, namespace: net.server.pid, settings: [`bindaddr ${FOUR.servers}`] });
    const watched = await Watched.start(net.router, 'front', ['--server', `:${PORT}`, '--items', 'all']);
    const crowd = new Child('the players', process.execPath, [CROWD, FOUR.servers, `${PORT}`, ...FOUR.players],
        { namespace: net.players.pid });
    await crowd.waitFor(/all in the game/, WAIT_MS);
    const seen = () => readRecords(watched.records).filter(({ type }) => type === 'snapshot').length;
    await waitUntil('snapshots', () => seen() > 200, WAIT_MS);
    assert.equal(await crowd.stop(), 0);
    await server.stop();
    await watched.passed(net.players, FOUR.servers);
    const both = await watched.stop(['--server', `:${PORT}`, '--items', 'all']);
    assert.equal(watched.status, 0, watched.tap.log);
    assertSame(both, 200);
    const opened = both.live.filter(({ type, event }) => type === 'session' && event === 'open');
    assert.deepEqual(opened.map(({ client }) => client.split(':')[0]).sort(), FOUR.players);
    for (const { server: where } of opened) assert.equal(where, `${FOUR.servers}:${PORT}`);
    await net.stop();
});

/**
 * Returns each player's traffic, by the client's address and direction, without what depends on the observer or the time. Returns lines
 * and a digest of each client, because the text for 64 players is longer than a string may be.
 */
function gamesOf(file) {
    const clients = new Map();
    const found = { games: new Map(), gone: new Map(), records: 0, snapshots: 0, unverified: 0, findings: [] };
    const text = readFileSync(file);
    for (let at = 0, end = 0; (end = text.indexOf('\n', at)) >= 0; at = end + 1) {
        const { t, session, ...record } = JSON.parse(text.subarray(at, end).toString());
        if (record.type === 'session' && record.event === 'open') clients.set(session, record.client);
        if (record.type === 'session' && record.event === 'close') found.gone.set(clients.get(session), Date.parse(t));
        if (record.type === 'finding') found.findings.push({ session, ...record });
        if (record.type === 'summary' && session === 0) found.total = record;
        if (record.type === 'snapshot') {
            found.snapshots += 1;
            found.unverified += record.ok ? 0 : 1;
        }
        if (!clients.has(session) || !['snapshot', 'message', 'map'].includes(record.type)) continue;
        const key = `${clients.get(session)} ${record.type === 'message' ? record.dir : record.type}`;
        if (!found.games.has(key)) found.games.set(key, []);
        found.games.get(key).push({ time: Date.parse(t), digest: createHash('sha1').update(JSON.stringify(record)).digest('hex') });
        found.records += 1;
    }
    return { ...found, clients: [...new Set(clients.values())].sort() };
}

/** Returns the number of records of a game that every observer must have: those before the client's goodbye. */
function sureOf({ games, gone }, key) {
    const [client, kind] = key.split(' ');
    const records = games.get(key);
    return kind === 'c2s' ? records.length : records.filter(({ time }) => time < gone.get(client) - GOODBYE_MS).length;
}

test(`${PLAYERS} players, a router and a proxy: the tap records what the proxy records; one with too little room says what it missed`, async () => {
    const players = Array.from({ length: PLAYERS }, (_, index) => `10.77.1.${index + 2}`);
    const net = await network({ ...FOUR, players });
    const server = await startServer({ folder, port: PORT + 1, namespace: net.server.pid });
    const looks = ['--items', 'changed'];
    const proxy = await startProxy({ server: PORT + 1, address: FOUR.servers, listen: PORT, records: fresh('proxy.jsonl'),
        namespace: net.server.pid, args: ['--maps', MAPS, '--items', 'raw', '--no-admission', ...looks] });
    const watch = (...args) => Watched.start(net.router, 'front', ['--server', `:${PORT}`, ...looks, ...args], { dump: false });
    const [whole, small] = [await watch(), await watch('--buffer', '1')];
    const crowd = new Child('the players', process.execPath, [CROWD, FOUR.servers, `${PORT}`, ...players], { namespace: net.players.pid });
    await crowd.waitFor(/all in the game/, JOIN_MS);
    small.tap.signal('SIGSTOP');
    const about = (watched) => statSync(watched.records).size;
    const before = about(whole);
    await waitUntil('more than finds room', () => about(whole) > before + STALL_BYTES, JOIN_MS);
    small.tap.signal('SIGCONT');
    await small.tap.waitFor(/the kernel dropped \d+ frames?: its buffer was full/, WAIT_MS);
    const then = about(small);
    await waitUntil('more games', () => about(small) > then + STALL_BYTES / 4, WAIT_MS);
    assert.equal(await crowd.stop(), 0, crowd.log);
    assert.equal(await proxy.drain(), 0, proxy.child.log);
    await server.stop();
    for (const each of [whole, small]) {
        assert.equal(await each.tap.stop('SIGINT'), 0, each.tap.log);
    }

    const [ours, theirs, less] = [proxy.file, whole.records, small.records].map(gamesOf);
    assert.equal(ours.clients.length, PLAYERS);
    assert.deepEqual(theirs.clients, ours.clients);
    assert.deepEqual([...theirs.games.keys()].sort(), [...ours.games.keys()].sort());
    for (const [key, records] of ours.games) {
        const others = theirs.games.get(key);
        const sure = Math.min(sureOf(ours, key), sureOf(theirs, key));
        assert.ok(sure > 0.8 * Math.max(records.length, others.length), `${key}: ${sure} of ${records.length}, ${others.length}`);
        const at = records.slice(0, sure).findIndex(({ digest }, index) => digest !== others[index].digest);
        assert.equal(at, -1, `${key}: record ${at} of ${records.length} is another one`);
    }
    assert.equal(theirs.unverified, 0);

    const said = [...small.tap.log.matchAll(/the kernel dropped (\d+) frames?/g)].reduce((sum, [, dropped]) => sum + Number(dropped), 0);
    assert.ok(said > 0);
    assert.equal(less.total.live?.gap_lost ?? less.total.gap_lost, said);
    // Deltas with a missed base cannot be rebuilt until the next full snapshot. This is reported once, and is no error of the game.
    assert.deepEqual(less.findings.filter(({ severity }) => severity === 'error'), []);
    const blind = less.findings.filter(({ id }) => id === 'snapshot.unknown_base').map(({ session }) => session);
    assert.equal(new Set(blind).size, blind.length);
    assert.ok(less.snapshots < theirs.snapshots);
    console.log(`${PLAYERS} players: ${theirs.snapshots} snapshots, all verified; ${theirs.records} records as the proxy's; with 1 MiB ` +
        `${said} frames missed, ${less.snapshots} snapshots`);
    await net.stop();
});

const GAMES = readdirSync(GOLDEN).filter((name) => name.endsWith('.pcap'));
const LINKS = [
    { name: 'IPv4 in fragments, beside the router', layout: { ...FOUR, mtu: 600 }, device: 'back', at: 'router', fragments: true },
    { name: 'IPv6 in fragments, beside the router', layout: { ...SIX, mtu: 1280 }, device: 'back', at: 'router', fragments: true },
    { name: 'all interfaces of the server (cooked)', layout: FOUR, device: 'any', at: 'server' },
];
for (const { name, layout, device, at, fragments } of LINKS) {
    test(`${name}: every captured game, servers recognised by what they send`, async () => {
        const net = await network(layout);
        const watched = await Watched.start(net[at], device);
        for (const [index, game] of GAMES.entries()) {
            await playCapture(net.players, net.server, layout.servers, game, { port: PORT + 1000 + index });
        }
        await watched.passed(net.players, layout.servers);
        const both = await watched.stop();
        assert.equal(watched.status, 0, watched.tap.log);
        assertSame(both, 500);
        const servers = new Set(both.live.filter(({ event }) => event === 'open').map(({ server }) => server));
        assert.equal(servers.size, GAMES.length);
        if (fragments) {
            const seen = spawnSync(TCPDUMP, ['-nr', watched.capture, '(ip[6:2] & 0x3fff != 0) or ip6[6] = 44'], { encoding: 'utf8' });
            assert.ok(seen.stdout.split('\n').length > 10, 'there were no fragments');
        }
        await net.stop();
    });
}

for (const { name, tag } of [{ name: 'one tag', tag: '81000005' }, { name: 'a tag in a tag', tag: '88a8000681000005' }]) {
    test(`VLAN, ${name}: frames are read as those without, of the servers asked for and of no others`, async () => {
        const [players, server] = await Promise.all(['the players', 'the server'].map(Host.create));
        players.join(server, 'trunk', ['10.78.0.1/24'], ['10.78.0.2/24']);
        const capture = join(GOLDEN, 'token-map-change.pcap');
        const asked = datagramsOf(capture).find(({ toServer }) => toServer).port;
        for (const [index, port] of [asked, asked + 1].entries()) {
            const watched = await Watched.start(server, 'trunk', ['--server', `:${port}`, '--server', `10.78.0.2:${port + 1}`]);
            players.run('python3', '-c', TAG, 'trunk', capture, tag);
            await watched.passed(players, '10.78.0.2');
            const both = await watched.stop(['--server', `:${port}`]);
            assert.equal(watched.status, 0, watched.tap.log);
            assert.ok(readFileSync(watched.capture).includes(Buffer.from(tag, 'hex')), 'frames were not tagged');
            if (index === 0) assertSame(both, 100);
            else assert.deepEqual(both.live.filter(({ event }) => event === 'open'), []);
        }
        for (const host of [players, server]) await host.stop();
    });
}

test('frames that the kernel dropped are counted as a gap, and nothing false is reported afterwards', async () => {
    const host = await Host.create('the host');
    const watched = await Watched.start(host, 'lo', ['--server', ':8303', '--buffer', '1'], { dump: false });
    const play = (rounds) => playCapture(host, host, '127.0.0.1', 'seven-map-change.pcap', { rounds });
    await play(1);
    await waitUntil('the first game to be seen', () => readRecords(watched.records).some(({ type }) => type === 'snapshot'), WAIT_MS);
    // Stops the reader in the middle of sessions while ten games pass.
    watched.tap.signal('SIGSTOP');
    await play(20);
    watched.tap.signal('SIGCONT');
    await watched.tap.waitFor(/the kernel dropped \d+ frames?: its buffer was full/, WAIT_MS);
    await play(1);
    const { live } = await watched.stop();
    assert.equal(watched.status, 0, watched.tap.log);
    const gaps = live.filter(({ id, name }) => id === 'inspect.gap' && name === 'kernel_dropped');
    assert.ok(gaps.length > 0, 'no gap');
    const lost = live.findLast(({ type, session }) => type === 'summary' && session === 0).live?.gap_lost
        ?? live.findLast(({ type, session }) => type === 'summary' && session === 0).gap_lost;
    const said = [...watched.tap.log.matchAll(/the kernel dropped (\d+) frames?/g)].reduce((sum, [, count]) => sum + Number(count), 0);
    assert.ok(said > 100, watched.tap.log);
    assert.equal(lost, said);
    const bad = live.filter(({ id }) => /^snapshot\.(crc_mismatch|unknown_base|part_missing)$/.test(id ?? ''));
    assert.deepEqual(bad, []);
    const last = live.filter(({ type, session }) => type === 'snapshot' && session === Math.max(...live.map(({ session: s }) => s ?? 0)));
    assert.ok(last.length > 50 && last.every(({ ok }) => ok), 'the last game was not verified');
    await host.stop();
});

test('a tap drops its rights after opening, and its reading thread is confined', async () => {
    const host = await Host.create('the host');
    const watched = await Watched.start(host, 'lo', [], { dump: false });
    const pid = watched.tap.process.pid;
    const { stdout } = spawnSync('pgrep', ['-P', `${pid}`], { encoding: 'utf8' });
    const tree = [pid, ...stdout.split('\n').filter(Boolean).map(Number)];
    const states = tree.flatMap((each) => readdirSync(`/proc/${each}/task`)
        .map((task) => readFileSync(`/proc/${each}/task/${task}/status`, 'utf8')));
    const field = (state, name) => new RegExp(`^${name}:\\s+(\\S+)`, 'm').exec(state)[1];
    assert.ok(states.length >= 4);
    for (const state of states) {
        for (const set of ['CapEff', 'CapPrm', 'CapInh', 'CapAmb']) {
            assert.equal(BigInt(`0x${field(state, set)}`) & CAP_NET_RAW, 0n, `${field(state, 'Name')}: ${set}`);
        }
        assert.equal(field(state, 'NoNewPrivs'), '1');
    }
    const filtered = states.filter((state) => field(state, 'Seccomp') === '2');
    // Counts the observer's threads and the thread that reads frames, not the parent's others.
    assert.equal(filtered.length, states.length - 1);
    await watched.stop();
    await host.stop();
});

test('without the right, a tap prints one line with advice; flags that a tap does not have are refused', async () => {
    const host = await Host.create('the host');
    const run = (command, ...args) => spawnSync('nsenter', ['-t', `${host.pid}`, '-n', command, ...args], { encoding: 'utf8' });
    const without = run('setpriv', '--bounding-set', '-net_raw', '--inh-caps', '-net_raw', TWSCOPE, 'tap', '-i', 'lo');
    assert.equal(without.status, 2);
    assert.match(without.stderr, /^twscope: no permission to capture on lo[^\n]*setcap cap_net_raw[^\n]*AmbientCapabilities=CAP_NET_RAW[^\n]*\n$/);
    const nowhere = run(TWSCOPE, 'tap', '-i', 'game9');
    assert.equal(nowhere.status, 4);
    assert.match(nowhere.stderr, /^twscope: no interface game9 \(available: [^\n]*lo[^\n]*\)\n$/);
    const resync = run(TWSCOPE, 'tap', '-i', 'lo', '--resync');
    assert.equal(resync.status, 2);
    assert.match(resync.stderr, /^twscope: tap has no --resync; proxy has [^\n]*\n$/);
    assert.match(run(TWSCOPE, 'tap', '--help').stdout, /--resync[^]*belong to proxy/);
    const nameless = run(TWSCOPE, 'tap');
    assert.equal(nameless.status, 2);
    assert.match(nameless.stderr, /-i IFACE/);
    await host.stop();
});

test('a tap ends with a message if its interface disappears', async () => {
    const host = await Host.create('the host');
    const other = await Host.create('the other');
    host.join(other, 'gone', [], []);
    const watched = await Watched.start(host, 'gone', [], { dump: false });
    host.run('ip', 'link', 'delete', 'gone');
    await waitUntil('the end', () => !watched.tap.running, WAIT_MS);
    assert.equal(watched.tap.status, 3, watched.tap.log);
    assert.match(watched.tap.log, /gone: [^]*nothing left to observe/);
    assert.ok(existsSync(watched.records));
    for (const each of [host, other]) await each.stop();
});
