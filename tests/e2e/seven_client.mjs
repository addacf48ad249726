// A headless client of Teeworlds 0.7, written from the protocol's description alone: it connects, downloads the map if requested, joins,
// plays at random, and stores each snapshot that it rebuilt.
import dgram from 'node:dgram';
import { random } from './bot.mjs';
import { int, string } from './ints.mjs';
import { waitUntil } from './process.mjs';
import { chunk, chunksOf, FLAG, gameId, KIND, messageName, NO_TOKEN, packet, readPacket, SEQUENCES, Snapshots, splitMessage,
    systemId, takeInts, VERSION } from './seven_wire.mjs';

const REPEAT_MS = 500;
const INPUT_MS = 40;
const JOIN_MS = 15000;
const PADDING = 508;
const CLIENT_VERSION = 0x0705;
const INPUT_BYTES = 40;
const PREDICTED_TICKS = 3;
const TICK_MS = 20;
const SKIN_PARTS = 6;
const CHAT = { all: 1, whisper: 3 };

const message = (id, system, ...fields) => Buffer.concat([int(id * 2 + (system ? 1 : 0)), ...fields]);

/** Returns the text up to a NUL, and the bytes after it. */
function takeString(bytes) {
    const end = bytes.indexOf(0);
    return [bytes.toString('utf8', 0, end), bytes.subarray(end + 1)];
}

export class SevenBot {
    static all = new Set();

    /**
     * `keptAck`: the tick that inputs acknowledge instead of the last one received; `silent`: sends no inputs.
     * @param download download the map through the game connection
     * @param loss share of the received datagrams that are dropped
     */
    constructor(port, name, { seed = 1, download = false, loss = 0, password = '' } = {}) {
        SevenBot.all.add(this);
        Object.assign(this, { target: port, name, download, loss, password, random: random(seed), snapshots: [], chat: [],
            players: new Map(), maps: [], closed: null, rcon: [], crcErrors: 0, keptAck: null, silent: false });
        this.token = Buffer.from([1, 2, 3, 4].map(() => 1 + Math.floor(this.random() * 250)));
        this.input = [0, 100, 0, 0, 0, 0, 0, 0, 0, 0];
        this.#restart();
        this.socket = dgram.createSocket('udp4');
        this.socket.on('message', (datagram) => this.#receive(datagram));
    }

    #restart() { Object.assign(this, { ack: 0, sequence: 0, unacknowledged: [], tick: -1, clock: null, server: null, accepted: false }); }

    get port() { return this.socket.address().port; }

    /** Returns the tick for the next input, by a clock that continues without snapshots, like that of real clients. */
    get #intended() {
        this.clock ??= { tick: this.tick, ms: performance.now() };
        return this.clock.tick + PREDICTED_TICKS + Math.floor((performance.now() - this.clock.ms) / TICK_MS);
    }

    async join(ms = JOIN_MS) {
        this.#ask();
        this.repeat = setInterval(() => this.#again(), REPEAT_MS);
        this.inputs = setInterval(() => { if (this.tick >= 0 && !this.silent) this.#play(); }, INPUT_MS);
        await waitUntil(`${this.name} to be in the game`, () => this.snapshots.length > 1 || this.closed !== null, ms);
        if (this.closed !== null) throw new Error(`${this.name} did not get in: ${this.closed}`);
        return this;
    }

    /** Waits until the client has entered the game on another map. */
    async changesMap(ms = JOIN_MS) {
        const maps = this.maps.length;
        await waitUntil(`${this.name} to play on another map`, () => this.maps.length > maps && this.maps.at(-1).snapshots > 1, ms);
    }

    say(text) { this.#vital(message(gameId('cl_say'), false, int(CHAT.all), int(-1), string(text))); }
    whisper(client, text) { this.#vital(message(gameId('cl_say'), false, int(CHAT.whisper), int(client), string(text))); }
    command(name, text) { this.#vital(message(gameId('cl_command'), false, string(name), string(text))); }
    /** Returns any game message of a client. */
    tell(name, ...fields) { this.#vital(message(gameId(name), false, ...fields)); }
    authenticate(password) { this.#vital(message(systemId('rcon_auth'), true, string(password))); }
    console(line) { this.#vital(message(systemId('rcon_cmd'), true, string(line))); }
    /** Returns the id of a player by name. */
    idOf(name) { return [...this.players].find(([, each]) => each.name === name)?.[0]; }

    async leave() {
        this.#stop();
        const goodbye = packet(this.server, FLAG.control, this.ack, 0, Buffer.from([KIND.close]));
        await new Promise((resolve) => { this.socket.send(goodbye, this.target, '127.0.0.1', resolve); });
        this.vanish();
    }

    vanish() {
        this.#stop();
        if (SevenBot.all.delete(this)) this.socket.close();
    }

    #stop() {
        clearInterval(this.repeat);
        clearInterval(this.inputs);
    }

    #send(datagram) { this.socket.send(datagram, this.target, '127.0.0.1'); }

    #ask() {
        const behind = Buffer.concat([Buffer.from([KIND.token]), this.token, Buffer.alloc(PADDING)]);
        this.#send(packet(NO_TOKEN, FLAG.control, 0, 0, behind));
    }

    #connect() {
        const behind = Buffer.concat([Buffer.from([KIND.connect]), this.token, Buffer.alloc(PADDING)]);
        this.#send(packet(this.server, FLAG.control, 0, 0, behind));
    }

    #again() {
        if (!this.server) this.#ask();
        else if (!this.accepted) this.#connect();
        else for (const each of this.unacknowledged) this.#send(packet(this.server, 0, this.ack, 1, each.chunk));
    }

    #vital(body) {
        this.sequence = (this.sequence + 1) % SEQUENCES;
        const { sequence } = this;
        this.unacknowledged.push({ sequence, chunk: chunk(body, { sequence, resend: true }) });
        this.#send(packet(this.server, 0, this.ack, 1, chunk(body, { sequence })));
    }

    #play() {
        const chance = (probability) => this.random() < probability;
        if (chance(0.1)) this.input[0] = Math.floor(this.random() * 3) - 1;
        if (chance(0.2)) this.input[1] = Math.round(this.random() * 400 - 200);
        this.input[3] = chance(0.2) ? 1 : 0;
        if (chance(0.2)) this.input[4] += 1;
        if (chance(0.1)) this.input[5] = chance(0.5) ? 1 : 0;
        const body = message(systemId('input'), true, int(this.keptAck ?? this.tick), int(this.#intended), int(INPUT_BYTES),
            ...this.input.map(int), int(0));
        this.#send(packet(this.server, 0, this.ack, 1, chunk(body)));
    }

    #receive(datagram) {
        if (this.closed !== null || this.random() < this.loss) return;
        const read = readPacket(datagram);
        if (!read || !read.token.equals(this.token)) return;
        if (read.flags & FLAG.control) {
            this.#onControl(read.payload[0], read.payload.subarray(1));
            return;
        }
        const isNew = ({ sequence }) => (sequence - read.ack + SEQUENCES) % SEQUENCES < SEQUENCES / 2 && sequence !== read.ack;
        this.unacknowledged = this.unacknowledged.filter(isNew);
        if (read.flags & FLAG.resend) this.#again();
        for (const { sequence, body } of chunksOf(read)) {
            if (sequence !== undefined) {
                if (sequence !== (this.ack + 1) % SEQUENCES) continue;
                this.ack = sequence;
            }
            if (body.length) this.#onMessage(body);
        }
    }

    #onControl(kind, body) {
        if (kind === KIND.token && !this.server) {
            this.server = Buffer.from(body.subarray(0, 4));
            this.#connect();
        } else if (kind === KIND.accept && !this.accepted) {
            this.accepted = true;
            this.#vital(message(systemId('info'), true, string(VERSION), string(this.password), int(CLIENT_VERSION)));
        } else if (kind === KIND.close) {
            [this.closed] = takeString(Buffer.concat([body, Buffer.from([0])]));
            this.#stop();
        }
    }

    #onMessage(body) {
        const { id, system, fields } = splitMessage(body);
        const name = id === 0 ? undefined : messageName(id, system);
        if (name?.startsWith('snap')) this.#onSnapshot(name, fields);
        else if (name) this[`on_${name}`]?.(fields);
    }

    #onSnapshot(name, fields) {
        const snapshot = this.reader?.take(name, fields);
        this.crcErrors += this.reader?.crcErrors ?? 0;
        if (!snapshot) return;
        this.tick = Math.max(this.tick, snapshot.tick);
        this.snapshots.push({ map: this.maps.length, ...snapshot });
        this.maps.at(-1).snapshots += 1;
    }

    on_map_change(fields) {
        const [name, rest] = takeString(fields);
        const [[crc, size, perRequest, chunkSize]] = takeInts(rest, 4);
        this.maps.push({ name, crc, size, perRequest, chunkSize, snapshots: 0, bytes: Buffer.alloc(0), chunks: 0 });
        Object.assign(this, { tick: -1, clock: null });
        this.reader = new Snapshots();
        this.players.clear();
        if (this.download) this.#vital(message(systemId('request_map_data'), true));
        else this.#vital(message(systemId('ready'), true));
    }

    on_map_data(fields) {
        const map = this.maps.at(-1);
        map.bytes = Buffer.concat([map.bytes, fields]);
        map.chunks += 1;
        if (map.bytes.length >= map.size) this.#vital(message(systemId('ready'), true));
        else if (map.chunks % map.perRequest === 0) this.#vital(message(systemId('request_map_data'), true));
    }

    on_con_ready() {
        const parts = Array.from({ length: SKIN_PARTS });
        this.#vital(message(gameId('cl_start_info'), false, string(this.name), string('twscope'), int(-1),
            ...parts.map(() => string('standard')), ...parts.map(() => int(0)), ...parts.map(() => int(0))));
    }

    on_sv_ready_to_enter() { this.#vital(message(systemId('enter_game'), true)); }

    on_sv_client_info(fields) {
        const [[id, local, team], rest] = takeInts(fields, 3);
        this.players.set(id, { name: takeString(rest)[0], local: local !== 0, team });
    }

    on_sv_client_drop(fields) { this.players.delete(takeInts(fields, 1)[0][0]); }

    on_sv_chat(fields) {
        const [[mode, from], rest] = takeInts(fields, 3);
        this.chat.push({ mode, from, text: takeString(rest)[0] });
    }

    on_rcon_auth_on() { this.authed = true; }
    on_rcon_line(fields) { this.rcon.push(takeString(fields)[0]); }
}

/** Stops clients that a failed test may have left running. */
export function endSevenBots() { for (const bot of SevenBot.all) bot.vanish(); }
