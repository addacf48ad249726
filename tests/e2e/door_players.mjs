// Players in a crowd: some are in before it comes, others come while it is there. Says how they fared, as one JSON object.
//   node door_players.mjs HOST PORT ADDRESS PLAYERS NEWCOMERS SECONDS
// Prints "playing" when the first are in, then from SIGUSR2 on watches for SECONDS while newcomers join one after the other.
import { Bot } from './bot.mjs';

const TICK_MS = 40; // snapshots come 25 times a second
const [host, port, address, players, newcomers, seconds] = process.argv.slice(2).map((text, index) => (index === 0 || index === 2 ? text : Number(text)));
const make = (name) => new Bot(port, name, { host, address, keep: true });
const sleep = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });

const bots = [];
for (let index = 0; index < players; index += 1) bots.push(await make(`p${index}`).join());
for (const bot of bots) bot.walk();
const arrivals = bots.map(() => []);
for (const [index, bot] of bots.entries()) {
    bot.client.socket.on('message', () => arrivals[index].push(performance.now()));
}
async function watch(ms) {
    const before = bots.map((bot) => bot.snapshots.length);
    const from = arrivals.map((times) => times.length);
    await sleep(ms);
    const got = bots.map((bot, index) => bot.snapshots.length - before[index]);
    const gaps = arrivals.flatMap((times, index) => times.slice(from[index]).map((time, at, all) => time - (all[at - 1] ?? time)))
        .sort((a, b) => a - b);
    return { snapshots: got.reduce((sum, each) => sum + each, 0), expected: players * ms / TICK_MS, p99_gap_ms: gaps[Math.floor(gaps.length * 0.99)] };
}
const calm = await watch(3000);
const called = new Promise((resolve) => { process.once('SIGUSR2', resolve); });
console.log('playing');
await called;
const joins = [];
const late = [];
const crowd = watch(seconds * 1000);
for (let index = 0; index < newcomers; index += 1) {
    const began = performance.now();
    const bot = make(`n${index}`);
    late.push(bot);
    // The library repeats its CONNECT every 500 ms, as game clients do.
    joins.push(await bot.join(20000).then(() => Math.round(performance.now() - began), () => null));
}
console.log(JSON.stringify({ calm, crowd: await crowd, joins, online: bots.filter((bot) => bot.online).length }));
for (const bot of [...bots, ...late]) bot.vanish();
process.exit(0);
