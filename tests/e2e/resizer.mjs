// Simulates a mod: forwards a real server's snapshots with some items made longer or shorter, and writes deltas and checksums as such a
// server does. Clients must know the sizes, because deltas use the snapshots that they acknowledge.
import { chunk, chunksOf, FLAG, payloadOf, SYSTEM } from './chunks.mjs';
import { int, ints } from './ints.mjs';
import { message } from './raw_client.mjs';

/** The sizes in ints on which servers and clients of 0.6 agreed, by type; deltas contain all other sizes. */
export const AGREED = [0, 10, 6, 5, 4, 3, 8, 4, 15, 22, 5, 17, 3, 2, 2, 2, 2, 3, 3, 3, 3];
const FROM_NOTHING = -1;
const KEPT = 250; // number of snapshots; servers keep those of three seconds
const PART_BYTES = 900;
const TOKEN_BYTES = 4;

/** Reads this number of ints; returns them and the bytes after them. */
function headOf(bytes, count) {
    let at = 0;
    for (let left = count; left > 0; at += 1) if (!(bytes[at] & 0x80)) left -= 1;
    return [[...ints(bytes.subarray(0, at))], bytes.subarray(at)];
}

/** Returns the items of a snapshot by key, each as an array of ints. */
function applied(base, delta) {
    const all = [...ints(delta)];
    const [deleted, updated] = all;
    const items = new Map(base);
    let at = 3;
    for (; at < 3 + deleted; at += 1) items.delete(all[at]);
    for (let left = updated; left > 0; left -= 1) {
        const [type, id] = all.slice(at, at + 2);
        at += 2;
        const size = AGREED[type] || all[at++];
        const before = base.get((type << 16) | id);
        items.set((type << 16) | id, all.slice(at, at + size).map((value, i) => (before ? (before[i] + value) | 0 : value)));
        at += size;
    }
    return items;
}

function deltaOf(base, items, sizes) {
    const gone = [...base.keys()].filter((key) => !items.has(key));
    const changed = [...items].filter(([key, data]) => !base.get(key)?.every((value, i) => value === data[i]));
    const updates = changed.flatMap(([key, data]) => {
        const type = key >> 16;
        const before = base.get(key);
        return [type, key & 0xffff, ...(sizes[type] ? [] : [data.length]),
            ...data.map((value, i) => (before ? (value - before[i]) | 0 : value))];
    });
    return Buffer.concat([gone.length, changed.length, 0, ...gone, ...updates].map(int));
}

const checksumOf = (items) => [...items.values()].flat().reduce((sum, value) => (sum + value) | 0, 0);

export class Resizer {
    /** `changed`: the mod's sizes by type. */
    constructor(changed) {
        this.sizes = AGREED.map((agreed, type) => changed[type] ?? agreed);
    }

    /** For Tap.change: returns what to forward for a datagram. */
    change(dir, bytes, flow) {
        if (dir === 'c2s' || bytes[0] & (FLAG.control | FLAG.connless)) return bytes;
        flow.resized ??= { was: new Map(), now: new Map(), parts: new Map() };
        const others = [];
        const snapshots = [];
        for (const each of chunksOf(bytes, TOKEN_BYTES)) {
            const id = each.body[0] >> 1;
            if (!(each.body[0] & 1) || id < SYSTEM.snap || id > SYSTEM.snapSingle) others.push(each.bytes);
            else snapshots.push(...this.#snapshot(flow.resized, id, each.body.subarray(1)));
        }
        const token = payloadOf(bytes).subarray(-TOKEN_BYTES);
        const packet = (chunks, flags) => Buffer.concat([Buffer.from([flags, bytes[1], chunks.length]), ...chunks, token]);
        return [...(others.length || bytes[0] & FLAG.resend ? [packet(others, bytes[0] & ~FLAG.compressed)] : []),
            ...snapshots.map((each) => packet([chunk(each)], bytes[0] & FLAG.ackHigh))];
    }

    /** Returns the messages with the changed snapshot that this message completes. */
    #snapshot({ was, now, parts }, id, body) {
        const single = id === SYSTEM.snapSingle;
        const [[tick, step, ...rest], data] = headOf(body, id === SYSTEM.snap ? 6 : single ? 4 : 2);
        const base = tick - step;
        const [numParts, part] = id === SYSTEM.snap ? rest : [1, 0];
        const came = parts.get(tick) ?? parts.set(tick, []).get(tick);
        came[part] = data;
        if (came.filter(Boolean).length < numParts) return [];
        parts.delete(tick);
        if (base !== FROM_NOTHING && !was.has(base)) throw new Error(`a delta to tick ${base}, which never came`);
        const before = base === FROM_NOTHING ? new Map() : was.get(base);
        const items = id === SYSTEM.snapEmpty ? before : applied(before, Buffer.concat(came));
        const resized = new Map([...items].map(([key, ints_]) => [key, this.#resized(key, ints_)]));
        this.#keep(was, tick, items);
        const known = base === FROM_NOTHING ? new Map() : now.get(base);
        this.#keep(now, tick, resized);
        if (id === SYSTEM.snapEmpty) return [message(id, true, int(tick), int(step))];
        return this.#messages(tick, step, checksumOf(resized), deltaOf(known, resized, this.sizes));
    }

    #messages(tick, step, checksum, delta) {
        const count = Math.ceil(delta.length / PART_BYTES);
        return Array.from({ length: count }, (_, part) => {
            const data = delta.subarray(part * PART_BYTES, (part + 1) * PART_BYTES);
            const place = count === 1 ? [] : [int(count), int(part)];
            return message(count === 1 ? SYSTEM.snapSingle : SYSTEM.snap, true, int(tick), int(step), ...place, int(checksum),
                int(data.length), data);
        });
    }

    /** An added int stays the same as long as the item exists. */
    #resized(key, data) {
        const size = this.sizes[key >> 16] || data.length;
        return Array.from({ length: size }, (_, i) => data[i] ?? 1000 + (key & 0xffff) * 7 + i);
    }

    #keep(snapshots, tick, items) {
        snapshots.set(tick, items);
        if (snapshots.size > KEPT) snapshots.delete(snapshots.keys().next().value);
    }
}
