// Reads the 0.7 connections in a capture with seven_wire.mjs, independently of twscope.
import { chunksOf, FLAG, KIND, messageName, readPacket, SEQUENCES, Snapshots, splitMessage } from './seven_wire.mjs';

const SIX_CONNECT = 1;
const isSixConnect = (payload) => (payload[0] & ~3) === 0x10 && payload[2] === 0 && payload[3] === SIX_CONNECT;

class Connection {
    /** @param tokens the tokens of c2s and s2c packets */
    constructor(client, tokens) {
        Object.assign(this, { client, tokens, last: { c2s: 0, s2c: 0 }, messages: [], snapshots: [], reader: new Snapshots() });
    }

    take(dir, packet) {
        if (!packet.token.equals(this.tokens[dir])) return;
        for (const { sequence, body } of chunksOf(packet)) {
            if (sequence !== undefined) {
                if (sequence !== (this.last[dir] + 1) % SEQUENCES) continue;
                this.last[dir] = sequence;
            }
            if (body.length) this.#message(dir, body);
        }
    }

    #message(dir, body) {
        const { id, system, fields } = splitMessage(body);
        const name = id === 0 ? fields.subarray(0, 16).toString('hex') : messageName(id, system);
        this.messages.push({ dir, system, id, name, body });
        if (dir !== 's2c' || !system) return;
        if (name === 'map_change') {
            this.crcErrors = (this.crcErrors ?? 0) + this.reader.crcErrors;
            this.reader = new Snapshots();
        } else if (name?.startsWith('snap')) {
            const snapshot = this.reader.take(name, fields);
            if (snapshot) this.snapshots.push(snapshot);
        }
    }
}

/** Returns the 0.7 connections in these datagrams of {source, destination, payload}, in order. */
export function readSevenConnections(datagrams) {
    const server = datagrams[0].destination;
    const clients = new Map();
    const connections = [];
    for (const { source, destination, payload } of datagrams) {
        const dir = source === server ? 's2c' : 'c2s';
        const client = source === server ? destination : source;
        const known = clients.get(client) ?? clients.set(client, {}).get(client);
        if (dir === 'c2s' && isSixConnect(payload)) known.connection = undefined;
        const control = (payload[0] & FLAG.control) !== 0 && (payload[0] & FLAG.connless) === 0;
        if (!control && !known.connection) continue;
        const packet = readPacket(payload);
        if (!packet) continue;
        if (!control) {
            if (!known.closed) known.connection.take(dir, packet);
            continue;
        }
        const kind = packet.payload[0];
        const own = packet.payload.subarray(1, 5);
        if (kind === KIND.token) known[dir] = Buffer.from(own);
        if (kind === KIND.accept && dir === 's2c' && known.c2s && packet.token.equals(known.c2s)) {
            known.connection = new Connection(client, { c2s: known.s2c, s2c: known.c2s });
            known.closed = false;
            known.c2s = undefined;
            connections.push(known.connection);
        }
        if (kind === KIND.close && known.connection && packet.token.equals(known.connection.tokens[dir])) known.closed = true;
    }
    return connections;
}
