// Measures how many game servers one nats-server can serve: simulated servers publish in real time, more and more of them, until the bus
// falls behind.
//   node servers.mjs [--seconds N] [--servers 1,10,...] [--players 64,4] [--streams N] [--filtered|--whole] [--keep-on] TWSCOPE
// Publishers, bus and all other processes share the machine; the last two columns are theirs. A row is BEHIND if, at its end, a record is
// not acknowledged a second after it was due; --keep-on continues nevertheless. --filtered: only with the filter of docs/fleet.md; --whole:
// only without it.
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { NatsClient } from '../../e2e/nats_client.mjs';
import { startNats } from '../../e2e/nats_server.mjs';
import { delay, temporaryFolder } from '../../e2e/process.mjs';
import { publishedLines } from './published_lines.mjs';
import { PublishingServer } from './publishing_server.mjs';

const STEP_MS = 5;
const WARM_UP_MS = 3000;
const LATE_MS = 1000;
const STREAM_BYTES = 4 * 2 ** 30; // of all streams together; twscope's limit is 10 GiB
const TICKS = 100; // USER_HZ

const { values: options, positionals } = parseArgs({ allowPositionals: true, options: {
    seconds: { type: 'string', default: '16' }, servers: { type: 'string', default: '1,2,5,10,20,50,100,200,500,1000' },
    players: { type: 'string', default: '64,4' }, streams: { type: 'string', default: '1' },
    filtered: { type: 'boolean' }, whole: { type: 'boolean' }, 'keep-on': { type: 'boolean' } } });
const TWSCOPE = positionals.at(-1);
const streams = Number(options.streams);

/** Returns a process's seconds of CPU time, and its resident MiB. */
function usage(pid) {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ');
    const rss = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))[1];
    return { cpu: (Number(fields[11]) + Number(fields[12])) / TICKS, rss: Number(rss) / 1024 };
}

/** Returns the seconds that all processors of this machine have worked for any process. */
function allBusy() {
    const [, user, nice, system, , , irq, softirq] = readFileSync('/proc/stat', 'utf8').split('\n')[0].split(/ +/).map(Number);
    return (user + nice + system + irq + softirq) / TICKS;
}

/** Creates streams like twscope. */
async function makeStreams(port) {
    const client = await NatsClient.connect(port);
    for (let index = 0; index < streams; index += 1) {
        const name = streamName(index);
        const made = await client.request(`$JS.API.STREAM.CREATE.${name}`, { name, subjects: [`${name}.>`], storage: 'file',
            retention: 'limits', discard: 'old', max_age: 7 * 86400e9, max_bytes: Math.floor(STREAM_BYTES / streams),
            duplicate_window: 120e9, num_replicas: 1 });
        if (made.error) throw new Error(JSON.stringify(made.error));
    }
    client.close();
}

const streamName = (index) => (streams === 1 ? 'twscope' : `twscope${index % streams}`);

async function measure(lines, count) {
    const folder = temporaryFolder();
    const nats = await startNats({ folder });
    await makeStreams(nats.port);
    const servers = [];
    for (let index = 0; index < count; index += 1) {
        servers.push(await PublishingServer.connect(nats.port, { lines, phase: (index * 0.6180339887) % 1,
            subject: `${streamName(index)}.s${index}` }));
    }
    const start = performance.now();
    for (const server of servers) server.start(start);
    const timer = setInterval(() => { const now = performance.now(); for (const server of servers) server.step(now); }, STEP_MS);
    const look = () => ({ at: performance.now(), own: process.cpuUsage(), all: allBusy(), ...usage(nats.child.process.pid),
        acknowledged: servers.reduce((sum, server) => sum + server.acknowledged, 0) });
    await delay(WARM_UP_MS);
    for (const server of servers) server.delays = [];
    const before = look();
    await delay(1000 * Number(options.seconds));
    const after = look();
    const late = servers.map((server) => server.behind(after.at)).sort((a, b) => a - b);
    clearInterval(timer);
    const delays = Float64Array.from(servers.flatMap((server) => server.delays)).sort();
    const complaint = servers.find((server) => server.complaint)?.complaint;
    for (const server of servers) server.close();
    await nats.kill();
    rmSync(folder, { recursive: true, force: true });
    if (complaint) throw new Error(`nats-server: ${complaint}`);
    const taken = (after.at - before.at) / 1000;
    const records = (after.acknowledged - before.acknowledged) / taken;
    const own = (after.own.user + after.own.system - before.own.user - before.own.system) / 1e6 / taken;
    const cpu = (after.cpu - before.cpu) / taken;
    const others = Math.max(0, (after.all - before.all) / taken - own - cpu);
    const at = (share) => delays[Math.floor(share * delays.length)] ?? NaN;
    return { records, cpu, own, others, rss: after.rss, late: late.at(-1), median: at(0.5), most: at(0.99) };
}

const HEAD = 'servers  records/s    MB/s  bus: cores  us/record   MiB  acknowledged after ms (99 %)  late ms  publishers: cores  ' +
    'others';

function show(count, row, bytesEach) {
    const cells = [[count, 7, 0], [row.records, 10, 0], [row.records * bytesEach / 1e6, 7, 1], [row.cpu, 11, 2],
        [1e6 * row.cpu / row.records, 10, 1], [row.rss, 5, 0], [`${row.median.toFixed(1)} (${row.most.toFixed(1)})`, 28],
        [row.late, 8, 0], [row.own, 17, 2], [row.others, 7, 2]];
    const text = cells.map(([value, width, digits]) => (digits === undefined ? value : value.toFixed(digits)).padStart(width));
    console.log(`${text.join(' ')}${row.late < LATE_MS ? '' : '  BEHIND'}`);
}

async function rise(players, filtered) {
    const lines = publishedLines(TWSCOPE, { players, filtered });
    const bytesEach = lines.reduce((sum, { text }) => sum + text.length + 1, 0) / lines.length;
    const rate = lines.length / (lines.at(-1).at / 1000);
    console.log(`${players} players${filtered ? ', filtered' : ''}: a server publishes ${rate.toFixed(0)} records/s, ` +
        `${(rate * bytesEach / 1e6).toFixed(2)} MB/s, ${bytesEach.toFixed(0)} bytes each${streams > 1 ? `; ${streams} streams` : ''}`);
    console.log(HEAD);
    for (const count of options.servers.split(',').map(Number)) {
        const row = await measure(lines, count);
        show(count, row, bytesEach);
        if (row.late >= LATE_MS && !options['keep-on']) return;
    }
}

for (const players of options.players.split(',')) {
    if (!options.filtered) await rise(players, false);
    if (!options.whole) await rise(players, true);
}
