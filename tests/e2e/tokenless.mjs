// A client without DDNet's token extension, as vanilla ones are: joins, acknowledges every snapshot, walks about.
// It decodes no snapshot, only what it needs to stay in the game.
import dgram from 'node:dgram';
import { createRequire } from 'node:module';
import { random } from './bot.mjs';
import { int, ints, string } from './ints.mjs';
import { waitUntil } from './process.mjs';

const { Huffman } = createRequire(import.meta.url)('teeworlds/lib/huffman.js');

const huffman = new Huffman();
const CONTROL = 0x10;
const COMPRESSED = 0x80;
const RESEND = 0x40;
const KIND = { keepalive: 0, connect: 1, connectAccept: 2, accept: 3, close: 4 };
const SYSTEM = { info: 1, mapChange: 2, conReady: 4, snap: 5, snapEmpty: 6, snapSingle: 7, ready: 14, enterGame: 15, input: 16 };
const GAME = { readyToEnter: 8, startInfo: 20 };
const VERSION = '0.6 626fce9a778df4d4';
const SEQUENCES = 1024;
const INPUT_MS = 40;
const REPEAT_MS = 500;
const INPUT_BYTES = 40;
const PREDICTED_TICKS = 3;

export class TokenlessClient {
    constructor(port, name, seed = 1) {
        Object.assign(this, { port, name, random: random(seed), ack: 0, sequence: 0, unacknowledged: [], tick: -1, snapshots: 0 });
        this.input = [0, 100, 0, 0, 0, 0, 1, 0, 0, 0];
        this.socket = dgram.createSocket('udp4');
        this.socket.on('message', (packet) => this.#receive(packet));
    }

    async join(ms = 10000) {
        this.#control(KIND.connect);
        this.repeat = setInterval(() => {
            if (!this.accepted) this.#control(KIND.connect);
            else if (this.unacknowledged.length) this.#send(this.unacknowledged.map(({ chunk }) => chunk));
        }, REPEAT_MS);
        await waitUntil(`${this.name} to see snapshots`, () => this.snapshots > 1, ms);
        this.inputs = setInterval(() => this.#walk(), INPUT_MS);
        return this;
    }

    leave() {
        clearInterval(this.repeat);
        clearInterval(this.inputs);
        return new Promise((resolve) => { this.#control(KIND.close, () => this.socket.close(resolve)); });
    }

    #control(kind, done) {
        this.socket.send(Buffer.from([CONTROL | (this.ack >> 8), this.ack & 0xff, 0, kind]), this.port, '127.0.0.1', done);
    }

    #send(chunks) {
        const head = Buffer.from([this.ack >> 8, this.ack & 0xff, chunks.length]);
        this.socket.send(Buffer.concat([head, ...chunks]), this.port, '127.0.0.1');
    }

    #vital(id, system, ...fields) {
        const body = Buffer.concat([int(id * 2 + (system ? 1 : 0)), ...fields]);
        this.sequence = (this.sequence + 1) % SEQUENCES;
        const { sequence } = this;
        const head = Buffer.from([0x40 | (body.length >> 4), ((sequence >> 2) & 0xf0) | (body.length & 15), sequence & 0xff]);
        const chunk = Buffer.concat([head, body]);
        const again = Buffer.from(chunk);
        again[0] |= 0x80;
        this.unacknowledged.push({ sequence, chunk: again });
        this.#send([chunk]);
    }

    #walk() {
        const chance = (probability) => this.random() < probability;
        if (chance(0.1)) this.input[0] = Math.floor(this.random() * 3) - 1;
        if (chance(0.2)) this.input[1] = Math.round(this.random() * 400 - 200);
        this.input[3] = chance(0.1) ? 1 : 0;
        if (chance(0.1)) this.input[4] += 1;
        if (chance(0.1)) this.input[5] = chance(0.5) ? 1 : 0;
        const body = Buffer.concat([int(SYSTEM.input * 2 + 1), int(this.tick), int(this.tick + PREDICTED_TICKS), int(INPUT_BYTES),
            ...this.input.map(int)]);
        this.#send([Buffer.concat([Buffer.from([body.length >> 4, body.length & 15]), body])]);
    }

    #receive(packet) {
        if (packet[0] & CONTROL) {
            if (packet[3] === KIND.connectAccept && !this.accepted) {
                this.accepted = true;
                this.#control(KIND.accept);
                this.#vital(SYSTEM.info, true, string(VERSION), string(''));
            }
            return;
        }
        const acknowledged = ((packet[0] & 3) << 8) | packet[1];
        this.unacknowledged = this.unacknowledged.filter(({ sequence }) =>
            (sequence - acknowledged + SEQUENCES) % SEQUENCES < SEQUENCES / 2 && sequence !== acknowledged);
        let rest = packet.subarray(3);
        if (packet[0] & COMPRESSED) rest = huffman.decompress(rest);
        if (packet[0] & RESEND) this.#send(this.unacknowledged.map(({ chunk }) => chunk));
        for (let left = packet[2]; left > 0 && rest.length > 1; left--) rest = this.#chunk(rest);
    }

    /** Handles the first chunk and returns what is behind it. */
    #chunk(bytes) {
        const size = ((bytes[0] & 0x3f) << 4) | (bytes[1] & 15);
        const vital = bytes[0] & 0x40;
        const body = bytes.subarray(vital ? 3 : 2, (vital ? 3 : 2) + size);
        const behind = bytes.subarray((vital ? 3 : 2) + size);
        if (vital) {
            const sequence = ((bytes[1] & 0xf0) << 2) | bytes[2];
            if (sequence !== (this.ack + 1) % SEQUENCES) return behind;
            this.ack = sequence;
        }
        if (body.length) this.#message(body[0] >> 1, body[0] & 1, body.subarray(1));
        return behind;
    }

    #message(id, system, body) {
        if (!system) {
            if (id === GAME.readyToEnter) this.#vital(SYSTEM.enterGame, true);
        } else if (id === SYSTEM.mapChange) {
            this.tick = -1;
            this.#vital(SYSTEM.ready, true);
        } else if (id === SYSTEM.conReady) {
            this.#vital(GAME.startInfo, false, string(this.name), string('twscope'), int(-1), string('default'), int(0), int(0), int(0));
        } else if (id >= SYSTEM.snap && id <= SYSTEM.snapSingle) {
            this.#snapshot(id, ints(body));
        }
    }

    #snapshot(id, fields) {
        const tick = fields.next().value;
        fields.next();
        const parts = id === SYSTEM.snap ? fields.next().value : 1;
        if (tick !== this.partsOf) Object.assign(this, { partsOf: tick, partsSeen: 0 });
        this.partsSeen += 1;
        if (this.partsSeen !== parts) return;
        this.tick = tick;
        this.snapshots += 1;
    }
}
