// Child processes, ports, deadlines and temporary folders, for every end-to-end program.
// There are no fixed sleeps: every wait has a condition and a deadline.
import { execFile, spawn } from 'node:child_process';
import dgram from 'node:dgram';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const POLL_MS = 20;
const KILL_AFTER_MS = 5000;
// Makes the kernel kill a child when this process is killed, so that no child remains.
const WITH_PARENT = existsSync('/usr/bin/setpriv') ? ['/usr/bin/setpriv', '--pdeathsig', 'TERM'] : [];

export const delay = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Waits until `condition` returns a true value, and returns the value; throws after `ms`. `what` is a text, or returns one. */
export async function waitUntil(what, condition, ms) {
    for (const end = Date.now() + ms; ; await delay(POLL_MS)) {
        const value = await condition();
        if (value) return value;
        if (Date.now() > end) throw new Error(`waited ${ms} ms in vain for: ${typeof what === 'function' ? what() : what}`);
    }
}

/** Runs a program to its end. The bots of this process play on meanwhile; while spawnSync waits, they answer nobody. */
export const runToEnd = (program, args) => new Promise((resolve) => {
    execFile(program, args, { encoding: 'utf8', maxBuffer: 1 << 30 }, (error, stdout, stderr) => resolve({ status: error ? error.code : 0, stdout, stderr }));
});

/** Returns the processes that a process has started. */
export const childrenOf = (pid) => readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number);

/**
 * Returns whether a process uses this UDP port. Does not bind, so it cannot disturb a process that is about to bind.
 * @param pid process in whose network namespace the port is
 */
export function isBound(port, pid = 'self') {
    const suffix = `:${port.toString(16).toUpperCase().padStart(4, '0')} `;
    return [`/proc/${pid}/net/udp`, `/proc/${pid}/net/udp6`].some((file) => {
        if (!existsSync(file)) return false;
        return readFileSync(file, 'latin1').split('\n').some((line) => line.slice(0, 60).split(/(?<= )/)
            .filter((word) => word.trim() !== '')[1]?.endsWith(suffix));
    });
}

const givenPorts = new Set();

/** Returns a free UDP port that it has not returned before, because a server and its proxy ask one after the other. */
export function freePort() {
    return new Promise((resolve, reject) => {
        const socket = dgram.createSocket('udp4');
        socket.once('error', reject);
        socket.bind(0, '127.0.0.1', () => {
            const { port } = socket.address();
            const isNew = !givenPorts.has(port);
            givenPorts.add(port);
            socket.close(() => resolve(isNew ? port : freePort()));
        });
    });
}

/** A child process in its own process group, so that Ctrl-C reaches only this program, which decides the order of ending. */
export class Child {
    static all = new Set();

    /**
     * @param options options of spawn, and `show`: print the output on our terminal instead of storing it in `this.output`;
     *     `namespace`: a process in whose network namespace the child runs
     */
    constructor(name, command, args, { show = false, namespace, ...options } = {}) {
        this.name = name;
        this.output = '';
        this.errors = '';
        this.status = null;
        Child.all.add(this);
        const inside = namespace ? ['nsenter', '-t', `${namespace}`, '-n'] : [];
        const [file, ...rest] = [...WITH_PARENT, ...inside, command, ...args];
        const out = show ? 'inherit' : 'pipe';
        this.process = spawn(file, rest, { detached: true, stdio: ['ignore', out, out], ...options });
        this.process.stdout?.on('data', (data) => { this.output += data; });
        this.process.stderr?.on('data', (data) => { this.errors += data; });
        this.ended = new Promise((resolve) => {
            this.process.once('error', (error) => resolve(this.#end(`cannot start: ${error.message}`)));
            this.process.once('close', (code, signal) => resolve(this.#end(signal ?? code)));
        });
    }

    #end(status) {
        this.status ??= status;
        return this.status;
    }

    get running() { return this.status === null; }

    /** All output so far, for error messages. */
    get log() { return this.output + this.errors; }

    async waitFor(pattern, ms) {
        await waitUntil(`${this.name}: ${pattern}`, () => pattern.test(this.log) || !this.running, ms);
        if (!pattern.test(this.log)) throw new Error(`${this.name} ended (${this.status}):\n${this.log.slice(-2000)}`);
    }

    signal(name) {
        if (this.running) this.process.kill(name);
    }

    /** Asks the process to end, kills it after a while, and returns its exit code or the signal that ended it. */
    async stop(signal = 'SIGTERM') {
        this.signal(signal);
        const insist = setTimeout(() => this.signal('SIGKILL'), KILL_AFTER_MS);
        const status = await this.ended;
        clearTimeout(insist);
        return status;
    }
}

/** Ends the children that a failed test left running; otherwise the test program would never end. */
export function endChildren() {
    for (const child of Child.all) child.signal('SIGKILL');
}

const folders = [];

/** Returns a temporary folder that is removed when this process ends, also on SIGINT and SIGTERM. */
export function temporaryFolder() {
    for (const signal of ['SIGINT', 'SIGTERM']) {
        if (process.listenerCount(signal) === 0) process.once(signal, () => process.exit(1));
    }
    const folder = mkdtempSync(join(tmpdir(), 'twscope-'));
    if (folders.push(folder) === 1) process.once('exit', () => folders.forEach((each) => rmSync(each, { recursive: true, force: true })));
    return folder;
}
