// Honest games of many players who join and leave, kill each other, change teams, spectate, and change maps. There must be no findings
// about differences between their views, and no other findings.
//   node honest.mjs TWSCOPE
// TW_HONEST_SECONDS: duration of each game (10).
// Covers: proxy/world/difference_log.cpp, proxy/world/missing_tee_check.cpp
import assert from 'node:assert/strict';
import { createReadStream } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, test } from 'node:test';
import { setTimeout as pass } from 'node:timers/promises';
import { Bot, endPeers } from './bot.mjs';
import { freePort, temporaryFolder } from './process.mjs';
import { isFreeze, startProxy } from './proxy.mjs';
import { endSevenBots, SevenBot } from './seven_client.mjs';
import { MAPS, startServer } from './server.mjs';
import { SEVEN_MAPS, startTeeworlds } from './teeworlds_server.mjs';

const SECONDS = Number(process.env.TW_HONEST_SECONDS ?? 10);
const STEP_MS = 1000;
// Seconds between two events of each kind.
const [LEAVE_EVERY, CHANGE_MAP_EVERY] = [3, 9];

after(endSevenBots);
after(endPeers);

/** Returns the findings in a file of records, and the number of records of each type. */
async function read(file) {
    const found = [];
    const counts = new Map();
    for await (const line of createInterface({ input: createReadStream(file) })) {
        const type = /"type":"(\w+)"/.exec(line)[1];
        counts.set(type, (counts.get(type) ?? 0) + 1);
        if (type === 'finding') found.push(JSON.parse(line));
    }
    return { found, counts };
}

const GAMES = [
    ['DDNet', startServer, { settings: ['sv_team 1'], maps: ['ctf2', 'Sunny Side Up', 'dm1', 'Tsunami'], players: 12, sevens: 0 }],
    ['DDNet with clients of 0.7', startServer, { settings: ['sv_sixup 1'], maps: ['Sunny Side Up', 'Tsunami'], players: 12, sevens: 6 }],
    ['Teeworlds 0.7', startTeeworlds, { settings: ['sv_gametype ctf'], maps: ['ctf2'], players: 8, sevens: 8 }],
];

for (const [name, start, game] of GAMES) {
    test(`${name}, ${game.players} players for ${SECONDS} s: nothing is found`, async () => {
        const folder = temporaryFolder();
        const server = await start({ folder, port: await freePort(), map: game.maps[0], settings: game.settings });
        const records = join(folder, 'game.jsonl');
        const proxy = await startProxy({ server: server.port, records,
            args: ['--maps', MAPS, '--maps', `${MAPS}7`, '--maps', SEVEN_MAPS, '--view', 'both', '--items', 'none', '--no-messages'] });
        let born = 0;
        const arrive = async (seed) => {
            born += 1;
            const Client = seed < game.players - game.sevens ? Bot : SevenBot;
            const bot = await new Client(proxy.port, `tee ${born}`, { seed: born }).join();
            bot.walk?.(); // bots of 0.7 walk from the start
            return bot;
        };
        const bots = [];
        for (let seed = 0; seed < game.players; seed += 1) bots.push(await arrive(seed));
        for (let second = 1; second <= SECONDS; second += 1) {
            await pass(STEP_MS);
            if (second % LEAVE_EVERY === 0) {
                const seed = (second / LEAVE_EVERY) % game.players;
                await bots[seed].leave();
                bots[seed] = await arrive(seed);
            }
            if (second % CHANGE_MAP_EVERY === 0 && game.maps.length > 1) {
                await server.command(`sv_map "${game.maps[(second / CHANGE_MAP_EVERY) % game.maps.length]}"`);
            }
        }
        for (const bot of bots) await bot.leave();
        assert.equal(await proxy.drain(), 0, proxy.child.errors);
        await server.stop();
        const { found, counts } = await read(records);
        console.error([...counts].map(([type, count]) => `${count} ${type}`).join(', '));
        assert(counts.get('world') > SECONDS * 10, 'too few worlds');
        assert.deepEqual(found.filter((finding) => finding.severity !== 'info' && !isFreeze(finding)), []);
    });
}
