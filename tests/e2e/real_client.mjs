// The graphical client of the distribution (Debian: ddnet, xvfb), on a virtual screen.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { need } from './need.mjs';
import { Child, delay, waitUntil } from './process.mjs';

const CLIENT = '/usr/games/DDNet';
const XVFB = '/usr/bin/Xvfb';
const START_MS = 40000;
const SCREENS = 100; // number of the first virtual screen to try

need(CLIENT, XVFB);

const SETTINGS = ['cl_save_settings 0', 'cl_show_welcome 1', 'cl_skip_start_menu 1', 'cl_download_skins 0',
    'cl_download_community_skins 0', 'cl_map_download_url "https://127.0.0.1:9"', 'br_indicate_finished 0',
    'cl_auto_demo_record 0', 'cl_reconnect_timeout 0', 'cl_reconnect_full 0', 'snd_enable 0', 'gfx_fullscreen 0',
    'gfx_screen_width 320', 'gfx_screen_height 240', 'gfx_vsync 0', 'gfx_refresh_rate 60', 'cl_refresh_rate 100',
    'gfx_high_detail 0', 'debug 1', 'loglevel 4', 'stdout_output_level 2', 'console_output_level 2'];

async function startScreen() {
    for (let number = SCREENS; ; number += 1) {
        const screen = new Child('Xvfb', XVFB, [`:${number}`, '-screen', '0', '640x480x24', '-nolisten', 'tcp', '-noreset']);
        await delay(1000);
        if (screen.running) return { screen, display: `:${number}` };
        if (number > SCREENS + 20) throw new Error(screen.log);
    }
}

/** Starts a client that plays on `port` of this host, and waits until it is in the game. */
export async function startRealClient({ folder, port, name = 'nameless' }) {
    const home = join(folder, 'client');
    const data = join(home, '.local/share/ddnet');
    mkdirSync(data, { recursive: true });
    writeFileSync(join(data, 'ddnet-serverlist-urls.cfg'), 'https://127.0.0.1:9/none.json\n');
    writeFileSync(join(data, 'autoexec_client.cfg'), [...SETTINGS, `player_name ${name}`].join('\n') + '\n');
    const { screen, display } = await startScreen();
    const child = new Child('the DDNet client', CLIENT, [`connect 127.0.0.1:${port}`], {
        cwd: home,
        env: { ...process.env, HOME: home, DISPLAY: display, SDL_AUDIODRIVER: 'dummy', SDL_VIDEODRIVER: 'x11',
            LIBGL_ALWAYS_SOFTWARE: '1', LP_NUM_THREADS: '1' },
    });
    await waitUntil('the client to be in the game', () => /entered and joined the game/.test(child.log) || !child.running, START_MS);
    if (!child.running) throw new Error(`the client ended (${child.status}):\n${child.log.slice(-2000)}`);
    return { child, async stop() { await child.stop(); await screen.stop(); } };
}
