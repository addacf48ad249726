// Compares message counts with an independent decoder: for every capture of tests/data, the npm library's own splitting of packets,
// decompression and splitting of chunks must count the same messages as `twscope decode`, and each message must have a name.
//   node message_counts.mjs TWSCOPE
import assert from 'node:assert/strict';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { gunzipSync } from 'node:zlib';
import { ints } from './ints.mjs';
import { CLIENT_LIBRARY, need } from './need.mjs';
import { Child, temporaryFolder } from './process.mjs';
import { readRecords, TWSCOPE } from './proxy.mjs';

need(CLIENT_LIBRARY);
const require = createRequire(import.meta.url);
const { Client } = require('teeworlds');
const { UUIDManager } = require('teeworlds/lib/UUIDManager.js');

const DATA = fileURLToPath(new URL('../data/', import.meta.url));
const ETHERNET = 1;
const HEADER_BYTES = 3;
const CONTROL = 0x10;
const CONNLESS = 0x20;
const SEVEN = 0x04; // in the first byte of each control packet of 0.7, and of no packet of 0.6
const CONNECT = 1;
const CLOSE = 4;
const VITAL = 1;
const SEQUENCES = 1024;
const UUID_BYTES = 16;

/** The library's client, never connected; only its packet reader is used. Without known UUIDs, it leaves them in place. */
function librarySplitter() {
    const client = Object.create(Client.prototype);
    client.UUIDManager = new UUIDManager();
    client.ResendAfter = () => {};
    return (datagram) => client.Unpack(datagram).chunks;
}

/** Returns all UDP datagrams of a classic pcap file of Ethernet and IPv4. */
function* readPcap(bytes) {
    assert.equal(bytes.readUInt32LE(0), 0xa1b2c3d4, 'a little-endian pcap');
    assert.equal(bytes.readUInt32LE(20), ETHERNET);
    for (let at = 24; at < bytes.length;) {
        const size = bytes.readUInt32LE(at + 8);
        const ip = bytes.subarray(at + 16 + 14, at + 16 + size);
        const udp = ip.subarray((ip[0] & 15) * 4);
        yield { source: udp.readUInt16BE(0), destination: udp.readUInt16BE(2),
            payload: Buffer.from(udp.subarray(8, udp.readUInt16BE(4))) };
        at += 16 + size;
    }
}

/** Returns the names of messages by "system 5" and by UUID, from the protocol's description. */
function messageNames() {
    const { system_messages: system, game_messages: game } = JSON.parse(readFileSync(join(DATA, 'spec/gamenet-0.6-ddnet.json')));
    const names = new Map();
    for (const [kind, messages] of [['system', system], ['game', game]]) {
        for (const { id, uuid, name } of messages) names.set(uuid ? uuid.replaceAll('-', '') : `${kind} ${id}`, name);
    }
    return names;
}

const add = (counts, key) => counts.set(key, (counts.get(key) ?? 0) + 1);

const MAP_CHANGE = 2; // number of a system message
const SNAP = { parts: 5, empty: 6, single: 7 };

/** Counts complete snapshots; each tick counts once in a connection and on a map. */
class Snapshots {
    count = 0;
    #seen = new Map();

    /** Starts another connection or map, in which ticks may start again. */
    begin(client) { this.#seen.set(client, new Map()); }

    take(client, { msgid, raw }) {
        const [tick, , numParts, part] = ints(raw);
        const ticks = this.#seen.get(client) ?? this.#seen.set(client, new Map()).get(client);
        const parts = ticks.get(tick) ?? ticks.set(tick, new Set()).get(tick);
        const wanted = msgid === SNAP.parts ? numParts : 1;
        if (parts.size === wanted) return;
        parts.add(msgid === SNAP.parts ? part : 0);
        if (parts.size === wanted) this.count += 1;
    }
}

/**
 * Counts how often each message of 0.6 passed and was accepted by its receiver (a repeated or early vital message is not), and the number
 * of complete snapshots.
 */
function countByLibrary(datagrams, names) {
    const split = librarySplitter();
    const server = datagrams[0].destination; // a client sends the first datagram
    const last = new Map();
    const seven = new Set(); // clients with a 0.7 connection
    const closed = new Set(); // clients that said goodbye; nothing in flight is accepted any more
    const counts = new Map();
    const snapshots = new Snapshots();
    for (const { source, destination, payload } of datagrams) {
        const dir = source === server ? 's2c' : 'c2s';
        const client = source === server ? destination : source;
        if ((payload[0] & CONNLESS) !== 0) continue;
        if ((payload[0] & SEVEN) !== 0) {
            seven.add(client);
            continue;
        }
        // No capture has a packet of 0.7 that looks like a CONNECT of 0.6.
        const connect = (payload[0] & ~3) === CONTROL && payload[2] === 0 && payload[HEADER_BYTES] === CONNECT;
        if (connect && dir === 'c2s') {
            seven.delete(client);
            closed.delete(client);
            for (const each of ['c2s', 's2c']) last.set(`${client} ${each}`, 0);
            snapshots.begin(client);
        }
        if ((payload[0] & CONTROL) !== 0 && payload[HEADER_BYTES] === CLOSE) closed.add(client);
        if (seven.has(client) || closed.has(client) || (payload[0] & CONTROL) !== 0) continue;
        for (const chunk of split(payload)) {
            const flow = `${client} ${dir}`;
            if ((chunk.flags & VITAL) !== 0) {
                if (chunk.seq !== ((last.get(flow) ?? 0) + 1) % SEQUENCES) continue;
                last.set(flow, chunk.seq);
            }
            const kind = chunk.sys ? 'system' : 'game';
            const key = chunk.msgid === 0 ? chunk.raw.subarray(0, UUID_BYTES).toString('hex') : `${kind} ${chunk.msgid}`;
            add(counts, `${dir} ${kind} ${names.get(key) ?? `unknown ${key}`}`);
            if (dir === 's2c' && chunk.sys && chunk.msgid === MAP_CHANGE) snapshots.begin(client);
            if (dir === 's2c' && chunk.sys && Object.values(SNAP).includes(chunk.msgid)) snapshots.take(client, chunk);
        }
    }
    return { counts, snapshots: snapshots.count };
}

async function countByTwscope(folder, capture) {
    const file = join(folder, 'records.jsonl');
    const child = new Child('twscope decode', TWSCOPE, ['decode', capture, '--items', 'none', '-o', file]);
    assert.equal(await child.ended, 0, child.log);
    const counts = new Map();
    const seven = new Set(); // sessions with a 0.7 connection, which seven.mjs tests
    for (const { type, layer, dir, system, name, uuid, session, event, protocol } of readRecords(file)) {
        if (event === 'established') seven[protocol.startsWith('0.7') ? 'add' : 'delete'](session);
        if (type !== 'message' || layer !== undefined || seven.has(session)) continue;
        // A known number with the wrong kind has no name, because its sender meant another message.
        const known = uuid === undefined ? name : names.get(uuid.replaceAll('-', '')) ?? name;
        add(counts, `${dir} ${system ? 'system' : 'game'} ${known}`);
    }
    return counts;
}

// The number of 0.6 snapshots in a capture; tests/data/captures/README.md and the unit tests have the same numbers.
const SNAPSHOTS = {
    'bench-4.pcap.gz': 5955,
    'bench-64.pcap.gz': 11576,
    'ddnet-20.1.1-race.pcap.gz': 9677,
    'one-client-0.6-0.7-0.6-0.7.pcap.gz': 399,
    'teeworlds-0.7.5.pcap.gz': 0,
    'vanilla-0.6.5-ctf.pcap.gz': 4402 + 5 * 3, // each of five preludes has three empty snapshots; two after a CLOSE are not counted
};

const captures = ['captures', 'golden'].flatMap((folder) => readdirSync(join(DATA, folder)).sort()
    .filter((name) => /\.pcap(\.gz)?$/.test(name)).map((name) => join(DATA, folder, name)));
const folder = temporaryFolder();
const names = messageNames();

test('captures exist', () => assert.ok(captures.length >= 13, `${captures.length}`));

for (const capture of captures) {
    test(`${basename(capture)}: both decoders count the same messages, and name each of them`, async () => {
        const stored = readFileSync(capture);
        const bytes = capture.endsWith('.gz') ? gunzipSync(stored) : stored;
        const plain = join(folder, 'capture.pcap');
        writeFileSync(plain, bytes);
        const library = countByLibrary([...readPcap(bytes)], names);
        const twscope = await countByTwscope(folder, plain);
        const sorted = (counts) => Object.fromEntries([...counts].sort());
        assert.deepEqual(sorted(twscope), sorted(library.counts));
        const snapshots = SNAPSHOTS[basename(capture)];
        if (snapshots !== undefined) assert.equal(library.snapshots, snapshots, 'snapshots');
        if (snapshots === 0 || basename(capture) === 'seven-map-change.pcap') return; // the capture has no 0.6 traffic
        assert.deepEqual([...twscope.keys()].filter((key) => key.includes('unknown')), []);
        assert.ok([...twscope.values()].reduce((sum, count) => sum + count, 0) > 100, 'there were messages');
    });
}
