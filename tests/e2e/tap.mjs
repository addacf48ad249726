// A transparent forwarder: passes datagrams on unchanged, unless told otherwise, and stores them for each client and direction.
// One before and one behind twscope show what twscope forwards, and need no privileges.
import dgram from 'node:dgram';
import { closeSync, openSync, writeSync } from 'node:fs';

const LOOPBACK = '127.0.0.1';
const PCAP_IPV4 = 228; // link type: packets begin with the IPv4 header
const SOCKET_BYTES = 4 << 20;

class Flow {
    /** @param port the client's port in this flow */
    constructor(port) {
        this.port = port;
        this.datagrams = []; // { time (ms), dir, bytes } in the order of arrival
    }

    /** Returns all datagrams of a direction as one string, so that two flows can be compared at once. */
    wire(dir) {
        return this.datagrams.filter((datagram) => datagram.dir === dir)
            .map(({ bytes }) => bytes.toString('hex')).join('\n');
    }
}

export class Tap {
    constructor(target) {
        this.target = target;
        this.flows = new Map(); // client's address:port -> Flow; twscope uses one port for each client
        this.sockets = [];
        this.change = (dir, bytes) => bytes; // returns what to forward: one or several datagrams, or null for none; its third argument is the flow
        this.held = null; // the server's datagrams that wait after hold()
    }

    static async open(target) {
        const tap = new Tap(target);
        tap.socket = await tap.#bound((bytes, client) => tap.#fromClient(bytes, client));
        tap.port = tap.socket.address().port;
        return tap;
    }

    #bound(onMessage) {
        const socket = dgram.createSocket({ type: 'udp4', recvBufferSize: SOCKET_BYTES });
        this.sockets.push(socket);
        socket.on('message', onMessage);
        return new Promise((resolve, reject) => {
            socket.once('error', reject);
            socket.bind(0, LOOPBACK, () => resolve(socket));
        });
    }

    #fromClient(bytes, client) {
        const name = `${client.address}:${client.port}`;
        let flow = this.flows.get(name);
        if (!flow) {
            flow = new Flow(client.port);
            this.flows.set(name, flow);
            flow.upstream = this.#bound((answer) => {
                this.#remember(flow, 's2c', answer);
                const changed = this.change('s2c', answer, flow);
                const send = () => { for (const each of [changed].flat()) this.socket.send(each, client.port, client.address); };
                if (changed && this.held) this.held.push(send);
                else if (changed) send();
            });
        }
        this.#remember(flow, 'c2s', bytes);
        flow.upstream.then((socket) => {
            flow.upstreamPort = socket.address().port;
            const changed = this.change('c2s', bytes, flow);
            if (changed) socket.send(changed, this.target, LOOPBACK);
        });
    }

    /** Holds the server's datagrams until release(). */
    hold() { this.held = []; }

    release() {
        const held = this.held ?? [];
        this.held = null;
        for (const send of held) send();
    }

    #remember(flow, dir, bytes) {
        flow.datagrams.push({ time: performance.timeOrigin + performance.now(), dir, bytes });
    }

    /** Returns the flow of the client on this host with that port. */
    flowOf(port) { return this.flows.get(`${LOOPBACK}:${port}`); }

    /** Returns the number of forwarded datagrams in each direction: [c2s, s2c]. */
    get counts() {
        return ['c2s', 's2c'].map((wanted) => [...this.flows.values()].flatMap((flow) => flow.datagrams)
            .filter(({ dir }) => dir === wanted).length);
    }

    /** Writes all datagrams as a capture in which clients have the ports that `target` saw and the server has `serverPort`. */
    writePcap(file, serverPort) {
        const all = [...this.flows.values()]
            .flatMap((flow) => flow.datagrams.map((datagram) => ({ ...datagram, client: flow.upstreamPort })))
            .sort((a, b) => a.time - b.time);
        const out = openSync(file, 'w');
        const head = Buffer.alloc(24);
        head.writeUInt32LE(0xa1b2c3d4, 0);
        head.writeUInt16LE(2, 4);
        head.writeUInt16LE(4, 6);
        head.writeUInt32LE(65535, 16);
        head.writeUInt32LE(PCAP_IPV4, 20);
        writeSync(out, head);
        for (const { time, dir, bytes, client } of all) {
            const [from, to] = dir === 'c2s' ? [client, serverPort] : [serverPort, client];
            const packet = ipv4Udp(from, to, bytes);
            const record = Buffer.alloc(16);
            record.writeUInt32LE(Math.floor(time / 1000), 0);
            record.writeUInt32LE(Math.floor((time % 1000) * 1000), 4);
            record.writeUInt32LE(packet.length, 8);
            record.writeUInt32LE(packet.length, 12);
            writeSync(out, record);
            writeSync(out, packet);
        }
        closeSync(out);
    }

    close() {
        for (const socket of this.sockets) socket.close();
    }
}

function ipv4Udp(from, to, bytes) {
    const head = Buffer.alloc(28);
    head[0] = 0x45;
    head.writeUInt16BE(28 + bytes.length, 2);
    head[8] = 64;
    head[9] = 17;
    head.set([127, 0, 0, 1], 12);
    head.set([127, 0, 0, 1], 16);
    let sum = 0;
    for (let at = 0; at < 20; at += 2) sum += head.readUInt16BE(at);
    while (sum > 0xffff) sum = (sum & 0xffff) + (sum >>> 16);
    head.writeUInt16BE(~sum & 0xffff, 10);
    head.writeUInt16BE(from, 20);
    head.writeUInt16BE(to, 22);
    head.writeUInt16BE(8 + bytes.length, 24); // checksum 0: not computed, which UDP permits
    return Buffer.concat([head, bytes]);
}
