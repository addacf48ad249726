// A client that sends any datagram that a test wants. It joins with DDNet's token like honest clients, counts its own sequences and
// acknowledgements, and stores what the server sends. A test can take the parts of packets and build invalid packets from them. It decodes
// no snapshot, and only counts the complete ones.
import dgram from 'node:dgram';
import { chunk, compress, FLAG, GAME, KIND, messagesOf, SEQUENCES, stillUnacknowledged, SYSTEM, VERSION } from './chunks.mjs';
import { int, ints, string } from './ints.mjs';
import { waitUntil } from './process.mjs';

export const TOKEN_UNKNOWN = Buffer.from('ffffffff', 'hex');
export const MAGIC = Buffer.from('TKEN');
const INPUT_MS = 40;
const REPEAT_MS = 500;
const INPUT_BYTES = 40;
const PREDICTED_TICKS = 3;
const TICK_MS = 20;

/** Returns a message with this id and these fields. */
export const message = (id, system, ...fields) => Buffer.concat([int(id * 2 + (system ? 1 : 0)), ...fields]);
export const INFO = message(SYSTEM.info, true, string(VERSION), string(''));
export const say = (text) => message(GAME.say, false, int(0), string(text));

export class RawClient {
    static all = new Set();

    /**
     * `keptAck`: the tick that inputs acknowledge instead of the last one received; `silent`: sends no inputs; `direction`: walking direction.
     * @param early send ENTERGAME too early
     * @param address local address to play from
     */
    constructor(port, name, { early = false, address } = {}) {
        RawClient.all.add(this);
        Object.assign(this, { port, name, early, mapChanges: 0, resendBit: false, close: null, keptAck: null, silent: false, direction: 0 });
        this.#restart();
        this.ticks = new Set(); // "map tick" of each complete snapshot, maps counted from 1
        this.kinds = [];        // kinds of the received control packets
        this.socket = dgram.createSocket('udp4');
        this.socket.on('message', (datagram) => this.#receive(datagram));
        if (address) this.socket.bind(0, address);
    }

    #restart() {
        Object.assign(this, { ack: 0, sequence: 0, unacknowledged: [], tick: -1, parts: new Map(), clock: null });
    }

    /** Returns the tick for the next input, by a clock that continues without snapshots, like that of real clients. */
    get #intended() {
        this.clock ??= { tick: this.tick, ms: performance.now() };
        return this.clock.tick + PREDICTED_TICKS + Math.floor((performance.now() - this.clock.ms) / TICK_MS);
    }

    get nextSequence() { return (this.sequence + 1) % SEQUENCES; }

    /** Sends these bytes unchanged. */
    send(datagram) { this.socket.send(datagram, this.port, '127.0.0.1'); }

    /** Returns a packet with chunks as this client would send it, except for the given values. */
    packet(chunks, { ack = this.ack, flags = 0, count = chunks.length, token = this.token } = {}) {
        return Buffer.concat([Buffer.from([flags | (ack >> 8), ack & 0xff, count]), ...chunks, token ?? Buffer.alloc(0)]);
    }

    /** Returns such a packet with a compressed payload. */
    compressed(chunks, { ack = this.ack, flags = 0, token = this.token, behind = Buffer.alloc(0) } = {}) {
        return Buffer.concat([Buffer.from([FLAG.compressed | flags | (ack >> 8), ack & 0xff, chunks.length]),
            compress(Buffer.concat([...chunks, token ?? Buffer.alloc(0)])), behind]);
    }

    /** Returns a control packet of this kind, followed by these bytes (usually the token). */
    control(kind, behind = this.token, { ack = this.ack, flags = 0, count = 0 } = {}) {
        return Buffer.concat([Buffer.from([FLAG.control | flags | (ack >> 8), ack & 0xff, count, kind]), behind ?? Buffer.alloc(0)]);
    }

    connect() { this.send(this.control(KIND.connect, Buffer.concat([MAGIC, TOKEN_UNKNOWN]), { ack: 0 })); }

    /** Sends a vital message correctly. */
    vital(body) {
        this.sequence = this.nextSequence;
        const again = { sequence: this.sequence, resend: true };
        this.unacknowledged.push({ sequence: this.sequence, chunk: chunk(body, again) });
        this.send(this.packet([chunk(body, { ...again, resend: this.resendBit })]));
    }

    say(text) { this.vital(say(text)); }

    input(ackTick = this.tick) {
        const fields = [this.direction, 100, 0, 0, 0, 0, 1, 0, 0, 0].map(int);
        this.send(this.packet([chunk(message(SYSTEM.input, true, int(ackTick), int(this.#intended), int(INPUT_BYTES),
            ...fields))]));
    }

    async join(ms = 15000) {
        const maps = this.mapChanges + 1;
        this.connect();
        this.repeat = setInterval(() => {
            if (!this.token) this.connect();
            else this.#resend();
        }, REPEAT_MS);
        this.inputs = setInterval(() => { if (this.tick >= 0 && !this.silent) this.input(this.keptAck ?? this.tick); }, INPUT_MS);
        await this.inGame(maps, ms);
        return this;
    }

    /** Waits until the server has sent this number of maps, and snapshots on the last one. */
    async inGame(maps, ms = 15000) {
        await waitUntil(`${this.name} to see snapshots`, () => this.mapChanges >= maps && this.ticksOf(maps) > 1, ms);
    }

    /** Returns the number of complete snapshots on a map. */
    ticksOf(map) { return [...this.ticks].filter((tick) => tick.startsWith(`${map} `)).length; }

    /** Follows a server that restarted the connection: it sends the map again, with sequences from 1. */
    rejoin() { this.#restart(); }

    /** Says goodbye and joins again at once from the same address; ignores what arrives from the old connection. */
    async comeBack() {
        this.#stop();
        this.send(this.control(KIND.close));
        this.token = undefined;
        this.#restart();
        await this.join();
    }

    #stop() {
        clearInterval(this.repeat);
        clearInterval(this.inputs);
    }

    /** Says goodbye this many times; keeps its port, so that no other client gets it. */
    async leave(times = 1) {
        this.#stop();
        this.left = true;
        const goodbye = this.control(KIND.close);
        for (let each = 0; each < times; each += 1) {
            await new Promise((resolve) => { this.socket.send(goodbye, this.port, '127.0.0.1', resolve); });
        }
    }

    vanish() {
        this.#stop();
        if (RawClient.all.delete(this)) this.socket.close();
    }

    #resend() {
        for (const { chunk: each } of this.unacknowledged) this.send(this.packet([each]));
    }

    #receive(datagram) {
        if (datagram[0] & (FLAG.connless | FLAG.seven)) return;
        if (datagram[0] & FLAG.control) {
            this.#onControl(datagram[3], datagram.subarray(4));
            return;
        }
        if (!this.token) return;
        this.unacknowledged = stillUnacknowledged(this.unacknowledged, datagram);
        if (datagram[0] & FLAG.resend) this.#resend();
        for (const each of messagesOf(datagram, this, this.token.length)) this.#message(...each);
    }

    #onControl(kind, body) {
        this.kinds.push(kind);
        if (kind === KIND.connectAccept && !this.token) {
            this.token = Buffer.from(body.subarray(MAGIC.length));
            this.send(this.control(KIND.accept));
            this.vital(INFO);
            if (this.early) this.vital(message(SYSTEM.enterGame, true));
        } else if (kind === KIND.close) {
            this.close = `${body}`;
        }
    }

    #message(id, system, body) {
        if (!system) {
            if (id === GAME.readyToEnter) this.vital(message(SYSTEM.enterGame, true));
        } else if (id === SYSTEM.mapChange) {
            this.mapChanges += 1;
            Object.assign(this, { tick: -1, parts: new Map(), clock: null });
            this.vital(message(SYSTEM.ready, true));
        } else if (id === SYSTEM.conReady) {
            this.vital(message(GAME.startInfo, false, string(this.name), string('twscope'), int(-1), string('default'), int(0), int(0),
                int(0)));
        } else if (id >= SYSTEM.snap && id <= SYSTEM.snapSingle) {
            this.#snapshot(id, [...ints(body.subarray(0, 20))]);
        }
    }

    #snapshot(id, [tick, , numParts, part]) {
        const wanted = id === SYSTEM.snap ? numParts : 1;
        const parts = this.parts.get(tick) ?? this.parts.set(tick, new Set()).get(tick);
        parts.add(id === SYSTEM.snap ? part : 0);
        if (parts.size !== wanted) return;
        this.tick = Math.max(this.tick, tick);
        if (!this.left) this.ticks.add(`${this.mapChanges} ${tick}`);
    }
}
