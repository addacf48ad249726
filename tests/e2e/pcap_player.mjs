// Replays one side of a captured game between two hosts: sends each datagram as soon as all datagrams before it in the capture have
// arrived. It does not decode them, and for the network and its observers the replay is the same as a game.
//   node pcap_player.mjs client|server CAPTURE ADDRESS PORT [ROUNDS]     ADDRESS PORT: the server's
import dgram from 'node:dgram';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const HEADER = 24;
const FRAME_HEADER = 16;
const ETHERNET = 14;
const UDP_HEADER = 8;
const GAME_PORT = 8303;
const SOCKET_BYTES = 4 << 20;

/** Returns the datagrams of one of our captures (Ethernet, IPv4) in order: { flow, port, toServer, bytes }; `port`: the server's. */
export function datagramsOf(file) {
    const bytes = readFileSync(file);
    const found = [];
    for (let at = HEADER; at < bytes.length;) {
        const size = bytes.readUInt32LE(at + 8);
        const packet = bytes.subarray(at + FRAME_HEADER + ETHERNET, at + FRAME_HEADER + size);
        at += FRAME_HEADER + size;
        const udp = packet.subarray((packet[0] & 15) * 4);
        const [source, destination] = [udp.readUInt16BE(0), udp.readUInt16BE(2)];
        found.push({ source, destination, bytes: udp.subarray(UDP_HEADER, udp.readUInt16BE(4)) });
    }
    // The server's port is the one that all datagrams have in common.
    const server = [found[0].source, found[0].destination]
        .find((port) => found.every(({ source, destination }) => source === port || destination === port)) ?? GAME_PORT;
    // A datagram to a client that has not sent anything is left out.
    const spoke = new Set();
    return found.map(({ source, destination, bytes: payload }) =>
        ({ flow: source === server ? destination : source, port: server, toServer: destination === server, bytes: payload }))
        .filter(({ flow, toServer }) => (toServer && spoke.add(flow)) || spoke.has(flow));
}

/** Sends the next datagram only after the previous one, because sockets may reorder them. */
const sent = (socket, bytes, port, address) => new Promise((resolve, reject) => {
    socket.send(bytes, port, address, (error) => (error ? reject(error) : resolve()));
});

class Side {
    constructor(isServer, datagrams, address, port) {
        this.isServer = isServer;
        this.address = address;
        this.port = port;
        this.theirs = datagrams.filter(({ toServer }) => toServer === isServer);
        // For each of our datagrams, the number of the peer's datagrams before it.
        this.ours = datagrams.flatMap((datagram, index) => (datagram.toServer === isServer ? []
            : [{ ...datagram, behind: datagrams.slice(0, index).filter(({ toServer }) => toServer === isServer).length }]));
        this.turn = Promise.resolve(); // sends one datagram after the other
        this.begin();
    }

    begin() {
        this.flows = new Map(); // for the server, the address of each client; for a client, its socket
        this.waited = new Set(this.theirs);
        this.sent = 0;
    }

    async #socket(port) {
        const socket = dgram.createSocket({ type: this.address.includes(':') ? 'udp6' : 'udp4', recvBufferSize: SOCKET_BYTES });
        socket.on('message', (bytes, from) => this.#onMessage(bytes, from));
        await new Promise((resolve) => { socket.bind(port, this.isServer ? this.address : undefined, resolve); });
        return socket;
    }

    async #send(flow, bytes) {
        if (this.isServer) {
            const { address, port } = this.flows.get(flow);
            await sent(this.socket, bytes, port, address);
            return;
        }
        if (!this.flows.has(flow)) this.flows.set(flow, await this.#socket(0));
        await sent(this.flows.get(flow), bytes, this.port, this.address);
    }

    /** Sockets are read in any order. */
    #onMessage(bytes, from) {
        const isFrom = (flow) => !this.isServer || !this.flows.has(flow) || this.flows.get(flow).port === from.port;
        const found = [...this.waited].find((each) => isFrom(each.flow) && each.bytes.equals(bytes));
        if (!found) throw new Error('a datagram that nobody sent, or twice');
        this.waited.delete(found);
        if (this.isServer) this.flows.set(found.flow, from);
        this.turn = this.turn.then(() => this.#go());
    }

    async #go() {
        while (this.sent < this.ours.length && this.theirs.length - this.waited.size >= this.ours[this.sent].behind) {
            const { flow, bytes } = this.ours[this.sent];
            this.sent += 1;
            await this.#send(flow, bytes);
        }
        if (this.sent === this.ours.length && this.waited.size === 0) this.done();
    }

    async play() {
        this.begin();
        const done = new Promise((resolve) => { this.done = resolve; });
        if (this.isServer && !this.socket) {
            this.socket = await this.#socket(this.port);
            console.log('waiting');
        }
        this.turn = this.turn.then(() => this.#go());
        await done;
        if (!this.isServer) for (const socket of this.flows.values()) socket.close();
    }
}

async function main([role, capture, address, port, rounds = '1']) {
    const side = new Side(role === 'server', datagramsOf(capture), address, Number(port));
    for (let round = 0; round < Number(rounds); round += 1) await side.play();
    console.log('played');
    side.socket?.close();
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main(process.argv.slice(2));
