// Debian's DDNet client plays a demo that was written from live traffic: to its end, without a complaint, with the chat that was
// said and the map that was in it. It needs a virtual screen, so it runs only when it is asked for:
//   ./dev test --with-client        node demo_client.mjs [PICTURE.png] TWSCOPE
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { closeSync, constants, copyFileSync, existsSync, mkdirSync, openSync, readdirSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { Bot, endPeers } from './bot.mjs';
import { need } from './need.mjs';
import { Child, freePort, temporaryFolder, waitUntil } from './process.mjs';
import { readRecords, startProxy, TWSCOPE } from './proxy.mjs';
import { MAPS, startServer } from './server.mjs';

const CLIENT = '/usr/games/DDNet';
const SCREEN = '/usr/bin/Xvfb';
const DISPLAY = ':87';
const SNAPSHOTS = 100; // about four seconds of play
const WAIT_MS = 60000;
const SETTINGS = ['player_name watcher', 'cl_save_settings 0', 'cl_show_welcome 1', 'cl_skip_start_menu 1', 'cl_download_skins 0',
    'cl_download_community_skins 0', 'cl_map_download_url "https://127.0.0.1:9"', 'br_indicate_finished 0', 'cl_auto_demo_record 0',
    'snd_enable 0', 'gfx_fullscreen 0', 'gfx_screen_width 640', 'gfx_screen_height 480', 'gfx_vsync 0', 'gfx_refresh_rate 20',
    'cl_refresh_rate 100', 'gfx_high_detail 0', 'loglevel 4'];

need(CLIENT, SCREEN, MAPS);
after(endPeers);

/** Plays and records; returns the demo and the records of the same run. */
async function film(folder, version) {
    const demos = join(folder, `demos-${version}`);
    mkdirSync(demos);
    const server = await startServer({ folder, port: await freePort(), map: 'ctf5' });
    const proxy = await startProxy({ server: server.port, records: join(folder, 'game.jsonl'),
        args: ['--maps', MAPS, '--items', 'all', '--demo', demos, '--demo-version', `${version}`] });
    const bot = await new Bot(proxy.port, 'anna', { keep: true }).join();
    bot.walk();
    await waitUntil('some play', () => bot.snapshots.length >= SNAPSHOTS / 2, WAIT_MS);
    await server.command('say to be read in the demo');
    await waitUntil('more play', () => bot.snapshots.length >= SNAPSHOTS, WAIT_MS);
    await bot.leave();
    assert.equal(await proxy.drain(), 0);
    await server.stop();
    const [name] = readdirSync(demos);
    return { demo: join(demos, name), records: readRecords(join(folder, 'game.jsonl')) };
}

/** A line on the client's console. */
async function type(fifo, line) {
    const file = openSync(fifo, constants.O_WRONLY | constants.O_NONBLOCK);
    writeSync(file, `${line}\n`);
    closeSync(file);
}

/** Plays it in the real client, which has no map of its own; returns what it says and its picture. */
async function watch(folder, demo, version) {
    const home = join(folder, `home-${version}`);
    const data = join(home, '.local/share/ddnet');
    const fifo = join(home, 'console');
    mkdirSync(data, { recursive: true });
    execFileSync('mkfifo', [fifo]);
    writeFileSync(join(data, 'ddnet-serverlist-urls.cfg'), 'https://127.0.0.1:9/none.json\n');
    writeFileSync(join(data, 'autoexec_client.cfg'), [...SETTINGS, `cl_input_fifo "${fifo}"`, ''].join('\n'));
    const client = new Child('the DDNet client', CLIENT, [demo], { env: { PATH: '/usr/games:/usr/bin:/bin', HOME: home, DISPLAY,
        SDL_AUDIODRIVER: 'dummy', SDL_VIDEODRIVER: 'x11', LIBGL_ALWAYS_SOFTWARE: '1', LP_NUM_THREADS: '1' } });
    await client.waitFor(/to be read in the demo/, WAIT_MS);
    await type(fifo, 'screenshot');
    await client.waitFor(/demo_player: end of file/, WAIT_MS);
    const pictures = () => (existsSync(join(data, 'screenshots')) ? readdirSync(join(data, 'screenshots')) : [])
        .filter((name) => name.endsWith('.png'));
    await waitUntil('the picture', () => pictures().length > 0, WAIT_MS);
    await type(fifo, 'quit');
    await waitUntil('the client to end', () => !client.running, WAIT_MS);
    return { log: client.log, picture: join(data, 'screenshots', pictures()[0]) };
}

for (const version of [6, 4]) {
    test(`the DDNet client plays a demo of version ${version} from live traffic`, async () => {
        const screen = new Child('the screen', SCREEN, [DISPLAY, '-screen', '0', '640x480x24', '-nolisten', 'tcp', '-noreset']);
        const folder = temporaryFolder();
        const { demo, records } = await film(folder, version);
        const { log, picture } = await watch(folder, demo, version);
        assert.doesNotMatch(log, /error during|empty demo|invalid snapshot|Stopped playback due to error/);
        const ticks = records.filter(({ type: kind, ok }) => kind === 'snapshot' && ok).map(({ tick }) => tick);
        const [, last] = /tick error prev=\d+ cur=(\d+)/.exec(log) ?? [];
        if (last) assert.ok(ticks.at(-1) - Number(last) <= 2, `it ends at tick ${last}, the records at ${ticks.at(-1)}`);
        const [to] = process.argv.slice(2);
        if (to?.endsWith('.png') && version === 6) copyFileSync(picture, to);
        await screen.stop();
    });
}
