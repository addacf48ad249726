// The real Teeworlds 0.7 server of the distribution, alone on loopback.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { need } from './need.mjs';
import { Child, isBound, waitUntil } from './process.mjs';

const SERVER = '/usr/games/teeworlds-server';
export const SEVEN_MAPS = '/usr/share/games/teeworlds/data/maps';
const START_MS = 20000;

need(SERVER);

/** Starts a server in `folder` and waits until it accepts clients. `settings` come last, so they override the defaults. */
export async function startTeeworlds({ folder, port, map = 'dm1', settings = [] }) {
    const home = join(folder, `teeworlds-${port}`);
    mkdirSync(home, { recursive: true });
    const file = 'twscope.cfg'; // the server looks for this file in its working folder
    writeFileSync(join(home, file), ['sv_name twscope', 'bindaddr 127.0.0.1', `sv_port ${port}`, 'sv_register 0', 'sv_external_port 0',
        'sv_max_clients 16', 'sv_max_clients_per_ip 16', 'sv_rcon_password twscope', 'sv_spamprotection 0', 'sv_inactivekick_time 0',
        `sv_map ${map}`, ...settings].join('\n'));
    const child = new Child('the Teeworlds server', SERVER, ['-f', file], { cwd: home, env: { ...process.env, HOME: home } });
    await waitUntil('the Teeworlds server to listen', () => isBound(port) || !child.running, START_MS);
    if (!child.running) throw new Error(`the Teeworlds server ended (${child.status}):\n${child.log}`);
    return { child, port, stop: () => child.stop() };
}
