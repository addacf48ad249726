// Clients that join one after the other, one from each given address, and stay until SIGTERM. Prints which clients are in the game.
// They acknowledge snapshots without decoding them, because decoding for thirty players takes too long.
//   node crowd.mjs HOST PORT ADDRESS...
import { createRequire } from 'node:module';
import { Bot } from './bot.mjs';

const { Snapshot } = createRequire(import.meta.url)('teeworlds/lib/snapshot.js');
Snapshot.prototype.unpackSnapshot = (body, delta, tick) => ({ items: [], recvTick: tick });

const [host, port, ...addresses] = process.argv.slice(2);
const bots = addresses.map((address, index) =>
    new Bot(Number(port), `p${index + 1}`, { host, address, options: { lightweight: true } }));
process.once('SIGTERM', async () => {
    for (const bot of bots) await bot.leave();
    process.exit(0);
});
for (const [index, bot] of bots.entries()) {
    await bot.join();
    console.log(`in the game: ${bot.name} ${addresses[index]}:${bot.port}`);
}
console.log('all in the game');
