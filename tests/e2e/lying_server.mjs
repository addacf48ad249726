// A scripted server of a game with two tees. It tells each client what the test wants, in datagrams like those of a real server.
import dgram from 'node:dgram';
import { chunk, FLAG, GAME, KIND, messagesOf, SEQUENCES, SYSTEM } from './chunks.mjs';
import { int, string } from './ints.mjs';
import { INFO, MAGIC, message } from './raw_client.mjs';

const TOKEN = Buffer.from('0badcafe', 'hex');
const STEP_MS = 40;
const CHARACTER = { type: 9, size: 22 };
const PLAYER_INFO = 10;
const FROM_NOTHING = -1;

export class LyingServer {
    /** `tell(client, tee, tick)`: returns the position of a tee that the client, counted from 0, is told. */
    constructor(tell) {
        Object.assign(this, { tell, clients: new Map(), tick: 1000 });
        this.socket = dgram.createSocket('udp4');
        this.socket.on('message', (datagram, from) => this.#receive(datagram, from));
    }

    async start() {
        await new Promise((resolve) => { this.socket.bind(0, '127.0.0.1', resolve); });
        this.port = this.socket.address().port;
        this.steps = setInterval(() => this.#step(), STEP_MS);
        return this;
    }

    stop() {
        clearInterval(this.steps);
        this.socket.close();
    }

    #send(client, flags, count, ...bytes) {
        this.socket.send(Buffer.concat([Buffer.from([flags | (client.ack >> 8), client.ack & 0xff, count]), ...bytes]), client.port,
            client.address);
    }

    #vital(client, body) {
        client.sequence = (client.sequence + 1) % SEQUENCES;
        this.#send(client, 0, 1, chunk(body, { sequence: client.sequence }), TOKEN);
    }

    /** Returns the number of a client by its address; twscope gives each client its own address. */
    #receive(datagram, { address, port }) {
        if (datagram[0] & FLAG.connless) return;
        const from = `${address}:${port}`;
        const known = this.clients.get(from);
        if (datagram[0] & FLAG.control) {
            if (datagram[3] === KIND.connect && !known) {
                const client = { address, port, number: this.clients.size, ack: 0, sequence: 0, plays: false };
                this.clients.set(from, client);
                this.#send(client, FLAG.control, 0, Buffer.from([KIND.connectAccept]), MAGIC, TOKEN);
            }
            return;
        }
        for (const [id, system] of known ? messagesOf(datagram, known, TOKEN.length) : []) this.#answer(known, id, system);
    }

    #answer(client, id, system) {
        const info = INFO[0] >> 1;
        if (system && id === info) this.#vital(client, message(SYSTEM.mapChange, true, string('nowhere'), int(1), int(100)));
        else if (system && id === SYSTEM.ready) this.#vital(client, message(SYSTEM.conReady, true));
        else if (!system && id === GAME.startInfo) this.#vital(client, message(GAME.readyToEnter, false));
        else if (system && id === SYSTEM.enterGame) client.plays = true;
    }

    #step() {
        this.tick += 2;
        for (const client of this.clients.values()) if (client.plays) this.#show(client);
    }

    /** Returns a full snapshot: two tees and their players, one of which is the client's. */
    #show(client) {
        const items = [0, 1].flatMap((tee) => {
            const ints = new Array(CHARACTER.size).fill(0);
            const { x, y } = this.tell(client.number, tee, this.tick);
            Object.assign(ints, { 0: this.tick, 1: x, 2: y, 8: -1 }); // 8: no player is hooked
            return [{ type: CHARACTER.type, id: tee, ints },
                { type: PLAYER_INFO, id: tee, ints: [tee === client.number ? 1 : 0, tee, 0, 0, 0] }];
        }).sort((a, b) => a.type - b.type || a.id - b.id);
        const checksum = items.flatMap(({ ints }) => ints).reduce((sum, value) => (sum + value) | 0, 0);
        const delta = Buffer.concat([int(0), int(items.length), int(0),
            ...items.flatMap(({ type, id, ints }) => [int(type), int(id), ...ints.map(int)])]);
        const body = message(SYSTEM.snapSingle, true, int(this.tick), int(this.tick - FROM_NOTHING), int(checksum), int(delta.length), delta);
        this.#send(client, 0, 1, chunk(body), TOKEN);
    }
}
