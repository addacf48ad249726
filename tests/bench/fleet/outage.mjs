// Simulates an outage of the bus faster than real time: twscope reads a capture repeatedly, for the requested number of minutes, while
// nats-server is stopped. Then nats-server is started, and each record must be in the stream once.
//   node outage.mjs [--minutes N] [--players 64] [--spool BYTES] [--filter EXPRESSION] TWSCOPE
// --spool: as for twscope. If it is too small, only the oldest records may be missing, and twscope must report them.
import { once } from 'node:events';
import { mkdirSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { NatsClient } from '../../e2e/nats_client.mjs';
import { startNats } from '../../e2e/nats_server.mjs';
import { Child, delay, temporaryFolder, waitUntil } from '../../e2e/process.mjs';
import { captureOf } from './published_lines.mjs';
import { RepeatedCapture } from './repeated_capture.mjs';
import { readIds } from './stream_ids.mjs';

const LOOK_MS = 500;
const STILL_MS = 3000; // without a change for this time, a size is final
const FIRST_MS = 15000;
const END_MS = 600000;

const { values: options, positionals } = parseArgs({ allowPositionals: true, options: {
    minutes: { type: 'string', default: '60' }, players: { type: 'string', default: '64' },
    spool: { type: 'string', default: '64GiB' }, filter: { type: 'string' } } });
const folder = temporaryFolder();
const spool = join(folder, 'spool');
const MB = 1e6;

const sizeOf = (file) => statSync(file, { throwIfNoEntry: false })?.size ?? 0; // the file may be removed at any moment
const spoolBytes = () => readdirSync(spool).reduce((sum, name) => sum + sizeOf(join(spool, name)), 0);

/** Waits until the value has not changed for a while; returns it, and the time of its last change. */
async function settled(value) {
    let [last, changed] = [await value(), performance.now()];
    for (const end = performance.now() + END_MS; performance.now() - changed < STILL_MS; await delay(LOOK_MS)) {
        const now = await value();
        if (now !== last) [last, changed] = [now, performance.now()];
        if (performance.now() > end) throw new Error('it does not come to rest');
    }
    return { last, changed };
}

mkdirSync(spool);
let nats = await startNats({ folder });
await nats.stop();
const capture = new RepeatedCapture(captureOf(options.players));
const rounds = Math.max(1, Math.round(60 * Number(options.minutes) / capture.seconds));
const twscope = new Child('twscope', positionals.at(-1), ['decode', '-', '--view', 'world', '--items', 'changed',
    ...(options.filter ? ['--filter', options.filter] : []), '--bus', nats.url, '--bus-name', 'one', '--bus-limits', '7d,24GiB',
    '--spool', `${spool},${options.spool}`], { stdio: ['pipe', 'pipe', 'pipe'] });
const begun = performance.now();
twscope.process.stdin.write(capture.head);
let most = 0;
for (let round = 0; round < rounds; round += 1) {
    if (!twscope.process.stdin.write(capture.round(round))) await once(twscope.process.stdin, 'drain');
    most = Math.max(most, spoolBytes());
}
const full = await settled(() => Promise.resolve(spoolBytes()));
most = Math.max(most, full.last);
const seconds = (since, until) => ((until - since) / 1000).toFixed(0);
console.log(`${(rounds * capture.seconds / 60).toFixed(1)} minutes of ${options.players} players, read in ` +
    `${seconds(begun, full.changed)} s: the spool holds ${(full.last / MB).toFixed(1)} MB (at most ${(most / MB).toFixed(1)} MB)`);

nats = await nats.again();
const client = await NatsClient.connect(nats.port);
const started = performance.now();
const count = async () => (await client.info('twscope')).state?.messages ?? 0;
await waitUntil('the first record in the stream', async () => await count() > 0, FIRST_MS)
    .catch((error) => { throw new Error(`${error.message}
${twscope.log}`); });
const { last: messages, changed } = await settled(count);
const { bytes } = (await client.info('twscope')).state;
const rate = (1000 * messages / (changed - started)).toFixed(0);
console.log(`published ${messages} records in ${seconds(started, changed)} s (${rate} records/s); they take ` +
    `${(bytes / MB).toFixed(0)} MB in the stream`);

twscope.process.stdin.end();
await waitUntil('the end of twscope', () => !twscope.running, END_MS);
const found = await readIds(client, 'twscope');
console.log(`exit code ${twscope.status}; ${readdirSync(spool).length} files left in the spool`);
for (const line of twscope.log.trim().split('\n').slice(-5)) console.log(`  ${line}`);
const complaints = [];
if (found.runs.size !== 1) complaints.push(`${found.runs.size} runs`);
for (const numbers of found.runs.values()) {
    console.log(`${numbers.count} ids, ${numbers.twice} of them twice, from ${numbers.first} to ${numbers.last}, ${numbers.missing} ` +
        `missing between; records_lost: ${found.told.length === 0 ? 'none' : found.told.join(', ')}`);
    const lost = numbers.first - 1 + numbers.missing;
    const told = found.told.reduce((sum, each) => sum + each, 0);
    if (numbers.twice > 0) complaints.push('records are there twice');
    if (numbers.missing > 0) complaints.push('not only the oldest are missing');
    if (lost !== told) complaints.push(`${lost} records are missing, ${told} are told of`);
    if (twscope.status !== (lost > 0 ? 3 : 0)) complaints.push(`exit code ${twscope.status}`);
}
client.close();
await nats.stop();
if (complaints.length > 0) {
    console.error(`outage: ${complaints.join('; ')}\n${twscope.log}`);
    process.exitCode = 1;
}
