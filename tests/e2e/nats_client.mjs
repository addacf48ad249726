// A client of NATS written from its protocol alone, to check what other programs published.
import net from 'node:net';
import tls from 'node:tls';

const WAIT_MS = 10000;

export class NatsClient {
    /** @param options user, pass; tls: options of Node's tls module */
    static async connect(port, { tls: secure, ...login } = {}) {
        const client = new NatsClient();
        let socket = net.connect(port, '127.0.0.1');
        await new Promise((resolve, reject) => socket.once('error', reject).once('data', resolve)); // INFO
        if (secure) {
            socket = tls.connect({ socket, ...secure });
            await new Promise((resolve, reject) => socket.once('error', reject).once('secureConnect', resolve));
        }
        client.socket = socket;
        client.rest = Buffer.alloc(0);
        client.handlers = new Map();
        client.sids = 0;
        client.inbox = `_INBOX.${process.pid}.${Math.random().toString(36).slice(2)}`;
        socket.on('data', (data) => client.#take(data));
        socket.on('error', () => {});
        socket.write(`CONNECT ${JSON.stringify({ verbose: false, pedantic: false, headers: true, no_responders: true, lang: 'node',
            version: '1', protocol: 1, ...login })}\r\n`);
        return client;
    }

    #take(data) {
        this.rest = Buffer.concat([this.rest, data]);
        for (;;) {
            const end = this.rest.indexOf('\r\n');
            if (end < 0) return;
            const words = this.rest.subarray(0, end).toString().split(' ');
            if (words[0] === 'PING') this.socket.write('PONG\r\n');
            if (words[0] !== 'MSG' && words[0] !== 'HMSG') {
                if (words[0] === '-ERR') this.error = words.join(' ');
                this.rest = this.rest.subarray(end + 2);
                continue;
            }
            const sizes = words.slice(words[0] === 'HMSG' ? -2 : -1).map(Number);
            const total = sizes.at(-1);
            if (this.rest.length < end + 2 + total + 2) return;
            const body = this.rest.subarray(end + 2, end + 2 + total);
            this.rest = this.rest.subarray(end + 2 + total + 2);
            const head = words[0] === 'HMSG' ? sizes[0] : 0;
            const reply = words.length - sizes.length > 3 ? words[3] : undefined;
            this.handlers.get(words[2])?.({ subject: words[1], reply, headers: body.subarray(0, head).toString(),
                data: body.subarray(head).toString() });
        }
    }

    subscribe(subject, handler) {
        const sid = `${this.sids += 1}`;
        this.handlers.set(sid, handler);
        this.socket.write(`SUB ${subject} ${sid}\r\n`);
        return () => { this.handlers.delete(sid); this.socket.write(`UNSUB ${sid}\r\n`); };
    }

    publish(subject, text, reply = '') {
        this.socket.write(`PUB ${subject} ${reply ? `${reply} ` : ''}${Buffer.byteLength(text)}\r\n${text}\r\n`);
    }

    /** Publishes like twscope, with the message's id. */
    publishAs(id, subject, text) {
        const headers = `NATS/1.0\r\nNats-Msg-Id: ${id}\r\n\r\n`;
        this.socket.write(`HPUB ${subject} ${headers.length} ${headers.length + Buffer.byteLength(text)}\r\n${headers}${text}\r\n`);
    }

    request(subject, body = '') {
        return new Promise((resolve, reject) => {
            const inbox = `${this.inbox}.${this.sids}`;
            const late = setTimeout(() => reject(new Error(`no answer from ${subject}${this.error ?? ''}`)), WAIT_MS);
            const end = this.subscribe(inbox, (message) => {
                clearTimeout(late);
                end();
                resolve(message.data === '' ? {} : JSON.parse(message.data));
            });
            this.publish(subject, typeof body === 'string' ? body : JSON.stringify(body), inbox);
        });
    }

    info(stream) { return this.request(`$JS.API.STREAM.INFO.${stream}`); }

    /** Returns every message of a stream, in order: { subject, id, data }. */
    async messages(stream) {
        const { state } = await this.info(stream);
        const inbox = `${this.inbox}.all.${this.sids}`;
        const found = [];
        const all = new Promise((resolve, reject) => {
            if (state.messages === 0) resolve();
            const late = setTimeout(() => reject(new Error(`${found.length} of ${state.messages} messages came`)), 3 * WAIT_MS);
            this.subscribe(inbox, ({ subject, headers, data }) => {
                found.push({ subject, id: /^Nats-Msg-Id: *(\S+)/m.exec(headers)?.[1], data });
                if (found.length === state.messages) { clearTimeout(late); resolve(); }
            });
        });
        await this.request(`$JS.API.CONSUMER.CREATE.${stream}`, { stream_name: stream, config: { deliver_subject: inbox,
            deliver_policy: 'all', ack_policy: 'none', replay_policy: 'instant' } });
        await all;
        return found;
    }

    close() { this.socket.destroy(); }
}
