// Hosts of a small network on this machine: network namespaces joined by virtual cables. A namespace ends with the process that holds it,
// so no cleanup is needed.
import { execFileSync, spawnSync } from 'node:child_process';
import { readlinkSync } from 'node:fs';
import { Child, waitUntil } from './process.mjs';

const MAKE_MS = 5000;
const NETWORK = '/proc/self/ns/net';

/** If only root may make namespaces, starts this program again in a user namespace of its own, in which it is root. */
export function asRoot() {
    if (process.getuid() === 0) return;
    const again = spawnSync('unshare', ['-Ur', process.execPath, ...process.argv.slice(1)], { stdio: 'inherit' });
    process.exit(again.status ?? 1);
}

/** A host with only a loopback interface. Throws if the system permits no namespaces. */
export class Host {
    static async create(name) {
        const host = new Host();
        host.holder = new Child(`the network namespace of ${name}`, 'unshare', ['-n', 'sleep', 'infinity']);
        host.pid = host.holder.process.pid;
        const ours = readlinkSync(NETWORK);
        const theirs = () => { try { return readlinkSync(`/proc/${host.pid}/ns/net`); } catch { return ours; } };
        await waitUntil(host.holder.name, () => theirs() !== ours || !host.holder.running, MAKE_MS);
        if (!host.holder.running) throw new Error(`cannot make a network namespace, which this test needs: ${host.holder.log}`);
        host.run('ip', 'link', 'set', 'lo', 'up');
        return host;
    }

    /** Runs a command on this host and returns its output. */
    run(...command) {
        return execFileSync('nsenter', ['-t', `${this.pid}`, '-n', ...command], { encoding: 'utf8' });
    }

    /** Connects two hosts by a cable; `ours` and `theirs` are lists of addresses with prefix lengths. */
    join(other, device, ours, theirs) {
        this.run('ip', 'link', 'add', device, 'type', 'veth', 'peer', 'name', device, 'netns', `${other.pid}`);
        for (const [host, addresses] of [[this, ours], [other, theirs]]) {
            for (const address of addresses) host.run('ip', 'address', 'add', address, 'dev', device);
            host.run('ip', 'link', 'set', device, 'up');
        }
    }

    stop() { return this.holder.stop(); }
}
