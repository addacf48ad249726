// Starts the twscope under test, and reads the records that it wrote.
import { existsSync, readFileSync } from 'node:fs';
import { Child, childrenOf, freePort, isBound, waitUntil } from './process.mjs';

const START_MS = 10000;
const STOP_MS = 10000;

/** The program under test: the last argument of every test program. */
export const TWSCOPE = process.argv.at(-1);

/**
 * Starts twscope before `host`:`server` and waits until it listens.
 * @param namespace a process in whose network namespace twscope runs
 */
export async function startProxy({ server, host = '127.0.0.1', address = '127.0.0.1', listen, records, args = [], namespace }) {
    const port = listen ?? await freePort();
    const child = new Child('twscope', TWSCOPE, ['proxy', '-s', `${host}:${server}`, '-l', `${address}:${port}`,
        '-o', records, ...args], { namespace });
    // Waits for the log line that everything is open; without a log, waits for the port.
    const quiet = args.includes('--log-level');
    await waitUntil('twscope to listen', () => (quiet ? isBound(port, namespace) : /the server sees/.test(child.errors))
        || !child.running, START_MS);
    if (!child.running) throw new Error(`twscope ended (${child.status}):\n${child.log}`);
    return new Proxy(child, port, records);
}

class Proxy {
    constructor(child, port, file) {
        this.child = child;
        this.port = port;
        this.file = file;
    }

    /** Ends twscope, which writes the rest, and returns its exit code. */
    async drain(signal = 'SIGINT') {
        this.child.signal(signal);
        await waitUntil('twscope to drain', () => !this.child.running, STOP_MS);
        return this.child.status;
    }

    records() { return readRecords(this.file); }

    /** Returns the observer process. */
    observer() { return childrenOf(this.child.process.pid)[0]; }
}

/**
 * Returns whether a record reports a frozen client. On a test machine with two cores, the whole machine may stall now and then; such a
 * finding is true, but not caused by a test.
 */
export const isFreeze = ({ id }) => id === 'snapshot.client_stalled';

/** Returns every complete line of a records file as an object. */
export function readRecords(file) {
    if (!existsSync(file)) return [];
    return readFileSync(file, 'utf8').split('\n').slice(0, -1).map((line) => JSON.parse(line));
}
