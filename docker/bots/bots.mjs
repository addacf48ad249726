// Clients that walk about on 127.0.0.1:8303 until SIGTERM, or for a time, and come back when they are thrown out.
//   node bots.mjs [COUNT [SECONDS]]
import { Bot } from './bot.mjs';
import { delay } from './process.mjs';

const PORT = 8303;
const RETRY_MS = 2000;
const count = Number(process.argv[2] ?? 4);
const seconds = Number(process.argv[3] ?? Infinity);
const bots = new Set();
let ending = false;

async function end(code) {
    if (ending) return;
    ending = true;
    await Promise.race([Promise.allSettled([...bots].map((bot) => bot.leave())), delay(500)]);
    process.exit(code);
}

async function play(number) {
    while (!ending) {
        const bot = new Bot(PORT, `bot ${number}`, { seed: number });
        bots.add(bot);
        try {
            await bot.join();
            console.log(`bot ${number} plays`);
            bot.walk();
            const { reason } = await bot.gone;
            if (!ending) console.log(`bot ${number} was thrown out: ${reason}`);
        } catch (error) {
            console.log(`bot ${number}: ${error.message}; trying again`);
        }
        bots.delete(bot);
        if (!ending) bot.vanish();
        await delay(RETRY_MS);
    }
}

for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, () => end(0));
// The library rejects where nobody can catch it when a server goes away.
process.on('unhandledRejection', (error) => console.log(`${error?.message ?? error}`));
for (let number = 1; number <= count; number += 1) play(number);
if (Number.isFinite(seconds)) setTimeout(() => end([...bots].every((bot) => bot.online) ? 0 : 1), seconds * 1000);
