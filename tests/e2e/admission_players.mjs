// Players during an attack: some are in the game all the time, others join meanwhile. Prints how they fared as one JSON object for each
// watched period.
//   node admission_players.mjs HOST PORT ADDRESS PLAYERS NEWCOMERS SECONDS [BROWSER_ADDRESS...]
// Prints "playing" once the first players are in the game. At each SIGUSR2, watches for SECONDS while newcomers join one after the other
// and each browser requests the server's info once. Runs until SIGTERM.
import dgram from 'node:dgram';
import { Bot } from './bot.mjs';

const TICK_MS = 40; // servers send 25 snapshots a second
const LONGEST_ANSWER_MS = 1000;
const GET_INFO = Buffer.concat([Buffer.from('xe\x12\x34\0\0', 'latin1'), Buffer.alloc(4, 0xff), Buffer.from('gie3\x56')]);
const TOKEN = `iext${0x123456}\0`;
const [host, port, address, players, newcomers, seconds, ...browsers] = process.argv.slice(2)
    .map((text, index) => ([0, 2].includes(index) || index > 5 ? text : Number(text)));
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
    const began = performance.now();
    await sleep(ms);
    const expected = Math.floor(players * (performance.now() - began) / TICK_MS);
    const got = bots.map((bot, index) => bot.snapshots.length - before[index]);
    const gaps = arrivals.flatMap((times, index) => times.slice(from[index]).map((time, at, all) => time - (all[at - 1] ?? time)))
        .sort((a, b) => a - b);
    return { snapshots: got.reduce((sum, each) => sum + each, 0), expected, p99_gap_ms: gaps[Math.floor(gaps.length * 0.99)] };
}

/** Returns whether the request is answered in time. */
const ask = (from) => new Promise((resolve) => {
    const socket = dgram.createSocket('udp4');
    const end = (answered) => { socket.close(); resolve(answered); };
    const timer = setTimeout(end, LONGEST_ANSWER_MS, false);
    socket.on('message', (datagram) => {
        if (datagram.subarray(10).toString('latin1').startsWith(TOKEN)) { clearTimeout(timer); end(true); }
    });
    socket.bind(0, from, () => socket.send(GET_INFO, port, host));
});

/** Sends the browsers' requests one after another within a second. */
async function browse() {
    const asked = browsers.map(async (from, index) => { await sleep(index * 1000 / browsers.length); return ask(from); });
    return (await Promise.all(asked)).filter((answered) => answered).length;
}

let rounds = 0;
async function round() {
    rounds += 1;
    const crowd = watch(seconds * 1000);
    await sleep(500); // the attack has begun by then
    const answered = browse();
    const joins = [];
    for (let index = 0; index < newcomers; index += 1) {
        const began = performance.now();
        const bot = make(`n${rounds}.${index}`);
        // The library repeats its CONNECT every 500 ms, like game clients.
        joins.push(await bot.join(20000).then(() => Math.round(performance.now() - began), () => null));
        await bot.leave();
    }
    console.log(JSON.stringify({ crowd: await crowd, joins, answered: await answered, online: bots.filter((bot) => bot.online).length }));
}
process.on('SIGUSR2', round);
process.once('SIGTERM', () => process.exit(0));
console.log(`playing ${JSON.stringify({ calm: await watch(3000) })}`);
