// Reads and writes packets, chunks and snapshots of Teeworlds 0.7, from the protocol's description alone. The Huffman tree is that of the
// npm library for 0.6, which is the same.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { ints } from './ints.mjs';

const { Huffman } = createRequire(import.meta.url)('teeworlds/lib/huffman.js');

const huffman = new Huffman();
const gamenet = JSON.parse(readFileSync(new URL('../data/spec/gamenet-0.7.json', import.meta.url)));

export const FLAG = { connless: 0x20, compressed: 0x10, resend: 0x08, control: 0x04, ackHigh: 0x03 };
export const KIND = { keepalive: 0, connect: 1, accept: 2, close: 4, token: 5 };
export const HEADER_BYTES = 7;
export const CONNLESS_HEADER_BYTES = 9;
export const SEQUENCES = 1024;
export const NO_TOKEN = Buffer.from('ffffffff', 'hex');
export const VERSION = '0.7 802f1be60a05665f';
const SYSTEM_IDS = new Map(gamenet.system_messages.map(({ id, name }) => [name, id]));
const GAME_IDS = new Map(gamenet.game_messages.map(({ id, name }) => [name, id]));
const AGREED = new Map(gamenet.snapshot_objects.filter((object) => object.size_on_wire === 'implicit')
    .map(({ type, size_ints: size }) => [type, size]));

/** Returns the number of a message by its name. */
export const systemId = (name) => SYSTEM_IDS.get(name);
export const gameId = (name) => GAME_IDS.get(name);
/** Returns "system snap_single" by number and bit; undefined if there is no such message. */
export function messageName(id, system) {
    for (const [name, number] of system ? SYSTEM_IDS : GAME_IDS) if (number === id) return name;
    return undefined;
}

/** Returns a chunk with a message; it is vital if it has a sequence. */
export function chunk(body, { sequence, resend = false } = {}) {
    const vital = sequence !== undefined;
    const head = [(resend ? 0x80 : 0) | (vital ? 0x40 : 0) | (body.length >> 6),
        (vital ? (sequence >> 2) & 0xc0 : 0) | (body.length & 0x3f)];
    return Buffer.concat([Buffer.from(vital ? [...head, sequence & 0xff] : head), body]);
}

/** Returns a packet for a receiver with this token. */
export function packet(token, flags, ack, count, payload) {
    return Buffer.concat([Buffer.from([flags | (ack >> 8), ack & 0xff, count]), token, payload]);
}

/** Reads a datagram; undefined if it belongs to no connection. `payload` is decompressed. */
export function readPacket(datagram) {
    if (datagram.length < HEADER_BYTES || datagram[0] & FLAG.connless) return undefined;
    const behind = datagram.subarray(HEADER_BYTES);
    return {
        flags: datagram[0] & ~FLAG.ackHigh,
        ack: ((datagram[0] & FLAG.ackHigh) << 8) | datagram[1],
        count: datagram[2],
        token: datagram.subarray(3, HEADER_BYTES),
        payload: datagram[0] & FLAG.compressed ? Buffer.from(huffman.decompress(behind)) : behind,
    };
}

/** Returns the chunks of a packet as {sequence, body}; only vital ones have a `sequence`. */
export function* chunksOf({ payload, count }) {
    let rest = payload;
    for (let left = count; left > 0 && rest.length > 1; left -= 1) {
        const size = ((rest[0] & 0x3f) << 6) | (rest[1] & 0x3f);
        const vital = (rest[0] & 0x40) !== 0;
        const head = vital ? 3 : 2;
        yield { sequence: vital ? ((rest[1] & 0xc0) << 2) | rest[2] : undefined, body: rest.subarray(head, head + size) };
        rest = rest.subarray(head + size);
    }
}

/** Returns the number of bytes that an int takes. */
function intSize(bytes) {
    let size = 1;
    while (bytes[size - 1] & 0x80) size += 1;
    return size;
}

/** Reads this number of ints; returns them and the bytes after them. */
export function takeInts(bytes, count) {
    const values = [];
    let rest = bytes;
    for (let i = 0; i < count; i += 1) {
        values.push(ints(rest).next().value);
        rest = rest.subarray(intSize(rest));
    }
    return [values, rest];
}

/** Returns the id, the system bit and the fields of a message. */
export function splitMessage(body) {
    const [[head], fields] = takeInts(body, 1);
    return { id: head >> 1, system: (head & 1) !== 0, fields };
}

/** Rebuilds the snapshots of one connection on one map like its client. */
export class Snapshots {
    #bases = new Map([[-1, new Map()]]);
    #parts = new Map();
    crcErrors = 0;

    /** Reads a snap, snap_empty or snap_single. Returns the snapshot {tick, deltaTick, crc, items} once it is complete. */
    take(name, fields) {
        if (name === 'snap_empty') {
            const [[tick, distance]] = takeInts(fields, 2);
            const base = this.#bases.get(tick - distance);
            return base && this.#keep({ tick, deltaTick: tick - distance, items: base });
        }
        const single = name === 'snap_single';
        const [head, data] = takeInts(fields, single ? 4 : 6);
        const [tick, distance, count, part, crc, size] = single ? [head[0], head[1], 1, 0, head[2], head[3]] : head;
        if (this.#bases.has(tick)) return undefined;
        const parts = this.#parts.get(tick) ?? this.#parts.set(tick, []).get(tick);
        parts[part] = data.subarray(0, size);
        if (parts.filter(Boolean).length !== count) return undefined;
        this.#parts.delete(tick);
        const base = this.#bases.get(tick - distance);
        const items = base && applyDelta(base, [...ints(Buffer.concat(parts))]);
        if (!items) return undefined;
        if (checksum(items) !== crc) {
            this.crcErrors += 1;
            return undefined;
        }
        return this.#keep({ tick, deltaTick: tick - distance, crc, items });
    }

    #keep(snapshot) {
        this.#bases.set(snapshot.tick, snapshot.items);
        for (const tick of this.#bases.keys()) if (tick >= 0 && tick < snapshot.tick - 1000) this.#bases.delete(tick);
        return snapshot;
    }
}

export const checksum = (items) => [...items.values()].flat().reduce((sum, value) => (sum + value) | 0, 0);

/** Computes the checksum of a snapshot. Items are a map from "type:id" to ints. */
export function applyDelta(base, delta) {
    const [deleted, updated] = delta;
    const items = new Map(base);
    let at = 3;
    for (let i = 0; i < deleted; i += 1, at += 1) items.delete(`${(delta[at] >> 16) & 0xffff}:${delta[at] & 0xffff}`);
    for (let i = 0; i < updated; i += 1) {
        const [type, id] = [delta[at], delta[at + 1]];
        at += 2;
        const size = AGREED.get(type) ?? delta[at++];
        const key = `${type}:${id}`;
        const old = base.get(key);
        items.set(key, Array.from({ length: size }, (_, k) => (delta[at + k] + (old?.[k] ?? 0)) | 0));
        at += size;
    }
    return at === delta.length ? items : undefined;
}
