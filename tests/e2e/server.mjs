// The real DDNet server of the distribution, alone on loopback.
import { closeSync, constants, existsSync, mkdirSync, openSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { need } from './need.mjs';
import { Child, isBound, waitUntil } from './process.mjs';

const SERVER = '/usr/games/DDNet-Server';
export const MAPS = '/usr/share/games/ddnet/data/maps';
const START_MS = 20000;

need(SERVER);

/**
 * Starts a server in `folder` and waits until it accepts clients. `settings` come last, so they override the defaults.
 * @param namespace a process in whose network namespace the server runs
 */
export async function startServer({ folder, port, map = 'Tutorial', settings = [], namespace }) {
    const home = join(folder, `server-${port}`);
    const fifo = join(home, 'console');
    mkdirSync(home, { recursive: true });
    const child = new Child('the DDNet server', SERVER, [
        'sv_name twscope', 'bindaddr 127.0.0.1', 'sv_ipv4only 1', `sv_port ${port}`, 'sv_register 0', 'sv_sixup 0',
        'sv_max_clients 64', 'sv_max_clients_per_ip 64', 'sv_connlimit 100', 'sv_connlimit_time 0', 'sv_netlimit 0',
        'sv_spamprotection 0', 'sv_inactivekick 0', 'sv_use_sql 0', 'sv_rcon_password twscope', `sv_map "${map}"`,
        `sv_input_fifo "${fifo}"`, ...settings,
    ], { cwd: home, env: { ...process.env, HOME: home }, namespace });
    await waitUntil('the DDNet server to listen', () => isBound(port, namespace) || !child.running, START_MS);
    await child.waitFor(/server: version/, START_MS);
    return new Server(child, port, fifo);
}

class Server {
    constructor(child, port, fifo) {
        this.child = child;
        this.port = port;
        this.fifo = fifo;
    }

    /** Enters a line on the server's console. */
    async command(line) {
        await waitUntil('the console of the server', () => existsSync(this.fifo), START_MS);
        // Without O_NONBLOCK, this would wait for ever if the server has ended.
        const file = openSync(this.fifo, constants.O_WRONLY | constants.O_NONBLOCK);
        writeSync(file, `${line}\n`);
        closeSync(file);
    }

    stop() { return this.child.stop(); }
}
