// Debian's DDNet client plays a demo written from live traffic: to its end, without errors, with the chat, with the map in the demo, and
// with the tees at the positions in the records. It needs a virtual screen, so it runs only on request:
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
import { middleOf, readPicture } from './screenshot.mjs';
import { MAPS, startServer } from './server.mjs';

const CLIENT = '/usr/games/DDNet';
const SCREEN = '/usr/bin/Xvfb';
const DISPLAY = ':87';
const SNAPSHOTS = 100; // about four seconds of play
const WAIT_MS = 60000;
const MAGENTA = 0xd5ff00; // a colour in the clients' format: hue, saturation, lightness
// The area that the client shows at its usual zoom (CalcScreenParams of the game): 1,150,000 square units, in the screen's aspect ratio.
const [WIDTH, HEIGHT] = [640, 480];
const PIXELS_A_UNIT = HEIGHT / Math.sqrt(1_150_000 / (WIDTH / HEIGHT));
const TOLERANCE = 8; // pixels: half a tee's body
const FAR = 100; // smallest distance between the two tees, in world units
const NEAR = 400; // largest distance, so that both are visible
const SETTINGS = ['player_name watcher', 'cl_save_settings 0', 'cl_show_welcome 1', 'cl_skip_start_menu 1', 'cl_download_skins 0',
    'cl_download_community_skins 0', 'cl_map_download_url "https://127.0.0.1:9"', 'br_indicate_finished 0', 'cl_auto_demo_record 0',
    'snd_enable 0', 'gfx_fullscreen 0', `gfx_screen_width ${WIDTH}`, `gfx_screen_height ${HEIGHT}`, 'gfx_vsync 0', 'gfx_refresh_rate 20',
    'cl_refresh_rate 100', 'gfx_high_detail 0', 'loglevel 4', 'cl_showhud 0'];

need(CLIENT, SCREEN, MAPS);
after(endPeers);

/** Plays and records; returns the demo and the records of this run. */
async function film(folder, version) {
    const demos = join(folder, `demos-${version}`);
    mkdirSync(demos);
    const server = await startServer({ folder, port: await freePort(), map: 'Tutorial' });
    const proxy = await startProxy({ server: server.port, records: join(folder, `game-${version}.jsonl`),
        args: ['--maps', MAPS, '--items', 'all', '--demo', demos, '--demo-version', `${version}`] });
    const bot = await new Bot(proxy.port, 'anna', { keep: true }).join();
    const identity = { name: 'bob', clan: '', country: -1, skin: 'default', use_custom_color: 1, color_body: MAGENTA, color_feet: MAGENTA };
    const other = await new Bot(proxy.port, 'bob', { options: { identity } }).join();
    const plays = async (count) => {
        const before = bot.snapshots.length;
        await waitUntil('some play', () => bot.snapshots.length >= before + count, WAIT_MS);
    };
    other.client.movement.RunRight();
    await plays(15);
    other.client.movement.RunStop();
    await plays(SNAPSHOTS / 2); // waits until both tees stand still
    await server.command('say to be read in the demo');
    await plays(SNAPSHOTS);
    await other.leave();
    await bot.leave();
    assert.equal(await proxy.drain(), 0);
    await server.stop();
    const records = readRecords(join(folder, `game-${version}.jsonl`));
    const name = readdirSync(demos).find((each) => /-s1-/.test(each));
    return { demo: join(demos, name), records: records.filter(({ session }) => session === 1) };
}

/** Returns bob's positions relative to anna, from her view, since the chat line. */
function offsetOfBob(records) {
    const said = records.findIndex(({ name, fields }) => name === 'sv_chat' && /to be read/.test(fields.message));
    const ways = records.slice(said).filter(({ type, items }) => type === 'snapshot' && items).map(({ items }) => {
        const [anna, bob] = ['anna', 'bob'].map((player) => items.find((item) => item.type === 'character' && item.player === player)?.at);
        return anna && bob && { x: bob.x - anna.x, y: bob.y - anna.y };
    }).filter(Boolean);
    assert.ok(ways.length >= SNAPSHOTS / 2, `only ${ways.length} snapshots show both`);
    for (const way of ways) assert.deepEqual(way, ways[0]); // neither tee moves
    const [{ x, y }] = ways;
    assert.ok(Math.abs(x) >= FAR && Math.abs(x) <= NEAR && Math.abs(y) <= NEAR, `bob stands ${x}, ${y} from anna`);
    return { x, y };
}

/** Waits for a line on the client's console. */
async function type(fifo, line) {
    const file = openSync(fifo, constants.O_WRONLY | constants.O_NONBLOCK);
    writeSync(file, `${line}\n`);
    closeSync(file);
}

/** Plays the demo in the real client, which has no map of its own; returns the client's output and a screenshot. */
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
        const bob = offsetOfBob(records);
        const seen = middleOf(readPicture(picture), ([red, green, blue]) => red > 100 && blue > 100 && green < 0.6 * Math.min(red, blue));
        const wanted = { x: WIDTH / 2 + bob.x * PIXELS_A_UNIT, y: HEIGHT / 2 + bob.y * PIXELS_A_UNIT };
        const [to] = process.argv.slice(2);
        if (to?.endsWith('.png') && version === 6) copyFileSync(picture, to);
        await screen.stop();
        assert.ok(seen.count > 50, `there is no magenta tee in the picture (${seen.count} pixels)`);
        for (const axis of ['x', 'y']) {
            assert.ok(Math.abs(seen[axis] - wanted[axis]) <= TOLERANCE, `the picture has bob at ${seen.x}, ${seen.y}, the records at ` +
                `${wanted.x.toFixed()}, ${wanted.y.toFixed()}`);
        }
    });
}
