// Repeats a capture as if it had continued: each round begins at the end of the previous one.
import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';

const FILE_HEAD = 24;
const PACKET_HEAD = 16;
const MICROSECONDS = 0xa1b2c3d4;
const GAP = 0.02; // seconds between two rounds: a tick

export class RepeatedCapture {
    constructor(path) {
        const all = gunzipSync(readFileSync(path));
        if (all.readUInt32LE(0) !== MICROSECONDS) throw new Error(`${path}: not a classic pcap of this byte order`);
        this.head = all.subarray(0, FILE_HEAD);
        this.packets = all.subarray(FILE_HEAD);
        this.places = [];
        for (let at = 0; at < this.packets.length; at += PACKET_HEAD + this.packets.readUInt32LE(at + 8)) this.places.push(at);
        this.seconds = this.#time(this.places.at(-1)) - this.#time(this.places[0]) + GAP;
    }

    #time(at) { return this.packets.readUInt32LE(at) + this.packets.readUInt32LE(at + 4) / 1e6; }

    /** Returns the packets with the times of a later round. */
    round(number) {
        const copy = Buffer.from(this.packets);
        const shift = Math.round(number * this.seconds * 1e6);
        for (const at of this.places) {
            const time = copy.readUInt32LE(at) * 1e6 + copy.readUInt32LE(at + 4) + shift;
            copy.writeUInt32LE(Math.floor(time / 1e6), at);
            copy.writeUInt32LE(time % 1e6, at + 4);
        }
        return copy;
    }
}
