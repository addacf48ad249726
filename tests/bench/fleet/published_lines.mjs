// Returns what a server publishes: the lines that twscope writes from a capture, and the time of each.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const CAPTURES = fileURLToPath(new URL('../../data/captures/', import.meta.url));
/** The filter that leaves out messages, as in docs/fleet.md. */
const ESSENCE = 'world or finding or session or summary';
const MAX_BYTES = 1 << 30;

export const captureOf = (players) => `${CAPTURES}bench-${players}.pcap.gz`;

/** @returns {{ at: number, type: string, text: Buffer }[]} `at`: ms since the first line */
export function publishedLines(twscope, { players, filtered }) {
    const done = spawnSync(twscope, ['decode', captureOf(players), '--view', 'world', '--items', 'changed',
        ...(filtered ? ['--filter', ESSENCE] : []), '-o', '-'], { encoding: 'utf8', maxBuffer: MAX_BYTES });
    if (done.status !== 0) throw new Error(`twscope decode: ${done.stderr}`);
    const lines = done.stdout.split('\n').slice(0, -1).map((line) => {
        const [, time, type] = /^\{"v":1,"t":"([^"]+)","type":"([a-z_]+)"/.exec(line);
        return { at: Date.parse(time) + Number(time.slice(-4, -1)) / 1000, type, text: Buffer.from(line) };
    });
    const begin = lines[0].at;
    for (const line of lines) line.at = Math.max(0, line.at - begin);
    return lines.sort((a, b) => a.at - b.at);
}
