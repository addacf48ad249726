// Tests the live page's sources: types, lint rules, and single modules.
//   node page_test.mjs
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const PAGE = fileURLToPath(new URL('../../../proxy/web/page', import.meta.url));
const SKIPPED = 77;

if (!existsSync(join(PAGE, 'node_modules'))) {
    console.error(`${process.env.TW_E2E_REQUIRED ? 'error' : 'skipped'}: ./dev page installs what this needs`);
    process.exit(process.env.TW_E2E_REQUIRED ? 1 : SKIPPED);
}

function run(...command) {
    const { status, stdout, stderr } = spawnSync(process.execPath, command, { cwd: PAGE, encoding: 'utf8' });
    assert.equal(status, 0, stdout + stderr);
}

// Replaces the browser's objects that modules use when they are loaded.
Object.assign(globalThis, { location: { hash: '' }, sessionStorage: { getItem: () => null }, localStorage: { getItem: () => null }, addEventListener: () => {} });

/** Runs Debian's esbuild, as the build does. */
function bundle(flags) {
    const { status, stderr, error } = spawnSync('esbuild', ['--bundle', '--log-level=warning', ...flags], { cwd: PAGE, encoding: 'utf8' });
    assert.equal(status, 0, error?.message ?? stderr);
}

/** Bundles a module alone and returns its exports. */
async function load(module) {
    const folder = mkdtempSync(join(tmpdir(), 'twscope-page-'));
    const file = join(folder, 'module.mjs');
    bundle([`src/${module}.ts`, `--outfile=${file}`, '--format=esm']);
    const loaded = await import(file);
    rmSync(folder, { recursive: true });
    return loaded;
}

test('the sources pass the type check and the lint rules', () => {
    run('node_modules/typescript/bin/tsc', '--noEmit');
    run('node_modules/eslint/bin/eslint.js', '--max-warnings', '0', 'src');
});

test('the sliders and the text of an impairment agree', async () => {
    const { impairmentText, sliderValues, PRESETS } = await load('impairment');
    for (const { title, c2s, s2c } of PRESETS) assert.deepEqual(sliderValues(impairmentText(c2s, s2c)), { c2s, s2c }, title);
    assert.equal(impairmentText({}, {}), 'none');
    assert.equal(impairmentText({ burst: 3 }, {}), 'none'); // a burst length without loss has no effect
    assert.deepEqual(sliderValues('loss=2%'), { c2s: { loss: 2 }, s2c: { loss: 2 } });
    assert.deepEqual(sliderValues('s2c:delay=1s,jitter=500us').s2c, { delay: 1000, jitter: 0.5 });
    assert.deepEqual(sliderValues('none; ;x:=,,'), { c2s: {}, s2c: {} });
});

test('a race time is shown with minutes and milliseconds', async () => {
    const { formatRaceTime } = await load('format');
    for (const [ms, text] of [[0, '0:00.000'], [83450, '1:23.450'], [59999, '0:59.999'], [3_723_050, '1:02:03'], [-250, '−0:00.250']]) {
        assert.equal(formatRaceTime(ms), text);
    }
});

test('a slider changes only its own setting in the text', async () => {
    const { changeSetting } = await load('impairment');
    for (const [text, changed, wanted] of [
        ['s2c:delay=1500ms,loss=0.25%,rate=1mbit', ['s2c', 'jitter', 7], 's2c:delay=1500ms,loss=0.25%,rate=1mbit,jitter=7ms'],
        ['s2c:delay=1s,jitter=3ms', ['s2c', 'jitter', 0], 's2c:delay=1s'],
        ['delay=40ms,rate=2mbit', ['c2s', 'delay', 10], 'c2s:delay=10ms,rate=2mbit;s2c:delay=40ms,rate=2mbit'],
        ['c2s:loss=2%,burst=3;s2c:dup=1%', ['c2s', 'loss', 0], 's2c:dup=1%'], // a burst length without loss has no effect
        ['c2s:loss=2%,burst=3', ['c2s', 'burst', 1], 'c2s:loss=2%'],
        ['none', ['s2c', 'delay', 5], 's2c:delay=5ms'],
        ['c2s:delay=5ms', ['c2s', 'delay', 0], 'none'],
    ]) assert.equal(changeSetting(text, ...changed), wanted, text);
});

test('hidden characters are made visible, and markup stays text', async () => {
    const { visibleText } = await load('dom');
    assert.equal(visibleText('\u202elivE\u200b\u0007\u2066x\u009b'), '⟨202e⟩livE⟨200b⟩⟨7⟩⟨2066⟩x⟨9b⟩');
    assert.equal(visibleText('<img src=x onerror=alert(1)> ünï ∗ 日本\n'), '<img src=x onerror=alert(1)> ünï ∗ 日本\n');
});

/** Returns the relative luminance of a colour (#rrggbb), as WCAG 2 defines it. */
function luminance(color) {
    const [red, green, blue] = [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16) / 255)
        .map((share) => (share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function contrast(one, other) {
    const [dark, bright] = [luminance(one), luminance(other)].sort((a, b) => a - b);
    return (bright + 0.05) / (dark + 0.05);
}

test('texts and chart lines have the contrast that WCAG AA requires, in both themes', () => {
    const css = readFileSync(join(PAGE, 'src/page.css'), 'utf8');
    const colorsOf = (selector) => {
        const block = css.slice(css.indexOf(`${selector} {`)).split('}')[0];
        return Object.fromEntries([...block.matchAll(/--([\w-]+): (#[0-9a-f]{6})/g)].map(([, name, color]) => [name, color]));
    };
    const TEXT = 4.5;
    const GRAPHIC = 3;
    const grounds = ['page', 'card', 'raised'];
    for (const selector of [':root', ':root[data-theme="dark"]']) {
        const colors = colorsOf(selector);
        const requireContrast = (front, ground, least) => {
            const found = contrast(colors[front], colors[ground]);
            assert.ok(found >= least, `${selector}: ${front} on ${ground} is ${found.toFixed(2)}, of at least ${least}`);
        };
        for (const ground of grounds) {
            for (const text of ['ink', 'soft', 'accent', 'good', 'bad', 'warn']) requireContrast(text, ground, TEXT);
        }
        requireContrast('accent-ink', 'accent', TEXT);
        requireContrast('ink', 'mark', TEXT);
        requireContrast('page', 'ink', TEXT); // the text at the pointer on the timeline
        for (const line of ['bar', 'full', 'distance', 'bad', 'warn', 'c1', 'c2', 'c3', 'c4', 'c5', 'c6', 'c7', 'c8']) requireContrast(line, 'card', GRAPHIC);
    }
    const dark = colorsOf(':root[data-theme="dark"]');
    assert.ok(contrast(colorsOf(':root').card, colorsOf(':root').bad) >= TEXT); // alarms
    assert.ok(contrast('#1a0605', dark.bad) >= TEXT);
    for (const [text, ground] of [['#f2f5f8', '#121820'], ['#10141a', '#ffd54a'], ['#ffffff', '#0a0e14']]) { // buttons and names over the game
        assert.ok(contrast(text, ground) >= TEXT, `${text} on ${ground}`);
    }
});

test('completion proposes the words that may follow', async () => {
    const { proposeWords } = await load('completion');
    const keys = { keys: ['session', 'size', 'fields.message', 'severity'], item_keys: ['type', 'at.game'], item_types: ['character'],
        words: { type: ['finding', 'snapshot'], severity: ['info', 'warning', 'error'] }, item_words: {} };
    const after = (text) => proposeWords(keys, text).words;
    assert.deepEqual(after('se'), ['session', 'severity']);
    assert.deepEqual(after('message'), ['fields.message']);
    assert.deepEqual(after('find'), ['finding']);
    assert.deepEqual(after('severity >= '), ['info', 'warning', 'error']);
    assert.deepEqual(after('severity == "wa'), ['warning']);
    assert.deepEqual(after('any(items: cha'), ['character']);
    assert.deepEqual(after('finding and si'), ['size']);
    assert.deepEqual(after(''), []);
    assert.equal(proposeWords(keys, 'not se').begin, 4);
});

test('the history returns each moment, and removes old ones', async () => {
    const { History } = await load('history');
    const { Moment } = await load('moment');
    const history = new History();
    let moment = Moment.empty;
    const kept = [];
    for (let frame = 0; frame < 1000; ++frame) {
        const changed = [{ object: 3, id: frame % 7, data: [frame, -frame] }, { object: -40, id: 1, data: [] }];
        const gone = frame % 5 === 0 ? [(3 + 0x10000) * 0x10000 + ((frame + 3) % 7)] : [];
        moment = moment.nextMoment(frame * 1000, frame, frame === 0, changed, gone);
        history.addFrame(moment, frame === 0, changed, gone);
        kept.push(moment);
    }
    assert.ok(history.length >= 600 && history.length <= 701, `${history.length}`);
    assert.ok(history.memory < 1 << 20);
    for (let index = 0; index < history.length; index += 13) {
        const wanted = kept[kept.length - history.length + index];
        const found = history.momentAt(index);
        assert.equal(found.tick, wanted.tick);
        assert.deepEqual([...found.items].sort((a, b) => a[0] - b[0]), [...wanted.items].sort((a, b) => a[0] - b[0]));
    }
    assert.equal(history.timeAt(history.indexAt(990_500)), 990_000);
    assert.equal(history.indexAt(0), -1);
});

test('the key of an item can be split into object and id again', async () => {
    const { itemKey, keyParts } = await load('objects');
    for (const parts of [[0, 0], [3, 63], [-1, 0], [-40, 65535], [200, 1]]) assert.deepEqual(keyParts(itemKey(...parts)), parts);
});

test('a moment has the map of its time, and none while the next map is being loaded', async () => {
    const { Store } = await load('store');
    const store = new Store();
    const [first, second] = [{}, {}];
    store.setMap(null);
    store.setMap(first);
    store.latest = { t: 1000 };
    store.setMap(null);
    const at = (t) => { store.moment = { t }; return store.tiles; };
    assert.deepEqual([at(0), at(999), at(1000)], [first, first, null]);
    store.setMap(second);
    assert.deepEqual([at(999), at(1000), at(2000)], [first, second, second]);
    store.clearSource();
    assert.equal(store.tiles, null);
});

test('a full frame replaces a frame of the same tick', async () => {
    const { History } = await load('history');
    const { Moment } = await load('moment');
    const history = new History();
    const item = (x) => ({ object: 3, id: 1, data: [x] });
    let moment = Moment.empty;
    for (const [t, tick, full, x] of [[10, 2, true, 1], [50, 4, false, 2], [90, 6, false, 3], [95, 6, true, 4], [130, 8, false, 5]]) {
        moment = moment.nextMoment(t, tick, full, [item(x)], []);
        history.addFrame(moment, full, [item(x)], []);
    }
    const ticks = Array.from({ length: history.length }, (_, index) => history.momentAt(index).tick);
    assert.deepEqual(ticks, [2, 4, 6, 8]);
    assert.deepEqual([...history.momentAt(2).items.values()], [item(4)]);
    assert.deepEqual([...history.momentAt(3).items.values()], [item(5)]);
});

test('parsing a link reverses writing it, and ignores unknown parts', async () => {
    const { linkText, parseLink } = await load('links');
    for (const link of [{}, { session: 3 }, { session: 0 }, { session: 3, tick: 14448, tab: 'findings' }, { tab: 'log' }]) {
        assert.deepEqual(parseLink(`#${linkText(link)}`), link);
    }
    assert.equal(linkText({ session: 3, tick: 14448, tab: 'findings' }), 'session=3&tick=14448&tab=findings');
    assert.equal(linkText({ session: 0 }), 'session=all');
    for (const hash of ['', '#', '#session=', '#session=-1', '#session=1e3', '#tick=99999999999', '#tab=<b>', '#x=1&&=', '#session=1;tick=2']) {
        assert.deepEqual(parseLink(hash), {}, hash);
    }
    assert.deepEqual(parseLink('#session=7&tick=x&tab=log'), { session: 7, tab: 'log' });
});

test('the history finds the frame of a tick, or the last one before it', async () => {
    const { History } = await load('history');
    const { Moment } = await load('moment');
    const history = new History();
    assert.equal(history.indexOfTick(5), -1);
    let moment = Moment.empty;
    for (const tick of [10, 12, 14]) history.addFrame(moment = moment.nextMoment(tick * 20, tick, true, [], []), true, [], []);
    assert.deepEqual([9, 10, 11, 12, 14, 15].map((tick) => history.indexOfTick(tick)), [-1, 0, 0, 1, 2, -1]);
});

test('growth of a counter is reported for a minute', async () => {
    const { GrowthTracker } = await load('rates');
    const growth = new GrowthTracker();
    const said = [[0, 5], [1000, 5], [2000, 6], [61_000, 6], [62_000, 6], [63_000, 2], [64_000, 3]].map(([now, value]) => growth.hasGrown('a', value, now));
    assert.deepEqual(said, [false, false, true, true, false, false, true]);
    assert.equal(growth.hasGrown('b', 1, 64_000), false);
});

test('counters that stay the same for a moment are those of a late update', async () => {
    const { isLateUpdate } = await load('rates');
    const then = new Map([['a', 1]]);
    for (const [now, passedMs, wanted] of [[{ a: 1 }, 1000, true], [{ a: 1 }, 3000, false], [{ a: 2 }, 1000, false], [{ a: 1, b: 1 }, 1000, false]]) {
        assert.equal(isLateUpdate(new Map(Object.entries(now)), then, passedMs), wanted);
    }
});

test('a mark of several findings shows how many findings of each kind it stands for', async () => {
    const { markText } = await load('timeline');
    const mark = (name) => ({ time_ms: 1, session: 1, severity: 'warning', text: `warning ${name}: session 1, tick 2. What it means.` });
    assert.equal(markText({ marks: [mark('a.b')] }), 'warning a.b: session 1, tick 2. What it means.');
    assert.equal(markText({ marks: ['a.b', 'c.d', 'c.d'].map(mark) }), '3 findings: 2 × c.d, 1 × a.b');
    assert.equal(markText({ marks: ['a', 'b', 'c', 'd', 'e'].map(mark) }), '5 findings: 1 × a, 1 × b, 1 × c, 1 × d, …');
});

test('the camera shows as little as possible outside the map', async () => {
    const { Camera } = await load('camera');
    const camera = Object.assign(new Camera(), { width: 100, height: 100, scale: 1 });
    for (const [x, y, width, height, wanted, covered] of [[0, 0, 400, 400, [50, 50]], [390, 200, 400, 400, [350, 200]], [10, 10, 60, 400, [30, 50]],
        [0, 0, 400, 400, [30, 50], 20], [390, 200, 400, 400, [350, 200], 20], [10, 10, 60, 400, [20, 50], 20]]) {
        Object.assign(camera, { x, y });
        camera.keepInside(width, height, covered);
        assert.deepEqual([camera.x, camera.y], wanted);
    }
});

test('the legend lists the colour of each kind of tile in the map once', async () => {
    const { Tiles } = await load('tiles');
    const tiles = new Tiles({ width: 2, height: 2, layers: { game: { tiles: btoa('\x00\x01\xc0\x03'), names: {} }, front: { tiles: btoa('\x00\x00\x00\x01'), names: {} } },
        swatches: [{ layer: 'game', first: 0, last: 0, color: '#000000', label: 'air' }, { layer: 'game', first: 1, last: 1, color: '#111111', label: 'solid' },
            { layer: 'game', first: 2, last: 2, color: '#222222', label: 'death' }, { layer: 'game', first: 192, last: 192, color: '#00ff00', label: 'spawn' }, { layer: 'game', first: 3, last: 255, color: '#333333', label: 'other' },
            { layer: 'tele', first: 1, last: 255, color: '#444444', label: 'tele' }] });
    // Spawns and pickups are drawn faintly.
    assert.deepEqual(tiles.legend, [{ color: '#111111', label: 'solid' }, { color: 'color-mix(in srgb, #00ff00 35%, #1d2127)', label: 'spawn' }, { color: '#333333', label: 'other' }]);
});
