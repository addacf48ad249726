// The twscope under test, and the records it wrote.
import { existsSync, readFileSync } from 'node:fs';
import { Child, freePort, isBound, waitUntil } from './process.mjs';

const START_MS = 10000;
const STOP_MS = 10000;

/** Program under test: the last argument of every test program. */
export const TWSCOPE = process.argv.at(-1);

/** Starts twscope before 127.0.0.1:`server` and waits until it listens. */
export async function startProxy({ server, listen, records, args = [] }) {
    const port = listen ?? await freePort();
    const child = new Child('twscope', TWSCOPE, ['proxy', '-s', `127.0.0.1:${server}`, '-l', `127.0.0.1:${port}`,
        '-o', records, ...args]);
    await waitUntil('twscope to listen', () => isBound(port) || !child.running, START_MS);
    if (!child.running) throw new Error(`twscope ended (${child.status}):\n${child.log}`);
    return new Proxy(child, port, records);
}

class Proxy {
    constructor(child, port, file) {
        this.child = child;
        this.port = port;
        this.file = file;
    }

    /** Asks it to drain and returns its exit code. */
    async drain(signal = 'SIGINT') {
        this.child.signal(signal);
        await waitUntil('twscope to drain', () => !this.child.running, STOP_MS);
        return this.child.status;
    }

    records() { return readRecords(this.file); }
}

/** Every whole line of a records file as an object. */
export function readRecords(file) {
    if (!existsSync(file)) return [];
    return readFileSync(file, 'utf8').split('\n').slice(0, -1).map((line) => JSON.parse(line));
}
