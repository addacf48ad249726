// The twscope under test, and the records it wrote.
import { existsSync, readFileSync } from 'node:fs';
import { Child, freePort, isBound, waitUntil } from './process.mjs';

const START_MS = 10000;
const STOP_MS = 10000;

/** Program under test: the last argument of every test program. */
export const TWSCOPE = process.argv.at(-1);

/**
 * Starts twscope before `host`:`server` and waits until it listens.
 * @param namespace a process in whose network namespace it runs
 */
export async function startProxy({ server, host = '127.0.0.1', address = '127.0.0.1', listen, records, args = [], namespace }) {
    const port = listen ?? await freePort();
    const child = new Child('twscope', TWSCOPE, ['proxy', '-s', `${host}:${server}`, '-l', `${address}:${port}`,
        '-o', records, ...args], { namespace });
    // It says so when all is open; without a log to say it in, the port has to do.
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

    /** Asks it to drain and returns its exit code. */
    async drain(signal = 'SIGINT') {
        this.child.signal(signal);
        await waitUntil('twscope to drain', () => !this.child.running, STOP_MS);
        return this.child.status;
    }

    records() { return readRecords(this.file); }

    /** The process that inspects. */
    observer() {
        const { pid } = this.child.process;
        return Number(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ')[0]);
    }
}

/**
 * Whether a record tells of a client whose game froze. Where tests share two cores the whole machine stands still now and then,
 * which is found truly and is nothing that a test did.
 */
export const isFreeze = ({ id }) => id === 'snapshot.client_stalled';

/** Every whole line of a records file as an object. */
export function readRecords(file) {
    if (!existsSync(file)) return [];
    return readFileSync(file, 'utf8').split('\n').slice(0, -1).map((line) => JSON.parse(line));
}
