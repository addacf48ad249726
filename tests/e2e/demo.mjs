// `./dev run`: a real server, three walking clients, and twscope between them, until Ctrl-C.
//   node demo.mjs TWSCOPE
import { Bot } from './bot.mjs';
import { Child, freePort, isBound, temporaryFolder, waitUntil } from './process.mjs';
import { MAPS, startServer } from './server.mjs';

const USUAL_SERVER_PORT = 8304;
const USUAL_PROXY_PORT = 8303;
const RECORDS = 'records/';
const NAMES = ['anna', 'bob', 'cleo'];
const START_MS = 10000;

const say = (text) => process.stderr.write(`==> ${text}\n`);
const parts = []; // started processes; they are stopped in reverse order
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

/** Returns the usual port, or a free one if the usual port is in use. */
async function portLike(usual) {
    if (!isBound(usual)) return usual;
    const port = await freePort();
    say(`UDP port ${usual} is taken; using ${port}`);
    return port;
}

async function main(twscope) {
    const proxyPort = await portLike(USUAL_PROXY_PORT);
    const serverPort = await portLike(USUAL_SERVER_PORT);
    const server = await startServer({ folder: temporaryFolder(), port: serverPort });
    watch(server.child);
    const proxy = new Child('twscope', twscope, ['proxy', '-s', `127.0.0.1:${serverPort}`, '-l', `127.0.0.1:${proxyPort}`,
        '--maps', MAPS, '-o', RECORDS, '--keep', '10GiB'], { show: true });
    watch(proxy);
    await waitUntil('twscope to listen', () => isBound(proxyPort) || !proxy.running, START_MS);
    if (!proxy.running) return;
    const bots = NAMES.map((name, index) => new Bot(proxyPort, name, { seed: index + 1 }));
    for (const bot of bots) {
        parts.push(() => bot.leave());
        bot.gone.then(({ reason }) => { if (!ending) end(3, `${bot.name} was thrown out (${reason}); stopping`); });
    }
    await Promise.all(bots.map((bot) => bot.join()));
    for (const bot of bots) bot.walk();
    say(`${NAMES.join(', ')} play through 127.0.0.1:${proxyPort}; the records go to ${RECORDS}; Ctrl-C ends it`);
}

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => end(0, 'ending'));
process.on('unhandledRejection', (error) => end(3, `${error?.message ?? error}`));
main(process.argv[2]).catch((error) => end(3, error.message));
