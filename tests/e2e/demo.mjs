// `./dev run`: a real server, three clients that walk about, and twscope between them, until Ctrl-C.
//   node demo.mjs TWSCOPE
import { Bot } from './bot.mjs';
import { Child, isBound, temporaryFolder, waitUntil } from './process.mjs';
import { MAPS, startServer } from './server.mjs';

const SERVER_PORT = 8304;
const PROXY_PORT = 8303;
const RECORDS = 'twscope.jsonl';
const NAMES = ['anna', 'bob', 'cleo'];
const START_MS = 10000;

const say = (text) => process.stderr.write(`==> ${text}\n`);
const parts = []; // what to stop, last started first
let ending = null;

async function end(code, why) {
    ending ??= (async () => {
        say(why);
        for (const stop of parts.reverse()) await stop().catch(() => {});
        process.exit(code);
    })();
    await ending;
}

function watch(child) {
    parts.push(() => child.stop());
    child.ended.then((status) => {
        if (!ending) end(3, `${child.name} died (${status}); stopping\n${child.log.slice(-1000)}`);
    });
}

async function main(twscope) {
    for (const port of [PROXY_PORT, SERVER_PORT]) {
        if (isBound(port)) {
            say(`UDP port ${port} is taken; end what uses it (ss -ulnp 'sport = :${port}' names it) and try again`);
            process.exit(2);
        }
    }
    const server = await startServer({ folder: temporaryFolder(), port: SERVER_PORT });
    watch(server.child);
    const proxy = new Child('twscope', twscope, ['proxy', '-s', `127.0.0.1:${SERVER_PORT}`, '-l', `127.0.0.1:${PROXY_PORT}`,
        '--maps', MAPS, '-o', RECORDS], { show: true });
    watch(proxy);
    await waitUntil('twscope to listen', () => isBound(PROXY_PORT) || !proxy.running, START_MS);
    if (!proxy.running) return;
    const bots = NAMES.map((name, index) => new Bot(PROXY_PORT, name, { seed: index + 1 }));
    for (const bot of bots) {
        parts.push(() => bot.leave());
        bot.gone.then(({ reason }) => { if (!ending) end(3, `${bot.name} was thrown out (${reason}); stopping`); });
    }
    await Promise.all(bots.map((bot) => bot.join()));
    for (const bot of bots) bot.walk();
    say(`${NAMES.join(', ')} play through 127.0.0.1:${PROXY_PORT}; the records go to ${RECORDS}; Ctrl-C ends it`);
}

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => end(0, 'ending'));
process.on('unhandledRejection', (error) => end(3, `${error?.message ?? error}`));
main(process.argv[2]).catch((error) => end(3, error.message));
