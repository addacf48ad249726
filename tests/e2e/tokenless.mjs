// A client without DDNet's token extension, like vanilla clients: joins, acknowledges every snapshot, and walks about.
// It decodes no snapshot, only what it needs to stay in the game.
import dgram from 'node:dgram';
import { random } from './bot.mjs';
import { chunk, FLAG, GAME, KIND, messagesOf, SEQUENCES, stillUnacknowledged, SYSTEM, VERSION } from './chunks.mjs';
import { int, ints, string } from './ints.mjs';
import { waitUntil } from './process.mjs';

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
            else if (this.unacknowledged.length) this.#resend();
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
        this.socket.send(Buffer.from([FLAG.control | (this.ack >> 8), this.ack & 0xff, 0, kind]), this.port, '127.0.0.1', done);
    }

    #send(chunks) {
        const head = Buffer.from([this.ack >> 8, this.ack & 0xff, chunks.length]);
        this.socket.send(Buffer.concat([head, ...chunks]), this.port, '127.0.0.1');
    }

    #vital(id, system, ...fields) {
        const body = Buffer.concat([int(id * 2 + (system ? 1 : 0)), ...fields]);
        this.sequence = (this.sequence + 1) % SEQUENCES;
        const { sequence } = this;
        this.unacknowledged.push({ sequence, chunk: chunk(body, { sequence, resend: true }) });
        this.#send([chunk(body, { sequence })]);
    }

    #resend() { this.#send(this.unacknowledged.map((each) => each.chunk)); }

    #walk() {
        const chance = (probability) => this.random() < probability;
        if (chance(0.1)) this.input[0] = Math.floor(this.random() * 3) - 1;
        if (chance(0.2)) this.input[1] = Math.round(this.random() * 400 - 200);
        this.input[3] = chance(0.1) ? 1 : 0;
        if (chance(0.1)) this.input[4] += 1;
        if (chance(0.1)) this.input[5] = chance(0.5) ? 1 : 0;
        const body = Buffer.concat([int(SYSTEM.input * 2 + 1), int(this.tick), int(this.tick + PREDICTED_TICKS), int(INPUT_BYTES),
            ...this.input.map(int)]);
        this.#send([chunk(body)]);
    }

    #receive(packet) {
        if (packet[0] & FLAG.control) {
            if (packet[3] === KIND.connectAccept && !this.accepted) {
                this.accepted = true;
                this.#control(KIND.accept);
                this.#vital(SYSTEM.info, true, string(VERSION), string(''));
            }
            return;
        }
        this.unacknowledged = stillUnacknowledged(this.unacknowledged, packet);
        if (packet[0] & FLAG.resend) this.#resend();
        for (const each of messagesOf(packet, this)) this.#message(...each);
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
