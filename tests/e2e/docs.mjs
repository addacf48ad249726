// Runs every command of README.md and docs/ exactly as written, with a real server and real clients if the command needs them.
//   node docs.mjs TWSCOPE
// Runs in its own network, so that the ports and addresses of the pages are free and nothing of this machine is changed. Each page has a
// folder with the files that its commands use: the program, a capture, records, a game test.
// Covers: proxy/cli/explain_command.cpp, proxy/cli/settings.cpp
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Bot, endPeers } from './bot.mjs';
import { blocksOf, commandsOf, complaintsAbout, composeCommands, deadLinks, isProgram, missingPaths, pages, plain, read, ROOT,
    unlinkedPages } from './docs_pages.mjs';
import { Host } from './namespaces.mjs';
import { need } from './need.mjs';
import { Child, isBound, temporaryFolder, waitUntil } from './process.mjs';
import { readRecords } from './proxy.mjs';
import { MAPS, startServer } from './server.mjs';

const TWSCOPE = resolve(process.argv.at(-1));
const CAPTURE = fileURLToPath(new URL('../data/golden/token-map-change.pcap', import.meta.url));
// Flips a bit of a snapshot, so that its checksum differs.
const DAMAGED_BYTE = 24684;
const DAMAGED_BIT = 0x10;
// The traffic for pages that show faults.
const DAMAGED_PAGES = ['README.md', 'docs/crc-errors.md'];
const GAME = fileURLToPath(new URL('ci.mjs', import.meta.url));
const DUCKDB = fileURLToPath(new URL('node_modules/@duckdb/node-api', import.meta.url));
const DUCKDB_SHELL = fileURLToPath(new URL('duckdb.mjs', import.meta.url));
const PLAYERS = fileURLToPath(new URL('crowd.mjs', import.meta.url));
const SERVER_PORT = 8304;
const PROXY_PORT = 8303;
const ELSEWHERE = '192.0.2.7';
const OUR_END = '10.77.1.1';
const PLAYERS_END = '10.77.1.2';
const SNAPSHOTS = 25;
const CAPTURED_BYTES = 16384;
const WAIT_MS = 30000;

need('/usr/bin/curl', '/usr/bin/jq', '/usr/bin/zstdcat', '/usr/bin/tcpdump', '/usr/bin/unshare', DUCKDB, MAPS);

/** Starts this program again in its own network, in which it has all rights. */
function inOwnNetwork() {
    if (process.env.TW_DOCS_NETWORK) return;
    const rights = process.getuid() === 0 ? [] : ['--user', '--map-current-user', '--keep-caps'];
    const again = spawnSync('unshare', [...rights, '--net', process.execPath, ...process.argv.slice(1)],
        { stdio: 'inherit', env: { ...process.env, TW_DOCS_NETWORK: '1' } });
    process.exit(again.status ?? 1);
}

inOwnNetwork();
after(endPeers);
execFileSync('ip', ['link', 'set', 'lo', 'up']);
execFileSync('ip', ['address', 'add', `${ELSEWHERE}/32`, 'dev', 'lo']);

const top = temporaryFolder();
chmodSync(top, 0o755); // tcpdump writes as another user

function script(file, text) {
    writeFileSync(file, `#!/bin/sh\n${text}\n`);
    chmodSync(file, 0o755);
}

// The environment of a reader's machine: the program is installed, and sudo gives every right.
const bin = join(top, 'bin');
mkdirSync(bin);
symlinkSync(TWSCOPE, join(bin, 'twscope'));
symlinkSync('/usr/bin/python3', join(bin, 'python3')); // another Python does not find the modules of Debian's packages
script(join(bin, 'sudo'), 'exec "$@"');
script(join(bin, 'duckdb'), `exec node ${DUCKDB_SHELL} "$@"`);
writeFileSync(join(top, '.curlrc'), 'fail\nsilent\nshow-error\n');
const environment = { ...process.env, PATH: `${bin}:${process.env.PATH}`, HOME: top, CURL_HOME: top };

/** Returns the folder of a page, with the files that its commands use. */
function folderOf(page) {
    const folder = join(top, page.replaceAll('/', '-'));
    mkdirSync(join(folder, 'build/release/proxy'), { recursive: true });
    chmodSync(folder, 0o777);
    symlinkSync(TWSCOPE, join(folder, 'build/release/proxy/twscope'));
    symlinkSync(join(ROOT, 'docker'), join(folder, 'docker'));
    script(join(folder, 'dev'), '[ "$1" = run ] && shift && exec twscope "$@"');
    script(join(folder, 'my-game-test'), `exec node ${GAME} play`);
    const capture = readFileSync(CAPTURE);
    if (DAMAGED_PAGES.includes(page)) capture[DAMAGED_BYTE] ^= DAMAGED_BIT;
    writeFileSync(join(folder, 'traffic.pcap'), capture);
    execFileSync(TWSCOPE, ['decode', 'traffic.pcap', '--maps', MAPS, '-o', 'game.jsonl'], { cwd: folder });
    return folder;
}

/** Starts a command exactly as written on a page. */
function start(command, folder) {
    const child = new Child(command, 'bash', ['-o', 'pipefail', '-ec', command], { cwd: folder, env: environment });
    child.signal = (name) => { if (child.running) process.kill(-child.process.pid, name); };
    return child;
}

async function ended(child) {
    await waitUntil(`the end of ${child.name}`, () => !child.running, WAIT_MS);
    return child.status;
}

let server = null;

async function stopServer() {
    await server?.stop();
    server = null;
}

/** Returns the game server of a page, at this address. */
async function serverAt(address) {
    if (server?.address === address) return;
    await stopServer();
    const folder = join(top, `server-${address}`);
    server = await startServer({ folder, port: SERVER_PORT, settings: [`bindaddr ${address}`] });
    server.address = address;
}

/** A player joins, plays until `enough` returns true, and leaves. */
async function play(enough) {
    const bot = await new Bot(PROXY_PORT, 'anna', { keep: true }).join();
    bot.walk();
    await waitUntil('the game to go on', () => bot.snapshots.length >= SNAPSHOTS && (enough?.() ?? true), WAIT_MS);
    await bot.leave();
}

/** Plays from an address of another host, which the server must see. */
async function playFromElsewhere() {
    const players = await Host.create('the players');
    Object.assign(new Host(), { pid: process.pid }).join(players, 'players', [`${OUR_END}/24`], [`${PLAYERS_END}/24`]);
    const crowd = new Child('the players', process.execPath, [PLAYERS, OUR_END, `${PROXY_PORT}`, PLAYERS_END],
        { namespace: players.pid });
    await crowd.waitFor(/all in the game/, WAIT_MS);
    assert.ok(server.child.log.includes(`addr=<{${PLAYERS_END}:`), server.child.log.slice(-1000));
    assert.equal(await crowd.stop(), 0);
    await players.stop();
}

let lastProxy = null;

/** Starts twscope as the command says. First ends a process that a failed test has left there. */
async function startProxy(command, folder) {
    await lastProxy?.stop('SIGKILL');
    await serverAt(/ -s (?:[\w-]+=)?([^\s=]+):8304/.exec(plain(command))?.[1] ?? '127.0.0.1');
    const proxy = start(command, folder);
    lastProxy = proxy;
    await waitUntil('twscope to listen', () => isBound(PROXY_PORT) || !proxy.running, WAIT_MS);
    assert.ok(proxy.running, proxy.log);
    return proxy;
}

async function stopProxy(proxy, exits = 0) {
    proxy.signal('SIGINT');
    assert.equal(await ended(proxy), exits, proxy.log);
}

/** Plays through a proxy and ends it. The proxy must have written its files. */
async function runProxy(command, folder, exits) {
    const proxy = await startProxy(command, folder);
    await (/ transparent\b/.test(command) ? playFromElsewhere() : play());
    await stopProxy(proxy, exits);
    assert.match(proxy.log, /[1-9]\d* verified/);
    const [, file] = / (?:-o|--output) (\S+)/.exec(plain(command)) ?? [];
    if (!file) return;
    const records = /\/$|\.zst$/.test(file)
        ? execFileSync(TWSCOPE, ['records', join(folder, file)], { encoding: 'utf8' }).trim().split('\n').map((line) => JSON.parse(line))
        : readRecords(join(folder, file));
    assert.ok(records.length > 0, `${file} is empty`);
    const { type, session } = records.at(-1);
    assert.deepEqual({ type, session }, { type: 'summary', session: 0 });
}

/** Plays while the traffic is captured. The capture must be complete. */
async function runCapture(command, folder) {
    const proxy = await startProxy(`twscope proxy -s 127.0.0.1:${SERVER_PORT} -q`, folder);
    const capture = start(command, folder);
    const [, file] = / -w (\S+)/.exec(command);
    const path = join(folder, file);
    await capture.waitFor(/listening on/, WAIT_MS);
    await play(() => statSync(path).size >= CAPTURED_BYTES);
    capture.signal('SIGINT');
    assert.equal(await ended(capture), 0, capture.log);
    await stopProxy(proxy);
    assert.match(execFileSync(TWSCOPE, ['decode', path], { encoding: 'utf8' }), /snapshots: \d+, [1-9]\d* verified/);
}

/** Plays while twscope observes. It must have recorded the game. */
async function runTap(command, folder) {
    const proxy = await startProxy(`twscope proxy -s 127.0.0.1:${SERVER_PORT} -q`, folder);
    const tap = start(command, folder);
    await tap.waitFor(/observing /, WAIT_MS);
    await play();
    tap.signal('SIGINT');
    assert.equal(await ended(tap), 0, tap.log);
    assert.match(tap.log, /[1-9]\d* verified/);
    await stopProxy(proxy);
    const [, file] = / -o (\S+)/.exec(command);
    const { type, session } = readRecords(join(folder, file)).at(-1);
    assert.deepEqual({ type, session }, { type: 'summary', session: 0 });
}

async function runSilently(command, folder, exits) {
    const child = start(command, folder);
    assert.equal(await ended(child), exits, child.log);
    return child;
}

/** The command must print something, or write the file that it names. */
async function runOnce(command, folder, exits) {
    const child = await runSilently(command, folder, exits);
    const [, file] = / (?:-o|--png) ([^\s-]\S*)/.exec(plain(command)) ?? [];
    if (file) assert.ok(statSync(join(folder, file)).size > 0, `${file} is empty`);
    else assert.notEqual(child.log.replace(/^twscope: no record .*\n/m, ''), '', 'it says nothing');
}

/** Sends a request to a proxy with a page. */
async function runBeside(command, folder, exits) {
    const proxy = await startProxy(`twscope proxy -s 127.0.0.1:${SERVER_PORT} --http 9303 -q`, folder);
    await proxy.waitFor(/live page on port 9303/, WAIT_MS);
    await runSilently(command, folder, exits);
    await stopProxy(proxy);
}

/** Runs the recipe for CI, which starts its own server and proxy. */
async function runRecipe(command, folder, exits) {
    await stopServer();
    await runSilently(command, folder, exits);
    assert.ok(existsSync(join(folder, 'results/summary.xml')));
}

/** Plays on the server directly. */
async function runReplay(command, folder, exits) {
    await serverAt('127.0.0.1');
    await runOnce(command, folder, exits);
}

// How each command is run: the first matching row applies. A command without a row must be marked on its page.
const WAYS = [
    { what: /^mkdir |\| sudo sh -e$/, run: runSilently },
    { what: /^twscope --?[a-z]|^twscope \w+ .*--(help|print-routes|check-config)\b/, run: runOnce },
    { what: /^twscope proxy /, run: runProxy },
    { what: /^twscope tap /, run: runTap },
    { what: /^twscope replay /, run: runReplay },
    { what: /^twscope health\b|^curl /, run: runBeside },
    { what: /^twscope (decode|records|map|explain|compare)\b|^(duckdb|jq|python3|sqlite3|zstdcat) /, run: runOnce },
    { what: /^tcpdump /, run: runCapture },
    { what: /^docker\/ci-example\/run\.sh /, run: runRecipe },
];

function wayOf(command) {
    const bare = plain(command).replace(/^sudo /, '').replace(/^([A-Z_]+=\S+ )+/, '');
    const way = WAYS.find(({ what }) => what.test(bare));
    if (!way) throw new Error(`no test knows how to run this command: ${bare}`);
    return way.run;
}

const FILE_LANGUAGES = ['json', 'python', 'sql', 'toml'];

/** Defines the tests of one block: of each command, of a file, or of a text. */
function testBlock(block, folder) {
    const { where, language, file, text, exits, reason } = block;
    if (language === 'sh' && reason) {
        test(`${where}: is as the program has it (${reason})`, () => {
            assert.deepEqual(commandsOf(block).flatMap((command) => complaintsAbout(command, TWSCOPE)), []);
        });
    } else if (language === 'sh') {
        for (const command of commandsOf(block)) {
            test(`${where}: ${plain(command)}`, () => wayOf(command)(command, folder(), exits));
        }
    } else if (FILE_LANGUAGES.includes(language) && file) {
        test(`${where}: ${file} is what later commands read`, () => writeFileSync(join(folder(), file), text));
    } else {
        test(`${where}: is a text`, () => {
            assert.equal(language, 'text', `a block is sh, text, or ${FILE_LANGUAGES.join(', ')} with the name of a file`);
            assert.ok(!text.split('\n').some((line) => isProgram(line) || /^(\$|sudo|\.\/dev|docker|curl) /.test(line)),
                'commands stand in blocks of sh');
        });
    }
}

/** Runs the SQL of these files of a page, and then `more`, on a recording without compression. Returns the rows. */
function runQueries(folder, files, more = '') {
    const blocks = blocksOf('docs/analyse.md', read('docs/analyse.md'));
    const input = (files.map((name) => blocks.find(({ file }) => file === name).text).join('') + more).replaceAll('world.jsonl.zst', 'world.jsonl');
    return execFileSync(process.execPath, [DUCKDB_SHELL], { cwd: folder, input, encoding: 'utf8' }).trim().split('\n');
}

test('the query for messages has each message once', () => {
    const folder = temporaryFolder();
    const record = (ms, session, message) => JSON.stringify({ t: new Date(ms).toISOString(), type: 'message', session, name: 'sv_chat',
        fields: { team: 0, client_id: 1, message } });
    const told = (ms, message, first, last) => Array.from({ length: last - first + 1 }, (_, i) => record(ms + i, first + i, message));
    const lines = [...told(1000, 'gg', 1, 64), ...told(1500, 'gg', 1, 64), ...told(9000, 'gg', 1, 80), ...told(60000, 'to one', 3, 3),
        ...told(70000, 'lost', 1, 63), record(71900, 64, 'lost'), JSON.stringify({ t: new Date(0).toISOString(), type: 'world', items: [] })];
    writeFileSync(join(folder, 'world.jsonl'), `${lines.join('\n')}\n`);
    const rows = runQueries(folder, ['load.sql'], "SELECT t, clients, fields->>'message' FROM messages ORDER BY line;");
    assert.deepEqual(rows.slice(-5).map((row) => row.split('|').slice(1).join(' ')),
        ['64 gg', '64 gg', '80 gg', '1 to one', '64 lost']);
});

test('the queries for speeds, players, kills and flags count what each player did', () => {
    const folder = temporaryFolder();
    const t = (tick) => new Date(1000000 + tick * 20).toISOString();
    const tee = (id, player, x, tick) => ({ type: 'character', id, player, fields: { tick, health: 10 }, names: { weapon: 'gun' },
        at: { x, y: 16, game: 'air' } });
    const kill = (tick, killer, victim, weapon) => [1, 2].map((session) => ({ t: t(tick), type: 'message', session, name: 'sv_kill_msg',
        fields: { killer, victim }, names: { weapon } }));
    const chat = (tick, client, message) => ({ t: t(tick), type: 'message', session: 1, name: 'sv_chat',
        fields: { client_id: client, message } });
    // ann moves ten tiles in a second, respawns far away, and carries the red flag for 60 ticks. bob stands still, and carries the blue one for 30 ticks,
    // of which nobody sees the last ones; he returns elsewhere, and is there while the game is paused. cat is frozen, dies, and
    // respawns so near that only the death tells. dan, a ninja, dashes 12.5 tiles in eight ticks.
    const bob = (tick) => (tick < 140 ? [tee(1, 'bob', 64, tick < 130 ? 100 : 130)]
        : tick < 152 ? [] : [tee(1, 'bob', 3200, tick < 160 ? 152 : 0)]);
    const cat = (tick) => [tee(2, 'cat', ...(tick < 120 ? [0, 100] : tick < 140 ? [700, 122] : [700, 140])),
        { type: 'ddnet_character', id: 2, player: 'cat', fields: { freeze_end: tick >= 110 && tick < 120 ? -1 : 0 } }];
    const records = [...kill(119, 2, 2, 'world'), ...kill(111, 0, 1, 'gun'), ...kill(112, 1, 1, 'world'), ...kill(171, 1, 1, 'game'),
        chat(150, 0, 'b'), chat(150, -1, 'c'), chat(150, 0, 'a')];
    const dan = (tick) => ({ ...tee(3, 'dan', ...(tick < 110 ? [0, 100] : [400, 108])), names: { weapon: 'ninja' } });
    const ann = (tick) => (tick < 150 ? [0, 100] : tick < 160 ? [320, 150] : [5320, 160]);
    for (let tick = 100; tick <= 170; tick += 2) {
        const carriers = { flag_carrier_red: tick >= 110 && tick < 170 ? 0 : -2, flag_carrier_blue: tick >= 130 && tick < 160 ? 1 : -2 };
        records.push({ t: t(tick), type: 'world', run: 1, map: 'ctf1', tick, items: [
            tee(0, 'ann', ...ann(tick)), ...bob(tick), ...cat(tick), dan(tick),
            { type: 'game_data', id: 0, fields: carriers },
            { type: 'player_info', id: 0, player: 'ann', fields: { score: tick - 168, latency: 20 } }] });
    }
    writeFileSync(join(folder, 'world.jsonl'), `${records.map((record) => JSON.stringify(record)).join('\n')}\n`);
    const rows = runQueries(folder, ['load.sql', 'speed.sql', 'players.sql', 'kills.sql']);
    const answers = rows.filter((row) => /\|[\d.]+$/.test(row) && !row.startsWith('ctf1')).map((row) => row.replace(/^\d{4}-[^|]*\|[^|]*\|/, ''));
    assert.deepEqual(answers.sort(), ['1|ann|1|0', '1|blue|bob|0.6', '1|bob|0|2', '1|cat|0.2', '1|cat|0|1', '1|ctf1|ann|1.44|20|2', '1|dan|0|0', '1|red|ann|1.2',
        'ann|10|10|10', 'bob|0|0|0', 'cat|0|0|0', 'dan|12.5|78.125|78.125'],
        rows.join('\n'));
    assert.deepEqual(rows.filter((row) => /\|[abc]$/.test(row)).map((row) => row.split('|').slice(2).join(' ')),
        ['ann b', ' c', 'ann a'], rows.join('\n'));
});

test('commands that cannot run and empty marks are errors', () => {
    const block = (text) => blocksOf('page', text)[0];
    assert.throws(() => wayOf('frobnicate --all'), /no test knows/);
    assert.throws(() => block('<!-- test: parse -->\n```sh\nls\n```'), /says nothing/);
    assert.throws(() => block('```sh\nls\n'), /does not end/);
    assert.throws(() => commandsOf(block('```sh\nls "\n```')), /bash does not understand/);
    assert.match(complaintsAbout('docker run twscope proxy --frobnicate', TWSCOPE)[0], /'proxy' has no flag --frobnicate/);
    assert.match(complaintsAbout('./dev frobnicate', TWSCOPE)[0], /no command 'frobnicate'/);
    assert.deepEqual(commandsOf(block('```sh\n# a note\nls \\\n  -l\njq .\n```')), ['ls \\\n  -l', 'jq .']);
});

test('the commands of the compose file are valid', () => {
    const commands = composeCommands();
    assert.deepEqual(commands.map((command) => command.split(' ')[1]).sort(), ['collect', 'proxy', 'proxy']);
    assert.deepEqual(commands.flatMap((command) => complaintsAbout(command, TWSCOPE)), []);
});

test('the service records by default, in segments with a limit', async () => {
    const folder = folderOf('service');
    const settings = join(ROOT, 'proxy/package/twscope.conf');
    assert.match(readFileSync(settings, 'utf8'), /^keep = "/m);
    await runProxy(`twscope proxy --config ${settings}`, folder, 0);
    assert.match(execFileSync(TWSCOPE, ['records', 'records/'], { cwd: folder, encoding: 'utf8' }), /"type":"snapshot"/);
});

test('the files that pages name exist, and the README leads to every page', () => {
    assert.deepEqual(pages().flatMap(deadLinks), []);
    assert.deepEqual(pages().filter((page) => page !== 'CHANGELOG.md').flatMap(missingPaths), []);
    assert.deepEqual(unlinkedPages(), []);
});

for (const page of pages()) {
    let folder = null;
    for (const block of blocksOf(page, read(page))) testBlock(block, () => folder ??= folderOf(page));
}

test('the server ends', stopServer);
