// Collects the message ids in a stream with any number of messages: one bit for each number of a run.
import { NatsClient } from '../../e2e/nats_client.mjs';

const WAIT_MS = 30000;
const FIRST_BYTES = 1 << 20;

class Numbers {
    bits = new Uint8Array(FIRST_BYTES);
    count = 0;
    twice = 0;
    first = Infinity;
    last = 0;

    add(number) {
        const byte = number >> 3;
        if (byte >= this.bits.length) {
            const larger = new Uint8Array(2 * byte);
            larger.set(this.bits);
            this.bits = larger;
        }
        const bit = 1 << (number & 7);
        if (this.bits[byte] & bit) this.twice += 1;
        this.bits[byte] |= bit;
        this.count += 1;
        this.first = Math.min(this.first, number);
        this.last = Math.max(this.last, number);
    }

    get missing() { return this.last - this.first + 1 - (this.count - this.twice); }
}

/** Calls `take` for all messages of a stream with a matching subject, in order. */
async function readAll(port, stream, config, count, take) {
    const client = await NatsClient.connect(port);
    const inbox = `${client.inbox}.all`;
    let seen = 0;
    let looked = 0;
    const done = new Promise((resolve, reject) => {
        const timer = setInterval(() => {
            if (looked === seen) { clearInterval(timer); reject(new Error(`${seen} of ${count} messages came`)); }
            looked = seen;
        }, WAIT_MS);
        client.subscribe(inbox, (message) => {
            take(message);
            if ((seen += 1) === count) { clearInterval(timer); resolve(); }
        });
    });
    await client.request(`$JS.API.CONSUMER.CREATE.${stream}`, { stream_name: stream, config: { deliver_subject: inbox,
        deliver_policy: 'all', ack_policy: 'none', replay_policy: 'instant', ...config } });
    await done;
    client.close();
}

/** @returns {{ runs: Map<string, Numbers>, told: number[] }} `told`: the number of lost records in each records_lost record */
export async function readIds(client, stream) {
    const port = client.socket.remotePort;
    const { state } = await client.request(`$JS.API.STREAM.INFO.${stream}`, { subjects_filter: '>' });
    const runs = new Map();
    const told = [];
    await readAll(port, stream, { headers_only: true }, state.messages, ({ headers }) => {
        const at = headers.indexOf('Nats-Msg-Id:');
        const [run, number] = headers.slice(at + 12, headers.indexOf('\r\n', at)).trim().split(':');
        let numbers = runs.get(run);
        if (!numbers) runs.set(run, numbers = new Numbers());
        numbers.add(Number(number));
    });
    const losses = Object.entries(state.subjects ?? {}).filter(([subject]) => subject.endsWith('.records_lost'));
    for (const [subject, count] of losses) {
        await readAll(port, stream, { filter_subject: subject }, count, ({ data }) => told.push(JSON.parse(data).lost));
    }
    return { runs, told };
}
