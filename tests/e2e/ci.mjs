// The CI recipe of docker/ci-example, with a correct game and with faulty ones.
//   node ci.mjs TWSCOPE
// As the recipe's game test: node ci.mjs play [noise]
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Bot, endPeers } from './bot.mjs';
import { Child, freePort, temporaryFolder, waitUntil } from './process.mjs';
import { readRecords } from './proxy.mjs';
import { MAPS } from './server.mjs';

const RECIPE = fileURLToPath(new URL('../../docker/ci-example/', import.meta.url));
const SELF = fileURLToPath(import.meta.url);
const SNAPSHOTS = 25;
const WAIT_MS = 30000;

/** Plays with two clients; with noise, one of them sends invalid packets. */
async function play(noise) {
    const port = Number(process.env.PORT);
    const bots = await Promise.all(['anna', 'bob'].map((name, index) => new Bot(port, name, { seed: index + 1, keep: true }).join()));
    for (const bot of bots) bot.walk();
    if (noise) {
        await new Promise((resolve) => { bots[0].client.socket.send(Buffer.from([0x80, 0]), port, '127.0.0.1', resolve); });
    }
    await waitUntil('both to see snapshots', () => bots.every((bot) => bot.snapshots.length >= SNAPSHOTS), WAIT_MS);
    for (const bot of bots) await bot.leave();
    process.exit(0);
}

/** Runs the recipe with this game test; returns its exit code, output and results. */
async function recipe(command, { checks } = {}) {
    const folder = temporaryFolder();
    if (checks) writeFileSync(join(folder, 'checks.conf'), checks);
    const child = new Child('the recipe', join(RECIPE, 'run.sh'), command, {
        cwd: folder,
        env: { ...process.env, TWSCOPE: resolve(process.argv.at(-1)), MAPS, PORT: await freePort(), SERVER_PORT: await freePort(),
            ...checks && { CHECKS: join(folder, 'checks.conf') } },
    });
    await waitUntil('the recipe to end', () => !child.running, WAIT_MS);
    assert.notEqual(child.status, 2, child.log);
    const summary = readFileSync(join(folder, 'results', 'summary.xml'), 'utf8');
    return { status: child.status, told: child.errors, summary, records: readRecords(join(folder, 'results', 'game.jsonl')) };
}

const attribute = (xml, name) => Number(new RegExp(` ${name}="(\\d+)"`).exec(xml)[1]);

async function main() {
    after(endPeers);

    test('a correct game gives exit code 0 and a summary with every check', async () => {
        const { status, told, summary, records } = await recipe(['node', SELF, 'play']);
        assert.equal(status, 0, told);
        assert.equal(attribute(summary, 'tests'), 5);
        assert.equal(attribute(summary, 'failures'), 0);
        assert.match(summary, /<testcase classname="twscope.fail-on" name="warning"\/>/);
        assert.match(summary, /name="never snapshot and size_bytes &gt; 49152"\/>/);
        assert.ok(records.length > 2 * SNAPSHOTS);
        assert.equal(records.at(-1).type, 'summary');
    });

    test('a finding gives exit code 1 and is in the summary', async () => {
        const { status, told, summary } = await recipe(['node', SELF, 'play', 'noise']);
        assert.equal(status, 1, told);
        assert.equal(attribute(summary, 'failures'), 1);
        assert.match(told, /twscope: --fail-on warning: packet\.\w+ occurred once/);
        assert.match(summary, /<failure message="packet\.\w+ occurred once"\/>/);
    });

    test('an unmet expectation gives exit code 1 and the actual result', async () => {
        const { status, told, summary } = await recipe(['node', SELF, 'play'],
            { checks: 'expect = ["count(items: player_info) >= 3", "always ok"]' });
        assert.equal(status, 1, told);
        assert.equal(attribute(summary, 'tests'), 2);
        assert.equal(attribute(summary, 'failures'), 1);
        assert.match(told, /--expect count\(items: player_info\) >= 3: none of \d+ records matched; seen: .*\b2\b/);
    });

    test('the recipe fails if the game test fails', async () => {
        const { status, told } = await recipe(['sh', '-c', 'exit 7'], { checks: 'duration = 30' });
        assert.equal(status, 7, told);
        assert.match(told, /failed with exit code 7/);
    });
}

if (process.argv[2] === 'play') await play(process.argv[3] === 'noise');
else await main();
