// One simulated game server: publishes lines repeatedly, each at its time, like twscope: on its own connection, with an id for each message,
// and with at most one window of messages in flight.
import { randomUUID } from 'node:crypto';
import net from 'node:net';

const CRLF = Buffer.from('\r\n');
const WINDOW = 1024; // proxy/bus/publisher.h
const CONNECT = `CONNECT ${JSON.stringify({ verbose: false, pedantic: false, headers: true, no_responders: true, lang: 'node',
    version: '1', protocol: 1 })}\r\n`;

export class PublishingServer {
    /** @param lines from publishedLines; @param phase start position in the lines, 0 to 1 */
    static async connect(port, { subject, lines, phase }) {
        const server = new PublishingServer();
        Object.assign(server, { lines, run: randomUUID(), sent: 0, acknowledged: 0, rest: '', complaint: '',
            period: lines.at(-1).at, dueAt: new Float64Array(WINDOW), delays: [] });
        server.inbox = `_INBOX.${server.run}`;
        server.subjects = new Map([...new Set(lines.map(({ type }) => type))].map((type) => [type, `${subject}.${type}`]));
        server.offset = phase * server.period;
        server.first = lines.findIndex(({ at }) => at >= server.offset);
        server.socket = net.connect(port, '127.0.0.1');
        await new Promise((resolve, reject) => { server.socket.once('error', reject).once('data', resolve); }); // INFO
        server.socket.on('error', (error) => { server.complaint ||= error.message; });
        server.socket.on('data', (data) => server.#take(data.toString('latin1')));
        server.socket.write(`${CONNECT}SUB ${server.inbox}.* 1\r\n`);
        return server;
    }

    /** Returns the time at which the line with this number, from 0, is due: ms after the start. */
    #due(number) {
        const place = this.first + number;
        return Math.floor(place / this.lines.length) * this.period + this.lines[place % this.lines.length].at - this.offset;
    }

    start(now) { this.begun = now; }

    /** Sends the lines that are due, as far as the window permits. */
    step(now) {
        const parts = [];
        const passed = now - this.begun;
        while (this.sent - this.acknowledged < WINDOW && this.#due(this.sent) <= passed) {
            const { type, text } = this.lines[(this.first + this.sent) % this.lines.length];
            this.dueAt[this.sent % WINDOW] = this.begun + this.#due(this.sent);
            this.sent += 1;
            const headers = `NATS/1.0\r\nNats-Msg-Id: ${this.run}:${this.sent}\r\n\r\n`;
            parts.push(Buffer.from(`HPUB ${this.subjects.get(type)} ${this.inbox}.${this.sent} ${headers.length} ` +
                `${headers.length + text.length}\r\n${headers}`, 'latin1'), text, CRLF);
        }
        if (parts.length > 0) this.socket.write(Buffer.concat(parts));
    }

    #take(data) {
        const lines = (this.rest + data).split('\r\n');
        this.rest = lines.pop();
        const now = performance.now();
        for (const line of lines) {
            if (line.startsWith('{"stream":')) {
                this.delays.push(now - this.dueAt[this.acknowledged % WINDOW]);
                this.acknowledged += 1;
            } else if (line === 'PING') {
                this.socket.write('PONG\r\n');
            } else if (line.startsWith('-ERR') || line.startsWith('{"error"')) {
                this.complaint ||= line;
            }
        }
    }

    /** Returns how long the oldest due line has waited for its acknowledgement, in ms. */
    behind(now) { return Math.max(0, now - this.begun - this.#due(this.acknowledged)); }

    close() { this.socket.destroy(); }
}
