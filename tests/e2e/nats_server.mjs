// A real nats-server with JetStream, only on loopback: on a port chosen by the system, with its store in a folder of the test.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { need } from './need.mjs';
import { Child, waitUntil } from './process.mjs';

export const NATS_SERVER = '/usr/sbin/nats-server';
const START_MS = 10000;

need(NATS_SERVER);

let made = 0;

/** @param config lines of its configuration besides port and store */
export async function startNats({ folder, config = '', port = -1, store, jetstream = true }) {
    const home = join(folder, `nats-${made += 1}`);
    mkdirSync(home);
    const kept = store ?? join(home, 'store');
    const file = join(home, 'nats.conf');
    writeFileSync(file, `${jetstream ? `jetstream { store_dir: "${kept}" }` : ''}\n${config}\n`);
    const child = new Child('nats-server', NATS_SERVER, ['-c', file, '-a', '127.0.0.1', '-p', `${port}`, '--ports_file_dir', home]);
    const ports = () => readdirSync(home).find((name) => name.endsWith('.ports'));
    await child.waitFor(/Server is ready/, START_MS);
    await waitUntil('the ports of nats-server', () => ports() && readFileSync(join(home, ports()), 'utf8').includes('}'), START_MS);
    const url = JSON.parse(readFileSync(join(home, ports()), 'utf8')).nats[0];
    return new Nats({ child, folder, config, store: kept, port: Number(/:(\d+)$/.exec(url)[1]) });
}

/** Returns a test with a server of its own. */
export const withNats = (options, body) => async () => {
    const nats = await startNats(options);
    await body(nats);
    await nats.stop();
};

class Nats {
    constructor(parts) { Object.assign(this, parts); }

    get url() { return `nats://127.0.0.1:${this.port}`; }

    /** Kills the process, as after a power failure of its machine. */
    kill() { return this.child.stop('SIGKILL'); }

    /** Starts the server again at the same port with the same store. */
    again() {
        return startNats({ folder: this.folder, config: this.config, port: this.port, store: this.store });
    }

    stop() { return this.child.stop(); }
}

